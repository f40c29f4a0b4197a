//! Latency of each statement of a script, or of each kind of transaction, from the histograms.

use scaleprof_analysis::latency::{Histogram, statement_label};
use scaleprof_bundle::Bundle;
use scaleprof_vocabulary::{LatencyKind, Operation};
use serde::Serialize;
use std::collections::BTreeMap;

/// Service time of one statement or kind of transaction at one rung, all measurements and all
/// seconds together, milliseconds.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Statement {
    connections: i32,
    operation: Operation,
    label: String,
    count: u64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
}

/// One entry for each rung and statement or kind; none for a workload that times all its transactions together.
pub(super) fn statements(bundle: &Bundle) -> Vec<Statement> {
    let rungs: BTreeMap<i32, i32> = bundle
        .measurements
        .iter()
        .map(|rung| (rung.measurement, rung.connections))
        .collect();
    let mut histograms: BTreeMap<(i32, Operation, i32, Option<&str>), Histogram> = BTreeMap::new();
    for row in bundle.latency.iter().filter(|row| row.kind == LatencyKind::Service) {
        if let (Some(&connections), Some(number)) = (rungs.get(&row.measurement), row.number) {
            let key = (connections, row.operation, number, row.name.as_deref());
            let histogram = histograms.entry(key).or_default();
            histogram.add(row.value_ns, row.count);
        }
    }
    let quantile_ms = |histogram: &Histogram, share: f64| Some(histogram.quantile_ns(share)? as f64 / 1e6);
    histograms
        .into_iter()
        .filter_map(|((connections, operation, number, name), histogram)| {
            Some(Statement {
                connections,
                operation,
                label: label(operation, number, name),
                count: histogram.count(),
                p50: quantile_ms(&histogram, 0.50)?,
                p95: quantile_ms(&histogram, 0.95)?,
                p99: quantile_ms(&histogram, 0.99)?,
                max: quantile_ms(&histogram, 1.0)?,
            })
        })
        .collect()
}

/// `statement 2 (SELECT)`, or the name of a kind of transaction.
fn label(operation: Operation, number: i32, name: Option<&str>) -> String {
    match operation {
        Operation::Statement => statement_label(number, name),
        Operation::Transaction => name.map_or_else(|| number.to_string(), str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_their_number_and_verb_and_kinds_of_transactions_their_name() {
        assert_eq!(label(Operation::Statement, 2, Some("SELECT")), "statement 2 (SELECT)");
        assert_eq!(label(Operation::Statement, 10, None), "statement 10");
        assert_eq!(label(Operation::Transaction, 1, Some("new_order")), "new_order");
        assert_eq!(label(Operation::Transaction, 6, None), "6");
    }
}
