//! Samples as they are kept while a measurement goes on: each stack once.
//!
//! Names are given after the measurement, so that it is not disturbed; until then all samples stay.
//! A server's threads are at few places most of the time. A watch may go on for days: past a bound
//! no more are kept, and those are counted.

use scaleprof_vocabulary::{ThreadState, WakerKind};
use std::collections::HashSet;
use std::sync::Arc;

use scaleprof_profile::{LockWait, RawSample, RawStack, Waker};

/// Room for samples and the addresses of their stacks: 48 bytes and more each, 8 bytes each.
const MOST_SAMPLES: usize = 2_000_000;
const MOST_ADDRESSES: usize = 8_000_000;

/// All different stacks of the samples that are kept.
#[derive(Debug)]
pub(crate) struct SampleStore {
    stacks: HashSet<Arc<RawStack>>,
    room_for_samples: usize,
    room_for_addresses: usize,
    samples: usize,
    addresses: usize,
    /// Samples that found no room.
    pub(crate) lost: u64,
    /// Samples of watches that tell of one reading at a time, and those of them with whole stacks.
    pub(crate) seen: u64,
    pub(crate) complete: u64,
}

/// A sample that shares its stacks with others.
#[derive(Debug)]
pub(crate) struct StoredSample {
    time_ns: u64,
    thread: u32,
    cpu: u32,
    weight_ns: f64,
    state: ThreadState,
    stack: Arc<RawStack>,
    /// What few samples have.
    wait: Option<Box<StoredWait>>,
}

#[derive(Debug)]
struct StoredWait {
    /// Without the owner's stack, which is the next field.
    lock: Option<LockWait>,
    holder_stack: Option<Arc<RawStack>>,
    waker: Option<(WakerKind, Option<Arc<RawStack>>)>,
}

impl Default for SampleStore {
    fn default() -> Self {
        Self::with_room(MOST_SAMPLES, MOST_ADDRESSES)
    }
}

impl SampleStore {
    fn with_room(room_for_samples: usize, room_for_addresses: usize) -> Self {
        Self {
            stacks: HashSet::new(),
            room_for_samples,
            room_for_addresses,
            samples: 0,
            addresses: 0,
            lost: 0,
            seen: 0,
            complete: 0,
        }
    }

    /// Takes samples in, as far as there is room.
    pub(crate) fn store(&mut self, samples: Vec<RawSample>) -> Vec<StoredSample> {
        let mut stored = Vec::new();
        for sample in samples {
            if self.samples >= self.room_for_samples || self.addresses >= self.room_for_addresses {
                self.lost += 1;
                continue;
            }
            self.samples += 1;
            stored.push(self.stored(sample));
        }
        stored
    }

    /// Counts what a watch says of one reading at a time: samples, those with whole stacks, and those that it lost.
    pub(crate) fn count(&mut self, seen: u64, complete: u64, lost: u64) {
        self.seen += seen;
        self.complete += complete;
        self.lost += lost;
    }

    /// Forgets the stacks: the samples that have them are done with.
    pub(crate) fn clear(&mut self) {
        self.stacks.clear();
        (self.samples, self.addresses) = (0, 0);
    }

    fn stored(&mut self, sample: RawSample) -> StoredSample {
        let stack = self.shared(sample.stack);
        let (mut lock, waker) = (sample.lock, sample.waker);
        let has_wait = lock.is_some() || waker.is_some();
        let holder_stack = lock.as_mut().and_then(|lock| lock.holder_stack.take());
        let wait = has_wait.then(|| {
            Box::new(StoredWait {
                lock,
                holder_stack: holder_stack.map(|stack| self.shared(stack)),
                waker: waker.map(|waker| (waker.kind, waker.stack.map(|stack| self.shared(stack)))),
            })
        });
        StoredSample {
            time_ns: sample.time_ns,
            thread: sample.thread,
            cpu: sample.cpu,
            weight_ns: sample.weight_ns,
            state: sample.state,
            stack,
            wait,
        }
    }

    fn shared(&mut self, stack: RawStack) -> Arc<RawStack> {
        if let Some(known) = self.stacks.get(&stack) {
            return Arc::clone(known);
        }
        self.addresses += stack.user.len() + stack.kernel.len();
        let stack = Arc::new(stack);
        self.stacks.insert(Arc::clone(&stack));
        stack
    }
}

impl StoredSample {
    /// The sample as it was.
    pub(crate) fn restored(&self) -> RawSample {
        let own = |stack: &Arc<RawStack>| RawStack::clone(stack);
        let wait = self.wait.as_ref();
        let lock = wait.and_then(|wait| {
            let holder_stack = wait.holder_stack.as_ref().map(own);
            wait.lock.clone().map(|lock| LockWait { holder_stack, ..lock })
        });
        let waker = wait.and_then(|wait| wait.waker.as_ref());
        RawSample {
            time_ns: self.time_ns,
            thread: self.thread,
            cpu: self.cpu,
            state: self.state,
            weight_ns: self.weight_ns,
            stack: own(&self.stack),
            lock,
            waker: waker.map(|(kind, stack)| Waker {
                kind: *kind,
                stack: stack.as_ref().map(own),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(addresses: &[u64]) -> RawStack {
        RawStack {
            user: addresses.to_vec(),
            ..RawStack::default()
        }
    }

    fn sample(time_ns: u64, addresses: &[u64]) -> RawSample {
        RawSample {
            time_ns,
            thread: 7,
            cpu: 1,
            state: ThreadState::Cpu,
            weight_ns: 1e6,
            stack: stack(addresses),
            lock: None,
            waker: None,
        }
    }

    #[test]
    fn samples_come_back_as_they_were_and_share_their_stacks() {
        let waits = RawSample {
            state: ThreadState::Lock,
            lock: Some(LockWait {
                address: 64,
                kernel: false,
                operation: 9,
                owner: Some(8),
                holder_stack: Some(stack(&[1, 2])),
                holder_state: Some(ThreadState::Io),
                goes_on: true,
            }),
            waker: Some(Waker {
                kind: WakerKind::SameProcess,
                stack: Some(stack(&[5])),
            }),
            ..sample(3, &[3, 4])
        };
        let all = vec![sample(1, &[1, 2]), sample(2, &[1, 2]), waits];
        let mut store = SampleStore::default();
        let stored = store.store(all.clone());
        let restored: Vec<RawSample> = stored.iter().map(StoredSample::restored).collect();
        assert_eq!(restored, all);
        assert_eq!((store.stacks.len(), store.addresses, store.lost), (3, 5, 0));
        assert!(Arc::ptr_eq(&stored[0].stack, &stored[1].stack));
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let many = |from: u64| {
            (from..from + 10)
                .map(|time| sample(time, &[time % 3, 1]))
                .collect::<Vec<_>>()
        };
        let mut few_samples = SampleStore::with_room(4, 1000);
        assert_eq!((few_samples.store(many(0)).len(), few_samples.lost), (4, 6));
        let mut few_addresses = SampleStore::with_room(1000, 3);
        assert_eq!((few_addresses.store(many(0)).len(), few_addresses.lost), (2, 8));
        few_addresses.clear();
        assert_eq!((few_addresses.store(many(20)).len(), few_addresses.lost), (2, 16));
    }
}
