//! Every rung of a bundle, summed up.

use crate::call_paths::CallPaths;
use crate::measurement_rows::{MeasurementRows, by_connections, by_measurement};
use crate::pacing::Pacing;
use crate::rung::{self, RungResult};
use scaleprof_bundle::Bundle;
use std::collections::BTreeMap;

/// The measured rungs of a bundle, by rising connections, with what their call paths cost by the numbers of `call_paths`.
pub(crate) fn measured_rungs(bundle: &Bundle, call_paths: &mut CallPaths<'_>) -> Vec<RungResult> {
    let measurements = by_measurement(bundle);
    let mut ignored = Vec::new();
    let rungs = by_connections(bundle, &measurements, &mut ignored);
    results(bundle, &rungs, call_paths, &mut ignored)
}

/// The same, each measurement by itself: how they scatter says what a difference between two runs
/// is worth.
pub(crate) fn measured_measurements(bundle: &Bundle, call_paths: &mut CallPaths<'_>) -> BTreeMap<u32, Vec<RungResult>> {
    let pacing = Pacing::of(&bundle.manifest.workload);
    let cpus = bundle.manifest.server_cpus().unwrap_or(0);
    let measurements = by_measurement(bundle);
    let rungs = by_connections(bundle, &measurements, &mut Vec::new());
    let single = rungs
        .iter()
        .flat_map(|(connections, measurements)| {
            measurements
                .iter()
                .map(|measurement| (*connections, vec![*measurement]))
        })
        .collect();
    let mut measured: BTreeMap<u32, Vec<RungResult>> = BTreeMap::new();
    for result in rung::rungs(cpus, pacing, single, call_paths).into_iter().flatten() {
        measured.entry(result.summary.connections).or_default().push(result);
    }
    measured
}

pub(crate) fn results<'a>(
    bundle: &Bundle,
    rungs: &BTreeMap<u32, Vec<&'a MeasurementRows<'a>>>,
    call_paths: &mut CallPaths<'_>,
    warnings: &mut Vec<String>,
) -> Vec<RungResult> {
    let pacing = Pacing::of(&bundle.manifest.workload);
    let cpus = bundle.manifest.server_cpus().unwrap_or(0);
    let measurements = rungs
        .iter()
        .map(|(connections, measurements)| (*connections, measurements.clone()));
    let found = rung::rungs(cpus, pacing, measurements.collect(), call_paths);
    let mut results = Vec::new();
    for (result, connections) in found.into_iter().zip(rungs.keys()) {
        match result {
            Some(result) => results.push(result),
            None => warnings.push(format!(
                "the rung of {connections} connections has no complete measurement and is left out"
            )),
        }
    }
    results
}
