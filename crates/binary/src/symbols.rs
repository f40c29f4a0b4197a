//! Names of the functions and variables of one file, from the best source that there is.
//!
//! A server is rarely whole: distributions strip it and keep its symbols elsewhere or nowhere. In order of trust: its
//! own symbol table or that of its debug file, a list of symbols beside it, what it exports, and at last the bounds of
//! its functions, which survive `strip` as call frame information: `mariadbd!fun_9a3f10` is no name, but it is the same
//! place every time. Every answer says where it comes from.

mod code_regions;
mod debug_sections;
mod demangle;
mod gather;
mod jump_table;
mod name_table;
mod name_text;
mod nesting;
mod separate_files;
mod source_frames;
mod symbol_list;
mod unit_index;

use scaleprof_vocabulary::SymbolSource;
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use thiserror::Error;

use code_regions::CodeRegions;
pub use demangle::readable_name;
use demangle::{Demangled, demangle};
use gather::{Gathering, Keeping};
use jump_table::Stub;
use name_table::NameTable;
use name_text::NameText;
pub use separate_files::SymbolSearch;
use source_frames::{Dwarf, Frame};
pub use source_frames::{SourceFrame, end_of_path};

/// A function that holds an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function<'file> {
    /// Without parameter types and long template arguments.
    pub name: String,
    /// With all of it.
    pub full_name: String,
    /// As the linker knows it.
    pub linkage_name: Cow<'file, str>,
    /// How far behind its start the address is, in bytes.
    pub offset: u64,
    /// Where it starts in the file's addresses.
    pub start: u64,
    /// In bytes; where the source gives no size, up to the end of what it may name.
    pub size: u64,
    /// Where the name comes from.
    pub source: SymbolSource,
}

/// A variable that holds an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable<'file> {
    /// Without long template arguments.
    pub name: String,
    /// With all of it.
    pub full_name: String,
    /// As the linker knows it.
    pub linkage_name: &'file str,
    /// How far behind its start the address is, in bytes.
    pub offset: u64,
    /// Where it starts in the file's addresses.
    pub start: u64,
    /// In bytes; where the source gives no size, up to the next variable.
    pub size: u64,
    /// Where the name comes from.
    pub source: SymbolSource,
}

/// A variable as the best source names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataSymbol<'file> {
    /// As the linker knows it.
    pub linkage_name: &'file str,
    /// Where it starts in the file's addresses.
    pub start: u64,
    /// In bytes; 0 where the source gives none.
    pub size: u64,
    /// Where the name comes from.
    pub source: SymbolSource,
}

/// How much of a file's code has names, as shares of the bytes that call frame information covers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Coverage {
    /// Bytes of code that call frame information covers.
    pub bytes: u64,
    /// [`SymbolSource::Symtab`].
    pub symtab: f64,
    /// [`SymbolSource::SymbolList`].
    pub symbol_list: f64,
    /// [`SymbolSource::Dynsym`].
    pub dynsym: f64,
    /// [`SymbolSource::FrameBounds`]: without a name, unless there is DWARF that has one.
    pub function_bounds: f64,
}

/// Why a file's symbols cannot be read.
#[derive(Debug, Error)]
pub enum SymbolError {
    /// It is a folder.
    #[error("{path} is a folder: name the server's binary itself, such as /usr/sbin/mariadbd")]
    Folder {
        /// Which one.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read {path}: {error}{}", what_helps(error))]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is no ELF file.
    #[error(
        "{name} is not a 64-bit ELF file: {error}\nfix: name the server's binary itself, not a script that starts it"
    )]
    NotElf {
        /// Which file.
        name: String,
        /// What is wrong with it.
        error: object::Error,
    },
}

/// What mends a failure to read a file; nothing where nobody knows.
fn what_helps(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => ". Its owner or CAP_DAC_READ_SEARCH can read it",
        std::io::ErrorKind::NotFound => ". Is the path right?",
        _ => "",
    }
}

/// Names that are sorted when the first of them is asked for.
type LazyNames = LazyLock<NameTable, Box<dyn FnOnce() -> NameTable + Send>>;

