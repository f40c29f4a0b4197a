//! Names for the addresses of a watched process and of the kernel.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scaleprof_binary::disassembly::{Disassembler, FunctionListing};
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::perf_map::PerfMap;
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};
use scaleprof_profile::names::{FileNames, kernel_frame, kernel_variable, of_own_making, unnamed};
use scaleprof_profile::{Frame, Namer, RawStack, Variable};

use super::code::{CodeFile, CodeMap, CodePlace};
use super::debuginfod;
use super::mapped_file::Identity;

/// Gives names to the addresses of one process. A file's symbols are read when the first address in it is asked for.
pub struct ProcessNames {
    search: SymbolSearch,
    files: Vec<CodeFile>,
    places: Vec<CodePlace>,
    former: Vec<CodePlace>,
    own_making: Arc<PerfMap>,
    /// Whether a name of code in anonymous memory was asked for and not known: some lies there in most processes.
    own_making_is_unnamed: bool,
    /// A server that is started again has the same files; one that was replaced meanwhile has another identity.
    symbols: HashMap<(PathBuf, Identity), Option<FileNames>>,
    kernel: Result<KernelSymbols, String>,
    /// Whether a name of the kernel was asked for and not known.
    kernel_is_unnamed: bool,
    ask_debuginfod: bool,
}

/// How the functions are called through which a tracepoint reaches a BPF program (kernel/trace/bpf_trace.c).
const WAY_TO_PROBE: [&str; 5] = [
    "bpf_prog_",
    "bpf_trace_run",
    "__bpf_trace_",
    "__traceiter_",
    "bpf_trampoline_",
];

/// Where to look for names that a file does not hold itself: the distributions' places, and the lists of symbols that
/// scripts/fetch-symbols keeps.
pub fn symbol_search() -> SymbolSearch {
    let mut search = SymbolSearch::default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let of_user = [cache, home].into_iter().flatten();
    let folders = of_user.map(|cache| cache.join("scaleprof/symbols"));
    search.document_folders.extend(folders);
    search.document_folders.push("/var/cache/scaleprof/symbols".into());
    search.debuginfod_caches = debuginfod::caches();
    search
}

impl std::fmt::Debug for ProcessNames {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known: Vec<&PathBuf> = self.symbols.keys().map(|(name, _)| name).collect();
        formatter
            .debug_struct("ProcessNames")
            .field("known", &known)
            .finish_non_exhaustive()
    }
}

impl ProcessNames {
    /// Knows no code yet.
    pub fn new(search: SymbolSearch) -> Self {
        Self {
            search,
            files: Vec::new(),
            places: Vec::new(),
            former: Vec::new(),
            own_making: Arc::default(),
            own_making_is_unnamed: false,
            symbols: HashMap::new(),
            kernel: KernelSymbols::of_this_kernel().map_err(|error| error.to_string()),
            kernel_is_unnamed: false,
            ask_debuginfod: false,
        }
    }

    /// Fetches, from now on, the debug files that nothing here knows; each file of the process may take minutes once.
    #[must_use]
    pub fn asking_debuginfod(self, ask: bool) -> Self {
        Self {
            ask_debuginfod: ask,
            ..self
        }
    }

    /// Follows the process: code that is mapped now. True where something lies elsewhere than before, so that addresses that
    /// were looked up already may mean something else.
    pub fn follow(&mut self, map: CodeMap) -> bool {
        let moved = self.places != map.places;
        self.files = map.files;
        self.places = map.places;
        self.former = map.former;
        let renamed = !Arc::ptr_eq(&self.own_making, &map.own_making);
        self.own_making = map.own_making;
        moved || renamed
    }

    /// Reads the symbols of all files while the process lives: afterwards its files may be out of reach.
    pub fn read_all(&mut self) {
        for file in 0..self.files.len() {
            let code = self.files.get(file).cloned();
            if let Some((code, symbols)) = code.zip(self.symbols_of(file)) {
                symbols.read_members(|| bytes_of(&code).ok());
            }
        }
    }

