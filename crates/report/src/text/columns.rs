//! The columns of the closing table.

use crate::figures::{number, percent, si, whole};
use scaleprof_bundle::{IronLaw, Latency, RungSummary, Summary};

/// One column: a cell for each rung, empty where the figure is not known.
pub(super) struct Column {
    pub(super) heading: &'static str,
    /// Its name in a sentence.
    pub(super) name: &'static str,
    pub(super) cells: Vec<String>,
    /// A shorter heading and shorter cells for a narrow terminal.
    pub(super) narrow: Option<(&'static str, Vec<String>)>,
    /// Whether figures end at the same place.
    pub(super) right: bool,
    /// Where the summary gives its reason when it is missing.
    pub(super) figure: &'static str,
    /// The lowest goes first where the terminal is narrow; none never goes.
    pub(super) worth: Option<u8>,
}

impl Column {
    /// Whether any rung has the figure.
    pub(super) fn is_measured(&self) -> bool {
        self.worth.is_none() || self.cells.iter().any(|cell| !cell.is_empty())
    }

    /// Characters across.
    pub(super) fn width(&self) -> usize {
        self.cells
            .iter()
            .map(|cell| cell.chars().count())
            .chain([self.heading.chars().count()])
            .max()
            .unwrap_or(0)
    }

    /// Why it was not measured.
    pub(super) fn reason(&self, summary: &Summary) -> String {
        let about = |figure: &str| {
            figure == self.figure
                || figure
                    .strip_suffix(self.figure)
                    .is_some_and(|before| before.ends_with('.'))
                || self
                    .figure
                    .strip_prefix(figure)
                    .is_some_and(|after| after.starts_with('.'))
        };
        let usual = if self.figure == "throughput.low" {
            "too few repeats and seconds to tell"
        } else {
            "not measured in this run"
        };
        let found = summary.missing.iter().find(|missing| about(&missing.figure));
        found.map_or_else(|| usual.into(), |missing| missing.reason.clone())
    }
}

/// Every column there is, measured or not.
pub(super) fn all(summary: &Summary) -> Vec<Column> {
    let rungs = &summary.rungs;
    let cells = |cell: &dyn Fn(&RungSummary) -> Option<String>| -> Vec<String> {
        rungs.iter().map(|rung| cell(rung).unwrap_or_default()).collect()
    };
    let law = |figure: &dyn Fn(&IronLaw) -> Option<String>| -> Vec<String> {
        cells(&|rung| rung.iron_law.as_ref().and_then(figure))
    };
    let column = |heading, name, figure, worth, cells| Column {
        heading,
        name,
        cells,
        narrow: None,
        right: true,
        figure,
        worth,
    };
    let response = |heading, name, figure, worth, of: fn(&Latency) -> Option<f64>| {
        let cell = cells(&|rung| rung.response_ms.as_ref().and_then(of).map(number));
        column(heading, name, figure, worth, cell)
    };
    // What a user of an open loop waits for: a closed one has nothing that is due.
    let responses = match rungs.iter().any(|rung| rung.response_ms.is_some()) {
        false => Vec::new(),
        true => vec![
            response(
                "due p50 ms",
                "median response time from when a transaction was due",
                "response_ms.p50",
                Some(3),
                |ms| ms.p50,
            ),
            response(
                "due p99 ms",
                "99th percentile of it",
                "response_ms.p99",
                Some(9),
                |ms| ms.p99,
            ),
        ],
    };
    let mut columns = vec![
        column(
            "connections",
            "connections",
            "connections",
            None,
            cells(&|rung| Some(rung.connections.to_string())),
        ),
        column(
            "tx/s",
            "transactions per second",
            "throughput",
            None,
            cells(&|rung| Some(number(rung.throughput.value))),
        ),
        Column {
            narrow: Some(("±95 %", cells(&half_interval))),
            ..column(
                "95 % interval",
                "95 % interval of tx/s",
                "throughput.low",
                Some(9),
                cells(&interval),
            )
        },
        column(
            "p50 ms",
            "median latency",
            "latency_ms.p50",
            Some(1),
            cells(&|rung| rung.latency_ms.p50.map(number)),
        ),
        column(
            "p99 ms",
            "99th percentile of latency",
            "latency_ms.p99",
            Some(8),
            cells(&|rung| rung.latency_ms.p99.map(number)),
        ),
        column(
            "CPU µs/tx",
            "CPU time per transaction",
            "iron_law.cpu_seconds_per_txn",
            Some(7),
            law(&|law| Some(number(law.cpu_seconds_per_txn * 1e6))),
        ),
        column(
            "instr/tx",
            "instructions per transaction",
            "iron_law.instructions_per_txn",
            Some(5),
            law(&|law| law.instructions_per_txn.map(si)),
        ),
        column(
            "CPI",
            "cycles per instruction",
            "iron_law.cycles_per_instruction",
            Some(4),
            law(&|law| law.cycles_per_instruction.map(number)),
        ),
        column(
            "server\u{2019}s CPU",
            "part of its CPUs that the server used",
            "iron_law.utilisation",
            Some(6),
            law(&|law| Some(percent(law.utilisation))),
        ),
        column(
            "switches/tx",
            "context switches per transaction",
            "context_switches_per_txn",
            Some(2),
            cells(&|rung| rung.context_switches_per_txn.map(number)),
        ),
        Column {
            right: false,
            ..column(
                "",
                "remarks",
                "remarks",
                None,
                cells(&|rung| Some(remarks(rung, summary))),
            )
        },
    ];
    let behind_latency = columns.iter().position(|column| column.figure == "latency_ms.p99");
    let place = behind_latency.map_or(columns.len(), |place| place + 1);
    columns.splice(place..place, responses);
    columns
}

fn interval(rung: &RungSummary) -> Option<String> {
    Some(format!(
        "{} – {}",
        number(rung.throughput.low?),
        number(rung.throughput.high?)
    ))
}

/// The longer half of the interval, as a share of the estimate.
fn half_interval(rung: &RungSummary) -> Option<String> {
    let at = rung.throughput;
    Some(percent((at.high? - at.value).max(at.value - at.low?) / at.value))
}

fn remarks(rung: &RungSummary, summary: &Summary) -> String {
    let mut remarks = Vec::new();
    if let Some(verdict) = &summary.verdict {
        if verdict.peak_connections == rung.connections && summary.rungs.len() > 1 {
            remarks.push("peak".to_owned());
        }
        if verdict.falls_over_at == Some(rung.connections) {
            remarks.push("falls over".into());
        }
    }
    if !rung.steady {
        remarks.push("not steady".into());
    }
    if rung.client_limited {
        remarks.push("client-limited".into());
    }
    let errors: u64 = rung.errors.values().sum();
    if errors > 0 {
        remarks.push(format!("{} error{}", whole(errors), if errors == 1 { "" } else { "s" }));
    }
    remarks.join(", ")
}
