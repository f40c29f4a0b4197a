//! Gathers the symbols of a file from itself and from the files beside it.

use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, SectionHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind, elf};

use crate::mapped_file::mapped;

use super::code_regions::CodeRegions;
use super::jump_table;
use super::name_table::{Binding, NameTable, Symbol};
use super::separate_files::SymbolSearch;
use super::source_frames::Dwarf;
use super::symbol_list;
use super::{DemangledNames, NameSource, SymbolError, SymbolFile};

/// Where a link leads to, if that is the same file: the text of `/proc/PID/exe` and `/proc/PID/root` is true in the
/// process's own namespace only, and a server in a container has another file there.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let same = |place: &PathBuf| {
        let (Ok(a), Ok(b)) = (std::fs::metadata(path), std::fs::metadata(place)) else {
            return false;
        };
        (a.dev(), a.ino()) == (b.dev(), b.ino())
    };
    std::fs::canonicalize(path)
        .ok()
        .filter(same)
        .unwrap_or_else(|| path.to_owned())
}

/// A file whose symbols are being gathered.
pub(super) struct Gathering<'bytes> {
    elf: ElfFile64<'bytes, Endianness>,
    file: SymbolFile,
    places: Places,
}

/// Which addresses of a file are code, and which variables.
struct Places {
    code: Vec<Range<u64>>,
    data: Vec<Range<u64>>,
}

impl<'bytes> Gathering<'bytes> {
    /// Starts with what the file itself says.
    pub(super) fn of(name: &str, bytes: &'bytes [u8]) -> Result<Self, SymbolError> {
        let elf = ElfFile64::<Endianness>::parse(bytes).map_err(|error| SymbolError::NotElf {
            name: name.to_owned(),
            error,
        })?;
        let places = Places::of(&elf);
        let mut file = SymbolFile {
            name: name.to_owned(),
            build_id: build_id(&elf),
            functions: NameTable::default(),
            variables: NameTable::default(),
            code: CodeRegions::of(bytes, places.code.clone()),
            data: places.data.clone(),
            stubs: Vec::new(),
            dwarf: Dwarf::default(),
            demangled: DemangledNames::default(),
            notes: Vec::new(),
        };
        let (symbols, dynamic) = (elf.elf_symbol_table().len(), elf.elf_dynamic_symbol_table().len());
        add_symbols(&mut file, &places, (elf.symbols(), symbols), NameSource::Symtab);
        add_symbols(&mut file, &places, (elf.dynamic_symbols(), dynamic), NameSource::Dynsym);
        Ok(Gathering { elf, file, places })
    }

    /// Looks for a debug file and, if no symbol table was found, for a list of symbols. The file can be opened at `place`; what
    /// belongs to it lies beside `own`.
    pub(super) fn find_more(&mut self, place: &Path, own: &Path, search: &SymbolSearch) {
        let mut has_symbols = has_symbols(&self.elf);
        if has_dwarf(&self.elf) {
            self.file.dwarf = Dwarf::of(place, supplementary(&self.elf, own, search));
        }
        if !has_symbols || !has_dwarf(&self.elf) {
            has_symbols |= self.find_debug_file(own, search);
        }
        if !has_symbols {
            self.find_list(own, search);
        }
    }

    /// Whether a debug file with symbols was found.
    fn find_debug_file(&mut self, path: &Path, search: &SymbolSearch) -> bool {
        let by_id = self
            .file
            .build_id
            .as_deref()
            .map(|id| search.by_build_id(id))
            .unwrap_or_default();
        let link = self.elf.gnu_debuglink().ok().flatten();
        let by_link = link.map(|(name, checksum)| {
            let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
            let found = search.by_link(path, &name);
            found.into_iter().map(move |path| (path, Some(checksum)))
        });
        let candidates = by_id.into_iter().map(|path| (path, None));
        for (candidate, checksum) in candidates.chain(by_link.into_iter().flatten()) {
            match self.use_debug_file(&candidate, checksum, search) {
                Ok(has_symbols) => {
                    self.note(&candidate, "used as debug file");
                    return has_symbols;
                }
                Err(why) => self.note(&candidate, &format!("not used as debug file: {why}")),
            }
        }
        false
    }

    fn use_debug_file(&mut self, path: &Path, checksum: Option<u32>, search: &SymbolSearch) -> Result<bool, String> {
        let bytes = mapped(path).map_err(|error| error.to_string())?;
        let elf = ElfFile64::<Endianness>::parse(&*bytes).map_err(|error| error.to_string())?;
        match checksum {
            Some(checksum) => {
                let mut crc = flate2::Crc::new();
                crc.update(&bytes);
                if crc.sum() != checksum {
                    return Err(format!(
                        "its checksum is {:08x}, the link says {checksum:08x}",
                        crc.sum()
                    ));
                }
            }
            None if build_id(&elf) != self.file.build_id => return Err("its build-id is another".to_owned()),
            None => {}
        }
        let count = elf.elf_symbol_table().len();
        add_symbols(&mut self.file, &self.places, (elf.symbols(), count), NameSource::Symtab);
        if has_dwarf(&elf) {
            self.file.dwarf = Dwarf::of(path, supplementary(&elf, path, search));
        }
        Ok(has_symbols(&elf))
    }

