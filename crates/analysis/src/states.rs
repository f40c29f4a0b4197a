//! The states of threads, as tables and samples name them.

/// The states that samples have.
pub(crate) const STATES: [&str; 8] = ["cpu", "spin", "runq", "lock", "io", "net", "sleep", "other"];
