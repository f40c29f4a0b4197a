//! The rows of the tables that say what the server's threads did: states, samples, locks, and the dictionaries of stacks
//! and frames.
//!
//! Stacks, frames and locks are named by a hash of what they are (docs/bundle.md says which), so that equal ones have equal
//! numbers in every bundle, and bundles can be laid in one folder.

use crate::UtcMicros;
use scaleprof_vocabulary::{Role, SymbolSource, ThreadState, UnwindStatus, WakerKind};
use std::sync::Arc;

/// Time that threads of one role spent in one state (table `states`).
///
/// Rows without a thread are the sum over all threads of the role. Rows with one break the same time down and are never
/// added to them.
#[derive(Debug, Clone, PartialEq)]
pub struct StateRow {
    /// The measurement.
    pub measurement: i32,
    /// The second; none for a figure of the whole measurement.
    pub second: Option<i32>,
    /// What these threads are there for.
    pub role: Role,
    /// The thread's number in the kernel's initial PID namespace; none for all threads of the role together.
    pub thread: Option<i64>,
    /// The thread's name; only where there is a thread.
    pub name: Option<String>,
    /// What they did.
    pub state: ThreadState,
    /// Thread-nanoseconds.
    pub nanoseconds: i64,
    /// Thread-nanoseconds in which these threads were alive, measured apart from the states. It
    /// stands in the row of state `cpu` alone, which is always there, so that its sum and that of
    /// `nanoseconds` cover the same threads and seconds; none where it was not measured.
    pub lifetime_ns: Option<i64>,
}

/// One thread at one moment, and the time that it stands for (table `samples`).
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRow {
    /// The measurement.
    pub measurement: i32,
    /// The second in which it was taken; for a blocked thread, in which it blocked.
    pub second: i32,
    /// When.
    pub time_us: UtcMicros,
    /// The thread, as in `states`.
    pub thread: i64,
    /// The thread's role, as in `states`.
    pub role: Role,
    /// The CPU that it ran on last.
    pub cpu: i32,
    /// Its state, as in `states`.
    pub state: ThreadState,
    /// Its call path: a row of `stacks`.
    pub stack: i64,
    /// How the walk through its stack ended.
    pub unwind_status: UnwindStatus,
    /// Thread-nanoseconds that it stands for. Sums over samples are unbiased.
    pub weight_ns: f64,
    /// The lock that it waited for: a row of `locks`. Only in state `lock`.
    pub lock: Option<i64>,
    /// What ended its wait.
    pub waker_kind: Option<WakerKind>,
    /// Where that thread of the server was.
    pub waker_stack: Option<i64>,
    /// Where the thread that held the lock was when the wait began; of one that ran, where it was when it was seen next and held it
    /// still.
    pub holder_stack: Option<i64>,
    /// What that thread was doing there, as in `state`; none where it is not known who held the
    /// lock.
    pub holder_state: Option<ThreadState>,
}

/// One node of the tree of call paths (table `stacks`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct StackRow {
    /// Hash of the parent and the frame.
    pub stack: i64,
    /// The stack without its innermost frame; none for a thread's outermost frame alone.
    pub parent: Option<i64>,
    /// The innermost frame: a row of `frames`.
    pub frame: i64,
    /// Frames outside of this one.
    pub depth: i32,
}

/// One place in the machine code (table `frames`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FrameRow {
    /// Hash of all the rest.
    pub frame: i64,
    /// File name of the executable or library, without its folder; `[kernel]` for the kernel.
    pub module: Arc<str>,
    /// Its build-id in hexadecimal.
    pub build_id: Option<Arc<str>>,
    /// Address in the file; for the kernel the offset from the start of the function.
    pub address: i64,
    /// The function; none where nothing names it.
    pub function: Option<Arc<str>>,
    /// Whether the compiler built it into the function outside of it.
    pub inlined: bool,
    /// Source file, as the debug information names it relative to the build folder.
    pub file: Option<Arc<str>>,
    /// Line in it.
    pub line: Option<i32>,
    /// Where the name comes from.
    pub symbol_source: SymbolSource,
}

/// One lock in one measurement, by the operation with which it was waited for (table `locks`).
#[derive(Debug, Clone, PartialEq)]
pub struct LockRow {
    /// The measurement.
    pub measurement: i32,
    /// Hash of module and name, or of the call path that waits where it has no name.
    pub lock: i64,
    /// The variable that holds it, with the offset in it, such as `log_sys+64`; none for one on the heap or on a stack.
    pub name: Option<String>,
    /// File name of the executable or library of the variable.
    pub module: Option<String>,
    /// The futex operation: `wait`, `wait_bitset`, `lock_pi`, `wait_requeue_pi`, `waitv`, or `operation N`.
    pub operation: String,
    /// Waits that were sampled.
    pub waits: i64,
    /// Thread-nanoseconds that they stand for.
    pub wait_ns: f64,
    /// Where the thread that held the lock was most often when a wait began, as far as it was seen.
    pub holder_stack: Option<i64>,
    /// Sampled waits in which it was there.
    pub holder_samples: i64,
}
