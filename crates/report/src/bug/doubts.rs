//! What is missing, and what to doubt: a maintainer who finds it himself doubts everything else too.

use super::Section;
use super::words::item;
use crate::figures::percent;
use scaleprof_bundle::{RungSummary, Summary};

/// Beyond this a residual is told.
const TOLERANCE: f64 = 0.02;
/// From this share of incomplete stacks on it is told.
const INCOMPLETE: f64 = 0.01;
const STEAL: f64 = 0.02;

/// Everything that should make the reader careful.
pub(super) fn section(summary: &Summary) -> Section {
    let mut lines = Vec::new();
    lines.extend(at_rungs(summary, "throughput may not have settled", |rung| {
        (!rung.steady).then(String::new)
    }));
    lines.extend(at_rungs(
        summary,
        "the client may have been the limit, so the rung is excluded",
        |rung| rung.client_limited.then(String::new),
    ));
    lines.extend(at_rungs(
        summary,
        "no interval of throughput: too few seconds or repeats",
        |rung| rung.throughput.low.is_none().then(String::new),
    ));
    lines.extend(at_rungs(summary, "residual of the thread ledger", |rung| {
        beyond(rung.ledger.as_ref()?.residual)
    }));
    lines.extend(at_rungs(summary, "residual of the iron law", |rung| {
        beyond(rung.iron_law.as_ref()?.residual)
    }));
    lines.extend(at_rungs(
        summary,
        "stacks that do not reach the thread's start",
        |rung| {
            let incomplete = 1.0 - rung.ledger.as_ref()?.complete_stacks_share?;
            (incomplete > INCOMPLETE).then(|| percent(incomplete))
        },
    ));
    lines.extend(at_rungs(summary, "samples lost", |rung| {
        let lost = rung.ledger.as_ref()?.samples_lost?;
        (lost > 0).then(|| lost.to_string())
    }));
    lines.extend(at_rungs(summary, "CPU time taken by the hypervisor", |rung| {
        rung.steal_share.filter(|share| *share > STEAL).map(percent)
    }));
    lines.extend(at_rungs(
        summary,
        "CPUs used by the client, shared with the server",
        |rung| {
            let shares = summary.server.shares_cpus_with_client == Some(true);
            rung.client_cpus.filter(|_| shares).map(|cpus| format!("{cpus:.2}"))
        },
    ));
    // What several figures lack for one reason is one line.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for missing in &summary.missing {
        match reasons.iter_mut().find(|(reason, _)| *reason == missing.reason) {
            Some((_, figures)) => figures.push(&missing.figure),
            None => reasons.push((&missing.reason, vec![&missing.figure])),
        }
    }
    lines.extend(
        reasons
            .into_iter()
            .map(|(reason, figures)| format!("not measured: {} ({reason})", figures.join(", "))),
    );
    // The figures above say the same of their rungs.
    let told = [
        "throughput did not settle",
        "measurements are too short to tell",
        "some rungs have no interval",
    ];
    let warnings = summary.warnings.iter();
    lines.extend(
        warnings
            .filter(|warning| !told.iter().any(|begin| warning.starts_with(begin)))
            .cloned(),
    );
    let body = match lines.is_empty() {
        true => "Nothing: every rung settled, and the figures agree with one another.\n".to_owned(),
        false => lines.iter().map(|line| item(line)).collect(),
    };
    ("What is missing or doubtful", body)
}

fn beyond(residual: Option<f64>) -> Option<String> {
    residual.filter(|residual| residual.abs() > TOLERANCE).map(percent)
}

/// One line for all rungs of which `figure` has something to say.
fn at_rungs(summary: &Summary, what: &str, figure: impl Fn(&RungSummary) -> Option<String>) -> Option<String> {
    let found: Vec<String> = summary
        .rungs
        .iter()
        .filter_map(|rung| {
            let figure = figure(rung)?;
            let before = if figure.is_empty() {
                String::new()
            } else {
                format!("{figure} at ")
            };
            Some(format!("{before}{}", rung.connections))
        })
        .collect();
    let first = found.first()?;
    let plural = if first.contains(" at ") { "" } else { "at " };
    Some(format!("{what}: {plural}{} connections", found.join(", ")))
}
