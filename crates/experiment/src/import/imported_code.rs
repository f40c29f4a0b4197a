//! The files of code that recordings name, for as long as they are here.

use crate::code_source::CodeSource;
use crate::shared_data::SharedData;
use scaleprof_binary::data_layout::USUAL_DEBUG_BYTES;
use scaleprof_binary::disassembly::{Disassembler, FunctionListing};
use scaleprof_binary::mapped_file::{MappedFile, mapped};
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};
use scaleprof_profile::import::RecordedFile;

/// The files of all recordings of an import.
#[derive(Default)]
pub(super) struct ImportedCode {
    pub(super) files: Vec<RecordedFile>,
    search: SymbolSearch,
    /// The largest of those that were read, which takes longest: of others there may be many.
    largest: Option<(RecordedFile, ReadFile)>,
}

/// A file with what is asked of it more than once.
struct ReadFile {
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

    fn with<T>(
        &mut self,
        module: &str,
        build_id: Option<&str>,
        take: impl FnOnce(&[u8], &SymbolFile, &SpinLoops) -> Result<T, String>,
    ) -> Result<T, String> {
        let is_it = |file: &&RecordedFile| file.module == module && file.build_id.as_deref() == build_id;
        let file = self.files.iter().find(is_it).ok_or_else(|| match module {
            scaleprof_bundle::UNKNOWN => "what was imported does not tell which files its code is in".to_owned(),
            module => format!("{module} is not on this machine"),
        })?;
        if let Some((largest, read)) = &self.largest
            && (&largest.place, &largest.own) == (&file.place, &file.own)
        {
            return take(&read.bytes, &read.symbols, &read.waiting);
        }
        let read = ReadFile::of(file, &self.search)?;
        let taken = take(&read.bytes, &read.symbols, &read.waiting);
        let before = self.largest.as_ref().map_or(0, |(_, largest)| largest.bytes.len());
        if read.bytes.len() > before {
            self.largest = Some((file.clone(), read));
        }
        taken
    }
}

impl ReadFile {
    fn of(file: &RecordedFile, search: &SymbolSearch) -> Result<ReadFile, String> {
        let module = &file.module;
        let bytes = mapped(&file.place).map_err(|error| format!("{module} cannot be read: {error}"))?;
        let symbols = SymbolFile::open_called(&file.place, &file.own, search).map_err(|error| error.to_string())?;
        let waiting = SpinLoops::of(module, &bytes, symbols.function_ranges()).unwrap_or_default();
        Ok(ReadFile {
            bytes,
            symbols,
            waiting,
        })
    }
}

impl CodeSource for ImportedCode {
    fn disassemble(
        &mut self,
        module: &str,
        build_id: Option<&str>,
        addresses: &[u64],
    ) -> Result<Vec<FunctionListing>, String> {
        self.with(module, build_id, |bytes, symbols, waiting| {
            let disassembler = Disassembler::of(bytes, symbols, waiting).map_err(|error| error.to_string())?;
            match disassembler.knows_architecture() {
                true => Ok(disassembler.functions(addresses)),
                false => Err(format!("{module} is for an architecture that is not known")),
            }
        })
    }

    fn shared_data(&mut self, module: &str, build_id: Option<&str>) -> Result<SharedData, String> {
        self.with(module, build_id, |bytes, symbols, waiting| {
            SharedData::of(symbols, bytes, waiting, USUAL_DEBUG_BYTES).map_err(|error| error.to_string())
        })
    }
}
