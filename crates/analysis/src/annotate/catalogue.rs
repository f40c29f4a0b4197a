//! The functions of a bundle with what they cost a transaction.

use super::growth::{Sight, growth};
use super::rungs::Compared;
use crate::instruction_costs::{InstructionCosts, InstructionId, SampledInstruction, Spent};
use scaleprof_bundle::{Estimate, InstructionRow};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A function of user space with what it costs a transaction at two rungs, without what it calls and without the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FunctionCost {
    /// The function that the machine runs; `MODULE+ADDRESS` where nothing names it.
    pub function: String,
    /// File name of the executable or library.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// CPU seconds per transaction at the rung that is compared with; none where there is none, or no thread was seen in it.
    pub base: Option<Estimate>,
    /// CPU seconds per transaction at the rung that is looked at; none where no thread was seen in it.
    pub compared: Option<Estimate>,
    /// How much dearer it got, CPU seconds per transaction.
    pub growth: Option<Estimate>,
    /// The part of the time that was spent in loops that wait for another thread, at the rung that is looked at; 0 to 1.
    pub waiting_share: f64,
    /// Samples at both rungs, those in the kernel included.
    pub samples: u64,
    /// Whether its machine code is in the bundle.
    pub has_instructions: bool,
    /// Functions that the compiler built into it, as far as a thread was seen in them or the bundle has its machine code.
    pub inlined: BTreeSet<String>,
    /// The addresses in the file at which threads were seen.
    #[serde(skip)]
    pub addresses: BTreeSet<i64>,
}

/// Stands between the functions of a row's `inlined`.
const INSIDE: &str = " > ";

/// What names a function: its file, the build of it, and its name there.
type Name = (String, Option<String>, String);

/// Where a function was seen.
#[derive(Default)]
struct Seen {
    base: Vec<InstructionId>,
    compared: Vec<InstructionId>,
    samples: u64,
    inlined: BTreeSet<String>,
    addresses: BTreeSet<i64>,
}

/// The functions that cost CPU time at either rung, those that cost most at the rung that is looked at first; and behind them
/// those of which there is machine code only.
pub fn catalogue(compared: &Compared<'_>, rows: &[InstructionRow]) -> Vec<FunctionCost> {
    let mut seen: BTreeMap<Name, Seen> = BTreeMap::new();
    let mut add = |costs: &InstructionCosts, ids_of: fn(&mut Seen) -> &mut Vec<InstructionId>| {
        for (id, instruction) in costs.instructions() {
            let at = &instruction.at;
            let name = (at.module.clone(), at.build_id.clone(), function_of(instruction));
            let function = seen.entry(name).or_default();
            ids_of(function).push(id);
            function.samples += instruction.samples;
            function.addresses.insert(at.address);
            let inner = instruction.source.split_last().map_or(&[][..], |(_, inner)| inner);
            function
                .inlined
                .extend(inner.iter().filter_map(|place| place.function.clone()));
        }
    };
    if let Some(base) = compared.base {
        add(&base.costs, |seen| &mut seen.base);
    }
    add(&compared.rung.costs, |seen| &mut seen.compared);
    // With what was built into them.
    let mut kept: BTreeMap<Name, BTreeSet<String>> = BTreeMap::new();
    for row in rows {
        let built_in = row.inlined.iter().flat_map(|chain| chain.split(INSIDE));
        kept.entry(name_of_row(row))
            .or_default()
            .extend(built_in.map(str::to_owned));
    }
    let functions = seen.into_iter().map(|(name, seen)| {
        let cost =
            |costs: &InstructionCosts, ids: &[InstructionId]| costs.estimate(ids.iter().copied(), &Spent::ITSELF);
        let sight = |costs: &InstructionCosts, ids: &[InstructionId]| Sight {
            cost: cost(costs, ids).filter(|_| is_seen(costs, ids)),
            least_seen: costs.least_seen(),
        };
        let before = compared.base.map(|base| sight(&base.costs, &seen.base));
        let after = sight(&compared.rung.costs, &seen.compared);
        let listed = kept.remove(&name);
        let has_instructions = listed.is_some();
        let inlined = seen.inlined.into_iter().chain(listed.unwrap_or_default());
        let (module, build_id, function) = name;
        FunctionCost {
            has_instructions,
            growth: growth(before, after),
            waiting_share: waiting_share(&compared.rung.costs, &seen.compared),
            samples: seen.samples,
            inlined: inlined.collect(),
            addresses: seen.addresses,
            base: before.and_then(|before| before.cost),
            compared: after.cost,
            function,
            module,
            build_id,
        }
    });
    let mut functions: Vec<FunctionCost> = functions.collect();
    let value = |estimate: Option<Estimate>| estimate.map_or(0.0, |estimate| estimate.value);
    let cost = |function: &FunctionCost| (value(function.compared), value(function.base));
    functions.sort_by(|a, b| cost(b).partial_cmp(&cost(a)).unwrap_or(std::cmp::Ordering::Equal));
    let unseen = kept
        .into_iter()
        .map(|((module, build_id, function), inlined)| FunctionCost {
            inlined,
            ..FunctionCost::unseen((&module, build_id.as_deref(), &function))
        });
    functions.extend(unseen);
    functions
}

/// Whether a thread was seen at one of these instructions itself, not only in the kernel from there.
pub(super) fn is_seen(costs: &InstructionCosts, ids: &[InstructionId]) -> bool {
    ids.iter()
        .any(|id| Spent::ITSELF.iter().any(|spent| costs.samples(*id, *spent) > 0))
}

impl FunctionCost {
    /// A function of which there is machine code and no sample at these rungs: its module, the module's build-id, its name.
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

    /// Whether this instruction is of this function: by its name, or because a thread was seen there.
    pub(super) fn has(&self, row: &InstructionRow) -> bool {
        row.module == self.module
            && row.build_id == self.build_id
            && (row.function == self.function || self.addresses.contains(&row.address))
    }
}

fn name_of_row(row: &InstructionRow) -> Name {
    (row.module.clone(), row.build_id.clone(), row.function.clone())
}

/// The name of the function that the machine runs.
pub(super) fn function_of(instruction: &SampledInstruction) -> String {
    let named = instruction.source.last().and_then(|place| place.function.clone());
    named.unwrap_or_else(|| format!("{}+{:#x}", instruction.at.module, instruction.at.address))
}

fn waiting_share(costs: &InstructionCosts, ids: &[InstructionId]) -> f64 {
    let sum = |spent| ids.iter().fold(0.0, |sum, id| sum + costs.seconds(*id, spent));
    let (running, waiting) = (sum(Spent::Running), sum(Spent::Spinning));
    match running + waiting {
        all if all > 0.0 => waiting / all,
        _ => 0.0,
    }
}
