//! How often the jumps of a function were taken and mispredicted, where the processor remembered them.

use super::Annotation;
use scaleprof_bundle::{BranchRow, MeasurementRow};
use scaleprof_vocabulary::MeasurementOutcome;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a reader of the counts must know.
const RECORDED: &str = "\u{201c}taken\u{201d} counts branches from the samples' branch records, for proportions \
                        only; a branch that is not taken leaves no record";

/// What became of the jumps of one instruction at the rung that is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Jumps {
    /// How often it was taken, of the jumps that were recorded.
    pub taken: i64,
    /// How often of these the processor told whether it had predicted it.
    pub with_prediction: i64,
    /// How often of these it had not; none where it is known of none.
    pub mispredicted: Option<i64>,
    /// How often the processor told the cycles since the jump before it.
    pub with_cycles: i64,
    /// The sum of these cycles; none where they are known of none.
    pub cycles: Option<i64>,
    /// Where it led, most often first: several where the address is in a register or in memory.
    pub targets: Vec<JumpTarget>,
}

/// Where an instruction jumped to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JumpTarget {
    /// File name of the executable or library.
    pub module: String,
    /// The function that the machine runs there; none where nothing names it.
    pub function: Option<String>,
    /// In the file's addresses.
    pub address: i64,
    /// How often.
    pub taken: i64,
    /// How often the processor had predicted something else; none where that is not known.
    pub mispredicted: Option<i64>,
}

impl Jumps {
    /// The part of its jumps that was mispredicted, of those of which that is known: 0 to 1.
    pub fn mispredicted_share(&self) -> Option<f64> {
        Some(self.mispredicted? as f64 / self.with_prediction as f64)
    }
}

/// The jumps of one instruction while they are added up.
#[derive(Default)]
struct Adding<'rows> {
    jumps: Jumps,
    /// Where each target, by module and address, stands among those of the jumps: there may be very many.
    places: HashMap<(&'rows str, i64), usize>,
}

impl<'rows> Adding<'rows> {
    fn add(&mut self, row: &'rows BranchRow) {
        let jumps = &mut self.jumps;
        jumps.taken = jumps.taken.saturating_add(row.taken);
        jumps.with_prediction = jumps.with_prediction.saturating_add(row.with_prediction);
        jumps.mispredicted = sum(jumps.mispredicted, row.mispredicted);
        jumps.with_cycles = jumps.with_cycles.saturating_add(row.with_cycles);
        jumps.cycles = sum(jumps.cycles, row.cycles);
        let next = jumps.targets.len();
        let place = *self
            .places
            .entry((row.to_module.as_str(), row.to_address))
            .or_insert(next);
        match jumps.targets.get_mut(place) {
            Some(target) => {
                target.taken = target.taken.saturating_add(row.taken);
                target.mispredicted = sum(target.mispredicted, row.mispredicted);
            }
            None => jumps.targets.push(JumpTarget {
                module: row.to_module.clone(),
                function: row.to_function.clone(),
                address: row.to_address,
                taken: row.taken,
                mispredicted: row.mispredicted,
            }),
        }
    }

    fn into_jumps(self) -> Jumps {
        let mut jumps = self.jumps;
        jumps
            .targets
            .sort_by_key(|target| (Reverse(target.taken), target.address));
        jumps
    }
}

/// What is not known adds nothing.
fn sum(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

impl Annotation {
    /// Adds how often its jumps were taken in the measurements of the rung that is looked at:
    /// `rungs` and `rows` are those of the bundle.
    pub fn add_jumps(&mut self, rungs: &[MeasurementRow], rows: &[BranchRow]) {
        let Some(connections) = self.compared.as_ref().map(|rung| rung.connections) else {
            return;
        };
        let is_of_rung = |rung: &&MeasurementRow| {
            let wanted = connections.and_then(|connections| i32::try_from(connections).ok());
            rung.outcome == MeasurementOutcome::Complete && wanted.is_none_or(|wanted| rung.connections == wanted)
        };
        let measurements: BTreeSet<i32> = rungs.iter().filter(is_of_rung).map(|rung| rung.measurement).collect();
        let is_own = |row: &&BranchRow| {
            row.from_module == self.module
                && row.from_build_id == self.build_id
                && measurements.contains(&row.measurement)
        };
        let mut jumps: BTreeMap<i64, Adding<'_>> = BTreeMap::new();
        for row in rows.iter().filter(is_own) {
            jumps.entry(row.from_address).or_default().add(row);
        }
        for instruction in &mut self.instructions {
            instruction.branch_stats = jumps.remove(&instruction.address).map(Adding::into_jumps);
        }
        if self
            .instructions
            .iter()
            .any(|instruction| instruction.branch_stats.is_some())
        {
            self.notes.push(RECORDED.to_owned());
        }
    }
}
