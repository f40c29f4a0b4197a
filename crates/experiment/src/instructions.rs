//! Keeping the machine code of the functions that took most CPU time, so that a bundle can be read where the server is not.

use crate::code_source::{CodeFile, CodeSource};
use crate::data_accesses::keep_data_accesses;
use scaleprof_analysis::hot_code::{HotCode, hot_code};
use scaleprof_bundle::{Bundle, BundleError, BundleWriter, InstructionRow, both};
use scaleprof_probe::disassembly::FunctionListing;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Functions with a smaller part of the run's samples on CPUs are not kept.
const LEAST_SHARE: f64 = 0.005;
/// No more functions than these are kept,
const MOST_FUNCTIONS: usize = 60;
/// and no more instructions; a function is kept whole or not at all.
const MOST_INSTRUCTIONS: usize = 20_000;

/// The rows of a function's instructions. `module` and `build_id` as in the table `frames`.
pub fn instruction_rows(module: &str, build_id: Option<&str>, listing: &FunctionListing) -> Vec<InstructionRow> {
    let mut chains: HashMap<&[Arc<str>], Arc<str>> = HashMap::new();
    let rows = listing.instructions.iter().map(|listed| {
        let instruction = &listed.instruction;
        let access = instruction.access;
        InstructionRow {
            module: module.to_owned(),
            build_id: build_id.map(str::to_owned),
            function: listing.function.clone(),
            function_start: listing.range.start as i64,
            address: instruction.address as i64,
            length: i32::from(instruction.length),
            text: instruction.text.clone(),
            file: listed.file.clone(),
            line: listed.line.and_then(|line| i32::try_from(line).ok()),
            inlined: (!listed.inlined.is_empty()).then(|| {
                let chain = chains.entry(&listed.inlined);
                Arc::clone(chain.or_insert_with(|| chain_of(&listed.inlined).into()))
            }),
            branch: instruction.branch.map(|branch| branch.kind),
            target: instruction
                .branch
                .and_then(|branch| branch.target)
                .map(|target| target as i64),
            in_spin_loop: listed.waits,
            access: access.map(|access| access.kind),
            data_address: access.and_then(|access| access.address).map(|address| address as i64),
            data_size: access
                .and_then(|access| access.size)
                .and_then(|size| i32::try_from(size).ok()),
            locked: access.is_some_and(|access| access.locked),
        }
    });
    rows.collect()
}

/// Functions that were built into each other, outermost first; those of them that find room.
fn chain_of(functions: &[Arc<str>]) -> String {
    /// Bytes of a chain: compilers make some hundred.
    const MOST: usize = 4096;
    const INSIDE: &str = " > ";
    let mut chain = String::new();
    for function in functions {
        if chain.len() + INSIDE.len() + function.len() > MOST {
            chain.push_str(" > ...");
            break;
        }
        if !chain.is_empty() {
            chain.push_str(INSIDE);
        }
        chain.push_str(function);
    }
    chain
}

/// Writes the tables `instructions` and `data_accesses` of a run whose measurements are written, while its server's code can be read. Gives what was
/// left out: the table, and in words.
///
/// # Errors
/// The bundle cannot be read back or written.
pub(crate) fn keep_code(
    bundle: &BundleWriter,
    code: &mut dyn CodeSource,
) -> Result<Vec<(String, String)>, BundleError> {
    let hot = hot_code(&Bundle::open(bundle.path())?, 0.0);
    let (rows, instructions) = instructions(&hot, code);
    let (written, accesses) = both(
        // They go when they are written: what comes now takes room.
        move || bundle.write_instructions(&rows),
        || keep_data_accesses(bundle, &hot, code),
    );
    written?;
    let lacks = [("instructions", instructions), ("data_accesses", accesses?)];
    let lacks = lacks
        .into_iter()
        .filter_map(|(table, lack)| Some((table.to_owned(), lack?)));
    Ok(lacks.collect())
}

