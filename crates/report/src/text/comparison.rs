//! What changed between two runs, in a terminal.

use super::functions::innermost_in_state;
use super::layout::{Ink, wrap};
use super::{Style, USUAL_WIDTH};
use crate::figures::{number, percent};
use crate::grid::grid;
use scaleprof_analysis::Per;
use scaleprof_analysis::comparison::{Comparison, Course, FALSE_ALARMS, Pair, PathChange, RungChange};
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ThreadState;

/// Functions that are shown of a call path.
const MOST_FUNCTIONS: usize = 5;
/// Call paths that are shown of a rung, and settings.
const MOST_PATHS: usize = 8;
const MOST_SETTINGS: usize = 30;
/// Letters of a value.
const MOST_LETTERS: usize = 44;
const UNKNOWN: &str = "\u{2013}";

/// The sentence, what differs beside, the rungs, their states, the call paths, and the warnings; ends with a newline.
/// `names` say which run is which, such as the names of their folders.
pub fn table(comparison: &Comparison, names: [&str; 2], style: Style) -> String {
    let ink = Ink::new(style.colour);
    let wrap_at = style.width.unwrap_or(USUAL_WIDTH).max(20);
    let [a, b] = &comparison.servers;
    let begun = |at: &str| {
        if at.is_empty() {
            String::new()
        } else {
            format!(", run of {}", moment(at))
        }
    };
    let [began_a, began_b] = comparison.started_at.each_ref().map(|at| begun(at));
    let mut out = format!("A: {} ({a}{began_a})\nB: {} ({b}{began_b})\n\n", names[0], names[1]);
    out.push_str(&differences(comparison));
    let unit = unit(comparison.per);
    if comparison.per == Per::Transaction {
        out.push_str("Per rung, B over A:\n\n");
        out.push_str(&rungs(&comparison.rungs));
        out.push('\n');
    }
    if let Some(states) = states(comparison.per, &comparison.rungs) {
        out.push_str(&format!("Where the connections\u{2019} time goes, {unit}, A to B:\n\n"));
        out.push_str(&states);
        out.push('\n');
    }
    if let Some(kinds) = code_kinds(comparison.per, &comparison.rungs) {
        let cause = comparison.unpaired.as_deref().unwrap_or_default();
        let why = format!("{cause}, so call paths cannot be paired. The same time by kind of code, {unit}, A to B:");
        out.push_str(&wrap(&why, wrap_at, "  "));
        out.push_str("\n\n");
        out.push_str(&kinds);
        out.push('\n');
    }
    out.push_str(&paths(comparison, &ink, wrap_at));
    if let Some(told) = told(comparison.per, &comparison.rungs) {
        out.push_str(&format!("What the listed paths explain of the change, {unit}:\n\n"));
        out.push_str(&told);
        out.push('\n');
    }
    for (note, at) in notes(&comparison.rungs) {
        let note = match comparison.per {
            Per::Transaction => format!("At {at} connections: {note}"),
            Per::Second => capitalised(note),
        };
        out.push_str(&ink.dim(&wrap(&note, wrap_at, "  ")));
        out.push('\n');
    }
    for warning in &comparison.warnings {
        out.push_str(&ink.yellow(&wrap(&format!("Warning: {warning}"), wrap_at, "  ")));
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&ink.bold(&wrap(&comparison.sentence, wrap_at, "")));
    out.push('\n');
    out
}

/// What times are given in.
fn unit(per: Per) -> &'static str {
    match per {
        Per::Transaction => "\u{b5}s per transaction",
        Per::Second => "\u{b5}s per second",
    }
}

/// A rung in the first column of a table, which has no heading where there is one without connections.
fn place(per: Per, rung: &RungChange) -> String {
    match per {
        Per::Transaction => rung.connections.to_string(),
        Per::Second => String::new(),
    }
}

/// The heading above it.
fn places(per: Per) -> &'static str {
    match per {
        Per::Transaction => "connections",
        Per::Second => "",
    }
}

