//! What changed between two runs, per transaction.
//!
//! The unit is the visit: a rung that was repeated three times has three figures on each side, and how they scatter says what
//! a difference is worth. What one start of a server does to all of its visits cannot be seen in two runs, and is said so.
//!
//! - Throughput and CPU per transaction: ratios, with Student's t on the logarithms of the visits' figures.
//! - States of the thread ledger and call paths: differences of thread-seconds per transaction, Δ = τ_B − τ_A.
//! - At the other end of the ladder stands the base rung. Where Δ is larger at a rung than at the base, beyond chance, the path
//!   *scales worse*; where it is there as well, it is *slower everywhere* (difference in differences, analysis.md 1.3).
//!
//! Thousands of paths are compared, so chance alone makes some of them differ. What is listed keeps the false discovery rate at
//! 5 % over all rungs and paths together (Benjamini and Hochberg 1995); rungs are held to Holm's rule (1979).

mod costs;
pub mod differences;
mod path_changes;
mod rung_changes;
mod sides;

use crate::call_paths::CallPaths;
use crate::numbers::factor;
use crate::rung::RungResult;
use crate::summarise::measured_visits;
use path_changes::path_changes;
use rung_changes::rung_change;
use scaleprof_bundle::{Bundle, Estimate};
use serde::Serialize;
use std::collections::BTreeMap;

/// At most this share of what is listed is there by chance.
pub const FALSE_DISCOVERIES: f64 = 0.05;

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

/// What changed from run A to run B.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of this layout; 1.
    pub schema: u32,
    /// One sentence for a person.
    pub sentence: String,
    /// What was compared: product and version of A and of B.
    pub servers: [String; 2],
    /// What differs but for what was measured: server, machine, load.
    pub differences: Vec<Difference>,
    /// Settings with different values.
    pub settings: Vec<SettingChange>,
    /// The rung that others are held against; none with fewer than two common rungs.
    pub base_rung: Option<u32>,
    /// The rungs that both have, by rising connections.
    pub rungs: Vec<RungChange>,
    /// The call paths that changed beyond chance, by rung, the gravest first.
    pub paths: Vec<PathChange>,
    /// What the reader should know before believing the figures.
    pub warnings: Vec<String>,
}

/// Something about the two runs that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What, such as `CPU model`.
    pub what: String,
    /// In A; none where it is not known.
    pub a: Option<String>,
    /// In B.
    pub b: Option<String>,
    /// How much it spoils the comparison.
    pub weight: Weight,
}

/// What a difference between two runs does to their comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// It may be what one wants to compare: another version, another build.
    Wanted,
    /// Part of what changed may be due to it.
    Disturbs,
    /// A transaction is not the same thing in both.
    Forbids,
}

/// A setting with two values; none where a run does not have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct SettingChange {
    pub name: String,
    pub a: Option<String>,
    pub b: Option<String>,
}

/// A figure of both runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Pair {
    /// In A; none where it was not measured.
    pub a: Option<f64>,
    /// In B.
    pub b: Option<f64>,
}

/// One rung in both runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RungChange {
    /// Its connections.
    pub connections: u32,
    /// Visits in A and in B.
    pub visits: [usize; 2],
    /// Transactions per second.
    pub throughput: Pair,
    /// That of B over that of A; no limits where a side has fewer than two visits.
    pub throughput_ratio: Option<Estimate>,
    /// Probability of such a ratio where nothing changed, by Holm's rule over all rungs.
    pub throughput_p: Option<f64>,
    /// CPU seconds of the server per transaction.
    pub cpu_seconds_per_txn: Pair,
    /// That of B over that of A.
    pub cpu_ratio: Option<Estimate>,
    /// 95th percentile of latency, milliseconds.
    pub p95_ms: Pair,
    /// Thread-seconds per transaction of the connections by state.
    pub states: Vec<StateChange>,
    /// How much longer the same work takes in all functions alike, B over A; taken out before call paths are compared.
    pub dilation: f64,
    /// Whether the CPUs are busy in both, so that waiting loses nothing and only CPU time is compared.
    pub busy: bool,
    /// What the figures of this rung lack or why they are to be doubted.
    pub notes: Vec<String>,
}

