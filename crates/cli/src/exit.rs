//! How the program ends, as its exit code says it.

use std::process::ExitCode;

/// An end that is nobody's failure: what was asked for needs a yes that nobody gave.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct NoConsent(pub(crate) String);

/// Why it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done. What a run found, good or bad, is a result.
    Done,
    /// It failed; what was measured is kept.
    Failed,
    /// The command line cannot be read, or consent is missing: nothing was begun. (clap ends so too.)
    Usage,
    /// `check`: something without which the command cannot work is missing.
    RequiredMissing,
    /// Somebody stopped it, by this signal.
    Stopped(i32),
}

impl Exit {
    /// The number, as shells have it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::RequiredMissing => 3,
            // Signals that are listened to have small numbers.
            Exit::Stopped(signal) => 128 + (signal & 0x1f) as u8,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_that_help_tells() {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let codes = [Exit::Done, Exit::Failed, Exit::Usage, Exit::RequiredMissing].map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 3]);
        let stopped = [SIGINT, SIGTERM, SIGHUP].map(|signal| Exit::Stopped(signal).code());
        assert_eq!(stopped, [130, 143, 129]);
    }
}
