//! Counters of a rung, summed over the measured windows of its measurements, each with what it must
//! be divided by.

use scaleprof_bundle::CounterRow;
use std::collections::BTreeMap;

/// The measured part of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The measurement.
    pub measurement: i32,
    /// Seconds that count, each with its duration in seconds and its transactions.
    pub seconds: BTreeMap<i32, Amount>,
    /// The whole measurement, the warm-up included: what a counter without a second spans.
    pub whole: Amount,
}

/// Time and the transactions that ended in it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amount {
    /// Seconds.
    pub seconds: f64,
    /// Transactions by the client's count.
    pub transactions: f64,
}

/// A counter's sum and what it covers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Total {
    /// The sum.
    pub value: f64,
    /// The time and the transactions of the seconds, or measurements, that have a figure.
    pub over: Amount,
    /// The least share of the time in which the kernel really counted.
    pub running_share: f64,
}

impl Total {
    /// Per transaction by the client's count; none without transactions.
    pub fn per_transaction(&self) -> Option<f64> {
        Some(self.value / self.over.transactions).filter(|v| v.is_finite())
    }

    /// Per second; none without time.
    pub fn per_second(&self) -> Option<f64> {
        Some(self.value / self.over.seconds).filter(|v| v.is_finite())
    }
}

/// No counter moves by as much in one measurement; what claims to was misread.
const LARGEST: f64 = 1e18;

/// Sums the counters of the windows by name. Levels (`_level`) and figures that cannot be true are
/// left out. A counter that has figures by second is summed over the measured seconds; one that has
/// only a figure of the whole measurement over that.
pub fn totals<'a>(windows: &[Window], rows: impl IntoIterator<Item = &'a CounterRow>) -> BTreeMap<String, Total> {
    let by_measurement: BTreeMap<i32, &Window> = windows.iter().map(|window| (window.measurement, window)).collect();
    let mut by_second: BTreeMap<String, Total> = BTreeMap::new();
    let mut by_measurement_only: BTreeMap<String, Total> = BTreeMap::new();
    for row in rows {
        let Some(window) = by_measurement.get(&row.measurement) else {
            continue;
        };
        if row.counter.ends_with("_level") || !row.value.is_finite() || row.value.abs() > LARGEST {
            continue;
        }
        let (into, over) = match row.second {
            None => (&mut by_measurement_only, Some(&window.whole)),
            Some(second) => (&mut by_second, window.seconds.get(&second)),
        };
        let Some(over) = over else { continue };
        let total = into.entry(row.counter.clone()).or_insert(Total {
            running_share: 1.0,
            ..Total::default()
        });
        total.value += row.value;
        total.over.seconds += over.seconds;
        total.over.transactions += over.transactions;
        total.running_share = total.running_share.min(row.running_share.unwrap_or(1.0));
    }
    for (name, total) in by_measurement_only {
        by_second.entry(name).or_insert(total);
    }
    by_second
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(second: Option<i32>, counter: &str, value: f64) -> CounterRow {
        CounterRow {
            measurement: 0,
            second,
            counter: counter.into(),
            value,
            running_share: None,
        }
    }

    fn window() -> Window {
        let one = Amount {
            seconds: 1.0,
            transactions: 100.0,
        };
        Window {
            measurement: 0,
            seconds: (2..5).map(|second| (second, one)).collect(),
            whole: Amount {
                seconds: 5.0,
                transactions: 350.0,
            },
        }
    }

    #[test]
    fn warm_up_seconds_are_left_out_and_missing_seconds_are_not_taken_for_zero() {
        let rows = [row(Some(0), "a", 99.0), row(Some(2), "a", 5.0), row(Some(4), "a", 7.0)];
        let found = totals(&[window()], &rows)["a"];
        assert_eq!(
            (found.value, found.per_transaction(), found.per_second()),
            (12.0, Some(0.06), Some(6.0))
        );
    }

    #[test]
    fn a_figure_of_the_whole_measurement_is_divided_by_the_whole_measurement() {
        let rows = [
            row(None, "a", 350.0),
            row(Some(2), "x_level", 1.0),
            row(Some(2), "nan", f64::NAN),
        ];
        let found = totals(&[window()], &rows);
        assert_eq!((found["a"].per_transaction(), found.len()), (Some(1.0), 1));
    }

    #[test]
    fn the_least_counted_share_is_kept() {
        let mut rows = [row(Some(2), "a", 1.0), row(Some(3), "a", 1.0)];
        rows[1].running_share = Some(0.5);
        assert_eq!(totals(&[window()], &rows)["a"].running_share, 0.5);
    }
}
