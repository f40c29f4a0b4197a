//! Gathers the symbols of a file from itself and from the files beside it.

use scaleprof_vocabulary::SymbolSource;
use std::collections::HashMap;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use foldhash::HashSet;
use object::read::elf::{ElfFile64, ElfSymbol64, SectionHeader as _, Sym as _, SymbolTable};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind, elf};

use crate::mapped_file::{FilePart, MappedFile, mapped};

use super::code_regions::CodeRegions;
use super::jump_table;
use super::name_table::{Binding, NameTable, Symbol};
use super::name_text::NameText;
use super::separate_files::SymbolSearch;
use super::source_frames::Dwarf;
use super::symbol_list;
use super::{DemangledNames, LazyNames, SymbolError, SymbolFile};

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
    names: Names,
    places: Places,
    keeping: Keeping,
}

/// Names that are not sorted yet.
#[derive(Default)]
struct Names {
    functions: NameTable,
    variables: NameTable,
}

/// Which addresses of a file are code, and which variables.
struct Places {
    code: Vec<Range<u64>>,
    data: Vec<Range<u64>>,
}

impl<'bytes> Gathering<'bytes> {
    /// Starts with what the file itself says.
    /// `text` gives a part of its bytes, which names stand in, to keep.
    pub(super) fn of(
        name: &str,
        bytes: &'bytes [u8],
        text: &dyn Fn(Range<usize>) -> NameText,
    ) -> Result<Self, SymbolError> {
        let elf = ElfFile64::<Endianness>::parse(bytes).map_err(|error| SymbolError::NotElf {
            name: name.to_owned(),
            error,
        })?;
        let places = Places::of(&elf);
        let file = SymbolFile {
            name: name.to_owned(),
            build_id: build_id(&elf),
            functions: NameTable::default(),
            variables: sorted_when_needed(NameTable::default()),
            code: CodeRegions::of(bytes, places.code.clone()),
            data: places.data.clone(),
            stubs: Vec::new(),
            dwarf: Dwarf::default(),
            demangled: DemangledNames::default(),
            notes: Vec::new(),
        };
        let mut names = Names::default();
        // At once: to make more room for the second table would move what the first one gave.
        let of_both = elf.elf_symbol_table().len() + elf.elf_dynamic_symbol_table().len();
        names.functions.reserve(of_both);
        let tables = [
            (elf.elf_symbol_table(), SymbolSource::Symtab),
            (elf.elf_dynamic_symbol_table(), SymbolSource::Dynsym),
        ];
        for (table, source) in tables {
            // Nearly all that a program exports stands in its symbol table too, which has the better names.
            let known = names.functions.sized_starts();
            names.add_symbols((&elf, table, source), text, (&places, &known));
        }
        Ok(Gathering {
            elf,
            file,
            names,
            places,
            keeping: Keeping::Copies,
        })
    }

    /// Keeps names of further files so.
    pub(super) fn keeping(self, keeping: Keeping) -> Self {
        Gathering { keeping, ..self }
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
        let bytes = Arc::new(mapped(path).map_err(|error| error.to_string())?);
        let elf = ElfFile64::<Endianness>::parse(&**bytes).map_err(|error| error.to_string())?;
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
        let table = (&elf, elf.elf_symbol_table(), SymbolSource::Symtab);
        let text = self.keeping.part_of(&bytes);
        self.names
            .add_symbols(table, &text, (&self.places, &HashSet::default()));
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
                source: SymbolSource::SymbolList,
                binding: listed.binding(),
            };
            // By address, not by letter: those of thread-local variables are offsets that lie in neither.
            if self.places.is_code(listed.address) {
                self.names.functions.add(&symbol, listed.name);
            } else if self.places.is_data(listed.address) {
                self.names.variables.add(&symbol, listed.name);
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
        file.functions = self.names.functions;
        file.functions.finish();
        file.variables = sorted_when_needed(self.names.variables);
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

/// Where names are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeping {
    /// In the files, which stay mapped: for who is soon done with them.
    Files,
    /// In memory: a file that is written anew in place would end whoever reads it later.
    Copies,
}

impl Keeping {
    /// What keeps a part of a mapped file.
    pub(super) fn part_of(self, file: &Arc<MappedFile>) -> impl Fn(Range<usize>) -> NameText {
        move |range| {
            let part = FilePart::of(file, range);
            match self {
                Keeping::Files => NameText::Mapped(part),
                Keeping::Copies => NameText::Copied((&*part).into()),
            }
        }
    }
}

/// Most profiles ask for no variable.
fn sorted_when_needed(mut variables: NameTable) -> LazyNames {
    LazyLock::new(Box::new(move || {
        variables.finish();
        variables
    }))
}

impl Names {
    /// Adds the symbols of a table of this file or of its debug file, but no functions that begin where a better table has one whose size is
    /// known.
    fn add_symbols<'data>(
        &mut self,
        (elf, table, source): (
            &ElfFile64<'data, Endianness>,
            &SymbolTable<'data, elf::FileHeader64<Endianness>>,
            SymbolSource,
        ),
        text: &dyn Fn(Range<usize>) -> NameText,
        (places, known): (&Places, &HashSet<u64>),
    ) -> Option<()> {
        let strings = elf.section_by_index(table.string_section()).ok()?;
        let (start, size) = strings.elf_section_header().file_range(elf.endian())?;
        let start = usize::try_from(start).ok()?;
        let range = start..start.checked_add(usize::try_from(size).ok()?)?;
        // Names are believed where they are; only of a text that has others than ASCII each is looked at before.
        let all_are_text = elf.data().get(range.clone()).is_some_and(<[u8]>::is_ascii);
        let text = text(range);
        let in_functions = self.functions.add_text(text.clone())?;
        let in_variables = self.variables.add_text(text)?;
        self.functions.reserve(table.len());
        let symbols: Box<dyn Iterator<Item = ElfSymbol64<'data, '_, Endianness>>> = match source {
            SymbolSource::Dynsym => Box::new(elf.dynamic_symbols()),
            _ => Box::new(elf.symbols()),
        };
        for symbol in symbols {
            let kind = symbol.kind();
            let is_name = matches!(kind, SymbolKind::Text | SymbolKind::Data | SymbolKind::Unknown);
            // Undefined, absolute and thread-local ones are no places.
            if !is_name || symbol.section_index().is_none() || !(all_are_text || symbol.name().is_ok()) {
                continue;
            }
            let binding = match kind {
                SymbolKind::Unknown => Binding::Label,
                _ if symbol.is_local() => Binding::Local,
                _ if symbol.is_weak() => Binding::Weak,
                _ => Binding::Global,
            };
            let name = symbol.elf_symbol().st_name(elf.endian());
            let symbol = Symbol {
                start: symbol.address(),
                size: symbol.size(),
                source,
                binding,
            };
            if kind != SymbolKind::Data && known.contains(&symbol.start) {
                continue;
            }
            if kind != SymbolKind::Data && places.is_code(symbol.start) {
                self.functions.add_at(&symbol, in_functions, name);
            } else if kind != SymbolKind::Text && places.is_data(symbol.start) {
                self.variables.add_at(&symbol, in_variables, name);
            }
        }
        Some(())
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
