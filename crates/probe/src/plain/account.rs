//! The time of one thread: every nanosecond of its life is in one state, whatever was seen.
//!
//! Time on a CPU and time in the run queue come from the scheduler and are exact; the rest of the thread's life it was
//! blocked, so the *sum* over the blocked states is exact too. How that sum divides among the states is estimated from
//! looks at the thread at regular times: a state that holds a third of the looks holds about a third of the time.

use scaleprof_vocabulary::ThreadState;

/// Of the scheduler, at 100 Hz.
const LONGEST_TICK_NS: u64 = 10_000_000;

/// Looks at a thread that found it blocked, by state.
pub(super) type Looks = [u32; ThreadState::IN_KERNEL];

/// What the scheduler says of a thread's whole life (`schedstat`, Documentation/scheduler/sched-stats.rst).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// Nanoseconds on a CPU.
    pub(super) cpu_ns: u64,
    /// Nanoseconds in the run queue.
    pub(super) run_queue_ns: u64,
}

/// Reads the text of `/proc/PID/task/TID/schedstat`.
pub(super) fn parse_schedstat(text: &str) -> Option<Scheduled> {
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some(Scheduled {
        cpu_ns: fields.next()?.ok()?,
        run_queue_ns: fields.next()?.ok()?,
    })
}

/// One thread since the last read-out.
#[derive(Debug, Clone, Default)]
pub(super) struct Account {
    /// Since when.
    since_ns: u64,
    /// Up to when its time is accounted for; CLOCK_MONOTONIC.
    until_ns: u64,
    /// What of the scheduler's time is accounted for.
    counted: Scheduled,
    /// Its time on a CPU when the account began.
    first_cpu_ns: u64,
    /// Not yet read out.
    cpu_ns: u64,
    run_queue_ns: u64,
    blocked_ns: u64,
    /// Looks since the last read-out, and before it.
    looks: Looks,
    earlier: Looks,
}

/// Nanoseconds of a thread by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Divided {
    pub(super) lifetime_ns: u64,
    pub(super) nanoseconds: [u64; ThreadState::IN_KERNEL],
    pub(super) estimated: bool,
}

impl Account {
    /// Begins with a thread that had used this much by then. For a thread that began while it was watched that is
    /// nothing, and the time is that of its beginning.
    pub(super) fn new(time_ns: u64, counted: Scheduled) -> Self {
        Self {
            since_ns: time_ns,
            until_ns: time_ns,
            first_cpu_ns: counted.cpu_ns,
            counted,
            ..Self::default()
        }
    }

    /// The thread began at this time, as is known only now.
    pub(super) fn began(&mut self, time_ns: u64) {
        self.blocked_ns = (self.blocked_ns + self.since_ns).saturating_sub(time_ns);
        self.since_ns = time_ns;
        self.until_ns = self.until_ns.max(time_ns);
    }

    /// What the scheduler says at a later time.
    pub(super) fn advance(&mut self, time_ns: u64, now: Scheduled) {
        let lived = time_ns.saturating_sub(self.until_ns);
        // The scheduler brings a running thread up to date at its tick, so it may be late by one tick, never by more,
        // and a round later make up for it: what does not fit into the time that passed waits for the next round.
        let cpu = now.cpu_ns.saturating_sub(self.counted.cpu_ns).min(lived);
        let run_queue = now
            .run_queue_ns
            .saturating_sub(self.counted.run_queue_ns)
            .min(lived - cpu);
        self.counted.cpu_ns += cpu;
        self.counted.run_queue_ns += run_queue;
        self.cpu_ns += cpu;
        self.run_queue_ns += run_queue;
        self.blocked_ns += lived - cpu - run_queue;
        self.until_ns += lived;
    }

