//! Whether the programs that see fights for the kernel's locks stay when the others rest.
//!
//! `contention_begin` and `contention_end` stand at some thirty places of the kernel. To attach a program, the kernel rewrites each of
//! them and tells every CPU three times, which on a virtual machine of two CPUs takes 4 to 10 ms for both, where the programs at
//! switches and wake-ups take 0.8 ms. Where fights are few they cost less if they stay; and what stays misses nothing.

use std::time::Duration;

/// What a fight costs of which both ends are seen, at the price of a hit as in `pace.rs`.
const NANOSECONDS_A_FIGHT: f64 = 700.0;

/// What is known of the price.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Fights {
    /// What attaching the programs took last time of our thread's time on CPU; detaching them takes as much.
    attaching: Duration,
    /// When fights were last counted, nanoseconds, and how many there had been.
    counted_at: u64,
    count: u64,
}

impl Fights {
    /// The programs were attached, when so many fights had been counted.
    pub(crate) fn attached(&mut self, took: Duration, count: u64, now: u64) {
        self.attaching = took;
        self.count = count;
        self.counted_at = now;
    }

    /// Whether the programs had better stay for a rest of this length, by the fights since they were attached or since this was
    /// last asked. Times are nanoseconds of CLOCK_MONOTONIC.
    pub(crate) fn stay(&mut self, count: u64, now: u64, rest: Duration) -> bool {
        let fights = count.saturating_sub(std::mem::replace(&mut self.count, count)) as f64;
        let nanoseconds = now.saturating_sub(std::mem::replace(&mut self.counted_at, now)) as f64;
        if nanoseconds <= 0.0 {
            return false;
        }
        let staying = fights / nanoseconds * rest.as_nanos() as f64 * NANOSECONDS_A_FIGHT;
        staying < 2.0 * self.attaching.as_nanos() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const REST: Duration = Duration::from_millis(500);

    #[test]
    fn programs_leave_where_fights_cost_more_than_to_come_back() {
        let mut fights = Fights::default();
        fights.attached(Duration::from_millis(3), 1000, SECOND);
        // 15 000 a second: 5.25 ms of half a second.
        assert!(fights.stay(1000 + 15_000, 2 * SECOND, REST));
        // 40 000 a second: 14 ms.
        assert!(!fights.stay(1000 + 15_000 + 40_000, 3 * SECOND, REST));
        // What was before is forgotten.
        assert!(fights.stay(1000 + 15_000 + 40_000 + 10, 4 * SECOND, REST));
        assert!(
            !fights.stay(1_000_000, 4 * SECOND, REST),
            "no time has passed to count in"
        );
    }

    #[test]
    fn programs_that_cost_nothing_to_attach_stay_only_where_nobody_fights() {
        let mut fights = Fights::default();
        fights.attached(Duration::ZERO, 0, 0);
        assert!(!fights.stay(1, SECOND, REST));
    }
}
