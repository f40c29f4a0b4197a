//! Waits, from their two ends: a stack when a thread leaves its CPU, a time when it has one again.
//!
//! A wait that was chosen with probability p stands for 1/p like it. It is told in up to two parts: blocked until it could
//! run, then waiting for a CPU. A wait that is still under way when the figures are read is told up to then and goes on in
//! the next reading, so that every reading holds just its own time.

use std::collections::HashMap;

use scaleprof_profile::{Ending, LockWait, RawSample, RawStack, ThreadState, Waker, WakerKind};

use super::kernel_locks::KernelLocks;
use super::layout::ThreadSlot;
use super::records::{Found, Record, What, lock_wait, probability};

/// A wait whose end was not seen yet.
#[derive(Debug)]
struct Wait {
    sleep: u64,
    /// What was told of it already ends here.
    told_until: u64,
    began: u64,
    state: ThreadState,
    probability: f64,
    cpu: u32,
    stack: RawStack,
    lock: Option<LockWait>,
    waker_stack: Option<RawStack>,
}

impl Wait {
    fn part(&self, state: ThreadState, from: u64, until: u64, waker: Option<Waker>) -> Option<RawSample> {
        let from = from.max(self.told_until);
        let lock = self.lock.clone().filter(|_| state == ThreadState::Lock);
        let goes_on = self.told_until > self.began;
        (until > from).then(|| RawSample {
            time_ns: from,
            thread: 0,
            cpu: self.cpu,
            state,
            weight_ns: (until - from) as f64 / self.probability,
            stack: self.stack.clone(),
            lock: lock.map(|lock| LockWait { goes_on, ..lock }),
            waker,
        })
    }

    /// Both parts up to `until`; `runnable_at` is 0 while it is blocked.
    fn tell(&self, runnable_at: u64, until: u64, waker: Option<Waker>) -> impl Iterator<Item = RawSample> {
        let blocked_until = match runnable_at {
            0 => until,
            at => at.min(until),
        };
        let blocked = match self.state {
            ThreadState::RunQueue => None,
            state => self.part(state, self.began, blocked_until, waker),
        };
        let queued_from = match self.state {
            ThreadState::RunQueue => self.began,
            _ => blocked_until,
        };
        let queued = self.part(ThreadState::RunQueue, queued_from, until, None);
        blocked.into_iter().chain(queued)
    }
}

/// The waits under way of all threads.
#[derive(Debug, Default)]
pub(crate) struct Sleeps {
    waits: HashMap<u32, Wait>,
    kernel_locks: KernelLocks,
    /// Ends of waits whose beginning was lost.
    pub(crate) unmatched: u64,
}

impl Sleeps {
    /// A thread that slept already when the programs came, or came back from a rest: its wait counts from then on.
    pub(crate) fn found_asleep(&mut self, slot: &ThreadSlot, state: ThreadState, stack: RawStack) {
        self.waits.insert(
            slot.thread,
            Wait {
                sleep: slot.sleep,
                told_until: slot.left_at,
                began: slot.left_at,
                state,
                probability: probability(slot.probability),
                cpu: 0,
                stack,
                lock: lock_wait(slot.lock, slot.lock_operation, 0),
                waker_stack: None,
            },
        );
    }

    /// Whether the wait that a slot speaks of is known already.
    pub(crate) fn knows(&self, slot: &ThreadSlot) -> bool {
        self.waits
            .get(&slot.thread)
            .is_some_and(|wait| wait.sleep == slot.sleep)
    }

