//! The names of the running kernel's functions, from `/proc/kallsyms`.

mod begins;
mod in_order;
mod list_line;

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::mapped_file::{Bytes as _, MappedFile, mapped};
use begins::Begins;
use in_order::{InOrder, UPPER_HALF};
use list_line::{Line, Lines, length_of_name};

/// No variable of the kernel that holds a lock is larger; memory that it allocates lies further behind any symbol.
const LARGEST_VARIABLE: u64 = 1 << 16;
/// Longest function taken for granted behind the last symbol, which nothing else bounds.
const LAST_LENGTH: u64 = 1 << 16;

/// The functions of a kernel and its modules, by address.
#[derive(Debug, Clone, Default)]
pub struct KernelSymbols {
    /// Nearly all, if the list is by address; those that are no functions only end the ones before.
    in_order: InOrder,
    /// All others, by address.
    symbols: Vec<Symbol>,
    begins: Begins,
    /// All that was read: names are parts of it.
    text: Text,
    modules: Vec<String>,
}

/// The text of a list.
#[derive(Debug, Clone, Default)]
enum Text {
    #[default]
    Nothing,
    /// The kernel makes its own list for whoever reads it.
    Read(Arc<Vec<u8>>),
    /// One that perf kept.
    Mapped(Arc<MappedFile>),
}

impl Text {
    fn bytes(&self) -> &[u8] {
        match self {
            Text::Nothing => &[],
            Text::Read(bytes) => bytes,
            Text::Mapped(file) => file,
        }
    }
}

/// What a line says.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    /// Where its name begins.
    name: u32,
    /// Index into the modules, or [`NO_MODULE`].
    module: u16,
    /// The letter that stands for what it is.
    kind: u8,
    /// Whether it has a name, or only ends what is before it.
    is_named: bool,
}

const NO_MODULE: u16 = u16::MAX;

impl Symbol {
    /// None where the list is too long for its name's place.
    fn of(line: &Line<'_>, text: &[u8], module: u16) -> Option<Symbol> {
        let name = &text[line.name.clone()];
        Some(Symbol {
            address: line.address,
            name: u32::try_from(line.name.start).ok()?,
            module,
            kind: line.kind,
            is_named: name[0].is_ascii() || std::str::from_utf8(name).is_ok(),
        })
    }

    fn is_function(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }
}

/// Why the kernel's functions cannot be named.
#[derive(Debug, Error)]
pub enum KernelSymbolsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}\nfix: mount /proc")]
    Read {
        /// Which file.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// The kernel hides its addresses from this user.
    #[error(
        "the kernel hides its addresses (/proc/kallsyms has only 0): `sudo sysctl -w kernel.kptr_restrict=0`, or run \
         with CAP_SYSLOG"
    )]
    Hidden,
    /// No line is of the form that the kernel writes.
    #[error("/proc/kallsyms holds no symbols: the kernel was built without CONFIG_KALLSYMS")]
    Empty,
}

impl KernelSymbols {
    /// Reads the running kernel's.
    pub fn of_this_kernel() -> Result<KernelSymbols, KernelSymbolsError> {
        Self::of_file(Path::new("/proc/kallsyms"))
    }

    /// Reads a kernel's from a file like `/proc/kallsyms`.
    pub fn of_file(path: &Path) -> Result<KernelSymbols, KernelSymbolsError> {
        let read = || match std::fs::metadata(path)?.len() {
            0 => std::fs::read(path).map(|text| Text::Read(Arc::new(text))),
            _ => mapped(path).map(|file| Text::Mapped(Arc::new(file))),
        };
        let text = read().map_err(|error| KernelSymbolsError::Read {
            path: path.display().to_string(),
            error,
        })?;
        Self::of_list(text)
    }

    /// Reads the text of `/proc/kallsyms`: lines of address, type, name and, for modules, `[module]`. Names are bytes, as a module may
    /// have any: of one that is no UTF-8 the part before that is taken, and one that begins so is none.
    pub fn from_text(kallsyms: impl Into<Vec<u8>>) -> Result<KernelSymbols, KernelSymbolsError> {
        Self::of_list(Text::Read(Arc::new(kallsyms.into())))
    }

