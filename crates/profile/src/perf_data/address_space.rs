//! One address space for a whole recording, in which every file of code lies once.
//!
//! Processes have the same files at different addresses, and other files at the same ones. In this space an address says all by
//! itself: the file, and the place in it. So one [`Converter`](crate::Converter) serves for all processes, and a place that a
//! hundred processes share is named once.

use super::files::{FileId, Files};
use super::timeline::Layout;
use std::ops::Range;

/// Bytes that each file has; none is so large.
const FILE_BITS: u32 = 40;
/// An address that lies in no file.
pub(super) const UNKNOWN: u64 = 1;

/// The address of a place in a file.
fn address(file: FileId, svma: u64) -> u64 {
    match svma >> FILE_BITS {
        0 => (u64::from(file.0) + 1) << FILE_BITS | svma,
        _ => UNKNOWN,
    }
}

/// The file and the place in it; none for [`UNKNOWN`].
pub(super) fn place(address: u64) -> Option<(FileId, u64)> {
    let file = u32::try_from(address >> FILE_BITS).ok()?.checked_sub(1)?;
    Some((FileId(file), address & ((1 << FILE_BITS) - 1)))
}

/// All addresses of places in a file.
pub(super) fn of_file(file: FileId) -> Range<u64> {
    let first = (u64::from(file.0) + 1) << FILE_BITS;
    first..first + (1 << FILE_BITS)
}

/// Where an address of a process with that layout lies. For a return address the call before it decides: it may be the last
/// instruction of a file.
pub(super) fn of_process(layout: &Layout, in_process: u64, is_return_address: bool) -> u64 {
    let back = u64::from(is_return_address);
    match layout.place(in_process.wrapping_sub(back)) {
        Some(place) => address(place.file, in_process.wrapping_sub(place.bias)),
        None => UNKNOWN,
    }
}

/// Where an address of a process's data lies, in a file of which the code is mapped: a recording tells where code lies, and data lie as far
/// from it as the file says. None on the heap and on stacks.
pub(super) fn of_data(layout: &Layout, in_process: u64, files: &Files) -> Option<u64> {
    let found = layout.places.iter().find_map(|place| {
        let svma = in_process.wrapping_sub(place.bias);
        files
            .get(place.file)?
            .holds_data(svma)
            .then(|| address(place.file, svma))
    });
    found.filter(|address| *address != UNKNOWN)
}

#[cfg(test)]
mod tests {
    use super::super::timeline::Place;
    use super::*;

    #[test]
    fn addresses_of_all_processes_lead_to_the_same_place() {
        let layout = |start: u64| Layout {
            places: vec![Place {
                start,
                end: start + 0x2000,
                bias: start - 0x1000,
                file: FileId(7),
                of_own_making: false,
            }],
        };
        let (one, other) = (layout(0x5500_0000_0000), layout(0x7f00_0000_0000));
        let found = of_process(&one, 0x5500_0000_0123, false);
        assert_eq!(found, of_process(&other, 0x7f00_0000_0123, false));
        assert_eq!(place(found), Some((FileId(7), 0x1123)));
        assert!(of_file(FileId(7)).contains(&found) && !of_file(FileId(6)).contains(&found));
        assert_eq!(of_process(&one, 0x5500_0000_2000, false), UNKNOWN);
        assert_eq!(
            place(of_process(&one, 0x5500_0000_2000, true)),
            Some((FileId(7), 0x3000))
        );
        assert_eq!(place(UNKNOWN), None);
    }
}
