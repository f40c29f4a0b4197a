//! The files of code that recordings name, for as long as they are here.

use crate::code_source::{CodeFile, CodeSource, KeepShared};
use crate::shared_data::SharedData;
use scaleprof_analysis::cache_lines::Kept;
use scaleprof_binary::data_layout::USUAL_DEBUG_BYTES;
use scaleprof_binary::disassembly::{Disassembler, FunctionListing};
use scaleprof_binary::mapped_file::{MappedFile, mapped};
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};
use scaleprof_bundle::in_parallel;
use scaleprof_profile::import::{Leftovers, RecordedFile};
use std::cmp::Reverse;
use std::sync::{Mutex, PoisonError};

/// Files that are read at once: each is on all CPUs, but for parts that one of them does alone.
const FILES_AT_ONCE: usize = 2;

/// Files that are kept for the next question: those in which a program is mostly. While others are read it may be twice as many.
const MOST_KEPT: usize = 4;

/// The files of all recordings of an import.
#[derive(Default)]
pub(super) struct ImportedCode {
    pub(super) files: Vec<RecordedFile>,
    search: SymbolSearch,
    /// The largest of those that were read, which take longest: of others there may be many.
    kept: Vec<ReadFile>,
    /// What was made of them.
    leftovers: Leftovers,
}

/// A file with what is asked of it more than once.
struct ReadFile {
    file: RecordedFile,
    bytes: MappedFile,
    symbols: SymbolFile,
    waiting: SpinLoops,
}

impl ImportedCode {
    /// No file yet.
    pub(super) fn new(search: SymbolSearch) -> ImportedCode {
        ImportedCode {
            search,
            ..ImportedCode::default()
        }
    }

    /// What reading them needed.
    pub(super) fn into_leftovers(self) -> Leftovers {
        let mut leftovers = self.leftovers;
        leftovers.keep(self.kept);
        leftovers
    }

    /// What `take` makes of each of these files.
    fn with_each<T: Send>(
        &mut self,
        files: &[CodeFile<'_>],
        take: impl Fn(usize, &ReadFile) -> Result<T, String> + Sync,
    ) -> Vec<Result<T, String>> {
        let found = files.iter().map(|file| self.find(*file));
        let found: Vec<(usize, Result<&RecordedFile, String>)> = found.enumerate().collect();
        let largest = Mutex::new(Vec::new());
        let each = |(number, file): (usize, Result<&RecordedFile, String>)| {
            let file = file?;
            if let Some(read) = self.kept.iter().find(|read| read.is_of(file)) {
                return take(number, read);
            }
            let read = ReadFile::of(file, &self.search)?;
            let taken = take(number, &read);
            let smallest = keep_largest(&mut largest.lock().unwrap_or_else(PoisonError::into_inner), read);
            drop(smallest);
            taken
        };
        let mut taken = Vec::with_capacity(files.len());
        let mut found = found.into_iter();
        loop {
            let two: Vec<_> = found.by_ref().take(FILES_AT_ONCE).collect();
            if two.is_empty() {
                break;
            }
            taken.extend(in_parallel(two, each));
        }
        for read in largest.into_inner().unwrap_or_else(PoisonError::into_inner) {
            drop(keep_largest(&mut self.kept, read));
        }
        taken
    }

    fn find(&self, (module, build_id): CodeFile<'_>) -> Result<&RecordedFile, String> {
        let is_it = |file: &&RecordedFile| file.module == module && file.build_id.as_deref() == build_id;
        self.files.iter().find(is_it).ok_or_else(|| match module {
            scaleprof_bundle::UNKNOWN => "what was imported does not tell which files its code is in".to_owned(),
            module if build_id.is_none() => {
                format!("the recording has no build-id of {module}, so no file can be matched; annotate takes --binary")
            }
            module => format!("{module} is not on this machine"),
        })
    }
}

/// Adds a file. Gives the smallest if there are too many now: letting go of one takes long.
fn keep_largest(kept: &mut Vec<ReadFile>, read: ReadFile) -> Option<ReadFile> {
    kept.push(read);
    kept.sort_by_key(|read| Reverse(read.bytes.len()));
    if kept.len() > MOST_KEPT { kept.pop() } else { None }
}

impl ReadFile {
    fn of(file: &RecordedFile, search: &SymbolSearch) -> Result<ReadFile, String> {
        let module = &file.module;
        let bytes = mapped(&file.place).map_err(|error| format!("{module} cannot be read: {error}"))?;
        let symbols = SymbolFile::open_called(&file.place, &file.own, search).map_err(|error| error.to_string())?;
        let waiting = SpinLoops::of(module, &bytes, symbols.function_ranges()).unwrap_or_default();
        Ok(ReadFile {
            file: file.clone(),
            bytes,
            symbols,
            waiting,
        })
    }

    fn is_of(&self, file: &RecordedFile) -> bool {
        (&self.file.place, &self.file.own) == (&file.place, &file.own)
    }
}

impl CodeSource for ImportedCode {
    fn disassemble(&mut self, files: &[(CodeFile<'_>, Vec<u64>)]) -> Vec<Result<Vec<FunctionListing>, String>> {
        let names: Vec<CodeFile<'_>> = files.iter().map(|(file, _)| *file).collect();
        self.with_each(&names, |number, read| {
            let addresses = files.get(number).map(|(_, addresses)| &addresses[..]);
            let disassembler = Disassembler::of(&read.bytes, &read.symbols, &read.waiting);
            let disassembler = disassembler.map_err(|error| error.to_string())?;
            match disassembler.knows_architecture() {
                true => Ok(disassembler.functions(addresses.unwrap_or_default())),
                false => Err(format!("{} is for an architecture that is not known", read.file.module)),
            }
        })
    }

    fn shared_data(&mut self, files: &[CodeFile<'_>], keep: &KeepShared<'_>) -> Vec<Result<Kept, String>> {
        // Where all are read at once no other file needs the room. For a summary from the disk they go before.
        let is_kept = files.len() <= FILES_AT_ONCE;
        let leftovers = Mutex::new(Leftovers::default());
        let kept = self.with_each(files, |number, read| {
            let data = SharedData::of(&read.symbols, &read.bytes, &read.waiting, USUAL_DEBUG_BYTES);
            let data = data.map_err(|error| error.to_string())?;
            let kept = files.get(number).map(|file| keep(*file, &data)).unwrap_or_default();
            if is_kept {
                leftovers.lock().unwrap_or_else(PoisonError::into_inner).keep(data);
            }
            Ok(kept)
        });
        self.leftovers = leftovers.into_inner().unwrap_or_else(PoisonError::into_inner);
        kept
    }
}
