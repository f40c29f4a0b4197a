//! How often the jumps of a function were taken and mispredicted, where the processor remembered them.

use super::Annotation;
use scaleprof_bundle::{BranchRow, RungRow};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What a reader of the counts must know.
const RECORDED: &str = "\u{201c}taken\u{201d} counts the jumps that the processor remembered whenever a sample was taken: read it in proportion. One that \
                        is not taken leaves nothing behind, so a conditional jump without a count may have been passed often";

/// What became of the jumps of one instruction at the rung that is looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Jumps {
    /// How often it was taken, of the jumps that were recorded.
    pub taken: i64,
    /// How often of these the processor told whether it had predicted it.
    pub prediction_known: i64,
    /// How often of these it had not; none where it is known of none.
    pub mispredicted: Option<i64>,
    /// How often the processor told the cycles since the jump before it.
    pub cycles_known: i64,
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
        Some(self.mispredicted? as f64 / self.prediction_known as f64)
    }

    fn add(&mut self, row: &BranchRow) {
        self.taken += row.taken;
        self.prediction_known += row.prediction_known;
        self.mispredicted = sum(self.mispredicted, row.mispredicted);
        self.cycles_known += row.cycles_known;
        self.cycles = sum(self.cycles, row.cycles);
        let is_same = |target: &&mut JumpTarget| target.address == row.to_address && target.module == row.to_module;
        match self.targets.iter_mut().find(is_same) {
            Some(target) => {
                target.taken += row.taken;
                target.mispredicted = sum(target.mispredicted, row.mispredicted);
            }
            None => self.targets.push(JumpTarget {
                module: row.to_module.clone(),
                function: row.to_function.clone(),
                address: row.to_address,
                taken: row.taken,
                mispredicted: row.mispredicted,
            }),
        }
    }
}

/// What is not known adds nothing.
fn sum(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

impl Annotation {
    /// Adds how often its jumps were taken in the visits of the rung that is looked at: `rungs` and `rows` are those of the bundle.
    pub fn add_jumps(&mut self, rungs: &[RungRow], rows: &[BranchRow]) {
        let Some(connections) = self.compared.as_ref().map(|rung| rung.connections) else {
            return;
        };
        let is_of_rung = |rung: &&RungRow| {
            let wanted = connections.and_then(|connections| i32::try_from(connections).ok());
            rung.outcome == "complete" && wanted.is_none_or(|wanted| rung.connections == wanted)
        };
        let visits: BTreeSet<i32> = rungs.iter().filter(is_of_rung).map(|rung| rung.visit).collect();
        let is_own = |row: &&BranchRow| {
            row.from_module == self.module && row.from_build_id == self.build_id && visits.contains(&row.visit)
        };
        let mut jumps: BTreeMap<i64, Jumps> = BTreeMap::new();
        for row in rows.iter().filter(is_own) {
            jumps.entry(row.from_address).or_default().add(row);
        }
        for instruction in &mut self.instructions {
            instruction.jumps = jumps.remove(&instruction.address);
            if let Some(jumps) = &mut instruction.jumps {
                jumps.targets.sort_by_key(|target| (-target.taken, target.address));
            }
        }
        if self.instructions.iter().any(|instruction| instruction.jumps.is_some()) {
            self.notes.push(RECORDED.to_owned());
        }
    }
}
