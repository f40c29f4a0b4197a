//! The ladder in figures: throughput, latency, CPU, and where the connections' time goes.

use super::Section;
use super::words::block;
use crate::figures::{number, percent};
use crate::grid::grid;
use scaleprof_bundle::{RungSummary, Summary};
use scaleprof_vocabulary::ThreadState;

const UNKNOWN: &str = "\u{2013}";

/// One line a rung; none where none was measured.
pub(super) fn throughput(summary: &Summary) -> Option<Section> {
    if summary.rungs.is_empty() {
        return None;
    }
    let headings = [
        "connections",
        "tx/s",
        "95 % interval",
        "p95 ms",
        "p99 ms",
        "CPU \u{b5}s/tx",
        "CPUs busy",
        "switches/tx",
        "",
    ];
    let mut rows: Vec<Vec<String>> = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(summary.rungs.iter().map(|rung| line(rung, summary)));
    Some(("Throughput", block(&grid(&rows, &[8]))))
}

fn line(rung: &RungSummary, summary: &Summary) -> Vec<String> {
    let known = |figure: Option<f64>| figure.map_or_else(|| UNKNOWN.to_owned(), number);
    let at = rung.throughput;
    let interval = at.low.zip(at.high);
    let law = rung.iron_law.as_ref();
    let mut remarks: Vec<String> = Vec::new();
    if let Some(verdict) = &summary.verdict {
        if verdict.peak_connections == rung.connections {
            remarks.push("peak".to_owned());
        }
        if verdict.falls_over_at == Some(rung.connections) {
            remarks.push("falls over".to_owned());
        }
    }
    if !rung.steady {
        remarks.push("not steady".to_owned());
    }
    if rung.client_limited {
        remarks.push("client-limited".to_owned());
    }
    let errors: Vec<String> = rung
        .errors
        .iter()
        .map(|(error, count)| format!("{count} x error {error}"))
        .collect();
    remarks.extend(errors);
    vec![
        rung.connections.to_string(),
        number(at.value),
        interval.map_or_else(
            || UNKNOWN.to_owned(),
            |(low, high)| format!("{} \u{2013} {}", number(low), number(high)),
        ),
        known(rung.latency_ms.p95),
        known(rung.latency_ms.p99),
        known(law.map(|law| law.cpu_seconds_per_txn * 1e6)),
        // What is idle is what counts, whoever keeps the CPUs busy.
        rung.busy_share
            .or(law.map(|law| law.utilisation))
            .map_or_else(|| UNKNOWN.to_owned(), percent),
        known(rung.context_switches_per_txn),
        remarks.join(", "),
    ]
}

/// Microseconds of the connections' threads per transaction by state; none where they were not watched.
pub(super) fn states(summary: &Summary) -> Option<Section> {
    let ledgers: Vec<_> = summary
        .rungs
        .iter()
        .filter_map(|rung| Some((rung.connections, rung.ledger.as_ref()?)))
        .collect();
    let is_used = |state: &ThreadState| {
        let mut ledgers = ledgers.iter();
        ledgers.any(|(_, ledger)| ledger.seconds_per_txn[*state] > Some(0.0))
    };
    let shown: Vec<ThreadState> = ThreadState::ALL.into_iter().filter(is_used).collect();
    let heading = ["connections", "N/X"]
        .into_iter()
        .chain(shown.iter().map(|state| state.name()))
        .chain(["residual"]);
    let mut rows: Vec<Vec<String>> = vec![heading.map(str::to_owned).collect()];
    let micros = |seconds: Option<f64>| seconds.map_or_else(|| UNKNOWN.to_owned(), |seconds| number(seconds * 1e6));
    rows.extend(ledgers.iter().map(|(connections, ledger)| {
        let states = shown.iter().map(|state| micros(ledger.seconds_per_txn[*state]));
        [connections.to_string(), micros(ledger.connections_over_throughput)]
            .into_iter()
            .chain(states)
            .chain([ledger.residual.map_or_else(|| UNKNOWN.to_owned(), percent)])
            .collect()
    }));
    let legend = "cpu: running; spin: spinning; runq: runnable without a CPU; lock: in a futex; io: waiting for a \
                  disk; net: waiting for the client. The states add up to connections over throughput, N/X, but for \
                  the residual.";
    (!ledgers.is_empty()).then(|| {
        (
            "Where the connections' time goes, \u{b5}s per transaction",
            format!("{}\n{legend}\n", block(&grid(&rows, &[]))),
        )
    })
}
