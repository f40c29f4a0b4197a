//! The measurements of a run with their seconds in columns.

use scaleprof_bundle::{Bundle, CounterRow, MeasurementRow, SecondRow, Summary};
use scaleprof_vocabulary::MeasurementOutcome;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Seconds of counters a page may hold: about 12 MB of text. Past that the longest tail, the status variables of the
/// server, goes first.
const MOST_VALUES: usize = 1_500_000;

/// One measurement: a rung's one repeat.
#[derive(Serialize)]
pub(super) struct Measurement<'a> {
    measurement: i32,
    connections: i32,
    idle_connections: i32,
    repeat: i32,
    offered_rate: Option<f64>,
    connect_seconds: f64,
    outcome: MeasurementOutcome,
    client_lag_p99_us: Option<f64>,
    client_threads: i32,
    client_resident_bytes: Option<i64>,
    /// Seconds cut as warm-up; none where the analysis did not count the measurement.
    warmup_seconds: Option<u32>,
    seconds: Seconds,
    /// Rate per second (or level) of each counter, by name, beside `seconds.second`.
    counters: BTreeMap<&'a str, Vec<Option<f64>>>,
}

/// The columns of the per-second table; rates are per second of real time, latencies in milliseconds.
#[derive(Default, Serialize)]
struct Seconds {
    second: Vec<i32>,
    transactions: Vec<f64>,
    queries: Vec<f64>,
    errors: Vec<f64>,
    retries: Vec<f64>,
    p50_ms: Vec<Option<f64>>,
    p95_ms: Vec<Option<f64>>,
    p99_ms: Vec<Option<f64>>,
    max_ms: Vec<Option<f64>>,
}

/// All measurements in the order in which they ran, and the counters that were left out.
pub(super) fn measurements<'a>(bundle: &'a Bundle, summary: &Summary) -> (Vec<Measurement<'a>>, Vec<&'a str>) {
    let (kept, left_out) = counters_to_keep(&bundle.counters);
    let mut seconds: HashMap<i32, Vec<&SecondRow>> = HashMap::new();
    for row in &bundle.seconds {
        seconds.entry(row.measurement).or_default().push(row);
    }
    let mut counters: HashMap<i32, Vec<&'a CounterRow>> = HashMap::new();
    for row in bundle
        .counters
        .iter()
        .filter(|row| row.second.is_some() && kept.contains(row.counter.as_str()))
    {
        counters.entry(row.measurement).or_default().push(row);
    }
    let warmups = warmups(&bundle.measurements, summary);
    let mut rungs: Vec<&MeasurementRow> = bundle.measurements.iter().collect();
    rungs.sort_by_key(|rung| rung.measurement);
    let measurements = rungs
        .into_iter()
        .map(|rung| {
            let mut rows = seconds.remove(&rung.measurement).unwrap_or_default();
            rows.sort_by_key(|row| row.second);
            Measurement {
                measurement: rung.measurement,
                connections: rung.connections,
                idle_connections: rung.idle_connections,
                repeat: rung.repeat,
                offered_rate: rung.offered_rate,
                connect_seconds: round(rung.connect_seconds),
                outcome: rung.outcome,
                client_lag_p99_us: rung.client_lag_p99_us.map(round),
                client_threads: rung.client_threads,
                client_resident_bytes: rung.client_resident_bytes,
                warmup_seconds: warmups.get(&rung.measurement).copied(),
                counters: counter_columns(&rows, counters.remove(&rung.measurement).unwrap_or_default()),
                seconds: second_columns(&rows),
            }
        })
        .collect();
    (measurements, left_out)
}

/// The warm-up of each measurement. The summary names them rung by rung, in the order of the
/// measurements that count.
fn warmups(rungs: &[MeasurementRow], summary: &Summary) -> HashMap<i32, u32> {
    let mut found = HashMap::new();
    for rung in &summary.rungs {
        let mut measurements: Vec<&MeasurementRow> = rungs
            .iter()
            .filter(|row| row.connections == rung.connections as i32)
            .collect();
        measurements.sort_by_key(|row| row.measurement);
        if measurements.len() != rung.warmup_seconds.len() {
            measurements.retain(|row| row.outcome == MeasurementOutcome::Complete);
        }
        if measurements.len() == rung.warmup_seconds.len() {
            found.extend(
                measurements
                    .iter()
                    .zip(&rung.warmup_seconds)
                    .map(|(row, &warmup)| (row.measurement, warmup)),
            );
        }
    }
    found
}

