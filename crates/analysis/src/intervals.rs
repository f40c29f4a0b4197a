//! How sure a throughput is.

use crate::student::t_quantile_975;
use crate::warmup::mean;
use scaleprof_bundle::Estimate;

/// A mean with its standard error, on which ratios and fits can be built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    /// The mean, transactions per second.
    pub value: f64,
    /// Its standard error and the degrees of freedom behind it; none where there are too few blocks to tell.
    pub error: Option<StandardError>,
}

/// A standard error and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardError {
    /// In the unit of the value.
    pub value: f64,
    /// Degrees of freedom, not necessarily whole (Welch and Satterthwaite).
    pub degrees: f64,
}

impl Measured {
    /// The value with its 95 % interval; the lower limit of a throughput is never below 0.
    pub fn estimate(&self) -> Estimate {
        let half = self.error.map(|e| t_quantile_975(e.degrees) * e.value);
        Estimate {
            value: self.value,
            low: half.map(|half| (self.value - half).max(0.0)),
            high: half.map(|half| self.value + half),
        }
    }
}

/// Fewest blocks from which a spread is taken.
const FEWEST_BLOCKS: usize = 3;
/// Shortest block, seconds: neighbouring seconds are not independent (analysis.md 1.3).
const SHORTEST_BLOCK: usize = 5;
/// No more blocks than this: longer blocks see slower waves, and t gains little beyond.
const MOST_BLOCKS: usize = 12;

