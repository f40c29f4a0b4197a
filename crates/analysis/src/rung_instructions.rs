//! What each instruction costs, rung by rung.

use crate::call_paths::CallPaths;
use crate::instruction_costs::InstructionCosts;
use crate::measured_rungs::measured_rungs;
use crate::measurement_rows::{MeasurementRows, by_measurement};
use crate::per::Per;
use crate::watch;
use scaleprof_bundle::Bundle;

/// A rung with what its instructions cost.
#[derive(Debug, Clone)]
pub struct RungInstructions {
    /// Connections that run transactions; none for a server that was only watched, whose costs are per second.
    pub connections: Option<u32>,
    /// Whether the client set its limit, so that it takes no part in comparisons.
    pub client_limited: bool,
    /// What its instructions cost.
    pub costs: InstructionCosts,
}

impl RungInstructions {
    /// What its costs are given for.
    pub fn per(&self) -> Per {
        match self.connections {
            Some(_) => Per::Transaction,
            None => Per::Second,
        }
    }
}

/// The costs of the instructions at every rung that has a complete measurement, by rising
/// connections. A bundle without samples has rungs without instructions. A server that was only
/// watched has one rung, in which a second stands where a transaction does elsewhere.
pub fn by_rung(bundle: &Bundle) -> Vec<RungInstructions> {
    let mut call_paths = CallPaths::of(bundle);
    if Per::of(bundle) == Per::Second {
        let measurements = by_measurement(bundle);
        let all: Vec<&MeasurementRows<'_>> = measurements.values().collect();
        let watched = watch::sampled(&all).map(|sampled| RungInstructions {
            connections: None,
            client_limited: false,
            costs: InstructionCosts::of(&sampled, &call_paths),
        });
        return watched.into_iter().collect();
    }
    let results = measured_rungs(bundle, &mut call_paths).into_iter();
    let rungs = results.map(|result| RungInstructions {
        connections: Some(result.summary.connections),
        client_limited: result.summary.client_limited,
        costs: result.instructions,
    });
    rungs.collect()
}
