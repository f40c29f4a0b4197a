//! Where a file's variables lie: by address, with their members, and which of them share a cache line.
//!
//! CPUs hand memory to one another by lines of 64 bytes (x86-64, most aarch64), 128 (POWER, Apple) or 256 (s390x); x86's
//! prefetchers fetch lines in pairs of 128. The linker lays variables side by side in the order in which it meets them, so who
//! is whose neighbour is an accident of the build. Sections are mapped at whole pages: a line in the file is a line in memory.

mod debug_info;
mod member_name;
mod of_file;
mod shape;

use scaleprof_vocabulary::SymbolSource;
use std::collections::HashMap;
use std::ops::Range;

use object::read::elf::{ElfFile64, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind, elf};

use crate::long_names::{VARIABLE, cut};
use crate::mapped_file::Bytes;
use crate::symbols::{DataSymbol, SymbolError};
pub use debug_info::DebugInfoError;
pub use of_file::{FileLayout, USUAL_DEBUG_BYTES};
use shape::Shapes;
pub use shape::{Piece, ShapeId};

/// What kind of memory a variable lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataKind {
    /// Written by the program, with a value at its start (`.data`).
    Initialised,
    /// Written by the program, zero at its start (`.bss`).
    Zeroed,
    /// Written by the loader and constant afterwards (`.data.rel.ro`): it may be in every CPU's cache at once.
    ConstantAfterLoading,
    /// Each thread has its own (`.tdata`, `.tbss`); addresses are offsets into a thread's block.
    ThreadLocal,
}

impl DataKind {
    /// Whether threads share it and write it.
    pub fn is_shared(self) -> bool {
        matches!(self, DataKind::Initialised | DataKind::Zeroed)
    }
}

/// A part of the file in which variables lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSection {
    /// Such as `.data`.
    pub name: String,
    /// What kind of memory.
    pub kind: DataKind,
    /// Its addresses; of thread-local sections the offsets into a thread's block.
    pub range: Range<u64>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataVariable {
    /// As people write it.
    pub name: String,
    /// As the linker knows it.
    pub linkage_name: String,
    /// Where it starts in the file's addresses, or in a thread's block.
    pub address: u64,
    /// Bytes. Where no source gives them, up to the next variable.
    pub size: u64,
    /// Whether a source gives the size.
    pub size_is_known: bool,
    /// What kind of memory it lies in.
    pub kind: DataKind,
    /// Where the name comes from.
    pub source: SymbolSource,
    /// Its type, where debug information tells.
    pub shape: Option<ShapeId>,
}

impl DataVariable {
    /// One past its last byte.
    pub fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// All variables of a file.
#[derive(Debug, Default)]
pub struct DataLayout {
    sections: Vec<DataSection>,
    /// By kind of memory (thread-local ones last) and address.
    variables: Vec<DataVariable>,
    shapes: Shapes,
}

impl DataLayout {
    /// Those that an ELF file names itself: its symbol table and what it exports.
    ///
    /// # Errors
    /// [`SymbolError::NotElf`].
    pub fn of(name: &str, bytes: &[u8]) -> Result<DataLayout, SymbolError> {
        let elf = ElfFile64::<Endianness>::parse(bytes).map_err(|error| SymbolError::NotElf {
            name: name.to_owned(),
            error,
        })?;
        let mut layout = DataLayout {
            sections: sections(&elf),
            ..DataLayout::default()
        };
        let mut found = Vec::new();
        let tables = [
            (SymbolSource::Symtab, elf.symbols()),
            (SymbolSource::Dynsym, elf.dynamic_symbols()),
        ];
        for (source, symbols) in tables {
            for symbol in symbols {
                let is_thread_local = symbol.kind() == SymbolKind::Tls;
                if !(is_thread_local || symbol.kind() == SymbolKind::Data) || symbol.section_index().is_none() {
                    continue;
                }
                let linkage_name = symbol.name().unwrap_or_default();
                let linkage_name = cut(linkage_name.split('@').next().unwrap_or_default(), VARIABLE);
                let kind = layout.kind_at(symbol.address(), is_thread_local);
                if let Some(kind) = kind.filter(|_| !linkage_name.is_empty()) {
                    found.push(DataVariable {
                        name: String::new(),
                        linkage_name: linkage_name.to_owned(),
                        address: symbol.address(),
                        size: symbol.size(),
                        size_is_known: symbol.size() > 0,
                        kind,
                        source,
                        shape: None,
                    });
                }
            }
        }
        layout.add(found);
        Ok(layout)
    }

