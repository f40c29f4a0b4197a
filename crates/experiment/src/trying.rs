//! Trying what a run's findings advise: servers with and without each setting, in turns, at the rung where the loss is.
//!
//! It is an experiment of its own (see [`crate::trials`]), short, on the data that the run was on.

use crate::error::RunError;
use crate::options::{RunOptions, ServerChoice};
use crate::trials::{Design, Experiment, ExperimentError, ExperimentProgress, Plan, Variant};
use scaleprof_analysis::trials::{ComparisonTold, FEWEST_PAIRS, Outcome};
use scaleprof_bundle::{Finding, Remedy, RemedyResult, without_folders};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Settings that are tried, those of the gravest findings first: each costs some ten server starts.
const MOST_REMEDIES: usize = 4;
/// Longer windows would be of little use where starts differ more than seconds do.
const MOST_SECONDS: u32 = 5;
const SENTINELS: u32 = 1;
const MARGIN: f64 = 0.01;

/// What trying came to.
#[derive(Debug)]
pub struct Trials {
    /// Of every remedy.
    pub tried: Vec<RemedyResult>,
    /// The whole experiment; `experiment.json` in its folder holds the same.
    pub outcome: Outcome,
}

/// What a run advises to set, at the rung where its gravest finding sees the loss, and how many other settings it advises. A remedy
/// that several findings share comes once.
pub fn remedies(findings: &[Finding]) -> (Vec<(Remedy, u32)>, usize) {
    let mut all: Vec<(Remedy, u32)> = Vec::new();
    for finding in findings {
        for remedy in &finding.remedies {
            if all.iter().all(|(known, _)| known != remedy) {
                all.push((remedy.clone(), finding.rungs[1]));
            }
        }
    }
    let advised = all.len();
    // One experiment has one ladder: that of the gravest finding.
    if let Some((_, gravest)) = all.first().cloned() {
        all.retain(|(_, rung)| *rung == gravest);
    }
    all.truncate(MOST_REMEDIES);
    let others = advised - all.len();
    (all, others)
}

/// Tries a run's remedies and says what each came to; the experiment's folder stands beside the bundle. None where there is nothing
/// to try. `stop` ends it early; then what was measured of each remedy is told all the same.
///
/// # Errors
/// Its folder cannot be made or written. A server that does not start with a setting is no error but [`Tried::doubt`].
pub fn try_remedies(
    options: &RunOptions,
    findings: &[Finding],
    stop: &Arc<AtomicBool>,
    progress: &mut dyn ExperimentProgress,
) -> Result<Option<Trials>, ExperimentError> {
    let (remedies, _) = remedies(findings);
    let Some(&(_, connections)) = remedies.first() else {
        return Ok(None);
    };
    let remedies: Vec<Remedy> = remedies.into_iter().map(|(remedy, _)| remedy).collect();
    let plan = plan(options, &remedies, connections);
    let experiment = Experiment::of_plan(plan, &folder_beside(&options.output))?;
    let result = experiment.carry_out(stop, progress)?;
    let problem = result.problem.as_ref().map(RunError::for_bundle);
    let tried = remedies
        .into_iter()
        .map(|remedy| tried(remedy, connections, &result.outcome, problem.as_deref()))
        .collect();
    Ok(Some(Trials {
        tried,
        outcome: result.outcome,
    }))
}

/// Where the experiment of a bundle is kept.
pub fn folder_beside(bundle: &Path) -> PathBuf {
    let mut name = bundle.file_name().unwrap_or_default().to_owned();
    name.push("-tried");
    bundle.with_file_name(name)
}

fn plan(options: &RunOptions, remedies: &[Remedy], connections: u32) -> Plan {
    let variant = |name: String, differs_by: Vec<String>| Variant {
        name,
        server: options.server.clone(),
        load: options.load.clone(),
        base: 0,
        only_for: Vec::new(),
        differs_by,
    };
    let mut variants = vec![variant("as it was".to_owned(), Vec::new())];
    for remedy in remedies {
        let words = remedy.to_string();
        let mut with = variant(words.clone(), vec![words]);
        if let ServerChoice::Private { settings, .. } = &mut with.server {
            // The last one counts, also after the same setting of the user's.
            settings.set.push(format!("{}={}", remedy.setting, remedy.value));
        }
        variants.push(with);
    }
    Plan {
        name: "tried".to_owned(),
        question: Some("What do the settings that the findings advise come to?".to_owned()),
        design: Design {
            connections: vec![connections],
            seconds: options.seconds.min(MOST_SECONDS),
            most_pairs: FEWEST_PAIRS as u32,
            target_half_width: None,
            margin: MARGIN,
            sentinels: SENTINELS,
            side_by_side: true,
            watch: false,
            seed: options.order_seed,
        },
        variants,
        one_by_one: None,
        memory_nodes: 1,
    }
}

fn tried(remedy: Remedy, connections: u32, outcome: &Outcome, problem: Option<&str>) -> RemedyResult {
    let name = remedy.to_string();
    let comparison = outcome.comparisons.iter().find(|told| told.variant == name);
    let whole = comparison.and_then(|told: &ComparisonTold| told.overall.as_ref());
    let out = outcome.variants.iter().find(|told| told.name == name);
    let why_not = || {
        out.and_then(|told| told.dropped_reason.clone())
            .or(problem.map(str::to_owned))
    };
    let few = whole.filter(|whole| whole.pairs < FEWEST_PAIRS).map(|whole| {
        format!(
            "only {} of {FEWEST_PAIRS} pairs of starts: this is indicative",
            whole.pairs
        )
    });
    let nothing_to_say = || comparison.map(|told| told.sentence.clone());
    let doubts: Vec<String> = [problem.map(str::to_owned), few]
        .into_iter()
        .flatten()
        .chain(outcome.session.caveats.iter().cloned())
        .collect();
    RemedyResult {
        remedy,
        connections,
        throughput: whole.map(|whole| whole.ratio),
        pairs: whole.map_or(0, |whole| u32::try_from(whole.pairs).unwrap_or(u32::MAX)),
        verdict: whole.map(|whole| whole.verdict),
        margin: whole.map(|whole| whole.margin),
        caveat: match whole {
            None => why_not().or_else(nothing_to_say).map(|why| without_folders(&why)),
            Some(_) => (!doubts.is_empty()).then(|| doubts.join("; ")),
        },
    }
}

#[cfg(test)]
mod tests;
