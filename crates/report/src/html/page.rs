//! What the page is given: the manifest, the summary and the tables laid out in columns.

use super::measurements::{Measurement, measurements};
use super::quality::{Quality, quality};
use super::statements::{Statement, statements};
use super::waits::{Waits, waits};
use scaleprof_bundle::{Bundle, Manifest, Summary};
use serde::Serialize;

/// The data of the page; `web/src/data.ts` holds the same shape.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    manifest: &'a Manifest,
    summary: &'a Summary,
    /// Measurements that a killed run did not finish.
    partial_measurements: &'a [i32],
    measurements: Vec<Measurement<'a>>,
    /// Counters whose seconds were left out to keep the page small.
    omitted_counters: Vec<&'a str>,
    errors: Vec<Errors<'a>>,
    settings: Vec<(&'a str, &'a str)>,
    statements: Vec<Statement>,
    /// Who waits for whom; none where no thread was seen to wait for a lock.
    waits: Option<Waits>,
    /// How much was seen of what the threads did.
    quality: Vec<Quality>,
}

/// Errors of one kind at one rung.
#[derive(Serialize)]
struct Errors<'a> {
    connections: i32,
    repeat: i32,
    error_code: i32,
    statement: &'a str,
    count: i64,
    retried: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(bundle: &'a Bundle, summary: &'a Summary) -> Self {
        let (measurements, omitted_counters) = measurements(bundle, summary);
        let errors = bundle
            .errors
            .iter()
            .filter_map(|row| {
                let rung = bundle
                    .measurements
                    .iter()
                    .find(|rung| rung.measurement == row.measurement)?;
                Some(Errors {
                    connections: rung.connections,
                    repeat: rung.repeat,
                    error_code: row.error_code,
                    statement: &row.statement,
                    count: row.count,
                    retried: row.retried,
                })
            })
            .collect();
        Page {
            manifest: &bundle.manifest,
            summary,
            partial_measurements: &bundle.partial_measurements,
            measurements,
            omitted_counters,
            errors,
            settings: bundle
                .settings
                .iter()
                .map(|row| (row.name.as_str(), row.value.as_str()))
                .collect(),
            statements: statements(bundle),
            waits: waits(bundle),
            quality: quality(bundle),
        }
    }
}
