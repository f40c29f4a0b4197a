//! Where the added threads go: effective and lost threads of every rung, the paths that lose most, and what is always busy.

use super::functions::innermost_in_state;
use super::layout::{Ink, wrap};
use crate::figures::percent;
use scaleprof_analysis::numbers::grouped;
use scaleprof_bundle::{Estimate, RungSummary, ScalingProfile};
use scaleprof_vocabulary::{GrowthShape, ThreadState};
use std::fmt::Write as _;

/// The innermost functions that are shown of a path.
const MOST_FUNCTIONS: usize = 5;
/// Paths that are shown; the rest is in the JSON.
const MOST_PATHS: usize = 6;
/// A state has a column where some rung lost so much of its threads in it, or saved it.
const LEAST_SHARE: f64 = 0.005;
const CELL: usize = 9;

/// The table and the lists; none where nothing was lost.
pub(super) fn section(profile: &ScalingProfile, rungs: &[RungSummary], ink: &Ink, wrap_at: usize) -> Option<String> {
    let mut columns: Vec<ThreadState> = profile.rungs.last()?.lost_threads.keys().copied().collect();
    // Waiting for a CPU is no cause while all are busy: it stands behind the causes.
    columns.sort_by_key(|state| *state == ThreadState::RunQueue);
    let matters = |state: &ThreadState| {
        profile.rungs.iter().any(|rung| {
            let lost = rung.lost_threads.get(state).map_or(0.0, |lost| lost.value);
            lost.abs() > LEAST_SHARE * f64::from(rung.connections)
        })
    };
    columns.retain(matters);
    if columns.is_empty() {
        return None;
    }
    let title = format!(
        "Lost threads: connections that add no throughput compared with {}, by state",
        profile.base_connections
    );
    let mut out = ink.bold(&wrap(&title, wrap_at, "  "));
    out.push('\n');
    let mut heading = format!("{:>11}{:>11}", "connections", "effective");
    for state in &columns {
        let _ = write!(heading, "{:>CELL$}", state.name());
    }
    out.push_str(&ink.dim(&heading));
    out.push('\n');
    for rung in &profile.rungs {
        let _ = write!(out, "{:>11}{:>11}", rung.connections, threads(rung.effective_threads));
        for state in &columns {
            let lost = rung.lost_threads.get(state);
            let _ = write!(
                out,
                "{:>CELL$}",
                lost.map_or_else(|| "?".to_owned(), |lost| threads(lost.value))
            );
        }
        out.push('\n');
    }
    let last = profile.rungs.last()?;
    let most = last.connections;
    for path in profile.paths.iter().take(MOST_PATHS) {
        let Some(lost) = path.lost_threads.last() else { continue };
        let shape = match path.shape {
            Some(GrowthShape::Linear) => ", grows in proportion",
            Some(GrowthShape::Worse) => ", grows faster than the connections",
            Some(GrowthShape::Constant) | None => "",
        };
        let line = format!(
            "{} of {most} threads ({}{shape}) in {}",
            interval(lost),
            path.state.name(),
            innermost_in_state(path.state, &path.path, MOST_FUNCTIONS).join(" < ")
        );
        let _ = writeln!(out, "  {}", wrap(&line, wrap_at.saturating_sub(2), "    "));
    }
    if last.cpus_busy {
        let summary = rungs.iter().find(|rung| rung.connections == most);
        let waiting = last
            .lost_threads
            .get(&ThreadState::RunQueue)
            .filter(|lost| lost.value > 0.0);
        let line = format!(
            "{}{}",
            waiting.map_or(String::new(), |lost| format!(
                "{} of {most} threads (runq) wait for a CPU: ",
                threads(lost.value)
            )),
            all_busy(most, summary)
        );
        let _ = writeln!(out, "  {}", wrap(&line, wrap_at.saturating_sub(2), "    "));
    }
    for path in &profile.saturated {
        let line = format!(
            "{:.2} threads on average are in {} at {most} connections, as at lower rungs. If it admits one thread, throughput \
             cannot exceed {}/s",
            path.active_threads.last().copied().unwrap_or(1.0),
            innermost_in_state(ThreadState::Cpu, &path.path, MOST_FUNCTIONS).join(" < "),
            grouped(path.cap)
        );
        let _ = writeln!(out, "  {}", wrap(&line, wrap_at.saturating_sub(2), "    "));
    }
    Some(out)
}

/// Whose CPUs are busy, and what follows.
fn all_busy(connections: u32, rung: Option<&RungSummary>) -> String {
    let machine = rung.and_then(|rung| rung.busy_share);
    let machine = machine.map(|busy| format!("{} in use, all processes together", percent(busy)));
    let server = rung.and_then(|rung| rung.iron_law.as_ref());
    let server = server.map(|law| format!("the server used {} of its CPUs", percent(law.utilisation)));
    let figures: Vec<String> = machine.into_iter().chain(server).collect();
    let figures = match figures.is_empty() {
        true => String::new(),
        false => format!(" ({})", figures.join("; ")),
    };
    format!("not a cause, because all CPUs are busy at {connections} connections{figures}")
}

fn threads(value: f64) -> String {
    match value.abs() >= 99.95 {
        true => format!("{value:.0}"),
        // No figure is -0.0.
        false => format!("{:.1}", (value * 10.0).round() / 10.0 + 0.0),
    }
}

fn interval(lost: &Estimate) -> String {
    match lost.low.zip(lost.high) {
        Some((low, high)) => format!("{} ({} to {})", threads(lost.value), threads(low), threads(high)),
        None => threads(lost.value),
    }
}