    fn of_list(text: Text) -> Result<KernelSymbols, KernelSymbolsError> {
        let mut table = KernelSymbols::default();
        table.read(text.bytes());
        if let Text::Mapped(file) = &text {
            // Only a few hundred names will be asked for.
            file.let_go(file);
        }
        table.text = text;
        if table.symbols.is_empty() && table.in_order.is_empty() {
            return Err(KernelSymbolsError::Empty);
        }
        if table.last() == 0 {
            return Err(KernelSymbolsError::Hidden);
        }
        table.keep_one_of_each_address();
        Ok(table)
    }

    fn read(&mut self, text: &[u8]) {
        self.in_order = InOrder::of(text);
        self.begins = Begins::of(text.get(..self.in_order.end()).unwrap_or(text));
        for line in Lines::from(text, self.in_order.end()) {
            self.begins.note(text, &line);
            let module = line.module.map_or(NO_MODULE, |module| self.module(module));
            let symbol = Symbol::of(&line, text, module);
            self.symbols.extend(symbol);
        }
    }

    /// The highest address of all.
    fn last(&self) -> u64 {
        let of_others = self.symbols.iter().map(|symbol| symbol.address);
        of_others.chain(self.in_order.last()).max().unwrap_or(0)
    }

    /// Sorts those that are not in order, and leaves of several with one address the preferred one.
    fn keep_one_of_each_address(&mut self) {
        let mut symbols = std::mem::take(&mut self.symbols);
        symbols.sort_by_key(|symbol| symbol.address);
        symbols.dedup_by(|other, kept| {
            if other.address != kept.address {
                return false;
            }
            if self.preference(other) < self.preference(kept) {
                *kept = *other;
            }
            true
        });
        self.symbols = symbols;
    }

    fn name(&self, symbol: &Symbol) -> &str {
        let rest = self.text.bytes().get(symbol.name as usize..).unwrap_or_default();
        let mut parts = rest[..length_of_name(rest)].utf8_chunks();
        let first = parts.next().filter(|_| symbol.is_named);
        first.map_or("", |first| first.valid())
    }

    /// Of several names of one address the one that perf shows: a function's, and of these the last in the list
    /// (`symbols__fixup_end` and `choose_best_symbol` of tools/perf/util/symbol.c leave a length to no other; tried with perf 6.1). A mark
    /// of the linker script that a function stands behind names none: `__schedule` of Linux 5.15 is not `__sched_text_start`.
    fn preference(&self, symbol: &Symbol) -> (Reverse<bool>, bool, Reverse<u32>) {
        let is_named_function = symbol.is_function() && symbol.is_named;
        (
            Reverse(is_named_function),
            is_section_mark(self.name(symbol)),
            Reverse(symbol.name),
        )
    }

    /// The same kernel after another start, when its own code and data lay `by` further up. Of its symbols only addresses of the upper
    /// half move: below it are offsets into the memory of each CPU. Modules are loaded anew at every start: only those are kept of
    /// which it is said that they began where they begin here.
    #[must_use]
    pub fn after_another_start(mut self, by: u64, begins_there: impl Fn(&str, u64) -> bool) -> KernelSymbols {
        self.in_order.move_up(by);
        let mut begins: Vec<Option<u64>> = vec![None; self.modules.len()];
        for symbol in &self.symbols {
            if let Some(begin) = begins.get_mut(usize::from(symbol.module)) {
                // They are by address.
                begin.get_or_insert(symbol.address);
            }
        }
        let modules = self.modules.iter().zip(begins);
        let stay: Vec<bool> = modules
            .map(|(name, begin)| begin.is_some_and(|begin| begins_there(name, begin)))
            .collect();
        for symbol in &mut self.symbols {
            match stay.get(usize::from(symbol.module)) {
                None if symbol.address >= UPPER_HALF => symbol.address = symbol.address.wrapping_add(by),
                Some(false) => symbol.is_named = false,
                _ => {}
            }
        }
        self.begins.move_up(by);
        self.symbols.sort_by_key(|symbol| symbol.address);
        self
    }

