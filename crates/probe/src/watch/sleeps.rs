//! Waits, from their two ends: a stack when a thread leaves its CPU, a time when it has one again.
//!
//! A wait that was chosen with probability p stands for 1/p like it. It is told in up to two parts: blocked until it could
//! run, then waiting for a CPU. A wait that is still under way when the figures are read is told up to then and goes on in
//! the next reading, so that every reading holds just its own time.

use scaleprof_vocabulary::{ThreadState, UnwindStatus, WakerKind};
use std::collections::HashMap;

use scaleprof_profile::{LockWait, RawSample, RawStack, Waker};

use super::kernel_locks::KernelLocks;
use super::layout::{ThreadSlot, UNKNOWN_CPU};
use super::records::{Found, Record, What, probability};

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

/// How long the records of a thread that has ended are waited for: they are read some times a second.
const LAST_WORDS_NS: u64 = 2_000_000_000;
/// How long a wait is kept whose end was not heard of.
const LOST_AFTER_NS: u64 = 10_000_000_000;

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
    pub(crate) fn found_asleep(
        &mut self,
        slot: &ThreadSlot,
        state: ThreadState,
        stack: RawStack,
        lock: Option<LockWait>,
    ) {
        self.waits.insert(
            slot.thread,
            Wait {
                sleep: slot.sleep,
                told_until: slot.left_at,
                began: slot.left_at,
                state,
                probability: probability(slot.probability),
                cpu: match slot.cpu {
                    UNKNOWN_CPU => 0,
                    cpu => cpu.into(),
                },
                stack,
                lock,
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
            What::Owner {
                sleep,
                owner,
                state,
                stack,
            } => self.owner_is_at(thread, sleep, (time, owner), state, &stack),
            What::Waker { sleep, stack } => {
                if let Some(wait) = self.wait(thread, sleep) {
                    wait.waker_stack = Some(stack);
                }
            }
            What::Runs {
                sleep,
                runnable_at,
                waker_kind,
                found,
            } => {
                let told = self.wait(thread, sleep).is_some();
                let begun = told.then(|| self.waits.remove(&thread)).flatten();
                let Some(mut wait) = begun.or(found.map(|found| unwalked(found, cpu))) else {
                    // The first wait of a thread may have begun, and ended, before the watch did.
                    self.unmatched += u64::from(sleep > 1);
                    return;
                };
                // 0 is none of them.
                let kind = usize::from(waker_kind).checked_sub(1);
                let kind = kind.and_then(|kind| WakerKind::ALL.get(kind).copied());
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
                // The thread has ended; what it sent before may still be on its way.
                return now.saturating_sub(wait.told_until) < LAST_WORDS_NS;
            };
            if slot.sleep == wait.sleep && slot.state != ThreadState::Cpu as u8 {
                out.extend(named(*thread, wait.tell(slot.runnable_at, now, None)));
                wait.told_until = now.max(wait.told_until);
            }
            // A later wait without an end of this one: that record was lost. An earlier one is of a new thread with the same number.
            slot.sleep == wait.sleep || (slot.sleep > wait.sleep && now.saturating_sub(wait.told_until) < LOST_AFTER_NS)
        });
    }

    /// The programs rested until now: no wait is told of that time. Those of threads that have not moved go on.
    pub(crate) fn rested_until(&mut self, now: u64) {
        for wait in self.waits.values_mut() {
            wait.told_until = now.max(wait.told_until);
        }
    }

    /// Where the owner of a lock is that one thread waits for. One that ran at first is told once more, as soon as it is seen, for
    /// one of those that wait: the others wait for the same.
    fn owner_is_at(
        &mut self,
        thread: u32,
        sleep: u64,
        (time, owner): (u64, u32),
        state: ThreadState,
        stack: &RawStack,
    ) {
        let Some(wait) = self.wait(thread, sleep) else { return };
        let began = wait.began;
        let Some(lock) = wait.lock.as_mut() else { return };
        let address = lock.address;
        lock.owner = Some(owner);
        lock.holder_stack = Some(stack.clone());
        lock.holder_state = Some(state);
        if stack.ending == UnwindStatus::NotTaken || time == began {
            return;
        }
        let not_taken = |lock: &&mut LockWait| {
            let stack = lock.holder_stack.as_ref();
            stack.is_none_or(|stack| stack.ending == UnwindStatus::NotTaken)
        };
        let of_same_lock = self.waits.values_mut().filter_map(|wait| wait.lock.as_mut());
        for lock in of_same_lock.filter(|lock| lock.address == address && !lock.kernel && lock.owner == Some(owner)) {
            if not_taken(&lock) {
                lock.holder_stack = Some(stack.clone());
                lock.holder_state = Some(state);
            }
        }
    }

    fn wait(&mut self, thread: u32, sleep: u64) -> Option<&mut Wait> {
        self.waits.get_mut(&thread).filter(|wait| wait.sleep == sleep)
    }
}

/// A wait that was over before anybody could walk its stack; the thread runs on that CPU now.
fn unwalked(found: Found, cpu: u32) -> Wait {
    Wait {
        sleep: 0,
        told_until: found.at,
        began: found.at,
        state: found.state,
        probability: found.probability,
        cpu,
        stack: RawStack {
            ending: UnwindStatus::NotTaken,
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
mod tests;
