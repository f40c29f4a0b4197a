//! What each thread did when: for tools that show a time line.

use crate::{About, Frames, StackId, StackTree};
use scaleprof_vocabulary::{Role, ThreadState};

/// The samples of one measurement by thread.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// What was measured.
    pub about: About,
    /// Places in the machine code.
    pub frames: Frames,
    /// Call paths.
    pub stacks: StackTree,
    /// How far apart two samples of a thread that runs are, nanoseconds; none where no thread ran.
    pub interval_ns: Option<f64>,
    /// The threads by their numbers.
    pub threads: Vec<ThreadLine>,
}

/// One thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadLine {
    /// Its number in the kernel's initial PID namespace.
    pub number: i64,
    /// Its name; none where it is not known.
    pub name: Option<String>,
    /// Whom it serves.
    pub role: Role,
    /// Its samples in the order of time.
    pub moments: Vec<Moment>,
}

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// When, nanoseconds since the measurement began; of a wait, when it began. Before the
    /// measurement it is negative.
    pub at_ns: i64,
    /// What the thread was doing.
    pub state: ThreadState,
    /// Where it was.
    pub stack: StackId,
    /// Thread-seconds that this stands for.
    pub thread_seconds: f64,
}
