//! Latency of each statement of a script, or of each kind of transaction, from the histograms.

use scaleprof_bundle::Bundle;
use serde::Serialize;
use std::collections::BTreeMap;

/// Service time of one statement or kind of transaction at one rung, all visits and all seconds together, milliseconds.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Statement<'a> {
    connections: i32,
    what: &'a str,
    count: i64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

/// One entry for each rung and statement or kind; none for a workload that times all its transactions together.
pub(super) fn statements(bundle: &Bundle) -> Vec<Statement<'_>> {
    let rungs: BTreeMap<i32, i32> = bundle.rungs.iter().map(|rung| (rung.visit, rung.connections)).collect();
    let mut histograms: BTreeMap<(i32, u32, &str), BTreeMap<i64, i64>> = BTreeMap::new();
    for row in bundle
        .latency
        .iter()
        .filter(|row| row.kind == "service" && row.what != "transaction")
    {
        if let Some(&connections) = rungs.get(&row.visit) {
            let histogram = histograms
                .entry((connections, number(&row.what), &row.what))
                .or_default();
            *histogram.entry(row.value_ns).or_default() += row.count;
        }
    }
    histograms
        .iter()
        .filter_map(|(&(connections, _, what), histogram)| {
            Some(Statement {
                connections,
                what,
                count: histogram.values().sum(),
                p50: percentile_ms(histogram, 0.50)?,
                p95: percentile_ms(histogram, 0.95)?,
                p99: percentile_ms(histogram, 0.99)?,
                max: percentile_ms(histogram, 1.0)?,
            })
        })
        .collect()
}

/// The number in `statement 2 (SELECT)` or `transaction 1 (new_order)`: their order.
fn number(what: &str) -> u32 {
    let word = what.split(' ').nth(1);
    word.and_then(|number| number.parse().ok()).unwrap_or(u32::MAX)
}

/// The highest value of the bucket in which the share of the counts is reached.
fn percentile_ms(histogram: &BTreeMap<i64, i64>, share: f64) -> Option<f64> {
    let total: i64 = histogram.values().sum();
    if total == 0 {
        return None;
    }
    let wanted = (total as f64 * share).ceil().max(1.0) as i64;
    let mut seen = 0;
    histogram.iter().find_map(|(&value, &count)| {
        seen += count;
        (seen >= wanted).then_some(value as f64 / 1e6)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_numbered_is_sorted_by_its_number() {
        assert_eq!(number("statement 10 (SELECT)"), 10);
        assert_eq!(number("transaction 2 (payment)"), 2);
        assert_eq!(number("statement"), u32::MAX);
    }

    #[test]
    fn percentiles_are_those_of_the_counts() {
        let histogram: BTreeMap<i64, i64> = [(1_000_000, 98), (5_000_000, 1), (9_000_000, 1)].into();
        assert_eq!(percentile_ms(&histogram, 0.5), Some(1.0));
        assert_eq!(percentile_ms(&histogram, 0.99), Some(5.0));
        assert_eq!(percentile_ms(&histogram, 1.0), Some(9.0));
        assert_eq!(percentile_ms(&BTreeMap::new(), 0.5), None);
    }
}
