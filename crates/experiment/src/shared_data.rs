//! What a binary's machine code and symbols say of the variables that threads share, as the rows that cache lines are judged by.

use foldhash::{HashMap, HashSet};
use scaleprof_analysis::cache_lines::{CodeFunction, JudgedLine, Place, PlaceAccess, Untouched};
use scaleprof_bundle::{both, in_parallel};
use scaleprof_probe::data_access::{
    Access, DataAccesses, FunctionAccesses, TouchedPlace, may_tell, start_and_stop, touched_places,
};
use scaleprof_probe::data_layout::{DataLayout, FileLayout};
use scaleprof_probe::spin::SpinLoops;
use scaleprof_probe::symbols::{SymbolError, SymbolFile};
use std::ops::Range;

/// Why the variables of a binary are not known.
#[derive(Debug, thiserror::Error)]
pub enum SharedDataError {
    /// It is no binary.
    #[error(transparent)]
    Symbols(#[from] SymbolError),
    /// Nothing names them.
    #[error(
        "{0} is stripped, and no debug file or symbol list for it was found\nfix: install its debug symbols (Debian, \
         Ubuntu: PACKAGE-dbgsym), or name an unstripped build"
    )]
    NoNames(String),
}

/// The variables of a binary that threads share, with all code that touches them.
#[derive(Debug)]
pub struct SharedData {
    /// What code touches.
    pub places: Vec<Place>,
    /// The functions that do.
    pub functions: Vec<CodeFunction>,
    layout: DataLayout,
    /// Places of unnamed memory among those that code touches.
    unnamed: usize,
    with_members: usize,
    notes: Vec<String>,
}

impl SharedData {
    /// Takes a binary of these bytes apart, with its symbols and its waiting loops. Debug information over so many bytes is not
    /// read: of the largest servers it is gigabytes. Members of structures are known by their offset then.
    ///
    /// # Errors
    /// [`SharedDataError`].
    pub fn of(
        symbols: &SymbolFile,
        bytes: &[u8],
        waiting: &SpinLoops,
        most_debug_bytes: u64,
    ) -> Result<SharedData, SharedDataError> {
        // Each takes a good part of a second for a large server.
        let (accesses, layout) = both(
            || DataAccesses::of(symbols.name(), bytes, symbols.function_ranges()),
            || FileLayout::of(symbols, bytes, most_debug_bytes),
        );
        let FileLayout {
            layout,
            with_members,
            problem,
        } = layout?;
        let accesses = accesses?;
        let mut notes = symbols.notes().to_vec();
        notes.extend(problem);
        let has_names = layout.variables().iter().any(|variable| variable.kind.is_shared());
        let (mut touched, of_start) = both(
            || touched_places(&layout, &accesses),
            || of_start_and_stop(symbols, &accesses),
        );
        let functions = functions(symbols, &accesses, &of_start, &mut touched);
        let is_named = |place: &&TouchedPlace| layout.variable_at(place.address).is_some();
        let unnamed = touched.len() - touched.iter().filter(is_named).count();
        if !has_names || (unnamed == touched.len() && unnamed > 0) {
            return Err(SharedDataError::NoNames(symbols.name().to_owned()));
        }
        // Letting go of all accesses takes as long as many another step.
        let (places, ()) = both(|| places(&layout, touched, symbols, waiting), || drop(accesses));
        Ok(SharedData {
            places,
            functions,
            layout,
            unnamed,
            with_members,
            notes,
        })
    }

    /// Variables that threads share and write.
    pub fn variables(&self) -> usize {
        let shared = |variable: &&_| is_shared(variable);
        self.layout.variables().iter().filter(shared).count()
    }

    /// Places that code touches.
    pub fn touched(&self) -> usize {
        self.places.iter().filter(|place| !place.accesses.is_empty()).count()
    }

    /// Those of them that have a name.
    pub fn named(&self) -> usize {
        self.touched() - self.unnamed
    }

    /// Whether debug information says which members structures have.
    pub fn knows_members(&self) -> bool {
        self.with_members > 0
    }