    /// Adds the variables that other files name: the file's debug file, or the list of symbols beside it.
    pub fn add_symbols<'names>(&mut self, symbols: impl Iterator<Item = DataSymbol<'names>>) {
        let mut found = Vec::new();
        for symbol in symbols {
            if let Some(kind) = self.kind_at(symbol.start, false) {
                found.push(DataVariable {
                    name: String::new(),
                    linkage_name: cut(symbol.linkage_name, VARIABLE).to_owned(),
                    address: symbol.start,
                    size: symbol.size,
                    size_is_known: symbol.size > 0,
                    kind,
                    source: symbol.source,
                    shape: None,
                });
            }
        }
        self.add(found);
    }

    /// Adds types, and variables without a symbol, from the debug information of the file or of its debug file; the number of
    /// variables whose type is known afterwards. A file without debug information adds nothing.
    ///
    /// # Errors
    /// [`DebugInfoError`]: what was read before it is kept.
    pub fn add_debug_info(&mut self, bytes: &impl Bytes) -> Result<usize, DebugInfoError> {
        let outcome = debug_info::read(bytes, &mut self.shapes);
        let (variables, error) = (outcome.variables, outcome.error);
        let known: HashMap<u64, usize> = self.places_of_shared();
        let mut found = Vec::new();
        for described in variables {
            let size = self.shapes.size(described.shape);
            if let Some(variable) = known
                .get(&described.address)
                .and_then(|place| self.variables.get_mut(*place))
            {
                // A declaration of one element would hide the rest of an array.
                if variable.shape.is_none() && (!variable.size_is_known || size <= variable.size) {
                    variable.shape = Some(described.shape);
                    if !variable.size_is_known && size > 0 {
                        variable.size = size;
                        variable.size_is_known = true;
                    }
                }
            } else if let Some(kind) = self.kind_at(described.address, false)
                && self.variable_at(described.address).is_none()
            {
                found.push(DataVariable {
                    name: String::new(),
                    linkage_name: described.name,
                    address: described.address,
                    size,
                    size_is_known: size > 0,
                    kind,
                    source: SymbolSource::Dwarf,
                    shape: Some(described.shape),
                });
            }
        }
        self.add(found);
        match error {
            Some(error) => Err(error),
            None => Ok(self
                .variables
                .iter()
                .filter(|variable| variable.shape.is_some())
                .count()),
        }
    }

    /// By kind of memory and address; the thread-local ones last.
    pub fn variables(&self) -> &[DataVariable] {
        &self.variables
    }

    /// The parts of the file in which variables lie.
    pub fn sections(&self) -> &[DataSection] {
        &self.sections
    }

    /// The variable that holds an address that threads share.
    pub fn variable_at(&self, address: u64) -> Option<&DataVariable> {
        let shared = self.shared();
        let after = shared.partition_point(|variable| variable.address <= address);
        // A variable within another one (a label into a table) may end before it.
        let before = shared.get(..after)?.iter().rev().take(4);
        before.into_iter().find(|variable| address < variable.end())
    }

    /// What lies at an address that threads share: a variable, or the innermost member or element of one that is known.
    pub fn piece_at(&self, address: u64) -> Option<(&DataVariable, Piece)> {
        self.piece_or_padding_at(address)
            .map(|(variable, piece, _)| (variable, piece))
    }

    fn piece_or_padding_at(&self, address: u64) -> Option<(&DataVariable, Piece, bool)> {
        let variable = self.variable_at(address)?;
        let whole = Piece {
            path: String::new(),
            offset: 0,
            size: variable.size,
        };
        let offset = address.saturating_sub(variable.address);
        let found = variable.shape.and_then(|shape| self.shapes.piece(shape, offset));
        let (piece, is_padding) = found.unwrap_or((whole, false));
        Some((variable, piece, is_padding))
    }

    /// The array that holds an address that threads share: a member of a variable, or all of one. None where that is no array,
    /// or not known to be one.
    pub fn array_at(&self, address: u64) -> Option<(&DataVariable, Piece)> {
        let variable = self.variable_at(address)?;
        let array = self
            .shapes
            .array(variable.shape?, address.saturating_sub(variable.address))?;
        Some((variable, array))
    }

