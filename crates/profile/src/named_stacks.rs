//! A profile of stacks that come with names, as other tools write them.

use crate::legible::legible;
use crate::{Frame, FrameId, Lock, LockId, Profile, Sample, StackId, Variable, Wait, content_hash::ContentHash};
use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Call paths that are kept, so that a file made for it cannot fill the memory: profiles of years of servers have fewer. What lies
/// inside of the last is counted where it is cut off.
const MOST_STACKS: usize = 10_000_000;

/// Frames of a call path that are kept, from the outermost on. Go keeps 128, perf 127; a text may say anything.
pub const MOST_NAMED_FRAMES: u32 = 1024;

/// Stacks and samples that are put together piece by piece.
#[derive(Debug, Default)]
pub(crate) struct NamedStacks {
    profile: Profile,
    locks: HashMap<String, usize>,
    /// Samples without a time by all else that they have: equal ones are one.
    timeless: HashMap<(StackId, ThreadState, u32, Option<LockId>), usize>,
    was_cut: bool,
    was_too_deep: bool,
}

/// A sample, but for its stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedSample<'a> {
    /// Nanoseconds by the recording's clock; 0 where it has none.
    pub(crate) time_ns: u64,
    /// The thread's number.
    pub(crate) thread: u32,
    /// The CPU; 0 where it is not known.
    pub(crate) cpu: u32,
    /// What the thread was doing.
    pub(crate) state: ThreadState,
    /// Thread-nanoseconds.
    pub(crate) weight_ns: f64,
    /// Name of the lock that it waited for.
    pub(crate) lock: Option<&'a str>,
}

impl NamedStacks {
    /// The number of a frame, whose names are made legible.
    pub(crate) fn frame(&mut self, frame: Frame) -> FrameId {
        let shown = |name: Arc<str>| match legible((&*name).into()) {
            Cow::Owned(shown) => shown.into(),
            Cow::Borrowed(_) => Arc::clone(&name),
        };
        self.profile.frames.intern(Frame {
            module: shown(frame.module),
            function: frame.function.map(shown),
            file: frame.file.map(shown),
            ..frame
        })
    }

    /// The stack that has the frame inside of another; that other one itself where there are too many.
    pub(crate) fn child(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        match parent {
            Some(parent) if self.profile.stacks.iter().len() >= MOST_STACKS => {
                self.was_cut = true;
                parent
            }
            Some(parent) if self.depth(parent) + 1 >= MOST_NAMED_FRAMES => {
                self.was_too_deep = true;
                parent
            }
            parent => self.profile.stacks.child(parent, frame),
        }
    }

    /// What to say where call paths were cut off.
    pub(crate) fn warning(&self) -> Option<String> {
        let cut = format!("it has more than {MOST_STACKS} call paths: the inner parts of the others were left out");
        let deep =
            format!("it has call paths of more than {MOST_NAMED_FRAMES} frames: their inner parts were left out");
        let some = [(self.was_cut, cut), (self.was_too_deep, deep)];
        let told: Vec<String> = some
            .into_iter()
            .filter_map(|(is_so, words)| is_so.then_some(words))
            .collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// How many frames lie outside of the stack's innermost one.
    pub(crate) fn depth(&self, stack: StackId) -> u32 {
        self.profile.stacks.depth(stack).unwrap_or(0)
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, stack: StackId, sample: NamedSample<'_>) {
        let lock = sample.lock.map(|name| self.lock(name, sample.weight_ns));
        if sample.time_ns == 0 {
            let key = (stack, sample.state, sample.thread, lock);
            let place = *self.timeless.entry(key).or_insert(self.profile.samples.len());
            if let Some(known) = self.profile.samples.get_mut(place) {
                known.weight_ns += sample.weight_ns;
                return;
            }
        }
        self.profile.samples.push(Sample {
            time_ns: sample.time_ns,
            thread: sample.thread,
            cpu: sample.cpu,
            state: sample.state,
            weight_ns: sample.weight_ns,
            stack,
            ending: UnwindStatus::Unknown,
            wait: Wait {
                lock,
                ..Wait::default()
            }
            .known(),
        });
    }

    fn lock(&mut self, name: &str, weight_ns: f64) -> LockId {
        let locks = &mut self.profile.locks;
        let name = legible(name.into()).into_owned();
        let place = *self.locks.entry(name.clone()).or_insert_with(|| {
            let variable = Variable {
                module: UNKNOWN_MODULE.to_owned(),
                name,
            };
            let mut hash = ContentHash::new();
            hash.string(&variable.module);
            hash.string(&variable.name);
            locks.push(Lock {
                id: LockId(hash.number()),
                variable: Some(variable),
                operation: "unknown".to_owned(),
                waits: 0,
                wait_ns: 0.0,
                holder_stack: None,
                holder_samples: 0,
            });
            locks.len() - 1
        });
        let lock = &mut self.profile.locks[place];
        lock.waits += 1;
        lock.wait_ns += weight_ns;
        lock.id
    }

    /// How many samples there are.
    pub(crate) fn sample_count(&self) -> usize {
        self.profile.samples.len()
    }

    /// All of it.
    pub(crate) fn into_profile(self) -> Profile {
        self.profile
    }
}

/// The module of what a recording names without saying where it is.
pub(crate) const UNKNOWN_MODULE: &str = "unknown";
