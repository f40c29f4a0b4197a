//! Which call paths cost a transaction something else than before.

use super::accounts::{Seen, Side, Sides, accounts, sides};
use super::costs::{Account, MeasurementCosts};
use super::differences::{Tested, weighted_holm};
use super::family::{Family, Place, sum_of};
use super::unexplained::unexplained;
use super::unrest::Unrest;
use super::{CommonRung, Course, FALSE_ALARMS, Pair, PathAccount, PathChange, RungChange};
use crate::call_paths::CallPaths;
use crate::rung::RungResult;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// Least change, as a part of the cost and by the nearer limit, that is worth a word.
const LEAST_CHANGE: f64 = 0.01;
/// Untested changes that are listed of a rung.
const MOST_UNTESTED: usize = 5;

/// One account at one rung with what can be listed of it.
struct Looked {
    /// Its rung, by place among the common ones.
    rung: usize,
    sides: Sides,
    family: Family,
    unrest: Unrest,
}

/// A place with its test.
struct Candidate {
    seconds: Pair,
    tested: Tested,
    /// The probability by Holm's rule over all places of all rungs; none where it was not tested.
    p: Option<f64>,
}

/// All paths that changed at all common rungs; the uniform slowdowns and what the paths leave
/// unexplained are noted in `rungs`.
pub(super) fn path_changes(
    common: &[CommonRung],
    rungs: &mut [RungChange],
    base_rung: Option<u32>,
    call_paths: &CallPaths<'_>,
) -> Vec<PathChange> {
    let all = looked_at(common, rungs, call_paths);
    let mut candidates: Vec<Vec<Candidate>> = all.iter().map(tests).collect();
    adjust(&all, &mut candidates);
    let base = base_rung.and_then(|base| common.iter().position(|rung| rung.connections == base));
    let mut changes = Vec::new();
    let mut listed: Vec<Vec<&Place>> = Vec::new();
    for (looked, candidates) in all.iter().zip(&candidates) {
        let pairs = looked.family.places().iter().zip(candidates);
        let sure: Vec<Option<f64>> = pairs.map(|(place, one)| sure(place, one, &looked.sides)).collect();
        let mut places = Vec::new();
        for number in looked.family.picked(&sure) {
            let Some((place, candidate)) = looked.family.places().get(number).zip(candidates.get(number)) else {
                continue;
            };
            let at_base = base.filter(|base| *base != looked.rung).and_then(|base| {
                let same = |other: &&Looked| other.rung == base && other.sides.account == looked.sides.account;
                let other = all.iter().find(same)?;
                let held = |measurement: &MeasurementCosts| {
                    measurement.together(|path| looked.family.holds(place, path, call_paths))
                };
                Some(other.sides.figures_of(held).tested())
            });
            places.push(place);
            let beyond = at_base.as_ref().map(|base| candidate.tested.less(base));
            changes.push(PathChange {
                connections: common[looked.rung].connections,
                state: state(&common[looked.rung], looked, place, call_paths),
                path: call_paths.functions(place.path),
                course: course(candidate, looked, place, at_base.as_ref(), beyond.as_ref(), call_paths),
                seconds_per_txn: candidate.seconds,
                change: candidate.tested.estimate,
                share: candidate.tested.estimate.value / looked.sides.cost,
                beyond_base: beyond.map(|tested| tested.estimate),
                p: candidate.p,
            });
        }
        listed.push(places);
    }
    changes.sort_by(|x, y| (x.connections.cmp(&y.connections)).then_with(|| rank(y).total_cmp(&rank(x))));
    let changes = without_surplus(changes);
    for (number, rung) in rungs.iter_mut().enumerate() {
        let of_rung = all.iter().zip(&listed).filter(|(looked, _)| looked.rung == number);
        let accounts: Vec<_> = of_rung
            .map(|(looked, places)| (&looked.sides, &looked.family, places.as_slice()))
            .collect();
        let told = changes.iter().filter(|change| change.connections == rung.connections);
        rung.unexplained = unexplained(&accounts, told.map(|change| change.change.value).sum(), call_paths);
    }
    changes
}

/// Every account of every rung, each with what the other rungs say of its unrest.
fn looked_at(common: &[CommonRung], rungs: &mut [RungChange], call_paths: &CallPaths<'_>) -> Vec<Looked> {
    let mut all = Vec::new();
    for (number, (common, rung)) in common.iter().zip(rungs.iter_mut()).enumerate() {
        if rung.stacks != [true, true] {
            continue;
        }
        for account in accounts(rung.busy) {
            let sides = sides(common, account, rung);
            let family = Family::of(&sides, call_paths);
            all.push(Looked {
                rung: number,
                unrest: Unrest::of(&sides, &family),
                sides,
                family,
            });
        }
    }
    let beforehand: Vec<(f64, f64)> = all
        .iter()
        .map(|looked| {
            let is_other = |other: &&Looked| other.rung != looked.rung && other.sides.account == looked.sides.account;
            let others = all.iter().filter(is_other).map(|other| &other.unrest);
            looked.unrest.beforehand(others)
        })
        .collect();
    for (looked, beforehand) in all.iter_mut().zip(beforehand) {
        looked.sides.unrest = beforehand;
    }
    all
}

