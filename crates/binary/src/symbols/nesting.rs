//! The stack that it takes to read functions that were put into each other.
//!
//! addr2line calls itself for each of them. A file that was made for it nests as many as it has room for, where compilers nest some
//! dozens: how deep they can be is told by the least that one of them takes in the file.

use gimli::{DwForm, DwTag, Dwarf, EndianSlice, Reader as _, RunTimeEndian, Section as _};
use std::collections::HashSet;

use crate::deep_stack::{NoRoom, with_stack};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Bytes of stack that a level takes at most. Measured on x86-64 with optimisation: 526, tables included.
const LEVEL_BYTES: usize = if cfg!(debug_assertions) { 2048 } else { 1024 };
/// For what else is called.
const BESIDES: usize = 256 << 10;
/// Of a unit that would take more nothing is told. The stack is memory that is not touched before it is used.
const MOST: usize = if cfg!(debug_assertions) { 1 << 30 } else { 512 << 20 };

/// How much stack a unit of debug information may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stack(usize);

/// It would take too much.
pub(super) struct TooDeep;

impl Stack {
    /// For a unit of so many bytes, and what its abbreviations begin with.
    pub(super) fn for_unit(bytes: usize, abbreviations: Slice<'_>) -> Stack {
        match least_bytes_of_level(abbreviations).ok().flatten() {
            Some(level) => Stack((bytes / level).saturating_mul(LEVEL_BYTES)),
            None => Stack(0),
        }
    }

    /// For each of all units.
    pub(super) fn for_any_unit(dwarf: &Dwarf<Slice<'_>>) -> Stack {
        let mut longest = 0;
        let mut least = None;
        let mut seen = HashSet::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            longest = longest.max(header.length_including_self());
            let place = header.debug_abbrev_offset().0;
            let mut abbreviations = *dwarf.debug_abbrev.reader();
            if seen.insert(place) && abbreviations.skip(place).is_ok() {
                let level = least_bytes_of_level(abbreviations).ok().flatten();
                least = least.into_iter().chain(level).min();
            }
        }
        Stack(least.map_or(0, |level: usize| (longest / level).saturating_mul(LEVEL_BYTES)))
    }

    /// Does what takes it.
    ///
    /// # Errors
    /// There is not so much.
    pub(super) fn run<T>(self, work: impl FnOnce() -> T) -> Result<T, TooDeep> {
        let wanted = self.0.saturating_add(BESIDES);
        match wanted > MOST {
            true => Err(TooDeep),
            false => with_stack(wanted, work).map_err(|NoRoom| TooDeep),
        }
    }
}

/// The least that an inlined function with something in it takes: its entry, and the zero that ends what is in it (DWARF 5, 7.5.2); none
/// where there is no such kind of entry.
fn least_bytes_of_level(mut abbreviations: Slice<'_>) -> gimli::Result<Option<usize>> {
    let mut least: Option<usize> = None;
    loop {
        let number = abbreviations.read_uleb128()?;
        if number == 0 {
            return Ok(least);
        }
        let tag = abbreviations.read_uleb128_u16().map(DwTag)?;
        let has_children = abbreviations.read_u8()? != 0;
        let mut bytes = 2;
        loop {
            let name = abbreviations.read_uleb128()?;
            let form = DwForm(abbreviations.read_uleb128_u16()?);
            if form == gimli::DW_FORM_implicit_const {
                abbreviations.read_sleb128()?;
            }
            if name == 0 && form.0 == 0 {
                break;
            }
            bytes += least_bytes_of(form);
        }
        if tag == gimli::DW_TAG_inlined_subroutine && has_children {
            least = Some(least.map_or(bytes, |least| least.min(bytes)));
        }
    }
}

/// The least that a value of a form takes (DWARF 5, 7.5.6).
fn least_bytes_of(form: DwForm) -> usize {
    match form {
        gimli::DW_FORM_flag_present | gimli::DW_FORM_implicit_const => 0,
        gimli::DW_FORM_data2 | gimli::DW_FORM_ref2 | gimli::DW_FORM_strx2 | gimli::DW_FORM_addrx2 => 2,
        gimli::DW_FORM_strx3 | gimli::DW_FORM_addrx3 => 3,
        // An address has 4 bytes at least, and so has an offset.
        gimli::DW_FORM_addr
        | gimli::DW_FORM_data4
        | gimli::DW_FORM_ref4
        | gimli::DW_FORM_strp
        | gimli::DW_FORM_line_strp
        | gimli::DW_FORM_sec_offset
        | gimli::DW_FORM_ref_sup4
        | gimli::DW_FORM_strp_sup
        | gimli::DW_FORM_strx4
        | gimli::DW_FORM_addrx4
        | gimli::DW_FORM_GNU_ref_alt
        | gimli::DW_FORM_GNU_strp_alt => 4,
        gimli::DW_FORM_data8 | gimli::DW_FORM_ref8 | gimli::DW_FORM_ref_sig8 | gimli::DW_FORM_ref_sup8 => 8,
        gimli::DW_FORM_data16 => 16,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(bytes: &[u8]) -> Slice<'_> {
        EndianSlice::new(bytes, RunTimeEndian::Little)
    }

    #[test]
    fn the_least_of_a_level_is_that_of_its_smallest_kind() {
        // A unit with children; an inlined function without any; two with them, as of gcc and as small as can be.
        let list = [
            1, 0x11, 1, 0x03, 0x08, 0, 0, // DW_AT_name, string
            2, 0x1d, 0, 0x31, 0x13, 0, 0, // DW_AT_abstract_origin, ref4
            3, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0x58, 0x0b, 0,
            0, // and low_pc, high_pc (data8), call_file
            0,
        ];
        assert_eq!(least_bytes_of_level(slice(&list)), Ok(Some(2 + 4 + 4 + 8 + 1)));
        assert_eq!(Stack::for_unit(190, slice(&list)), Stack(10 * LEVEL_BYTES));
        let smallest = [&list[..list.len() - 1], &[4, 0x1d, 1, 0, 0, 0]].concat();
        assert_eq!(least_bytes_of_level(slice(&smallest)), Ok(Some(2)));
        assert_eq!(least_bytes_of_level(slice(&[1, 0x11, 1, 0, 0, 0])), Ok(None));
        assert!(least_bytes_of_level(slice(&list[..9])).is_err(), "cut");
    }

    #[test]
    fn no_stack_is_taken_that_nobody_has() {
        assert!(Stack(MOST).run(|| ()).is_err());
        assert!(Stack(0).run(|| ()).is_ok());
    }
}
