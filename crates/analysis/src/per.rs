//! What times are given for.

use scaleprof_bundle::Bundle;
use scaleprof_vocabulary::WorkloadName;
use serde::Serialize;

/// What the weights of a rung are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Its transactions.
    Transaction,
    /// Its seconds: a server that was only watched.
    Second,
}

impl Per {
    /// What it is in a bundle.
    pub(crate) fn of(bundle: &Bundle) -> Per {
        match bundle.manifest.workload.name {
            WorkloadName::Watch => Per::Second,
            _ => Per::Transaction,
        }
    }
}
