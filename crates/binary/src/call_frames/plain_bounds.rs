//! The bounds of functions from `.eh_frame` as nearly all compilers write it, without reading the rules.
//!
//! Naming needs no more of an entry than where its code begins and ends, and a server has tens of thousands. An entry is a length and
//! the distance back to its common information entry (CIE), in four bytes each, and then the code's address and length, which are mostly
//! in four bytes too, the address counted from its own place (Linux Standard Base Core, 10.6.1). Of a section that has anything else
//! nothing is given here; gimli reads that.

use gimli::{BaseAddresses, EhFrame, LittleEndian, UnwindSection as _};

use super::{Bytes, MOST_EXPECTED};

/// `DW_EH_PE_pcrel | DW_EH_PE_sdata4`.
const FROM_ITS_PLACE_IN_FOUR_BYTES: gimli::DwEhPe = gimli::DwEhPe(0x1b);

/// Gives start and length of the code of each entry, in the order of the section; none where the section is not plain.
pub(super) fn plain_bounds(section: &[u8], bases: &BaseAddresses) -> Option<Vec<(u64, u64)>> {
    let address = bases.eh_frame.section?;
    let reader = EhFrame::new(section, LittleEndian);
    let mut bounds = Vec::new();
    // Nearly all have more bytes than that; without the room it grows as needed.
    let _ = bounds.try_reserve((section.len() / 32).min(MOST_EXPECTED));
    let mut plain: Option<usize> = None;
    let mut place = 0;
    while place < section.len() {
        let length = word(section, place)?;
        match length {
            0 => break,
            0xffff_fff0.. => return None,
            _ => {}
        }
        let body = place + 4;
        let end = body.checked_add(length as usize).filter(|end| *end <= section.len())?;
        let back = word(section, body)?;
        if back != 0 {
            let common = body.checked_sub(back as usize)?;
            // Most follow the CIE of the one before.
            if plain != Some(common) {
                is_plain(&reader, bases, common)?;
                plain = Some(common);
            }
            let at = body + 4;
            let start = address.wrapping_add(at as u64);
            let start = start.wrapping_add_signed(i64::from(word(section, at)?.cast_signed()));
            let length = word(section, at + 4).filter(|_| at + 8 <= end)?;
            bounds.push((start, u64::from(length)));
        }
        place = end;
    }
    Some(bounds)
}

fn is_plain(reader: &EhFrame<Bytes<'_>>, bases: &BaseAddresses, offset: usize) -> Option<()> {
    let common = reader.cie_from_offset(bases, gimli::EhFrameOffset(offset)).ok()?;
    (common.address_size() == 8 && common.fde_address_encoding() == Some(FROM_ITS_PLACE_IN_FOUR_BYTES)).then_some(())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_very_many_entries_is_only_made_once_they_are_there() {
        // It ends where it begins.
        let section = vec![0; 64 * MOST_EXPECTED];
        let bases = BaseAddresses::default().set_eh_frame(0x1000);
        let bounds = plain_bounds(&section, &bases).expect("plain");
        assert!(bounds.is_empty() && bounds.capacity() <= MOST_EXPECTED);
    }
}