/// The throughput of a rung from the measured windows of its visits, each a figure a second.
///
/// - Three visits or more: Student's t on the means of the visits; the spread between visits holds everything that a
///   repeat changes (Kalibera and Jones 2013). It is never taken below what the spread within them alone implies.
/// - Two visits: the spread within, from block means, plus what the two means differ beyond it, with the degrees of
///   freedom of Satterthwaite (1946).
/// - One visit: block means (at least 5 s, at most 12 blocks) with their autocorrelation at lag 1 corrected for. It
///   cannot see what a restart or another hour would change.
///
/// Every visit weighs the same. None for no visits.
pub fn throughput(visits: &[Vec<f64>]) -> Option<Measured> {
    let visits: Vec<&Vec<f64>> = visits.iter().filter(|rates| !rates.is_empty()).collect();
    if visits.is_empty() {
        return None;
    }
    let means: Vec<f64> = visits.iter().map(|rates| mean(rates)).collect();
    let value = mean(&means);
    let within: Vec<StandardError> = visits.iter().filter_map(|rates| of_one_visit(rates)).collect();
    let count = means.len() as f64;
    // Standard error of the mean of all visits, were there no difference between them.
    let pooled = (within.len() == means.len()).then(|| StandardError {
        value: (within.iter().map(|e| e.value.powi(2)).sum::<f64>()).sqrt() / count,
        degrees: within.iter().map(|e| e.degrees).sum(),
    });
    if means.len() == 1 {
        return Some(Measured { value, error: pooled });
    }
    let between = (means.iter().map(|m| (m - value).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt();
    let floor = pooled.map_or(0.0, |e| e.value);
    let error = if means.len() >= 3 {
        Some(StandardError {
            value: between.max(floor),
            degrees: count - 1.0,
        })
    } else {
        pooled.map(|pooled| {
            let extra = (between.powi(2) - pooled.value.powi(2)).max(0.0);
            let variance = pooled.value.powi(2) + extra;
            let spread = pooled.value.powi(4) / pooled.degrees + extra.powi(2) / (count - 1.0);
            let degrees = if spread > 0.0 {
                variance.powi(2) / spread
            } else {
                pooled.degrees
            };
            StandardError {
                value: variance.sqrt(),
                degrees,
            }
        })
    };
    Some(Measured { value, error })
}

fn of_one_visit(rates: &[f64]) -> Option<StandardError> {
    let blocks = (rates.len() / SHORTEST_BLOCK).min(MOST_BLOCKS);
    if blocks < FEWEST_BLOCKS {
        return None;
    }
    // All seconds are used: block i spans an equal share of them, to the nearest second.
    let edge = |block: usize| block * rates.len() / blocks;
    let means: Vec<f64> = (0..blocks).map(|b| mean(&rates[edge(b)..edge(b + 1)])).collect();
    let centre = mean(&means);
    let count = blocks as f64;
    let squares: f64 = means.iter().map(|m| (m - centre).powi(2)).sum();
    let products: f64 = means
        .windows(2)
        .map(|pair| (pair[0] - centre) * (pair[1] - centre))
        .sum();
    let lag = if squares > 0.0 { products / squares } else { 0.0 };
    // The usual estimate of the lag is low by about (1 + 3r) / n (Kendall 1954).
    let lag = if blocks >= 6 {
        (lag + (1.0 + 3.0 * lag.max(0.0)) / count).clamp(0.0, 0.7)
    } else {
        0.0
    };
    let variance = squares / (count - 1.0) / count * (1.0 + lag) / (1.0 - lag);
    Some(StandardError {
        value: variance.sqrt(),
        degrees: count - 1.0,
    })
}

/// `a / b` with its 95 % interval, from the difference of their logarithms (delta method, Welch's degrees of freedom).
/// None where either is not above 0.
pub fn ratio(a: &Measured, b: &Measured) -> Option<Estimate> {
    if a.value <= 0.0 || b.value <= 0.0 {
        return None;
    }
    let value = a.value / b.value;
    let half = a.error.zip(b.error).map(|(ea, eb)| {
        let (va, vb) = ((ea.value / a.value).powi(2), (eb.value / b.value).powi(2));
        let spread = va * va / ea.degrees + vb * vb / eb.degrees;
        let degrees = if spread > 0.0 {
            (va + vb).powi(2) / spread
        } else {
            ea.degrees + eb.degrees
        };
        t_quantile_975(degrees) * (va + vb).sqrt()
    });
    Some(Estimate {
        value,
        low: half.map(|h| value * (-h).exp()),
        high: half.map(|h| value * h.exp()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Noise, Normal, noisy};

    /// Share of simulated rungs whose interval holds the true 1000; `between` is the relative spread of the visits.
    fn coverage(visits: u64, seconds: usize, lag: f64, between: f64) -> f64 {
        let trials = 2000;
        let held = (0..trials).filter(|trial| {
            let mut shift = Normal::new(trial + 77_000);
            let series: Vec<Vec<f64>> = (0..visits)
                .map(|visit| {
                    let level = 1000.0 * (1.0 + between * shift.draw());
                    noisy(trial * 31 + visit, seconds, level, Noise { sd: 0.03, lag })
                })
                .collect();
            let found = throughput(&series).unwrap().estimate();
            found.low.unwrap() <= 1000.0 && 1000.0 <= found.high.unwrap()
        });
        held.count() as f64 / trials as f64
    }

    #[test]
    fn intervals_of_independent_seconds_hold_the_truth() {
        for (visits, seconds) in [(1, 30), (1, 60), (2, 30), (3, 20), (5, 20)] {
            let share = coverage(visits, seconds, 0.0, 0.0);
            assert!((0.925..=1.0).contains(&share), "{visits} x {seconds} s: {share}");
        }
    }

    #[test]
    fn intervals_of_autocorrelated_seconds_hold_the_truth() {
        for (visits, seconds, lag) in [(1, 60, 0.5), (1, 120, 0.8), (1, 300, 0.9), (2, 60, 0.5), (3, 60, 0.9)] {
            let share = coverage(visits, seconds, lag, 0.0);
            assert!(
                (0.92..=1.0).contains(&share),
                "{visits} x {seconds} s at lag {lag}: {share}"
            );
        }
    }

    #[test]
    fn intervals_of_repeats_that_differ_hold_the_truth() {
        for visits in [3, 4, 8] {
            let share = coverage(visits, 30, 0.3, 0.02);
            assert!((0.925..=0.99).contains(&share), "{visits}: {share}");
        }
    }

    #[test]
    fn too_few_blocks_give_no_interval() {
        assert_eq!(throughput(&[vec![5.0; 14]]).unwrap().error, None);
        assert_eq!(throughput(&[vec![5.0; 14], vec![5.0; 14]]).unwrap().error, None);
        assert!(throughput(&[vec![5.0; 15]]).unwrap().error.is_some());
        assert!(
            throughput(&[vec![5.0; 3], vec![6.0; 3], vec![7.0; 3]])
                .unwrap()
                .error
                .is_some()
        );
        assert_eq!(throughput(&[]), None);
        assert_eq!(throughput(&[vec![]]), None);
    }

    #[test]
    fn a_ratio_holds_the_true_ratio() {
        let held = (0..2000)
            .filter(|trial| {
                let rung = |offset: u64, level| {
                    let visits: Vec<_> = (0..3)
                        .map(|v| noisy(trial * 17 + v + offset, 20, level, Noise { sd: 0.05, lag: 0.2 }))
                        .collect();
                    throughput(&visits).unwrap()
                };
                let found = ratio(&rung(0, 500.0), &rung(900_000, 1000.0)).unwrap();
                found.low.unwrap() <= 0.5 && 0.5 <= found.high.unwrap()
            })
            .count();
        assert!(held > 1850, "{held}");
    }
}
