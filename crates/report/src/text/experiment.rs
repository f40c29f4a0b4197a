//! An experiment in a terminal.

use super::layout::{Ink, wrap};
use super::{Style, USUAL_WIDTH};
use crate::figures::{number, percent};
use crate::grid::grid;
use scaleprof_analysis::comparison::{Comparison, PathChange};
use scaleprof_analysis::numbers::grouped;
use scaleprof_analysis::trials::{
    Change, Compared, ComparisonTold, ExperimentState, Outcome, RungCompared, VariantTold,
};
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ExperimentVerdict;

const UNKNOWN: &str = "\u{2013}";
/// Call paths of a watched run that are shown.
const MOST_PATHS: usize = 5;
/// Warnings; every start may have met another.
const MOST_WARNINGS: usize = 6;
/// Functions of a call path.
const MOST_FUNCTIONS: usize = 4;

/// The variants, every variant against the base by rung with intervals, where the change comes from, what the session is worth, and
/// the verdicts in words; ends with a newline.
pub fn table(outcome: &Outcome, style: Style) -> String {
    let ink = Ink::new(style.colour);
    let wrap_at = style.width.unwrap_or(USUAL_WIDTH).max(20);
    let mut out = format!("{}\n", ink.bold(&outcome.name));
    if let Some(question) = &outcome.question {
        out.push_str(&format!("{}\n", wrap(question, wrap_at, "")));
    }
    out.push_str(&format!("{}\n\n", wrap(&design(outcome), wrap_at, "")));
    out.push_str(&variants(&outcome.variants));
    for table in [replicas(&outcome.variants), together(outcome)].into_iter().flatten() {
        out.push('\n');
        out.push_str(&table);
    }
    for variant in &outcome.variants {
        if let Some(why) = &variant.dropped_reason {
            let words = format!("{} takes no part: {why}", variant.name);
            out.push('\n');
            out.push_str(&ink.yellow(&lines(&words, wrap_at)));
            out.push('\n');
        }
    }
    for comparison in &outcome.comparisons {
        out.push('\n');
        out.push_str(&one(comparison, &ink, wrap_at));
        if let Some(words) = linear(outcome, comparison) {
            out.push_str(&format!("\n{}\n", wrap(&words, wrap_at, "  ")));
        }
    }
    for warning in outcome.warnings.iter().take(MOST_WARNINGS) {
        out.push('\n');
        out.push_str(&ink.yellow(&wrap(&format!("Warning: {warning}"), wrap_at, "  ")));
    }
    let more = outcome.warnings.len().saturating_sub(MOST_WARNINGS);
    if more > 0 {
        out.push_str(&ink.yellow(&format!("\nand {more} more warnings in experiment.json")));
    }
    // The last warning has no end yet.
    out.push_str(if outcome.warnings.is_empty() { "\n" } else { "\n\n" });
    out.push_str(&session(outcome, &ink, wrap_at));
    out.push('\n');
    for comparison in &outcome.comparisons {
        out.push_str(&ink.bold(&wrap(&comparison.sentence, wrap_at, "")));
        out.push('\n');
    }
    out
}

/// A server's own lines stay lines.
fn lines(text: &str, wrap_at: usize) -> String {
    let each = text.lines().map(|line| wrap(line, wrap_at, "  "));
    each.collect::<Vec<_>>().join("\n  ")
}

fn design(outcome: &Outcome) -> String {
    let design = &outcome.design;
    let state = match outcome.state {
        ExperimentState::Complete => "",
        ExperimentState::Running => " (not ended)",
        ExperimentState::Interrupted => " (interrupted)",
        ExperimentState::Failed => " (failed)",
    };
    let mut loads: Vec<&str> = Vec::new();
    let each = outcome.variants.iter().filter_map(|variant| variant.workload.as_ref());
    for load in each.chain(outcome.workload.as_ref()) {
        if !loads.contains(&load.title()) {
            loads.push(load.title());
        }
    }
    let load = match loads.is_empty() {
        true => String::new(),
        false => format!("{}, ", loads.join(" and ")),
    };
    let few = if design.indicative { ", indicative only" } else { "" };
    let turns = design.slice_seconds.map_or(String::new(), |seconds| {
        format!(", side by side in turns of {seconds:.2} s")
    });
    format!(
        "{load}{} of at most {} pairs{state}{few}; {} s at each rung of a start{turns}",
        design.rounds, design.max_pairs, design.seconds
    )
}

