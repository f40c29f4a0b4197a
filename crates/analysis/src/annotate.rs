//! The machine code of a function with what every instruction costs a transaction at two rungs.
//!
//! [`catalogue`] lists the functions, [`select`] finds the one that is meant, [`annotate`] lays its instructions and their costs
//! side by side. All of it can be serialised.

mod catalogue;
mod every_rung;
mod growth;
mod jumps;
mod rungs;
mod select;

use crate::instruction_costs::{CodeAddress, InstructionId, Spent};
use crate::numbers::percent;
use crate::per::Per;
use crate::rung_instructions::RungInstructions;
use catalogue::is_seen;
use growth::{Sight, growth};
use scaleprof_bundle::{Estimate, InstructionRow};
use scaleprof_vocabulary::{AccessKind, BranchKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

pub use catalogue::{FunctionCost, catalogue};
pub use every_rung::{EveryRung, FunctionAtRungs, InstructionAtRungs, every_rung};
pub use jumps::{JumpTarget, Jumps};
pub use rungs::{Compared, choose};
pub use select::{Selection, select};

/// What a reader of costs by instruction must know: a timer's interrupt comes when an instruction ends.
pub const SKID: &str = "skid: a sample names the next instruction to run; the time is usually spent one instruction \
                        above";

/// One rung's figures of a function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RungCost {
    /// Connections that run transactions; none for a server that was only watched.
    pub connections: Option<u32>,
    /// CPU seconds per transaction on the function's own instructions; none where no thread was seen at them.
    pub seconds_per_txn: Option<Estimate>,
    /// CPU seconds per transaction in the kernel, which was entered from the function.
    pub kernel_seconds_per_txn: f64,
    /// CPU seconds of a transaction altogether, on the threads that serve the load.
    pub all_seconds_per_txn: Option<f64>,
    /// Samples on the function's instructions, in the kernel too.
    pub samples: u64,
    /// Samples of threads on a CPU, wherever.
    pub all_samples: u64,
    /// What is not seen in so many samples costs less than this with 95 % certainty, CPU seconds per transaction.
    pub least_seen_seconds_per_txn: Option<f64>,
}

/// What an instruction costs a transaction at one rung.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct InstructionCost {
    /// CPU seconds per transaction at it.
    pub seconds_per_txn: Estimate,
    /// CPU seconds per transaction in the kernel, entered there.
    pub kernel_seconds_per_txn: f64,
    /// Samples, in the kernel too.
    pub samples: u64,
}

/// One instruction with its costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnnotatedInstruction {
    /// In the file's addresses.
    pub address: i64,
    /// Bytes.
    pub length: i32,
    /// As an assembler writes it.
    pub text: String,
    /// Source file with its last folder.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<i32>,
    /// Functions that the compiler built in here, outermost first.
    pub inlined: Vec<Arc<str>>,
    /// `jump`, `conditional`, `call` or `return`.
    pub branch: Option<BranchKind>,
    /// Where it goes.
    pub target: Option<i64>,
    /// Whether a branch of the function goes here.
    pub is_branch_target: bool,
    /// Whether it is part of a loop that waits for another thread.
    pub in_spin_loop: bool,
    /// What it does with memory: `read`, `write`, `update`.
    pub access: Option<AccessKind>,
    /// The address of that memory, where the instruction names it.
    pub data_address: Option<i64>,
    /// Bytes of that memory.
    pub data_size: Option<i32>,
    /// Whether no other CPU can come between.
    pub locked: bool,
    /// Its cost at the rung that is compared with; none where no thread was seen there.
    pub base: Option<InstructionCost>,
    /// Its cost at the rung that is looked at; none where no thread was seen there.
    pub compared: Option<InstructionCost>,
    /// How much dearer it got, seconds per transaction; none with one rung only, or where no thread was seen at either.
    pub growth: Option<Estimate>,
    /// How often it jumped at the rung that is looked at; none where no jump of it was recorded.
    pub branch_stats: Option<Jumps>,
}