    /// What was found and what the reader has to know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        if self.unnamed > 0 {
            notes.push(format!(
                "{} of {} places that code touches have no name and are given by section and offset",
                self.unnamed,
                self.touched()
            ));
        }
        if !self.knows_members() {
            notes.push(
                "without debug information members of structures are known by their offset only, and static variables only \
                 where a symbol names them"
                    .to_owned(),
            );
        }
        notes
    }

    /// What lies in a line and nobody is known to touch.
    pub fn untouched(&self, line: &JudgedLine) -> Vec<String> {
        let end = line.address.saturating_add(line.bytes);
        let pieces = self.lying_in(line.address..end).into_iter();
        let judged: HashSet<&str> = line.variables.iter().map(|place| place.name.as_str()).collect();
        let is_told = |name: &str| {
            judged
                .iter()
                .any(|judged| name.starts_with(judged) || judged.starts_with(name))
        };
        let others = pieces.map(|(name, ..)| name).filter(|name| !is_told(name));
        others.collect()
    }

    /// Everything that lies in a range of addresses and that threads share: its name, its address, its bytes.
    pub fn lying_in(&self, range: Range<u64>) -> Vec<Untouched> {
        let pieces = self.layout.pieces_in(range).into_iter();
        let shared = pieces
            .filter(|(variable, _)| is_shared(variable))
            .map(|(variable, piece)| {
                let name = format!("{}{}", variable.name, piece.path);
                (name, variable.address.saturating_add(piece.offset), piece.size)
            });
        shared.collect()
    }

    /// Where a place lies, by its name.
    pub fn find(&self, name: &str) -> Option<(u64, u64)> {
        let touched = self.places.iter().find(|place| place.name == name);
        let variable = || {
            let mut variables = self.layout.variables().iter();
            let found = variables.find(|variable| variable.name == name && is_shared(variable))?;
            Some((found.address, found.size))
        };
        touched.map(|place| (place.address, place.size)).or_else(variable)
    }
}

fn is_shared(variable: &scaleprof_probe::data_layout::DataVariable) -> bool {
    variable.kind.is_shared()
}

/// So many functions a thread names before it takes more: each may have a long name to make readable.
const NAMED_AT_ONCE: usize = 512;

/// The functions, by their place among those that were taken apart, that run only while the program starts or stops.
fn of_start_and_stop(symbols: &SymbolFile, accesses: &DataAccesses) -> HashSet<usize> {
    let name = |one: &FunctionAccesses| {
        let start = one.function.start;
        may_tell(&symbols.linkage_name(start)?).then(|| symbols.function(start))?
    };
    let of_some = |some: &[FunctionAccesses]| -> Vec<Option<String>> {
        let functions = some.iter().map(name);
        functions.map(|function| Some(function?.name)).collect()
    };
    let names = in_parallel(accesses.functions.chunks(NAMED_AT_ONCE).collect(), of_some).concat();
    start_and_stop(accesses, |place| names.get(place).cloned().flatten())
}

/// The functions that touch a place. The places' numbers of functions become those of this list.
fn functions(
    symbols: &SymbolFile,
    accesses: &DataAccesses,
    of_start: &HashSet<usize>,
    touched: &mut [TouchedPlace],
) -> Vec<CodeFunction> {
    let touches = touched.iter().flat_map(|place| &place.accesses);
    let mut touching: Vec<usize> = touches.map(|(function, _)| *function).collect();
    touching.sort_unstable();
    touching.dedup();
    for (function, _) in touched.iter_mut().flat_map(|place| &mut place.accesses) {
        *function = touching.partition_point(|other| other < function);
    }
    let mut calls: HashMap<u64, u32> = HashMap::default();
    for called in accesses.functions.iter().flat_map(|function| &function.calls) {
        *calls.entry(*called).or_default() += 1;
    }
    let described = |place: &usize| {
        let start = accesses.functions.get(*place)?.function.start;
        let name = symbols.function(start).map(|function| function.name);
        Some(CodeFunction {
            name: name.unwrap_or_else(|| format!("fun_{start:x}")),
            is_start_or_stop: of_start.contains(place),
            calls: calls.get(&start).copied().unwrap_or(0),
        })
    };
    let of_some = |some: &[usize]| -> Vec<CodeFunction> { some.iter().filter_map(described).collect() };
    in_parallel(touching.chunks(NAMED_AT_ONCE).collect(), of_some).concat()
}

fn places(layout: &DataLayout, touched: Vec<TouchedPlace>, symbols: &SymbolFile, waiting: &SpinLoops) -> Vec<Place> {
    let is_shared = |place: &TouchedPlace| {
        let variable = layout.variable_at(place.address);
        variable.is_none_or(|variable| variable.kind.is_shared())
    };
    let touched = touched.into_iter().filter(is_shared);
    let places = touched.map(|place| Place {
        accesses: place
            .accesses
            .iter()
            .map(|(function, access)| row(*function, access, symbols, waiting))
            .collect(),
        name: place.name,
        address: place.address,
        size: place.size,
        is_known_lock: false,
    });
    places.collect()
}

fn row(function: usize, access: &Access, symbols: &SymbolFile, waiting: &SpinLoops) -> PlaceAccess {
    PlaceAccess {
        function,
        kind: access.kind,
        locked: access.locked,
        in_loop: access.in_loop,
        in_spin_loop: waiting.contains(access.instruction),
        is_rarely_run: false,
        instruction: access.instruction,
        sampled_at: access.seen_at,
        callee: access
            .callee
            .and_then(|callee| symbols.function(callee))
            .map(|function| function.name),
    }
}
