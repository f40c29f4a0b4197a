//! The recorded kernel, and whether it is the one that runs here: only then are its addresses to be named.

use super::record::Mapped;
use crate::import::RecordedMachine;
use scaleprof_binary::kernel_symbols::KernelSymbols;
use std::collections::HashMap;

/// How the kernel's own mapping is called.
const KERNEL: &str = "[kernel.kallsyms]";
/// The process of the kernel's mappings.
pub(super) const KERNEL_PROCESS: u32 = u32::MAX;

/// What a recording tells of its kernel.
#[derive(Debug, Default)]
pub(super) struct RecordedKernel {
    /// Where the symbol lay that its mapping is named after, `_text` or `_stext`: the kernel starts elsewhere at every boot.
    reference: Option<(String, u64)>,
}

impl RecordedKernel {
    /// Takes in a mapping of the kernel.
    pub(super) fn map(&mut self, mapped: &Mapped) {
        if let Some(symbol) = mapped.path.strip_prefix(KERNEL)
            && !symbol.is_empty()
        {
            // perf writes the symbol's address where the place in the file would stand.
            self.reference = Some((symbol.to_owned(), mapped.file_offset));
        }
    }

    /// Names for its functions, or why there are none.
    pub(super) fn symbols(
        &self,
        machine: &RecordedMachine,
        build_ids: &HashMap<String, String>,
    ) -> Result<KernelSymbols, String> {
        let here = rustix::system::uname();
        let release = here.release().to_string_lossy();
        if let Some(recorded) = machine.kernel.as_deref().filter(|recorded| *recorded != release) {
            return Err(format!(
                "it was recorded on Linux {recorded}, and this machine runs {release}"
            ));
        }
        let recorded = build_ids.get(KERNEL);
        let own = std::fs::read("/sys/kernel/notes")
            .ok()
            .and_then(|notes| build_id_of_notes(&notes));
        if let (Some(recorded), Some(own)) = (recorded, &own)
            && recorded != own
        {
            return Err("it was recorded on another build of the kernel".to_owned());
        }
        if machine.kernel.is_none() && recorded.is_none() {
            return Err("it does not tell on which kernel it was recorded".to_owned());
        }
        let symbols = KernelSymbols::of_this_kernel().map_err(|error| error.to_string())?;
        match &self.reference {
            Some((symbol, address)) if symbols.address_of(symbol).is_some_and(|own| own != *address) => {
                Err("it was recorded before this machine was started, when its kernel lay elsewhere".to_owned())
            }
            _ => Ok(symbols),
        }
    }
}

/// The build-id in ELF notes: name and content are padded to 4 bytes.
fn build_id_of_notes(notes: &[u8]) -> Option<String> {
    const BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let mut cursor = super::cursor::Cursor::new(rest);
        let (name, content, kind) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.take((name as usize).next_multiple_of(4))?;
        let bytes = cursor.take((content as usize).checked_next_multiple_of(4)?)?;
        if kind == BUILD_ID && name.starts_with(b"GNU") {
            return bytes.get(..content as usize).map(super::features::hexadecimal);
        }
        rest = cursor.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = Vec::new();
        for (name, kind, content) in [
            ("Xen\0", 3_u32, &[9_u8, 9, 9][..]),
            ("GNU\0", 3, &[0xab, 0xcd, 0xef, 1]),
        ] {
            notes.extend((name.len() as u32).to_le_bytes());
            notes.extend((content.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(name.as_bytes());
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_of_notes(&notes).as_deref(), Some("abcdef01"));
        assert_eq!(build_id_of_notes(&notes[..20]), None);
    }

    #[test]
    fn another_kernel_gives_no_names_and_says_why() {
        let machine = RecordedMachine {
            kernel: Some("5.4.0-made-up".into()),
            ..RecordedMachine::default()
        };
        let found = RecordedKernel::default().symbols(&machine, &HashMap::new());
        assert!(found.err().is_some_and(|why| why.contains("5.4.0-made-up")));
    }
}