/// Every place of an account with its test, by number.
fn tests(looked: &Looked) -> Vec<Candidate> {
    let Looked { sides, family, .. } = looked;
    let of = |measurements: &[MeasurementCosts]| -> Vec<Vec<Vec<f64>>> {
        measurements
            .iter()
            .map(|measurement| family.pieces(measurement))
            .collect()
    };
    let pieces = |side: &Side| (of(&side.measurements), family.pieces(&side.together));
    let (a, b) = (pieces(&sides.a), pieces(&sides.b));
    let seen = |(measurements, together): &(Vec<Vec<Vec<f64>>>, Vec<Vec<f64>>), place: &Place| Seen {
        measurements: measurements.iter().map(|pieces| sum_of(place, pieces)).collect(),
        together: sum_of(place, together),
    };
    let places = family.places().iter();
    places
        .map(|place| {
            let figures = sides.figures(&seen(&a, place), &seen(&b, place));
            let tested = figures.tested();
            Candidate {
                seconds: figures.pair(),
                p: tested.p.filter(|_| place.is_tested),
                tested,
            }
        })
        .collect()
}

/// Holm's rule over all places that are tested, of all accounts of all rungs.
fn adjust(all: &[Looked], candidates: &mut [Vec<Candidate>]) {
    let mut ps: Vec<(f64, f64)> = Vec::new();
    for (looked, candidates) in all.iter().zip(candidates.iter()) {
        let pairs = looked.family.places().iter().zip(candidates);
        ps.extend(pairs.filter_map(|(place, candidate)| Some((candidate.p?, place.weight))));
    }
    let mut adjusted = weighted_holm(&ps).into_iter();
    for candidate in candidates
        .iter_mut()
        .flatten()
        .filter(|candidate| candidate.p.is_some())
    {
        candidate.p = adjusted.next();
    }
}

/// The change of a place, where it is beyond chance and worth a word; where nothing can be tested, where it is large.
fn sure(place: &Place, candidate: &Candidate, sides: &Sides) -> Option<f64> {
    let change = candidate.tested.estimate;
    let least = LEAST_CHANGE * sides.cost;
    let is_sure = match change.low.zip(change.high) {
        Some((low, high)) => candidate.p.is_some_and(|p| p <= FALSE_ALARMS) && (low >= least || high <= -least),
        None => change.value.abs() >= 2.0 * least,
    };
    (is_sure && place.is_tested && sides.cost > 0.0).then_some(change.value)
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
        *count += usize::from(change.p.is_none());
        change.p.is_some() || *count <= MOST_UNTESTED
    });
    kept.collect()
}

fn course(
    candidate: &Candidate,
    looked: &Looked,
    place: &Place,
    at_base: Option<&Tested>,
    beyond: Option<&Tested>,
    call_paths: &CallPaths<'_>,
) -> Course {
    let dearer = candidate.tested.estimate.value > 0.0;
    // Also what another change counts is there.
    let is_absent = |side: fn((f64, f64)) -> f64| {
        let paths = looked.sides.paths().into_iter();
        let mut within = paths.filter(|path| call_paths.is_within(*path, place.path));
        !within.any(|path| side(looked.sides.of_path(path)) > 0.0)
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
fn state(common: &CommonRung, looked: &Looked, place: &Place, call_paths: &CallPaths<'_>) -> PathAccount {
    if let Account::Waiting(state) = looked.sides.account {
        return PathAccount::Waiting(state);
    }
    let seconds = |state: ThreadState| -> f64 {
        let of_side = |side: &RungResult| -> f64 {
            let state_paths = side.costs.state_paths(state);
            let within = state_paths.filter(|state_path| looked.family.holds(place, state_path.path, call_paths));
            within.map(|state_path| side.costs.seconds(state_path)).sum()
        };
        of_side(&common.a.together) + of_side(&common.b.together)
    };
    let (working, waiting) = (seconds(ThreadState::Cpu), seconds(ThreadState::Spin));
    let all = working + waiting;
    match (working >= WORTH_NAMING * all, waiting >= WORTH_NAMING * all) {
        (true, true) => PathAccount::WorkingAndSpinning,
        (false, true) => PathAccount::Spinning,
        _ => PathAccount::Working,
    }
}
