//! Names by address, from several sources, and which of them may name an address.
//!
//! A wrong name is worse than none: it sends its reader to the wrong code. The nearest symbol before an address is wrong
//! for half of a stripped server's code. So a symbol names what its size covers; and one without a size (lists of `nm`
//! have none, and hand-written assembler) names no more than the region that holds its start: the function's range by
//! the call frame information, or a gap between such.

use scaleprof_vocabulary::SymbolSource;
use std::ops::Range;

use foldhash::HashSet;

use super::DataSymbol;
use super::name_text::{NameText, cut_version};
use crate::long_names::LINKAGE;

/// How many symbols are looked at before an address: some may be labels in a function that ended before it.
const LOOK_BACK: usize = 64;

/// A symbol as a source states it, without its name.
pub(crate) struct Symbol {
    pub(crate) start: u64,
    /// 0 if unknown.
    pub(crate) size: u64,
    pub(crate) source: SymbolSource,
    pub(crate) binding: Binding,
}

/// Of several names of one address, the better comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    Global,
    Weak,
    Local,
    /// Neither function nor variable by its type.
    Label,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    size: u64,
    /// Where its name begins in that text.
    name: u32,
    text: TextNumber,
    source: SymbolSource,
    binding: Binding,
}

/// Which of a table's texts a name stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextNumber(u8);

/// One name for every address that has a symbol. Of the tens of thousands of names that a server has a profile shows a few hundred: names
/// stay where they are until somebody asks.
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    /// Names that were given as such, each with a zero behind it.
    own: Vec<u8>,
    /// Texts that others hold.
    texts: Vec<NameText>,
    entries: Vec<Entry>,
}

/// A symbol that names an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named<'table> {
    pub(crate) name: &'table str,
    pub(crate) start: u64,
    /// As the source states it, or up to the end of what it names.
    pub(crate) size: u64,
    pub(crate) source: SymbolSource,
    /// From the address asked for up to here the answer is the same.
    pub(crate) holds_until: u64,
}

impl NameTable {
    /// The names that a table has beside texts of others.
    const OWN: TextNumber = TextNumber(u8::MAX);

    /// Makes room for so many symbols before they are added, so that less is moved. Without the room it grows as needed.
    pub(crate) fn reserve(&mut self, symbols: usize) {
        let _ = self.entries.try_reserve(symbols);
    }

    /// Takes in a text in which names of symbols stand. None where there are too many: no file has more than a handful.
    pub(crate) fn add_text(&mut self, text: NameText) -> Option<TextNumber> {
        let number = u8::try_from(self.texts.len()).ok().map(TextNumber);
        let number = number.filter(|number| *number != Self::OWN)?;
        self.texts.push(text);
        Some(number)
    }

    /// Adds a symbol whose name begins at a place of a text; call [`NameTable::finish`] before looking up.
    pub(crate) fn add_at(&mut self, symbol: &Symbol, text: TextNumber, name: u32) {
        let written = self.text(text).get(name as usize..).unwrap_or_default();
        // aarch64's mapping symbols ($x) and compilers' labels (.L) are no names, and nothing is left of a version alone.
        if matches!(written, [] | [0 | b'$' | b'.', ..] | [b'@', b'@', ..]) {
            return;
        }
        self.entries.push(Entry {
            start: symbol.start,
            size: symbol.size,
            name,
            text,
            source: symbol.source,
            binding: symbol.binding,
        });
    }

    /// Adds a symbol with its name; call [`NameTable::finish`] before looking up.
    pub(crate) fn add(&mut self, symbol: &Symbol, name: &str) {
        if let Ok(at) = u32::try_from(self.own.len()) {
            self.own.extend(name.as_bytes());
            self.own.push(0);
            self.add_at(symbol, Self::OWN, at);
        }
    }

    /// Where the symbols begin that were added so far and whose size is known.
    pub(crate) fn sized_starts(&self) -> HashSet<u64> {
        let sized = self.entries.iter().filter(|entry| entry.size > 0);
        let mut starts = HashSet::default();
        let _ = starts.try_reserve(self.entries.len());
        starts.extend(sized.map(|entry| entry.start));
        starts
    }

    fn text(&self, number: TextNumber) -> &[u8] {
        match number {
            Self::OWN => &self.own,
            TextNumber(number) => self.texts.get(usize::from(number)).map_or(&[], |text| text.bytes()),
        }
    }

