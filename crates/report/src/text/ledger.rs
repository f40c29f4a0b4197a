//! Where the connections' time goes, beneath the rungs.

use super::Style;
use super::columns::Column;
use super::functions::{innermost, innermost_waiting};
use super::layout::{self, Ink, RowInk};
use crate::figures::{number, percent};
use scaleprof_analysis::condition::waits_at_condition_variable;
use scaleprof_bundle::{CallPath, RungSummary, Summary};

/// Call paths that are shown of the last rung.
const MOST_PATHS: usize = 5;
/// Locks that are named.
const MOST_LOCKS: usize = 3;

/// Time per transaction by state at every rung, and the heaviest call paths of the last one, so far as they were measured.
pub(super) fn table(summary: &Summary, ink: &Ink, style: Style, wrap_at: usize) -> Option<String> {
    if summary.rungs.iter().all(|rung| rung.ledger.is_none()) {
        return None;
    }
    let heading = "Where the connections\u{2019} time goes, \u{b5}s per transaction:";
    let mut out = layout::wrap(heading, wrap_at, "  ") + "\n";
    let (shown, hidden) = layout::fit(columns(summary), style.width);
    out.push_str(&layout::grid(&shown, &summary.rungs, ink, row_ink));
    if !hidden.is_empty() {
        let names: Vec<&str> = hidden.iter().map(|column| column.name).collect();
        let note = format!("Left out at this width: {}.", names.join(", "));
        out.push_str(&ink.dim(&layout::wrap(&note, wrap_at, "  ")));
        out.push('\n');
    }
    if let Some(paths) = summary
        .rungs
        .last()
        .and_then(|rung| heaviest(rung, style.width, wrap_at))
    {
        out.push('\n');
        out.push_str(&paths);
    }
    if let Some(locks) = summary.rungs.last().and_then(locks) {
        out.push_str(&layout::wrap(&locks, wrap_at, "  "));
        out.push('\n');
    }
    Some(out)
}

/// A ledger that does not close is not to be relied on.
fn row_ink(rung: &RungSummary) -> RowInk {
    match rung.ledger.as_ref().and_then(|ledger| ledger.residue) {
        Some(residue) if residue.abs() > 0.02 => RowInk::Doubtful,
        _ => RowInk::Plain,
    }
}

/// Why there is no ledger, where the summary says it.
pub(super) fn reason(summary: &Summary) -> Option<String> {
    let found = summary.missing.iter().find(|missing| missing.figure == "ledger")?;
    let is_shown = summary.rungs.is_empty() || summary.rungs.iter().any(|rung| rung.ledger.is_some());
    (!is_shown).then(|| format!("Not shown: where the connections\u{2019} time goes ({})", found.reason))
}

/// N/X, a column for each state that has any time, and the residue.
fn columns(summary: &Summary) -> Vec<Column> {
    let cells = |cell: &dyn Fn(&RungSummary) -> Option<String>| -> Vec<String> {
        summary
            .rungs
            .iter()
            .map(|rung| cell(rung).unwrap_or_default())
            .collect()
    };
    let micros = |seconds: f64| number(seconds * 1e6);
    let column = |heading, worth, cells| Column {
        heading,
        name: heading,
        cells,
        narrow: None,
        right: true,
        figure: "ledger",
        worth,
    };
    let mut found = vec![
        column("connections", None, cells(&|rung| Some(rung.connections.to_string()))),
        column(
            "N/X",
            None,
            cells(&|rung| rung.ledger.as_ref()?.connections_over_throughput.map(micros)),
        ),
    ];
    let states = [
        ("cpu", 9),
        ("spin", 6),
        ("runq", 7),
        ("lock", 8),
        ("io", 5),
        ("net", 3),
        ("sleep", 1),
        ("other", 2),
    ];
    for (place, (state, worth)) in states.into_iter().enumerate() {
        let seconds = |rung: &RungSummary| rung.ledger.as_ref()?.seconds_per_txn.named()[place].1;
        // A state that no thread was ever in only takes room.
        if summary.rungs.iter().filter_map(seconds).any(|seconds| seconds > 0.0) {
            found.push(column(state, Some(worth), cells(&|rung| seconds(rung).map(micros))));
        }
    }
    found.push(column(
        "residue",
        Some(4),
        cells(&|rung| rung.ledger.as_ref()?.residue.map(percent)),
    ));
    found
}

/// The locks with a name that were waited for longest.
fn locks(rung: &RungSummary) -> Option<String> {
    let named: Vec<String> = rung
        .locks
        .iter()
        .map(|lock| {
            let waiting = innermost_waiting(&lock.waiting, 1);
            let is_condition = waits_at_condition_variable(&lock.waiting);
            let name = match (&lock.name, waiting.first()) {
                (Some(name), _) if is_condition => format!("the condition variable {name}"),
                (Some(name), _) => name.clone(),
                (None, Some(function)) if is_condition => format!("a condition variable, in {function}"),
                (None, Some(function)) => format!("one on the heap, in {function}"),
                (None, None) => "one on the heap".to_owned(),
            };
            let holder = innermost_waiting(&lock.holder, 1);
            let held = holder
                .first()
                .filter(|_| !is_condition)
                .map_or_else(String::new, |holder| format!(", held in {holder}"));
            format!("{name} ({}{held})", number(lock.seconds_per_txn.value * 1e6))
        })
        .take(MOST_LOCKS)
        .collect();
    (!named.is_empty()).then(|| {
        format!(
            "Locks waited for longest, \u{b5}s per transaction: {}.",
            named.join("; ")
        )
    })
}

/// The heaviest call paths of a rung. Waiting for the client is no work of the server's and is left out.
fn heaviest(rung: &RungSummary, width: Option<usize>, wrap_at: usize) -> Option<String> {
    let shown: Vec<&CallPath> = rung
        .paths
        .iter()
        .filter(|path| path.state != "net")
        .take(MOST_PATHS)
        .collect();
    if shown.is_empty() {
        return None;
    }
    let plural = if rung.connections == 1 { "" } else { "s" };
    let heading = format!(
        "Heaviest call paths at {} connection{plural}, \u{b5}s per transaction, innermost function first:",
        rung.connections
    );
    let mut out = layout::wrap(&heading, wrap_at, "  ") + "\n";
    let figures: Vec<[String; 3]> = shown
        .iter()
        .map(|path| {
            let time = path.seconds_per_txn;
            let half = time.high.map(|high| (high - time.value) * 1e6);
            [
                number(time.value * 1e6),
                half.map_or_else(String::new, |half| format!("\u{b1}{}", number(half))),
                path.state.clone(),
            ]
        })
        .collect();
    let widest = |column: usize| figures.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [value, half, state] = [widest(0), widest(1), widest(2)];
    for (row, path) in figures.iter().zip(&shown) {
        let mut line = format!("{:>value$}  {:>half$}  {:<state$}  ", row[0], row[1], row[2]);
        line.push_str(&innermost(path, 4).join(" < "));
        match width {
            Some(width) if line.chars().count() > width => {
                out.extend(line.chars().take(width.saturating_sub(1)));
                out.push('\u{2026}');
            }
            _ => out.push_str(&line),
        }
        out.push('\n');
    }
    Some(out)
}