    fn find_list(&mut self, path: &Path, search: &SymbolSearch) {
        for candidate in search.symbol_lists(path) {
            match symbol_list::read(&candidate) {
                Ok(text) => match self.use_list(&text) {
                    Ok(()) => {
                        self.note(&candidate, "used as list of symbols");
                        return;
                    }
                    Err(why) => self.note(&candidate, &format!("not used as list of symbols: {why}")),
                },
                Err(error) => self.note(&candidate, &format!("not used as list of symbols: {error}")),
            }
        }
    }

    fn use_list(&mut self, text: &str) -> Result<(), String> {
        let exported: HashMap<&str, u64> = self
            .elf
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition() && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Data))
            .filter_map(|symbol| Some((symbol.name().ok()?, symbol.address())))
            .collect();
        symbol_list::check(text, &exported)?;
        for listed in symbol_list::lines(text) {
            let symbol = Symbol {
                start: listed.address,
                size: 0,
                name: listed.name,
                source: NameSource::SymbolList,
                binding: listed.binding(),
            };
            // By address, not by letter: those of thread-local variables are offsets that lie in neither.
            if self.places.is_code(listed.address) {
                self.file.functions.add(&symbol);
            } else if self.places.is_data(listed.address) {
                self.file.variables.add(&symbol);
            }
        }
        Ok(())
    }

    fn note(&mut self, path: &Path, what: &str) {
        self.file.notes.push(format!("{}: {what}", path.display()));
    }

    /// Sorts the indexes and names the stubs.
    pub(super) fn finish(self) -> SymbolFile {
        let mut file = self.file;
        file.functions.finish();
        file.variables.finish();
        let function_at = |svma: u64| {
            let region = file.code.region(svma)?;
            let found = file.functions.find(svma, &region.range)?;
            (found.start == svma).then(|| found.name.to_owned())
        };
        let mut stubs = jump_table::stubs(&self.elf, function_at);
        stubs.sort_by_key(|stub| stub.start);
        file.stubs = stubs;
        file
    }
}

impl Places {
    fn of(elf: &ElfFile64<'_, Endianness>) -> Self {
        let endian = elf.endian();
        let (mut code, mut data) = (Vec::new(), Vec::new());
        for section in elf.sections() {
            let flags = section.elf_section_header().sh_flags(endian);
            let range = section.address()..section.address().saturating_add(section.size());
            // Thread-local sections have no addresses of their own.
            if !flags.contains(elf::SHF_ALLOC) || flags.contains(elf::SHF_TLS) || range.is_empty() {
                continue;
            }
            let constants = || section.name().is_ok_and(|name| name.starts_with(".rodata"));
            if flags.contains(elf::SHF_EXECINSTR) {
                code.push(range);
            } else if flags.contains(elf::SHF_WRITE) || constants() {
                data.push(range);
            }
        }
        Places { code, data }
    }

    fn is_code(&self, svma: u64) -> bool {
        self.code.iter().any(|range| range.contains(&svma))
    }

    fn is_data(&self, svma: u64) -> bool {
        self.data.iter().any(|range| range.contains(&svma))
    }
}

/// Bytes that a name takes where there are many.
const NAME_LENGTH: usize = 48;

fn add_symbols<'data>(
    file: &mut SymbolFile,
    places: &Places,
    (symbols, count): (impl Iterator<Item = impl object::ObjectSymbol<'data>>, usize),
    source: NameSource,
) {
    for table in [&mut file.functions, &mut file.variables] {
        table.reserve(count, count.saturating_mul(NAME_LENGTH));
    }
    for symbol in symbols {
        let kind = symbol.kind();
        let is_name = matches!(kind, SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown);
        // Undefined, absolute and thread-local ones are no places.
        if !is_name || symbol.section_index().is_none() {
            continue;
        }
        let Ok(name) = symbol.name() else { continue };
        let binding = match kind {
            SymbolKind::Unknown => Binding::Label,
            _ if symbol.is_local() => Binding::Local,
            _ if symbol.is_weak() => Binding::Weak,
            _ => Binding::Global,
        };
        let symbol = Symbol {
            start: symbol.address(),
            size: symbol.size(),
            name,
            source,
            binding,
        };
        if kind != SymbolKind::Data && places.is_code(symbol.start) {
            file.functions.add(&symbol);
        } else if kind != SymbolKind::Text && places.is_data(symbol.start) {
            file.variables.add(&symbol);
        }
    }
}

fn has_symbols(elf: &ElfFile64<'_, Endianness>) -> bool {
    elf.symbols().any(|symbol| symbol.kind() == SymbolKind::Text)
}

fn has_dwarf(elf: &ElfFile64<'_, Endianness>) -> bool {
    elf.section_by_name(".debug_info")
        .is_some_and(|section| section.size() > 0)
}

fn supplementary(elf: &ElfFile64<'_, Endianness>, path: &Path, search: &SymbolSearch) -> Option<PathBuf> {
    let (name, id) = elf.gnu_debugaltlink().ok()??;
    let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
    search.supplementary(path, &name, &hexadecimal(id))
}

fn build_id(elf: &ElfFile64<'_, Endianness>) -> Option<String> {
    elf.build_id().ok().flatten().map(hexadecimal)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_a_running_program_leads_to_its_file() {
        let program = std::env::current_exe().expect("a path");
        assert_eq!(resolved(Path::new("/proc/self/exe")), program);
        assert_eq!(resolved(Path::new("/nowhere/mysqld")), Path::new("/nowhere/mysqld"));
    }
}
