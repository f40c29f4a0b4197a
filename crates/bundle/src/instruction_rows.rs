//! The rows of the table that keeps the machine code of the functions that took most CPU time, so that it can be read where the
//! server's binary is not.

use scaleprof_vocabulary::{AccessKind, BranchKind};
use std::sync::Arc;

/// One instruction (table `instructions`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstructionRow {
    /// File name of the executable or library, as in `frames`.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// The function that the machine runs: what was built into it is in `inlined`.
    pub function: String,
    /// Where the function begins, in the file's addresses. Two functions may have one name.
    pub function_start: i64,
    /// Where the instruction is, in the file's addresses.
    pub address: i64,
    /// Bytes of it.
    pub length: i32,
    /// As an assembler writes it: Intel's syntax on x86-64. Functions and variables are named.
    pub text: String,
    /// Source file, as the debug information names it relative to the build folder.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<i32>,
    /// Functions that the compiler built in here, outermost first with ` > ` between; none for the function's own code.
    pub inlined: Option<Arc<str>>,
    /// How it branches; none where it goes on to the next.
    pub branch: Option<BranchKind>,
    /// Where it goes, in the file's addresses; none where only its running tells.
    pub target: Option<i64>,
    /// Whether it is part of a loop that waits for another thread.
    pub in_spin_loop: bool,
    /// What it does with the memory that is its operand.
    pub access: Option<AccessKind>,
    /// The address in the file of that memory, where the instruction names it.
    pub data_address: Option<i64>,
    /// Bytes of that memory.
    pub data_size: Option<i32>,
    /// Whether no other CPU can come between.
    pub locked: bool,
}
