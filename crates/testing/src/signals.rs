//! Programs that hear every signal.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Lets a command begin with no signal ignored, as in the foreground of a terminal. What tests start in the background of a script or
/// by nohup inherits that SIGINT, SIGQUIT or SIGHUP are ignored, and a test that sends one would wait for ever.
pub fn default_signals(command: &mut Command) {
    // SAFETY: signal(2) may be called between fork and exec (signal-safety(7)), and nothing else is.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_the_parent_ignores_ends_the_child() {
        // A shell that ignores SIGINT and passes that on, but for what we do.
        let mut inner = Command::new("sh");
        inner.args(["-c", "kill -INT $$; echo it lives"]);
        // SAFETY: as above.
        unsafe {
            inner.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_IGN);
                Ok(())
            });
        }
        let ignoring = inner.output().expect("sh");
        assert_eq!(String::from_utf8_lossy(&ignoring.stdout), "it lives\n");
        default_signals(&mut inner);
        let hearing = inner.output().expect("sh");
        assert!(hearing.stdout.is_empty() && !hearing.status.success(), "{hearing:?}");
    }
}
