//! Percentiles from histogram buckets.

use scaleprof_bundle::{Latency, LatencyRow};
use std::collections::BTreeMap;

/// What a statement of a script is called: `statement 2 (SELECT)`.
pub fn statement_label(number: i32, verb: Option<&str>) -> String {
    let in_brackets = verb.map_or_else(String::new, |verb| format!(" ({verb})"));
    format!("statement {number}{in_brackets}")
}

/// Buckets of one latency, by their highest value in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    buckets: BTreeMap<i64, u64>,
}

impl Histogram {
    /// Adds a bucket; one that is not above 0 on both sides cannot be and is passed over.
    pub fn add(&mut self, value_ns: i64, count: i64) {
        if value_ns >= 0 && count > 0 {
            let bucket = self.buckets.entry(value_ns).or_default();
            *bucket = bucket.saturating_add(count.unsigned_abs());
        }
    }

    /// All buckets of the rows.
    pub fn of<'a>(rows: impl IntoIterator<Item = &'a LatencyRow>) -> Histogram {
        let mut histogram = Histogram::default();
        rows.into_iter().for_each(|row| histogram.add(row.value_ns, row.count));
        histogram
    }

    /// How much was counted.
    pub fn count(&self) -> u64 {
        self.buckets.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The least value that at least `share` of the counts do not exceed, nanoseconds; none where nothing was counted.
    pub fn quantile_ns(&self, share: f64) -> Option<i64> {
        let total: u128 = self.buckets.values().map(|count| u128::from(*count)).sum();
        let wanted = ((share.clamp(0.0, 1.0) * total as f64).ceil() as u128).max(1);
        let mut upto = 0;
        self.buckets.iter().find_map(|(value, count)| {
            upto += u128::from(*count);
            (upto >= wanted).then_some(*value)
        })
    }

    /// Mean and percentiles in milliseconds. The mean of the buckets' highest values lies above the true mean by up to a
    /// bucket's width; a caller that has the sum of the times should put the exact one in its place.
    pub fn latency_ms(&self) -> Latency {
        let ms = |ns: i64| ns as f64 / 1e6;
        let at = |share: f64| self.quantile_ns(share).map(ms);
        let total: f64 = self.buckets.values().map(|count| *count as f64).sum();
        let sum: f64 = self
            .buckets
            .iter()
            .map(|(value, count)| *value as f64 * *count as f64)
            .sum();
        Latency {
            mean: (total > 0.0).then(|| sum / total / 1e6),
            p50: at(0.5),
            p95: at(0.95),
            p99: at(0.99),
            p999: at(0.999),
            max: self.buckets.keys().last().copied().map(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_those_of_the_counts() {
        let mut histogram = Histogram::default();
        (1..=1000).rev().for_each(|value| histogram.add(value * 1_000_000, 1));
        let found = histogram.latency_ms();
        assert_eq!(
            (found.p50, found.p95, found.p99, found.p999),
            (Some(500.0), Some(950.0), Some(990.0), Some(999.0))
        );
        assert_eq!((found.max, found.mean), (Some(1000.0), Some(500.5)));
    }

    #[test]
    fn nothing_counted_has_no_percentiles() {
        let found = Histogram::default().latency_ms();
        assert_eq!((found.mean, found.p50, found.max), (None, None, None));
    }

    proptest! {
        #[test]
        fn percentiles_never_fall(rows in proptest::collection::vec(any::<(i64, i64)>(), 0..50)) {
            let mut histogram = Histogram::default();
            rows.iter().for_each(|(value, count)| histogram.add(*value, *count));
            let found = histogram.latency_ms();
            let rising = [found.p50, found.p95, found.p99, found.p999, found.max];
            prop_assert!(rising.windows(2).all(|pair| pair[0] <= pair[1]));
        }
    }
}
