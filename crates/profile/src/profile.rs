//! Stacks with weights.

use crate::{Frames, StackId, StackTree};
use scaleprof_vocabulary::{ThreadState, UnwindStatus, WakerKind};

/// Samples of threads, with the dictionaries that say where they were.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// Places in the machine code.
    pub frames: Frames,
    /// Call paths.
    pub stacks: StackTree,
    /// What was seen, in the order in which it was added.
    pub samples: Vec<Sample>,
    /// The locks that the samples waited for.
    pub locks: Vec<Lock>,
}

/// One thread at one moment, and the time that this stands for.
///
/// Of a recording there are millions: what only some waits have stands apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When: nanoseconds of CLOCK_MONOTONIC. For a blocked thread, when it blocked.
    pub time_ns: u64,
    /// The thread's number, as the kernel's initial PID namespace has it.
    pub thread: u32,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// What it was doing.
    pub state: ThreadState,
    /// Thread-nanoseconds that it stands for.
    pub weight_ns: f64,
    /// Where it was.
    pub stack: StackId,
    /// How the walk through its user stack ended.
    pub ending: UnwindStatus,
    /// Whom it waited for, where that is known.
    pub wait: Option<Box<Wait>>,
}

impl Sample {
    /// The lock that it waited for.
    pub fn lock(&self) -> Option<LockId> {
        self.wait.as_ref().and_then(|wait| wait.lock)
    }
}

/// Whom a blocked thread waited for, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wait {
    /// The lock that it waited for.
    pub lock: Option<LockId>,
    /// What ended its wait.
    pub waker_kind: Option<WakerKind>,
    /// Where the waker was.
    pub waker_stack: Option<StackId>,
    /// Where the thread that held the lock was when the wait began; of one that ran, where it was when it was seen next and held it
    /// still.
    pub holder_stack: Option<StackId>,
    /// What that thread was doing there; none where it is not known who held the lock.
    pub holder_state: Option<ThreadState>,
}

impl Wait {
    /// None where nothing of it is known.
    pub(crate) fn known(self) -> Option<Box<Wait>> {
        (self != Wait::default()).then(|| Box::new(self))
    }
}

/// The number of a lock: the hash of its name, or of the call path that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockId(pub i64);

/// A variable of the program, found by an address in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variable {
    /// File name of the executable or library that defines it.
    pub module: String,
    /// Its name with the offset in it, or the member where the debug information tells, such as `log_sys+64`.
    pub name: String,
}

/// All sampled waits for one lock by one operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Lock {
    /// Its number.
    pub id: LockId,
    /// The variable that holds it; none on the heap or on a stack.
    pub variable: Option<Variable>,
    /// The futex operation, such as `wait`.
    pub operation: String,
    /// Sampled waits, each counted where its first part was told.
    pub waits: u64,
    /// Thread-nanoseconds that they stand for.
    pub wait_ns: f64,
    /// Where the holder was most often when a wait began, as far as it was off its CPU.
    pub holder_stack: Option<StackId>,
    /// Sampled waits in which it was there.
    pub holder_samples: u64,
}
