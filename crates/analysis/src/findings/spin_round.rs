//! What the server's settings for spinning mean on this CPU: PAUSE takes 5 ns on some and 50 ns on others.

use super::Context;
use super::finding::Draft;
use super::knowledge::SpinRound;
use crate::numbers::grouped;

impl Context<'_> {
    /// One round of a spinning latch in time; none where the finding is about no such latch, or where a part of it is not known.
    pub(super) fn spin_round(&self, draft: &Draft) -> Option<String> {
        let manifest = self.surroundings.manifest;
        let pause = manifest.machine.pause_nanoseconds?;
        let round = self.knowledge.spin_round(&manifest.server.version)?;
        // Only of places that these settings are about.
        if !draft.knobs.contains(&round.delay) {
            return None;
        }
        let delay: f64 = self.setting(&round.delay)?.parse().ok()?;
        let rounds: f64 = self.setting(&round.rounds)?.parse().ok()?;
        let each = round.pauses_of_one(pause, |name| self.setting(name))?;
        let (least, most) = round.pauses_of_a_round(delay, each);
        let time = |pauses: f64| duration(pauses * pause);
        let (one, before_sleep) = match least == most {
            true => (
                format!("{most:.0} times PAUSE, {} on this CPU", time(most)),
                time(most * rounds),
            ),
            false => (
                format!("{least:.0} to {most:.0} times PAUSE, up to {} on this CPU", time(most)),
                format!("{} on average", time((least + most) / 2.0 * rounds)),
            ),
        };
        Some(format!(
            "a spin round takes {one} (PAUSE {pause:.0} ns, {} = {delay:.0}); a thread sleeps after {rounds:.0} rounds ({}), \
             {before_sleep} ({})",
            round.delay, round.rounds, round.source
        ))
    }
}

impl SpinRound {
    /// PAUSEs for each unit of the delay.
    fn pauses_of_one<'a>(&self, pause_ns: f64, setting: impl Fn(&str) -> Option<&'a str>) -> Option<f64> {
        if let Some(name) = &self.pauses_setting {
            return setting(name)?.parse().ok();
        }
        let Some(slow) = self.pauses_if_slow else {
            return self.pauses;
        };
        match (self.fast_below_ns, self.slow_from_ns) {
            (Some(fast), _) if pause_ns < fast => self.pauses,
            (_, Some(from)) if pause_ns >= from => Some(slow),
            _ => None,
        }
    }

    /// The least and the most PAUSEs of one round.
    fn pauses_of_a_round(&self, delay: f64, each: f64) -> (f64, f64) {
        match self.random {
            true => (0.0, (delay - 1.0).max(0.0) * each),
            false => (delay * each, delay * each),
        }
    }
}

/// Nanoseconds in the unit that suits them.
fn duration(nanoseconds: f64) -> String {
    match nanoseconds {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} \u{b5}s", grouped(ns / 1e3)),
        ns => format!("{} ms", grouped(ns / 1e6)),
    }
}
