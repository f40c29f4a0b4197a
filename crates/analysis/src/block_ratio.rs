//! How sure a time per transaction is.

use crate::measurement_spread::{Blocks, OfMeasurement, standard_error};
use crate::standard_error::StandardError;
use crate::student::t_quantile_975;
use scaleprof_bundle::Estimate;
use std::ops::Range;

/// Fewest seconds from which a spread is taken.
pub(crate) const FEWEST: usize = 5;

/// The transactions of the measured seconds of a rung, measurement after measurement: what
/// thread-seconds are divided by.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transactions {
    of_seconds: Vec<f64>,
    measurements: Vec<Range<usize>>,
    all: f64,
}

impl Transactions {
    /// Of each measured second with its measurement; those of a measurement stand together.
    pub(crate) fn of(seconds: impl IntoIterator<Item = (i32, f64)>) -> Transactions {
        let mut transactions = Transactions::default();
        let mut last = None;
        for (measurement, count) in seconds {
            let at = transactions.of_seconds.len();
            match transactions
                .measurements
                .last_mut()
                .filter(|_| last == Some(measurement))
            {
                Some(seconds) => seconds.end = at + 1,
                None => transactions.measurements.push(at..at + 1),
            }
            last = Some(measurement);
            transactions.of_seconds.push(count);
            transactions.all += count;
        }
        transactions
    }

    /// The same seconds of the same measurements with something else counted in each.
    pub(crate) fn with_amounts(&self, of_seconds: Vec<f64>) -> Transactions {
        Transactions {
            all: of_seconds.iter().sum(),
            of_seconds,
            measurements: self.measurements.clone(),
        }
    }

    /// Those of each second.
    pub(crate) fn of_seconds(&self) -> &[f64] {
        &self.of_seconds
    }

    /// All of them.
    pub(crate) fn all(&self) -> f64 {
        self.all
    }

    /// Time per transaction of thread-seconds, given by the place of the second, with a 95 %
    /// interval: the ratio estimator (Cochran 1977, section 6.4). The samples of one second are not
    /// independent of one another, so their number says little about the error; it comes from how
    /// blocks of seconds scatter within the measurements, and how the measurements do
    /// ([`standard_error`]). No lower limit is below 0.
    ///
    /// None without transactions; no limits with fewer than five seconds, or where one of two
    /// measurements has fewer than three.
    pub(crate) fn ratio(&self, parts: impl IntoIterator<Item = (u32, f64)>) -> Option<Estimate> {
        let mut amounts = vec![0.0; self.of_seconds.len()];
        for (second, seconds) in parts {
            if let Some(amount) = amounts.get_mut(second as usize) {
                *amount += seconds;
            }
        }
        let value = Some(amounts.iter().sum::<f64>() / self.all).filter(|value| value.is_finite())?;
        let half = self
            .error(&amounts)
            .map(|error| t_quantile_975(error.degrees) * error.value);
        Some(Estimate {
            value,
            low: half.map(|half| (value - half).max(0.0)),
            high: half.map(|half| value + half),
        })
    }

    fn error(&self, amounts: &[f64]) -> Option<StandardError> {
        let of_measurement = |seconds: &Range<usize>| {
            let (amounts, counts) = (amounts.get(seconds.clone())?, self.of_seconds.get(seconds.clone())?);
            let transactions: f64 = counts.iter().sum();
            let figure = amounts.iter().sum::<f64>() / transactions;
            let a_second = transactions / counts.len() as f64;
            let residuals = amounts.iter().zip(counts);
            // What a second has beyond its part, as if each second had as many transactions.
            let residuals = residuals.map(|(amount, count)| (amount - figure * count) / a_second);
            (transactions > 0.0).then(|| OfMeasurement {
                weight: transactions / self.all,
                figure,
                seconds: residuals.collect(),
            })
        };
        let measurements: Vec<OfMeasurement> = self.measurements.iter().filter_map(of_measurement).collect();
        let seconds: usize = measurements.iter().map(|measurement| measurement.seconds.len()).sum();
        (seconds >= FEWEST).then(|| standard_error(&measurements, Blocks::OfSeconds))?
    }
}

