//! When the programs that see fights for the kernel's locks are there.
//!
//! `contention_begin` and `contention_end` stand at some thirty places of the kernel. To attach a program, the kernel rewrites each of
//! them and tells every CPU three times, which on a virtual machine of two CPUs takes 4 to 10 ms for both, where the programs at
//! switches and wake-ups take 0.8 ms. And on one machine a server whose connections talk over sockets had its CPUs fight 15 000 times a second
//! there: to see all of these took 0.5 % of two CPUs, where switches and wake-ups took 0.8 %. So:
//!
//! - where fights are few, the programs stay, and nothing is missed;
//! - where they are many and threads only spin in them, the programs come by for a stint of watching every few seconds. Samples that
//!   are taken in between get their lock by the same calls (`kernel_locks.rs`), and no account of time depends on it;
//! - where threads go to sleep for the kernel's locks, the account does: what they wait for is told by it. There they
//!   are seen in every stint, and stay in rests where that costs less than to come back.

use std::time::Duration;

/// What a fight costs of which both ends are seen, at the price of a hit as in `pace.rs`.
const NANOSECONDS_A_FIGHT: f64 = 700.0;
/// Fights in which a thread of the server goes to sleep, a second: with fewer, what they wait for changes no account.
const FEW_SLEEPS: f64 = 5.0;
/// Of that rate so much is believed of the next stint, whatever was seen in it: a stint is short, and one without any proves little.
const BELIEVED: f64 = 0.8;
/// What interrupts take of each other CPU while programs are attached, as a part of what it takes of our thread: 1.8 of 3.2 ms where it
/// was measured, with two CPUs (docs/adr/0022-attach-or-flag.md). With very many the budget would have them away for longer than
/// [`LONGEST_AWAY`], and is exceeded.
const OF_EACH_OTHER_CPU: f64 = 0.56;
/// They come back after so long at the latest: a rung holds some stints with them.
const LONGEST_AWAY: Duration = Duration::from_secs(5);

/// How many fights there have been.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fought {
    /// All, by whomever.
    pub(crate) all: u64,
    /// Those of the watched threads that sleep meanwhile.
    pub(crate) asleep: u64,
}

/// What is known of the price, and what it led to. Times are nanoseconds of CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fights {
    /// What seeing them may cost, in seconds of CPU time a second.
    budget: f64,
    /// The machine's CPUs besides the one that attaches.
    other_cpus: f64,
    /// What attaching the programs took last time of our thread's time on CPU; detaching them takes as much.
    attaching: Duration,
    /// When fights were last counted, and how many there had been.
    counted_at: u64,
    counted: Fought,
    /// Fights in which threads go to sleep, a second.
    asleep: f64,
    /// When the programs come back, once they are away.
    due: u64,
}

impl Fights {
    /// `budget`: what seeing them may cost, in seconds of CPU time a second. `cpus`: those of the machine, each of which is interrupted.
    pub(crate) fn new(budget: f64, cpus: usize) -> Self {
        Self {
            budget: budget.max(1e-9),
            other_cpus: cpus.saturating_sub(1) as f64,
            attaching: Duration::ZERO,
            counted_at: 0,
            counted: Fought::default(),
            asleep: 0.0,
            due: 0,
        }
    }

    /// The programs were attached, when so many fights had been counted.
    pub(crate) fn attached(&mut self, took: Duration, counted: Fought, now: u64) {
        self.attaching = took;
        self.counted = counted;
        self.counted_at = now;
    }

    /// Whether the programs had better stay for a rest of this length (none where everything goes on), by the fights since they were
    /// attached or since this was last asked. If not, it is settled when they come back.
    pub(crate) fn stay(&mut self, counted: Fought, now: u64, rest: Duration) -> bool {
        let before = std::mem::replace(&mut self.counted, counted);
        let seconds = now.saturating_sub(std::mem::replace(&mut self.counted_at, now)) as f64 / 1e9;
        if seconds <= 0.0 {
            self.due = now;
            return false;
        }
        let a_second = |count: u64, before: u64| count.saturating_sub(before) as f64 / seconds;
        let cost = a_second(counted.all, before.all) * NANOSECONDS_A_FIGHT / 1e9;
        let coming_back = self.coming_back();
        self.asleep = a_second(counted.asleep, before.asleep).max(BELIEVED * self.asleep);
        if self.asleep > FEW_SLEEPS {
            self.due = now;
            return cost * rest.as_secs_f64() < coming_back;
        }
        if cost <= self.budget {
            return true;
        }
        // To come back once, and to see a stint as long as the one that is over.
        let measurement = coming_back + cost * seconds.min(LONGEST_AWAY.as_secs_f64());
        let away = Duration::from_secs_f64((measurement / self.budget).min(LONGEST_AWAY.as_secs_f64()));
        self.due = now + away.as_nanos() as u64;
        false
    }

    /// Seconds of CPU time, of all CPUs, that it takes to attach the programs and to detach them.
    fn coming_back(&self) -> f64 {
        2.0 * self.attaching.as_secs_f64() * (1.0 + OF_EACH_OTHER_CPU * self.other_cpus)
    }

