//! Putting together what an experiment comes to.

use super::conduct::Conducted;
use super::disturbed::disturbed;
use super::plan::Plan;
use super::torn::torn_apart;
use scaleprof_analysis::trials::log_ratios::PairedMean;
use scaleprof_analysis::trials::{
    ComparisonTold, DesignTold, ExperimentState, Outcome, ReplicaFigures, RungFigures, SessionQuality, Together,
    VariantRung, VariantTold, judge, sentence,
};
use scaleprof_bundle::{Manifest, Server, Workload, without_folders};
use std::collections::BTreeMap;

/// Version of `experiment.json`.
const SCHEMA: u32 = 2;
/// What stands for a comparison of watched runs until it is made.
const NOT_YET: &str = "watched runs are compared when the experiment has ended";
const NO_WATCHED_RUN: &str = "one of the two has no watched run: the plan has probe = false, or it was dropped before";

/// What the bundles of the steps say of servers, load and machine.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    first: Option<Manifest>,
    servers: Vec<Option<Server>>,
    /// Hashes of the files of servers that have no build-id.
    fingerprints: Vec<Option<String>>,
    workloads: Vec<Option<Workload>>,
    warnings: Vec<String>,
}

impl Facts {
    pub(crate) fn new(variants: usize) -> Self {
        Facts {
            first: None,
            servers: vec![None; variants],
            fingerprints: vec![None; variants],
            workloads: vec![None; variants],
            warnings: Vec::new(),
        }
    }

    /// Takes what a step's manifest says.
    pub(crate) fn learn(&mut self, variant: usize, manifest: &Manifest, fingerprint: Option<&str>) {
        for warning in &manifest.warnings {
            self.warn(warning.clone());
        }
        if let Some(first) = self
            .first
            .as_ref()
            .filter(|first| first.machine.kernel != manifest.machine.kernel)
        {
            let (before, now) = (&first.machine.kernel, &manifest.machine.kernel);
            self.warn(format!(
                "the kernel changed in the course of the session: {before}, then {now}"
            ));
        }
        self.workloads[variant].get_or_insert_with(|| manifest.workload.clone());
        let known = self.fingerprints[variant].as_deref();
        let has_another_file = known.zip(fingerprint).is_some_and(|(known, now)| known != now);
        if known.is_none() {
            self.fingerprints[variant] = fingerprint.map(str::to_owned);
        }
        match &self.servers[variant] {
            None => self.servers[variant] = Some(manifest.server.clone()),
            Some(known)
                if has_another_file
                    || known.build_id != manifest.server.build_id
                    || known.version != manifest.server.version =>
            {
                let name = known.named();
                self.warn(format!(
                    "another build took the place of {name} in the course of the session"
                ));
            }
            Some(_) => {}
        }
        // Steps that were carried out before an interruption are read first, and the earliest began it.
        match &self.first {
            Some(first) if first.started_at <= manifest.started_at => {}
            _ => self.first = Some(manifest.clone()),
        }
    }

    /// Whether a server of the variant was started before.
    pub(crate) fn has_started(&self, variant: usize) -> bool {
        self.servers[variant].is_some()
    }

