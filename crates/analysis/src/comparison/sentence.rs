//! The comparison in one sentence.

use super::{FALSE_ALARMS, PathChange, RungChange};
use crate::numbers::factor;
use crate::per::Per;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeSet;

/// What changed, for a person; or why `paths` cannot be paired.
pub(super) fn of(per: Per, rungs: &[RungChange], paths: Result<&Vec<PathChange>, &str>) -> String {
    if per == Per::Second {
        return of_seconds(rungs, paths);
    }
    let tested = rungs.iter().any(|rung| rung.throughput_p.is_some());
    if !tested {
        return "Throughput change unknown: both runs need at least two repeats of each rung.".to_owned();
    }
    let differ: Vec<String> = rungs
        .iter()
        .filter(|rung| rung.throughput_p.is_some_and(|p| p <= FALSE_ALARMS))
        .filter_map(|rung| {
            let ratio = rung.throughput_ratio?;
            let limits = ratio.low.zip(ratio.high);
            let limits = limits.map_or(String::new(), |(low, high)| format!(" ({low:.2} to {high:.2})"));
            Some(format!("{}{limits} at {}", factor_of(ratio.value), rung.connections))
        })
        .collect();
    let throughput = match differ.is_empty() {
        true => "No significant change of throughput at any common rung".to_owned(),
        false => format!("Throughput of B over that of A is {} connections", differ.join(", ")),
    };
    let paths = match paths {
        Ok(paths) => paths,
        Err(why) => return format!("{throughput}; {why}."),
    };
    let sampled = |run: usize| rungs.iter().any(|rung| rung.stacks[run]);
    if !rungs.iter().any(|rung| rung.stacks == [true, true]) {
        let lacking = match (sampled(0), sampled(1)) {
            (false, false) => "neither run",
            (false, true) => "A",
            (true, false) => "B",
            (true, true) => "one of them, at each rung,",
        };
        return format!("{throughput}; call paths are not compared, because {lacking} has no stack samples.");
    }
    format!("{throughput}; {}.", changed(paths))
}

/// The same of servers that were only watched.
fn of_seconds(rungs: &[RungChange], paths: Result<&Vec<PathChange>, &str>) -> String {
    let tested = rungs
        .iter()
        .all(|rung| rung.measurements.iter().all(|count| *count > 1));
    let found = match paths {
        Err(why) => why.replacen('c', "C", 1),
        Ok(_) if rungs.iter().any(|rung| rung.stacks != [true, true]) => {
            "Call paths are not compared, because one run has no stack samples".to_owned()
        }
        Ok(_) if !tested => "Significance of changes is unknown: each run is one measurement".to_owned(),
        Ok(paths) => match distinct(paths) {
            0 => "No call path changed significantly".to_owned(),
            1 => "One call path changed significantly".to_owned(),
            many => format!("{many} call paths changed significantly"),
        },
    };
    format!("{found}; the load itself may have changed, because transactions were not counted.")
}

fn changed(paths: &[PathChange]) -> String {
    match distinct(paths) {
        0 => "no call path changed significantly".to_owned(),
        1 => "one call path changed significantly".to_owned(),
        many => format!("{many} call paths changed significantly"),
    }
}

/// How many paths changed beyond chance: one that did so at several rungs is one. Working and spinning are one account.
fn distinct(paths: &[PathChange]) -> usize {
    let certain = paths.iter().filter(|path| path.p.is_some());
    let keys: BTreeSet<(Option<ThreadState>, &[String])> = certain
        .map(|path| (path.state.waits_in(), path.path.as_slice()))
        .collect();
    keys.len()
}

/// Two digits after the point near 1, where they matter.
fn factor_of(ratio: f64) -> String {
    match (0.2..10.0).contains(&ratio) {
        true => format!("{ratio:.2}"),
        false => factor(ratio),
    }
}
