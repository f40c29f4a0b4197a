//! From addresses to a profile.

use crate::dictionary::Hashed;
use crate::locks::{LockIdentity, Locks, PathPart};
use crate::{
    Frame, FrameId, Frames, LockId, LockWait, Profile, RawSample, RawStack, Sample, StackId, StackTree, Variable, Wait,
};
use foldhash::HashMap;
use scaleprof_binary::parallel::filled_in_parallel;
use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::ops::Range;

/// Gives names to addresses of one process and of the kernel.
pub trait Namer {
    /// The frames at an address, innermost first: one, and one more for each function that the compiler built in there. None
    /// where no file is mapped there. A [`Converter`] asks for each address once and remembers the answer until
    /// [`forget_addresses`](Converter::forget_addresses), so that it may be given away where that is not called.
    ///
    /// `address` is the one to look up: a return address is already less 1. So it lies in the call instruction, since the return address
    /// itself may belong to the next line or function. `kernel` says which address space it is of.
    fn frames(&mut self, address: u64, kernel: bool) -> Vec<Frame>;

    /// Whether the instruction at an address of user space belongs to a loop that waits for another thread.
    fn is_waiting_loop(&mut self, address: u64) -> bool {
        let _ = address;
        false
    }

    /// The variable at an address, for locks; none on the heap or on a stack, or where nothing names it.
    fn variable(&mut self, address: u64) -> Option<Variable> {
        let _ = address;
        None
    }
}

/// Makes a [`Profile`] of [`RawSample`]s of one process.
///
/// Names are looked up once an address, so a converter belongs to one process of the server. Its
/// dictionaries live on after [`take`](Converter::take): measurements that share a converter share
/// the numbers of frames, stacks and locks.
#[derive(Debug, Clone, Default)]
pub struct Converter {
    frames: Frames,
    stacks: StackTree,
    samples: Vec<Sample>,
    locks: Locks,
    /// Frames at an address that was looked up, of the kernel or not: where they stand in `of_addresses`.
    known: HashMap<(u64, bool), Range<usize>>,
    /// The frames of one address after the other, each outermost first.
    of_addresses: Vec<FrameId>,
    /// The stack with an address inside of another one: of most stacks all but the last few steps were taken before.
    steps: HashMap<(Option<StackId>, u64, Kind), StackId>,
    variables: HashMap<u64, Option<Variable>>,
    /// Whether an address belongs to a loop that waits.
    waiting: HashMap<u64, bool>,
    /// The stack that was kept last: the next one has much of it in common.
    last: LastStack,
}

/// The way into a stack.
#[derive(Debug, Clone, Default)]
struct LastStack {
    raw: RawStack,
    /// None before the first one.
    ending: Option<UnwindStatus>,
    /// What stands in front of its addresses where they do not reach the thread's first function.
    root: Option<StackId>,
    /// Of each of its addresses, outermost first, the stack up to there.
    steps: Vec<StackId>,
}

/// A stack that a [`Converter`] keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptStack {
    stack: StackId,
    /// The part of it in user space.
    user: StackId,
    ending: UnwindStatus,
    /// Whether a thread that runs there waits for another one.
    waits: bool,
}

/// A sample without its stack; the fields as in [`RawSample`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeptSample {
    /// When.
    pub(crate) time_ns: u64,
    /// The thread.
    pub(crate) thread: u32,
    /// The CPU.
    pub(crate) cpu: u32,
    /// What it was doing.
    pub(crate) state: ThreadState,
    /// Thread-nanoseconds that it stands for.
    pub(crate) weight_ns: f64,
}

impl KeptSample {
    fn at(self, at: KeptStack) -> Sample {
        Sample {
            time_ns: self.time_ns,
            thread: self.thread,
            cpu: self.cpu,
            state: match self.state {
                ThreadState::Cpu if at.waits => ThreadState::Spin,
                state => state,
            },
            weight_ns: self.weight_ns,
            stack: at.stack,
            ending: at.ending,
            wait: None,
        }
    }
}

