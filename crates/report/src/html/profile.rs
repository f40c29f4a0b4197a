//! The samples behind the flame graph and the heat map, packed for the page.
//!
//! Text for a tree of 100 000 call paths and its samples would be tens of megabytes. What stands in the page instead is
//! base64 of a raw deflate stream (RFC 1951) of
//!
//! - the length of the header in bytes, 4 bytes, little-endian
//! - the header: JSON in UTF-8, [`Header`]
//! - its columns, one after the other: unsigned numbers, the lowest byte of every value first, then the second of every
//!   value, and so on. Beside one another, bytes that seldom differ pack well.
//!
//! A run of many samples is thinned first, see [`thinned`]. `web/src/flameData.ts` reads it.

mod thinned;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use scaleprof_analysis::Per;
use scaleprof_analysis::flame::{CELL_MICROSECONDS, Flame, Measurement, Rung, Side};
use scaleprof_analysis::student::t_quantile_975;
use scaleprof_vocabulary::ThreadState;
use serde::Serialize;
use std::io::{self, Write};
use thinned::{KeptMeasurement, KeptRung, Thinned, thinned};

/// Bytes of a sample's weight: a 32-bit float without its lowest byte, which is below 0.002 % of it.
const WEIGHT_BYTES: usize = 3;

#[derive(Serialize)]
struct Header<'a> {
    /// `transaction` or `second`: what weights are divided by.
    per: &'static str,
    /// The page's share of the rule for intervals: the 97.5 % quantiles of Student's t at even steps of 1 over the degrees of
    /// freedom, from 0 to 1.
    t_quantiles: Vec<f64>,
    /// Length of a cell, microseconds.
    cell_us: i64,
    states: [&'static str; ThreadState::ALL.len()],
    functions: &'a [String],
    rungs: Vec<HeaderRung>,
    columns: Vec<HeaderColumn>,
}

#[derive(Serialize)]
struct HeaderRung {
    /// `a` or `b` where the page compares two bundles.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<Side>,
    connections: Option<u32>,
    /// Measurement, second and amount of each second that counts.
    counted: Vec<(i32, i32, f64)>,
    measurements: Vec<HeaderMeasurement>,
    thinned: Vec<HeaderThinned>,
}

/// A state of which not every sample is kept. Its sums, seconds and cells stand in the columns of these names, rung by rung,
/// state by state.
#[derive(Serialize)]
struct HeaderThinned {
    state: usize,
    /// Call paths with a sum.
    sums: usize,
    /// Seconds of paths for intervals.
    seconds: usize,
}

#[derive(Serialize)]
struct HeaderMeasurement {
    measurement: i32,
    repeat: i32,
    seconds: u32,
    /// Samples of each state that are kept; they stand in this order.
    samples: [usize; ThreadState::ALL.len()],
    /// Samples of each state that were taken.
    all: [usize; ThreadState::ALL.len()],
}

#[derive(Serialize)]
struct HeaderColumn {
    name: &'static str,
    /// Values.
    count: usize,
    /// Bytes of each.
    bytes: usize,
}

/// One column of the stream.
struct Column {
    name: &'static str,
    values: Vec<u32>,
    bytes: usize,
}

impl Column {
    /// With as many bytes as the largest value needs.
    fn of(name: &'static str, values: Vec<u32>) -> Column {
        let largest = values.iter().copied().max().unwrap_or(0);
        let bytes = (1..4).find(|bytes| largest >> (8 * bytes) == 0).unwrap_or(4);
        Column { name, values, bytes }
    }

    fn of_weights(name: &'static str, weights: impl Iterator<Item = f64>) -> Column {
        Column {
            name,
            values: weights.map(short).collect(),
            bytes: WEIGHT_BYTES,
        }
    }
}

/// The samples as text for the page; empty where there are none.
pub(crate) fn packed(flame: Option<&Flame>) -> String {
    // Nothing is written but to memory, which has no errors; a page without its graph would still be one.
    flame.and_then(|flame| pack(flame).ok()).unwrap_or_default()
}

