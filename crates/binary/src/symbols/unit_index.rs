//! Which unit of the debug information is about an address.
//!
//! A server has thousands of units, and a recording is of some hundred of them. What `.debug_aranges` says of addresses is enough to find
//! these without reading what each of the others begins with, which takes longer than all names of a recording.

use std::collections::HashMap;
use std::ops::Range;

use gimli::{Dwarf, EndianSlice, Reader as _, RunTimeEndian, Section as _, UnitType};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The units of a file, and the addresses of the code of each.
#[derive(Debug)]
pub(super) struct UnitIndex {
    /// By where they begin.
    ranges: Vec<Listed>,
    units: Vec<Unit>,
    /// Units of which no addresses are listed: most have no code.
    unlisted: Vec<usize>,
}

#[derive(Debug)]
struct Listed {
    start: u64,
    end: u64,
    /// The largest end up to here.
    reach: u64,
    unit: usize,
}

#[derive(Debug)]
struct Unit {
    bytes: Range<usize>,
    /// Where its abbreviations are.
    abbreviations: usize,
}

impl UnitIndex {
    /// None where addresses are not listed, or units may be about the code of others.
    pub(super) fn of(dwarf: &Dwarf<Slice<'_>>) -> Option<UnitIndex> {
        let mut units = Vec::new();
        let mut places: HashMap<usize, usize> = HashMap::new();
        let mut headers = dwarf.units();
        while let Some(header) = headers.next().ok()? {
            match header.type_() {
                UnitType::Compilation => {}
                UnitType::Type { .. } => continue,
                _ => return None,
            }
            let start = header.debug_info_offset()?.0;
            places.insert(start, units.len());
            units.push(Unit {
                bytes: start..start.checked_add(header.length_including_self())?,
                abbreviations: header.debug_abbrev_offset().0,
            });
        }
        let mut is_listed = vec![false; units.len()];
        let mut ranges = Vec::new();
        let mut lists = dwarf.debug_aranges.headers();
        while let Some(list) = lists.next().ok()? {
            let Some(unit) = places.get(&list.debug_info_offset().0).copied() else {
                continue;
            };
            is_listed[unit] = true;
            let mut entries = list.entries();
            while let Some(entry) = entries.next().ok()? {
                let gimli::Range { begin, end } = entry.range();
                if begin < end {
                    ranges.push(Listed {
                        start: begin,
                        end,
                        reach: end,
                        unit,
                    });
                }
            }
        }
        if ranges.is_empty() {
            return None;
        }
        put_in_order(&mut ranges);
        let unlisted = (0..units.len()).filter(|unit| !is_listed[*unit]).collect();
        Some(UnitIndex {
            ranges,
            units,
            unlisted,
        })
    }

    /// How many units there are.
    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    /// The units that list an address, which is nearly always one, and then those that list none.
    pub(super) fn units_at(&self, svma: u64) -> impl Iterator<Item = usize> {
        let behind = self.ranges.partition_point(|range| range.start <= svma);
        let before = self.ranges[..behind].iter().rev();
        let reaching = before.take_while(move |range| range.reach > svma);
        let listing = reaching.filter(move |range| range.end > svma).map(|range| range.unit);
        listing.chain(self.unlisted.iter().copied())
    }

    /// Where a unit is in `.debug_info`, if nothing in it refers to another one; none where it does or cannot be read.
    pub(super) fn alone(&self, unit: usize, dwarf: &Dwarf<Slice<'_>>) -> Option<Range<usize>> {
        let Unit { bytes, abbreviations } = self.units.get(unit)?;
        let mut rest = *dwarf.debug_abbrev.reader();
        rest.skip(*abbreviations).ok()?;
        let stands_alone = stands_alone(rest).unwrap_or(false);
        stands_alone.then(|| bytes.clone())
    }
}

fn put_in_order(ranges: &mut [Listed]) {
    ranges.sort_unstable_by_key(|range| (range.start, range.end, range.unit));
    let mut reach = 0;
    for range in ranges {
        reach = range.end.max(reach);
        range.reach = reach;
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

    proptest! {
        #[test]
        fn the_units_that_list_an_address_are_found(
            listed in prop::collection::vec((0_u64..60, 1_u64..12, 0_usize..5), 0..20),
            svma in 0_u64..80,
        ) {
            let mut ranges: Vec<Listed> = listed
                .iter()
                .map(|(start, length, unit)| Listed { start: *start, end: start + length, reach: 0, unit: *unit })
                .collect();
            put_in_order(&mut ranges);
            let index = UnitIndex { ranges, units: Vec::new(), unlisted: vec![7] };
            let mut found: Vec<usize> = index.units_at(svma).collect();
            prop_assert_eq!(found.pop(), Some(7));
            let holds = |(start, length, _): &&(u64, u64, usize)| (*start..start + length).contains(&svma);
            let mut expected: Vec<usize> = listed.iter().filter(holds).map(|(.., unit)| *unit).collect();
            found.sort_unstable();
            expected.sort_unstable();
            prop_assert_eq!(found, expected);
        }
    }
}