    /// Takes one record; records must come by rising time. Samples that are complete now go to `out`.
    pub(crate) fn take(&mut self, record: Record, out: &mut Vec<RawSample>) {
        let Record {
            time,
            thread,
            cpu,
            what,
        } = record;
        match what {
            What::OnCpu {
                stack,
                lock,
                lock_is_unseen,
            } => {
                let lock = match lock_is_unseen {
                    true => self.kernel_locks.conclude(&stack),
                    false => {
                        self.kernel_locks.learn(&stack, lock.as_ref());
                        lock
                    }
                };
                out.push(RawSample {
                    time_ns: time,
                    thread,
                    cpu,
                    state: ThreadState::Cpu,
                    weight_ns: 0.0,
                    stack,
                    lock,
                    waker: None,
                });
            }
            What::Sleeps {
                sleep,
                state,
                probability,
                stack,
                lock,
            } => {
                self.waits.insert(
                    thread,
                    Wait {
                        sleep,
                        told_until: time,
                        began: time,
                        state,
                        probability,
                        cpu,
                        stack,
                        lock,
                        waker_stack: None,
                    },
                );
            }
            What::Owner { sleep, state, stack } => {
                if let Some(lock) = self.wait(thread, sleep).and_then(|wait| wait.lock.as_mut()) {
                    lock.owner_stack = Some(stack);
                    lock.owner_state = Some(state);
                }
            }
            What::Waker { sleep, stack } => {
                if let Some(wait) = self.wait(thread, sleep) {
                    wait.waker_stack = Some(stack);
                }
            }
            What::Runs {
                sleep,
                runnable_at,
                waker_kind,
                waker,
                found,
            } => {
                let told = self.wait(thread, sleep).is_some();
                let begun = told.then(|| self.waits.remove(&thread)).flatten();
                let Some(mut wait) = begun.or(found.map(unwalked)) else {
                    // The first wait of a thread may have begun, and ended, before the watch did.
                    self.unmatched += u64::from(sleep > 1);
                    return;
                };
                let kind = match waker_kind {
                    1 => Some(WakerKind::Sibling(waker)),
                    2 => Some(WakerKind::OtherProcess(waker)),
                    3 => Some(WakerKind::Kernel),
                    _ => None,
                };
                let stack = wait.waker_stack.take();
                let waker = kind.map(|kind| Waker { kind, stack });
                out.extend(named(thread, wait.tell(runnable_at, time, waker)));
            }
        }
    }

    /// Tells every wait that is still under way up to `now`. `slot` gives what a thread does at this moment; a wait that it
    /// does not know any more ended a moment ago, and its end is still to come.
    pub(crate) fn tell_until(&mut self, now: u64, slot: impl Fn(u32) -> Option<ThreadSlot>, out: &mut Vec<RawSample>) {
        self.waits.retain(|thread, wait| {
            let Some(slot) = slot(*thread) else {
                // The thread has ended: nothing more will be heard of it.
                return false;
            };
            if slot.sleep == wait.sleep && slot.state != ThreadState::Cpu as u8 {
                out.extend(named(*thread, wait.tell(slot.runnable_at, now, None)));
                wait.told_until = now.max(wait.told_until);
            }
            // A later wait without an end of this one: that record was lost.
            slot.sleep <= wait.sleep || now.saturating_sub(wait.told_until) < 10_000_000_000
        });
    }

    /// The programs rested until now: no wait is told of that time. Those of threads that have not moved go on.
    pub(crate) fn rested_until(&mut self, now: u64) {
        for wait in self.waits.values_mut() {
            wait.told_until = now.max(wait.told_until);
        }
    }

    fn wait(&mut self, thread: u32, sleep: u64) -> Option<&mut Wait> {
        self.waits.get_mut(&thread).filter(|wait| wait.sleep == sleep)
    }
}

/// A wait that was over before anybody could walk its stack.
fn unwalked(found: Found) -> Wait {
    Wait {
        sleep: 0,
        told_until: found.at,
        began: found.at,
        state: found.state,
        probability: found.probability,
        cpu: 0,
        stack: RawStack {
            ending: Ending::NotTaken,
            ..RawStack::default()
        },
        lock: None,
        waker_stack: None,
    }
}

