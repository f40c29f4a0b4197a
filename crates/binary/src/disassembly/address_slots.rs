//! Where the loader puts addresses: code reaches what may lie in another file through a slot (the global offset table).

use std::collections::HashMap;

use object::{
    Architecture, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationFlags,
    RelocationTarget, elf,
};

use super::OperandNames;
use crate::symbols::SymbolFile;

/// Whose address lies in which slot of a file.
#[derive(Debug, Default)]
pub(super) struct AddressSlots {
    names: HashMap<u64, String>,
}

impl AddressSlots {
    pub(super) fn of(elf: &object::File<'_>, symbols: &SymbolFile) -> AddressSlots {
        let table = elf.dynamic_symbol_table();
        // Elsewhere the loader fills in pointers of the program's own, in variables and tables: these have names.
        let is_of_slots = |name: &str| name == ".got" || name.starts_with(".got.");
        let slots: Vec<_> = elf
            .sections()
            .filter(|section| section.name().is_ok_and(is_of_slots))
            .collect();
        let is_slot = |address: u64| {
            let mut around = slots
                .iter()
                .map(|slots| slots.address()..slots.address().saturating_add(slots.size()));
            around.any(|range| range.contains(&address))
        };
        let named = elf
            .dynamic_relocations()
            .into_iter()
            .flatten()
            .filter(|(slot, _)| is_slot(*slot))
            .filter_map(|(slot, relocation)| {
                let name = match relocation.target() {
                    RelocationTarget::Symbol(index) => {
                        let symbol = table.as_ref()?.symbol_by_index(index).ok()?;
                        // A name without what the compiler made of it, where it is this file's own.
                        let own = (symbol.address() != 0).then(|| {
                            symbols
                                .data(symbol.address())
                                .or_else(|| symbols.code(symbol.address()))
                        });
                        own.flatten().or_else(|| Some(symbol.name().ok()?.to_owned()))?
                    }
                    _ if is_relative(elf.architecture(), relocation.flags()) => {
                        let address = u64::try_from(relocation.addend()).ok()?;
                        symbols.data(address).or_else(|| symbols.code(address))?
                    }
                    _ => return None,
                };
                Some((slot, name))
            });
        let mut names: HashMap<u64, String> = named.collect();
        // What the linker knew already needs no relocation.
        for section in slots.iter().filter(|section| section.name() == Ok(".got")) {
            let bytes = section.data().unwrap_or_default();
            for (slot, value) in (section.address()..).step_by(8).zip(bytes.chunks_exact(8)) {
                let value = value.try_into().map_or(0, u64::from_le_bytes);
                if let Some(name) = symbols.data(value).or_else(|| symbols.code(value)) {
                    names.entry(slot).or_insert(name);
                }
            }
        }
        AddressSlots { names }
    }

    /// The name of what a slot leads to, as assemblers write it.
    pub(super) fn name(&self, address: u64) -> Option<String> {
        Some(format!("{}@got", self.names.get(&address)?))
    }
}

/// Whether the slot holds an address of the same file.
fn is_relative(architecture: Architecture, flags: RelocationFlags) -> bool {
    let RelocationFlags::Elf { r_type } = flags else {
        return false;
    };
    match architecture {
        Architecture::X86_64 => r_type == elf::R_X86_64_RELATIVE,
        Architecture::Aarch64 => r_type == elf::R_AARCH64_RELATIVE,
        _ => false,
    }
}