    fn name(&self, entry: &Entry) -> &str {
        let text = self.text(entry.text).get(entry.name as usize..).unwrap_or_default();
        let text = text.get(..LINKAGE).unwrap_or(text);
        let length = memchr::memchr(0, text).unwrap_or(text.len());
        let written = &text[..length];
        let whole = match std::str::from_utf8(written) {
            Ok(name) => name,
            // Cut within a character.
            Err(error) if length == LINKAGE => std::str::from_utf8(&written[..error.valid_up_to()]).unwrap_or_default(),
            Err(_) => "",
        };
        cut_version(whole)
    }

    /// Sorts and keeps one name for each start; the size is of the best source that has one. A label within a function names nothing: in
    /// glibc 2.41 threads wait at one (`__syscall_cancel_arch_end`).
    pub(crate) fn finish(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        let underscores = |name: &str| match name.starts_with("_Z") {
            true => 0,
            false => name.len() - name.trim_start_matches('_').len(),
        };
        // Nearly all have an address of their own: names are only looked at where two share one.
        entries.sort_unstable_by_key(|entry| entry.start);
        for of_address in entries
            .chunk_by_mut(|a, b| a.start == b.start)
            .filter(|some| some.len() > 1)
        {
            of_address.sort_by(|a, b| {
                let by_source = (a.source, a.binding).cmp(&(b.source, b.binding));
                let by_name = || {
                    let (a, b) = (self.name(a), self.name(b));
                    let quality = |name: &str| (underscores(name), name.len());
                    quality(a).cmp(&quality(b)).then_with(|| a.cmp(b))
                };
                // Of two that are equal in all, the size of the larger one is kept.
                by_source.then_with(by_name).then(b.size.cmp(&a.size))
            });
        }
        entries.dedup_by(|worse, better| {
            let same = worse.start == better.start;
            if same && better.size == 0 {
                better.size = worse.size;
            }
            same
        });
        let mut function_end = 0;
        entries.retain(|entry| {
            if entry.binding == Binding::Label && entry.size == 0 {
                return entry.start >= function_end;
            }
            function_end = function_end.max(entry.start.saturating_add(entry.size));
            true
        });
        self.entries = entries;
        self.own.shrink_to_fit();
    }

