//! How many files the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as it takes for `connections`, or as far as the system lets us.
///
/// # Errors
/// The limit that is in force, when it is too low and cannot be raised.
pub fn raise_open_file_limit(connections: u32) -> Result<(), u64> {
    /// Files beside the connections: logs, tables, counters.
    const BESIDE: u64 = 256;
    let wanted = u64::from(connections) + BESIDE;
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return Ok(());
    }
    // Root may raise the hard limit too; anybody else only up to it.
    let maximum = limit.maximum.unwrap_or(u64::MAX);
    let raised = |maximum: u64| {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted.min(maximum)),
                maximum: Some(maximum),
            },
        )
    };
    if maximum >= wanted {
        return raised(maximum).map_err(|_| current);
    }
    raised(wanted).or_else(|_| raised(maximum)).map_err(|_| current)?;
    let now = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if now >= wanted { Ok(()) } else { Err(now) }
}
