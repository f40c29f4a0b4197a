//! The records of a file that holds copies of stacks, without the copies.
//!
//! Nearly all of such a file is copies, and each is looked at once, in a few places. To map them into memory, and out of it again, takes
//! longer than to walk the stacks, and all that was looked at counts as memory of ours. So of every long sample only what stands in front
//! of the copy is read here, and each copy when its turn comes, into memory that is used again.

use super::record::{Header, Record, kind};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// What stands in front of a copy has room in so much, but for the deepest call chains.
const BEGINNING: usize = 768;
/// Most that is read at once, where records are short. No record is longer.
const MOST_AT_ONCE: usize = 1 << 16;
/// What is kept takes so much at most, as a share of all: of what is hardly copies all would have to be read.
const LEAST_SHARE_KEPT: usize = 4;
/// And no more than that of the longest.
const MOST_KEPT: usize = 1 << 29;

/// The records of a part of a file, without the copies of stacks that are in it.
#[derive(Debug)]
pub(super) struct Beginnings {
    /// What is kept of all, one behind the other.
    bytes: Vec<u8>,
    records: Vec<Kept>,
    /// Bytes at the end that are no whole record.
    left: usize,
}

/// What is kept of a record.
#[derive(Debug)]
struct Kept {
    header: Header,
    bytes: Range<usize>,
    is_begun: bool,
}

impl Beginnings {
    /// Reads them. `copy_in` finds in the beginning of a sample, of which it is told how long it is as a whole, where the copy of its
    /// stack begins; a sample without one is kept as it is. None where there are too few copies for it to pay, and where it is compressed.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn of(
        file: &File,
        part: Range<usize>,
        copy_in: impl Fn(&Record<'_>, usize) -> Option<usize>,
    ) -> Result<Option<Beginnings>> {
        let most_kept = (part.len() / LEAST_SHARE_KEPT + MOST_AT_ONCE).min(MOST_KEPT);
        let mut window = Window::of(file, part.end);
        let mut all = Beginnings {
            bytes: Vec::new(),
            records: Vec::new(),
            left: 0,
        };
        let mut at = part.start;
        while let Some(header) = Header::of(window.bytes(at, Header::LENGTH)?) {
            let body = at + Header::LENGTH;
            let Some(length) = header.body_length().filter(|length| *length <= part.end - body) else {
                break;
            };
            let kept = all.bytes.len() + size_of_val(&*all.records);
            if kept > most_kept || matches!(header.kind, kind::COMPRESSED | kind::COMPRESSED2) {
                return Ok(None);
            }
            let mut copy = None;
            if header.kind == kind::SAMPLE && length > BEGINNING {
                window.is_at_long_one();
                let beginning = Record::whole(header, window.bytes(body, BEGINNING)?);
                copy = copy_in(&beginning, length);
            }
            let from = all.bytes.len();
            if let Some(copy) = copy {
                all.bytes.extend(((body + copy) as u64).to_le_bytes());
            }
            all.bytes.extend(window.bytes(body, copy.unwrap_or(length))?);
            let kept = Kept {
                header,
                bytes: from..all.bytes.len(),
                is_begun: copy.is_some(),
            };
            at = body + length;
            at += all.record(&kept).trailing().min(part.end - at);
            all.records.push(kept);
        }
        all.left = part.end - at;
        Ok(Some(all))
    }

    /// All records in the order of the file.
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        self.records.iter().map(|kept| self.record(kept))
    }

    /// Bytes that were not read, because no record begins there or it is cut.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    fn record(&self, kept: &Kept) -> Record<'_> {
        let bytes = self.bytes.get(kept.bytes.clone()).unwrap_or_default();
        match kept.is_begun {
            true => Record::begun(kept.header, bytes),
            false => Record::whole(kept.header, bytes),
        }
    }
}

/// The part of a file that is in memory: what is asked for next mostly stands right behind what was asked for before.
struct Window<'f> {
    file: &'f File,
    /// What is asked for ends here.
    end: usize,
    at: usize,
    bytes: Vec<u8>,
    /// So much is read the next time.
    next: usize,
}

