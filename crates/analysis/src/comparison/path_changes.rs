//! Which call paths cost a transaction something else than before.

use super::accounts::{Sides, accounts, drift, sides};
use super::costs::{Account, VisitCosts};
use super::differences::{Tested, false_discovery_rates};
use super::{CommonRung, Course, FALSE_DISCOVERIES, Pair, PathChange, RungChange};
use crate::call_paths::{CallPaths, PathId};
use crate::findings::cover::cover;
use crate::rung::RungResult;
use std::collections::{BTreeMap, BTreeSet};

/// Paths with less of the cost on both sides are not looked at.
const LEAST_COST: f64 = 0.005;
/// Least change, as a part of the cost and by the nearer limit, that is worth a word.
const LEAST_CHANGE: f64 = 0.01;
/// Untested changes that are listed of one account.
const MOST_UNTESTED: usize = 5;

/// A path that the cover named.
struct Candidate {
    rung: usize,
    account: usize,
    path: PathId,
    /// The whole paths that it stands for.
    within: Vec<PathId>,
    seconds: Pair,
    tested: Tested,
}

/// All paths that changed at all common rungs; the dilations are noted in `rungs`.
pub(super) fn path_changes(
    common: &[CommonRung],
    rungs: &mut [RungChange],
    base_rung: Option<u32>,
    call_paths: &CallPaths<'_>,
) -> Vec<PathChange> {
    let drift = drift(common);
    let mut all: Vec<Vec<Sides>> = Vec::new();
    for (common, rung) in common.iter().zip(rungs.iter_mut()) {
        let sides = accounts(rung.busy)
            .iter()
            .map(|account| sides(common, *account, drift, rung))
            .collect();
        all.push(sides);
    }
    let mut candidates = Vec::new();
    let mut ps = Vec::new();
    for (rung, accounts) in all.iter().enumerate() {
        for (account, sides) in accounts.iter().enumerate() {
            ps.extend(looked_at(sides, call_paths));
            candidates.extend(named(sides, call_paths).into_iter().map(|(path, within)| {
                let (seconds, tested) = sides.change(&within);
                Candidate {
                    rung,
                    account,
                    path,
                    within,
                    seconds,
                    tested,
                }
            }));
        }
    }
    // Those that were named were chosen among all that was looked at.
    ps.extend(candidates.iter().filter_map(|candidate| candidate.tested.p));
    let rates = false_discovery_rates(&ps);
    let mut of_candidates = rates[rates.len() - candidates.iter().filter(|c| c.tested.p.is_some()).count()..].iter();
    let base = base_rung.and_then(|base| common.iter().position(|rung| rung.connections == base));
    let mut changes = Vec::new();
    for candidate in &candidates {
        let q = candidate.tested.p.and_then(|_| of_candidates.next().copied());
        let sides = &all[candidate.rung][candidate.account];
        let at_base = base.filter(|base| *base != candidate.rung).and_then(|base| {
            let same = all[base].iter().find(|other| other.account == sides.account)?;
            Some(same.change(&candidate.within).1)
        });
        if let Some(change) = told(candidate, sides, q, at_base.as_ref(), call_paths) {
            changes.push(PathChange {
                connections: common[candidate.rung].connections,
                state: state(&common[candidate.rung], sides.account, candidate, call_paths),
                ..change
            });
        }
    }
    changes.sort_by(|x, y| (x.connections.cmp(&y.connections)).then_with(|| rank(y).total_cmp(&rank(x))));
    without_surplus(changes)
}

/// The limit of the change that is nearer to nothing, as a part of the cost.
fn rank(change: &PathChange) -> f64 {
    let nearer = change
        .change
        .low
        .zip(change.change.high)
        .map(|(low, high)| low.abs().min(high.abs()));
    let size = change.change.value.abs();
    match size > 0.0 {
        true => nearer.unwrap_or(size) / size * change.share.abs(),
        false => 0.0,
    }
}

/// Of what could not be tested the largest are told, so that there is something to look at.
fn without_surplus(changes: Vec<PathChange>) -> Vec<PathChange> {
    let mut untested: BTreeMap<u32, usize> = BTreeMap::new();
    let kept = changes.into_iter().filter(|change| {
        let count = untested.entry(change.connections).or_default();
        *count += usize::from(change.q.is_none());
        change.q.is_some() || *count <= MOST_UNTESTED
    });
    kept.collect()
}

/// The probabilities of all paths that are large enough to be looked at: what chance had to choose from.
fn looked_at(sides: &Sides, call_paths: &CallPaths<'_>) -> Vec<f64> {
    let inclusive = |visits: &[VisitCosts]| -> Vec<BTreeMap<PathId, Vec<f64>>> {
        visits.iter().map(|visit| visit.inclusive(call_paths)).collect()
    };
    let (a, b) = (inclusive(&sides.a), inclusive(&sides.b));
    let paths: BTreeSet<PathId> = a
        .iter()
        .chain(&b)
        .flat_map(|of_visit| of_visit.keys().copied())
        .collect();
    let of = |visits: &[VisitCosts], sums: &[BTreeMap<PathId, Vec<f64>>], path: PathId| -> Vec<Vec<f64>> {
        let pairs = visits.iter().zip(sums);
        let blocks = pairs.map(|(visit, sums)| sums.get(&path).cloned().unwrap_or_else(|| visit.together(&[])));
        blocks.collect()
    };
    let found = paths.into_iter().filter_map(|path| {
        let (seconds, tested) = sides.change_of(&of(&sides.a, &a, path), &of(&sides.b, &b, path));
        let largest = seconds.a.unwrap_or(0.0).max(seconds.b.unwrap_or(0.0));
        tested.p.filter(|_| largest >= LEAST_COST * sides.cost)
    });
    found.collect()
}