fn pack(flame: &Flame) -> io::Result<String> {
    let kept = thinned(&flame.rungs);
    let columns = columns(flame, &kept);
    let header = Header {
        per: match flame.per {
            Per::Transaction => "transaction",
            Per::Second => "second",
        },
        t_quantiles: t_quantiles(),
        cell_us: CELL_MICROSECONDS,
        states: ThreadState::ALL.map(ThreadState::name),
        functions: &flame.functions,
        rungs: flame.rungs.iter().zip(&kept).map(header_of_rung).collect(),
        columns: columns
            .iter()
            .map(|column| HeaderColumn {
                name: column.name,
                count: column.values.len(),
                bytes: column.bytes,
            })
            .collect(),
    };
    let header = serde_json::to_vec(&header)?;
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    deflated.write_all(&u32::try_from(header.len()).map_err(io::Error::other)?.to_le_bytes())?;
    deflated.write_all(&header)?;
    for column in &columns {
        for byte in 0..column.bytes {
            let plane: Vec<u8> = column.values.iter().map(|value| (value >> (8 * byte)) as u8).collect();
            deflated.write_all(&plane)?;
        }
    }
    Ok(STANDARD.encode(deflated.finish()?))
}

fn columns(flame: &Flame, kept: &[KeptRung<'_>]) -> [Column; 12] {
    let samples = || {
        let measurements = kept.iter().flat_map(|rung| &rung.measurements);
        measurements.flat_map(|measurement| measurement.samples.iter().flat_map(|(_, some)| some.kept()))
    };
    let thinned = || kept.iter().flat_map(|rung| &rung.thinned);
    let sums = || thinned().flat_map(|state| &state.sums);
    let seconds = || thinned().flat_map(|state| &state.seconds);
    let cells = || thinned().flat_map(|state| state.cells.iter().flatten());
    let states_of_measurements = kept
        .iter()
        .flat_map(|rung| &rung.measurements)
        .flat_map(|measurement| measurement.samples.iter());
    [
        Column::of("depth", flame.nodes.iter().map(|node| node.depth).collect()),
        Column::of("function", flame.nodes.iter().map(|node| node.function).collect()),
        Column::of(
            "node",
            states_of_measurements
                .flat_map(|(_, some)| steps(some.kept().iter().map(|sample| sample.node)))
                .collect(),
        ),
        Column::of("cell", samples().map(|sample| sample.cell).collect()),
        Column::of_weights("weight", samples().map(|sample| sample.thread_seconds)),
        Column::of(
            "sum_node",
            thinned()
                .flat_map(|state| steps(state.sums.iter().map(|sum| sum.0)))
                .collect(),
        ),
        Column::of_weights("sum_weight", sums().map(|sum| sum.1)),
        Column::of(
            "second_node",
            thinned()
                .flat_map(|state| steps(state.seconds.iter().map(|second| second.0)))
                .collect(),
        ),
        Column::of("second_place", seconds().map(|second| second.1).collect()),
        Column::of_weights("second_weight", seconds().map(|second| second.2)),
        Column::of_weights("cell_weight", cells().map(|cell| cell.0)),
        Column::of("cell_count", cells().map(|cell| cell.1).collect()),
    ]
}

/// The step from each place to the next, within one state: mostly small.
fn steps(places: impl Iterator<Item = u32>) -> impl Iterator<Item = u32> {
    let mut before = 0;
    places.map(move |place| {
        let step = place.wrapping_sub(before);
        before = place;
        step
    })
}

/// The upper three bytes of a 32-bit float, rounded.
fn short(value: f64) -> u32 {
    (value as f32).to_bits().saturating_add(0x80) >> 8
}

/// Between these the page takes straight lines, which errs by less than a ten thousandth.
const QUANTILES: u32 = 256;

fn t_quantiles() -> Vec<f64> {
    let degrees = |place: u32| f64::from(QUANTILES) / f64::from(place);
    let short = |quantile: f64| (quantile * 1e6).round() / 1e6;
    (0..=QUANTILES)
        .map(|place| short(t_quantile_975(degrees(place))))
        .collect()
}

fn header_of_rung((rung, kept): (&Rung, &KeptRung<'_>)) -> HeaderRung {
    let thinned = |state: &Thinned| HeaderThinned {
        state: state.state as usize,
        sums: state.sums.len(),
        seconds: state.seconds.len(),
    };
    HeaderRung {
        side: rung.side,
        connections: rung.connections,
        counted: rung
            .counted
            .iter()
            .map(|second| (second.measurement, second.second, second.amount))
            .collect(),
        measurements: rung
            .measurements
            .iter()
            .zip(&kept.measurements)
            .map(header_of_measurement)
            .collect(),
        thinned: kept.thinned.iter().map(thinned).collect(),
    }
}

fn header_of_measurement((measurement, kept): (&Measurement, &KeptMeasurement<'_>)) -> HeaderMeasurement {
    HeaderMeasurement {
        measurement: measurement.measurement,
        repeat: measurement.repeat,
        seconds: measurement.seconds,
        samples: ThreadState::ALL.map(|state| kept.samples[state].kept().len()),
        all: ThreadState::ALL.map(|state| kept.all[state]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_analysis::flame::{Node, Sample};
    use std::io::Read;

    fn sample(state: ThreadState, node: u32, cell: u32) -> Sample {
        Sample {
            state,
            node,
            cell,
            thread_seconds: 0.010_101_010_1,
        }
    }

    fn two_measurements() -> Flame {
        let measurement = |measurement, samples| Measurement {
            measurement,
            repeat: measurement,
            seconds: 6,
            samples,
        };
        Flame {
            per: Per::Transaction,
            functions: vec!["main".into(), "futex_wait [k]".into()],
            nodes: (0..70_000).map(|depth| Node { depth, function: 1 }).collect(),
            rungs: vec![Rung {
                side: None,
                connections: Some(4),
                counted: Vec::new(),
                measurements: vec![
                    measurement(
                        0,
                        vec![
                            sample(ThreadState::Cpu, 3, 299),
                            sample(ThreadState::Cpu, 69_999, 0),
                            sample(ThreadState::Lock, 2, 7),
                        ],
                    ),
                    measurement(1, vec![sample(ThreadState::Lock, 1, 70_000)]),
                ],
            }],
        }
    }

    #[test]
    fn what_is_packed_reads_back() {
        let flame = two_measurements();
        let deflated = STANDARD.decode(packed(Some(&flame))).unwrap();
        let mut plain = Vec::new();
        flate2::read::DeflateDecoder::new(deflated.as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        let length = u32::from_le_bytes(plain[..4].try_into().unwrap()) as usize;
        let header: serde_json::Value = serde_json::from_slice(&plain[4..4 + length]).unwrap();
        assert_eq!(header["functions"][1], "futex_wait [k]");
        assert_eq!(
            header["rungs"][0]["measurements"][0]["samples"],
            serde_json::json!([2, 0, 0, 1, 0, 0, 0, 0, 0])
        );
        let mut at = 4 + length;
        let mut columns = std::collections::BTreeMap::new();
        for column in header["columns"].as_array().unwrap() {
            let count = column["count"].as_u64().unwrap() as usize;
            let mut values = vec![0u32; count];
            for byte in 0..column["bytes"].as_u64().unwrap() {
                for value in &mut values {
                    *value |= u32::from(plain[at]) << (8 * byte);
                    at += 1;
                }
            }
            columns.insert(column["name"].as_str().unwrap().to_owned(), values);
        }
        assert_eq!(at, plain.len());
        assert!(columns["depth"].iter().copied().eq(0..70_000));
        assert_eq!(columns["node"], [3, 69_996, 2, 1]);
        assert_eq!(columns["cell"], [299, 0, 7, 70_000]);
        let weight = f32::from_bits(columns["weight"][0] << 8);
        assert!((f64::from(weight) / 0.010_101_010_1 - 1.0).abs() < 2e-5, "{weight}");
    }

    #[test]
    fn nothing_sampled_is_nothing() {
        assert_eq!(packed(None), "");
    }
}