    /// Everything in a range of addresses that threads share, by address: members and elements where they are known.
    pub fn pieces_in(&self, range: Range<u64>) -> Vec<(&DataVariable, Piece)> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let next = match self.piece_or_padding_at(at) {
                Some((variable, piece, false)) => {
                    let end = variable.address.saturating_add(piece.offset).saturating_add(piece.size);
                    found.push((variable, piece));
                    end
                }
                Some((.., true)) => at + 1,
                None => self.next_start(at),
            };
            // A label in the middle of a variable begins a piece of its own.
            at = next.min(self.next_start(at)).max(at + 1);
        }
        found.dedup();
        found
    }

    fn next_start(&self, address: u64) -> u64 {
        let shared = self.shared();
        let after = shared.partition_point(|variable| variable.address <= address);
        shared.get(after).map_or(u64::MAX, |variable| variable.address)
    }

    /// The variables at addresses of the file, by address.
    fn shared(&self) -> &[DataVariable] {
        let end = self
            .variables
            .partition_point(|variable| variable.kind != DataKind::ThreadLocal);
        self.variables.get(..end).unwrap_or_default()
    }

    fn places_of_shared(&self) -> HashMap<u64, usize> {
        let places = self.shared().iter().zip(0..);
        places.map(|(variable, place)| (variable.address, place)).collect()
    }

    fn section_at(&self, address: u64, is_thread_local: bool) -> Option<&DataSection> {
        let mut sections = self.sections.iter();
        sections.find(|section| {
            (section.kind == DataKind::ThreadLocal) == is_thread_local && section.range.contains(&address)
        })
    }

    fn kind_at(&self, address: u64, is_thread_local: bool) -> Option<DataKind> {
        self.section_at(address, is_thread_local).map(|section| section.kind)
    }

    /// Sorts variables in; of several at one address the most trusted and largest stays.
    fn add(&mut self, found: Vec<DataVariable>) {
        self.variables.extend(found);
        let is_local = |variable: &DataVariable| variable.kind == DataKind::ThreadLocal;
        self.variables.sort_by(|a, b| {
            let key = |variable: &DataVariable| (is_local(variable), variable.address);
            let trust = |variable: &DataVariable| (!variable.size_is_known, variable.source);
            key(a)
                .cmp(&key(b))
                .then_with(|| trust(a).cmp(&trust(b)))
                .then_with(|| b.size.cmp(&a.size))
                .then_with(|| a.linkage_name.cmp(&b.linkage_name))
        });
        self.variables
            .dedup_by(|worse, better| is_local(worse) == is_local(better) && worse.address == better.address);
        let starts: Vec<(bool, u64)> = self.variables.iter().map(|one| (is_local(one), one.address)).collect();
        let ends: Vec<u64> = self
            .variables
            .iter()
            .map(|one| {
                let section = self.section_at(one.address, is_local(one));
                section.map_or(one.address, |section| section.range.end)
            })
            .collect();
        for (place, variable) in self.variables.iter_mut().enumerate() {
            if variable.name.is_empty() {
                variable.name = crate::symbols::short_name(&variable.linkage_name);
            }
            if !variable.size_is_known {
                let next = starts.get(place + 1).filter(|(local, _)| *local == is_local(variable));
                let end = ends.get(place).copied().unwrap_or(variable.address);
                let end = next.map_or(end, |(_, next)| end.min(*next));
                variable.size = end.saturating_sub(variable.address);
            }
        }
    }
}

fn sections(elf: &ElfFile64<'_, Endianness>) -> Vec<DataSection> {
    let endian = elf.endian();
    let mut found = Vec::new();
    // Symbols of thread-local variables count from the start of the first of their sections.
    let mut block = None;
    for section in elf.sections() {
        let flags = section.elf_section_header().sh_flags(endian);
        let (start, size) = (section.address(), section.size());
        if !flags.contains(elf::SHF_ALLOC) || !flags.contains(elf::SHF_WRITE) || size == 0 {
            continue;
        }
        let name = section.name().unwrap_or_default();
        if is_of_the_loader(name) {
            continue;
        }
        let (kind, start) = if flags.contains(elf::SHF_TLS) {
            let block = *block.get_or_insert(start);
            (DataKind::ThreadLocal, start.saturating_sub(block))
        } else if name.starts_with(".data.rel.ro") {
            (DataKind::ConstantAfterLoading, start)
        } else if section.elf_section_header().sh_type(endian) == elf::SHT_NOBITS {
            (DataKind::Zeroed, start)
        } else {
            (DataKind::Initialised, start)
        };
        found.push(DataSection {
            name: name.to_owned(),
            kind,
            range: start..start.saturating_add(size),
        });
    }
    found
}

/// Sections that only the loader writes and hardly anybody but it reads: no variables of the program.
pub(crate) fn is_of_the_loader(section: &str) -> bool {
    let beginnings = [
        ".dynamic",
        ".got",
        ".init_array",
        ".fini_array",
        ".preinit_array",
        ".ctors",
        ".dtors",
        ".jcr",
        ".eh_frame",
        ".tm_clone",
    ];
    beginnings.iter().any(|beginning| section.starts_with(beginning))
}