/// One state of the thread ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateChange {
    /// Its name.
    pub state: String,
    /// Seconds per transaction.
    pub seconds_per_txn: Pair,
    /// B less A.
    pub change: Estimate,
}

/// How a call path changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Only B has it.
    New,
    /// Only A has it.
    Gone,
    /// It costs more, and the more so the more connections there are.
    ScalesWorse,
    /// It costs less, and the more so the more connections there are.
    ScalesBetter,
    /// It costs more at the base rung too.
    SlowerEverywhere,
    /// It costs less at the base rung too.
    FasterEverywhere,
    /// It costs more here; whether elsewhere too is not sure.
    Slower,
    /// It costs less here; whether elsewhere too is not sure.
    Faster,
}

/// A call path that costs a transaction something else than before. What one of them counts no other does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathChange {
    /// The rung.
    pub connections: u32,
    /// `cpu` and `spin` are one account here, named for the larger part; else the state of the waits.
    pub state: String,
    /// Functions, outermost first; those of the kernel end in ` [k]`.
    pub path: Vec<String>,
    /// How it changed.
    pub course: Course,
    /// Thread-seconds per transaction.
    pub seconds_per_txn: Pair,
    /// Δ, B less A, without what all functions share alike. No limits where a side has fewer than two visits.
    pub change: Estimate,
    /// Δ over what a transaction costs in A: of its CPU time where the CPUs are busy, else of its whole time.
    pub share: f64,
    /// Δ here less Δ at the base rung; none at the base rung.
    pub beyond_base: Option<Estimate>,
    /// The false discovery rate at which it would just be listed; none where it could not be tested.
    pub q: Option<f64>,
}

