//! The names of the running kernel's functions, from `/proc/kallsyms`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use thiserror::Error;

/// No variable of the kernel that holds a lock is larger; memory that it allocates lies further behind any symbol.
const LARGEST_VARIABLE: u64 = 1 << 16;
/// Longest function taken for granted behind the last symbol, which nothing else bounds.
const LAST_LENGTH: u64 = 1 << 16;

/// The functions of a kernel and its modules, by address.
#[derive(Debug, Clone, Default)]
pub struct KernelSymbols {
    /// All symbols by address; those that are no functions only end the ones before.
    symbols: Vec<Symbol>,
    /// Where `_text` and `_stext` are: others that lie there have the better names.
    begins: BTreeMap<&'static str, u64>,
    /// All that was read: names are parts of it.
    text: Vec<u8>,
    modules: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
struct Symbol {
    address: u64,
    name_start: u32,
    /// 0 where it only ends what is before it.
    name_length: u32,
    /// Index into the modules.
    module: Option<u16>,
    /// The letter that stands for what it is.
    kind: u8,
}

impl Symbol {
    fn is_function(&self) -> bool {
        matches!(self.kind, b't' | b'T' | b'w' | b'W')
    }
}

/// Why the kernel's functions cannot be named.
#[derive(Debug, Error)]
pub enum KernelSymbolsError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}. Is /proc mounted?")]
    Read {
        /// Which file.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// The kernel hides its addresses from this user.
    #[error(
        "the kernel hides its addresses (all of /proc/kallsyms are 0): run as root, or `sysctl -w kernel.kptr_restrict=0`"
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
        let text = std::fs::read(path).map_err(|error| KernelSymbolsError::Read {
            path: path.display().to_string(),
            error,
        })?;
        Self::from_text(text)
    }

    /// Reads the text of `/proc/kallsyms`: lines of address, type, name and, for modules, `[module]`. Names are bytes, as a module may
    /// have any: of one that is no UTF-8 the part before that is taken, and one that begins so is none.
    pub fn from_text(kallsyms: impl Into<Vec<u8>>) -> Result<KernelSymbols, KernelSymbolsError> {
        let mut table = KernelSymbols {
            text: kallsyms.into(),
            ..KernelSymbols::default()
        };
        table.read();
        if table.symbols.is_empty() {
            return Err(KernelSymbolsError::Empty);
        }
        if table.symbols.iter().all(|symbol| symbol.address == 0) {
            return Err(KernelSymbolsError::Hidden);
        }
        table.keep_one_of_each_address();
        Ok(table)
    }

    fn read(&mut self) {
        let text = std::mem::take(&mut self.text);
        // A line has 44 bytes on average.
        self.symbols.reserve(text.len() / 44);
        let mut line_start = 0;
        let line_ends = memchr::memchr_iter(b'\n', &text).chain([text.len()]);
        for line_end in line_ends {
            let line = text.get(line_start..line_end).unwrap_or_default();
            if let Some(line) = Line::parse(line)
                && let (Ok(name_start), Ok(name_length)) = (
                    u32::try_from(line_start + line.name.start),
                    u32::try_from(line.name.len()),
                )
            {
                let name = &text[line_start + line.name.start..line_start + line.name.end];
                let begin = match name {
                    b"_text" => Some("_text"),
                    b"_stext" => Some("_stext"),
                    _ => None,
                };
                if let Some(begin) = begin.filter(|_| line.module.is_none()) {
                    self.begins.entry(begin).or_insert(line.address);
                }
                let has_name = name[0].is_ascii() || std::str::from_utf8(name).is_ok();
                let symbol = Symbol {
                    address: line.address,
                    name_start,
                    name_length: if has_name { name_length } else { 0 },
                    module: line.module.and_then(|module| self.module(module)),
                    kind: line.kind,
                };
                self.symbols.push(symbol);
            }
            line_start = line_end + 1;
        }
        self.text = text;
    }

    /// Sorts the symbols, and leaves of several with one address the one that people use.
    fn keep_one_of_each_address(&mut self) {
        let mut symbols = std::mem::take(&mut self.symbols);
        // They come by address already, the kernel's and then each module's.
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
        let start = symbol.name_start as usize;
        let name = self.text.get(start..start + symbol.name_length as usize);
        let parts = name.map(<[u8]>::utf8_chunks);
        parts
            .and_then(|mut parts| parts.next())
            .map_or("", |first| first.valid())
    }

    /// Of several names of one address the one that people use: functions, then global ones, then plain names, then short ones.
    fn preference(&self, symbol: &Symbol) -> (Reverse<bool>, u8, usize, usize, &str) {
        let binding = match symbol.kind {
            b'T' => 0,
            b'W' | b'w' => 1,
            _ => 2,
        };
        let name = self.name(symbol);
        let underscores = name.len() - name.trim_start_matches('_').len();
        let is_named_function = symbol.is_function() && symbol.name_length > 0;
        (Reverse(is_named_function), binding, underscores, name.len(), name)
    }

    /// The same kernel after another start, when its own code and data lay `by` further up. Of its symbols only addresses of the upper
    /// half move: below it are offsets into the memory of each CPU. Modules are loaded anew at every start: only those are kept of
    /// which it is said that they began where they begin here.
    #[must_use]
    pub fn after_another_start(mut self, by: u64, begins_there: impl Fn(&str, u64) -> bool) -> KernelSymbols {
        const UPPER_HALF: u64 = 1 << 63;
        let mut begins: BTreeMap<u16, u64> = BTreeMap::new();
        for symbol in &self.symbols {
            if let Some(module) = symbol.module {
                // They are by address.
                begins.entry(module).or_insert(symbol.address);
            }
        }
        let stays = |module: u16| {
            let name = self.modules.get(usize::from(module));
            name.zip(begins.get(&module))
                .is_some_and(|(name, begin)| begins_there(name, *begin))
        };
        let stay: BTreeMap<u16, bool> = begins.keys().map(|module| (*module, stays(*module))).collect();
        for symbol in &mut self.symbols {
            match symbol.module {
                None if symbol.address >= UPPER_HALF => symbol.address = symbol.address.wrapping_add(by),
                Some(module) if stay.get(&module) != Some(&true) => symbol.name_length = 0,
                _ => {}
            }
        }
        for begin in self.begins.values_mut() {
            *begin = begin.wrapping_add(by);
        }
        self.symbols.sort_by_key(|symbol| symbol.address);
        self
    }

    fn module(&mut self, name: &[u8]) -> Option<u16> {
        let known = self.modules.iter().rposition(|module| module.as_bytes() == name);
        let index = known.unwrap_or_else(|| {
            self.modules.push(String::from_utf8_lossy(name).into_owned());
            self.modules.len() - 1
        });
        u16::try_from(index).ok()
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
        self.begins.get(name).copied()
    }

    fn symbol(&self, address: u64, function: bool) -> Option<(&str, u64, Option<&str>)> {
        let index = self
            .symbols
            .partition_point(|symbol| symbol.address <= address)
            .checked_sub(1)?;
        let symbol = self.symbols.get(index)?;
        let offset = address - symbol.address;
        let last = index + 1 == self.symbols.len();
        if symbol.is_function() != function || symbol.name_length == 0 || (last && offset >= LAST_LENGTH) {
            return None;
        }
        let module = symbol.module.and_then(|module| self.modules.get(usize::from(module)));
        Some((self.name(symbol), offset, module.map(String::as_str)))
    }

    /// How many functions have names.
    #[must_use]
    pub fn functions(&self) -> usize {
        let named = |symbol: &&Symbol| symbol.is_function() && symbol.name_length > 0;
        self.symbols.iter().filter(named).count()
    }
}

