//! Which rows the load touches: sysbench's distributions, and a zipfian whose hot rows are not neighbours.

use crate::random::ConnectionRng;
use rand_distr::{Distribution as _, Zipf};
use std::fmt;
use std::str::FromStr;

/// How ids are drawn from a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Every id alike.
    #[default]
    Uniform,
    /// sysbench 1.0's default: 75 % of the draws go to 0.75 % of the ids around the middle, the rest is a bell.
    Special,
    /// sysbench's power law with h = 0.2: 80 % of the draws go to the lowest 20 % of the ids.
    Pareto,
    /// Zipf's law with exponent 0.8, as in sysbench 1.1: id 1 is the hottest, its neighbours come next.
    Zipfian,
    /// The mean of 12 uniform draws.
    Gaussian,
    /// Zipf's law with exponent 0.8 and the ranks scattered over the ids, as in YCSB: hot rows, no hot pages.
    ZipfianScrambled,
}

/// sysbench's `--rand-spec-iter`.
const BELL_DRAWS: u32 = 12;
/// sysbench's `--rand-spec-res`, as the share that does not go to the hot ids.
const SPECIAL_BELL_SHARE: f64 = 0.25;
/// sysbench's `--rand-spec-pct`, as a divisor.
const SPECIAL_HOT_DIVISOR: f64 = 100.0;
/// sysbench's `--rand-pareto-h`.
const PARETO_H: f64 = 0.2;
/// sysbench's `--rand-zipfian-exp`.
const ZIPFIAN_EXPONENT: f64 = 0.8;

impl Distribution {
    /// All of them.
    pub const ALL: [Distribution; 6] = [
        Distribution::Uniform,
        Distribution::Special,
        Distribution::Pareto,
        Distribution::Zipfian,
        Distribution::Gaussian,
        Distribution::ZipfianScrambled,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Special => "special",
            Distribution::Pareto => "pareto",
            Distribution::Zipfian => "zipfian",
            Distribution::Gaussian => "gaussian",
            Distribution::ZipfianScrambled => "zipfian-scrambled",
        }
    }

    /// Draws from `low..=high`.
    #[inline]
    pub fn draw(self, rng: &mut ConnectionRng, low: u32, high: u32) -> u32 {
        debug_assert!(low <= high);
        let width = f64::from(high - low) + 1.0;
        let offset = match self {
            Distribution::Uniform => return rng.uniform(low, high),
            Distribution::Gaussian => bell(rng) * width,
            Distribution::Special => {
                let u = rng.unit();
                if u < SPECIAL_BELL_SHARE {
                    bell(rng) * width
                } else {
                    // The same u places the draw in the hot range, which leaves the range's first quarter empty.
                    let span = width - 1.0;
                    let hot = (span / SPECIAL_HOT_DIVISOR).floor();
                    u * (hot + 1.0) + (span / 2.0).floor() - (hot / 2.0).floor()
                }
            }
            Distribution::Pareto => width * rng.unit().powf(PARETO_H.ln() / (1.0 - PARETO_H).ln()),
            Distribution::Zipfian => zipf(rng, width) - 1.0,
            Distribution::ZipfianScrambled => {
                let rank = zipf(rng, width) as u64;
                (fnv1a(rank) % width as u64) as f64
            }
        };
        low.saturating_add(offset as u32).min(high)
    }
}

/// The mean of 12 uniform draws, in [0, 1).
fn bell(rng: &mut ConnectionRng) -> f64 {
    (0..BELL_DRAWS).map(|_| rng.unit()).sum::<f64>() / f64::from(BELL_DRAWS)
}

/// A rank from 1. `rand_distr` uses rejection-inversion (Hörmann and Derflinger 1996), as sysbench does.
fn zipf(rng: &mut ConnectionRng, width: f64) -> f64 {
    match Zipf::new(width, ZIPFIAN_EXPONENT) {
        Ok(zipf) => zipf.sample(rng),
        // Only a width below 1 is refused, and there is none.
        Err(_) => 1.0,
    }
}

/// FNV-1a over the eight bytes, as YCSB scatters its keys.
fn fnv1a(value: u64) -> u64 {
    value.to_le_bytes().iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no distribution's.
#[derive(Debug, thiserror::Error)]
#[error("there is no distribution '{0}': use uniform, special, pareto, zipfian, gaussian or zipfian-scrambled")]
pub struct UnknownDistribution(String);

impl FromStr for Distribution {
    type Err = UnknownDistribution;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Distribution::ALL
            .into_iter()
            .find(|d| d.name() == text)
            .ok_or_else(|| UnknownDistribution(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Share of 200 000 draws from 1..=10 000 that fall into `low..=high`.
    fn share(distribution: Distribution, low: u32, high: u32) -> f64 {
        let mut rng = ConnectionRng::new(42, 0);
        let hits = (0..200_000)
            .filter(|_| (low..=high).contains(&distribution.draw(&mut rng, 1, 10_000)))
            .count();
        hits as f64 / 200_000.0
    }

    fn close(measured: f64, expected: f64) {
        assert!((measured - expected).abs() < 0.01, "{measured} is not {expected}");
    }

    #[test]
    fn uniform_fills_the_range_evenly() {
        close(share(Distribution::Uniform, 1, 1000), 0.1);
        close(share(Distribution::Uniform, 9001, 10_000), 0.1);
    }

    #[test]
    fn special_has_its_hot_ids_where_sysbench_1_0_has_them() {
        // Sampled from sysbench 1.0.20: 75 of 10 000 buckets hold 0.758 of the draws.
        close(share(Distribution::Special, 4975, 5051), 0.758);
        assert!(share(Distribution::Special, 4900, 4970) < 0.02);
    }

    #[test]
    fn pareto_sends_four_fifths_to_the_lowest_fifth() {
        close(share(Distribution::Pareto, 1, 2000), 0.8);
        // Sampled from sysbench 1.0.20: the lowest 0.19 % of the ids take 42 %.
        close(share(Distribution::Pareto, 1, 19), 0.42);
    }

    #[test]
    fn gaussian_is_a_bell_around_the_middle() {
        let spread = (1.0_f64 / 12.0 / 12.0).sqrt() * 10_000.0;
        let low = 5000.0 - spread;
        let high = 5000.0 + spread;
        close(share(Distribution::Gaussian, low as u32, high as u32), 0.68);
    }

    #[test]
    fn zipfian_follows_its_law_and_scrambling_moves_the_ranks_apart() {
        let weight = |ranks: std::ops::RangeInclusive<u32>| -> f64 { ranks.map(|r| f64::from(r).powf(-0.8)).sum() };
        let expected = weight(1..=100) / weight(1..=10_000);
        close(share(Distribution::Zipfian, 1, 100), expected);
        let half = share(Distribution::ZipfianScrambled, 1, 5000);
        assert!((0.45..0.55).contains(&half), "{half}");
        assert!(share(Distribution::ZipfianScrambled, 1, 100) < 0.1);
    }

    proptest! {
        #[test]
        fn draws_stay_in_their_range(
            seed in any::<u64>(),
            low in 0_u32..1000,
            width in 0_u32..2_000_000_000,
        ) {
            let mut rng = ConnectionRng::new(seed, 0);
            for distribution in Distribution::ALL {
                let drawn = distribution.draw(&mut rng, low, low + width);
                prop_assert!((low..=low + width).contains(&drawn));
            }
        }
    }
}
