//! The figures of selfbench, as a table.

use super::child::Measured;
use super::{median, median_of};
use serde::Serialize;
use std::fmt::Write as _;

/// Medians of one combination; ratios are medians of the turns' ratios, ours over sysbench's.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    what: String,
    connections: u32,
    repeats: usize,
    ours: Side,
    sysbench: Option<Side>,
    cpu_ratio: Option<Ratio>,
    throughput_ratio: Option<Ratio>,
    little: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Side {
    cpu_us_per_transaction: f64,
    cpu_user_share: f64,
    transactions_per_second: f64,
    resident_mib: f64,
    elapsed_seconds: f64,
    latency_floor_us: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Ratio {
    median: f64,
    lowest: f64,
    highest: f64,
}

impl Row {
    pub(super) fn new(what: &str, connections: u32, ours: &[Measured], sysbench: &[Measured]) -> Self {
        Row {
            what: what.to_owned(),
            connections,
            repeats: ours.len(),
            ours: side(ours).unwrap_or(Side {
                cpu_us_per_transaction: f64::NAN,
                cpu_user_share: f64::NAN,
                transactions_per_second: f64::NAN,
                resident_mib: f64::NAN,
                elapsed_seconds: f64::NAN,
                latency_floor_us: None,
            }),
            sysbench: side(sysbench),
            cpu_ratio: ratio(ours, sysbench, Measured::cpu_us_per_transaction),
            throughput_ratio: ratio(ours, sysbench, |m| m.per_second),
            little: median(ours.iter().filter_map(|m| m.little)),
        }
    }
}

fn side(measured: &[Measured]) -> Option<Side> {
    Some(Side {
        cpu_us_per_transaction: median_of(measured, Measured::cpu_us_per_transaction)?,
        cpu_user_share: median_of(measured, |m| {
            m.cpu_user_seconds / (m.cpu_user_seconds + m.cpu_system_seconds)
        })?,
        transactions_per_second: median_of(measured, |m| m.per_second)?,
        resident_mib: median_of(measured, |m| m.resident_mib)?,
        elapsed_seconds: median_of(measured, |m| m.elapsed_seconds)?,
        latency_floor_us: median(measured.iter().filter_map(|m| m.floor_us)),
    })
}

fn ratio(ours: &[Measured], sysbench: &[Measured], figure: impl Fn(&Measured) -> f64) -> Option<Ratio> {
    let ratios: Vec<f64> = ours.iter().zip(sysbench).map(|(a, b)| figure(a) / figure(b)).collect();
    Some(Ratio {
        median: median(ratios.iter().copied())?,
        lowest: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        highest: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// The rows as text.
pub(super) fn text(rows: &[Row]) -> String {
    let mut out = format!(
        "{:<24}{:>6} {:>10} {:>10} {:>22} {:>12} {:>12} {:>22} {:>8} {:>8}\n",
        "",
        "conn.",
        "CPU µs/tx",
        "sysbench",
        "ratio (least to most)",
        "tx/s",
        "sysbench",
        "ratio (least to most)",
        "RSS MiB",
        "X·R/N"
    );
    for row in rows {
        let side = |f: &dyn Fn(&Side) -> f64, digits: usize| {
            row.sysbench
                .as_ref()
                .map_or_else(|| "-".to_owned(), |s| format!("{:.digits$}", f(s)))
        };
        let ratio = |ratio: &Option<Ratio>| {
            ratio.as_ref().map_or_else(
                || "-".to_owned(),
                |r| format!("{:.2} ({:.2} to {:.2})", r.median, r.lowest, r.highest),
            )
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "{:<24}{:>6} {:>10.2} {:>10} {:>22} {:>12.0} {:>12} {:>22} {:>8.0} {:>8}",
            row.what,
            row.connections,
            row.ours.cpu_us_per_transaction,
            side(&|s| s.cpu_us_per_transaction, 2),
            ratio(&row.cpu_ratio),
            row.ours.transactions_per_second,
            side(&|s| s.transactions_per_second, 0),
            ratio(&row.throughput_ratio),
            row.ours.resident_mib,
            row.little.map_or_else(|| "-".to_owned(), |l| format!("{l:.4}")),
        );
    }
    out
}