/// A function's machine code with its costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Annotation {
    /// What times are given for: where it is [`Per::Second`], a second stands wherever a transaction is written.
    pub per: Per,
    /// The function.
    pub function: String,
    /// File name of the executable or library.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// The rung that is compared with; none where nothing was measured, or one rung only.
    pub base: Option<RungCost>,
    /// The rung that is looked at; none where nothing was measured.
    pub compared: Option<RungCost>,
    /// How much dearer the function got, CPU seconds per transaction.
    pub growth: Option<Estimate>,
    /// By address. A function may lie in several pieces.
    pub instructions: Vec<AnnotatedInstruction>,
    /// CPU seconds per transaction, at the rung that is looked at, at addresses of the function at which no instruction begins;
    /// more than 0 only where the machine code is another one than that which ran.
    pub unmatched_seconds_per_txn: f64,
    /// What to know when reading it.
    pub notes: Vec<String>,
}

/// The function's instructions among `rows`, with their costs. None where there is no machine code of it.
pub fn annotate(
    function: &FunctionCost,
    rows: &[InstructionRow],
    compared: Option<&Compared<'_>>,
) -> Option<Annotation> {
    let starts: BTreeSet<i64> = rows
        .iter()
        .filter(|row| function.has(row))
        .map(|row| row.function_start)
        .collect();
    let mut own: Vec<&InstructionRow> = rows
        .iter()
        .filter(|row| row.module == function.module && row.build_id == function.build_id)
        .filter(|row| starts.contains(&row.function_start))
        .collect();
    own.sort_by_key(|row| row.address);
    own.dedup_by_key(|row| row.address);
    if own.is_empty() {
        return None;
    }
    let targets = targets(&own);
    let rungs = compared.map(|compared| (compared.base.map(AtRung::of), AtRung::of(compared.rung)));
    let (base, last) = match &rungs {
        Some((base, last)) => (base.as_ref(), Some(last)),
        None => (None, None),
    };
    // Thousands of instructions may come from the same functions.
    let mut chains: HashMap<&str, Vec<Arc<str>>> = HashMap::new();
    let instructions = own.iter().map(|row| {
        let cost = |rung: Option<&AtRung<'_>>| rung?.cost(row);
        let (before, after) = (cost(base), cost(last));
        let sight = |rung: &AtRung<'_>, cost: Option<InstructionCost>| Sight {
            cost: cost.map(|cost| cost.seconds_per_txn).filter(|_| rung.is_seen(row)),
            least_seen: rung.rung.costs.least_seen(),
        };
        let grown = || growth(base.map(|rung| sight(rung, before)), sight(last?, after));
        AnnotatedInstruction {
            address: row.address,
            length: row.length,
            text: row.text.clone(),
            file: row.file.clone(),
            line: row.line,
            inlined: row.inlined.as_deref().map_or_else(Vec::new, |chain| {
                let known = chains.entry(chain);
                known
                    .or_insert_with(|| chain.split(" > ").map(Arc::from).collect())
                    .clone()
            }),
            branch: row.branch,
            target: row.target,
            is_branch_target: targets.contains(&row.address),
            in_spin_loop: row.in_spin_loop,
            access: row.access,
            data_address: row.data_address,
            data_size: row.data_size,
            locked: row.locked,
            growth: grown(),
            base: before,
            compared: after,
            branch_stats: None,
        }
    });
    let instructions: Vec<AnnotatedInstruction> = instructions.collect();
    let begins: BTreeSet<i64> = own.iter().map(|row| row.address).collect();
    let beside = last.map_or(0.0, |rung| {
        rung.seconds_where(function, |address| !begins.contains(&address))
    });
    let (base, last) = (
        base.map(|rung| rung.of_function(function)),
        last.map(|rung| rung.of_function(function)),
    );
    let sight = |rung: &RungCost| Sight {
        cost: rung.seconds_per_txn,
        least_seen: rung.least_seen_seconds_per_txn,
    };
    let mut notes = Vec::new();
    if last.as_ref().is_some_and(|rung| rung.samples > 0) {
        notes.push(SKID.to_owned());
        notes.extend(hottest(&instructions));
    }
    if beside > 0.0 {
        notes.push(
            "some samples are at addresses at which no instruction of this listing begins: the machine code is not that which ran"
                .to_owned(),
        );
    }
    Some(Annotation {
        per: compared.map_or(Per::Transaction, |compared| compared.rung.per()),
        function: function.function.clone(),
        module: function.module.clone(),
        build_id: function.build_id.clone(),
        growth: last
            .as_ref()
            .and_then(|last| growth(base.as_ref().map(sight), sight(last))),
        base,
        compared: last,
        instructions,
        unmatched_seconds_per_txn: beside,
        notes,
    })
}

