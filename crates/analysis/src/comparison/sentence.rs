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
        return "Whether throughput changed cannot be told: both runs need each rung measured twice at least."
            .to_owned();
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
        true => "Throughput did not change beyond chance at any common number of connections".to_owned(),
        false => format!("Throughput of B over that of A is {} connections", differ.join(", ")),
    };
    let paths = match paths {
        Ok(paths) => paths,
        Err(why) => return format!("{throughput}; {why}."),
    };
    let sampled = |run: usize| rungs.iter().any(|rung| rung.stacks[run]);
    if !rungs.iter().any(|rung| rung.stacks == [true, true]) {
        let lacking = match (sampled(0), sampled(1)) {
            (false, false) => "either",
            (false, true) => "A",
            (true, false) => "B",
            (true, true) => "one of them at each",
        };
        return format!("{throughput}; call paths are not compared, as no stacks were sampled in {lacking}.");
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
            "Call paths are not compared, as no stacks were sampled in one of them".to_owned()
        }
        Ok(_) if !tested => {
            "Whether a call path changed beyond chance cannot be told where each was looked at once".to_owned()
        }
        Ok(paths) => match distinct(paths) {
            0 => "No call path takes more or less of a second, beyond chance".to_owned(),
            1 => "One call path takes more or less of a second".to_owned(),
            many => format!("{many} call paths take more or less of a second"),
        },
    };
    format!("{found}; transactions were not counted, so the load itself may have changed.")
}

fn changed(paths: &[PathChange]) -> String {
    match distinct(paths) {
        0 => "no call path changed its cost beyond chance".to_owned(),
        1 => "one call path changed its cost".to_owned(),
        many => format!("{many} call paths changed their cost"),
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