struct Line<'text> {
    address: u64,
    kind: u8,
    /// Where it stands in the line.
    name: Range<usize>,
    module: Option<&'text [u8]>,
}

impl<'text> Line<'text> {
    fn parse(line: &'text [u8]) -> Option<Self> {
        let (address, rest) = hexadecimal(line)?;
        let [b' ', kind, b' ', rest @ ..] = rest else {
            return None;
        };
        let start = line.len() - rest.len();
        let length = memchr::memchr3(b' ', b'\t', b'\r', rest).unwrap_or(rest.len());
        if length == 0 {
            return None;
        }
        let module = rest[length..].trim_ascii();
        Some(Line {
            address,
            kind: *kind,
            name: start..start + length,
            module: module.strip_prefix(b"[").and_then(|module| module.strip_suffix(b"]")),
        })
    }
}

/// The number that a text begins with, and what is behind it.
fn hexadecimal(text: &[u8]) -> Option<(u64, &[u8])> {
    const MOST_DIGITS: usize = 16;
    let mut number = 0_u64;
    let mut digits = 0;
    for byte in text {
        let digit = DIGITS[usize::from(*byte)];
        if digit == NO_DIGIT {
            break;
        }
        if digits == MOST_DIGITS {
            return None;
        }
        number = number << 4 | u64::from(digit);
        digits += 1;
    }
    (digits > 0).then(|| (number, &text[digits..]))
}

const NO_DIGIT: u8 = 16;

