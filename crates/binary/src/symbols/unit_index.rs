//! Which unit of the debug information is about an address.
//!
//! A server has thousands of units, and a recording is of some hundred of them. What `.debug_aranges` says of addresses is enough to find
//! these without reading what each of the others begins with, which takes longer than all names of a recording. Units of which nothing is
//! listed there, as of clang's, are asked themselves.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{Dwarf, EndianSlice, Reader as _, RunTimeEndian, Section as _, UnitType};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The units of a file, and the addresses of the code of each.
#[derive(Debug)]
pub(super) struct UnitIndex {
    /// By where they end and by unit: of several that hold an address the first answers, as in addr2line.
    ranges: Vec<Listed>,
    units: Vec<Unit>,
    /// Units that tell no addresses, which nearly always have no code.
    without_addresses: Vec<usize>,
}

#[derive(Debug)]
struct Listed {
    start: u64,
    end: u64,
    /// The least start from here on.
    least_start: u64,
    unit: usize,
}

#[derive(Debug)]
struct Unit {
    bytes: Range<usize>,
    /// Where its abbreviations are.
    abbreviations: usize,
    /// Whether they are another unit's, too.
    shares_abbreviations: bool,
}

/// Units without addresses that are worth asking one by one whenever no other knows an address.
const MOST_WITHOUT_ADDRESSES: usize = 256;

/// Units that are asked about one address, those without addresses among them. Compilers list an address once, or in each unit that has its
/// function (COMDAT).
pub(super) const MOST_UNITS: usize = 512;
/// Ranges that are looked through for one address: in files without overlaps it is one. A unit behind more of them is not found.
const MOST_RANGES: usize = 4096;

impl UnitIndex {
    /// None where units may be about the code of others, or so many tell no addresses that all have to be read.
    pub(super) fn of(dwarf: &Dwarf<Slice<'_>>) -> Option<UnitIndex> {
        let mut units: Vec<Unit> = Vec::new();
        let mut unit_headers = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut users: HashMap<usize, usize> = HashMap::new();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().ok()? {
            match header.type_() {
                UnitType::Compilation => {}
                UnitType::Type { .. } => continue,
                _ => return None,
            }
            let start = header.debug_info_offset()?.0;
            let abbreviations = header.debug_abbrev_offset().0;
            places.insert(start, units.len());
            let users = users.entry(abbreviations).or_default();
            *users += 1;
            units.push(Unit {
                bytes: start..start.checked_add(header.length_including_self())?,
                abbreviations,
                shares_abbreviations: false,
            });
            unit_headers.push(header);
        }
        for unit in &mut units {
            unit.shares_abbreviations = users.get(&unit.abbreviations).is_some_and(|users| *users > 1);
        }
        let mut is_listed = vec![false; units.len()];
        let mut ranges = Vec::new();
        let mut lists = dwarf.debug_aranges.headers();
        while let Some(list) = lists.next().ok()? {
            let Some(unit) = places.get(&list.debug_info_offset().0).copied() else {
                continue;
            };
            // One that reaches beyond all addresses is passed over; behind one that cannot be read there is none.
            for entry in list.entries().flatten() {
                is_listed[unit] |= add(&mut ranges, entry.range(), unit);
            }
        }
        let mut without_addresses = Vec::new();
        let unlisted = (0..units.len()).filter(|unit| !is_listed[*unit]);
        for unit in unlisted {
            // One that cannot be read answers nothing.
            let Ok(read) = dwarf.unit(unit_headers[unit]) else {
                continue;
            };
            let mut own = dwarf.unit_ranges(&read).ok()?;
            let mut tells = false;
            while let Some(range) = own.next().ok()? {
                tells |= add(&mut ranges, range, unit);
            }
            if !tells {
                without_addresses.push(unit);
            }
        }
        if without_addresses.len() > MOST_WITHOUT_ADDRESSES {
            return None;
        }
        merge(&mut ranges);
        put_in_order(&mut ranges);
        let index = UnitIndex {
            ranges,
            units,
            without_addresses,
        };
        // As in programs that were optimised as a whole: units refer to each other, and all have to be read.
        let first = index.ranges.first().map(|range| range.unit);
        first
            .is_none_or(|first| index.alone(first, dwarf).is_some())
            .then_some(index)
    }

    /// How many units there are.
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// The units that may be about an address, in the order in which they are asked; of more than [`MOST_UNITS`] the first.
    pub(super) fn units_at(&self, svma: u64) -> impl Iterator<Item = usize> {
        let behind = self.ranges.partition_point(|range| range.end <= svma);
        let reaching = self.ranges[behind..]
            .iter()
            .take_while(move |range| range.least_start <= svma)
            .take(MOST_RANGES);
        let holding = reaching
            .filter(move |range| range.start <= svma)
            .map(|range| range.unit);
        holding.chain(self.without_addresses.iter().copied()).take(MOST_UNITS)
    }

    /// Whether it tells addresses.
    pub(super) fn lists_addresses(&self, unit: usize) -> bool {
        // In their order.
        self.without_addresses.binary_search(&unit).is_err()
    }

