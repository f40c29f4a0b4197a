//! Names of the stubs through which a file calls other libraries (the PLT).
//!
//! They have no symbols. But each jumps through a slot, and the relocation of that slot says whose address it holds.

use std::collections::HashMap;

use object::elf;
use object::read::elf::{ElfFile64, SectionHeader as _};
use object::{
    Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationTarget,
};

use crate::long_names::{LINKAGE, cut};

/// A stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stub {
    pub(super) start: u64,
    pub(super) size: u64,
    /// Such as `write@plt`.
    pub(super) name: String,
}

/// The stubs of a 64-bit x86 file; other processors' have other code.
///
/// `function_at` names the resolver of a function that the file chooses at run time for the processor at hand (IFUNC).
pub(super) fn stubs(file: &ElfFile64<'_, Endianness>, function_at: impl Fn(u64) -> Option<String>) -> Vec<Stub> {
    if file.architecture() != object::Architecture::X86_64 {
        return Vec::new();
    }
    let endian = file.endian();
    let mut found = Vec::new();
    for section in file.sections() {
        if !section.name().is_ok_and(|name| name.starts_with(".plt")) {
            continue;
        }
        let size = match section.elf_section_header().sh_entsize(endian) {
            8 => 8,
            _ => 16,
        };
        let Ok(data) = section.data() else { continue };
        for (index, code) in data.chunks_exact(size).enumerate() {
            let start = section.address().wrapping_add((index * size) as u64);
            if let Some(slot) = slot_of(code, start) {
                found.push((start, size as u64, slot));
            }
        }
    }
    let names = slot_names(file, &function_at, found.iter().map(|(_, _, slot)| *slot));
    found
        .into_iter()
        .filter_map(|(start, size, slot)| {
            let name = format!("{}@plt", names.get(&slot)?);
            Some(Stub { start, size, name })
        })
        .collect()
}

/// The slot that a stub jumps through: `ff 25` is `jmp *displacement(%rip)`, from the jump's end.
fn slot_of(code: &[u8], start: u64) -> Option<u64> {
    let jump = code.windows(6).position(|window| window.starts_with(&[0xff, 0x25]))?;
    let displacement: [u8; 4] = code.get(jump + 2..jump + 6)?.try_into().ok()?;
    let end = start.wrapping_add(jump as u64 + 6);
    Some(end.wrapping_add_signed(i64::from(i32::from_le_bytes(displacement))))
}

fn slot_names(
    file: &ElfFile64<'_, Endianness>,
    function_at: &impl Fn(u64) -> Option<String>,
    slots: impl Iterator<Item = u64>,
) -> HashMap<u64, String> {
    let mut names: HashMap<u64, String> = slots.map(|slot| (slot, String::new())).collect();
    // Most relocations are of data elsewhere, and there are tens of thousands.
    let (Some(first), Some(last)) = (names.keys().min().copied(), names.keys().max().copied()) else {
        return names;
    };
    let symbols = file.dynamic_symbol_table();
    for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
        if !(first..=last).contains(&place) {
            continue;
        }
        let Some(name) = names.get_mut(&place) else { continue };
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => symbols
                .as_ref()
                .and_then(|symbols| symbols.symbol_by_index(index).ok())
                .and_then(|symbol| Some(cut(symbol.name().ok()?, LINKAGE).to_owned())),
            _ if relocation.flags()
                == (object::RelocationFlags::Elf {
                    r_type: elf::R_X86_64_IRELATIVE,
                }) =>
            {
                function_at(relocation.addend() as u64)
            }
            _ => None,
        };
        *name = target.unwrap_or_default();
    }
    names.retain(|_, name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_jumps_through_the_slot_that_its_code_names() {
        // endbr64; bnd jmp *0x2fbd(%rip); nop
        let modern = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xbd, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0,
        ];
        assert_eq!(slot_of(&modern, 0x1000), Some(0x1000 + 11 + 0x2fbd));
        let lazy = [0xff, 0x25, 0xfe, 0xff, 0xff, 0xff, 0x68, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
        assert_eq!(slot_of(&lazy, 0x1000), Some(0x1004));
        assert_eq!(slot_of(&[0x90; 16], 0x1000), None);
        assert_eq!(slot_of(&[0xff, 0x25], 0x1000), None);
    }
}