    /// The thread ended: on a CPU for so long since the last round, and for so long since the account began, as its switches tell.
    ///
    /// A thread that ran in the last round was late by up to a tick there, and there is no next one to make up for it: it looked
    /// blocked for what its switches tell now.
    pub(super) fn end(&mut self, time_ns: u64, since_round_ns: u64, since_begin_ns: u64) {
        let cpu_ns = (self.counted.cpu_ns + since_round_ns).max(self.first_cpu_ns + since_begin_ns);
        let due = cpu_ns.saturating_sub(self.counted.cpu_ns);
        let late = due
            .saturating_sub(time_ns.saturating_sub(self.until_ns))
            .min(self.blocked_ns)
            .min(LONGEST_TICK_NS);
        self.blocked_ns -= late;
        self.cpu_ns += late;
        self.counted.cpu_ns += late;
        let now = Scheduled { cpu_ns, ..self.counted };
        self.advance(time_ns, now);
    }

    /// Since when it lives, as far as that is known.
    pub(super) fn since_ns(&self) -> u64 {
        self.since_ns
    }

    /// The thread was found blocked.
    pub(super) fn look(&mut self, state: ThreadState) {
        self.looks[state as usize] += 1;
    }

    /// All looks at it.
    pub(super) fn all_looks(&self) -> Looks {
        std::array::from_fn(|state| self.looks[state].saturating_add(self.earlier[state]))
    }

    /// Up to when its time is accounted for.
    pub(super) fn until_ns(&self) -> u64 {
        self.until_ns
    }

    /// Takes out what has come together since the last time. `others` are looks at threads of its kind, for one that was
    /// never found blocked although it was.
    pub(super) fn read_out(&mut self, others: &Looks) -> Divided {
        let all = self.all_looks();
        let looks = [&self.looks, &all, others]
            .into_iter()
            .find(|looks| looks.iter().any(|look| *look > 0));
        let mut nanoseconds = divide(self.blocked_ns, looks.unwrap_or(&[0; ThreadState::IN_KERNEL]));
        nanoseconds[ThreadState::Cpu as usize] += self.cpu_ns;
        nanoseconds[ThreadState::RunQueue as usize] += self.run_queue_ns;
        let divided = Divided {
            lifetime_ns: self.cpu_ns + self.run_queue_ns + self.blocked_ns,
            nanoseconds,
            estimated: self.blocked_ns > 0,
        };
        (self.cpu_ns, self.run_queue_ns, self.blocked_ns) = (0, 0, 0);
        (self.earlier, self.looks) = (all, [0; ThreadState::IN_KERNEL]);
        divided
    }
}

