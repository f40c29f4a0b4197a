//! The parts of a file's memory that tell which variable an address or a pointer means.

use std::collections::HashMap;
use std::ops::Range;

use crate::data_layout::is_of_the_loader;
use object::read::elf::{ElfFile64, SectionHeader as _};
use object::{
    Endianness, Object as _, ObjectKind, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, elf,
};

/// Memory as it is once the program is loaded.
#[derive(Default)]
pub(super) struct Image<'data> {
    /// Variables that may change, by address.
    pub writable: Vec<Range<u64>>,
    /// What the loader fills in and nobody writes afterwards: the global offset table and constants with addresses in them.
    constant: Vec<(u64, &'data [u8])>,
    /// What the loader puts where.
    pub relocated: HashMap<u64, u64>,
    /// Whether the program is always at the addresses of its file, so that a number can be an address.
    pub is_fixed: bool,
    /// Addresses that stand in tables of the file.
    pub pointed_at: Addresses,
}

impl<'data> Image<'data> {
    pub(super) fn of(elf: &ElfFile64<'data, Endianness>) -> Image<'data> {
        let mut image = Image {
            is_fixed: elf.kind() == ObjectKind::Executable,
            ..Image::default()
        };
        let endian = elf.endian();
        let mut tables = Vec::new();
        let mut slots = Vec::new();
        let (mut first, mut end) = (u64::MAX, 0);
        for section in elf.sections() {
            let flags = section.elf_section_header().sh_flags(endian);
            let range = section.address()..section.address().saturating_add(section.size());
            if !flags.contains(elf::SHF_ALLOC) || flags.contains(elf::SHF_TLS) || range.is_empty() {
                continue;
            }
            first = first.min(range.start);
            end = end.max(range.end);
            let name = section.name().unwrap_or_default();
            let is_slots = name.starts_with(".got");
            let is_constant = is_slots || name.starts_with(".data.rel.ro") || name.starts_with(".rodata");
            if flags.contains(elf::SHF_WRITE) && !is_constant && !is_of_the_loader(name) {
                image.writable.push(range.clone());
            }
            if let Ok(data) = section.data() {
                if is_constant {
                    image.constant.push((range.start, data));
                }
                if !is_slots && (is_constant || flags.contains(elf::SHF_WRITE)) {
                    tables.push((range.start, data));
                }
            }
            if is_slots {
                slots.push(range);
            }
        }
        image.writable.sort_by_key(|range| range.start);
        image.relocate(elf, &slots);
        if image.is_fixed {
            for (_, data) in tables {
                let words = data
                    .chunks_exact(8)
                    .map(|word| word.try_into().map_or(0, u64::from_le_bytes));
                for word in words.filter(|word| (first..end).contains(word)) {
                    image.pointed_at.push(word);
                }
            }
        }
        image
    }

    /// Memory with nothing but variables in it.
    #[cfg(test)]
    pub(super) fn with_variables(range: Range<u64>, is_fixed: bool) -> Image<'data> {
        Image {
            writable: vec![range],
            is_fixed,
            ..Image::default()
        }
    }

    fn relocate(&mut self, elf: &ElfFile64<'data, Endianness>, slots: &[Range<u64>]) {
        let symbols = elf.dynamic_symbol_table();
        for (place, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let known = [
                elf::R_X86_64_RELATIVE,
                elf::R_X86_64_GLOB_DAT,
                elf::R_X86_64_64,
                elf::R_AARCH64_RELATIVE,
                elf::R_AARCH64_GLOB_DAT,
                elf::R_AARCH64_ABS64,
            ];
            if !known.contains(&r_type) {
                continue;
            }
            let start = match relocation.target() {
                RelocationTarget::Absolute => Some(0),
                RelocationTarget::Symbol(index) => symbols
                    .as_ref()
                    .and_then(|table| object::ObjectSymbolTable::symbol_by_index(table, index).ok())
                    .filter(|symbol| symbol.is_definition())
                    .map(|symbol| symbol.address()),
                _ => None,
            };
            let Some(start) = start else { continue };
            let value = start.wrapping_add_signed(relocation.addend());
            self.relocate_one(place, value, slots);
        }
        // Addresses of the file itself, packed (DT_RELR): what is added to stands in the place.
        let endian = elf.endian();
        let mut packed = elf
            .elf_section_table()
            .iter()
            .filter_map(|section| section.relr(endian, elf.data()).ok()?)
            .flatten()
            .peekable();
        if packed.peek().is_none() {
            return;
        }
        // Of threads' own variables there is only the first image, whose addresses are others' too.
        let in_memory = elf.sections().filter(|section| {
            let flags = section.elf_section_header().sh_flags(endian);
            flags.contains(elf::SHF_ALLOC) && !flags.contains(elf::SHF_TLS)
        });
        let mut sections: Vec<(u64, &[u8])> = in_memory
            .filter_map(|section| Some((section.address(), section.data().ok()?)))
            .filter(|(_, data)| !data.is_empty())
            .collect();
        sections.sort_by_key(|(start, _)| *start);
        for place in packed {
            if let Some(word) = word_at(&sections, place) {
                self.relocate_one(place, word, slots);
            }
        }
    }

    fn relocate_one(&mut self, place: u64, value: u64, slots: &[Range<u64>]) {
        self.relocated.insert(place, value);
        if !slots.iter().any(|slots| slots.contains(&place)) {
            self.pointed_at.push(value);
        }
    }

    pub(super) fn is_writable(&self, address: u64) -> bool {
        let after = self.writable.partition_point(|range| range.start <= address);
        let before = after.checked_sub(1).and_then(|index| self.writable.get(index));
        before.is_some_and(|range| range.contains(&address))
    }

    /// The pointer that is always at an address.
    pub(super) fn pointer(&self, address: u64) -> Option<u64> {
        if let Some(value) = self.relocated.get(&address) {
            return Some(*value).filter(|_| !self.is_writable(address));
        }
        self.constant.iter().find_map(|(start, data)| {
            let place = usize::try_from(address.checked_sub(*start)?).ok()?;
            let word = data.get(place..place.checked_add(8)?)?;
            word.try_into().ok().map(u64::from_le_bytes).filter(|value| *value != 0)
        })
    }
}

/// A set of addresses: they are only added until all are asked for. Sections of a damaged file may show the same bytes over and over.
#[derive(Default)]
pub(super) struct Addresses {
    list: Vec<u64>,
    /// So many were left when those that are there twice went the last time.
    left: usize,
}

impl Addresses {
    /// Those that are there twice go when so many were added.
    const LEAST: usize = 1 << 16;

    pub(super) fn push(&mut self, address: u64) {
        self.list.push(address);
        if self.list.len() > 2 * self.left.max(Self::LEAST) {
            self.keep_each_once();
        }
    }

    fn keep_each_once(&mut self) {
        self.list.sort_unstable();
        self.list.dedup();
        self.left = self.list.len();
    }

    /// In ascending order.
    pub(super) fn into_list(mut self) -> Vec<u64> {
        self.keep_each_once();
        self.list
    }
}

/// The word at an address, of sections in the order of their addresses.
fn word_at(sections: &[(u64, &[u8])], address: u64) -> Option<u64> {
    let after = sections.partition_point(|(start, _)| *start <= address);
    let (start, data) = sections.get(after.checked_sub(1)?)?;
    let place = usize::try_from(address - start).ok()?;
    let word = data.get(place..place.checked_add(8)?)?;
    word.try_into().ok().map(u64::from_le_bytes)
}
