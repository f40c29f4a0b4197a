//! Writing to the standard output, which may be a pipe that nobody reads any more or a file on a full disk.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// What stands for the standard output where a file is named.
pub(crate) const STANDARD_OUTPUT: &str = "-";

/// The standard output takes no more.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to the standard output: {0}")]
pub(crate) struct Unwritten(#[from] std::io::Error);

impl Unwritten {
    /// Whether its reader has gone, as `head` does when it has seen enough: no failure of ours.
    pub(crate) fn reader_is_gone(&self) -> bool {
        self.0.kind() == ErrorKind::BrokenPipe
    }
}

/// Writes bytes, all of them.
pub(crate) fn print(bytes: impl AsRef<[u8]>) -> Result<(), Unwritten> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes.as_ref())?;
    Ok(out.flush()?)
}

/// Writes text, all of it.
pub(crate) fn write(text: Arguments<'_>) -> Result<(), Unwritten> {
    let mut out = std::io::stdout().lock();
    out.write_fmt(text)?;
    Ok(out.flush()?)
}

/// As `print!`, for functions whose errors are told.
macro_rules! put {
    ($($text:tt)*) => {
        $crate::output::write(format_args!($($text)*))?
    };
}

/// As `println!`, for functions whose errors are told.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($text)*)))?
    };
}

pub(crate) use {put, say};