fn variants(variants: &[VariantTold]) -> String {
    let known = |figure: Option<f64>| figure.map_or_else(|| UNKNOWN.to_owned(), number);
    let mut rows = vec![
        [
            "variant",
            "connections",
            "tx/s",
            "95 % interval",
            "CPU \u{b5}s/tx",
            "switches/tx",
            "p50 ms",
            "p99 ms",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for variant in variants {
        for (at, rung) in variant.rungs.iter().enumerate() {
            rows.push(vec![
                if at == 0 { variant.name.clone() } else { String::new() },
                rung.connections.to_string(),
                number(rung.throughput.value),
                match rung.throughput.low.zip(rung.throughput.high) {
                    Some((low, high)) => format!("{} \u{2013} {}", number(low), number(high)),
                    None => UNKNOWN.to_owned(),
                },
                known(rung.cpu_seconds_per_txn.map(|seconds| seconds * 1e6)),
                known(rung.switches_per_txn),
                known(rung.p50_ms),
                known(rung.p99_ms),
            ]);
        }
    }
    match rows.len() {
        1 => String::new(),
        _ => grid(&rows, &[0]),
    }
}

/// How replicas followed; none where there are none.
fn replicas(variants: &[VariantTold]) -> Option<String> {
    let heads = [
        "replicas of",
        "connections",
        "replica",
        "committed/s",
        "replayed/s",
        "falls behind/s",
        "behind s",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for variant in variants {
        for rung in &variant.rungs {
            for replica in &rung.replicas {
                rows.push(vec![
                    variant.name.clone(),
                    rung.connections.to_string(),
                    replica.replica.to_string(),
                    grouped(replica.committed),
                    grouped(replica.replayed),
                    grouped(replica.lag_growth),
                    replica
                        .lag_seconds
                        .map_or_else(|| UNKNOWN.to_owned(), |seconds| format!("{seconds:.2}")),
                ]);
            }
        }
    }
    let note = "Means over the starts; summary.json of each start has them with their intervals.\n";
    (rows.len() > 1).then(|| grid(&rows, &[0]) + note)
}

/// What servers with neighbours came to, and what part that is of as many servers alone; none where there are none.
fn together(outcome: &Outcome) -> Option<String> {
    let heads = [
        "neighbours",
        "connections each",
        "tx/s each",
        "servers",
        "tx/s together",
        "of the sum alone",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for variant in &outcome.variants {
        let base = base_of(outcome, &variant.name);
        for rung in &variant.rungs {
            let Some(together) = rung.combined_throughput else {
                continue;
            };
            let servers = f64::from(together.servers);
            let alone = base.and_then(|base| {
                let rung = base.rungs.iter().find(|one| one.connections == rung.connections)?;
                rung.combined_throughput
                    .is_none()
                    .then_some(rung.throughput.value * servers)
            });
            rows.push(vec![
                variant.name.clone(),
                rung.connections.to_string(),
                grouped(together.throughput / servers),
                together.servers.to_string(),
                grouped(together.throughput),
                alone.map_or_else(|| UNKNOWN.to_owned(), |alone| percent(together.throughput / alone)),
            ]);
        }
    }
    (rows.len() > 1).then(|| grid(&rows, &[0]))
}

/// The variant that one is held against.
fn base_of<'a>(outcome: &'a Outcome, variant: &str) -> Option<&'a VariantTold> {
    let comparison = outcome.comparisons.iter().find(|one| one.variant == variant)?;
    outcome.variants.iter().find(|one| one.name == comparison.base)
}

/// Whether servers at once do as much as each of them alone; none where the two do not differ by neighbours.
fn linear(outcome: &Outcome, comparison: &ComparisonTold) -> Option<String> {
    let of = |name: &str| {
        let variant = outcome.variants.iter().find(|one| one.name == name)?;
        variant.rungs.first()?.combined_throughput
    };
    let together = of(&comparison.variant)?;
    if of(&comparison.base).is_some() {
        return None;
    }
    let whole = comparison.overall.as_ref()?;
    let word = match whole.verdict {
        ExperimentVerdict::Faster => "super-linear: each does more than alone".to_owned(),
        ExperimentVerdict::Slower => "sub-linear: each does less than alone".to_owned(),
        ExperimentVerdict::NoDifference => format!(
            "linear: the throughput of each differs from alone by at most {}",
            percent(whole.margin)
        ),
        ExperimentVerdict::Inconclusive => return None,
    };
    Some(format!("{} servers at once are {word}.", together.servers))
}

fn one(comparison: &ComparisonTold, ink: &Ink, wrap_at: usize) -> String {
    let mut out = format!("{} over {}:\n\n", comparison.variant, comparison.base);
    out.push_str(&ratios(comparison));
    if let Some(table) = changes(&comparison.rungs) {
        out.push_str(
            "\nChange of throughput by the iron law: CPUs in use, CPU/tx and the residual multiply to it; clock, \
             instructions and cycles per instruction to CPU/tx.\n\n",
        );
        out.push_str(&table);
    }
    let limited: Vec<String> = comparison
        .rungs
        .iter()
        .filter(|rung| rung.client_limited)
        .map(|rung| rung.connections.to_string())
        .collect();
    if !limited.is_empty() {
        let words = format!(
            "At {} connections the client was the limit: these ratios are excluded from the whole.",
            limited.join(", ")
        );
        out.push_str(&ink.yellow(&wrap(&words, wrap_at, "  ")));
        out.push('\n');
    }
    match (&comparison.watched, &comparison.not_watched) {
        (Some(watched), _) => out.push_str(&watched_runs(watched, ink, wrap_at)),
        (None, Some(why)) => {
            out.push('\n');
            out.push_str(&ink.dim(&wrap(
                &format!("Where the time goes is not compared: {why}."),
                wrap_at,
                "  ",
            )));
            out.push('\n');
        }
        (None, None) => {}
    }
    out
}

fn ratios(comparison: &ComparisonTold) -> String {
    let mut rows = vec![
        [
            "connections",
            "throughput",
            "95 % interval",
            "p (Holm)",
            "verdict",
            "CPU/tx",
            "switches/tx",
            "p99",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for rung in &comparison.rungs {
        let mut row = vec![rung.connections.to_string()];
        row.extend(compared(rung.throughput.as_ref(), comparison.same_work));
        row.extend([rung.cpu_seconds_per_txn, rung.switches_per_txn, rung.p99].map(ratio));
        rows.push(row);
    }
    if comparison.rungs.len() > 1 {
        let mut row = vec!["whole ladder".to_owned()];
        row.extend(compared(comparison.overall.as_ref(), comparison.same_work));
        rows.push(row);
    }
    grid(&rows, &[4])
}

fn compared(compared: Option<&Compared>, same_work: bool) -> [String; 4] {
    let unknown = || UNKNOWN.to_owned();
    let Some(compared) = compared else {
        return [unknown(), unknown(), unknown(), "not compared".to_owned()];
    };
    let margin = percent(compared.margin);
    [
        change(compared.ratio.value),
        limits(compared.ratio),
        compared.adjusted_p.map_or_else(unknown, |p| match p < 0.001 {
            true => "<0.001".to_owned(),
            false => format!("{p:.3}"),
        }),
        match compared.verdict {
            // More transactions of another kind are no gain.
            _ if !same_work => "other transactions".to_owned(),
            ExperimentVerdict::NoDifference => format!("no difference above {margin}"),
            other => other.label().to_owned(),
        },
    ]
}

fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let sign = if percent < 0.0 { "\u{2212}" } else { "+" };
    format!("{sign}{:.1} %", percent.abs())
}

fn limits(ratio: Estimate) -> String {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!("{} to {}", change(low), change(high)),
        None => UNKNOWN.to_owned(),
    }
}

fn ratio(estimate: Option<Estimate>) -> String {
    estimate.map_or_else(|| UNKNOWN.to_owned(), |estimate| change(estimate.value))
}

/// A row for each rung; none where no rung has CPU time.
fn changes(rungs: &[RungCompared]) -> Option<String> {
    let measured: Vec<(u32, &Change)> = rungs
        .iter()
        .filter_map(|rung| Some((rung.connections, rung.change.as_ref()?)))
        .collect();
    let counters = measured.iter().any(|(_, change)| change.clock.is_some());
    let mut headings = vec!["connections", "throughput", "by CPUs in use", "by CPU/tx"];
    if counters {
        headings.extend(["by clock", "by instructions/tx", "by cycles/instruction"]);
    }
    headings.push("not explained");
    let mut rows = vec![headings.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (connections, part) in &measured {
        let factor = |part: f64| change(part.exp());
        let known = |part: Option<f64>| part.map_or_else(|| UNKNOWN.to_owned(), factor);
        let mut row = vec![
            connections.to_string(),
            factor(part.throughput),
            factor(part.utilisation),
            factor(part.cpu_seconds),
        ];
        if counters {
            row.extend([part.clock, part.instructions, part.cycles_per_instruction].map(known));
        }
        row.push(factor(part.residual));
        rows.push(row);
    }
    (!measured.is_empty()).then(|| grid(&rows, &[]))
}

/// Of the watched runs: the states that changed and the call paths that changed most.
fn watched_runs(watched: &Comparison, ink: &Ink, wrap_at: usize) -> String {
    let mut out = String::new();
    let mut rows = vec![
        ["connections", "state", "\u{b5}s/tx", "to", "change"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for rung in &watched.rungs {
        for state in &rung.states {
            let surely = state
                .change
                .low
                .zip(state.change.high)
                .is_some_and(|(low, high)| low > 0.0 || high < 0.0);
            if let (Some((a, b)), true) = (state.seconds_per_txn.a.zip(state.seconds_per_txn.b), surely) {
                rows.push(vec![
                    rung.connections.to_string(),
                    state.state.name().to_owned(),
                    number(a * 1e6),
                    number(b * 1e6),
                    number((b - a) * 1e6),
                ]);
            }
        }
    }
    if rows.len() > 1 {
        out.push_str("\nStates of the connections with a significant change in the watched runs:\n\n");
        out.push_str(&grid(&rows, &[1]));
    }
    let mut paths: Vec<&PathChange> = watched.paths.iter().collect();
    paths.sort_by(|a, b| b.change.value.abs().total_cmp(&a.change.value.abs()));
    if !paths.is_empty() {
        out.push_str("\nCall paths with the largest change:\n");
    }
    for path in paths.iter().take(MOST_PATHS) {
        let skipped = path.path.len().saturating_sub(MOST_FUNCTIONS);
        let shown = path
            .path
            .iter()
            .skip(skipped)
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" > ");
        let words = format!(
            "  {} \u{b5}s/tx at {} connections, {}: {shown}",
            number(path.change.value * 1e6),
            path.connections,
            path.state.name()
        );
        out.push_str(&wrap(&words, wrap_at, "    "));
        out.push('\n');
    }
    if rows.len() == 1 && paths.is_empty() {
        let words = "No significant change of a state or call path in the watched runs.";
        out.push_str(&ink.dim(&format!("\n{}\n", wrap(words, wrap_at, "  "))));
    }
    out
}

fn session(outcome: &Outcome, ink: &Ink, wrap_at: usize) -> String {
    let session = &outcome.session;
    let mut out = String::new();
    let of = |estimate: Estimate| format!("{} ({})", change(estimate.value), limits(estimate));
    let a_a = match session.aa_interval {
        Some(a_a) => format!("{} A/A pairs differ by {}", session.aa_pairs, of(a_a)),
        None => "no A/A pairs, so the error of the session is unknown".to_owned(),
    };
    let drift = session
        .drift
        .map_or(String::new(), |drift| format!("; drift over the session {}", of(drift)));
    let words = format!(
        "The session: {a_a}{drift}. An interval within \u{b1}{} counts as no difference.",
        percent(session.margin)
    );
    out.push_str(&wrap(&words, wrap_at, "  "));
    out.push('\n');
    for doubt in &session.caveats {
        let words = format!("Unreliable session: {doubt}.");
        out.push_str(&ink.yellow(&wrap(&words, wrap_at, "  ")));
        out.push('\n');
    }
    out
}
