//! What one of two compared runs measured by itself, at all of its rungs.

use super::Measured;
use crate::per::Per;
use scaleprof_bundle::{Estimate, Missing};
use serde::Serialize;
use std::collections::BTreeMap;

/// One of two compared runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneRun {
    /// Its rungs by rising connections, those too that the other run does not have; none of a server that was only watched.
    pub rungs: Vec<OneRung>,
    /// What could not be measured, each with its reason.
    pub missing: Vec<Missing>,
}

/// A rung of it, with the figures of the run's own report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OneRung {
    /// Its connections.
    pub connections: u32,
    /// Transactions per second over all measurements.
    pub throughput: Estimate,
    /// The same of each measurement.
    pub measurements: Vec<f64>,
    /// Whether throughput settled in every measurement.
    pub steady: bool,
    /// Whether the client, not the server, set the limit.
    pub client_limited: bool,
}

impl OneRun {
    /// From what was measured; `known` is what the run itself says that it could not measure.
    pub(super) fn of(per: Per, measured: &BTreeMap<u32, Measured>, known: &[Missing]) -> OneRun {
        let mut missing = known.to_vec();
        for one in measured.values().flat_map(|rung| &rung.together.missing) {
            if !missing.iter().any(|other| other.figure == one.figure) {
                missing.push(one.clone());
            }
        }
        let rung = |rung: &Measured| {
            let of = &rung.together.summary;
            OneRung {
                connections: of.connections,
                throughput: of.throughput,
                measurements: rung
                    .measurements
                    .iter()
                    .map(|measurement| measurement.summary.throughput.value)
                    .collect(),
                steady: of.steady,
                client_limited: of.client_limited,
            }
        };
        OneRun {
            rungs: match per {
                Per::Transaction => measured.values().map(rung).collect(),
                Per::Second => Vec::new(),
            },
            missing,
        }
    }
}