/// The names of one file, indexed by address.
pub struct SymbolFile {
    name: String,
    build_id: Option<String>,
    functions: NameTable,
    variables: LazyNames,
    code: CodeRegions,
    /// Parts of the file in which variables lie, by address.
    data: Vec<Range<u64>>,
    stubs: Vec<Stub>,
    dwarf: Dwarf,
    demangled: DemangledNames,
    notes: Vec<String>,
}

impl SymbolFile {
    /// Reads a file's symbols and finds more in other files. DWARF is not read until [`SymbolFile::frames`] needs it.
    pub fn open(path: &Path, extra: &SymbolSearch) -> Result<SymbolFile, SymbolError> {
        // The lists and debug files are called like the file that a link (`mysqld` to `mariadbd`) leads to.
        let place = gather::resolved(path);
        Self::read(path, (&place, &place), extra, Keeping::Copies)
    }

    /// The same of a file that is to be had only under another path than its own, such as that of a mapping of a process: it is
    /// called like `own`, and other files are looked for there. Where the path is a link to what is there, that is its own.
    pub fn open_beside(path: &Path, own: &Path, extra: &SymbolSearch) -> Result<SymbolFile, SymbolError> {
        let place = gather::resolved(path);
        match place == path {
            true => Self::read(path, (path, own), extra, Keeping::Copies),
            false => Self::read(path, (&place, &place), extra, Keeping::Copies),
        }
    }

    /// The same of a file that is kept under a name that says nothing, such as in perf's cache: it is called like `own`, and other
    /// files are looked for there. The files stay mapped as long as this lives, for names that are asked for: of one that is written anew in
    /// place meanwhile nothing can be read.
    pub fn open_called(path: &Path, own: &Path, extra: &SymbolSearch) -> Result<SymbolFile, SymbolError> {
        Self::read(path, (&gather::resolved(path), own), extra, Keeping::Files)
    }

    fn read(
        path: &Path,
        (place, own): (&Path, &Path),
        extra: &SymbolSearch,
        keeping: Keeping,
    ) -> Result<SymbolFile, SymbolError> {
        if place.is_dir() {
            return Err(SymbolError::Folder { path: path.to_owned() });
        }
        let bytes = crate::mapped_file::mapped(place).map_err(|error| SymbolError::Read {
            path: path.to_owned(),
            error,
        })?;
        let name = own
            .file_name()
            .map_or_else(|| own.to_string_lossy(), |name| name.to_string_lossy());
        let bytes = Arc::new(bytes);
        let mut gathering = Gathering::of(&name, &bytes, &keeping.part_of(&bytes))?.keeping(keeping);
        gathering.find_more(place, own, extra);
        let symbols = gathering.finish();
        match bytes.is_truncated() {
            // Names of zeros are worse than none.
            true => Err(SymbolError::Read {
                path: path.to_owned(),
                error: std::io::Error::other("it was truncated while it was read"),
            }),
            false => Ok(symbols),
        }
    }

