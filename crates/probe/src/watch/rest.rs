//! What threads did while the programs rested.
//!
//! Where switches come too often to see each of them at a low price, the BPF programs rest in between (see `pace.rs`). What is
//! exact stays exact: the scheduler's own sums say how long each thread ran and queued in a rest. All else of it the thread was
//! blocked, and nobody saw by what. That part is shared out as the blocked time of the same thread that was seen before the next
//! reading. Rests come at times that have nothing to do with what threads wait for, so these shares are unbiased as far as a
//! thread's mix of waits does not change faster than the rests come, some times a second. A wait that goes on through a whole
//! rest gets no better treatment than others: knowing the long ones only would make them look more frequent than they are.

use super::layout::{Control, ThreadSlot};
use super::threads::ThreadTimes;
use scaleprof_vocabulary::ThreadState;

/// What the slots' readers must know of rests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    /// When the one under way began, or else the last one.
    since: u64,
    epoch: u32,
    resting: bool,
}

impl Rest {
    pub(crate) fn of(control: &Control) -> Self {
        Self {
            since: control.rested_from,
            epoch: control.epoch,
            resting: control.resting != 0,
        }
    }

    /// Whether the thread may have switched without being seen.
    fn is_behind(&self, slot: &ThreadSlot) -> bool {
        slot.ended == 0 && (self.resting || slot.epoch != self.epoch)
    }

    /// Up to when a slot can be told: that of a thread that is behind only until the iterator looked at it.
    pub(crate) fn told_until(&self, slot: &ThreadSlot, now: u64) -> u64 {
        match self.is_behind(slot) && slot.looked_at > self.since.max(slot.left_at) {
            true => slot.looked_at,
            false => now,
        }
    }

    /// The slot with all that came after `left_at` up to `now` in its sums, as `catch_up` of `bpf/threads.h` does it for threads
    /// that can be brought up to date; nothing for one that is not behind.
    pub(crate) fn caught_up(&self, slot: &ThreadSlot, now: u64) -> Option<ThreadSlot> {
        if !self.is_behind(slot) {
            return None;
        }
        let mut slot = *slot;
        let all = now.saturating_sub(slot.left_at);
        let until = self.since.clamp(slot.left_at, now.max(slot.left_at));
        let looked = slot.looked_at > self.since.max(slot.left_at);
        let was_on_cpu = slot.state == ThreadState::Cpu as u8;
        // Nobody looked: it stands as it stood.
        let known_ran = match was_on_cpu {
            true => until.saturating_sub(slot.entered_at.max(slot.left_at)),
            false => 0,
        };
        let charged = match looked {
            true => slot.looked_ran.saturating_sub(slot.ran),
            false => known_ran,
        }
        .min(all);
        let queued = match looked {
            true => slot.looked_queued.saturating_sub(slot.queued),
            false => 0,
        }
        .min(all - charged);
        let rest = all - charged - queued;
        let known = if slot.left_as == ThreadState::RunQueue as u8 {
            0
        } else if was_on_cpu {
            slot.entered_at.saturating_sub(slot.left_at).saturating_sub(queued)
        } else {
            match slot.runnable_at {
                at if at > slot.left_at && at < until => at - slot.left_at,
                _ => until - slot.left_at,
            }
        }
        .min(rest);
        let left_as = usize::from(slot.left_as) % slot.nanoseconds.len();
        slot.nanoseconds[ThreadState::Cpu as usize] += charged;
        slot.nanoseconds[ThreadState::RunQueue as usize] += queued;
        slot.nanoseconds[left_as] += known;
        slot.unseen += rest - known;
        slot.unseen_ran += charged.saturating_sub(known_ran);
        if looked {
            slot.sleep = slot.sleep.max(slot.looked_switches);
            slot.preemptions = slot.preemptions.max(slot.looked_preemptions);
        }
        Some(slot)
    }
}

/// What a thread did since the reading before, as far as it was seen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SeenTimes {
    /// The states hold what was seen, and all the time on CPU and in run queues.
    pub(crate) times: ThreadTimes,
    /// Blocked by what nobody saw, nanoseconds.
    pub(crate) unseen: u64,
    /// Part of the time on CPU that fell into a rest.
    pub(crate) unseen_ran: u64,
    /// Of the switches, those that were seen.
    pub(crate) seen_switches: u64,
}