/// What each byte is as a hexadecimal digit: a list has two million of them.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut byte = 0;
    while byte < digits.len() {
        if let Some(digit) = (byte as u8 as char).to_digit(16) {
            digits[byte] = digit as u8;
        }
        byte += 1;
    }
    digits
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T _text
ffffffff81000040 t __local
ffffffff81000040 T do_syscall_64
ffffffff81000100 T schedule
ffffffff81000200 D jiffies
ffffffffc0000000 t ext4_sync_file\t[ext4]
ffffffffc0000100 t bpf_prog_6deef7357e7b4530\t[bpf]
";

    #[test]
    fn an_address_has_the_name_of_the_function_that_holds_it() {
        let table = KernelSymbols::from_text(TEXT).expect("a table");
        assert_eq!(table.function(0xffff_ffff_8100_0043), Some(("do_syscall_64", 3, None)));
        assert_eq!(
            table.function(0xffff_ffff_c000_00ff),
            Some(("ext4_sync_file", 0xff, Some("ext4")))
        );
        assert_eq!(
            table.function(0xffff_ffff_c000_0101),
            Some(("bpf_prog_6deef7357e7b4530", 1, Some("bpf")))
        );
        assert_eq!(table.functions(), 5);
    }

    #[test]
    fn what_is_no_code_ends_a_function_and_names_none() {
        let table = KernelSymbols::from_text(TEXT).expect("a table");
        assert_eq!(table.function(0xffff_ffff_8100_01ff), Some(("schedule", 0xff, None)));
        for address in [0, 5, 0xffff_ffff_8100_0200, 0xffff_ffff_c001_0100, u64::MAX] {
            assert_eq!(table.function(address), None, "{address:#x}");
        }
    }

    #[test]
    fn after_another_start_the_kernel_lies_elsewhere_and_modules_where_they_are_said_to() {
        let table = KernelSymbols::from_text(TEXT).expect("a table");
        let moved = table.after_another_start(0x0120_0000, |module, begin| {
            module == "ext4" && begin == 0xffff_ffff_c000_0000
        });
        assert_eq!(moved.function(0xffff_ffff_8220_0043), Some(("do_syscall_64", 3, None)));
        assert_eq!(moved.function(0xffff_ffff_8100_0043), None);
        assert_eq!(
            moved.function(0xffff_ffff_c000_00ff),
            Some(("ext4_sync_file", 0xff, Some("ext4")))
        );
        assert_eq!(
            moved.function(0xffff_ffff_c000_0101),
            None,
            "of that nobody knows where it lay"
        );
        assert_eq!(moved.variable(0xffff_ffff_c000_0101), None, "nor is it a variable then");
        assert_eq!(moved.functions(), 4);
        assert_eq!(moved.begin("_text"), Some(0xffff_ffff_8220_0000));
        let down = moved.after_another_start(0x0120_0000_u64.wrapping_neg(), |_, _| true);
        assert_eq!(down.function(0xffff_ffff_8100_0040), Some(("do_syscall_64", 0, None)));
    }

    #[test]
    fn the_kernels_begin_is_known_though_another_name_is_shown_for_it() {
        let text = "ffffffff81000000 T srso_alias_untrain_ret\nffffffff81000000 T _stext\nffffffff81000000 T _text\n";
        let table = KernelSymbols::from_text(text).expect("a table");
        assert_eq!(
            table.function(0xffff_ffff_8100_0000),
            Some(("srso_alias_untrain_ret", 0, None))
        );
        assert_eq!(table.begin("_text"), Some(0xffff_ffff_8100_0000));
        assert_eq!(table.begin("_stext"), Some(0xffff_ffff_8100_0000));
        assert_eq!(table.begin("schedule"), None);
    }

    #[test]
    fn names_are_bytes_and_those_that_begin_with_no_text_are_none() {
        let text = b"ffffffff81000000 T go\xff\xfe\nffffffff81000040 T \xff\xfe\nffffffff81000040 T schedule\nffffffff81000080 T \xff\n";
        let table = KernelSymbols::from_text(&text[..]).expect("a table");
        let name = |address| table.function(address).map(|(name, ..)| name);
        assert_eq!(name(0xffff_ffff_8100_0000), Some("go"));
        assert_eq!(name(0xffff_ffff_8100_0041), Some("schedule"));
        assert_eq!(name(0xffff_ffff_8100_0081), None);
    }

    #[test]
    fn hidden_addresses_are_an_error_that_names_the_remedy() {
        let hidden = "0000000000000000 T _text\n0000000000000000 t schedule\n";
        let error = KernelSymbols::from_text(hidden).expect_err("hidden");
        assert!(
            error.to_string().contains("sysctl -w kernel.kptr_restrict=0"),
            "{error}"
        );
        assert!(matches!(KernelSymbols::from_text("\n"), Err(KernelSymbolsError::Empty)));
    }

    #[test]
    fn this_kernels_functions_have_names_or_the_reason_is_told() {
        match KernelSymbols::of_this_kernel() {
            Ok(table) => assert!(table.functions() > 1000, "only {}", table.functions()),
            Err(error) => eprintln!("\n*** SKIPPED: {error}\n"),
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "([0-9a-f]{0,17}[ \t][a-zA-Z]{0,2}[ \t][^\n]{0,9}\n?){0,20}", address: u64) {
            if let Ok(table) = KernelSymbols::from_text(text.as_str()) {
                let _ = table.function(address);
            }
        }

        #[test]
        fn every_function_is_found_from_its_first_byte_to_its_last(starts in prop::collection::btree_set(1_u64..1 << 40, 1..50)) {
            let text: String = starts.iter().map(|start| format!("{start:016x} t f{start}\n")).collect();
            let table = KernelSymbols::from_text(text.as_str()).expect("a table");
            let ends = starts.iter().skip(1).copied().map(Some).chain([None]);
            for (start, end) in starts.iter().zip(ends) {
                let name = format!("f{start}");
                prop_assert_eq!(table.function(*start), Some((name.as_str(), 0, None)));
                if let Some(end) = end {
                    prop_assert_eq!(table.function(end - 1), Some((name.as_str(), end - 1 - start, None)));
                }
            }
        }
    }
}