/// The names to show by the second: those that are ever anything but 0, as many as the page may hold.
fn counters_to_keep(rows: &[CounterRow]) -> (BTreeSet<&str>, Vec<&str>) {
    let mut values: BTreeMap<&str, usize> = BTreeMap::new();
    let mut alive: BTreeSet<&str> = BTreeSet::new();
    for row in rows.iter().filter(|row| row.second.is_some()) {
        *values.entry(&row.counter).or_default() += 1;
        if row.value != 0.0 {
            alive.insert(&row.counter);
        }
    }
    let mut names: Vec<&str> = alive.into_iter().collect();
    names.sort_by_key(|name| (name.starts_with("status."), *name));
    let mut total = 0;
    let (kept, left_out): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| {
        total += values[name];
        total <= MOST_VALUES
    });
    (kept.into_iter().collect(), left_out)
}

fn second_columns(rows: &[&SecondRow]) -> Seconds {
    let mut columns = Seconds::default();
    let ms = |ns: Option<i64>| ns.map(|ns| round(ns as f64 / 1e6));
    for row in rows {
        let length = length_in_seconds(row);
        columns.second.push(row.second);
        columns.transactions.push(round(row.transactions as f64 / length));
        columns.queries.push(round(row.queries as f64 / length));
        columns.errors.push(round(row.errors as f64 / length));
        columns.retries.push(round(row.retries as f64 / length));
        columns.p50_ms.push(ms(row.p50_ns));
        columns.p95_ms.push(ms(row.p95_ns));
        columns.p99_ms.push(ms(row.p99_ns));
        columns.max_ms.push(ms(row.max_ns));
    }
    columns
}

fn counter_columns<'a>(seconds: &[&SecondRow], rows: Vec<&'a CounterRow>) -> BTreeMap<&'a str, Vec<Option<f64>>> {
    let place: HashMap<i32, usize> = seconds.iter().enumerate().map(|(at, row)| (row.second, at)).collect();
    let mut columns: BTreeMap<&str, Vec<Option<f64>>> = BTreeMap::new();
    for row in rows {
        if let Some(&at) = row.second.as_ref().and_then(|second| place.get(second)) {
            let length = if row.counter.ends_with("_level") {
                1.0
            } else {
                length_in_seconds(seconds[at])
            };
            let column = columns.entry(&row.counter).or_insert_with(|| vec![None; seconds.len()]);
            column[at] = Some(round(row.value / length));
        }
    }
    columns
}

fn length_in_seconds(row: &SecondRow) -> f64 {
    if row.duration_ns > 0 {
        row.duration_ns as f64 / 1e9
    } else {
        1.0
    }
}

/// Five significant digits: more than a curve can show, a third of the text.
pub(super) fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    if digits <= 0 {
        return value.round();
    }
    if digits > 12 {
        return 0.0;
    }
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str, value: f64) -> CounterRow {
        CounterRow {
            measurement: 0,
            second: Some(0),
            counter: name.into(),
            value,
            running_share: None,
        }
    }

    #[test]
    fn silent_counters_are_left_out_without_a_word() {
        let rows = [counter("status.Com_load", 0.0), counter("status.Com_commit", 3.0)];
        let (kept, left_out) = counters_to_keep(&rows);
        assert_eq!(kept.into_iter().collect::<Vec<_>>(), ["status.Com_commit"]);
        assert!(left_out.is_empty());
    }

    #[test]
    fn rounding_keeps_five_digits() {
        assert_eq!(round(13_287.654), 13_288.0);
        assert_eq!(round(0.012_345_678), 0.012_346);
        assert_eq!(round(-2.0), -2.0);
    }
}
