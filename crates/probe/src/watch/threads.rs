//! Exact time by thread and state, from the slots that the BPF programs keep.

use scaleprof_vocabulary::ThreadState;
use std::collections::HashMap;

use super::layout::{ENDED, ThreadSlot};
use super::rest::{Rest, SeenTimes, conclude};
use super::slots::Slots;

/// What one thread did since the reading before.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadTimes {
    /// Its number.
    pub thread: u32,
    /// Its name, as the operating system has it.
    pub name: String,
    /// How long it lived in this time, nanoseconds.
    pub lifetime_ns: u64,
    /// Nanoseconds in each [`ThreadState`](scaleprof_vocabulary::ThreadState), by its number. `spin` is part of `cpu` here.
    pub nanoseconds: [u64; ThreadState::IN_KERNEL],
    /// Times that it left its CPU by itself.
    pub switches: u64,
    /// Times that its CPU was taken from it.
    pub preemptions: u64,
    /// Times that it got another CPU than it had last.
    pub migrations: u64,
    /// Part of the time on CPU that the scheduler does not charge to it: interrupts, and time that the host of a virtual
    /// machine gave to others.
    pub not_its_own_ns: u64,
    /// Waits for a socket.
    pub net_waits: u64,
    /// Waits outside of any system call: page faults.
    pub fault_waits: u64,
    /// Part of the blocked time whose cause was not seen, but concluded from the thread's other waits: see
    /// [`WatchOptions::most_cost`](super::WatchOptions::most_cost).
    pub concluded_ns: u64,
    /// The part of the time of waits for a socket that was seen.
    pub net_seen_ns: u64,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether this is only what it ran on after its end was told in the reading before.
    pub after_end: bool,
}

/// The slots as they were when they were last read.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// With the time at which each was read.
    last: HashMap<usize, (ThreadSlot, u64)>,
    names: HashMap<(usize, u64), String>,
    /// What those did that ended since the last reading, and whose slots others have.
    ended: Vec<SeenTimes>,
}

/// Threads that are kept one by one until the next reading.
const MOST_ENDED: usize = 50_000;

impl Threads {
    /// Reads all slots. Gives what every thread did since the last time, and the slots whose threads have ended, which are
    /// free for others once they were emptied.
    pub(crate) fn read(
        &mut self,
        slots: &Slots,
        rest: Rest,
        clock: impl Fn() -> u64,
        name_of: impl Fn(u32) -> Option<String>,
    ) -> (Vec<ThreadTimes>, Vec<usize>) {
        let (mut times, mut ended) = (std::mem::take(&mut self.ended), Vec::new());
        for (index, slot) in slots.used() {
            // Each thread by its own time: reading them all takes a while, more where this thread has to wait for a CPU.
            let now = rest.told_until(&slot, clock()).max(slot.left_at).max(slot.entered_at);
            let seen = self.tell(index, &slot, (rest, now), &name_of);
            if seen.times.ended {
                ended.push(index);
            }
            times.push(seen);
        }
        (conclude(times), ended)
    }

    /// Takes what those threads did that have ended by now, for the next reading: a server that begins and ends thousands a second needs
    /// few slots then. Gives their slots, which are free for others once they were emptied.
    pub(crate) fn take_ended(&mut self, slots: &Slots, rest: Rest, now: u64) -> Vec<usize> {
        let mut ended = Vec::new();
        for (index, slot) in slots.ending().filter(|(_, slot)| is_over(slot, now)) {
            let seen = self.tell(index, &slot, (rest, now), &|_| None);
            ended.push(index);
            let is_full = self.ended.len() >= MOST_ENDED;
            match self.ended.last_mut().filter(|_| is_full) {
                // Nobody has read for long: of the rest only the sum is kept.
                Some(last) => last.add(&seen),
                None => self.ended.push(seen),
            }
        }
        ended
    }

