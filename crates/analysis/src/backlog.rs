//! What an open loop offered and the server never began: it is in no percentile.

use crate::measurement_rows::MeasurementRows;
use crate::numbers::percent;
use std::collections::BTreeMap;

/// Counter of the transactions that were due and not begun at the end of a second.
const COUNTER: &str = "client.backlog_level";
/// Part of what was offered from which the percentiles are no longer those of the offered load.
const MOST: f64 = 0.01;

/// One warning for every rung that ended with more than that behind it.
pub(crate) fn warnings(rungs: &BTreeMap<u32, Vec<&MeasurementRows<'_>>>) -> Vec<String> {
    let worst = |measurements: &[&MeasurementRows]| {
        measurements
            .iter()
            .filter_map(|measurement| left_over(measurement))
            .fold(0.0, f64::max)
    };
    rungs
        .iter()
        .map(|(connections, measurements)| (connections, worst(measurements)))
        .filter(|(_, share)| *share > MOST)
        .map(|(connections, share)| {
            format!(
                "at {connections} connections {} of the offered transactions had not started at the end: latencies \
                 and response times exclude them, the longest waits",
                percent(share)
            )
        })
        .collect()
}

/// Part of what was offered in a measurement that was not begun at its end.
fn left_over(measurement: &MeasurementRows<'_>) -> Option<f64> {
    let seconds = measurement
        .seconds
        .iter()
        .map(|row| row.duration_ns as f64 / 1e9)
        .sum::<f64>();
    let offered = measurement.rung?.offered_rate? * seconds;
    let backlog = measurement.counters.iter().filter(|row| row.counter == COUNTER);
    let last = backlog.max_by_key(|row| row.second)?;
    (offered > 0.0).then_some(last.value / offered)
}