    fn module(&mut self, name: &[u8]) -> u16 {
        let known = self.modules.iter().rposition(|module| module.as_bytes() == name);
        if known.is_none() && self.modules.len() >= usize::from(NO_MODULE) {
            return NO_MODULE;
        }
        let index = known.unwrap_or_else(|| {
            self.modules.push(String::from_utf8_lossy(name).into_owned());
            self.modules.len() - 1
        });
        u16::try_from(index).unwrap_or(NO_MODULE)
    }

    /// The function that holds an address: its name, how far behind its start the address is, and the module.
    ///
    /// A function ends where the next symbol starts, whatever that is.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(&str, u64, Option<&str>)> {
        self.symbol(address, true)
    }

    /// The variable that holds an address, as [`function`](Self::function) gives functions. What the kernel allocates has
    /// none.
    #[must_use]
    pub fn variable(&self, address: u64) -> Option<(&str, u64, Option<&str>)> {
        self.symbol(address, false)
            .filter(|(_, offset, _)| *offset < LARGEST_VARIABLE)
    }

    /// Where the kernel begins: the address of `_text` or of `_stext`.
    #[must_use]
    pub fn begin(&self, name: &str) -> Option<u64> {
        self.begins.get(name)
    }

    /// Whether perf would say that the kernel ends at this address, if it lies as the list has it: at `_edata`, or where that is not listed at
    /// `_etext` (machine__get_running_kernel_start of tools/perf/util/machine.c; perf 6.1 takes the latter always).
    #[must_use]
    pub fn ends_at(&self, address: u64) -> bool {
        ["_edata", "_etext"]
            .iter()
            .any(|name| begins::address_of(name, self.text.bytes()) == Some(address))
    }

    fn symbol(&self, address: u64, function: bool) -> Option<(&str, u64, Option<&str>)> {
        let symbol = self.holding(address)?;
        let offset = address - symbol.address;
        let is_last = symbol.address == self.last_of_others().max(self.in_order.last().unwrap_or(0));
        if symbol.is_function() != function || !symbol.is_named || (is_last && offset >= LAST_LENGTH) {
            return None;
        }
        let module = self.modules.get(usize::from(symbol.module));
        Some((self.name(&symbol), offset, module.map(String::as_str)))
    }

    /// The symbol of the highest address up to this one, of several the preferred one.
    fn holding(&self, address: u64) -> Option<Symbol> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let other = behind.checked_sub(1).and_then(|index| self.symbols.get(index)).copied();
        let text = self.text.bytes();
        let in_order = self.in_order.at(text, address);
        let in_order = in_order.iter().filter_map(|line| Symbol::of(line, text, NO_MODULE));
        in_order.chain(other).min_by(|a, b| {
            b.address
                .cmp(&a.address)
                .then_with(|| self.preference(a).cmp(&self.preference(b)))
        })
    }

    fn last_of_others(&self) -> u64 {
        self.symbols.last().map_or(0, |symbol| symbol.address)
    }

    /// How many functions have names.
    #[cfg(test)]
    fn functions(&self) -> usize {
        let mut addresses: Vec<u64> = self.in_order.all(self.text.bytes()).map(|line| line.address).collect();
        addresses.extend(self.symbols.iter().map(|symbol| symbol.address));
        addresses.sort_unstable();
        addresses.dedup();
        let found = addresses.into_iter().filter_map(|address| self.holding(address));
        found.filter(|symbol| symbol.is_function() && symbol.is_named).count()
    }
}

/// Whether a name is a place between sections of code and no function (include/asm-generic/vmlinux.lds.h).
fn is_section_mark(name: &str) -> bool {
    matches!(name, "_text" | "_stext" | "_etext" | "_sinittext" | "_einittext")
        || (name.starts_with("__") && (name.ends_with("_text_start") || name.ends_with("_text_end")))
}

#[cfg(test)]
mod tests;