    /// What a thread did since it was last told, up to `now`.
    fn tell(
        &mut self,
        index: usize,
        slot: &ThreadSlot,
        (rest, now): (Rest, u64),
        name_of: &impl Fn(u32) -> Option<String>,
    ) -> SeenTimes {
        let before = self
            .last
            .get(&index)
            .filter(|(last, _)| (last.thread, last.started) == (slot.thread, slot.started));
        let from = before.map_or(slot.started, |(last, read_at)| match last.ended {
            0 => *read_at,
            _ => last.ended_at,
        });
        let key = (index, slot.started);
        if slot.ended != 0 {
            self.names.remove(&key);
        } else if let std::collections::hash_map::Entry::Vacant(place) = self.names.entry(key)
            && let Some(name) = name_of(slot.thread)
        {
            place.insert(name);
        }
        let name = self.names.get(&key).cloned().unwrap_or_else(|| slot_name(slot));
        let after = at(slot, now, rest);
        let mut seen = difference(before.map(|(last, _)| last), &after, name, from, now);
        seen.times.ended = is_over(slot, now);
        seen.times.after_end = before.is_some_and(|(last, _)| last.ended != 0);
        match seen.times.ended {
            true => self.last.remove(&index),
            false => self.last.insert(index, (after, now)),
        };
        seen
    }
}

/// Whether nothing more of a thread is to come. What it ran on after it had told its end comes a grace period of RCU later, which is some
/// tens of milliseconds mostly, and from one that its parent does not ask for, such as the first thread of a process, never.
fn is_over(slot: &ThreadSlot, now: u64) -> bool {
    const PATIENCE_NS: u64 = 1_000_000_000;
    slot.ended == ENDED || (slot.ended != 0 && now > slot.ended_at + PATIENCE_NS)
}

/// The slot as if its thread had left its CPU, or had gone on waiting, at `now`: what came after `left_at` is in the sums. The
/// scheduler's account is not at hand here; our own marks are, which differ from it by a microsecond.
fn at(slot: &ThreadSlot, now: u64, rest: Rest) -> ThreadSlot {
    if let Some(caught_up) = rest.caught_up(slot, now) {
        return caught_up;
    }
    let mut slot = *slot;
    if slot.ended != 0 {
        // Its last stint, where somebody else held the slot when it ended.
        slot.nanoseconds[ThreadState::Cpu as usize] += slot.ended_at.saturating_sub(slot.left_at);
    } else {
        let on_cpu = slot.state == ThreadState::Cpu as u8;
        let off_until = if on_cpu { slot.entered_at.max(slot.left_at) } else { now };
        let left_as = usize::from(slot.left_as) % slot.nanoseconds.len();
        let woken = match slot.runnable_at {
            0 => off_until,
            at => at.clamp(slot.left_at, off_until),
        };
        slot.nanoseconds[left_as] += woken - slot.left_at;
        slot.nanoseconds[ThreadState::RunQueue as usize] += off_until - woken;
        slot.nanoseconds[ThreadState::Cpu as usize] += now - off_until;
    }
    slot
}

/// The sums of a slot: its states, and what nobody saw.
const SUMS: usize = 9;
const UNSEEN: usize = 8;

fn sums(slot: &ThreadSlot) -> [u64; SUMS] {
    let mut sums = [slot.unseen; SUMS];
    sums[..UNSEEN].copy_from_slice(&slot.nanoseconds);
    sums
}

/// By how much each sum grew. The interval that was open at the last reading was told in the state that the thread seemed to be
/// in, and may have been another: woken just then and queued since, it seemed asleep. What was told too much there is in another
/// state's growth now, and is told once: it is taken off that, so that all states still add up to the time that passed.
fn grown(before: [u64; SUMS], after: [u64; SUMS]) -> [u64; SUMS] {
    let mut grown = [0; SUMS];
    let mut told_before = 0;
    for ((grown, before), after) in grown.iter_mut().zip(before).zip(after) {
        *grown = after.saturating_sub(before);
        told_before += before.saturating_sub(after);
    }
    let likely = [UNSEEN, ThreadState::RunQueue as usize, ThreadState::Cpu as usize];
    for state in likely.into_iter().chain(0..grown.len()) {
        let taken = grown[state].min(told_before);
        grown[state] -= taken;
        told_before -= taken;
    }
    grown
}

