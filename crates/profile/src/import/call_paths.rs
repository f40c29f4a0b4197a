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
    /// So many bytes of the stack were copied with each sample (`--call-graph dwarf`).
    CopiedStacks {
        /// The most that a copy holds.
        bytes: u32,
    },
    /// The processor remembered the calls that had not returned (`--call-graph lbr`).
    LastBranches,
}

impl fmt::Display for CallPaths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallPaths::NoCallers => out.write_str("none"),
            CallPaths::FramePointers => out.write_str("frame pointers"),
            CallPaths::CopiedStacks { bytes } => write!(out, "copies of {bytes} bytes"),
            CallPaths::LastBranches => out.write_str("the processor's last branches"),
        }
    }
}
