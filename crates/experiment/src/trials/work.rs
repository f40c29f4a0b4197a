//! How much an experiment has to do, and how long that takes.

use super::design::Design;

/// A server on a copy of the data starts, warms up and ends in about so many seconds; what it really takes is measured as it goes.
const START_SECONDS: f64 = 6.0;
/// Opening and closing connections, at each rung.
const RUNG_SECONDS: f64 = 0.5;
/// Measurements of each rung of a watched run: two are the fewest that tell a change from chance.
pub(crate) const WATCHED_REPEATS: u32 = 2;
/// Keeping the machine code of hot functions.
const WATCHED_SECONDS: f64 = 4.0;

/// Steps of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Work {
    /// Watched runs.
    pub watched: u32,
    /// Server starts in pairs.
    pub starts: u32,
}

impl Work {
    /// All that an experiment of so many variants has to do at most.
    pub fn of(design: &Design, variants: usize) -> Work {
        let variants = u32::try_from(variants).unwrap_or(u32::MAX);
        Work {
            watched: if design.watch { variants } else { 0 },
            // Two starts a pair, at both ends.
            starts: design.sentinels * 4 + design.most_pairs * variants,
        }
    }

    /// How long it takes, seconds, at this pace.
    pub fn seconds(&self, pace: &Pace) -> f64 {
        f64::from(self.watched) * pace.watched + f64::from(self.starts) * pace.start
    }
}

/// Seconds that a step takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// A watched run.
    pub watched: f64,
    /// A start.
    pub start: f64,
}

impl Pace {
    /// As far as it is known before the first one.
    pub fn expected(design: &Design) -> Pace {
        let ladder = design.connections.len() as f64 * (f64::from(design.seconds) + RUNG_SECONDS);
        Pace {
            watched: START_SECONDS + WATCHED_SECONDS + ladder * f64::from(WATCHED_REPEATS),
            start: START_SECONDS + ladder,
        }
    }

    /// With what the last step took: the newest counts for a third, so that a slow first one is soon forgotten.
    pub(crate) fn learn(&mut self, watched: bool, seconds: f64) {
        let known = if watched { &mut self.watched } else { &mut self.start };
        *known += (seconds - *known) / 3.0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::design::design;
    use super::*;

    #[test]
    fn an_experiment_takes_its_starts_times_its_rungs() {
        let design = design(&Default::default(), &Default::default(), 1).expect("the defaults");
        let work = Work::of(&design, 3);
        assert_eq!(work, Work { watched: 3, starts: 32 });
        let mut pace = Pace::expected(&design);
        // Four rungs of 10 s.
        assert!((45.0..60.0).contains(&pace.start), "{pace:?}");
        assert!(work.seconds(&pace) > 32.0 * 40.0);
        for _ in 0..20 {
            pace.learn(false, 100.0);
        }
        assert!((pace.start - 100.0).abs() < 0.1);
    }
}