    pub(crate) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// What an experiment comes to so far.
pub(crate) fn outcome(
    plan: &Plan,
    conducted: &Conducted,
    facts: &Facts,
    state: ExperimentState,
    problem: Option<String>,
) -> Outcome {
    let session = &conducted.session;
    let judged = judge(session);
    let name = |variant: usize| plan.variants[variant].name.clone();
    let design = &plan.design;
    let rounds = session.rounds.iter().filter(|round| !round.is_empty()).count();
    let comparisons = judged.variants.into_iter().map(|found| {
        let held_against = session.base_of(found.variant);
        let base = name(held_against);
        let same_work = plan.is_same_work(held_against, found.variant);
        let both = [held_against, found.variant]
            .iter()
            .all(|one| conducted.watched.contains(one));
        let said = sentence([&base, &name(found.variant)], &found, design.margin, same_work);
        ComparisonTold {
            sentence: match state {
                ExperimentState::Complete => said,
                // Who looks after every start and ends when he likes what he sees finds what he likes.
                _ => format!(
                    "So far, after {rounds} of at most {} rounds, and so not the test that was planned: {said}",
                    design.most_pairs
                ),
            },
            open_loop: found.open_loop,
            base,
            variant: name(found.variant),
            same_work,
            overall: found.overall,
            overall_rungs: found.overall_rungs,
            scales: found.scales.map(|better| if better { "better" } else { "worse" }),
            scaling_ratio: found.scaling_ratio,
            rungs: found.rungs,
            watched: None,
            not_watched: Some(if both { NOT_YET } else { NO_WATCHED_RUN }.to_owned()),
        }
    });
    Outcome {
        schema: SCHEMA,
        scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
        name: plan.name.clone(),
        question: plan.question.clone(),
        state,
        problem,
        started_at: facts.first.as_ref().map(|first| first.started_at.clone()),
        design: DesignTold {
            connections: design.connections.clone(),
            seconds: design.seconds,
            slice_seconds: plan.turn_seconds(),
            max_pairs: design.most_pairs,
            rounds: rounds as u32,
            target_half_width: design.target_half_width,
            margin: design.margin,
            indicative: design.is_indicative(),
            seed: design.seed,
        },
        workload: facts.first.as_ref().map(|first| first.workload.clone()),
        machine: facts.first.as_ref().map(|first| first.machine.clone()),
        variants: (0..plan.variants.len())
            .map(|variant| told(plan, conducted, facts, variant))
            .collect(),
        session: SessionQuality {
            // The A/A pairs at the end belong to the answer.
            reliable: judged
                .quality
                .reliable
                .filter(|reliable| !reliable || state == ExperimentState::Complete),
            ..judged.quality
        },
        comparisons: comparisons.collect(),
        warnings: [
            facts.warnings.clone(),
            torn_apart(&conducted.session),
            disturbed(&conducted.session),
        ]
        .concat(),
    }
}

fn told(plan: &Plan, conducted: &Conducted, facts: &Facts, variant: usize) -> VariantTold {
    let starts: Vec<_> = conducted
        .session
        .rounds
        .iter()
        .filter_map(|round| round.get(&variant))
        .collect();
    let rungs = plan.design.connections.iter().filter_map(|connections| {
        let figures: Vec<&RungFigures> = starts.iter().filter_map(|start| start.rungs.get(connections)).collect();
        rung(*connections, &figures)
    });
    VariantTold {
        name: plan.variants[variant].name.clone(),
        base: conducted.session.is_base(variant),
        differs_by: plan.variants[variant].differs_by.clone(),
        server: facts.servers[variant].clone(),
        workload: facts.workloads[variant].clone(),
        replicates: starts.len(),
        // What a server says of itself names its folders.
        dropped_reason: conducted.out.get(&variant).map(|why| without_folders(why)),
        rungs: rungs.collect(),
    }
}

/// Means over the starts, by the replicas' numbers.
fn replicas(figures: &[&RungFigures]) -> Vec<ReplicaFigures> {
    let mut by_number: BTreeMap<u32, Vec<ReplicaFigures>> = BTreeMap::new();
    for figures in figures.iter().flat_map(|rung| &rung.replicas) {
        by_number.entry(figures.replica).or_default().push(*figures);
    }
    let means = by_number.values().filter_map(|of| ReplicaFigures::mean(of));
    means.collect()
}

/// Geometric means over the starts.
fn rung(connections: u32, figures: &[&RungFigures]) -> Option<VariantRung> {
    let mean = |figure: &dyn Fn(&RungFigures) -> Option<f64>| {
        let logarithms: Option<Vec<f64>> = figures
            .iter()
            .map(|rung| figure(rung).filter(|value| *value > 0.0).map(f64::ln))
            .collect();
        PairedMean::of(&logarithms?)
    };
    Some(VariantRung {
        connections,
        throughput: mean(&|rung| Some(rung.throughput))?.ratio(),
        cpu_seconds_per_txn: mean(&|rung| Some(rung.law.as_ref()?.cpu_seconds_per_txn)).map(|mean| mean.mean.exp()),
        switches_per_txn: mean(&|rung| rung.switches_per_txn).map(|mean| mean.mean.exp()),
        p50_ms: mean(&|rung| rung.p50_ms).map(|mean| mean.mean.exp()),
        p99_ms: mean(&|rung| rung.p99_ms).map(|mean| mean.mean.exp()),
        replicas: replicas(figures),
        combined_throughput: figures.iter().find_map(|rung| rung.together).and_then(|one| {
            let mean = mean(&|rung| Some(rung.together?.throughput))?;
            Some(Together {
                throughput: mean.mean.exp(),
                ..one
            })
        }),
    })
}