/// What an address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Kind {
    is_return_address: bool,
    kernel: bool,
}

impl Converter {
    /// Without any sample.
    pub fn new() -> Converter {
        Converter::default()
    }

    /// Makes room for the call paths of so many different stacks with so many different addresses, so that less is moved. Without the room
    /// it grows as needed.
    pub(crate) fn reserve(&mut self, stacks: usize, addresses: usize) {
        // Most have one step that no other has, or two.
        self.stacks.reserve(2 * stacks);
        let _ = self.steps.try_reserve(2 * stacks);
        self.frames.reserve(addresses);
        let _ = self.known.try_reserve(addresses);
        let _ = self.of_addresses.try_reserve(addresses);
    }

    /// Takes in the frames at an address, as a [`Namer`] gives them: nobody is asked for them any more.
    pub(crate) fn know(&mut self, address: u64, kernel: bool, frames: Vec<Hashed<Frame>>) {
        let from = self.of_addresses.len();
        let outermost_first = frames.into_iter().rev();
        self.of_addresses
            .extend(outermost_first.map(|frame| self.frames.intern_hashed(frame)));
        if self.of_addresses.len() > from {
            self.known.insert((address, kernel), from..self.of_addresses.len());
        }
    }

    /// Keeps a stack, for samples that are added by [`add_kept`](Converter::add_kept): where many have the same one, its addresses
    /// are looked at once.
    pub(crate) fn keep(&mut self, raw: &RawStack, namer: &mut dyn Namer) -> KeptStack {
        let (user, stack) = self.stack(raw, namer);
        KeptStack {
            stack,
            user,
            ending: raw.ending,
            waits: self.is_in_waiting_loop(raw, namer),
        }
    }

    /// Adds samples with stacks that were kept: what `at` gives for each place below `count`, on all CPUs.
    pub(crate) fn add_kept(&mut self, count: usize, at: impl Fn(usize) -> (KeptSample, KeptStack) + Sync) {
        let make = |place| {
            let (sample, at) = at(place);
            sample.at(at)
        };
        let mut made = filled_in_parallel(count, make);
        match self.samples.is_empty() {
            true => self.samples = made,
            false => self.samples.append(&mut made),
        }
    }

    /// The sample at that place of those that were added, whose stack was kept, is of a wait for a lock. Of others nothing is kept.
    pub(crate) fn add_wait(&mut self, place: usize, at: KeptStack, wait: &LockWait, namer: &mut dyn Namer) {
        let sample = self.samples.get(place);
        if let Some(sample) = sample.filter(|sample| sample.state == ThreadState::Lock) {
            let (lock, _) = self.lock(wait, sample.weight_ns, (at.user, at.stack), namer);
            let wait = Wait {
                lock: Some(lock),
                ..Wait::default()
            };
            self.samples[place].wait = wait.known();
        }
    }

    /// Adds one sample.
    pub fn add(&mut self, raw: &RawSample, namer: &mut dyn Namer) {
        let (user, stack) = self.stack(&raw.stack, namer);
        let lock = raw
            .lock
            .as_ref()
            .map(|wait| self.lock(wait, raw.weight_ns, (user, stack), namer));
        let holder_state = raw.lock.as_ref().and_then(|wait| wait.holder_state);
        let (lock, holder_stack) = lock.unzip();
        let waker_stack = raw.waker.as_ref().and_then(|waker| waker.stack.as_ref());
        let waker_stack = waker_stack.map(|stack| self.stack(stack, namer).1);
        let state = self.state(raw, namer);
        self.samples.push(Sample {
            time_ns: raw.time_ns,
            thread: raw.thread,
            cpu: raw.cpu,
            state,
            weight_ns: raw.weight_ns,
            stack,
            ending: raw.stack.ending,
            wait: Wait {
                lock,
                waker_kind: raw.waker.as_ref().map(|waker| waker.kind),
                waker_stack,
                holder_stack: holder_stack.flatten(),
                holder_state,
            }
            .known(),
        });
    }