/// Where the branches of a function go.
fn targets(rows: &[&InstructionRow]) -> BTreeSet<i64> {
    let branches = rows.iter().filter(|row| row.branch != Some(BranchKind::Call));
    branches.filter_map(|row| row.target).collect()
}

/// An instruction with so much of its function's cost is worth a word.
const MUCH: f64 = 0.25;

/// Where most of the time stands, and what stands above it: by the skid that is the one which took the time, unless a branch led
/// past it.
fn hottest(instructions: &[AnnotatedInstruction]) -> Option<String> {
    let seconds = |one: &AnnotatedInstruction| one.compared.map_or(0.0, |cost| cost.seconds_per_txn.value);
    let all: f64 = instructions.iter().map(seconds).sum();
    let (place, hottest) = instructions
        .iter()
        .enumerate()
        .max_by(|(_, a), (_, b)| seconds(a).total_cmp(&seconds(b)))?;
    let share = seconds(hottest) / all;
    let above = instructions.get(place.checked_sub(1)?)?;
    let led_here = match hottest.is_branch_target {
        true => ", or one that branches here",
        false => "",
    };
    (share >= MUCH).then(|| {
        format!(
            "{} of the function's time is at {:x}; above it is `{}`{led_here}",
            percent(share),
            hottest.address,
            above.text
        )
    })
}

/// A rung with its instructions by place.
struct AtRung<'a> {
    rung: &'a RungInstructions,
    by_address: BTreeMap<&'a CodeAddress, (InstructionId, u64)>,
}

impl<'a> AtRung<'a> {
    fn of(rung: &'a RungInstructions) -> AtRung<'a> {
        let instructions = rung.costs.instructions();
        AtRung {
            rung,
            by_address: instructions.map(|(id, one)| (&one.at, (id, one.samples))).collect(),
        }
    }

    fn at(&self, module: &str, build_id: Option<&str>, address: i64) -> Option<(InstructionId, u64)> {
        let at = CodeAddress {
            module: module.to_owned(),
            build_id: build_id.map(str::to_owned),
            address,
        };
        self.by_address.get(&at).copied()
    }

    fn cost(&self, row: &InstructionRow) -> Option<InstructionCost> {
        let (id, samples) = self.at(&row.module, row.build_id.as_deref(), row.address)?;
        Some(InstructionCost {
            seconds_per_txn: self.rung.costs.estimate([id], &Spent::ITSELF)?,
            kernel_seconds_per_txn: self.rung.costs.seconds(id, Spent::InKernel),
            samples,
        })
    }

    fn ids<'b>(&'b self, function: &'b FunctionCost) -> impl Iterator<Item = (i64, InstructionId, u64)> + 'b {
        let found = move |address: &i64| {
            let (id, samples) = self.at(&function.module, function.build_id.as_deref(), *address)?;
            Some((*address, id, samples))
        };
        function.addresses.iter().filter_map(found)
    }

    /// Whether a thread was seen at the instruction itself.
    fn is_seen(&self, row: &InstructionRow) -> bool {
        let found = self.at(&row.module, row.build_id.as_deref(), row.address);
        found.is_some_and(|(id, _)| is_seen(&self.rung.costs, &[id]))
    }

    fn of_function(&self, function: &FunctionCost) -> RungCost {
        let costs = &self.rung.costs;
        let ids: Vec<InstructionId> = self.ids(function).map(|(_, id, _)| id).collect();
        RungCost {
            connections: self.rung.connections,
            seconds_per_txn: costs
                .estimate(ids.iter().copied(), &Spent::ITSELF)
                .filter(|_| is_seen(costs, &ids)),
            kernel_seconds_per_txn: self
                .ids(function)
                .map(|(_, id, _)| costs.seconds(id, Spent::InKernel))
                .fold(0.0, |sum, seconds| sum + seconds),
            all_seconds_per_txn: costs.all(),
            samples: self.ids(function).map(|(_, _, samples)| samples).sum(),
            all_samples: costs.all_samples(),
            least_seen_seconds_per_txn: costs.least_seen(),
        }
    }

    fn seconds_where(&self, function: &FunctionCost, wanted: impl Fn(i64) -> bool) -> f64 {
        let costs = &self.rung.costs;
        let ids = self.ids(function).filter(|(address, ..)| wanted(*address));
        ids.flat_map(|(_, id, _)| Spent::ITSELF.map(|spent| costs.seconds(id, spent)))
            .fold(0.0, |sum, seconds| sum + seconds)
    }
}

#[cfg(test)]
mod tests;