/// What happened between two slots that hold everything up to their reading.
fn difference(before: Option<&ThreadSlot>, after: &ThreadSlot, name: String, from: u64, now: u64) -> SeenTimes {
    let nothing = ThreadSlot::default();
    let old = before.unwrap_or(&nothing);
    let grown = grown(sums(old), sums(after));
    let mut nanoseconds = [0; ThreadState::IN_KERNEL];
    nanoseconds.copy_from_slice(&grown[..UNSEEN]);
    let end = if after.ended != 0 { after.ended_at } else { now };
    let times = ThreadTimes {
        thread: after.thread,
        name,
        lifetime_ns: end.saturating_sub(after.started.max(from)),
        nanoseconds,
        switches: voluntary(after).saturating_sub(voluntary(old)),
        preemptions: after.preemptions.saturating_sub(old.preemptions),
        migrations: after.migrations.saturating_sub(old.migrations),
        // What comes after the end may be a correction alone: the time on a CPU that it is a part of was in the reading before.
        not_its_own_ns: after
            .not_its_own
            .saturating_sub(old.not_its_own)
            .min(nanoseconds[ThreadState::Cpu as usize]),
        net_waits: after.net_waits.saturating_sub(old.net_waits),
        fault_waits: after.fault_waits.saturating_sub(old.fault_waits),
        concluded_ns: 0,
        net_seen_ns: 0,
        ended: after.ended != 0,
        after_end: false,
    };
    SeenTimes {
        unseen: grown[UNSEEN],
        unseen_ran: after.unseen_ran.saturating_sub(old.unseen_ran),
        seen_switches: after.seen_switches.saturating_sub(old.seen_switches),
        times,
    }
}

/// Times that it left its CPU by itself. A copy that was torn may have more preemptions than that.
fn voluntary(slot: &ThreadSlot) -> u64 {
    slot.sleep.saturating_sub(slot.preemptions)
}

