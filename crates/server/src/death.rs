//! How a server ended.

use crate::error_log::Reason;
use std::fmt;

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// Its exit code, if it left by itself.
    pub exit_code: Option<i32>,
    /// The signal that killed it, if one did.
    pub signal: Option<i32>,
    /// What the log or the kernel tells of why, and the line of the log that does.
    pub reason: Option<(Reason, String)>,
    /// The last lines of its error log.
    pub log: Vec<String>,
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.exit_code, self.signal) {
            (Some(code), _) => write!(f, "it left with exit code {code}")?,
            (_, Some(signal)) => write!(f, "it was killed by signal {signal} ({})", signal_name(signal))?,
            _ => write!(f, "it is gone")?,
        }
        if let Some((reason, line)) = &self.reason {
            write!(f, "; {}. It said: {line}", reason.meaning())?;
        }
        match self.log.is_empty() {
            true => write!(f, ". Its error log is empty")?,
            false => write!(f, ". Its error log ends:\n{}", self.log.join("\n"))?,
        }
        let fix = self.reason.as_ref().and_then(|(reason, _)| reason.fix());
        fix.map_or(Ok(()), |fix| write!(f, "\nfix: {fix}"))
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGINT => "SIGINT",
        libc::SIGXFSZ => "SIGXFSZ, a limit on file sizes",
        _ => "see kill -l",
    }
}
