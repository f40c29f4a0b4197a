//! The machine code of a function with what every instruction costs a transaction at two rungs.
//!
//! [`catalogue`] lists the functions, [`select`] finds the one that is meant, [`annotate`] lays its instructions and their costs
//! side by side. All of it can be serialised.

mod growth;
mod rungs;
mod select;

use crate::instruction_costs::{
    CodeAddress, InstructionCosts, InstructionId, RungInstructions, SampledInstruction, Spent,
};
use crate::numbers::percent;
use growth::growth;
use scaleprof_bundle::{Estimate, InstructionRow};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

pub use rungs::{Compared, choose};
pub use select::{Selection, select};

/// What a reader of costs by instruction must know: a timer's interrupt comes when an instruction ends.
pub const SKID: &str = "a time stands at the instruction that was next to run when a thread was looked at: mostly the one before \
                        it took the time (skid), so read each as \u{201c}here or just above\u{201d}";

/// A function of user space with what it costs a transaction at two rungs, without what it calls and without the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionCost {
    /// The function that the machine runs; `MODULE+ADDRESS` where nothing names it.
    pub function: String,
    /// File name of the executable or library.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// CPU seconds per transaction at the rung that is compared with; none where there is none.
    pub base: Option<Estimate>,
    /// CPU seconds per transaction at the rung that is looked at.
    pub compared: Option<Estimate>,
    /// How much dearer it got, CPU seconds per transaction.
    pub growth: Option<Estimate>,
    /// The part of the time that was spent in loops that wait for another thread, at the rung that is looked at; 0 to 1.
    pub waiting_share: f64,
    /// Samples at both rungs.
    pub samples: u64,
    /// Whether its machine code is in the bundle.
    pub has_instructions: bool,
    /// Functions that the compiler built into it, as far as a thread was seen in them.
    pub inlined: BTreeSet<String>,
    /// The addresses in the file at which threads were seen.
    #[serde(skip)]
    pub addresses: BTreeSet<i64>,
}

/// One rung's figures of a function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RungCost {
    /// Connections that run transactions.
    pub connections: u32,
    /// CPU seconds per transaction on the function's own instructions.
    pub seconds_per_txn: Option<Estimate>,
    /// CPU seconds per transaction in the kernel, which was entered from the function.
    pub kernel_seconds_per_txn: f64,
    /// CPU seconds of a transaction altogether, on the threads that serve the load.
    pub all_seconds_per_txn: Option<f64>,
    /// Samples on the function's instructions, in the kernel too.
    pub samples: u64,
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
    pub inlined: Vec<String>,
    /// `jump`, `conditional`, `call` or `return`.
    pub branch: Option<String>,
    /// Where it goes.
    pub target: Option<i64>,
    /// Whether a branch of the function goes here.
    pub is_branch_target: bool,
    /// Whether it is part of a loop that waits for another thread.
    pub waits: bool,
    /// What it does with memory: `read`, `write`, `update`.
    pub access: Option<String>,
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
}

/// A function's machine code with its costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Annotation {
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
    pub beside_seconds_per_txn: f64,
    /// What to know when reading it.
    pub notes: Vec<String>,
}