    /// Takes our own BPF programs, and the kernel's way to them, from the inner end of a stack: they were called there only
    /// because somebody watches.
    pub fn without_probe(&self, stack: &mut RawStack) {
        let Ok(kernel) = &self.kernel else {
            // Without names its frames are all alike, and say together what one does: that the thread is in the kernel.
            stack.kernel.truncate(1);
            return;
        };
        let ours = |address: &u64| {
            let name = kernel.function(*address).map(|(name, ..)| name);
            name.is_some_and(|name| WAY_TO_PROBE.iter().any(|begin| name.starts_with(begin)))
        };
        let first = stack.kernel.iter().position(|address| !ours(address));
        stack.kernel.drain(..first.unwrap_or(0));
    }

    /// Loops that wait for another thread, in all files whose symbols were read so far.
    pub fn spin_loops(&self) -> usize {
        let files = self.symbols.values().flatten();
        files.map(|symbols| symbols.waiting.loops().len()).sum()
    }

    /// Files through which stacks cannot be walked, by name, with the reason.
    pub fn problems(&self) -> impl Iterator<Item = (String, &str)> {
        let told = |code: &&CodeFile| self.own_making_is_unnamed || !code.is_of_own_making();
        let files = self.files.iter().filter(told);
        files.filter_map(|code| Some((file_name(&code.name), code.problem.as_deref()?)))
    }

    /// Why the kernel's functions have no names, where some were asked for.
    pub fn kernel_problem(&self) -> Option<&str> {
        let why = self.kernel.as_ref().err().filter(|_| self.kernel_is_unnamed);
        why.map(String::as_str)
    }

    /// The functions of a file of the process that hold these addresses (the file's own), taken apart, each once. `module` and
    /// `build_id` as its frames have them.
    ///
    /// # Errors
    /// The file cannot be read any more, or is for an architecture that is not known; in words.
    pub fn disassemble(
        &mut self,
        module: &str,
        build_id: Option<&str>,
        addresses: &[u64],
    ) -> Result<Vec<FunctionListing>, String> {
        self.with_code(module, build_id, |bytes, symbols, waiting| {
            let disassembler = Disassembler::of(bytes, symbols, waiting).map_err(|error| error.to_string())?;
            if !disassembler.knows_architecture() {
                return Err(format!("{module} is for an architecture that is not known"));
            }
            Ok(disassembler.functions(addresses))
        })
    }

    /// What `read` makes of a file of the process: of its bytes, its symbols and its waiting loops. `module` and `build_id` as
    /// its frames have them.
    ///
    /// # Errors
    /// The file cannot be read any more; in words. Those of `read`.
    pub fn with_code<T>(
        &mut self,
        module: &str,
        build_id: Option<&str>,
        read: impl FnOnce(&[u8], &SymbolFile, &SpinLoops) -> Result<T, String>,
    ) -> Result<T, String> {
        let of_module = |file: &usize| {
            self.files
                .get(*file)
                .is_some_and(|code| file_name(&code.name) == module)
        };
        let candidates: Vec<usize> = (0..self.files.len()).filter(of_module).collect();
        for file in candidates {
            let code = self.files.get(file).cloned();
            let Some((code, symbols)) = code.zip(self.symbols_of(file)) else {
                continue;
            };
            if symbols.build_id.as_deref() != build_id {
                continue;
            }
            let bytes = bytes_of(&code).map_err(|error| format!("{module} cannot be read: {error}"))?;
            return read(&bytes, &symbols.file, &symbols.waiting);
        }
        Err(format!("{module} is not mapped any more"))
    }

    fn place(&self, address: u64) -> Option<&CodePlace> {
        let after = self.places.partition_point(|place| place.start <= address);
        let now = after.checked_sub(1).and_then(|before| self.places.get(before));
        let mut former = self.former.iter().rev();
        now.filter(|place| address < place.end)
            .or_else(|| former.find(|place| (place.start..place.end).contains(&address)))
    }

