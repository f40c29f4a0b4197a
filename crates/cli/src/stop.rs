//! ^C and SIGTERM: the first asks for an orderly end, the second ends at once.

use crate::exit::Exit;
use anyhow::Context;
use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// The first signal that asked for an end.
static SIGNAL: AtomicI32 = AtomicI32::new(signal_hook::consts::SIGINT);

/// Which signal asked for an end.
pub(crate) fn signal() -> i32 {
    SIGNAL.load(Ordering::SeqCst)
}

/// A flag that ^C, SIGTERM and SIGHUP set.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    // The janitor kills the server and removes its folder when we are gone.
    flag_and_at_once(|| ())
}

/// The same for who keeps something in a temporary folder: an end at once takes that along.
pub(crate) fn flag_beside(temporary: &Path) -> anyhow::Result<Arc<AtomicBool>> {
    let temporary = temporary.to_owned();
    flag_and_at_once(move || {
        // What is written to it meanwhile by another thread can make it fail once.
        for _ in 0..3 {
            if fs::remove_dir_all(&temporary).is_ok() {
                break;
            }
        }
    })
}

/// For what keeps nothing that another try would not make again: the first of these signals ends it, `before` which something is left
/// to do. Those that are to be ignored (`nohup`) are.
pub(crate) fn end_at_once(before: impl Fn() + Send + 'static) -> anyhow::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let heard: Vec<i32> = [SIGINT, SIGTERM, SIGHUP]
        .into_iter()
        .filter(|signal| !is_ignored(*signal))
        .collect();
    let mut signals = signal_hook::iterator::Signals::new(heard).context("cannot listen to signals")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                before();
                std::process::exit(i32::from(Exit::Stopped(signal).code()));
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zeroes is a value of this structure, which the call fills; nothing is changed by it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

/// `at_once` is what is left to do before an end at once.
fn flag_and_at_once(at_once: impl Fn() + Send + 'static) -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot listen to signals")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                if seen.load(Ordering::SeqCst) {
                    at_once();
                    std::process::exit(i32::from(Exit::Stopped(signal).code()));
                }
                SIGNAL.store(signal, Ordering::SeqCst);
                seen.store(true, Ordering::SeqCst);
                scaleprof_wire::end_soon();
                eprintln!("\nstopping (again to stop at once)");
            }
        })
        .context("cannot start a thread")?;
    Ok(stop)
}

/// Standard input, owned.
pub(crate) fn standard_input() -> OwnedFd {
    // SAFETY: this process is the janitor; nothing else in it uses standard input.
    unsafe { OwnedFd::from_raw_fd(0) }
}
