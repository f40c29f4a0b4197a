//! Transactions that were under way when time was up.

use scaleprof_bundle::SecondRow;
use scaleprof_workload::LoadOutcome;

/// Fewer may all be slow by chance.
const FEWEST: u64 = 5;
/// From this part of all transactions on, a quantile that people look at moves.
const LEAST_SHARE: f64 = 0.001;

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

/// A warning where the server stood still when time was up: half of what was under way then took longer than 99 % of what was counted,
/// and the response times know nothing of it. In a steady load those are like all others.
pub(crate) fn stalled_at_the_end(seconds: &[SecondRow], late: Late, at: &str) -> Option<String> {
    let counted: u64 = seconds.iter().map(|row| row.transactions.max(0).unsigned_abs()).sum();
    let mut usual: Vec<i64> = seconds.iter().filter_map(|row| row.p99_ns).collect();
    usual.sort_unstable();
    let usual = u64::try_from(*usual.get(usual.len() / 2)?).ok()?;
    let matter = late.transactions >= FEWEST && late.transactions as f64 >= LEAST_SHARE * counted as f64;
    (matter && late.median_ns > usual).then(|| {
        let milliseconds = |nanoseconds: u64| nanoseconds as f64 / 1e6;
        format!(
            "{at} the server stood still when a visit\u{2019}s time was up: {} transactions that were under way then took {:.0} ms (median), \
             where 99 % of those before took less than {:.1} ms; they are not in the response times, which look better than they were",
            late.transactions,
            milliseconds(late.median_ns),
            milliseconds(usual)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds() -> Vec<SecondRow> {
        let second = |p99_ns| SecondRow {
            transactions: 5000,
            p99_ns: Some(p99_ns),
            ..empty()
        };
        vec![second(9_000_000), second(10_000_000), second(400_000_000)]
    }

    fn empty() -> SecondRow {
        SecondRow {
            visit: 0,
            second: 0,
            started_at: scaleprof_bundle::UtcMicros(0),
            duration_ns: 1_000_000_000,
            transactions: 0,
            queries: 0,
            reads: 0,
            writes: 0,
            errors: 0,
            retries: 0,
            service_sum_ns: 0,
            response_sum_ns: 0,
            inside_ns: 0,
            p50_ns: None,
            p95_ns: None,
            p99_ns: None,
            max_ns: None,
        }
    }

    #[test]
    fn a_stall_at_the_end_is_told_and_what_is_always_under_way_is_not() {
        let told = |transactions, median_ns| {
            let late = Late {
                transactions,
                median_ns,
            };
            stalled_at_the_end(&seconds(), late, "at 512 connections")
        };
        let stalled = told(512, 4_400_000_000).expect("a stall");
        assert!(
            stalled.contains("512 transactions") && stalled.contains("4400 ms"),
            "{stalled}"
        );
        assert_eq!(told(512, 8_000_000), None);
        assert_eq!(told(2, 4_400_000_000), None);
    }
}
