//! Where the connections' time goes, beneath the rungs.

use super::Style;
use super::columns::Column;
use super::functions::{apart, without_parameters};
use super::layout::{self, Ink, RowInk};
use crate::figures::{number, percent};
use scaleprof_analysis::condition::waits_at_condition_variable;
use scaleprof_analysis::numbers::counted;
use scaleprof_analysis::wait_graph::{held_behind_condition, in_one_word};
use scaleprof_bundle::{CallPath, RungSummary, Summary};
use scaleprof_vocabulary::ThreadState;

/// Call paths that are shown of the last rung.
const MOST_PATHS: usize = 5;
/// Locks that are named.
const MOST_LOCKS: usize = 3;

/// Time per transaction by state at every rung, and the heaviest call paths of the last one, so far as they were measured.
pub(super) fn table(summary: &Summary, ink: &Ink, style: Style, wrap_at: usize) -> Option<String> {
    if summary.rungs.iter().all(|rung| rung.ledger.is_none()) {
        return None;
    }
    let counted = summary.rungs.iter().any(|rung| rung.effective_concurrency.is_some());
    let at_work = if counted {
        "; connections at work on average"
    } else {
        ""
    };
    let heading = format!("Where the connections\u{2019} time goes, \u{b5}s per transaction{at_work}:");
    let mut out = layout::wrap(&heading, wrap_at, "  ") + "\n";
    let (shown, hidden) = layout::fit(columns(summary), style.width);
    out.push_str(&layout::grid(&shown, &summary.rungs, ink, row_ink));
    if !hidden.is_empty() {
        let names: Vec<&str> = hidden.iter().map(|column| column.name).collect();
        let note = format!("Omitted at this width: {}.", names.join(", "));
        out.push_str(&ink.dim(&layout::wrap(&note, wrap_at, "  ")));
        out.push('\n');
    }
    if let Some(note) = waits_seen(summary) {
        out.push_str(&ink.dim(&layout::wrap(&note, wrap_at, "  ")));
        out.push('\n');
    }
    if let Some(paths) = summary
        .rungs
        .last()
        .and_then(|rung| heaviest(rung, is_busy(summary, rung.connections), style.width, wrap_at))
    {
        out.push('\n');
        out.push_str(&paths);
    }
    let product = &summary.server.product;
    if let Some(locks) = summary.rungs.last().and_then(|rung| locks(rung, product)) {
        out.push_str(&layout::wrap(&locks, wrap_at, "  "));
        out.push('\n');
    }
    Some(out)
}

/// For which part of the time it was seen what threads wait for, where that is not all of it.
fn waits_seen(summary: &Summary) -> Option<String> {
    let shares = summary
        .rungs
        .iter()
        .filter_map(|rung| rung.ledger.as_ref()?.observed_waits_share);
    let (least, most) = shares.fold((1.0, 0.0), |(least, most): (f64, f64), share| {
        (least.min(share), most.max(share))
    });
    if most == 0.0 || least > 0.99 {
        return None;
    }
    let of = match most - least < 0.01 {
        true => percent(least),
        false => format!("{} to {}", percent(least), percent(most)),
    };
    Some(format!(
        "Wait tracing ran {of} of the time to limit overhead; cpu and runq are exact."
    ))
}

/// A ledger that does not close is not to be relied on.
fn row_ink(rung: &RungSummary) -> RowInk {
    match rung.ledger.as_ref().and_then(|ledger| ledger.residual) {
        Some(residual) if residual.abs() > 0.02 => RowInk::Doubtful,
        _ => RowInk::Plain,
    }
}

/// Why there is no ledger, where the summary says it.
pub(super) fn reason(summary: &Summary) -> Option<String> {
    let found = summary.missing.iter().find(|missing| missing.figure == "ledger")?;
    let is_shown = summary.rungs.is_empty() || summary.rungs.iter().any(|rung| rung.ledger.is_some());
    (!is_shown).then(|| format!("Not shown: where the connections\u{2019} time goes ({})", found.reason))
}

/// What a state's column is worth where there is no room for all.
const fn worth(state: ThreadState) -> u8 {
    match state {
        ThreadState::Cpu => 9,
        ThreadState::Lock => 8,
        ThreadState::RunQueue => 7,
        ThreadState::Spin => 6,
        ThreadState::Io => 5,
        ThreadState::Net => 3,
        ThreadState::Other => 2,
        ThreadState::Sleep => 1,
        ThreadState::Idle => 0,
    }
}