/// The paths that got dearer and those that got cheaper, each with the whole paths that no other counts.
fn named(sides: &Sides, call_paths: &CallPaths<'_>) -> Vec<(PathId, Vec<PathId>)> {
    // How deep a thread stands when its stack is cut says nothing.
    let is_whole = |path: &PathId| call_paths.is_whole(*path);
    let costs: Vec<(PathId, f64, f64)> = sides
        .paths()
        .into_iter()
        .filter(is_whole)
        .map(|path| {
            let (a, b) = sides.of_path(path);
            (path, a, b)
        })
        .collect();
    let least = LEAST_CHANGE * sides.cost;
    let mut taken: BTreeSet<PathId> = BTreeSet::new();
    let mut named = Vec::new();
    let dearer = cover(costs.iter().map(|(path, a, b)| (*path, b - a, *b)), call_paths, least);
    let cheaper = cover(costs.iter().map(|(path, a, b)| (*path, a - b, *a)), call_paths, least);
    for covered in dearer.into_iter().chain(cheaper) {
        let path = covered.path;
        let within: Vec<PathId> = costs
            .iter()
            .map(|(inner, ..)| *inner)
            .filter(|inner| covered.within.contains(inner) && !taken.contains(inner))
            .collect();
        taken.extend(&within);
        if !within.is_empty() {
            named.push((path, within));
        }
    }
    named
}

/// The change in words, where it is beyond chance and worth any.
fn told(
    candidate: &Candidate,
    sides: &Sides,
    q: Option<f64>,
    at_base: Option<&Tested>,
    call_paths: &CallPaths<'_>,
) -> Option<PathChange> {
    let change = candidate.tested.estimate;
    let least = LEAST_CHANGE * sides.cost;
    let is_sure = match change.low.zip(change.high) {
        Some((low, high)) => q.is_some_and(|q| q <= FALSE_DISCOVERIES) && (low >= least || high <= -least),
        None => change.value.abs() >= 2.0 * least,
    };
    if !is_sure || sides.cost <= 0.0 {
        return None;
    }
    let beyond = at_base.map(|base| candidate.tested.less(base));
    Some(PathChange {
        connections: 0,
        state: String::new(),
        path: call_paths.functions(candidate.path),
        course: course(candidate, sides, at_base, beyond.as_ref(), call_paths),
        seconds_per_txn: candidate.seconds,
        change,
        share: change.value / sides.cost,
        beyond_base: beyond.map(|tested| tested.estimate),
        q,
    })
}

fn course(
    candidate: &Candidate,
    sides: &Sides,
    at_base: Option<&Tested>,
    beyond: Option<&Tested>,
    call_paths: &CallPaths<'_>,
) -> Course {
    let dearer = candidate.tested.estimate.value > 0.0;
    // Also what another change counts is there.
    let is_absent = |side: fn((f64, f64)) -> f64| {
        let paths = sides.paths().into_iter();
        let mut within = paths.filter(|path| call_paths.is_within(*path, candidate.path));
        !within.any(|path| side(sides.of_path(path)) > 0.0)
    };
    // Beyond chance and in the same direction.
    let is_so = |tested: Option<&Tested>| {
        let limits = tested.and_then(|tested| tested.estimate.low.zip(tested.estimate.high));
        limits.is_some_and(|(low, high)| if dearer { low > 0.0 } else { high < 0.0 })
    };
    match dearer {
        true if is_absent(|(a, _)| a) => Course::New,
        false if is_absent(|(_, b)| b) => Course::Gone,
        true if is_so(beyond) => Course::ScalesWorse,
        false if is_so(beyond) => Course::ScalesBetter,
        true if is_so(at_base) => Course::SlowerEverywhere,
        false if is_so(at_base) => Course::FasterEverywhere,
        true => Course::Slower,
        false => Course::Faster,
    }
}

/// From this part of a path's time on the CPU on, spinning or working is told beside the other.
const WORTH_NAMING: f64 = 0.1;

/// On a CPU: working, waiting in a loop, or both.
fn state(common: &CommonRung, account: Account, candidate: &Candidate, call_paths: &CallPaths<'_>) -> String {
    let Account::OnCpu = account else {
        return account.states()[0].to_owned();
    };
    let seconds = |state: &str| -> f64 {
        let visits = common.a.iter().chain(&common.b);
        let of_visit = |visit: &RungResult| -> f64 {
            let pathways = visit.costs.pathways(state);
            let within = pathways.filter(|pathway| call_paths.is_within(pathway.path, candidate.path));
            within.map(|pathway| visit.costs.seconds(pathway)).sum()
        };
        visits.map(of_visit).sum()
    };
    let (working, waiting) = (seconds("cpu"), seconds("spin"));
    let all = working + waiting;
    match (working >= WORTH_NAMING * all, waiting >= WORTH_NAMING * all) {
        (true, true) => "cpu and spin".to_owned(),
        (false, true) => "spin".to_owned(),
        _ => "cpu".to_owned(),
    }
}