/// Why two runs cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Only watched runs have no transactions.
    Watched,
    /// A transaction is not the same in both.
    Unlike(Vec<Difference>),
    /// They have no rung in common.
    NoCommonRung {
        /// Rungs of A.
        a: Vec<u32>,
        /// Rungs of B.
        b: Vec<u32>,
    },
    /// The rung that was asked for is not one of both.
    NoSuchRung {
        /// What was asked for.
        wanted: u32,
        /// Rungs of both.
        common: Vec<u32>,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |rungs: &[u32]| rungs.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        match self {
            Refusal::Watched => f.write_str(
                "a bundle that only watched a server has no transactions to compare: measure both with `scaleprof run`",
            ),
            Refusal::Unlike(differences) => {
                f.write_str("the runs are not alike, so a transaction is not the same in both:")?;
                for one in differences {
                    let known = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
                    write!(f, " {} ({} and {});", one.what, known(&one.a), known(&one.b))?;
                }
                f.write_str(" --force compares them all the same")
            }
            Refusal::NoCommonRung { a, b } => write!(
                f,
                "the runs have no number of connections in common ({} and {}): measure one with the other's --connections",
                list(a),
                list(b)
            ),
            Refusal::NoSuchRung { wanted, common } => {
                write!(
                    f,
                    "{wanted} connections were not measured in both runs; {} were",
                    list(common)
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// A rung that both runs have: the figures of each visit, analysed by itself.
struct CommonRung {
    connections: u32,
    a: Vec<RungResult>,
    b: Vec<RungResult>,
}

/// Compares two runs.
///
/// # Errors
/// [`Refusal`], where there is nothing that can be compared.
pub fn compare(a: &Bundle, b: &Bundle, choice: Choice) -> Result<Comparison, Refusal> {
    if [a, b]
        .iter()
        .any(|bundle| bundle.manifest.workload.name == scaleprof_bundle::WATCH)
    {
        return Err(Refusal::Watched);
    }
    let differences = sides::differences(a, b);
    let forbidding: Vec<Difference> = differences
        .iter()
        .filter(|one| one.weight == Weight::Forbids)
        .cloned()
        .collect();
    if !forbidding.is_empty() && !choice.force {
        return Err(Refusal::Unlike(forbidding));
    }
    let mut call_paths = CallPaths::of_both(a, b);
    let common = common_rungs(measured_visits(a, &mut call_paths), measured_visits(b, &mut call_paths))?;
    let known: Vec<u32> = common.iter().map(|rung| rung.connections).collect();
    for wanted in [choice.connections, choice.base_rung].into_iter().flatten() {
        if !known.contains(&wanted) {
            return Err(Refusal::NoSuchRung { wanted, common: known });
        }
    }
    let mut rungs: Vec<RungChange> = common.iter().map(rung_change).collect();
    let ps: Vec<f64> = rungs.iter().filter_map(|rung| rung.throughput_p).collect();
    let mut adjusted = differences::holm(&ps).into_iter();
    for rung in &mut rungs {
        rung.throughput_p = rung.throughput_p.and_then(|_| adjusted.next());
    }
    let base_rung = choice
        .base_rung
        .or_else(|| cheapest(&rungs))
        .filter(|_| rungs.len() > 1);
    let mut paths = path_changes(&common, &mut rungs, base_rung, &call_paths);
    paths.retain(|path| choice.connections.is_none_or(|wanted| path.connections == wanted));
    let warnings = sides::warnings(a, b, &differences, &rungs);
    Ok(Comparison {
        schema: 1,
        sentence: sentence(&rungs, &paths),
        servers: [a, b].map(|bundle| format!("{} {}", bundle.manifest.server.product, bundle.manifest.server.version)),
        settings: sides::settings(a, b),
        differences,
        base_rung,
        rungs,
        paths,
        warnings,
    })
}

fn common_rungs(
    mut a: BTreeMap<u32, Vec<RungResult>>,
    mut b: BTreeMap<u32, Vec<RungResult>>,
) -> Result<Vec<CommonRung>, Refusal> {
    let all = |rungs: &BTreeMap<u32, Vec<RungResult>>| rungs.keys().copied().collect::<Vec<u32>>();
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
    before
        .iter()
        .filter_map(|rung| Some((rung.connections, cost(rung)?)))
        .min_by(|x, y| x.1.total_cmp(&y.1))
        .map(|(connections, _)| connections)
}

fn sentence(rungs: &[RungChange], paths: &[PathChange]) -> String {
    let tested = rungs.iter().any(|rung| rung.throughput_p.is_some());
    let differ: Vec<String> = rungs
        .iter()
        .filter(|rung| rung.throughput_p.is_some_and(|p| p <= FALSE_DISCOVERIES))
        .filter_map(|rung| {
            let ratio = rung.throughput_ratio?;
            let limits = ratio.low.zip(ratio.high);
            let limits = limits.map_or(String::new(), |(low, high)| format!(" ({low:.2} to {high:.2})"));
            Some(format!(
                "{}{limits} times at {}",
                factor_of(ratio.value),
                rung.connections
            ))
        })
        .collect();
    let throughput = match (tested, differ.is_empty()) {
        (false, _) => {
            "Whether throughput changed cannot be told: both runs need each rung measured twice at least".to_owned()
        }
        (_, true) => "Throughput did not change beyond chance at any common number of connections".to_owned(),
        (_, false) => format!("Throughput of B is {} connections that of A", differ.join(", ")),
    };
    let certain = paths.iter().filter(|path| path.q.is_some()).count();
    let of_paths = match certain {
        0 => "no call path changed its cost beyond chance".to_owned(),
        1 => "one call path changed its cost".to_owned(),
        many => format!("{many} call paths changed their cost"),
    };
    format!("{throughput}; {of_paths}.")
}

/// Two digits after the point near 1, where they matter.
fn factor_of(ratio: f64) -> String {
    match (0.2..10.0).contains(&ratio) {
        true => format!("{ratio:.2}"),
        false => factor(ratio),
    }
}

#[cfg(test)]
mod tests;
