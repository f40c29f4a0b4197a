//! What changed between two runs, per transaction.
//!
//! The unit is the measurement: a rung that was repeated three times has three figures on each side, and how they scatter says what
//! a difference is worth. What one start of a server does to all of its measurements cannot be seen in two runs, and is said so.
//!
//! - Throughput and CPU per transaction: ratios, with Student's t on the logarithms of the measurements' figures.
//! - States of the thread ledger and call paths: differences of thread-seconds per transaction, Δ = τ_B − τ_A.
//! - At the other end of the ladder stands the base rung. Where Δ is larger at a rung than at the base, beyond chance, the path
//!   *scales worse*; where it is there as well, it is *slower everywhere* (difference in differences, analysis.md 1.3).
//!
//! The figures themselves are those of the two runs' own reports, over all measurements of a rung together: so the states of a side add up
//! to its N/X, and what is called 41 µs here is so there. Only what a difference is worth comes from the measurements.
//!
//! Of servers that were only watched a second takes the place of a transaction, and there is one rung.
//!
//! Thousands of paths are compared, so chance alone makes some of them differ. Both throughput (over all rungs) and paths (over all
//! that could be listed of all rungs) are held to Holm's rule (1979): where nothing changed, one comparison of twenty lists anything
//! ([`family`]).

mod accounts;
mod circumstances;
mod costs;
pub mod differences;
mod family;
mod one_run;
mod outcome;
mod path_changes;
mod refusal;
mod rung_changes;
mod same_run;
mod sentence;
mod unexplained;
mod unrest;

pub use one_run::{OneRun, OneRung};
pub use outcome::{
    CodeKindChange, Comparison, ConditionEffect, Course, Difference, Pair, PathAccount, PathChange, RungChange,
    SettingChange, StateChange, Unexplained,
};
pub use refusal::Refusal;

use crate::call_paths::CallPaths;
use crate::findings::{CODE_KINDS, code_kinds};
use crate::measured_rungs::{measured_measurements, measured_rungs};
use crate::measurement_rows::{MeasurementRows, by_measurement};
use crate::per::Per;
use crate::rung::RungResult;
use crate::watch;
use path_changes::path_changes;
use rung_changes::rung_changes;
use scaleprof_bundle::Bundle;
use std::collections::BTreeMap;

/// Where nothing changed, at most this share of comparisons marks a rung, and at most this share lists a path.
pub const FALSE_ALARMS: f64 = 0.05;

/// Which rungs to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Choice {
    /// Only the paths of this rung; none for those of all common rungs.
    pub connections: Option<u32>,
    /// The rung that others are held against; none for the common one at which a transaction costs least.
    pub base_rung: Option<u32>,
    /// Whether to compare runs that are not alike all the same.
    pub force: bool,
}

/// A rung that both runs have.
struct CommonRung {
    connections: u32,
    a: Measured,
    b: Measured,
}

/// What a run measured at a rung.
struct Measured {
    /// All measurements together, as its own report has it.
    together: RungResult,
    /// Each measurement analysed by itself.
    measurements: Vec<RungResult>,
}

/// What a run measured, by rung. A server that was only watched has one.
fn measured<'a>(bundle: &'a Bundle, call_paths: &mut CallPaths<'a>) -> BTreeMap<u32, Measured> {
    if Per::of(bundle) == Per::Second {
        let measurements = by_measurement(bundle);
        let all: Vec<&MeasurementRows<'_>> = measurements.values().collect();
        let measured = watch::as_rung(&all, call_paths).map(|together| Measured {
            together,
            measurements: all
                .iter()
                .filter_map(|measurement| watch::as_rung(&[*measurement], call_paths))
                .collect(),
        });
        return measured.into_iter().map(|measured| (1, measured)).collect();
    }
    let mut measurements = measured_measurements(bundle, call_paths);
    let rungs = measured_rungs(bundle, call_paths).into_iter();
    rungs
        .filter_map(|together| {
            let connections = together.summary.connections;
            let measurements = measurements.remove(&connections)?;
            Some((connections, Measured { together, measurements }))
        })
        .collect()
}

/// Compares two runs.
///
/// # Errors
/// [`Refusal`], where there is nothing that can be compared.
pub fn compare(a: &Bundle, b: &Bundle, choice: Choice) -> Result<Comparison, Refusal> {
    compare_with_runs(a, b, choice).map(|(found, _)| found)
}

