//! When samples are taken: in short bursts, one at a random time of every second.
//!
//! An event that follows threads makes each switch of threads dearer, because the kernel starts and stops its clock: on a
//! virtual machine a MariaDB at 50 000 statements a second took a fifth more CPU time for each of them (99 samples a
//! second, whatever the tool). So events are on for a fifth of the time only and sample five times as often in it: as many
//! samples for a fifth of the cost. Shorter bursts would be cheaper still, but a ring holds 15 samples.

use std::time::{Duration, Instant};

/// How long a burst is.
const BURST: Duration = Duration::from_millis(200);
/// There is one burst in every such stretch of time.
const STRETCH: Duration = Duration::from_secs(1);
/// A stretch over a burst.
pub(super) const TIMES: u32 = 5;

/// The bursts of a watch.
#[derive(Debug)]
pub(super) struct Bursts {
    stretch_ends: Instant,
    burst: Burst,
}

#[derive(Debug)]
enum Burst {
    Ahead(Instant),
    Since(Instant),
    Over,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Turn {
    /// Switch the events on.
    On,
    /// Switch them off. They were on so much longer than was meant: samples count that much less.
    Off { longer: f64 },
}

impl Bursts {
    /// The first burst is on already.
    pub(super) fn begin(now: Instant) -> Self {
        Self {
            stretch_ends: now + STRETCH,
            burst: Burst::Since(now),
        }
    }

    /// When to ask again.
    pub(super) fn next(&self) -> Instant {
        match self.burst {
            Burst::Ahead(at) => at,
            Burst::Since(begun) => begun + BURST,
            Burst::Over => self.stretch_ends,
        }
    }

    /// What is to be done at this time. `chance` is a number between 0 and 1.
    pub(super) fn turn(&mut self, now: Instant, chance: f64) -> Option<Turn> {
        if now < self.next() {
            return None;
        }
        match self.burst {
            Burst::Ahead(_) => {
                self.burst = Burst::Since(now);
                Some(Turn::On)
            }
            Burst::Since(begun) => {
                self.burst = Burst::Over;
                let longer = now.duration_since(begun).as_secs_f64() / BURST.as_secs_f64();
                Some(Turn::Off { longer })
            }
            Burst::Over => {
                self.burst = Burst::Ahead(now + (STRETCH - BURST).mul_f64(chance));
                self.stretch_ends = now + STRETCH;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stretch_holds_as_many_bursts_as_samples_count_for() {
        assert_eq!(STRETCH, BURST * TIMES);
    }

    proptest! {
        #[test]
        fn every_stretch_has_one_burst_of_its_length(chances in proptest::collection::vec(0.0f64..1.0, 1..20), late_us in 0u64..50_000) {
            let begin = Instant::now();
            let mut bursts = Bursts::begin(begin);
            let (mut now, mut on_since, mut on_for, mut weighted) = (begin, Some(begin), Duration::ZERO, 0.0);
            for chance in chances {
                for _ in 0..3 {
                    now = bursts.next().max(now) + Duration::from_micros(late_us);
                    match bursts.turn(now, chance) {
                        Some(Turn::On) => on_since = Some(now),
                        Some(Turn::Off { longer }) => {
                            let on = now - on_since.take().expect("it was on");
                            on_for += on;
                            weighted += on.as_secs_f64() / longer;
                        }
                        None => {}
                    }
                }
            }
            prop_assert!(on_for.as_secs_f64() < 0.5 * (now - begin).as_secs_f64() + 0.4);
            prop_assert!((weighted / BURST.as_secs_f64()).fract().abs() < 1e-6 || (weighted / BURST.as_secs_f64()).fract() > 0.999);
        }
    }
}
