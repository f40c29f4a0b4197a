//! What makes the figures of a run doubtful: a client at its limit, a server that was not warm, a throughput that drifts.

use super::counted;
use super::finding::Draft;
use crate::course::Course;
use crate::numbers::percent;
use crate::student::two_sided_p;
use crate::warmup::mean;
use scaleprof_bundle::{Finding, RungSummary};
use scaleprof_vocabulary::FindingKind;

/// Changes below this are told with each rung (`steady`) and are no finding.
const WORTH_A_WORD: f64 = 0.1;
/// Measurements from which a drift over the whole run is told, and the least of it: two
/// measurements a rung differ by chance.
const FEWEST_MEASUREMENTS: usize = 9;
const DRIFT: f64 = 0.15;
/// How unlikely it must be.
const UNLIKELY: f64 = 0.01;

/// A rung with the course of each of its measurements.
pub(crate) struct Measured<'a> {
    pub summary: &'a RungSummary,
    pub measurements: &'a [Course],
}

/// What there is to doubt. `rungs` are all of the run, by rising connections, those that do not count too.
pub(crate) fn doubts(rungs: &[Measured<'_>]) -> Vec<Finding> {
    let drafts = [client_limited(rungs), not_warmed_up(rungs), drifting(rungs)];
    drafts.into_iter().flatten().map(Draft::finish).collect()
}

/// Where most rungs, or the last one, tell of the client.
fn client_limited(rungs: &[Measured<'_>]) -> Option<Draft> {
    let limited: Vec<&RungSummary> = rungs
        .iter()
        .map(|rung| rung.summary)
        .filter(|summary| summary.client_limited)
        .collect();
    let last = rungs.last()?.summary;
    if limited.is_empty() || (!last.client_limited && limited.len() * 2 <= rungs.len()) {
        return None;
    }
    let mut draft = Draft::new(
        FindingKind::ClientLimited,
        Vec::new(),
        counted(limited.len() as f64 / rungs.len() as f64),
    );
    draft.rungs = bounds(limited.iter().map(|summary| summary.connections));
    for summary in limited {
        let reason = summary.client_limited_reason.as_deref().unwrap_or("it is at its limit");
        draft
            .evidence
            .push(format!("at {} connections {reason}", summary.connections));
    }
    Some(draft)
}

/// Where throughput still rose at the end of most measurements of a rung.
fn not_warmed_up(rungs: &[Measured<'_>]) -> Option<Draft> {
    told_by_measurements(
        rungs,
        FindingKind::NotWarmedUp,
        |course| course.warming.filter(|rise| *rise >= WORTH_A_WORD),
        |change| format!("throughput still rose by {} within a measurement", percent(change)),
    )
}

/// Where it moved within most measurements of a rung, or from measurement to measurement over the
/// whole run.
fn drifting(rungs: &[Measured<'_>]) -> Option<Draft> {
    let within = |sign: f64| {
        let moved = move |course: &Course| course.moved.filter(|change| change * sign >= WORTH_A_WORD);
        told_by_measurements(rungs, FindingKind::Drifting, moved, |change| {
            format!("throughput moved by {} within a measurement", signed_percent(change))
        })
    };
    let over_all = over_the_run(rungs).map(|change| {
        let mut draft = Draft::new(FindingKind::Drifting, Vec::new(), counted(change.abs()));
        draft.rungs = bounds(rungs.iter().map(|rung| rung.summary.connections));
        draft.evidence.push(format!(
            "throughput drifted by {} from the first to the last measurement, across all rungs",
            signed_percent(change)
        ));
        draft
    });
    within(-1.0).or_else(|| within(1.0)).or(over_all)
}

/// A finding of what most measurements of a rung show, at all rungs where they do.
fn told_by_measurements(
    rungs: &[Measured<'_>],
    kind: FindingKind,
    shown: impl Fn(&Course) -> Option<f64>,
    words: impl Fn(f64) -> String,
) -> Option<Draft> {
    let mut told: Vec<(u32, f64)> = Vec::new();
    for rung in rungs {
        let changes: Vec<f64> = rung.measurements.iter().filter_map(&shown).collect();
        if !changes.is_empty() && changes.len() * 2 > rung.measurements.len() {
            told.push((rung.summary.connections, mean(&changes)));
        }
    }
    let largest = told.iter().map(|(_, change)| change.abs()).reduce(f64::max)?;
    let mut draft = Draft::new(kind, Vec::new(), counted(largest));
    draft.rungs = bounds(told.iter().map(|(connections, _)| *connections));
    for (connections, change) in told {
        draft
            .evidence
            .push(format!("at {connections} connections {}", words(change)));
    }
    Some(draft)
}

/// By which part throughput moved from the first measurement to the last, beyond chance: the slope
/// of a line through the logarithms of the measurements' throughputs, each against the mean of its
/// rung. Measurements run in shuffled order, so that rungs do not pass for time.
fn over_the_run(rungs: &[Measured<'_>]) -> Option<f64> {
    let repeated: Vec<&Measured<'_>> = rungs
        .iter()
        .filter(|rung| rung.measurements.len() > 1 && rung.measurements.iter().all(|course| course.mean > 0.0))
        .collect();
    let count: usize = repeated.iter().map(|rung| rung.measurements.len()).sum();
    if count < FEWEST_MEASUREMENTS || repeated.len() < 2 {
        return None;
    }
    let (mut xx, mut xy) = (0.0, 0.0);
    let mut points = Vec::new();
    for rung in &repeated {
        let order: Vec<f64> = rung
            .measurements
            .iter()
            .map(|course| f64::from(course.measurement))
            .collect();
        let logs: Vec<f64> = rung.measurements.iter().map(|course| course.mean.ln()).collect();
        for (x, y) in order.iter().zip(&logs) {
            let (x, y) = (x - mean(&order), y - mean(&logs));
            xx += x * x;
            xy += x * y;
            points.push((x, y));
        }
    }
    let slope = xy / xx;
    // Each rung's mean is one figure that was fitted.
    let degrees = (count - repeated.len() - 1) as f64;
    let squares: f64 = points.iter().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let error = (squares / degrees.max(1.0) / xx).sqrt();
    let order = || {
        repeated
            .iter()
            .flat_map(|rung| rung.measurements)
            .map(|course| f64::from(course.measurement))
    };
    let span = order().reduce(f64::max)? - order().reduce(f64::min)?;
    let change = (slope * span).exp() - 1.0;
    let sure = degrees >= 1.0 && two_sided_p(slope / error.max(1e-12), degrees) < UNLIKELY;
    (sure && change.abs() >= DRIFT).then_some(change)
}

fn bounds(connections: impl Iterator<Item = u32> + Clone) -> (u32, u32) {
    let least = connections.clone().min().unwrap_or(0);
    (least, connections.max().unwrap_or(0))
}

fn signed_percent(change: f64) -> String {
    format!("{:+.0} %", change * 100.0)
}

#[cfg(test)]
mod tests;
