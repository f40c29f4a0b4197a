//! How much of the time the programs watch switches, so that the server hardly feels it.
//!
//! A program at a switch costs what it costs. At 80 000 switches a second it takes 5 % of two CPUs of a virtual machine, most
//! of it for merely getting there (docs/benchmarks.md). So where the share of the server's CPUs would exceed the budget, the programs
//! watch for a moment and rest for a moment, by turns. What they cost at most is known: the number of switches times a price
//! that was measured where they were dear.

use std::time::Duration;

/// What a switch of the watched process costs, its wake-up included: 1.2 us where it was measured, on a virtual machine with
/// retpolines; less on most others.
const NANOSECONDS_A_SWITCH: f64 = 1200.0;
/// How long the programs watch before they may rest, and at least between two rests.
pub(crate) const STINT: Duration = Duration::from_millis(80);
/// A stint and the rest after it, where neither is at its limit: so that every second holds some of both, whatever the dice. It is no
/// shorter than it need be: the kernel rewrites its code at each turn, and must tell every CPU.
const ROUND: Duration = Duration::from_millis(870);
const LONGEST_REST: Duration = Duration::from_millis(790);
/// Not worth the trouble.
const SHORTEST_REST: Duration = Duration::from_millis(20);

/// Decides when to rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pace {
    /// The share of the CPUs' time that switches may cost.
    most_cost: f64,
    /// CPUs that the watched process may use.
    cpus: f64,
    /// For the lengths, which must not keep time with anything that the server does.
    dice: u64,
    /// How long to watch before the next rest.
    stint: Duration,
}

impl Pace {
    pub(crate) fn new(most_cost: f64, cpus: f64) -> Self {
        Self {
            most_cost,
            cpus,
            dice: 1,
            stint: STINT,
        }
    }

    /// How long to watch before the next rest.
    pub(crate) fn stint(&self) -> Duration {
        self.stint
    }

    /// Whether it never rests.
    pub(crate) fn is_restless(&self) -> bool {
        self.most_cost >= 1.0
    }

    /// How long to rest after so many switches in some time; nothing where the budget allows to go on.
    pub(crate) fn rest_after(&mut self, switches: u64, watched: Duration) -> Option<Duration> {
        let seconds = watched.as_secs_f64();
        if self.is_restless() || seconds <= 0.0 {
            return None;
        }
        let cost = switches as f64 / seconds * NANOSECONDS_A_SWITCH / 1e9 / self.cpus;
        if cost <= self.most_cost {
            self.stint = STINT;
            return None;
        }
        // The budget may be 0: then it rests as much as it may.
        let rest = seconds * (cost / self.most_cost.max(1e-9) - 1.0);
        let rest = Duration::from_secs_f64(rest.min(LONGEST_REST.as_secs_f64()));
        self.stint = ROUND.mul_f64(self.most_cost / cost).max(STINT);
        (rest >= SHORTEST_REST).then(|| rest.mul_f64(self.jitter()))
    }

    /// 0.75 to 1.25 (splitmix64, Steele et al. 2014).
    fn jitter(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.dice;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        0.75 + 0.5 * ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quiet_server_is_watched_all_the_time() {
        let mut pace = Pace::new(0.01, 2.0);
        assert_eq!(pace.rest_after(1000, STINT), None);
        assert_eq!(Pace::new(1.0, 2.0).rest_after(u64::MAX, STINT), None);
    }

    proptest! {
        /// Over many turns the cost is the budget, unless the longest rest forbids it.
        #[test]
        fn rests_keep_to_the_budget(rate in 30_000u64..70_000, budget in 0.005f64..0.008) {
            let mut pace = Pace::new(budget, 2.0);
            let (mut watched, mut all) = (0.0, 0.0);
            for _ in 0..2000 {
                let stint = pace.stint().as_secs_f64();
                let rest = pace.rest_after((rate as f64 * stint) as u64, pace.stint()).map_or(0.0, |rest| rest.as_secs_f64());
                watched += stint;
                all += stint + rest;
                prop_assert!(stint < 1.0 && rest < 1.0, "any second holds some of both: {stint}, {rest}");
            }
            let cost = rate as f64 * NANOSECONDS_A_SWITCH / 1e9 / 2.0 * watched / all;
            prop_assert!((cost / budget - 1.0).abs() < 0.05, "{cost} of {budget}");
        }
    }
}