    fn state(&mut self, raw: &RawSample, namer: &mut dyn Namer) -> ThreadState {
        match raw.state {
            ThreadState::Cpu if self.is_in_waiting_loop(&raw.stack, namer) => ThreadState::Spin,
            state => state,
        }
    }

    /// A thread that runs in a loop that waits for another thread spins. A thread in the kernel does not, wherever it came from.
    fn is_in_waiting_loop(&mut self, stack: &RawStack, namer: &mut dyn Namer) -> bool {
        let at = stack.user.first().filter(|_| stack.kernel.is_empty());
        at.is_some_and(|at| *self.waiting.entry(*at).or_insert_with(|| namer.is_waiting_loop(*at)))
    }

    /// Samples that were added since the last [`take`](Converter::take).
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The profile of the samples since the last time. Its dictionaries hold all frames and stacks so far.
    pub fn take(&mut self) -> Profile {
        Profile {
            frames: self.frames.clone(),
            stacks: self.stacks.clone(),
            samples: std::mem::take(&mut self.samples),
            locks: self.locks.take(),
        }
    }

    /// The profile of the samples since the last time, where none follows.
    pub fn into_profile(mut self) -> Profile {
        Profile {
            frames: self.frames,
            stacks: self.stacks,
            samples: self.samples,
            locks: self.locks.take(),
        }
    }

    /// Forgets what stands at which address: for when the process has mapped or unmapped a file.
    pub fn forget_addresses(&mut self) {
        self.known.clear();
        self.of_addresses.clear();
        self.steps.clear();
        self.last = LastStack::default();
        self.variables.clear();
        self.waiting.clear();
    }

    /// The user part of a stack and the whole of it. A stack that is not complete stands under a root of its own, so that it
    /// is never taken for a complete one.
    fn stack(&mut self, raw: &RawStack, namer: &mut dyn Namer) -> (StackId, StackId) {
        let ending = if is_empty(raw) && raw.ending == UnwindStatus::Complete {
            UnwindStatus::NotTaken
        } else {
            raw.ending
        };
        let mut last = std::mem::take(&mut self.last);
        if last.ending != Some(ending) {
            last.steps.clear();
            last.ending = Some(ending);
            last.root = (ending != UnwindStatus::Complete).then(|| {
                let words = format!("[incomplete: {}]", ending.name());
                let frame = self.frames.intern(Frame::placeholder(words));
                self.stacks.child(None, frame)
            });
        }
        let in_common = raw.outer_steps_in_common(&last.raw).min(last.steps.len());
        last.steps.truncate(in_common);
        last.raw.become_like(raw);
        let of_user = raw.user.iter().enumerate().rev().map(|(position, address)| {
            let kind = Kind {
                is_return_address: raw.is_return_address(position),
                kernel: false,
            };
            (*address, kind)
        });
        let of_kernel = raw.kernel.iter().enumerate().rev().map(|(position, address)| {
            let kind = Kind {
                is_return_address: position > 0,
                kernel: true,
            };
            (*address, kind)
        });
        for (address, kind) in of_user.chain(of_kernel).skip(in_common) {
            let parent = last.steps.last().copied().or(last.root);
            last.steps.push(self.inside(parent, address, kind, namer));
        }
        let user = raw
            .user
            .len()
            .checked_sub(1)
            .and_then(|place| last.steps.get(place).copied());
        let user = user.or(last.root);
        let at = last.steps.last().copied().or(last.root);
        self.last = last;
        let whole = at.unwrap_or_else(|| unreachable!("a stack without an address is incomplete and has a root"));
        (user.unwrap_or(whole), whole)
    }