    /// The symbol that names an address which lies in `region`.
    pub(crate) fn find(&self, address: u64, region: &Range<u64>) -> Option<Named<'_>> {
        let behind = self.entries.partition_point(|entry| entry.start <= address);
        let next = self.entries.get(behind).map_or(u64::MAX, |entry| entry.start);
        let before = self.entries.get(..behind)?.iter().rev().take(LOOK_BACK);
        for entry in before {
            let end = match entry.size {
                0 if region.contains(&entry.start) => region.end,
                0 => continue,
                size => entry.start.saturating_add(size),
            };
            if address < end {
                let holds_until = end.min(next);
                return Some(Named {
                    name: self.name(entry),
                    start: entry.start,
                    size: if entry.size == 0 {
                        holds_until - entry.start
                    } else {
                        entry.size
                    },
                    source: entry.source,
                    holds_until,
                });
            }
        }
        None
    }

    /// Every symbol, by address.
    pub(crate) fn all(&self) -> impl Iterator<Item = DataSymbol<'_>> {
        self.entries.iter().map(|entry| DataSymbol {
            linkage_name: self.name(entry),
            start: entry.start,
            size: entry.size,
            source: entry.source,
        })
    }

    /// Where the next symbol behind an address starts.
    pub(crate) fn next_start(&self, address: u64) -> u64 {
        let behind = self.entries.partition_point(|entry| entry.start <= address);
        self.entries.get(behind).map_or(u64::MAX, |entry| entry.start)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(symbols: &[(u64, u64, &str, SymbolSource, Binding)]) -> NameTable {
        let mut table = NameTable::default();
        for (start, size, name, source, binding) in symbols {
            let symbol = Symbol {
                start: *start,
                size: *size,
                source: *source,
                binding: *binding,
            };
            table.add(&symbol, name);
        }
        table.finish();
        table
    }

    fn name(table: &NameTable, address: u64, region: Range<u64>) -> Option<&str> {
        table.find(address, &region).map(|named| named.name)
    }

    use Binding::{Global, Label, Local, Weak};
    use SymbolSource::{Dynsym, SymbolList, Symtab};

    #[test]
    fn a_symbol_names_what_its_size_covers_and_no_more() {
        let table = table(&[(100, 20, "sized", Symtab, Global)]);
        assert_eq!(name(&table, 99, 90..200), None);
        assert_eq!(name(&table, 119, 90..200), Some("sized"));
        assert_eq!(name(&table, 120, 90..200), None);
        // `clone` of glibc has two entries of call frame information, but one symbol.
        assert_eq!(name(&table, 119, 110..200), Some("sized"));
    }

    #[test]
    fn a_symbol_without_a_size_stays_in_the_region_of_its_start() {
        let table = table(&[(100, 0, "listed", SymbolList, Global)]);
        assert_eq!(name(&table, 150, 100..200), Some("listed"));
        assert_eq!(name(&table, 150, 140..200), None);
    }

    #[test]
    fn a_label_that_ended_does_not_hide_the_function_around_it() {
        let table = table(&[(100, 100, "outer", Symtab, Global), (120, 8, "inner", Symtab, Local)]);
        let names = [119, 120, 127, 128].map(|address| name(&table, address, 100..200));
        assert_eq!(names, [Some("outer"), Some("inner"), Some("inner"), Some("outer")]);
        assert_eq!(table.find(100, &(100..200)).map(|named| named.holds_until), Some(120));
    }

    #[test]
    fn a_label_within_a_function_does_not_name_the_rest_of_it() {
        let table = table(&[
            (100, 47, "__syscall_cancel_arch", Symtab, Local),
            (100, 0, "__syscall_cancel_arch_start", Symtab, Label),
            (146, 0, "__syscall_cancel_arch_end", Symtab, Label),
            (147, 0, "of_assembler", Symtab, Label),
        ]);
        let names = [100, 145, 146, 147].map(|address| name(&table, address, 100..200));
        let function = Some("__syscall_cancel_arch");
        assert_eq!(names, [function, function, function, Some("of_assembler")]);
    }

    #[test]
    fn of_several_names_the_one_that_people_use_is_taken() {
        let table = table(&[
            (8, 0, "alone", Dynsym, Global),
            (16, 4, "__pthread_mutex_lock", Symtab, Global),
            (16, 4, "pthread_mutex_lock@@GLIBC_2.2.5", Symtab, Global),
            (16, 4, "a", Symtab, Label),
            (16, 4, "a", Symtab, Weak),
            (16, 4, "a", Dynsym, Global),
            (32, 0, "listed", SymbolList, Global),
            (32, 12, "exported", Dynsym, Global),
        ]);
        assert_eq!(name(&table, 16, 0..64), Some("pthread_mutex_lock"));
        let named = table.find(33, &(0..64)).expect("a name");
        assert_eq!((named.name, named.size), ("listed", 12));
    }

    #[test]
    fn what_has_no_size_yet_may_get_it_from_another_table() {
        let mut table = NameTable::default();
        let symbol = |start, size, source| Symbol {
            start,
            size,
            source,
            binding: Global,
        };
        table.add(&symbol(8, 0, Symtab), "of_assembler");
        table.add(&symbol(16, 4, Symtab), "sized");
        assert_eq!(table.sized_starts(), HashSet::from_iter([16]));
        table.add(&symbol(8, 12, Dynsym), "exported");
        table.finish();
        assert_eq!(table.find(15, &(0..64)).map(|named| named.name), Some("of_assembler"));
    }

    #[test]
    fn what_is_no_name_gives_none() {
        let table = table(&[
            (8, 4, "", Symtab, Global),
            (16, 4, "$x", Symtab, Global),
            (24, 4, ".L1", Symtab, Global),
            (32, 4, "@@VERSION_1", Symtab, Global),
            // An assembler takes any name in quotation marks.
            (40, 4, "@quoted@8", Symtab, Global),
        ]);
        let names = [8, 16, 24, 32, 40].map(|address| name(&table, address, 0..64));
        assert_eq!(names, [None, None, None, None, Some("@quoted@8")]);
    }

    proptest! {
        /// Against the definition, on few addresses, so that much overlaps.
        #[test]
        fn the_nearest_symbol_that_may_name_an_address_does(
            symbols in prop::collection::btree_map(0_u64..200, 0_u64..40, 0..30),
            start in 0_u64..200,
            into in 0_u64..30,
            rest in 1_u64..30,
        ) {
            let address = start + into;
            let region = start..address + rest;
            let names: Vec<String> = symbols.keys().map(|start| format!("s{start}")).collect();
            let list: Vec<_> = symbols
                .iter()
                .zip(&names)
                .map(|((start, size), name)| (*start, *size, name.as_str(), Symtab, Global))
                .collect();
            let table = table(&list);
            let expected = symbols
                .range(..=address)
                .rev()
                .find(|(start, size)| match size {
                    0 => region.contains(start),
                    size => address < **start + *size,
                })
                .map(|(start, _)| format!("s{start}"));
            prop_assert_eq!(name(&table, address, region.clone()).map(str::to_owned), expected);
            // And the answer holds as long as it says.
            if let Some(named) = table.find(address, &region) {
                for later in address..named.holds_until.min(region.end) {
                    prop_assert_eq!(table.find(later, &region).map(|later| later.start), Some(named.start));
                }
            }
        }
    }
}
