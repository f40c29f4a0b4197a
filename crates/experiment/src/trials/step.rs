//! What an experiment does one after the other: watched runs, A/A pairs, rounds.

use super::design::Design;
use std::path::PathBuf;

/// One start of a server, or one watched run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A run in which the server's threads are watched: where its time goes. It stands apart, as watching costs a variant whose
    /// threads switch more often more, and comes first: a variant that cannot start is found out at once.
    Watched {
        /// The variant.
        variant: usize,
    },
    /// A start of an A/A pair.
    Sentinel {
        /// Whether it is at the end of the session.
        at_end: bool,
        /// The pair, from 0, and whether it is its second start.
        pair: (u32, bool),
        /// The variant.
        variant: usize,
    },
    /// A start of a round.
    Round {
        /// The round, from 0.
        round: u32,
        /// The variant.
        variant: usize,
    },
}

impl Step {
    /// The variant that is started.
    pub fn variant(&self) -> usize {
        match *self {
            Step::Watched { variant } | Step::Sentinel { variant, .. } | Step::Round { variant, .. } => variant,
        }
    }

    /// Where its bundle lies in the experiment's folder. The place of a step is the same whenever it is done.
    pub fn folder(&self) -> PathBuf {
        let number = self.variant() + 1;
        match *self {
            Step::Watched { .. } => PathBuf::from(format!("watched/variant-{number}")),
            Step::Sentinel {
                at_end,
                pair: (pair, second),
                ..
            } => {
                let end = if at_end { "last" } else { "first" };
                let half = if second { 2 } else { 1 };
                PathBuf::from(format!("starts/{end}-a-a-pair-{}-{half}-variant-{number}", pair + 1))
            }
            Step::Round { round, .. } => PathBuf::from(format!("starts/round-{:02}-variant-{number}", round + 1)),
        }
    }

    /// Steps at the same time, in words for whoever waits for them. `names` are those of their variants.
    pub fn words(steps: &[Step], names: &[&str], design: &Design) -> String {
        let all = names.join(", ");
        let name = names.first().copied().unwrap_or_default();
        match steps.first() {
            None => String::new(),
            Some(Step::Watched { .. }) => format!("watching {all}"),
            Some(Step::Sentinel { at_end, .. }) => {
                let end = if *at_end { "last" } else { "first" };
                format!("{end} pairs of {name} with itself")
            }
            Some(Step::Round { round, .. }) => format!("round {} of {}, {all}", round + 1, design.most_pairs),
        }
    }

    /// Seed of the order of the rungs: both starts of a pair climb in the same order, each pair in another.
    pub fn order_seed(&self, seed: u64) -> u64 {
        let serial = match *self {
            Step::Watched { .. } => 0,
            Step::Sentinel {
                at_end,
                pair: (pair, _),
                ..
            } => 1 + 2 * u64::from(pair) + u64::from(at_end),
            Step::Round { round, .. } => 1000 + u64::from(round),
        };
        // Neighbouring seeds are told apart by their bits (golden ratio).
        seed ^ serial.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_step_has_a_place_of_its_own_and_pairs_share_their_order() {
        let mut steps = Vec::new();
        for variant in 0..3 {
            steps.push(Step::Watched { variant });
            for at_end in [false, true] {
                for pair in [(0, false), (0, true), (1, false), (1, true)] {
                    steps.push(Step::Sentinel { at_end, pair, variant });
                }
            }
            steps.extend((0..12).map(|round| Step::Round { round, variant }));
        }
        let places: BTreeSet<PathBuf> = steps.iter().map(Step::folder).collect();
        assert_eq!(places.len(), steps.len());
        let seed = |round, variant| Step::Round { round, variant }.order_seed(1);
        assert_eq!(seed(3, 0), seed(3, 1));
        assert_ne!(seed(3, 0), seed(4, 0));
    }
}