    /// The abbreviations of a unit, and all behind them; empty where there are none.
    pub(super) fn abbreviations<'a>(&self, unit: usize, dwarf: &Dwarf<Slice<'a>>) -> Slice<'a> {
        let mut rest = *dwarf.debug_abbrev.reader();
        let place = self.units.get(unit).map(|unit| unit.abbreviations);
        match place.map(|place| rest.skip(place)) {
            Some(Ok(())) => rest,
            _ => EndianSlice::new(&[], rest.endian()),
        }
    }

    /// Where a unit is in `.debug_info`, if nothing in it refers to another one; none where it does or cannot be read.
    pub(super) fn alone(&self, unit: usize, dwarf: &Dwarf<Slice<'_>>) -> Option<Range<usize>> {
        let Unit {
            bytes,
            abbreviations,
            shares_abbreviations,
        } = self.units.get(unit)?;
        // Each would keep a table of its own.
        if *shares_abbreviations {
            return None;
        }
        let mut rest = *dwarf.debug_abbrev.reader();
        rest.skip(*abbreviations).ok()?;
        let stands_alone = stands_alone(rest).unwrap_or(false);
        stands_alone.then(|| bytes.clone())
    }
}

/// Adds a range of addresses, unless it is empty.
fn add(ranges: &mut Vec<Listed>, gimli::Range { begin, end }: gimli::Range, unit: usize) -> bool {
    if begin < end {
        ranges.push(Listed {
            start: begin,
            end,
            least_start: begin,
            unit,
        });
    }
    begin < end
}

/// Makes one of the ranges of a unit that overlap or touch: a list may name the same addresses again and again.
fn merge(ranges: &mut Vec<Listed>) {
    ranges.sort_unstable_by_key(|range| (range.unit, range.start, range.end));
    ranges.dedup_by(|next, before| {
        let touches = next.unit == before.unit && next.start <= before.end;
        if touches {
            before.end = before.end.max(next.end);
        }
        touches
    });
}

fn put_in_order(ranges: &mut [Listed]) {
    ranges.sort_unstable_by_key(|range| (range.end, range.unit));
    let mut least = u64::MAX;
    for range in ranges.iter_mut().rev() {
        least = range.start.min(least);
        range.least_start = least;
    }
}

/// Whether entries of these abbreviations (DWARF 5, 7.5.3) refer to nothing outside of their unit.
fn stands_alone(mut abbreviations: Slice<'_>) -> gimli::Result<bool> {
    const OUTSIDE: [gimli::DwForm; 4] = [
        gimli::DW_FORM_ref_addr,
        gimli::DW_FORM_ref_sup4,
        gimli::DW_FORM_ref_sup8,
        gimli::DW_FORM_GNU_ref_alt,
    ];
    while abbreviations.read_uleb128()? != 0 {
        let _tag = abbreviations.read_uleb128()?;
        let _has_children = abbreviations.read_u8()?;
        loop {
            let name = abbreviations.read_uleb128()?;
            let form = gimli::DwForm(abbreviations.read_uleb128_u16()?);
            if form == gimli::DW_FORM_implicit_const {
                abbreviations.read_sleb128()?;
            }
            if name == 0 && form.0 == 0 {
                break;
            }
            // What stands in the entry itself may be of any form.
            if OUTSIDE.contains(&form) || form == gimli::DW_FORM_indirect {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slice(bytes: &[u8]) -> Slice<'_> {
        EndianSlice::new(bytes, RunTimeEndian::Little)
    }

    #[test]
    fn a_unit_stands_alone_unless_a_form_refers_to_another() {
        // Code 1, a compile unit with children: a name as string; code 2, an inlined function with a constant and an origin.
        let with_origin = |form: &[u8]| {
            let begin = [1, 0x11, 1, 0x03, 0x08, 0, 0, 2, 0x1d, 0, 0x3b, 0x21, 0x7f, 0x31];
            [&begin, form, &[0, 0, 0]].concat()
        };
        let alone = |form: &[u8]| stands_alone(slice(&with_origin(form)));
        assert_eq!(alone(&[0x13]), Ok(true), "in the same unit");
        for outside in [&[0x10][..], &[0x1c], &[0x24], &[0xa0, 0x3e], &[0x16]] {
            assert_eq!(alone(outside), Ok(false), "{outside:x?}");
        }
        let whole = with_origin(&[0x13]);
        assert!(stands_alone(slice(&whole[..whole.len() - 1])).is_err(), "cut");
    }

    #[test]
    fn of_units_without_number_that_list_an_address_the_first_are_asked() {
        let mut ranges = Vec::new();
        for unit in 0..10_000 {
            add(&mut ranges, gimli::Range { begin: 0, end: 100 }, unit);
        }
        put_in_order(&mut ranges);
        let index = UnitIndex {
            ranges,
            units: Vec::new(),
            without_addresses: vec![10_000],
        };
        assert!(index.units_at(50).eq(0..MOST_UNITS));
    }

    proptest! {
        #[test]
        fn the_units_that_list_an_address_are_found(
            listed in prop::collection::vec((0_u64..60, 0_u64..12, 0_usize..5), 0..20),
            svma in 0_u64..80,
        ) {
            let mut ranges = Vec::new();
            for (begin, length, unit) in &listed {
                add(&mut ranges, gimli::Range { begin: *begin, end: begin + length }, *unit);
            }
            merge(&mut ranges);
            put_in_order(&mut ranges);
            let index = UnitIndex { ranges, units: Vec::new(), without_addresses: vec![7] };
            let found: Vec<usize> = index.units_at(svma).collect();
            let holding = listed.iter().filter(|(start, length, _)| (*start..start + length).contains(&svma));
            let units: std::collections::BTreeSet<usize> = holding.map(|(_, _, unit)| *unit).collect();
            let (last, each) = found.split_last().expect("what has no addresses");
            prop_assert_eq!(*last, 7);
            prop_assert_eq!(each.len(), units.len(), "each once");
            prop_assert_eq!(each.iter().copied().collect::<std::collections::BTreeSet<usize>>(), units);
        }
    }
}