    /// Whether the programs, which are away, are to come back for the stint that begins.
    pub(crate) fn are_due(&self, now: u64) -> bool {
        now >= self.due
    }

    /// Nobody watched for so long: what was due is due so much later.
    pub(crate) fn put_off(&mut self, paused: u64) {
        self.due = self.due.saturating_add(paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const REST: Duration = Duration::from_millis(500);
    /// 0.1 % of two CPUs.
    const BUDGET: f64 = 0.002;

    /// One that has seen so many fights in a second.
    fn after_a_second(all: u64, asleep: u64) -> (Fights, bool) {
        let mut fights = Fights::new(BUDGET, 1);
        fights.attached(Duration::from_millis(3), Fought { all: 1000, asleep: 7 }, SECOND);
        let counted = Fought {
            all: 1000 + all,
            asleep: 7 + asleep,
        };
        let stays = fights.stay(counted, 2 * SECOND, REST);
        (fights, stays)
    }

    #[test]
    fn few_fights_are_all_seen() {
        // 1.75 ms of a second.
        assert!(after_a_second(2500, 0).1);
        assert!(after_a_second(2500, 2000).1);
    }

    #[test]
    fn where_many_only_spin_the_programs_come_by_as_the_budget_allows() {
        // 2.1 ms of a second, and 6 ms to come back: 4.05 s.
        let (fights, stays) = after_a_second(3000, 3);
        assert!(!stays);
        assert!(!fights.are_due(2 * SECOND + 4 * SECOND));
        assert!(fights.are_due(2 * SECOND + 4 * SECOND + SECOND / 10));
        // However many there are, some are seen.
        let (fights, stays) = after_a_second(1_000_000, 0);
        assert!(!stays);
        assert!(fights.are_due(2 * SECOND + 5 * SECOND));
    }

    #[test]
    fn where_threads_sleep_for_them_no_stint_is_without() {
        // 5.25 ms of half a second, and 6 ms to come back.
        let (fights, stays) = after_a_second(15_000, 2000);
        assert!(stays && fights.are_due(2 * SECOND));
        // 14 ms.
        let (mut fights, stays) = after_a_second(40_000, 2000);
        assert!(!stays && fights.are_due(2 * SECOND));
        // What was before is forgotten.
        let few = Fought {
            all: 41_000 + 10,
            asleep: 2007,
        };
        assert!(fights.stay(few, 3 * SECOND, REST));
        let many = Fought { all: 1_000_000, ..few };
        assert!(!fights.stay(many, 3 * SECOND, REST), "no time has passed to count in");
    }

    #[test]
    fn a_stint_without_sleepers_does_not_prove_that_there_are_none() {
        let (mut fights, _) = after_a_second(40_000, 8);
        let (mut now, mut all) = (2 * SECOND, 41_000);
        let mut stints = 0;
        while fights.are_due(now) {
            (now, all, stints) = (now + SECOND, all + 40_000, stints + 1);
            let counted = Fought { all, asleep: 15 };
            assert!(!fights.stay(counted, now, REST));
        }
        // 6.4 and 5.1 a second are believed yet, 4.1 are few.
        assert_eq!(stints, 3);
        // Where nobody rests, they stay for those.
        let (mut fights, _) = after_a_second(40_000, 8);
        let counted = Fought {
            all: 81_000,
            asleep: 15,
        };
        assert!(fights.stay(counted, 3 * SECOND, Duration::ZERO));
    }

    #[test]
    fn the_more_cpus_are_interrupted_the_longer_the_programs_stay_away() {
        let away = |cpus: usize| {
            let mut fights = Fights::new(BUDGET, cpus);
            fights.attached(Duration::from_millis(1), Fought::default(), SECOND);
            let many = Fought { all: 3000, asleep: 0 };
            assert!(!fights.stay(many, 2 * SECOND, REST));
            (fights.due - 2 * SECOND) as f64 / 1e9
        };
        // 2.1 ms of a second, and to come back 2 ms, 3.12 ms and 6.48 ms.
        assert!((away(1) - 2.05).abs() < 0.01, "{}", away(1));
        assert!((away(2) - 2.61).abs() < 0.01, "{}", away(2));
        assert!((away(5) - 4.29).abs() < 0.01, "{}", away(5));
        // Where threads sleep for them, they stay rather than come back.
        let stays = |cpus: usize| {
            let mut fights = Fights::new(BUDGET, cpus);
            fights.attached(Duration::from_millis(3), Fought::default(), SECOND);
            let many = Fought {
                all: 40_000,
                asleep: 2000,
            };
            fights.stay(many, 2 * SECOND, REST)
        };
        // 14 ms in the rest; to come back 9.4 and 16.1 ms.
        assert!(!stays(2) && stays(4));
    }

    #[test]
    fn a_pause_is_no_time_away() {
        let (mut fights, _) = after_a_second(3000, 0);
        fights.put_off(10 * SECOND);
        assert!(!fights.are_due(2 * SECOND + 10 * SECOND));
        assert!(fights.are_due(2 * SECOND + 15 * SECOND));
    }
}