/// The functions that cost CPU time at either rung, those that cost most at the rung that is looked at first; and behind them
/// those of which there is machine code only.
pub fn catalogue(compared: &Compared<'_>, rows: &[InstructionRow]) -> Vec<FunctionCost> {
    /// Module, build-id, function.
    type Key = (String, Option<String>, String);
    let mut functions: BTreeMap<Key, [Vec<InstructionId>; 2]> = BTreeMap::new();
    let rungs = [compared.base, Some(compared.rung)];
    // Addresses that were seen, and functions that are inlined there.
    let mut details: BTreeMap<Key, (BTreeSet<i64>, BTreeSet<String>)> = BTreeMap::new();
    for (place, rung) in rungs.into_iter().enumerate() {
        for (id, instruction) in rung.iter().flat_map(|rung| rung.costs.instructions()) {
            let at = &instruction.at;
            let key = (at.module.clone(), at.build_id.clone(), function_of(instruction));
            functions.entry(key.clone()).or_default()[place].push(id);
            let (addresses, inlined) = details.entry(key).or_default();
            addresses.insert(at.address);
            let (_, inner) = instruction.source.split_last().unwrap_or((&instruction.source[0], &[]));
            inlined.extend(inner.iter().filter_map(|place| place.function.clone()));
        }
    }
    let has_rows: BTreeSet<(&str, Option<&str>, &str)> = rows.iter().map(key_of_row).collect();
    let mut found: Vec<FunctionCost> = functions
        .into_iter()
        .map(|(key, ids)| {
            let (addresses, inlined) = details.remove(&key).unwrap_or_default();
            let (module, build_id, function) = key;
            let cost = |rung: Option<&RungInstructions>, ids: &[InstructionId]| {
                rung?.costs.estimate(ids.iter().copied(), &Spent::ITSELF)
            };
            let base = cost(compared.base, &ids[0]);
            let cost = cost(Some(compared.rung), &ids[1]);
            FunctionCost {
                has_instructions: has_rows.contains(&(module.as_str(), build_id.as_deref(), function.as_str())),
                growth: growth(compared.base.is_some(), base, cost),
                waiting_share: waiting_share(&compared.rung.costs, &ids[1]),
                samples: samples(compared.base, &ids[0]) + samples(Some(compared.rung), &ids[1]),
                base,
                compared: cost,
                function,
                module,
                build_id,
                inlined,
                addresses,
            }
        })
        .collect();
    let value = |estimate: Option<Estimate>| estimate.map_or(0.0, |estimate| estimate.value);
    let cost = |function: &FunctionCost| (value(function.compared), value(function.base));
    found.sort_by(|a, b| cost(b).partial_cmp(&cost(a)).unwrap_or(std::cmp::Ordering::Equal));
    let known: BTreeSet<(String, Option<String>, String)> = found
        .iter()
        .map(|one| (one.module.clone(), one.build_id.clone(), one.function.clone()))
        .collect();
    let unseen = has_rows.into_iter().filter(|(module, build_id, function)| {
        !known.contains(&(
            (*module).to_owned(),
            build_id.map(str::to_owned),
            (*function).to_owned(),
        ))
    });
    found.extend(unseen.map(FunctionCost::unseen));
    found
}

impl FunctionCost {
    /// A function of which there is machine code and no sample at these rungs.
    pub fn unseen((module, build_id, function): (&str, Option<&str>, &str)) -> FunctionCost {
        FunctionCost {
            function: function.to_owned(),
            module: module.to_owned(),
            build_id: build_id.map(str::to_owned),
            base: None,
            compared: None,
            growth: None,
            waiting_share: 0.0,
            samples: 0,
            has_instructions: true,
            inlined: BTreeSet::new(),
            addresses: BTreeSet::new(),
        }
    }

    /// Whether these instructions are of this function: by its name, or because a thread was seen there.
    fn is_of(&self, row: &InstructionRow) -> bool {
        row.module == self.module
            && row.build_id == self.build_id
            && (row.function == self.function || self.addresses.contains(&row.address))
    }
}

