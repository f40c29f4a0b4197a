//! What the page is given: the manifest, the summary and the tables laid out in columns.

use super::quality::{Quality, quality};
use super::statements::{Statement, statements};
use super::visits::{Visit, visits};
use super::waits::{Waits, waits};
use scaleprof_bundle::{Bundle, Manifest, Summary};
use serde::Serialize;

/// The data of the page; `web/src/data.ts` holds the same shape.
#[derive(Serialize)]
pub(super) struct Page<'a> {
    manifest: &'a Manifest,
    summary: &'a Summary,
    /// Visits that a killed run did not finish.
    unfinished_visits: &'a [i32],
    visits: Vec<Visit<'a>>,
    /// Counters whose seconds were left out to keep the page small.
    counters_left_out: Vec<&'a str>,
    errors: Vec<Errors<'a>>,
    settings: Vec<(&'a str, &'a str)>,
    statements: Vec<Statement<'a>>,
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
    number: i32,
    statement: &'a str,
    count: i64,
    retried: bool,
}

impl<'a> Page<'a> {
    pub(super) fn new(bundle: &'a Bundle, summary: &'a Summary) -> Self {
        let (visits, counters_left_out) = visits(bundle, summary);
        let errors = bundle
            .errors
            .iter()
            .filter_map(|row| {
                let rung = bundle.rungs.iter().find(|rung| rung.visit == row.visit)?;
                Some(Errors {
                    connections: rung.connections,
                    repeat: rung.repeat,
                    number: row.number,
                    statement: &row.statement,
                    count: row.count,
                    retried: row.retried,
                })
            })
            .collect();
        Page {
            manifest: &bundle.manifest,
            summary,
            unfinished_visits: &bundle.unfinished_visits,
            visits,
            counters_left_out,
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
