//! How a recording came by its callers.

use std::fmt;

/// The way in which call paths were taken. Two ways see other callers of the same place: copies end where they end, and code
/// without frame pointers hides its callers from who follows these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallPaths {
    /// No callers were recorded.
    NoCallers,
    /// The kernel followed frame pointers (`perf record -g`).
    FramePointers,
    /// The stack was copied with each sample (`--call-graph dwarf`).
    CopiedStacks {
        /// The most bytes that a copy holds, where many stacks are longer.
        cut_at: Option<u32>,
    },
    /// The processor remembered the calls that had not returned (`--call-graph lbr`).
    LastBranches,
}

/// What stands for [`CallPaths::NoCallers`] in words.
pub const NO_CALLERS: &str = "samples without callers";

impl fmt::Display for CallPaths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallPaths::NoCallers => out.write_str(NO_CALLERS),
            CallPaths::FramePointers => out.write_str("frame pointers"),
            CallPaths::CopiedStacks { cut_at: None } => out.write_str("copied stacks"),
            CallPaths::CopiedStacks { cut_at: Some(bytes) } => write!(out, "copied stacks, cut at {bytes} bytes"),
            CallPaths::LastBranches => out.write_str("the processor's last branches"),
        }
    }
}
