//! ^C and SIGTERM: the first asks for an orderly end, the second ends at once.

use anyhow::Context;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that ^C, SIGTERM and SIGHUP set.
pub(crate) fn flag() -> anyhow::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot listen to signals")?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                if seen.swap(true, Ordering::SeqCst) {
                    // Impatience: the janitor kills the server and removes its folder when we are gone.
                    std::process::exit(128 + signal);
                }
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