impl SeenTimes {
    /// Adds what another thread did.
    pub(crate) fn add(&mut self, other: &SeenTimes) {
        let times = &other.times;
        let sums = &mut self.times;
        for (sum, one) in sums.nanoseconds.iter_mut().zip(times.nanoseconds) {
            *sum += one;
        }
        sums.lifetime_ns += times.lifetime_ns;
        sums.switches += times.switches;
        sums.preemptions += times.preemptions;
        sums.migrations += times.migrations;
        sums.not_its_own_ns += times.not_its_own_ns;
        sums.net_waits += times.net_waits;
        sums.fault_waits += times.fault_waits;
        self.unseen += other.unseen;
        self.unseen_ran += other.unseen_ran;
        self.seen_switches += other.seen_switches;
    }
}

/// States of a thread that is blocked.
const BLOCKED: [ThreadState; 5] = [
    ThreadState::Lock,
    ThreadState::Io,
    ThreadState::Net,
    ThreadState::Sleep,
    ThreadState::Other,
];

/// Concludes from what was seen what was not. A thread of which nothing was seen is taken to be as the others together.
pub(crate) fn conclude(seen: Vec<SeenTimes>) -> Vec<ThreadTimes> {
    let mut of_all = [0u64; ThreadState::IN_KERNEL];
    for thread in &seen {
        for state in BLOCKED {
            of_all[state as usize] += thread.times.nanoseconds[state as usize];
        }
    }
    seen.into_iter().map(|thread| concluded(thread, &of_all)).collect()
}

