//! For which processors tables are made, and why there is none.

use thiserror::Error;

/// The processor that a file's code is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// AMD's and Intel's 64-bit processors.
    X86_64,
    /// 64-bit Arm.
    Aarch64,
}

/// Why there is no table.
#[derive(Debug, Error)]
pub enum UnwindError {
    /// The bytes are no ELF file.
    #[error("not an ELF file: {0}\nfix: name the server's binary itself, not a script that starts it")]
    NotElf(#[source] object::Error),
    /// A processor that cannot be unwound here.
    #[error("its code is for {0}; stacks can be walked on 64-bit x86 and little-endian 64-bit Arm")]
    Architecture(String),
    /// No `.eh_frame` and no `.debug_frame`.
    #[error(
        "it has neither .eh_frame nor .debug_frame, so its stacks cannot be walked: \
         build it without -fno-asynchronous-unwind-tables and do not strip .eh_frame"
    )]
    NoCallFrames,
    /// The section covers no code.
    #[error("its call frame information covers no code ({damaged} of its entries could not be read)")]
    CoversNothing {
        /// Entries that could not be read.
        damaged: u32,
    },
    /// The code does not fit into the table's numbers.
    #[error("its code is at {start:#x} to {end:#x}: the table of rules covers 4 GiB below 2^48")]
    TooWide {
        /// The first address that has a rule.
        start: u64,
        /// The address behind the last.
        end: u64,
    },
}