    /// The stack with the frames of an address inside of `parent`.
    fn inside(&mut self, parent: Option<StackId>, address: u64, kind: Kind, namer: &mut dyn Namer) -> StackId {
        if let Some(stack) = self.steps.get(&(parent, address, kind)) {
            return *stack;
        }
        let lookup = address.wrapping_sub(u64::from(kind.is_return_address));
        let frames = self.known.entry((lookup, kind.kernel)).or_insert_with(|| {
            let mut found = namer.frames(lookup, kind.kernel);
            if found.is_empty() {
                // The number of such an address says nothing in another process.
                found.push(Frame::placeholder("[unknown]".to_owned()));
            }
            let from = self.of_addresses.len();
            let numbers = found.into_iter().rev().map(|frame| self.frames.intern(frame));
            self.of_addresses.extend(numbers);
            from..self.of_addresses.len()
        });
        let mut at = parent;
        for frame in &self.of_addresses[frames.clone()] {
            at = Some(self.stacks.child(at, *frame));
        }
        let stack = at.unwrap_or_else(|| unreachable!("every address has a frame"));
        self.steps.insert((parent, address, kind), stack);
        stack
    }

    /// The lock, and where its owner was. `stacks`: the user part and the whole.
    fn lock(
        &mut self,
        wait: &LockWait,
        weight_ns: f64,
        (user, whole): (StackId, StackId),
        namer: &mut dyn Namer,
    ) -> (LockId, Option<StackId>) {
        let variable = self
            .variables
            .entry(wait.address)
            .or_insert_with(|| namer.variable(wait.address))
            .clone();
        // One that ran, and was not seen before it gave the lock away, has no place.
        let seen = wait.holder_stack.as_ref().filter(|stack| !is_unseen(stack));
        let owner = seen.map(|stack| self.stack(stack, namer).1);
        let identity = match variable {
            Some(variable) => LockIdentity::Variable(variable),
            None if wait.kernel => LockIdentity::Variable(self.taken_in(whole)),
            None => LockIdentity::CallPath(self.functions(user)),
        };
        (self.locks.add(identity, wait, weight_ns, owner), owner)
    }

    /// A lock that the kernel allocated, by the function that takes it: that is how its developers know it.
    fn taken_in(&self, whole: StackId) -> Variable {
        let innermost_last = self.stacks.frames(whole);
        let kernel = innermost_last.iter().rev().filter_map(|id| self.frames.get(*id));
        let taker = kernel
            .take_while(|frame| frame.module.starts_with('['))
            .find(|frame| frame.function.as_deref().is_some_and(|name| !is_lock_primitive(name)));
        match taker {
            Some(frame) => Variable {
                module: frame.module.to_string(),
                name: format!("lock taken in {}", frame.function.as_deref().unwrap_or_default()),
            },
            None => Variable {
                module: "[kernel]".to_owned(),
                name: "lock".to_owned(),
            },
        }
    }

    fn functions(&self, stack: StackId) -> Vec<PathPart> {
        let frames = self.stacks.frames(stack);
        frames
            .into_iter()
            .filter_map(|id| {
                let frame = self.frames.get(id)?;
                Some(PathPart {
                    module: frame.module.clone(),
                    function: frame.function.clone().ok_or(id),
                })
            })
            .collect()
    }
}

fn is_empty(stack: &RawStack) -> bool {
    stack.user.is_empty() && stack.kernel.is_empty()
}

/// Whether nobody looked where the thread was.
fn is_unseen(stack: &RawStack) -> bool {
    is_empty(stack) && matches!(stack.ending, UnwindStatus::Complete | UnwindStatus::NotTaken)
}

/// Whether a function of the kernel only takes a lock for another one (kernel/locking; names as of Linux 5.19 to 6.18), or is
/// part of how it was seen there.
fn is_lock_primitive(function: &str) -> bool {
    const PARTS: [&str; 18] = [
        "spin_lock",
        "mutex_lock",
        "down_read",
        "down_write",
        "rwsem",
        "percpu_down",
        "read_lock",
        "write_lock",
        "lock_slowpath",
        "__down",
        "rt_mutex",
        "schedule",
        "osq_lock",
        "trace_contention",
        "__traceiter",
        "task_switch",
        "spin_unlock",
        "bpf_",
    ];
    PARTS.iter().any(|part| function.contains(part))
}

#[cfg(test)]
mod tests;
