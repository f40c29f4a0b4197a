//! The machine code that a bundle keeps with what it costs at every rung, so that a reader can lay any two side by side.

use super::{AtRung, FunctionCost, InstructionCost, RungCost, choose};
use crate::annotate::catalogue::function_of;
use crate::instruction_costs::Spent;
use crate::per::Per;
use crate::rung_instructions::RungInstructions;
use scaleprof_bundle::InstructionRow;
use std::collections::{BTreeMap, BTreeSet};

/// All functions of which there is machine code, at all rungs.
#[derive(Debug, Clone, PartialEq)]
pub struct EveryRung<'a> {
    /// What times are given for.
    pub per: Per,
    /// Connections and all CPU seconds of each rung that has samples, by rising connections.
    pub rungs: Vec<(Option<u32>, f64)>,
    /// Places in `rungs` of the two that are compared at first, as [`choose`] chooses them; no base where there is one rung only.
    pub base: Option<usize>,
    /// The other one.
    pub shown: usize,
    /// Those that cost most at any rung first.
    pub functions: Vec<FunctionAtRungs<'a>>,
    /// The part of the CPU time at `shown` that is in these functions; 0 to 1.
    pub covered: f64,
}

/// A function with its machine code.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionAtRungs<'a> {
    /// Its name.
    pub function: String,
    /// File name of the executable or library.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// What it costs at each rung.
    pub costs: Vec<RungCost>,
    /// The part of that in loops that wait for another thread, seconds, at each rung.
    pub waiting_seconds: Vec<f64>,
    /// By address.
    pub instructions: Vec<InstructionAtRungs<'a>>,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct InstructionAtRungs<'a> {
    /// As the bundle has it.
    pub row: &'a InstructionRow,
    /// Whether a branch of the function goes here.
    pub is_branch_target: bool,
    /// Place of a rung and the cost there, for the rungs at which threads were seen.
    pub costs: Vec<(usize, InstructionCost)>,
}

/// A file, the build of it, and a function's name in it.
type Name<'a> = (&'a str, Option<&'a str>, &'a str);

/// Joins the machine code with what was measured. None where there are no samples of threads that ran.
pub fn every_rung<'a>(rungs: &[RungInstructions], rows: &'a [InstructionRow]) -> Option<EveryRung<'a>> {
    let chosen = choose(rungs, None, None).ok()?;
    let sampled: Vec<&RungInstructions> = rungs.iter().filter(|rung| rung.costs.all().is_some()).collect();
    let place = |wanted: &RungInstructions| sampled.iter().position(|rung| std::ptr::eq(*rung, wanted));
    let (base, shown) = (chosen.base.and_then(place), place(chosen.rung)?);
    let at_rungs: Vec<AtRung<'_>> = sampled.iter().map(|rung| AtRung::of(rung)).collect();
    let mut by_name: BTreeMap<Name<'a>, BTreeMap<i64, &'a InstructionRow>> = BTreeMap::new();
    for row in rows {
        let name = (row.module.as_str(), row.build_id.as_deref(), row.function.as_str());
        by_name.entry(name).or_default().entry(row.address).or_insert(row);
    }
    let seen = addresses(&sampled);
    let functions = by_name.into_iter().map(|(name, rows)| {
        let (module, build_id, function) = name;
        let named = seen.get(&(module, build_id, function.to_owned()));
        let function = FunctionCost {
            addresses: rows.keys().chain(named.into_iter().flatten()).copied().collect(),
            ..FunctionCost::unseen(name)
        };
        let own: Vec<&InstructionRow> = rows.into_values().collect();
        at_every_rung(&function, &own, &at_rungs)
    });
    let mut functions: Vec<FunctionAtRungs<'a>> = functions.collect();
    let most = |function: &FunctionAtRungs<'_>| {
        let costs = function.costs.iter().filter_map(|cost| cost.seconds_per_txn);
        costs.map(|cost| cost.value).fold(0.0, f64::max)
    };
    functions.sort_by(|a, b| most(b).total_cmp(&most(a)));
    let all = chosen.rung.costs.all()?;
    let kept = functions.iter().filter_map(|one| one.costs.get(shown)?.seconds_per_txn);
    Some(EveryRung {
        per: chosen.rung.per(),
        rungs: sampled
            .iter()
            .map(|rung| (rung.connections, rung.costs.all().unwrap_or(0.0)))
            .collect(),
        base,
        shown,
        covered: kept.map(|cost| cost.value).sum::<f64>() / all,
        functions,
    })
}

/// Where threads were seen, by function.
fn addresses<'a>(rungs: &[&'a RungInstructions]) -> BTreeMap<(&'a str, Option<&'a str>, String), BTreeSet<i64>> {
    let mut seen: BTreeMap<_, BTreeSet<i64>> = BTreeMap::new();
    for (_, instruction) in rungs.iter().flat_map(|rung| rung.costs.instructions()) {
        let at = &instruction.at;
        let name = (at.module.as_str(), at.build_id.as_deref(), function_of(instruction));
        seen.entry(name).or_default().insert(at.address);
    }
    seen
}

fn at_every_rung<'a>(
    function: &FunctionCost,
    rows: &[&'a InstructionRow],
    rungs: &[AtRung<'_>],
) -> FunctionAtRungs<'a> {
    let targets = super::targets(rows);
    let instructions = rows.iter().map(|row| InstructionAtRungs {
        row,
        is_branch_target: targets.contains(&row.address),
        costs: rungs
            .iter()
            .enumerate()
            .filter_map(|(place, rung)| Some((place, rung.cost(row)?)))
            .collect(),
    });
    let waiting = |rung: &AtRung<'_>| {
        let ids = rung.ids(function);
        ids.fold(0.0, |sum, (_, id, _)| {
            sum + rung.rung.costs.seconds(id, Spent::Spinning)
        })
    };
    FunctionAtRungs {
        costs: rungs.iter().map(|rung| rung.of_function(function)).collect(),
        waiting_seconds: rungs.iter().map(waiting).collect(),
        instructions: instructions.collect(),
        function: function.function.clone(),
        module: function.module.clone(),
        build_id: function.build_id.clone(),
    }
}