/// Compares two runs, and tells what each of them measured by itself: A's first.
///
/// # Errors
/// As [`compare`].
pub fn compare_with_runs(a: &Bundle, b: &Bundle, choice: Choice) -> Result<(Comparison, [OneRun; 2]), Refusal> {
    let per = Per::of(a);
    if per != Per::of(b) {
        return Err(Refusal::OneWatched);
    }
    if per == Per::Second && (choice.connections.is_some() || choice.base_rung.is_some()) {
        return Err(Refusal::NoMeasurements);
    }
    let differences = circumstances::differences(a, b);
    let forbidding: Vec<Difference> = differences
        .iter()
        .filter(|one| one.effect == ConditionEffect::Incomparable)
        .cloned()
        .collect();
    if !forbidding.is_empty() && !choice.force {
        return Err(Refusal::Unlike(forbidding));
    }
    let mut call_paths = CallPaths::of_both(a, b);
    let (of_a, of_b) = (measured(a, &mut call_paths), measured(b, &mut call_paths));
    let runs = [(a, &of_a), (b, &of_b)].map(|(bundle, of)| OneRun::of(per, of, &bundle.manifest.missing));
    let common = common_rungs(of_a, of_b)?;
    let known: Vec<u32> = common.iter().map(|rung| rung.connections).collect();
    for wanted in [choice.connections, choice.base_rung].into_iter().flatten() {
        if !known.contains(&wanted) {
            return Err(Refusal::NoSuchRung { wanted, common: known });
        }
    }
    let imported = [a, b].map(|bundle| bundle.manifest.workload.imported().is_some());
    let mut rungs = rung_changes(per, imported, &common);
    let ps: Vec<f64> = rungs.iter().filter_map(|rung| rung.throughput_p).collect();
    let mut adjusted = differences::holm(&ps).into_iter();
    for rung in &mut rungs {
        rung.throughput_p = rung.throughput_p.and_then(|_| adjusted.next());
    }
    let base_rung = choice
        .base_rung
        .or_else(|| cheapest(&rungs))
        .filter(|_| rungs.len() > 1);
    let products = [a, b].map(|bundle| bundle.manifest.server.product.as_str());
    let mut paths = path_changes(&common, &mut rungs, base_rung, &call_paths);
    let unpaired = circumstances::unpaired(a, b);
    if let Some(unpaired) = &unpaired {
        paths.clear();
        for (rung, common) in rungs.iter_mut().zip(&common) {
            rung.unexplained = None;
            if unpaired.kinds {
                rung.code_kinds = by_kind_of_code(common, products, &call_paths);
            }
        }
    }
    paths.retain(|path| choice.connections.is_none_or(|wanted| path.connections == wanted));
    let same_run = same_run::hint(a, b);
    let warnings = circumstances::warnings(a, b, &differences, &rungs);
    let found = Comparison {
        schema: 3,
        per,
        sentence: same_run.unwrap_or_else(|| {
            sentence::of(
                per,
                &rungs,
                unpaired.as_ref().map_or(Ok(&paths), |unpaired| Err(unpaired.words)),
            )
        }),
        servers: [a, b].map(|bundle| bundle.manifest.server.named()),
        started_at: [a, b].map(|bundle| bundle.manifest.started_at.clone()),
        settings: circumstances::settings(a, b),
        differences,
        base_rung,
        rungs,
        paths,
        unpaired: unpaired.map(|unpaired| unpaired.cause),
        warnings,
    };
    Ok((found, runs))
}

fn by_kind_of_code(common: &CommonRung, products: [&str; 2], call_paths: &CallPaths<'_>) -> Vec<CodeKindChange> {
    let of = |side: &Measured, product: &str| code_kinds(&side.together.costs, call_paths, product);
    let (a, b) = (of(&common.a, products[0]), of(&common.b, products[1]));
    let kinds = CODE_KINDS.iter().enumerate();
    let both = kinds.filter(|(place, _)| a.contains_key(place) || b.contains_key(place));
    both.map(|(place, kind)| CodeKindChange {
        kind: (*kind).to_owned(),
        // Nothing of a kind is none of it where stacks were sampled, and unknown elsewhere.
        seconds_per_txn: Pair {
            a: (!common.a.together.costs.is_empty()).then(|| a.get(&place).copied().unwrap_or(0.0)),
            b: (!common.b.together.costs.is_empty()).then(|| b.get(&place).copied().unwrap_or(0.0)),
        },
    })
    .collect()
}

fn common_rungs(mut a: BTreeMap<u32, Measured>, mut b: BTreeMap<u32, Measured>) -> Result<Vec<CommonRung>, Refusal> {
    let all = |rungs: &BTreeMap<u32, Measured>| rungs.keys().copied().collect::<Vec<u32>>();
    let (of_a, of_b) = (all(&a), all(&b));
    let common: Vec<CommonRung> = of_a
        .iter()
        .filter_map(|connections| {
            Some(CommonRung {
                connections: *connections,
                b: b.remove(connections)?,
                a: a.remove(connections)?,
            })
        })
        .collect();
    if of_a.is_empty() || of_b.is_empty() {
        return Err(Refusal::NothingMeasured {
            a: of_a.is_empty(),
            b: of_b.is_empty(),
        });
    }
    match common.is_empty() {
        true => Err(Refusal::NoCommonRung { a: of_a, b: of_b }),
        false => Ok(common),
    }
}

/// The rung but the last at which a transaction costs both together the least CPU time, or the least time.
fn cheapest(rungs: &[RungChange]) -> Option<u32> {
    let (_, before) = rungs.split_last()?;
    let cost = |rung: &RungChange| {
        let cpu = rung.cpu_seconds_per_txn;
        let time = |throughput: Option<f64>| throughput.map(|x| f64::from(rung.connections) / x);
        let known = cpu.a.zip(cpu.b);
        known
            .or(time(rung.throughput.a).zip(time(rung.throughput.b)))
            .map(|(a, b)| a + b)
    };
    crate::base_rung::cheapest(before, |rung| cost(rung)).map(|rung| rung.connections)
}