/// Divides a time by looks, to the last nanosecond; all of it is "other" if there were none.
fn divide(time_ns: u64, looks: &Looks) -> [u64; ThreadState::IN_KERNEL] {
    let all: u64 = looks.iter().map(|look| u64::from(*look)).sum();
    let mut nanoseconds = looks.map(|look| {
        let share = u128::from(time_ns) * u128::from(look) / u128::from(all.max(1));
        share as u64
    });
    let rest = time_ns - nanoseconds.iter().sum::<u64>();
    let most = looks
        .iter()
        .enumerate()
        .max_by_key(|(_, look)| **look)
        .filter(|(_, look)| **look > 0);
    nanoseconds[most.map_or(ThreadState::Other as usize, |(state, _)| state)] += rest;
    nanoseconds
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOTHING: Scheduled = Scheduled {
        cpu_ns: 0,
        run_queue_ns: 0,
    };

    #[test]
    fn what_is_neither_run_nor_queued_is_blocked_and_divided_by_looks() {
        let mut account = Account::new(1000, NOTHING);
        (0..3).for_each(|_| account.look(ThreadState::Net));
        account.look(ThreadState::Lock);
        let now = Scheduled {
            cpu_ns: 100,
            run_queue_ns: 50,
        };
        account.advance(1550, now);
        let divided = account.read_out(&[0; ThreadState::IN_KERNEL]);
        assert_eq!(divided.nanoseconds, [100, 0, 50, 100, 0, 300, 0, 0]);
        assert_eq!((divided.lifetime_ns, divided.estimated), (550, true));
    }

    #[test]
    fn a_scheduler_that_is_late_is_made_up_for_in_the_next_round() {
        let mut account = Account::new(0, NOTHING);
        let late = Scheduled {
            cpu_ns: 0,
            run_queue_ns: 0,
        };
        account.advance(10, late);
        let all = Scheduled {
            cpu_ns: 25,
            run_queue_ns: 0,
        };
        account.advance(20, all);
        account.advance(30, all);
        let divided = account.read_out(&[0; ThreadState::IN_KERNEL]);
        assert_eq!((divided.nanoseconds[0], divided.lifetime_ns), (20, 30));
    }

    #[test]
    fn a_thread_that_was_never_found_blocked_waits_as_its_kind_does() {
        let mut account = Account::new(0, NOTHING);
        account.advance(10, NOTHING);
        let others = [0, 0, 0, 0, 9, 0, 0, 0];
        assert_eq!(account.read_out(&others).nanoseconds[ThreadState::Io as usize], 10);
        account.advance(20, NOTHING);
        assert_eq!(
            account.read_out(&[0; ThreadState::IN_KERNEL]).nanoseconds[ThreadState::Other as usize],
            10
        );
    }

    #[test]
    fn earlier_looks_serve_a_window_without_any() {
        let mut account = Account::new(0, NOTHING);
        account.look(ThreadState::Sleep);
        account.advance(10, NOTHING);
        account.read_out(&[0; ThreadState::IN_KERNEL]);
        account.advance(30, NOTHING);
        assert_eq!(
            account.read_out(&[0; ThreadState::IN_KERNEL]).nanoseconds[ThreadState::Sleep as usize],
            20
        );
    }

    #[test]
    fn an_end_is_accounted_for_by_the_switches() {
        let mut account = Account::new(0, NOTHING);
        account.end(100, 30, 0);
        let divided = account.read_out(&[0; ThreadState::IN_KERNEL]);
        assert_eq!((divided.nanoseconds[0], divided.lifetime_ns), (30, 100));
    }

    #[test]
    fn what_the_last_round_did_not_know_yet_is_made_up_for_at_the_end() {
        // It ran from 0 to 40; at 30, in the middle of a tick, the scheduler still said 0.
        let mut account = Account::new(0, NOTHING);
        account.advance(30, NOTHING);
        account.end(45, 10, 40);
        let divided = account.read_out(&[0; ThreadState::IN_KERNEL]);
        assert_eq!((divided.nanoseconds[0], divided.lifetime_ns), (40, 45));
        // Never more than it lived, whatever the switches tell.
        let mut account = Account::new(0, NOTHING);
        account.advance(30, NOTHING);
        account.end(45, 10, 400);
        assert_eq!(account.read_out(&[0; ThreadState::IN_KERNEL]).nanoseconds[0], 45);
    }

    #[test]
    fn both_times_are_read() {
        let text = "123 45 6\n";
        let both = Scheduled {
            cpu_ns: 123,
            run_queue_ns: 45,
        };
        assert_eq!(parse_schedstat(text), Some(both));
        assert_eq!(parse_schedstat("123"), None);
    }

    #[test]
    fn a_beginning_that_is_told_late_adds_or_takes_time() {
        for (began, lifetime) in [(60, 140), (120, 80)] {
            let mut account = Account::new(100, NOTHING);
            account.advance(200, NOTHING);
            account.began(began);
            assert_eq!(account.read_out(&[0; ThreadState::IN_KERNEL]).lifetime_ns, lifetime);
        }
    }

    proptest! {
        #[test]
        fn the_states_always_add_up_to_the_life(
            rounds in proptest::collection::vec((0u64..1 << 40, any::<u64>(), any::<u64>(), 0usize..8), 0..20),
            others: [u16; ThreadState::IN_KERNEL],
        ) {
            let mut account = Account::new(0, NOTHING);
            let mut lived = 0;
            for (step, cpu_ns, run_queue_ns, state) in rounds {
                account.look(ThreadState::ALL[state]);
                account.advance(account.until_ns() + step, Scheduled { cpu_ns, run_queue_ns });
                lived += step;
            }
            let divided = account.read_out(&others.map(u32::from));
            prop_assert_eq!(divided.lifetime_ns, lived);
            prop_assert_eq!(divided.nanoseconds.iter().sum::<u64>(), lived);
        }

        #[test]
        fn any_text_is_read_without_panic(text in ".{0,60}") {
            let _ = parse_schedstat(&text);
        }
    }
}