/// The notes of all rungs, each once with the rungs that it is about.
fn notes(rungs: &[RungChange]) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, Vec<String>)> = Vec::new();
    for rung in rungs {
        for note in &rung.notes {
            let at = rung.connections.to_string();
            match found.iter_mut().find(|(known, _)| known == note) {
                Some((_, rungs)) => rungs.push(at),
                None => found.push((note, vec![at])),
            }
        }
    }
    found.into_iter().map(|(note, at)| (note, at.join(", "))).collect()
}

/// What is not the same beside the figures; empty where all is.
fn differences(comparison: &Comparison) -> String {
    let known = |value: &Option<String>| match value.as_deref() {
        None => UNKNOWN.to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(long) if long.chars().count() > MOST_LETTERS => {
            long.chars().take(MOST_LETTERS - 1).chain(['\u{2026}']).collect()
        }
        Some(value) => value.to_owned(),
    };
    let mut rows: Vec<Vec<String>> = comparison
        .differences
        .iter()
        .map(|one| vec![format!("  {}", one.what), known(&one.a), known(&one.b)])
        .collect();
    // Another version has other settings; those that both have say more.
    let (both, one_sided): (Vec<_>, Vec<_>) = comparison
        .settings
        .iter()
        .partition(|setting| setting.a.is_some() && setting.b.is_some());
    rows.extend(
        both.iter()
            .take(MOST_SETTINGS)
            .map(|setting| vec![format!("  {}", setting.name), known(&setting.a), known(&setting.b)]),
    );
    if rows.is_empty() && one_sided.is_empty() {
        return String::new();
    }
    rows.insert(0, ["not the same", "A", "B"].map(str::to_owned).to_vec());
    let mut out = grid(&rows, &[0, 1, 2]);
    let more = both.len().saturating_sub(MOST_SETTINGS);
    if more > 0 {
        out.push_str(&format!("  and {more} more settings, with --json\n"));
    }
    if !one_sided.is_empty() {
        let count = one_sided.len();
        let settings = if count == 1 { "setting" } else { "settings" };
        out.push_str(&format!(
            "  and {count} {settings} that only one of them has, with --json\n"
        ));
    }
    out.push('\n');
    out
}

fn ratio(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else {
        return UNKNOWN.to_owned();
    };
    match estimate.low.zip(estimate.high) {
        Some((low, high)) => format!("{:.2} ({low:.2} to {high:.2})", estimate.value),
        None => format!("{:.2} (no interval)", estimate.value),
    }
}