    /// Reads the symbols of a file that is only in memory, such as the vDSO.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<SymbolFile, SymbolError> {
        let copy = |range: Range<usize>| NameText::Copied(bytes.get(range).unwrap_or_default().into());
        Ok(Gathering::of(name, bytes, &copy)?.finish())
    }

    /// What the file is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The linker's fingerprint of the file, in hexadecimal.
    #[must_use]
    pub fn build_id(&self) -> Option<String> {
        self.build_id.clone()
    }

    /// What was found beside the file, and why what was found was not used.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The function that holds an address. For a return address ask for the byte before it.
    #[must_use]
    pub fn function(&self, svma: u64) -> Option<Function<'_>> {
        let found = self.named(svma)?;
        let names = self.demangled.names(&found.linkage_name);
        Some(Function {
            name: names.name,
            full_name: names.full_name,
            linkage_name: found.linkage_name,
            offset: svma - found.start,
            start: found.start,
            size: found.size,
            source: found.source,
        })
    }

    /// The addresses from this one on to which [`function`](Self::function) gives the same function; none where it cannot be told
    /// without looking at each.
    #[must_use]
    pub fn named_alike(&self, svma: u64) -> Option<Range<u64>> {
        let placed = self.placed(svma)?;
        (placed.source != SymbolSource::FrameBounds).then_some(svma..placed.holds_until)
    }

    /// The name of the function at an address as the linker knows it: what [`function`](Self::function) makes legible, which takes longer.
    #[must_use]
    pub fn linkage_name(&self, svma: u64) -> Option<Cow<'_, str>> {
        Some(self.named(svma)?.linkage_name)
    }

    /// What the indexes say, and where they name nothing the debug information.
    fn named(&self, svma: u64) -> Option<Placed<'_>> {
        let mut found = self.placed(svma)?;
        if found.source == SymbolSource::FrameBounds
            && let Some(linkage_name) = self.dwarf.frames(svma).pop().and_then(|frame| frame.linkage_name)
        {
            found.linkage_name = Cow::Owned(linkage_name);
            found.source = SymbolSource::Dwarf;
        }
        Some(found)
    }

    /// What the indexes say.
    fn placed(&self, svma: u64) -> Option<Placed<'_>> {
        let behind = self.stubs.partition_point(|stub| stub.start <= svma);
        let next_stub = self.stubs.get(behind).map_or(u64::MAX, |stub| stub.start);
        let before = behind.checked_sub(1);
        if let Some(stub) = before.and_then(|index| self.stubs.get(index))
            && svma - stub.start < stub.size
        {
            return Some(Placed {
                linkage_name: Cow::Borrowed(&stub.name),
                start: stub.start,
                size: stub.size,
                source: SymbolSource::Dynsym,
                // Nothing keeps the sections of stubs from lying over each other: the last one that begins before an address names it.
                holds_until: stub.start.saturating_add(stub.size).min(next_stub),
            });
        }
        let region = self.code.region(svma)?;
        if let Some(named) = self.functions.find(svma, &region.range) {
            return Some(Placed {
                linkage_name: Cow::Borrowed(named.name),
                start: named.start,
                size: named.size,
                source: named.source,
                holds_until: named.holds_until.min(region.range.end).min(next_stub),
            });
        }
        let Range { start, end } = region.range;
        // The entry of the code that signal handlers return to starts one byte before its symbol, because unwinders
        // look up the byte before a return address.
        if region.is_function
            && svma == start
            && let Some(next) = self.functions.find(svma + 1, &region.range)
        {
            return Some(Placed {
                linkage_name: Cow::Borrowed(next.name),
                start,
                size: next.size.saturating_add(1),
                source: next.source,
                holds_until: svma + 1,
            });
        }
        region.is_function.then(|| Placed {
            linkage_name: Cow::Owned(format!("{}!fun_{start:x}", self.name)),
            start,
            size: end - start,
            source: SymbolSource::FrameBounds,
            holds_until: end.min(self.functions.next_start(svma)).min(next_stub),
        })
    }

    /// The functions at an address as their programmer sees them, innermost first: those that the compiler put into
    /// others, and at last the one that the machine runs. Without DWARF that one alone. Never empty.
    ///
    /// For a return address ask for the byte before it.
    #[must_use]
    pub fn frames(&self, svma: u64) -> Vec<SourceFrame> {
        let placed = self.placed(svma);
        let outer = placed
            .as_ref()
            .filter(|placed| placed.source != SymbolSource::FrameBounds)
            .map(|placed| &placed.linkage_name);
        let placeholder = || match &placed {
            Some(placed) => placed.linkage_name.clone().into_owned(),
            None => format!("{}+{svma:#x}", self.name),
        };
        let mut frames = self.dwarf.frames(svma);
        if frames.is_empty() {
            frames.push(Frame {
                linkage_name: None,
                file: None,
                line: None,
            });
        }
        let last = frames.len() - 1;
        let frames = frames.into_iter().enumerate().map(|(index, frame)| {
            let inlined = index < last;
            let linkage_name = match (outer, frame.linkage_name) {
                // The symbol says more than DWARF does: `.cold`, and names of assembler.
                (Some(outer), _) if !inlined => outer.clone().into_owned(),
                (_, Some(name)) => name,
                _ => placeholder(),
            };
            let names = self.demangled.names(&linkage_name);
            SourceFrame {
                name: names.name,
                full_name: names.full_name,
                linkage_name,
                file: frame.file,
                line: frame.line,
                inlined,
            }
        });
        frames.collect()
    }

    /// The functions that call frame information knows and whose names hold this text, by address; all of them for an empty
    /// one.
    #[must_use]
    pub fn functions_with(&self, text: &str) -> Vec<Function<'_>> {
        // Demangling is slow: names whose mangled form lacks the longest word of the text are left out first.
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c: char| !is_word(c));
        let word = words.max_by_key(|word| word.len()).unwrap_or_default();
        let ranges = self.code.functions().iter();
        ranges
            .filter(|range| {
                let placed = self.placed(range.start);
                // The name may be the debug information's then.
                placed.is_some_and(|placed| {
                    placed.source == SymbolSource::FrameBounds || placed.linkage_name.contains(word)
                })
            })
            .filter_map(|range| self.function(range.start))
            .filter(|function| function.name.contains(text) || function.full_name.contains(text))
            .collect()
    }

    /// The variable that holds an address.
    #[must_use]
    pub fn variable(&self, svma: u64) -> Option<Variable<'_>> {
        let section = self.data.iter().find(|section| section.contains(&svma))?;
        let found = self.variables.find(svma, section)?;
        let names = self.demangled.names(found.name);
        Some(Variable {
            name: names.name,
            full_name: names.full_name,
            linkage_name: found.name,
            offset: svma - found.start,
            start: found.start,
            size: found.size,
            source: found.source,
        })
    }

    /// All variables, constants included and thread-local ones left out, by address: one for each address.
    pub fn data_symbols(&self) -> impl Iterator<Item = DataSymbol<'_>> {
        self.variables.all()
    }

    /// The file that holds the debug information: the file itself or another one; none where there is none.
    #[must_use]
    pub fn debug_file(&self) -> Option<&Path> {
        self.dwarf.path()
    }

    /// Its functions, and parts of such, by address and without overlaps, as call frame information has them.
    #[must_use]
    pub fn function_ranges(&self) -> &[Range<u64>] {
        self.code.functions()
    }

    /// How much of the code has names.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        let mut bytes = 0_u64;
        let mut by_source = [0_u64; 5];
        for range in self.code.functions() {
            bytes += range.end - range.start;
            let mut svma = range.start;
            while svma < range.end {
                let Some(placed) = self.placed(svma) else { break };
                let end = placed.holds_until.clamp(svma + 1, range.end);
                if let Some(count) = by_source.get_mut(placed.source as usize) {
                    *count += end - svma;
                }
                svma = end;
            }
        }
        let share = |source: SymbolSource| match by_source.get(source as usize) {
            Some(count) if bytes > 0 => *count as f64 / bytes as f64,
            _ => 0.0,
        };
        Coverage {
            bytes,
            symtab: share(SymbolSource::Symtab),
            symbol_list: share(SymbolSource::SymbolList),
            dynsym: share(SymbolSource::Dynsym),
            function_bounds: share(SymbolSource::FrameBounds),
        }
    }
}

/// A name without parameter types and long template arguments.
pub(crate) fn short_name(linkage_name: &str) -> String {
    demangle(linkage_name).name
}

/// What the indexes say of an address.
struct Placed<'file> {
    linkage_name: Cow<'file, str>,
    start: u64,
    size: u64,
    source: SymbolSource,
    /// Up to here the answer is the same.
    holds_until: u64,
}

/// Demangled names: a profile asks for the same functions again and again, and long C++ names take 0.1 ms.
#[derive(Default)]
struct DemangledNames(Mutex<HashMap<String, Demangled>>);

impl DemangledNames {
    fn names(&self, linkage_name: &str) -> Demangled {
        // A thread that panicked meanwhile has left nothing half done: every entry is whole.
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = known().get(linkage_name) {
            return names.clone();
        }
        // Others need not wait for it.
        let names = demangle(linkage_name);
        known().insert(linkage_name.to_owned(), names.clone());
        names
    }
}

#[cfg(test)]
mod tests;
