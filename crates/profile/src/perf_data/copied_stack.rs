//! The copy of a user stack that a sample has: room for it, and behind it in eight bytes how much of it was filled.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// Where a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopiedStack<'a> {
    /// In memory.
    Here(&'a [u8]),
    /// Still in the file.
    InFile {
        /// Its place there.
        place: u64,
        /// Length of its room, and of the number behind it.
        length: usize,
    },
}

impl Default for CopiedStack<'_> {
    fn default() -> Self {
        CopiedStack::Here(&[])
    }
}

impl<'a> CopiedStack<'a> {
    /// Those bytes, where they are in memory.
    pub(super) fn in_memory(&self) -> Option<&'a [u8]> {
        match *self {
            CopiedStack::Here(copy) => Some(filled(copy)),
            CopiedStack::InFile { .. } => None,
        }
    }

    /// Whether the stack may go on behind these bytes that were copied: there was no more room.
    pub(super) fn is_cut(&self, bytes: &[u8]) -> bool {
        let length = match *self {
            CopiedStack::Here(copy) => copy.len(),
            CopiedStack::InFile { length, .. } => length,
        };
        bytes.len() + 8 >= length
    }

    /// Bytes of the user stack from the stack pointer on; `room` is memory to read them into. None where the file cannot be read any more.
    ///
    /// A walk looks at some tens of words only, but in so many places that reading all at once takes no longer than reading those.
    pub(super) fn bytes<'r>(&'r self, file: Option<&File>, room: &'r mut Vec<u8>) -> Option<&'r [u8]> {
        match *self {
            CopiedStack::Here(copy) => Some(filled(copy)),
            CopiedStack::InFile { place, length } => {
                room.resize(length, 0);
                file?.read_exact_at(room, place).ok()?;
                Some(filled(room))
            }
        }
    }
}

fn filled(copy: &[u8]) -> &[u8] {
    let Some((room, filled)) = copy.split_last_chunk::<8>() else {
        return &[];
    };
    let filled = usize::try_from(u64::from_le_bytes(*filled)).unwrap_or(usize::MAX);
    &room[..filled.min(room.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn what_was_not_filled_is_left_out_wherever_it_is() {
        let stack: Vec<u8> = (0..64).collect();
        for filled in [0_u64, 1, 40, 64, 65, u64::MAX] {
            let copy = [&stack[..], &filled.to_le_bytes()].concat();
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&[&[9; 100][..], &copy].concat()).expect("written");
            let mut room = vec![5; 3];
            let expected = &stack[..filled.min(64) as usize];
            assert_eq!(CopiedStack::Here(&copy).bytes(None, &mut room), Some(expected));
            assert_eq!(CopiedStack::Here(&copy).is_cut(expected), filled >= 64);
            let in_file = CopiedStack::InFile { place: 100, length: 72 };
            assert_eq!(in_file.bytes(Some(&file), &mut room), Some(expected));
            assert_eq!(in_file.is_cut(expected), filled >= 64);
            let cut = CopiedStack::InFile { place: 101, length: 72 };
            assert_eq!(cut.bytes(Some(&file), &mut room), None, "it ends before");
        }
        assert_eq!(CopiedStack::default().bytes(None, &mut Vec::new()), Some(&[][..]));
    }
}
