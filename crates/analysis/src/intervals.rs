//! How sure a throughput is.

use crate::measurement_spread::{Blocks, OfMeasurement, standard_error};
pub use crate::standard_error::StandardError;
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

impl Measured {
    /// The value with its 95 % interval; the lower limit of a throughput is never below 0.
    pub fn estimate(&self) -> Estimate {
        let Estimate { value, low, high } = self.signed_estimate();
        Estimate {
            value,
            low: low.map(|low| low.max(0.0)),
            high,
        }
    }

    /// The same of a difference, whose limits may lie below 0.
    pub fn signed_estimate(&self) -> Estimate {
        let half = self.error.map(|e| t_quantile_975(e.degrees) * e.value);
        Estimate {
            value: self.value,
            low: half.map(|half| self.value - half),
            high: half.map(|half| self.value + half),
        }
    }
}

/// The throughput of a rung from the measured windows of its measurements, each a figure a second.
///
/// Its error is that of [`standard_error`]: from blocks of at least 5 s within the measurements, at
/// most 12 of each, and from how the measurements differ, which holds everything that a repeat
/// changes (Kalibera and Jones 2013). Every measurement weighs the same. None for no measurements.
pub fn throughput(measurements: &[Vec<f64>]) -> Option<Measured> {
    let measurements: Vec<&Vec<f64>> = measurements.iter().filter(|rates| !rates.is_empty()).collect();
    let weight = 1.0 / measurements.len() as f64;
    let measurements: Vec<OfMeasurement> = measurements
        .into_iter()
        .map(|rates| OfMeasurement {
            weight,
            figure: mean(rates),
            seconds: rates.clone(),
        })
        .collect();
    (!measurements.is_empty()).then(|| Measured {
        value: measurements
            .iter()
            .map(|measurement| measurement.weight * measurement.figure)
            .sum(),
        error: standard_error(&measurements, Blocks::OfFiveSeconds),
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
        let relative = |error: StandardError, whole: f64| StandardError {
            value: error.value / whole,
            ..error
        };
        let both = relative(ea, a.value).and(relative(eb, b.value));
        t_quantile_975(both.degrees) * both.value
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

    /// Share of simulated rungs whose interval holds the true 1000, and the median of their half widths as a part of it; `between` is
    /// the relative spread of the measurements.
    fn coverage(measurements: u64, seconds: usize, lag: f64, between: f64) -> (f64, f64) {
        let trials = 2000;
        let mut halves = Vec::new();
        let held = (0..trials).filter(|trial| {
            let mut shift = Normal::new(trial + 77_000);
            let series: Vec<Vec<f64>> = (0..measurements)
                .map(|measurement| {
                    let level = 1000.0 * (1.0 + between * shift.draw());
                    noisy(trial * 31 + measurement, seconds, level, Noise { sd: 0.03, lag })
                })
                .collect();
            let found = throughput(&series).unwrap().estimate();
            halves.push((found.high.unwrap() - found.value) / 1000.0);
            found.low.unwrap() <= 1000.0 && 1000.0 <= found.high.unwrap()
        });
        let share = held.count() as f64 / trials as f64;
        (share, median(halves))
    }

    fn median(mut values: Vec<f64>) -> f64 {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }

    /// Half the width that an interval would have if the spread of 3 % and the autocorrelation of its seconds were known. Those that
    /// are found are 1.05 to 1.8 times as wide.
    fn ideal(measurements: u64, seconds: usize, lag: f64) -> f64 {
        let independent = (measurements as usize * seconds) as f64 * (1.0 - lag) / (1.0 + lag);
        1.96 * 0.03 / independent.sqrt()
    }

    #[test]
    fn intervals_of_independent_seconds_hold_the_truth() {
        for (measurements, seconds) in [(1, 30), (1, 60), (2, 30), (3, 20), (5, 20)] {
            let (share, half) = coverage(measurements, seconds, 0.0, 0.0);
            let ideal = ideal(measurements, seconds, 0.0);
            assert!(
                (0.925..1.0).contains(&share) && half < 2.0 * ideal,
                "{measurements} x {seconds} s: {share}, {half} of {ideal}"
            );
        }
    }

    #[test]
    fn intervals_of_autocorrelated_seconds_hold_the_truth() {
        for (measurements, seconds, lag) in [(1, 60, 0.5), (1, 120, 0.8), (1, 300, 0.9), (2, 60, 0.5), (3, 60, 0.9)] {
            let (share, half) = coverage(measurements, seconds, lag, 0.0);
            let ideal = ideal(measurements, seconds, lag);
            assert!(
                (0.92..1.0).contains(&share) && half < 2.0 * ideal,
                "{measurements} x {seconds} s at lag {lag}: {share}, {half} of {ideal}"
            );
        }
    }

    #[test]
    fn intervals_of_repeats_that_differ_hold_the_truth() {
        for measurements in [3, 4, 8] {
            let (share, _) = coverage(measurements, 30, 0.3, 0.02);
            assert!((0.925..=0.99).contains(&share), "{measurements}: {share}");
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
        let mut halves = Vec::new();
        let held = (0..2000)
            .filter(|trial| {
                let rung = |offset: u64, level| {
                    let measurements: Vec<_> = (0..3)
                        .map(|v| noisy(trial * 17 + v + offset, 20, level, Noise { sd: 0.05, lag: 0.2 }))
                        .collect();
                    throughput(&measurements).unwrap()
                };
                let found = ratio(&rung(0, 500.0), &rung(900_000, 1000.0)).unwrap();
                halves.push((found.high.unwrap() / found.value).ln());
                found.low.unwrap() <= 0.5 && 0.5 <= found.high.unwrap()
            })
            .count();
        // That of two means of 60 s each, of 5 % and a lag of 0.2, if both were known; 1.5 times as much is found.
        let ideal = 1.96 * 0.05 * (2.0 * 1.5 / 60.0_f64).sqrt();
        let half = median(halves);
        assert!(
            (1851..2000).contains(&held) && half < 2.0 * ideal,
            "{held}: {half} of {ideal}"
        );
    }
}