fn rungs(rungs: &[RungChange]) -> String {
    let known = |figure: Option<f64>| figure.map_or_else(|| UNKNOWN.to_owned(), number);
    let headings = [
        "connections",
        "measurements",
        "tx/s A",
        "tx/s B",
        "ratio (95 % interval)",
        "CPU \u{b5}s/tx A",
        "B",
        "ratio (95 % interval)",
        "p95 ms A",
        "B",
        "",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(rungs.iter().map(|rung| {
        let micros = |seconds: Option<f64>| known(seconds.map(|seconds| seconds * 1e6));
        vec![
            rung.connections.to_string(),
            format!("{}, {}", rung.measurements[0], rung.measurements[1]),
            known(rung.throughput.a),
            known(rung.throughput.b),
            ratio(rung.throughput_ratio),
            micros(rung.cpu_seconds_per_txn.a),
            micros(rung.cpu_seconds_per_txn.b),
            ratio(rung.cpu_ratio),
            known(rung.p95_ms.a),
            known(rung.p95_ms.b),
            match rung.throughput_p {
                Some(p) if p <= FALSE_ALARMS => "changed".to_owned(),
                _ => String::new(),
            },
        ]
    }));
    grid(&rows, &[10])
}

fn states(per: Per, rungs: &[RungChange]) -> Option<String> {
    let mut names: Vec<ThreadState> = Vec::new();
    for state in rungs.iter().flat_map(|rung| &rung.states) {
        if !names.contains(&state.state) {
            names.push(state.state);
        }
    }
    if names.is_empty() {
        return None;
    }
    let micros = |seconds: Option<f64>| seconds.map_or_else(|| UNKNOWN.to_owned(), |seconds| number(seconds * 1e6));
    let mut rows = vec![
        [places(per)]
            .into_iter()
            .chain(names.iter().map(|state| state.name()))
            .map(str::to_owned)
            .collect::<Vec<_>>(),
    ];
    rows.extend(rungs.iter().map(|rung| {
        let cell = |name: &ThreadState| {
            let state = rung.states.iter().find(|state| state.state == *name);
            let Some(Pair { a, b }) = state.map(|state| state.seconds_per_txn) else {
                return UNKNOWN.to_owned();
            };
            format!("{} \u{2192} {}", micros(a), micros(b))
        };
        [place(per, rung)].into_iter().chain(names.iter().map(cell)).collect()
    }));
    Some(grid(&rows, &[]))
}

/// A row a kind of code, a column a rung; none where call paths are compared.
fn code_kinds(per: Per, rungs: &[RungChange]) -> Option<String> {
    let mut kinds: Vec<&str> = Vec::new();
    for kind in rungs.iter().flat_map(|rung| &rung.code_kinds) {
        if !kinds.contains(&kind.kind.as_str()) {
            kinds.push(&kind.kind);
        }
    }
    if kinds.is_empty() {
        return None;
    }
    let micros = |seconds: Option<f64>| seconds.map_or_else(|| UNKNOWN.to_owned(), |seconds| number(seconds * 1e6));
    let heading = rungs.iter().map(|rung| match per {
        Per::Transaction => format!("at {}", rung.connections),
        Per::Second => String::new(),
    });
    let mut rows: Vec<Vec<String>> = vec![["kind of code".to_owned()].into_iter().chain(heading).collect()];
    rows.extend(kinds.iter().map(|kind| {
        let cells = rungs.iter().map(|rung| {
            let found = rung.code_kinds.iter().find(|one| one.kind == *kind);
            found.map_or_else(
                || UNKNOWN.to_owned(),
                |one| {
                    format!(
                        "{} \u{2192} {}",
                        micros(one.seconds_per_txn.a),
                        micros(one.seconds_per_txn.b)
                    )
                },
            )
        });
        [(*kind).to_owned()].into_iter().chain(cells).collect()
    }));
    Some(grid(&rows, &[0]))
}

/// Such as `2026-11-22 11:24 UTC` of `2026-11-22T11:24:01Z`; another text as it is.
fn moment(at: &str) -> String {
    match (at.get(..10), at.get(10..11), at.get(11..16)) {
        (Some(day), Some("T"), Some(time)) => format!("{day} {time} UTC"),
        _ => at.to_owned(),
    }
}

fn paths(comparison: &Comparison, ink: &Ink, wrap_at: usize) -> String {
    let mut out = String::new();
    for rung in &comparison.rungs {
        let here: Vec<&PathChange> = comparison
            .paths
            .iter()
            .filter(|path| path.connections == rung.connections)
            .collect();
        if here.is_empty() {
            continue;
        }
        let tested = here.iter().any(|path| path.p.is_some());
        let at = match comparison.per {
            Per::Transaction => format!(" at {} connections", rung.connections),
            Per::Second => String::new(),
        };
        let heading = match (tested, comparison.per) {
            (true, _) => format!("Call paths with a significant change{at}:"),
            (false, Per::Transaction) => {
                format!("Call paths with the largest change{at}; too few measurements for significance:")
            }
            (false, Per::Second) => "Call paths with the largest change; significance unknown:".to_owned(),
        };
        out.push_str(&ink.bold(&wrap(&heading, wrap_at, "  ")));
        out.push_str("\n\n");
        if (rung.uniform_slowdown - 1.0).abs() > 0.02 {
            let alike = format!(
                "Uniform slowdown: all functions take {:.2} times as long in B. The figures below exclude it.",
                rung.uniform_slowdown
            );
            out.push_str(&wrap(&alike, wrap_at, "  "));
            out.push_str("\n\n");
        }
        for path in here.iter().take(MOST_PATHS) {
            out.push_str(&one_path(path, comparison, rung.busy, wrap_at));
        }
        let more = here.len().saturating_sub(MOST_PATHS);
        if more > 0 {
            out.push_str(&format!("  and {more} more, with --json\n"));
        }
        out.push('\n');
    }
    out
}

fn signed(seconds: f64) -> String {
    format!("{}{}", if seconds > 0.0 { "+" } else { "" }, number(seconds * 1e6))
}

/// What the listed paths leave of the change of each rung.
fn told(per: Per, rungs: &[RungChange]) -> Option<String> {
    let headings = [
        places(per),
        "in all",
        "uniform slowdown",
        "paths listed",
        "unexplained (95 % interval)",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(rungs.iter().filter_map(|rung| {
        let told = rung.unexplained?;
        let limits = told.not_listed.low.zip(told.not_listed.high);
        let interval = limits.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", signed(low), signed(high))
        });
        Some(vec![
            place(per, rung),
            signed(told.total),
            signed(told.uniform),
            signed(told.listed),
            format!("{}{interval}", signed(told.not_listed.value)),
        ])
    }));
    (rows.len() > 1).then(|| grid(&rows, &[]))
}