fn slot_name(slot: &ThreadSlot) -> String {
    let end = slot.name.iter().position(|byte| *byte == 0).unwrap_or(slot.name.len());
    String::from_utf8_lossy(&slot.name[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It lived since 100, left its CPU at `left_at`, and what came before is in `nanoseconds`.
    fn slot(left_as: ThreadState, left_at: u64, nanoseconds: [u64; ThreadState::IN_KERNEL]) -> ThreadSlot {
        ThreadSlot {
            thread: 7,
            state: left_as as u8,
            left_as: left_as as u8,
            left_at,
            entered_at: left_at,
            started: 100,
            nanoseconds,
            ..ThreadSlot::default()
        }
    }

    fn between(before: Option<&ThreadSlot>, slot: &ThreadSlot, from: u64, now: u64) -> ThreadTimes {
        difference(before, &at(slot, now, Rest::default()), String::new(), from, now).times
    }

    fn running(slot: ThreadSlot, entered_at: u64) -> ThreadSlot {
        ThreadSlot {
            state: ThreadState::Cpu as u8,
            entered_at,
            ..slot
        }
    }

    #[test]
    fn what_goes_on_counts_up_to_the_reading() {
        let before = slot(ThreadState::Net, 150, [50, 0, 0, 0, 0, 0, 0, 0]);
        let woken = ThreadSlot {
            runnable_at: 250,
            ..before
        };
        let now = running(woken, 260);
        let times = between(Some(&at(&before, 200, Rest::default())), &now, 200, 300);
        assert_eq!(times.nanoseconds, [40, 0, 10, 0, 0, 50, 0, 0]);
        assert_eq!(times.nanoseconds.iter().sum::<u64>(), times.lifetime_ns);
    }

    /// Asleep since 150 by what was known at 200; it had been woken at 160, and got its CPU at 230.
    #[test]
    fn what_was_told_in_the_wrong_state_is_not_told_twice() {
        let asleep = slot(ThreadState::Sleep, 150, [50, 0, 0, 0, 0, 0, 0, 0]);
        let told = at(&asleep, 200, Rest::default());
        let mut slept = asleep.nanoseconds;
        slept[ThreadState::Sleep as usize] += 10;
        slept[ThreadState::RunQueue as usize] += 70;
        slept[ThreadState::Cpu as usize] += 20;
        let now = slot(ThreadState::Net, 250, slept);
        let times = between(Some(&told), &now, 200, 300);
        assert_eq!(times.nanoseconds.iter().sum::<u64>(), times.lifetime_ns);
        assert_eq!(times.nanoseconds[ThreadState::RunQueue as usize], 30);
        assert_eq!(times.nanoseconds[ThreadState::Sleep as usize], 0);
    }

    #[test]
    fn a_thread_that_was_woken_waits_for_a_cpu() {
        let asleep = slot(ThreadState::Lock, 150, [50, 0, 0, 0, 0, 0, 0, 0]);
        let woken = ThreadSlot {
            runnable_at: 180,
            ..asleep
        };
        assert_eq!(
            at(&asleep, 200, Rest::default()).nanoseconds,
            [50, 0, 0, 50, 0, 0, 0, 0]
        );
        assert_eq!(
            at(&woken, 200, Rest::default()).nanoseconds,
            [50, 0, 20, 30, 0, 0, 0, 0]
        );
    }

    #[test]
    fn a_mark_from_before_it_left_its_cpu_wakes_nobody_earlier() {
        let asleep = ThreadSlot {
            runnable_at: 120,
            ..slot(ThreadState::Lock, 150, [50, 0, 0, 0, 0, 0, 0, 0])
        };
        assert_eq!(
            at(&asleep, 200, Rest::default()).nanoseconds,
            [50, 0, 50, 0, 0, 0, 0, 0]
        );
        let times = between(Some(&asleep), &running(asleep, 200), 150, 230);
        assert_eq!(times.nanoseconds, [30, 0, 50, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn what_a_thread_ran_on_to_its_end_is_told_once() {
        let mut threads = Threads::default();
        let mut tell = |slot: &ThreadSlot, now: u64| {
            let times = threads.tell(3, slot, (Rest::default(), now), &|_| None).times;
            let states: u64 = times.nanoseconds.iter().sum();
            assert_eq!(states, times.lifetime_ns, "{times:?}");
            (times.nanoseconds[0], times.not_its_own_ns, times.ended, times.after_end)
        };
        let lives = slot(ThreadState::Cpu, 200, [100, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(tell(&lives, 200), (100, 0, false, false));
        let mut ends = slot(ThreadState::Cpu, 250, [150, 0, 0, 0, 0, 0, 0, 0]);
        (ends.ended, ends.ended_at) = (1, 250);
        assert_eq!(tell(&ends, 300), (50, 0, false, false));
        let mut gone = slot(ThreadState::Cpu, 257, [157, 0, 0, 0, 0, 0, 0, 0]);
        (gone.ended, gone.ended_at, gone.not_its_own) = (ENDED, 257, 9);
        assert_eq!(tell(&gone, 400), (7, 7, true, true));
        // Another has its slot.
        let other = ThreadSlot { thread: 8, ..lives };
        assert_eq!(tell(&other, 200).0, 100);
    }

    #[test]
    fn who_tells_its_end_and_is_never_gone_has_ended_after_a_second() {
        let mut ends = slot(ThreadState::Cpu, 250, [150, 0, 0, 0, 0, 0, 0, 0]);
        (ends.ended, ends.ended_at) = (1, 250);
        assert!(!is_over(&ends, 1_000_000_250) && is_over(&ends, 1_000_000_251));
        ends.ended = ENDED;
        assert!(is_over(&ends, 250));
    }

    #[test]
    fn of_many_that_ended_while_nobody_read_the_sum_is_kept() {
        let ended = |nanoseconds: [u64; ThreadState::IN_KERNEL]| {
            let slot = slot(ThreadState::Cpu, 250, nanoseconds);
            difference(None, &slot, String::new(), 100, 250)
        };
        let mut sum = ended([100, 0, 20, 0, 0, 30, 0, 0]);
        sum.add(&ended([1, 0, 2, 0, 0, 3, 0, 147]));
        assert_eq!(sum.times.nanoseconds, [101, 0, 22, 0, 0, 33, 0, 147]);
        assert_eq!(sum.times.lifetime_ns, 300);
    }

    #[test]
    fn a_thread_that_ended_lived_until_then() {
        for (left_at, cpu) in [(250, 150), (240, 140)] {
            let mut now = slot(ThreadState::Cpu, left_at, [cpu, 0, 0, 0, 0, 0, 0, 0]);
            (now.ended, now.ended_at) = (1, 250);
            let times = between(None, &now, 50, 300);
            assert_eq!((times.lifetime_ns, times.nanoseconds[0], times.ended), (150, 150, true));
        }
    }
}
