//! What a binary's machine code and symbols say, as the rows that are judged.

use anyhow::{Context, bail};
use scaleprof_analysis::cache_lines::{CodeFunction, JudgedLine, Place, PlaceAccess, PlaceUse};
use scaleprof_probe::data_access::{Access, AccessKind, DataAccesses, TouchedPlace, start_and_stop, touched_places};
use scaleprof_probe::data_layout::DataLayout;
use scaleprof_probe::spin::SpinLoops;
use scaleprof_probe::symbol_search;
use scaleprof_probe::symbols::SymbolFile;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A binary, taken apart.
pub(super) struct Code {
    pub(super) name: String,
    pub(super) build_id: Option<String>,
    pub(super) places: Vec<Place>,
    pub(super) functions: Vec<CodeFunction>,
    layout: DataLayout,
    /// Places of unnamed memory among those that code touches.
    unnamed: usize,
    with_members: usize,
    notes: Vec<String>,
}

impl Code {
    /// Reads a binary and the symbols beside it.
    pub(super) fn read(path: &Path) -> anyhow::Result<Code> {
        let symbols = SymbolFile::open(path, &symbol_search())?;
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        let mut notes = symbols.notes().to_vec();
        let mut layout = DataLayout::of(symbols.name(), &bytes)?;
        layout.add_symbols(symbols.data_symbols());
        let debug_file = symbols.debug_file().map(std::fs::read).transpose();
        let with_members = match debug_file.context("reading the debug information")? {
            Some(debug) => layout.add_debug_info(&debug).unwrap_or_else(|error| {
                notes.push(error.to_string());
                0
            }),
            None => 0,
        };
        let has_names = layout.variables().iter().any(|variable| variable.kind.is_shared());
        let accesses = DataAccesses::of(symbols.name(), &bytes, symbols.function_ranges())?;
        let touched = touched_places(&layout, &accesses);
        let is_named = |place: &&TouchedPlace| layout.variable_at(place.address).is_some();
        let unnamed = touched.len() - touched.iter().filter(is_named).count();
        if !has_names || (unnamed == touched.len() && unnamed > 0) {
            bail!(
                "nothing names the variables of {}: it is stripped, and no debug file or list of symbols belongs to it. Install \
                 its debug symbols (Debian and Ubuntu: PACKAGE-dbgsym), run scripts/fetch-symbols for the distribution's \
                 MariaDB, or name an unstripped build",
                symbols.name()
            );
        }
        let functions = functions(&symbols, &accesses);
        let waiting = SpinLoops::of(symbols.name(), &bytes, symbols.function_ranges())?;
        let places = places(&layout, touched, &symbols, &waiting);
        Ok(Code {
            name: symbols.name().to_owned(),
            build_id: symbols.build_id(),
            places,
            functions,
            layout,
            unnamed,
            with_members,
            notes,
        })
    }

    /// Variables that threads share and write.
    pub(super) fn variables(&self) -> usize {
        let shared = |variable: &&_| is_shared(variable);
        self.layout.variables().iter().filter(shared).count()
    }

    /// Places that code touches.
    pub(super) fn touched(&self) -> usize {
        self.places.iter().filter(|place| !place.accesses.is_empty()).count()
    }

    /// Those of them that have a name.
    pub(super) fn named(&self) -> usize {
        self.touched() - self.unnamed
    }

    /// Whether debug information says which members structures have.
    pub(super) fn knows_members(&self) -> bool {
        self.with_members > 0
    }

    /// What was found and what the reader has to know.
    pub(super) fn notes(&self) -> Vec<String> {
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
    pub(super) fn untouched(&self, line: &JudgedLine) -> Vec<String> {
        let end = line.address.saturating_add(line.bytes);
        let pieces = self.layout.pieces_in(line.address..end).into_iter();
        let names = pieces.map(|(variable, piece)| (format!("{}{}", variable.name, piece.path), variable));
        let judged: HashSet<&str> = line.places.iter().map(|place| place.name.as_str()).collect();
        let is_told = |name: &str| {
            judged
                .iter()
                .any(|judged| name.starts_with(judged) || judged.starts_with(name))
        };
        let others = names.filter(|(name, variable)| is_shared(variable) && !is_told(name));
        others.map(|(name, _)| name).collect()
    }

    /// Where a place lies, by its name.
    pub(super) fn find(&self, name: &str) -> Option<(u64, u64)> {
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

fn functions(symbols: &SymbolFile, accesses: &DataAccesses) -> Vec<CodeFunction> {
    let mut calls: HashMap<u64, u32> = HashMap::new();
    for called in accesses.functions.iter().flat_map(|function| &function.calls) {
        *calls.entry(*called).or_default() += 1;
    }
    let name = |start: u64| symbols.function(start).map(|function| function.name);
    let names: Vec<Option<String>> = accesses.functions.iter().map(|one| name(one.function.start)).collect();
    let start_and_stop = start_and_stop(accesses, |place| names.get(place).cloned().flatten());
    let numbered = accesses.functions.iter().zip(names).enumerate();
    let functions = numbered.map(|(place, (function, name))| CodeFunction {
        name: name.unwrap_or_else(|| format!("fun_{:x}", function.function.start)),
        is_start_or_stop: start_and_stop.contains(&place),
        calls: calls.get(&function.function.start).copied().unwrap_or(0),
    });
    functions.collect()
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
    });
    places.collect()
}

fn row(function: usize, access: &Access, symbols: &SymbolFile, waiting: &SpinLoops) -> PlaceAccess {
    PlaceAccess {
        function,
        what: match access.kind {
            AccessKind::Read => PlaceUse::Read,
            AccessKind::Write => PlaceUse::Write,
            AccessKind::Update => PlaceUse::Update,
            AccessKind::Passed => PlaceUse::Passed,
        },
        locked: access.locked,
        in_loop: access.in_loop,
        waits: waiting.contains(access.instruction),
        instruction: access.instruction,
        seen_at: access.seen_at,
        callee: access
            .callee
            .and_then(|callee| symbols.function(callee))
            .map(|function| function.name),
    }
}
