//! The rows of a bundle's tables, measurement by measurement.

use scaleprof_bundle::{
    Bundle, CounterRow, ErrorRow, LatencyRow, LockRow, MeasurementRow, SampleBlock, SecondRow, StateRow,
};
use scaleprof_vocabulary::MeasurementOutcome;
use std::collections::BTreeMap;

/// The rows of one measurement.
#[derive(Debug, Default)]
pub(crate) struct MeasurementRows<'a> {
    pub rung: Option<&'a MeasurementRow>,
    pub seconds: Vec<&'a SecondRow>,
    pub counters: Vec<&'a CounterRow>,
    pub latency: Vec<&'a LatencyRow>,
    pub errors: Vec<&'a ErrorRow>,
    pub states: Vec<&'a StateRow>,
    pub samples: Vec<&'a SampleBlock>,
    pub locks: Vec<&'a LockRow>,
}

/// The rows of every measurement.
pub(crate) fn by_measurement(bundle: &Bundle) -> BTreeMap<i32, MeasurementRows<'_>> {
    let mut measurements: BTreeMap<i32, MeasurementRows> = BTreeMap::new();
    for row in &bundle.measurements {
        measurements.entry(row.measurement).or_default().rung = Some(row);
    }
    for row in &bundle.seconds {
        measurements.entry(row.measurement).or_default().seconds.push(row);
    }
    for row in &bundle.counters {
        measurements.entry(row.measurement).or_default().counters.push(row);
    }
    for row in &bundle.latency {
        measurements.entry(row.measurement).or_default().latency.push(row);
    }
    for row in &bundle.errors {
        measurements.entry(row.measurement).or_default().errors.push(row);
    }
    for row in &bundle.states {
        measurements.entry(row.measurement).or_default().states.push(row);
    }
    for block in bundle.samples.blocks() {
        measurements.entry(block.measurement()).or_default().samples.push(block);
    }
    for row in &bundle.locks {
        measurements.entry(row.measurement).or_default().locks.push(row);
    }
    measurements
}

/// The complete measurements of every rung; what does not count is warned about.
pub(crate) fn by_connections<'a>(
    bundle: &Bundle,
    measurements: &'a BTreeMap<i32, MeasurementRows<'a>>,
    warnings: &mut Vec<String>,
) -> BTreeMap<u32, Vec<&'a MeasurementRows<'a>>> {
    let mut rungs: BTreeMap<u32, Vec<&MeasurementRows>> = BTreeMap::new();
    for row in &bundle.measurements {
        let Some((connections, rows)) = u32::try_from(row.connections)
            .ok()
            .zip(measurements.get(&row.measurement))
        else {
            warnings.push(format!(
                "measurement {} names {} connections and is not counted",
                row.measurement, row.connections
            ));
            continue;
        };
        let rung = rungs.entry(connections).or_default();
        if row.outcome == MeasurementOutcome::Complete {
            rung.push(rows);
        } else {
            warnings.push(format!(
                "measurement {} at {connections} connections is not counted: {}",
                row.measurement,
                row.outcome.label()
            ));
        }
    }
    rungs
}

/// The complete measurements of every rung.
pub(crate) fn complete_by_connections<'a>(
    bundle: &Bundle,
    measurements: &'a BTreeMap<i32, MeasurementRows<'a>>,
) -> BTreeMap<u32, Vec<&'a MeasurementRows<'a>>> {
    by_connections(bundle, measurements, &mut Vec::new())
}