/// The rows of the table `instructions`, and what was left out, in words.
fn instructions(hot: &[HotCode], code: &mut dyn CodeSource) -> (Vec<InstructionRow>, Option<String>) {
    let hot: Vec<&HotCode> = hot.iter().filter(|function| function.share >= LEAST_SHARE).collect();
    let mut left_out = LeftOut::default();
    let listings = listings(&hot, code, &mut left_out);
    let mut rows: Vec<InstructionRow> = Vec::new();
    let mut kept = 0;
    let mut starts = BTreeSet::new();
    for function in &hot {
        let of_module = listings.get(&(function.module.as_str(), function.build_id.as_deref()));
        let own: Vec<&FunctionListing> = of_module
            .into_iter()
            .flatten()
            .filter(|listing| holds_one(listing, function))
            .filter(|listing| starts.insert((function.module.as_str(), listing.range.start)))
            .collect();
        let size: usize = own.iter().map(|listing| listing.instructions.len()).sum();
        if size == 0 {
            continue;
        }
        if kept == MOST_FUNCTIONS || rows.len() + size > MOST_INSTRUCTIONS {
            left_out.too_many += 1;
            left_out.share += function.share;
            continue;
        }
        kept += 1;
        for listing in own {
            rows.extend(instruction_rows(
                &function.module,
                function.build_id.as_deref(),
                listing,
            ));
        }
    }
    (rows, left_out.words())
}

/// The functions taken apart, by file.
fn listings<'a>(
    hot: &[&'a HotCode],
    code: &mut dyn CodeSource,
    left_out: &mut LeftOut,
) -> BTreeMap<CodeFile<'a>, Vec<FunctionListing>> {
    let mut addresses: BTreeMap<CodeFile<'a>, Vec<u64>> = BTreeMap::new();
    for function in hot {
        let of_module = addresses
            .entry((&function.module, function.build_id.as_deref()))
            .or_default();
        of_module.extend(function.addresses.iter().map(|address| *address as u64));
    }
    let mut found = BTreeMap::new();
    let asked: Vec<(CodeFile<'a>, Vec<u64>)> = addresses.into_iter().collect();
    let listed = code.disassemble(&asked);
    for ((file, _), listings) in asked.into_iter().zip(listed) {
        match listings {
            Ok(listings) => {
                found.insert(file, listings);
            }
            Err(problem) => left_out.unreadable.push(problem),
        }
    }
    found
}

fn holds_one(listing: &FunctionListing, function: &HotCode) -> bool {
    let mut addresses = function.addresses.iter();
    addresses.any(|address| listing.range.contains(&(*address as u64)))
}

/// Hot functions whose instructions are not in the bundle.
#[derive(Debug, Default, PartialEq)]
struct LeftOut {
    /// Functions beyond what is kept.
    too_many: usize,
    /// Their part of the samples.
    share: f64,
    /// Files that could not be read, and why.
    unreadable: Vec<String>,
}

impl LeftOut {
    fn words(&self) -> Option<String> {
        let mut words = self.unreadable.clone();
        if self.too_many > 0 {
            words.push(format!(
                "machine code of {} functions ({:.1} % of CPU samples) is not stored: a bundle keeps {MOST_FUNCTIONS} functions \
                 and {MOST_INSTRUCTIONS} instructions",
                self.too_many,
                self.share * 100.0
            ));
        }
        (!words.is_empty()).then(|| words.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_built_in_functions_is_cut_between_them() {
        let chain = |names: &[&str]| chain_of(&names.iter().map(|name| Arc::from(*name)).collect::<Vec<_>>());
        assert_eq!(chain(&["look", "peek"]), "look > peek");
        let long = "x".repeat(2000);
        assert_eq!(
            chain(&["look", &long, &long, &long]),
            format!("look > {long} > {long} > ...")
        );
    }

    #[test]
    fn what_was_left_out_is_said_and_nothing_where_nothing_was() {
        assert_eq!(LeftOut::default().words(), None);
        let left_out = LeftOut {
            too_many: 3,
            share: 0.021,
            unreadable: vec!["libz.so.1 is not mapped any more".to_owned()],
        };
        assert_eq!(
            left_out.words().as_deref(),
            Some(
                "libz.so.1 is not mapped any more; machine code of 3 functions (2.1 % of CPU samples) is not stored: a \
                 bundle keeps 60 functions and 20000 instructions"
            )
        );
    }
}
