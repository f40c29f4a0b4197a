//! From a bundle to its summary.

use crate::backlog;
use crate::beside;
use crate::call_paths::CallPaths;
use crate::compared::compared;
use crate::effective_concurrency;
use crate::findings::{Found, Measured, Profiled, Surroundings, doubts, findings};
use crate::machine_code::MachineCode;
use crate::measured_rungs::results;
use crate::measurement_rows::{by_connections, by_measurement};
use crate::numbers::{grouped, percent};
use crate::pacing::Pacing;
use crate::rung::RungResult;
use crate::scaling_profile::scaling_profile;
use crate::tpcc;
use crate::usl;
use crate::verdict::{Judged, nothing_counts, verdict};
use crate::watch::watched;
use scaleprof_bundle::{Bundle, Missing, RungSummary, SCHEMA, Summary, Verdict};
use scaleprof_vocabulary::{LadderVerdict, RunState, WorkloadName};
use std::cell::RefCell;

/// All that a bundle says. The same bundle gives the same summary, on any machine.
///
/// Only measurements that were completed count; the others are warned about, and a rung
/// without any is left out. A rung that did not settle counts and is marked; one in which the
/// client set the limit is listed and takes no part in the verdict.
pub fn summarise(bundle: &Bundle) -> Summary {
    let manifest = &bundle.manifest;
    if manifest.workload.name == WorkloadName::Watch {
        return of_a_watch(bundle);
    }
    let closed = Pacing::of(&manifest.workload) != Pacing::Open;
    let mut warnings = manifest.warnings.clone();
    let measurements = by_measurement(bundle);
    let rungs = by_connections(bundle, &measurements, &mut warnings);
    warnings.extend(unfinished(bundle));
    let mut call_paths = CallPaths::of(bundle);
    let mut results = results(bundle, &rungs, &mut call_paths, &mut warnings);
    for result in &mut results {
        let summary = &mut result.summary;
        summary.tpcc = tpcc::figures(&manifest.workload, summary.throughput, &summary.transactions);
    }
    let (too_short, unsettled): (Vec<&RungResult>, Vec<&RungResult>) = results
        .iter()
        .filter(|result| !result.summary.steady)
        .partition(|result| result.too_short_to_settle);
    for (which, what) in [
        (unsettled, "throughput did not settle"),
        (
            too_short,
            "measurements are too short to tell whether throughput settled",
        ),
    ] {
        if !which.is_empty() {
            let connections: Vec<String> = which.iter().map(|r| r.summary.connections.to_string()).collect();
            warnings.push(format!("{what} at {} connections", connections.join(", ")));
        }
    }
    for result in &results {
        warnings.extend(result.warnings.iter().cloned());
    }
    warnings.extend(backlog::warnings(&rungs));
    let (refused, counted): (Vec<&RungResult>, Vec<&RungResult>) =
        results.iter().partition(|result| result.summary.client_limited);
    let refused: Vec<u32> = refused.iter().map(|result| result.summary.connections).collect();
    let judged: Vec<Judged> = counted.iter().map(|result| judged(result)).collect();
    let mut verdict = verdict(&judged, &refused);
    let summaries: Vec<&RungSummary> = counted.iter().map(|result| &result.summary).collect();
    if let (Some(verdict), Some(few)) = (verdict.as_mut(), effective_concurrency::sentence(&summaries)) {
        verdict.sentence = format!("{} {few}", verdict.sentence);
        // What the last rung did is not what so many connections do.
        if summaries.last().is_some_and(|last| last.too_few_at_work) {
            verdict.class = LadderVerdict::Inconclusive;
        }
    }
    if verdict.is_none() && !refused.is_empty() {
        warnings.push(nothing_counts(&refused));
    }
    if judged.iter().any(|j| j.rung.throughput.error.is_none()) {
        warnings.push(match manifest.workload.imported() {
            Some(_) => "some rungs have no interval, as one recording does not tell how throughput scatters: import three of each".to_owned(),
            None => "some rungs have no interval, as they have too few seconds: repeat them three times or measure 15 s or more".to_owned(),
        });
    }
    let law = if closed {
        let measurements: Vec<usl::Measurement> = counted
            .iter()
            .flat_map(|result| result.measurements.iter().copied())
            .collect();
        usl::fit(&measurements, manifest.workload.seed)
    } else {
        Err("the Universal Scalability Law is about the closed loop; this was an open one".to_owned())
    };
    if let (false, Some(verdict)) = (closed, verdict.as_mut()) {
        verdict.sentence = open_loop(bundle, verdict);
        verdict.class = LadderVerdict::Inconclusive;
    }
    let missing = missing(&manifest.missing, &results);
    let mut profiled: Vec<Profiled<'_>> = counted
        .iter()
        .filter(|result| closed && result.summary.ledger.is_some())
        .map(|result| Profiled {
            summary: &result.summary,
            costs: &result.costs,
            locks: &result.lock_costs,
            instructions: &result.instructions,
            transactions: result.transactions,
        })
        .collect();
    // Beside a rung without stacks every path of the others would have grown from nothing.
    if profiled.last().is_some_and(|last| !last.costs.is_empty()) {
        profiled.retain(|rung| !rung.costs.is_empty());
    }
    let unread: RefCell<Option<String>> = RefCell::new(None);
    let surroundings = Surroundings {
        manifest,
        settings: &bundle.settings,
        code: &|| match bundle.instructions() {
            Ok(rows) => MachineCode::from_rows(&rows),
            Err(problem) => {
                unread.replace(Some(problem.to_string()));
                MachineCode::default()
            }
        },
    };
    let Found {
        mut findings,
        explained,
    } = findings(&profiled, &surroundings, &call_paths);
    warnings.extend(
        unread
            .take()
            .map(|problem| format!("the kept machine code cannot be read: {problem}")),
    );
    let findings_unavailable = not_looked_for(closed, profiled.len()).map(str::to_owned);
    let scaling = scaling_profile(&profiled, &call_paths);
    let compared = compared(verdict.as_ref(), &explained, scaling.as_ref());
    let measured: Vec<Measured<'_>> = results
        .iter()
        .map(|result| Measured {
            summary: &result.summary,
            measurements: &result.courses,
        })
        .collect();
    findings.extend(doubts(&measured));
    for finding in &mut findings {
        let tried = bundle.remedy_results.iter();
        let of_it = tried.filter(|tried| finding.remedies.contains(&tried.remedy));
        finding.remedy_results = of_it.cloned().collect();
    }
    let (usl, usl_unavailable) = match law {
        Ok(law) => (Some(law), None),
        Err(reason) => (None, Some(reason)),
    };
    let rungs: Vec<RungSummary> = results.into_iter().map(|result| result.summary).collect();
    let (replay, together) = (beside::replay_speeds(&rungs), beside::together(&rungs));
    Summary {
        schema: SCHEMA,
        server: manifest.server.clone(),
        workload: manifest.workload.clone(),
        machine: manifest.machine.clone(),
        rungs,
        verdict,
        usl,
        usl_unavailable,
        watch: None,
        replay_rates: replay,
        combined_throughput: together,
        scaling,
        findings,
        explained,
        base_rungs: compared,
        durability: crate::durability::relaxed(&bundle.settings),
        findings_unavailable,
        missing,
        warnings,
    }
}

