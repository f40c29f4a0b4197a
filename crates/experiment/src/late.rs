//! Transactions that were under way when time was up.

use scaleprof_bundle::LatencyRow;
use scaleprof_vocabulary::LatencyKind;
use scaleprof_workload::LoadOutcome;
use std::collections::BTreeMap;

/// Fewer may all be slow by chance.
const FEWEST: u64 = 5;
/// From this part of all transactions on, a quantile that people look at moves.
const LEAST_SHARE: f64 = 0.001;
/// Of what is under way.
const QUANTILE: f64 = 0.99;

/// What is known of them: they are in no histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Late {
    transactions: u64,
    median_ns: u64,
}

impl Late {
    pub(crate) fn of(outcome: &LoadOutcome) -> Option<Late> {
        Some(Late {
            transactions: outcome.late_transactions,
            median_ns: outcome.late_median_ns?,
        })
    }
}

/// A warning where the server stood still when time was up: half of what was under way then took
/// longer than what is under way at any moment does but for one in a hundred, and the response
/// times know nothing of it. Who takes long is under way for long, so the measurement's own service
/// times are weighed by themselves.
pub(crate) fn stalled_at_the_end(latency: &[LatencyRow], late: Late, at: &str) -> Option<String> {
    let mut counted = 0;
    let mut by_time: BTreeMap<i64, f64> = BTreeMap::new();
    for row in latency
        .iter()
        .filter(|row| row.kind == LatencyKind::Service && row.is_of_all_transactions())
    {
        counted += row.count;
        *by_time.entry(row.value_ns).or_default() += row.count as f64 * row.value_ns as f64;
    }
    let all: f64 = by_time.values().sum();
    let mut below = 0.0;
    let usual = by_time.into_iter().find_map(|(value, weight)| {
        below += weight;
        (below >= QUANTILE * all).then_some(value)
    })?;
    let usual = u64::try_from(usual).ok()?;
    let matter = late.transactions >= FEWEST && late.transactions as f64 >= LEAST_SHARE * counted as f64;
    (matter && late.median_ns > usual).then(|| {
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        format!(
            "{at} the server stalled after a measurement: {} transactions were in flight, half over {:.0} ms (99th \
             percentile before: {:.1} ms). Response times exclude them",
            late.transactions,
            milliseconds(late.median_ns),
            milliseconds(usual)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_vocabulary::Operation;

    fn told(latency: &[(i64, i64)], transactions: u64, median_ms: u64) -> Option<String> {
        let rows: Vec<LatencyRow> = latency
            .iter()
            .map(|(ms, count)| LatencyRow {
                measurement: 0,
                second: 3,
                kind: LatencyKind::Service,
                operation: Operation::Transaction,
                number: None,
                name: None,
                value_ns: ms * 1_000_000,
                count: *count,
            })
            .collect();
        let median_ns = median_ms * 1_000_000;
        stalled_at_the_end(
            &rows,
            Late {
                transactions,
                median_ns,
            },
            "at 512 connections",
        )
    }

    #[test]
    fn a_stall_at_the_end_is_told() {
        let stalled = told(&[(9, 29_000), (10, 900)], 512, 4400).expect("a stall");
        assert!(
            stalled.contains("512 transactions were in flight") && stalled.contains("4400 ms"),
            "{stalled}"
        );
        assert_eq!(told(&[(9, 29_000), (10, 900)], 2, 4400), None);
    }

    #[test]
    fn a_heavy_tail_is_no_stall() {
        // 0.9 % take a second: most of what is under way at any moment is of them.
        assert_eq!(told(&[(5, 364_000), (1000, 3300)], 512, 1000), None);
        assert_eq!(told(&[(9, 29_000), (10, 900)], 512, 9), None);
    }
}