fn concluded(seen: SeenTimes, of_all: &[u64; ThreadState::IN_KERNEL]) -> ThreadTimes {
    let SeenTimes {
        mut times,
        mut unseen,
        unseen_ran,
        seen_switches,
    } = seen;
    let all_switches = times.switches + times.preemptions;
    if seen_switches > 0 && all_switches > seen_switches && unseen + unseen_ran > 0 {
        let scale = all_switches as f64 / seen_switches as f64;
        for count in [&mut times.migrations, &mut times.net_waits, &mut times.fault_waits] {
            *count = (*count as f64 * scale).round() as u64;
        }
    }
    // Time that interrupts and the host took is no time on CPU to the scheduler, and looks like blocked time in a rest.
    let cpu = ThreadState::Cpu as usize;
    let watched_cpu = times.nanoseconds[cpu].saturating_sub(unseen_ran);
    if watched_cpu > 0 && times.not_its_own_ns > 0 {
        let taken = times.not_its_own_ns as f64 / watched_cpu as f64 * unseen_ran as f64;
        let taken = (taken as u64).min(unseen);
        times.nanoseconds[cpu] += taken;
        times.not_its_own_ns += taken;
        unseen -= taken;
    }
    let own: u64 = BLOCKED.iter().map(|state| times.nanoseconds[*state as usize]).sum();
    times.net_seen_ns = times.nanoseconds[ThreadState::Net as usize];
    let mix = match own {
        0 => *of_all,
        _ => times.nanoseconds,
    };
    let all: u64 = BLOCKED.iter().map(|state| mix[*state as usize]).sum();
    times.concluded_ns = unseen;
    let mut left = unseen;
    for state in BLOCKED {
        let share = match all {
            0 => 0,
            _ => (u128::from(unseen) * u128::from(mix[state as usize]) / u128::from(all)) as u64,
        };
        times.nanoseconds[state as usize] += share;
        left -= share;
    }
    // What rounding leaves goes to the largest; where nothing at all was seen, nobody knows.
    let largest = BLOCKED.iter().max_by_key(|state| mix[**state as usize]).copied();
    let place = largest.filter(|_| all > 0).unwrap_or(ThreadState::Other);
    times.nanoseconds[place as usize] += left;
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn times(nanoseconds: [u64; ThreadState::IN_KERNEL]) -> ThreadTimes {
        ThreadTimes {
            thread: 7,
            name: String::new(),
            lifetime_ns: 0,
            nanoseconds,
            switches: 0,
            preemptions: 0,
            migrations: 0,
            not_its_own_ns: 0,
            net_waits: 0,
            fault_waits: 0,
            concluded_ns: 0,
            net_seen_ns: 0,
            ended: false,
            after_end: false,
        }
    }

    fn seen(nanoseconds: [u64; ThreadState::IN_KERNEL], unseen: u64) -> SeenTimes {
        SeenTimes {
            times: times(nanoseconds),
            unseen,
            unseen_ran: 0,
            seen_switches: 0,
        }
    }

    #[test]
    fn what_was_not_seen_is_shared_out_as_what_was() {
        let told = conclude(vec![seen([50, 0, 5, 30, 0, 10, 0, 0], 80)]);
        assert_eq!(told[0].nanoseconds, [50, 0, 5, 90, 0, 30, 0, 0]);
        assert_eq!(told[0].concluded_ns, 80);
    }

    #[test]
    fn a_thread_of_which_nothing_was_seen_is_taken_to_be_as_the_others() {
        let told = conclude(vec![
            seen([0, 0, 0, 0, 0, 10, 0, 0], 0),
            seen([1, 0, 0, 0, 0, 0, 0, 0], 4),
        ]);
        assert_eq!(told[1].nanoseconds, [1, 0, 0, 0, 0, 4, 0, 0]);
        let nothing = conclude(vec![seen([1, 0, 0, 0, 0, 0, 0, 0], 4)]);
        assert_eq!(nothing[0].nanoseconds[ThreadState::Other as usize], 4);
    }

    #[test]
    fn time_that_the_host_took_in_a_rest_is_time_on_the_cpu() {
        let mut thread = seen([1000, 0, 0, 10, 0, 0, 0, 0], 50);
        thread.unseen_ran = 800;
        thread.times.not_its_own_ns = 10;
        let told = conclude(vec![thread]);
        assert_eq!(told[0].nanoseconds, [1040, 0, 0, 20, 0, 0, 0, 0]);
        assert_eq!(told[0].not_its_own_ns, 50);
    }

    #[test]
    fn what_was_known_when_the_rest_began_stays_known() {
        let rest = Rest {
            since: 150,
            epoch: 3,
            resting: true,
        };
        let asleep = ThreadSlot {
            thread: 7,
            state: ThreadState::Lock as u8,
            left_as: ThreadState::Lock as u8,
            left_at: 100,
            epoch: 3,
            looked_at: 300,
            looked_ran: 40,
            looked_queued: 10,
            ..ThreadSlot::default()
        };
        let told = rest.caught_up(&asleep, 300).expect("it is behind");
        assert_eq!(told.nanoseconds, [40, 0, 10, 50, 0, 0, 0, 0]);
        assert_eq!((told.unseen, told.unseen_ran), (100, 40));
    }

    proptest! {
        /// However the marks lie: no nanosecond is lost or told twice.
        #[test]
        fn all_of_the_time_is_told_once(
            state in 0u8..8, left_as in 2u8..8, left_at in 100u64..1000, entered in 0u64..1500, runnable in 0u64..1500,
            since in 0u64..1500, looked_at in 0u64..2000, looked_ran in 0u64..900, looked_queued in 0u64..900, now in 1000u64..2000,
        ) {
            let slot = ThreadSlot {
                thread: 7, state, left_as, left_at, entered_at: entered, runnable_at: runnable,
                looked_at, looked_ran, looked_queued, epoch: 1, ..ThreadSlot::default()
            };
            let rest = Rest { since, epoch: 2, resting: false };
            let until = rest.told_until(&slot, now).max(left_at);
            let told = rest.caught_up(&slot, until).expect("it is behind");
            prop_assert_eq!(told.nanoseconds.iter().sum::<u64>() + told.unseen, until - left_at);
        }

        #[test]
        fn concluding_loses_nothing(known in proptest::array::uniform8(0u64..1 << 40), unseen in 0u64..1 << 40, ran in 0u64..1 << 40,
                                    taken in 0u64..1 << 30) {
            let mut thread = seen(known, unseen);
            thread.unseen_ran = ran;
            thread.times.not_its_own_ns = taken;
            let before: u64 = known.iter().sum::<u64>() + unseen;
            let told = conclude(vec![thread]);
            prop_assert_eq!(told[0].nanoseconds.iter().sum::<u64>(), before);
        }
    }
}