/// Why causes cannot be looked for with so many rungs that count and whose threads were watched.
fn not_looked_for(closed: bool, profiled: usize) -> Option<&'static str> {
    match (closed, profiled) {
        (false, _) => Some("findings compare rungs of a closed loop, and this was an open one"),
        (true, 0) => {
            Some("the server's threads were not watched at a rung that counts, so it is not known what they did")
        }
        (true, 1) => {
            Some("findings compare two rungs, and only one counts whose threads were watched and seen at work")
        }
        (true, _) => None,
    }
}

/// Without a load of ours there is nothing per transaction and nothing to judge: what the threads did is all there is.
fn of_a_watch(bundle: &Bundle) -> Summary {
    let manifest = &bundle.manifest;
    let measurements = by_measurement(bundle);
    let found = watched(bundle, measurements.values());
    let mut missing = manifest.missing.clone();
    missing.extend(found.missing);
    let mut warnings = manifest.warnings.clone();
    warnings.extend(unfinished(bundle));
    warnings.extend(found.warnings);
    Summary {
        schema: SCHEMA,
        server: manifest.server.clone(),
        workload: manifest.workload.clone(),
        machine: manifest.machine.clone(),
        rungs: Vec::new(),
        verdict: None,
        usl: None,
        usl_unavailable: Some(crate::watch::no_load(&bundle.manifest.workload).to_owned()),
        watch: found.watch,
        replay_rates: Vec::new(),
        combined_throughput: None,
        scaling: None,
        findings: Vec::new(),
        explained: Vec::new(),
        base_rungs: None,
        durability: None,
        findings_unavailable: Some(crate::watch::no_load(&bundle.manifest.workload).to_owned()),
        missing,
        warnings,
    }
}

fn judged(result: &RungResult) -> Judged {
    let rung = crate::peak::Rung {
        connections: result.summary.connections,
        throughput: result.throughput,
        measurements: slowest_and_fastest(result),
    };
    Judged {
        rung,
        law: result.summary.iron_law.clone(),
        machine_busy: result.summary.busy_share,
    }
}

/// Throughput of the slowest and of the fastest measurement, where there are several.
fn slowest_and_fastest(result: &RungResult) -> Option<(f64, f64)> {
    let of_measurements = || result.measurements.iter().map(|measurement| measurement.throughput);
    let pair = of_measurements()
        .reduce(f64::min)
        .zip(of_measurements().reduce(f64::max));
    pair.filter(|_| result.measurements.len() > 1)
}

/// What to say of a bundle that is not all that was wanted.
#[must_use]
pub fn unfinished(bundle: &Bundle) -> Vec<String> {
    let mut warnings = Vec::new();
    let state = match bundle.manifest.state {
        RunState::Complete => None,
        RunState::Running => Some("the run was killed, or has not ended yet: this is what it had measured".to_owned()),
        RunState::Interrupted => Some("the run was interrupted: this is what it had measured".to_owned()),
        RunState::Failed => Some(match &bundle.manifest.problem {
            Some(problem) => format!("the run failed: {problem}"),
            None => "the run failed: this is what it had measured".to_owned(),
        }),
    };
    warnings.extend(state);
    for measurement in &bundle.partial_measurements {
        warnings.push(format!("measurement {measurement} was not finished and is not counted"));
    }
    warnings
}

fn missing(known: &[Missing], results: &[RungResult]) -> Vec<Missing> {
    let mut all = known.to_vec();
    for one in results.iter().flat_map(|result| &result.missing) {
        if !all.iter().any(|other| other.figure == one.figure) {
            all.push(one.clone());
        }
    }
    all
}

/// In the open loop throughput follows what is offered, so its peak says nothing about the server.
fn open_loop(bundle: &Bundle, verdict: &Verdict) -> String {
    let done = verdict.peak_throughput.value;
    let at = format!("{}/s at {} connections", grouped(done), verdict.peak_connections);
    match bundle.manifest.ladder.rate.filter(|rate| *rate > 0.0) {
        Some(rate) => {
            format!(
                "The server completed {at}, {} of the {}/s that were offered.",
                percent(done / rate),
                grouped(rate)
            )
        }
        None => format!("The server completed {at} of what was offered."),
    }
}