/// The function's instructions among `rows`, with their costs. None where there is no machine code of it.
pub fn annotate(
    function: &FunctionCost,
    rows: &[InstructionRow],
    compared: Option<&Compared<'_>>,
) -> Option<Annotation> {
    let starts: BTreeSet<i64> = rows
        .iter()
        .filter(|row| function.is_of(row))
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
    let targets: BTreeSet<i64> = own
        .iter()
        .filter(|row| row.branch.as_deref() != Some("call"))
        .filter_map(|row| row.target)
        .collect();
    let rungs = compared.map(|compared| (compared.base.map(AtRung::of), AtRung::of(compared.rung)));
    let (base, last) = match &rungs {
        Some((base, last)) => (base.as_ref(), Some(last)),
        None => (None, None),
    };
    let instructions = own.iter().map(|row| {
        let cost = |rung: Option<&AtRung<'_>>| rung?.cost(row);
        let (before, after) = (cost(base), cost(last));
        let seconds = |cost: Option<InstructionCost>| cost.map(|cost| cost.seconds_per_txn);
        AnnotatedInstruction {
            address: row.address,
            length: row.length,
            text: row.text.clone(),
            file: row.file.clone(),
            line: row.line,
            inlined: row
                .inlined
                .iter()
                .flat_map(|chain| chain.split(" > "))
                .map(str::to_owned)
                .collect(),
            branch: row.branch.clone(),
            target: row.target,
            is_branch_target: targets.contains(&row.address),
            waits: row.waits,
            access: row.access.clone(),
            data_address: row.data_address,
            data_size: row.data_size,
            locked: row.locked,
            growth: growth(base.is_some(), seconds(before), seconds(after)),
            base: before,
            compared: after,
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
    let of = |rung: &Option<RungCost>| rung.as_ref().and_then(|rung| rung.seconds_per_txn);
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
        function: function.function.clone(),
        module: function.module.clone(),
        build_id: function.build_id.clone(),
        growth: growth(base.is_some(), of(&base), of(&last)),
        base,
        compared: last,
        instructions,
        beside_seconds_per_txn: beside,
        notes,
    })
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
            "{} of the function's time stands at {:x}; above it is `{}`{led_here}",
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

    fn of_function(&self, function: &FunctionCost) -> RungCost {
        let costs = &self.rung.costs;
        RungCost {
            connections: self.rung.connections,
            seconds_per_txn: costs.estimate(self.ids(function).map(|(_, id, _)| id), &Spent::ITSELF),
            kernel_seconds_per_txn: self
                .ids(function)
                .map(|(_, id, _)| costs.seconds(id, Spent::InKernel))
                .fold(0.0, |sum, seconds| sum + seconds),
            all_seconds_per_txn: costs.all(),
            samples: self.ids(function).map(|(_, _, samples)| samples).sum(),
        }
    }

    fn seconds_where(&self, function: &FunctionCost, wanted: impl Fn(i64) -> bool) -> f64 {
        let costs = &self.rung.costs;
        let ids = self.ids(function).filter(|(address, ..)| wanted(*address));
        ids.flat_map(|(_, id, _)| Spent::ITSELF.map(|spent| costs.seconds(id, spent)))
            .fold(0.0, |sum, seconds| sum + seconds)
    }
}

fn key_of_row(row: &InstructionRow) -> (&str, Option<&str>, &str) {
    (&row.module, row.build_id.as_deref(), &row.function)
}

/// The name of the function that the machine runs.
fn function_of(instruction: &SampledInstruction) -> String {
    let named = instruction.source.last().and_then(|place| place.function.clone());
    named.unwrap_or_else(|| format!("{}+{:#x}", instruction.at.module, instruction.at.address))
}

fn waiting_share(costs: &InstructionCosts, ids: &[InstructionId]) -> f64 {
    let sum = |spent| ids.iter().map(|id| costs.seconds(*id, spent)).sum::<f64>();
    let (running, waiting) = (sum(Spent::Running), sum(Spent::Spinning));
    match running + waiting {
        all if all > 0.0 => waiting / all,
        _ => 0.0,
    }
}

fn samples(rung: Option<&RungInstructions>, ids: &[InstructionId]) -> u64 {
    let wanted: BTreeSet<InstructionId> = ids.iter().copied().collect();
    let instructions = rung.iter().flat_map(|rung| rung.costs.instructions());
    instructions
        .filter(|(id, _)| wanted.contains(id))
        .map(|(_, one)| one.samples)
        .sum()
}

#[cfg(test)]
mod tests;