fn named(thread: u32, samples: impl Iterator<Item = RawSample>) -> impl Iterator<Item = RawSample> {
    samples.map(move |sample| RawSample { thread, ..sample })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps(time: u64, sleep: u64, state: ThreadState, probability: f64) -> Record {
        let what = What::Sleeps {
            sleep,
            state,
            probability,
            stack: RawStack::default(),
            lock: (state == ThreadState::Lock).then_some(LockWait {
                address: 64,
                kernel: false,
                operation: 0,
                owner: Some(9),
                owner_stack: None,
                owner_state: None,
                goes_on: false,
            }),
        };
        record(time, what)
    }

    fn runs(time: u64, sleep: u64, runnable_at: u64) -> Record {
        let what = What::Runs {
            sleep,
            runnable_at,
            waker_kind: 1,
            waker: 9,
            found: None,
        };
        record(time, what)
    }

    fn record(time: u64, what: What) -> Record {
        Record {
            time,
            thread: 5,
            cpu: 1,
            what,
        }
    }

    fn told(samples: &[RawSample]) -> Vec<(ThreadState, f64)> {
        samples.iter().map(|sample| (sample.state, sample.weight_ns)).collect()
    }

    #[test]
    fn a_wait_is_told_as_blocked_and_then_queued_for_a_cpu() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        all.take(sleeps(100, 1, ThreadState::Lock, 0.5), &mut out);
        all.take(runs(200, 1, 180), &mut out);
        assert_eq!(told(&out), [(ThreadState::Lock, 160.0), (ThreadState::RunQueue, 40.0)]);
        assert_eq!(
            out[0].waker.as_ref().map(|waker| waker.kind),
            Some(WakerKind::Sibling(9))
        );
        assert_eq!(out[0].lock.as_ref().map(|lock| lock.owner), Some(Some(9)));
        assert_eq!((out[1].thread, out[1].lock.is_none()), (5, true));
    }

    #[test]
    fn a_wait_knows_where_the_owner_of_the_lock_was_and_what_it_did() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        let owner = |sleep| {
            let stack = RawStack {
                user: vec![7],
                ..RawStack::default()
            };
            let state = ThreadState::Io;
            record(100, What::Owner { sleep, state, stack })
        };
        all.take(sleeps(100, 1, ThreadState::Lock, 1.0), &mut out);
        // Of a wait that is over.
        all.take(owner(0), &mut out);
        assert_eq!(all.waits[&5].lock.as_ref().and_then(|lock| lock.owner_state), None);
        all.take(owner(1), &mut out);
        all.take(runs(200, 1, 180), &mut out);
        let lock = out[0].lock.clone().unwrap();
        assert_eq!(lock.owner_state, Some(ThreadState::Io));
        assert_eq!(lock.owner_stack.map(|stack| stack.user), Some(vec![7]));
    }

    #[test]
    fn a_thread_that_was_preempted_only_queues() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        all.take(sleeps(100, 1, ThreadState::RunQueue, 1.0), &mut out);
        all.take(runs(150, 1, 100), &mut out);
        assert_eq!(told(&out), [(ThreadState::RunQueue, 50.0)]);
    }

    #[test]
    fn a_wait_under_way_is_shared_between_two_readings() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        all.take(sleeps(100, 3, ThreadState::Net, 1.0), &mut out);
        let slot = ThreadSlot {
            thread: 5,
            sleep: 3,
            state: ThreadState::Net as u8,
            ..ThreadSlot::default()
        };
        all.tell_until(140, |_| Some(slot), &mut out);
        all.take(runs(200, 3, 190), &mut out);
        assert_eq!(
            told(&out),
            [
                (ThreadState::Net, 40.0),
                (ThreadState::Net, 50.0),
                (ThreadState::RunQueue, 10.0)
            ]
        );
    }

    #[test]
    fn an_end_without_a_beginning_is_counted_and_tells_nothing() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        all.take(runs(200, 3, 190), &mut out);
        all.take(sleeps(300, 4, ThreadState::Io, 1.0), &mut out);
        all.take(runs(400, 5, 390), &mut out);
        assert_eq!((out.len(), all.unmatched), (0, 2));
    }

    #[test]
    fn nothing_is_told_of_a_wait_while_the_programs_rest() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        all.take(sleeps(100, 3, ThreadState::Net, 1.0), &mut out);
        let slot = ThreadSlot {
            thread: 5,
            sleep: 3,
            state: ThreadState::Net as u8,
            ..ThreadSlot::default()
        };
        all.tell_until(140, |_| Some(slot), &mut out);
        all.rested_until(500);
        all.take(runs(600, 3, 590), &mut out);
        assert_eq!(
            told(&out),
            [
                (ThreadState::Net, 40.0),
                (ThreadState::Net, 90.0),
                (ThreadState::RunQueue, 10.0)
            ]
        );
    }

    #[test]
    fn a_wait_that_was_found_under_way_counts_though_its_stack_was_not_walked_in_time() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        let found = Found {
            at: 150,
            state: ThreadState::Lock,
            probability: 0.5,
        };
        let what = What::Runs {
            sleep: 8,
            runnable_at: 200,
            waker_kind: 0,
            waker: 0,
            found: Some(found),
        };
        all.take(record(210, what), &mut out);
        assert_eq!(told(&out), [(ThreadState::Lock, 100.0), (ThreadState::RunQueue, 20.0)]);
        assert_eq!((out[0].stack.ending, all.unmatched), (Ending::NotTaken, 0));
    }

    #[test]
    fn threads_that_ended_are_forgotten() {
        let (mut all, mut out) = (Sleeps::default(), Vec::new());
        all.take(sleeps(100, 3, ThreadState::Net, 1.0), &mut out);
        all.tell_until(140, |_| None, &mut out);
        assert!(all.waits.is_empty() && out.is_empty());
    }
}