/// N/X, a column for each state that has any time, and the residual.
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
    if summary.rungs.iter().any(|rung| rung.effective_concurrency.is_some()) {
        let at_work = cells(&|rung| rung.effective_concurrency.map(number));
        found.push(column("at work", Some(7), at_work));
    }
    for state in ThreadState::ALL {
        let seconds = |rung: &RungSummary| rung.ledger.as_ref()?.seconds_per_txn[state];
        // A state that no thread was ever in only takes room.
        if summary.rungs.iter().filter_map(seconds).any(|seconds| seconds > 0.0) {
            found.push(column(
                state.name(),
                Some(worth(state)),
                cells(&|rung| seconds(rung).map(micros)),
            ));
        }
    }
    found.push(column(
        "residual",
        Some(4),
        cells(&|rung| rung.ledger.as_ref()?.residual.map(percent)),
    ));
    found
}

/// The locks that were waited for longest, with who held them or, where that was not seen, who woke those that waited.
fn locks(rung: &RungSummary, product: &str) -> Option<String> {
    let place = |path: &[String]| {
        let is_whole = path
            .first()
            .is_some_and(|outermost| !outermost.starts_with("[incomplete"));
        let function = in_one_word(product, path).filter(|_| is_whole)?;
        Some(without_parameters(function).to_owned())
    };
    let named: Vec<String> = rung
        .locks
        .iter()
        .map(|lock| {
            let is_condition = waits_at_condition_variable(&lock.waiter);
            let held = held_behind_condition(product, &lock.waiter).filter(|_| is_condition);
            let name = match (held, &lock.name, place(&lock.waiter)) {
                (Some(what), _, _) => what,
                (None, Some(name), _) if is_condition => format!("the condition variable {name}"),
                (None, Some(name), _) => name.clone(),
                (None, None, Some(function)) if is_condition => format!("a condition variable, in {function}"),
                (None, None, Some(function)) => format!("one on the heap, in {function}"),
                (None, None, None) => "one on the heap".to_owned(),
            };
            let other = match (place(&lock.holder), place(&lock.waker)) {
                (Some(holder), _) if !is_condition => format!(", held in {holder}"),
                (_, Some(waker)) => format!(", woken in {waker}"),
                _ => String::new(),
            };
            format!("{name} ({}{other})", number(lock.seconds_per_txn.value * 1e6))
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

/// Whether every CPU was busy at a rung, as far as the scaling profile says.
fn is_busy(summary: &Summary, connections: u32) -> bool {
    let profile = summary.scaling.iter().flat_map(|profile| &profile.rungs);
    profile
        .into_iter()
        .any(|rung| rung.connections == connections && rung.cpus_busy)
}

/// The heaviest call paths of a rung. Waiting for the client is no work of the server's and is left out; waiting for a CPU stands
/// behind all else while every CPU is busy, since it is no cause then.
fn heaviest(rung: &RungSummary, cpus_busy: bool, width: Option<usize>, wrap_at: usize) -> Option<String> {
    let is_apart = |path: &&CallPath| cpus_busy && path.state == ThreadState::RunQueue;
    let of_server = || rung.paths.iter().filter(|path| !path.state.waits_for_work());
    let shown: Vec<&CallPath> = of_server().filter(|path| !is_apart(path)).take(MOST_PATHS).collect();
    let waiting: f64 = of_server()
        .filter(is_apart)
        .map(|path| path.seconds_per_txn.value)
        .sum();
    if shown.is_empty() {
        return None;
    }
    let heading = format!(
        "Heaviest call paths at {}, \u{b5}s per transaction, innermost function first:",
        counted(rung.connections, "connection")
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
                path.state.name().to_owned(),
            ]
        })
        .collect();
    let widest = |column: usize| figures.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [value, half, state] = [widest(0), widest(1), widest(2)];
    let named = apart(shown.iter().map(|path| (path.state, path.path.as_slice())), 4);
    for (row, path) in figures.iter().zip(&named) {
        let mut line = format!("{:>value$}  {:>half$}  {:<state$}  ", row[0], row[1], row[2]);
        line.push_str(path);
        match width {
            Some(width) if line.chars().count() > width => {
                out.extend(line.chars().take(width.saturating_sub(1)));
                out.push('\u{2026}');
            }
            _ => out.push_str(&line),
        }
        out.push('\n');
    }
    if waiting > 0.0 {
        let apart = format!(
            "Apart from these, waiting for a CPU (runq, {} \u{b5}s in the heaviest paths): not a cause while every CPU is busy.",
            number(waiting * 1e6)
        );
        out.push_str(&layout::wrap(&apart, wrap_at, "  "));
        out.push('\n');
    }
    Some(out)
}