    fn symbols_of(&mut self, file: usize) -> Option<&FileNames> {
        let code = self.files.get(file)?;
        let key = (code.name.clone(), code.identity.clone());
        if !self.symbols.contains_key(&key) {
            let mut symbols = read(code, &self.search);
            let lacking = |symbols: &&FileNames| self.ask_debuginfod && symbols.file.coverage().symtab < 0.5;
            let build_id = symbols
                .as_ref()
                .filter(lacking)
                .and_then(|symbols| symbols.build_id.as_deref());
            if let Some(build_id) = build_id
                && debuginfod::fetch(build_id).is_ok()
            {
                symbols = read(code, &self.search);
            }
            self.symbols.insert(key.clone(), symbols);
        }
        self.symbols.get(&key)?.as_ref()
    }
}

impl Namer for ProcessNames {
    fn frames(&mut self, address: u64, kernel: bool) -> Vec<Frame> {
        if kernel {
            self.kernel_is_unnamed |= self.kernel.is_err();
            return vec![kernel_frame(self.kernel.as_ref().ok(), address)];
        }
        let Some(place) = self.place(address).cloned() else {
            return Vec::new();
        };
        let svma = address.wrapping_sub(place.bias);
        if self.files.get(place.file).is_some_and(CodeFile::is_of_own_making) {
            self.own_making_is_unnamed |= self.own_making.function(address).is_none();
            return vec![of_own_making(&self.own_making, address)];
        }
        let name = self.files.get(place.file).map(|file| file_name(&file.name));
        let Some(symbols) = self.symbols_of(place.file) else {
            return name.map(|name| unnamed(name, None, svma)).into_iter().collect();
        };
        symbols.frames(svma)
    }

    fn is_waiting_loop(&mut self, address: u64) -> bool {
        let Some(place) = self.place(address).cloned() else {
            return false;
        };
        let symbols = self.symbols_of(place.file);
        symbols.is_some_and(|symbols| symbols.waiting.contains(address.wrapping_sub(place.bias)))
    }

    fn variable(&mut self, address: u64) -> Option<Variable> {
        if address >= KERNEL_HALF {
            return kernel_variable(self.kernel.as_ref().ok()?, address);
        }
        // Data lies beside the code of its file, in mappings that hold no code: the nearest file before it whose data
        // segments reach so far.
        let candidates: Vec<(usize, u64)> = self
            .places
            .iter()
            .rev()
            .filter(|place| place.start <= address)
            .map(|place| (place.file, address.wrapping_sub(place.bias)))
            .take(2)
            .collect();
        candidates.into_iter().find_map(|(file, svma)| {
            let code = self.files.get(file)?.clone();
            let symbols = self.symbols_of(file)?;
            symbols.read_members(|| bytes_of(&code).ok());
            symbols.variable(svma)
        })
    }
}

/// Addresses from here on are the kernel's, on x86-64 and aarch64 alike.
const KERNEL_HALF: u64 = 1 << 63;

/// The bytes of a file of the process; by its name where the process has ended meanwhile, if that is the same file still.
fn bytes_of(code: &CodeFile) -> std::io::Result<Vec<u8>> {
    match &code.bytes {
        Some(bytes) => Ok(bytes.clone()),
        None => code.identity.read(&[&code.open_as, &code.look_beside, &code.name]),
    }
}

fn read(code: &CodeFile, search: &SymbolSearch) -> Option<FileNames> {
    let module = file_name(&code.name);
    let bytes = bytes_of(code).ok()?;
    let file = match &code.bytes {
        Some(_) => SymbolFile::from_bytes(&module, &bytes),
        None => SymbolFile::open_beside(&code.open_as, &code.look_beside, search),
    }
    .ok()?;
    let waiting = SpinLoops::of(&module, &bytes, file.function_ranges());
    Some(FileNames::new(module, file, waiting.unwrap_or_default()))
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
