//! What a collector gives: addresses, before anything has a name.

use scaleprof_vocabulary::{ThreadState, UnwindStatus, WakerKind};

/// One thread at one moment, and the time that this stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct RawSample {
    /// When: nanoseconds of CLOCK_MONOTONIC. For a blocked thread, when it blocked, or when the part of its wait began that was
    /// not told before.
    pub time_ns: u64,
    /// The thread's number, as the kernel's initial PID namespace has it.
    pub thread: u32,
    /// The CPU that it ran on last.
    pub cpu: u32,
    /// What it was doing.
    pub state: ThreadState,
    /// Thread-nanoseconds that the sample stands for: the sampling period on a CPU; for a blocked thread the length of the
    /// wait over the probability with which it was chosen, so that sums over samples are unbiased.
    pub weight_ns: f64,
    /// Where it was.
    pub stack: RawStack,
    /// The lock that it waited for: a futex, or a lock of the kernel, in state [`Lock`](ThreadState::Lock); on a CPU a lock of
    /// the kernel that it spun for.
    pub lock: Option<LockWait>,
    /// Who ended the wait, where that was seen.
    pub waker: Option<Waker>,
}

/// Addresses of a stack, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct RawStack {
    /// In the kernel; empty for a thread that was in user space.
    pub kernel: Vec<u64>,
    /// In user space. The first is an instruction pointer; those after it are return addresses, but for the one after a
    /// signal frame.
    pub user: Vec<u64>,
    /// Positions in `user` that hold an instruction pointer and not a return address (the first, and frames that a signal
    /// interrupted).
    pub interrupted: Vec<u16>,
    /// How the walk through user space ended.
    pub ending: UnwindStatus,
}

impl RawStack {
    /// Makes it one without an address, and keeps its memory for the next one.
    pub(crate) fn forget(&mut self) {
        let RawStack {
            kernel,
            user,
            interrupted,
            ending,
        } = self;
        kernel.clear();
        user.clear();
        interrupted.clear();
        *ending = UnwindStatus::default();
    }

    /// Becomes the same as another, in its own memory.
    pub(crate) fn become_like(&mut self, other: &RawStack) {
        let RawStack {
            kernel,
            user,
            interrupted,
            ending,
        } = self;
        kernel.clone_from(&other.kernel);
        user.clone_from(&other.user);
        interrupted.clone_from(&other.interrupted);
        *ending = other.ending;
    }

    /// Whether what stands at this position of `user` is a return address, and no instruction pointer.
    pub(crate) fn is_return_address(&self, position: usize) -> bool {
        let is_this = |interrupted: &u16| usize::from(*interrupted) == position;
        position > 0 && !self.interrupted.iter().any(is_this)
    }

    /// How many of their outermost steps two stacks have in common: those of user space, and, where these are the same to the last, of the
    /// kernel. A step is an address and whether that is a return address.
    pub(crate) fn outer_steps_in_common(&self, other: &RawStack) -> usize {
        let mut in_user = ends_in_common(&self.user, &other.user);
        for (one, another) in [(self, other), (other, self)] {
            let exact = one.interrupted.iter().map(|position| usize::from(*position));
            for position in exact.chain([0]) {
                let Some(step) = one.user.len().checked_sub(position + 1) else {
                    continue;
                };
                if step < in_user && another.is_return_address(another.user.len() - 1 - step) {
                    in_user = step;
                }
            }
        }
        if in_user < self.user.len().max(other.user.len()) {
            return in_user;
        }
        let mut in_kernel = ends_in_common(&self.kernel, &other.kernel);
        if self.kernel.len() != other.kernel.len() {
            // The innermost one of the shorter is a return address in the longer.
            in_kernel = in_kernel.min(self.kernel.len().min(other.kernel.len()).saturating_sub(1));
        }
        in_user + in_kernel
    }
}

fn ends_in_common(one: &[u64], other: &[u64]) -> usize {
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(|(one, other)| one == other).count()
}

/// What a thread waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct LockWait {
    /// Address of the futex word, or of the kernel's lock.
    pub address: u64,
    /// Whether it is a lock of the kernel itself.
    pub kernel: bool,
    /// For a lock of the kernel its kind, LCB_F_... of include/trace/events/lock.h. Else the futex operation without its flags (FUTEX_WAIT 0, FUTEX_WAIT_BITSET 9, FUTEX_LOCK_PI 6; include/uapi/linux/futex.h).
    pub operation: u32,
    /// The thread that the owner field of a glibc mutex at that address named when the wait began.
    pub owner: Option<u32>,
    /// Where that thread was then. One that ran cannot be looked at from outside: where it was when it was seen next and held the
    /// lock still; not taken where it gave it away before.
    pub holder_stack: Option<RawStack>,
    /// What it was doing there; none where it was not looked at.
    pub holder_state: Option<ThreadState>,
    /// Whether this is the rest of a wait of which a part was told before.
    pub goes_on: bool,
}

/// Who ended a wait.
#[derive(Debug, Clone, PartialEq)]
pub struct Waker {
    /// What it was.
    pub kind: WakerKind,
    /// Where it was; only of threads of the same process.
    pub stack: Option<RawStack>,
}