fn one_path(path: &PathChange, comparison: &Comparison, busy: bool, wrap_at: usize) -> String {
    let micros = |seconds: f64| number(seconds * 1e6);
    let of = match (comparison.per, busy) {
        (Per::Transaction, true) => "of a transaction\u{2019}s CPU time",
        (Per::Transaction, false) => "of a transaction\u{2019}s time",
        (Per::Second, _) => "of its threads\u{2019} time",
    };
    let limits = path.change.low.zip(path.change.high);
    let interval = limits.map_or(String::new(), |(low, high)| {
        format!(" ({} to {})", signed(low), signed(high))
    });
    let known = |seconds: Option<f64>| seconds.map_or_else(|| UNKNOWN.to_owned(), micros);
    let first = format!(
        "{} \u{b5}s{interval}, {}{} {of}: {}",
        signed(path.change.value),
        if path.share > 0.0 { "+" } else { "\u{2212}" },
        percent(path.share.abs()),
        in_words(comparison.per, path.course)
    );
    let mut out = format!("  {}\n", wrap(&first, wrap_at.saturating_sub(2), "    "));
    let functions = innermost_in_state(
        path.state.waits_in().unwrap_or(ThreadState::Cpu),
        &path.path,
        MOST_FUNCTIONS,
    )
    .join(" < ");
    let second = format!("{} in {functions}", path.state.name());
    out.push_str(&format!("    {}\n", wrap(&second, wrap_at.saturating_sub(4), "      ")));
    let mut third = format!(
        "{} \u{b5}s in A, {} \u{b5}s in B",
        known(path.seconds_per_txn.a),
        known(path.seconds_per_txn.b)
    );
    if let Some((beyond, base)) = path.beyond_base.zip(comparison.base_rung) {
        let limits = beyond.low.zip(beyond.high);
        let interval = limits.map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", signed(low), signed(high))
        });
        third.push_str(&format!(
            "; {} \u{b5}s{interval} beyond the change at {base} connections",
            signed(beyond.value)
        ));
    }
    out.push_str(&format!("    {}\n", wrap(&third, wrap_at.saturating_sub(4), "      ")));
    out
}

fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn in_words(per: Per, course: Course) -> &'static str {
    match course {
        // Nobody knows whether the same work was done.
        Course::Slower if per == Per::Second => "takes more of a second",
        Course::Faster if per == Per::Second => "takes less of a second",
        Course::New => "new, only B has it",
        Course::Gone => "gone, only A has it",
        Course::ScalesWorse => "scales worse",
        Course::ScalesBetter => "scales better",
        Course::SlowerEverywhere => "slower everywhere",
        Course::FasterEverywhere => "faster everywhere",
        Course::Slower => "slower here",
        Course::Faster => "faster here",
    }
}