impl<'f> Window<'f> {
    fn of(file: &'f File, end: usize) -> Window<'f> {
        Window {
            file,
            end,
            at: 0,
            bytes: Vec::new(),
            next: MOST_AT_ONCE,
        }
    }

    /// Hardly anything of what follows will be asked for.
    fn is_at_long_one(&mut self) {
        self.next = Header::LENGTH + BEGINNING;
    }

    /// The bytes at that place of the file; fewer where it ends before.
    fn bytes(&mut self, at: usize, length: usize) -> Result<&[u8]> {
        let length = length.min(self.end.saturating_sub(at));
        let is_here = at >= self.at && at + length <= self.at + self.bytes.len();
        if !is_here {
            let wanted = self.next.max(length).min(self.end.saturating_sub(at));
            self.bytes.resize(wanted, 0);
            self.at = at;
            self.file
                .read_exact_at(&mut self.bytes, at as u64)
                .map_err(cut_meanwhile)?;
            self.next = (self.next * 2).min(MOST_AT_ONCE);
        }
        Ok(self
            .bytes
            .get(at - self.at..)
            .and_then(|bytes| bytes.get(..length))
            .unwrap_or_default())
    }
}

fn cut_meanwhile(error: Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::other("somebody made it shorter while it was read"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf_data::record::Records;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::io::Write as _;

    /// Marks what is in front of a copy, with its length in two bytes.
    const MARK: u8 = 0xc0;

    /// In made-up samples the copy begins behind as many bytes as these tell.
    fn copy_in(record: &Record<'_>, length: usize) -> Option<usize> {
        let [MARK, low, high, ..] = *record.body() else {
            return None;
        };
        let copy = usize::from(u16::from_le_bytes([low, high]));
        (copy <= record.body().len() && copy < length).then_some(copy)
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend([3, 0]);
        bytes.extend((body.len() as u16 + 8).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        let copied = (3_u16..1200, 0_usize..20_000, any::<u8>()).prop_map(|(front, more, fill)| {
            let mut body = vec![fill; usize::from(front) + more];
            body[0] = MARK;
            body[1..3].copy_from_slice(&front.to_le_bytes());
            record(kind::SAMPLE, &body)
        });
        let short = (1_u32..40, vec(any::<u8>(), 0..90)).prop_map(|(kind, body)| record(kind, &body));
        let with_data = vec(any::<u8>(), 0..2000).prop_map(|data| {
            let mut bytes = record(kind::AUXTRACE, &(data.len() as u64).to_le_bytes());
            bytes.extend(data);
            bytes
        });
        prop_oneof![6 => copied, 3 => short, 1 => with_data]
    }

    proptest! {
        #[test]
        fn they_are_what_the_bytes_in_memory_tell(records in vec(any_record(), 0..60), cut in 0_usize..200, before in 0_usize..50) {
            let mut bytes = vec![0xee; before];
            bytes.extend(records.concat());
            bytes.truncate(bytes.len().saturating_sub(cut).max(before));
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("written");
            let end = bytes.len();
            file.write_all(&[0xdd; 70]).expect("written");
            let read = Beginnings::of(&file, before..end, copy_in).expect("readable");
            let mut in_memory = Records::of(&bytes[before..]);
            let Some(read) = read else {
                let kept_of = |record: Record<'_>| {
                    let length = record.body().len();
                    let copy = copy_in(&record, length).filter(|copy| length > BEGINNING && *copy <= BEGINNING);
                    copy.map_or(length, |copy| copy + 8)
                };
                let kept: usize = in_memory.map(|record| size_of::<Kept>() + kept_of(record)).sum();
                prop_assert!(kept > (end - before) / LEAST_SHARE_KEPT + MOST_AT_ONCE, "{kept} of {}", end - before);
                return Ok(());
            };
            for own in read.records() {
                let other = in_memory.next().expect("as many");
                prop_assert_eq!((own.kind, own.misc), (other.kind, other.misc));
                match own.copy() {
                    Some(place) => {
                        let front = own.body();
                        prop_assert_eq!(front, &other.body()[..front.len()]);
                        let copy = &bytes[place as usize..];
                        prop_assert!(copy.starts_with(&other.body()[front.len()..]));
                    }
                    None => prop_assert_eq!(own.body(), other.body()),
                }
            }
            prop_assert!(in_memory.next().is_none());
            prop_assert_eq!(read.left(), in_memory.left());
        }
    }

    #[test]
    fn what_is_hardly_copies_and_what_is_compressed_is_left_to_others() {
        let of = |records: &[Vec<u8>]| {
            let bytes = records.concat();
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(&bytes).expect("written");
            Beginnings::of(&file, 0..bytes.len(), copy_in).expect("readable")
        };
        let mut copied = vec![1; 20_000];
        copied[..3].copy_from_slice(&[MARK, 200, 0]);
        let copied = record(kind::SAMPLE, &copied);
        let short = record(kind::SAMPLE, &[7; 500]);
        assert!(of(&vec![copied.clone(); 50]).is_some_and(|read| read.bytes.len() == 50 * 208));
        assert!(of(&vec![short; 1000]).is_none());
        assert!(of(&[copied, record(kind::COMPRESSED, &[1, 2, 3])]).is_none());
    }

    #[test]
    fn a_file_that_got_shorter_is_told() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&record(kind::SAMPLE, &[7; 500])).expect("written");
        let error = Beginnings::of(&file, 0..4000, copy_in).expect_err("too short");
        assert!(error.to_string().contains("shorter"), "{error}");
    }
}