/// The variance of Σ amounts / Σ transactions over the seconds of one measurement by how they
/// scatter; none with fewer than five seconds or without transactions.
pub(crate) fn variance_of_seconds(amounts: &[f64], transactions: &[f64]) -> Option<f64> {
    let all: f64 = transactions.iter().sum();
    let value = Some(amounts.iter().sum::<f64>() / all).filter(|value| value.is_finite())?;
    let count = transactions.len() as f64;
    (transactions.len() >= FEWEST).then(|| {
        let residuals = amounts.iter().zip(transactions).map(|(a, k)| a - value * k);
        residuals.map(|residual| residual.powi(2)).sum::<f64>() / (count - 1.0) / count / (all / count).powi(2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Normal;

    /// The interval of a path that is as long as `amounts` says in each second.
    fn ratio(measurements: &[&[(f64, f64)]]) -> Option<Estimate> {
        let of_measurements = measurements.iter().zip(0..);
        let seconds = of_measurements
            .flat_map(|(seconds, measurement)| seconds.iter().map(move |(_, count)| (measurement, *count)));
        let amounts = measurements
            .iter()
            .flat_map(|seconds| seconds.iter().map(|(amount, _)| *amount));
        let parts: Vec<(u32, f64)> = (0..).zip(amounts).collect();
        Transactions::of(seconds).ratio(parts)
    }

    #[test]
    fn intervals_hold_the_truth_though_work_and_samples_come_in_waves() {
        let trials = 1000;
        let held = (0..trials).filter(|trial| {
            let mut noise = Normal::new(trial + 5);
            let blocks: Vec<(f64, f64)> = (0..30)
                .map(|second| {
                    let wave = 1.0 + 0.2 * (f64::from(second) / 1.1).sin();
                    let transactions = 1000.0 * wave * (1.0 + 0.02 * noise.draw());
                    // About 20 samples a second, each 10 ms.
                    let samples = (20.0 * wave + (20.0 * wave).sqrt() * noise.draw()).round().max(0.0);
                    (samples * 0.01, transactions)
                })
                .collect();
            let found = ratio(&[&blocks]).unwrap();
            found.low.unwrap() <= 2e-4 && 2e-4 <= found.high.unwrap()
        });
        let share = held.count() as f64 / trials as f64;
        assert!((0.92..=0.99).contains(&share), "{share}");
    }

    /// Seconds of some measurements whose truth is 20 ms a transaction.
    #[derive(Clone, Copy)]
    struct Planted {
        measurements: u64,
        seconds: usize,
        /// Autocorrelation of the seconds, at lag 1.
        lag: f64,
        /// Relative standard deviation of a measurement from the others, beside the 5 % of a second
        /// from the next.
        between: f64,
    }

    impl Planted {
        /// Half the width that an interval would have, as a part of the truth, if all that is
        /// planted were known. Where measurements do not differ, those that are found are 1.1 to
        /// 1.75 times as wide.
        fn ideal(self) -> f64 {
            let of_measurement = 0.05_f64.powi(2) * (1.0 + self.lag) / (1.0 - self.lag) / self.seconds as f64;
            1.96 * ((self.between.powi(2) + of_measurement) / self.measurements as f64).sqrt()
        }
    }

    /// Share of the intervals that hold the truth, and the median of their relative half widths.
    fn covered(planted: Planted) -> (f64, f64) {
        let trials = 1500;
        let mut halves = Vec::new();
        let held = (0..trials).filter(|trial| {
            let mut noise = Normal::new(trial * 977 + 13);
            let measurements: Vec<Vec<(f64, f64)>> = (0..planted.measurements)
                .map(|_| {
                    let level = 0.02 * (1.0 + planted.between * noise.draw());
                    let mut state = noise.draw();
                    let second = |_| {
                        let transactions = 1000.0 * (1.0 + 0.03 * noise.draw());
                        let amount = level * transactions * (1.0 + 0.05 * state);
                        state = planted.lag * state + (1.0 - planted.lag.powi(2)).sqrt() * noise.draw();
                        (amount, transactions)
                    };
                    (0..planted.seconds).map(second).collect()
                })
                .collect();
            let measurements: Vec<&[(f64, f64)]> = measurements.iter().map(Vec::as_slice).collect();
            let found = ratio(&measurements).unwrap();
            halves.push((found.high.unwrap() - found.value) / 0.02);
            found.low.unwrap() <= 0.02 && 0.02 <= found.high.unwrap()
        });
        let share = held.count() as f64 / trials as f64;
        halves.sort_by(f64::total_cmp);
        (share, halves[halves.len() / 2])
    }

    #[test]
    fn intervals_hold_the_truth_though_neighbouring_seconds_are_alike() {
        for (measurements, seconds, lag) in [
            (1, 10, 0.0),
            (1, 30, 0.3),
            (1, 60, 0.6),
            (2, 8, 0.0),
            (2, 30, 0.5),
            (3, 20, 0.5),
            (5, 20, 0.5),
        ] {
            let planted = Planted {
                measurements,
                seconds,
                lag,
                between: 0.0,
            };
            let (share, half) = covered(planted);
            let ideal = planted.ideal();
            assert!(
                (0.92..1.0).contains(&share) && half < 2.0 * ideal,
                "{measurements} x {seconds} s at lag {lag}: {share}, {half} of {ideal}"
            );
        }
    }

    #[test]
    fn intervals_hold_the_truth_though_measurements_differ() {
        // Where nothing but the measurements tells how they differ, Student's t of one, two and
        // four degrees of freedom makes the median half width 4.4, 1.8 and 1.3 times the ideal one;
        // that the seconds of measurements are alike makes it 1.75 at most.
        for (measurements, least, widest) in [(2, 0.88, 4.4), (3, 0.91, 2.5), (5, 0.92, 2.0)] {
            for between in [0.01, 0.03, 0.1] {
                for (seconds, lag) in [(8, 0.0), (20, 0.4), (60, 0.4)] {
                    let planted = Planted {
                        measurements,
                        seconds,
                        lag,
                        between,
                    };
                    let (share, half) = covered(planted);
                    let ideal = planted.ideal();
                    assert!(
                        (least..1.0).contains(&share) && half < widest * ideal,
                        "{measurements} x {seconds} s that differ by {between}: {share}, {half} of {ideal}"
                    );
                }
            }
        }
    }

    /// Student's t of one degree of freedom would make everything unsure.
    #[test]
    fn two_measurements_that_agree_are_nearly_as_sure_as_one_of_twice_the_length() {
        let planted = |measurements, seconds| Planted {
            measurements,
            seconds,
            lag: 0.0,
            between: 0.0,
        };
        let ((_, two), (_, one)) = (covered(planted(2, 10)), covered(planted(1, 20)));
        assert!(two < 1.5 * one, "{two} {one}");
    }

    /// Two measurements of a real run, whose connections took 42.3 and 51.9 µs of CPU a
    /// transaction, which seconds alone put at 46.5 with ±6.6 %.
    #[test]
    fn two_measurements_that_differ_by_more_than_their_seconds_do_widen_the_interval() {
        let measurement = |micros: f64| -> Vec<(f64, f64)> {
            let second = |second: i32| {
                let unrest = 1.0 + 0.05 * f64::from((second * 7) % 5 - 2);
                (micros * unrest * 3.0, 3.0)
            };
            (0..10).map(second).collect()
        };
        let found = ratio(&[&measurement(42.3), &measurement(51.9)]).unwrap();
        assert!((found.value - 47.1).abs() < 0.1, "{found:?}");
        assert!(found.low.unwrap() < 42.3 && found.high.unwrap() > 51.9, "{found:?}");
    }

    /// A real run: 208 µs of spinning a transaction with ±70 %, as measurements differed by so much
    /// in what a transaction cost; it was about two thirds of that cost in each.
    #[test]
    fn a_part_is_surer_than_what_it_is_a_part_of_where_measurements_differ_in_both_alike() {
        let seconds: Vec<(i32, f64)> = (0..20).map(|second| (second / 10, 100.0)).collect();
        let transactions = Transactions::of(seconds);
        let whole = |second: u32| if second < 10 { 1.0 } else { 2.0 };
        let part = |second: u32| whole(second) * (0.66 + 0.02 * (f64::from(second % 3) - 1.0));
        let parts = || (0..20).map(|second| (second, part(second)));
        let each = transactions.ratio(parts()).unwrap();
        let share = transactions
            .with_amounts((0..20).map(whole).collect())
            .ratio(parts())
            .unwrap();
        assert!(each.low.unwrap() < 0.5 * each.value, "{each:?}");
        assert!(share.low.unwrap() > 0.62 && share.high.unwrap() < 0.7, "{share:?}");
    }

    #[test]
    fn few_seconds_give_no_limits_and_no_transactions_nothing() {
        let without_limits = Some(Estimate {
            value: 0.1,
            low: None,
            high: None,
        });
        assert_eq!(ratio(&[&[(1.0, 10.0); 4]]), without_limits);
        // Of one second nobody knows how far it scatters.
        assert_eq!(ratio(&[&[(1.0, 10.0); 9], &[(1.0, 10.0)]]), without_limits);
        assert_eq!(ratio(&[&[(1.0, 0.0); 9]]), None);
        assert_eq!(ratio(&[]), None);
        assert_eq!(ratio(&[&[(1.0, 10.0); 5]]).unwrap().low, Some(0.1));
        assert_eq!(ratio(&[&[(1.0, 10.0); 3], &[(1.0, 10.0); 3]]).unwrap().low, Some(0.1));
    }
}
