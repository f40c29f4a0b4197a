//! The records of a recording, one behind the other (`struct perf_event_header`).

use super::cursor::{Cursor, Words, until_zero};
use super::features::hexadecimal;
use scaleprof_binary::mapped_file::prefetch;
use scaleprof_binary::perf_map::is_anonymous;

/// What a record is.
pub(super) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    /// User stacks that were taken after the sample (Linux 6.19); no released reader crate knows it.
    pub(crate) const CALLCHAIN_DEFERRED: u32 = 22;
    /// From here on perf wrote them itself.
    pub(crate) const FIRST_OF_PERF: u32 = 64;
    pub(crate) const HEADER_ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const AUXTRACE_INFO: u32 = 70;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const HEADER_FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
}

/// The process of the kernel's mappings, which perf makes up.
pub(super) const KERNEL_PROCESS: u32 = u32::MAX;

/// How a record begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// Of the whole record in bytes.
    length: u16,
}

impl Header {
    /// Its own length.
    pub(super) const LENGTH: usize = 8;

    /// Reads one; none where too few bytes are left.
    pub(super) fn of(bytes: &[u8]) -> Option<Header> {
        let header = bytes.first_chunk::<{ Header::LENGTH }>()?;
        Some(Header {
            kind: u32::from_le_bytes([header[0], header[1], header[2], header[3]]),
            misc: u16::from_le_bytes([header[4], header[5]]),
            length: u16::from_le_bytes([header[6], header[7]]),
        })
    }

    /// Length of what stands behind it; none where it cannot be a record's.
    pub(super) fn body_length(self) -> Option<usize> {
        usize::from(self.length).checked_sub(Header::LENGTH)
    }
}

/// A record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    /// Whether the copy of a stack is left out, with all behind it; its place in the file stands in front then, in eight bytes: there may be
    /// millions of records, and few of them need it.
    is_begun: bool,
    bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// One that is in memory as a whole.
    pub(super) fn whole(Header { kind, misc, .. }: Header, body: &'a [u8]) -> Record<'a> {
        Record {
            kind,
            misc,
            is_begun: false,
            bytes: body,
        }
    }

    /// A sample without the copy of its stack and what is behind it: the copy's place in the file in eight bytes, and then what stands in
    /// front of it.
    pub(super) fn begun(Header { kind, misc, .. }: Header, bytes: &'a [u8]) -> Record<'a> {
        Record {
            kind,
            misc,
            is_begun: true,
            bytes,
        }
    }

    /// So many bytes of one that is in memory as a whole.
    pub(super) fn first(&self, length: usize) -> Record<'a> {
        Record {
            bytes: self.bytes.get(..length).unwrap_or(self.bytes),
            ..*self
        }
    }

    /// What stands behind its header, as far as it is in memory.
    pub(super) fn body(&self) -> &'a [u8] {
        match self.is_begun {
            true => self.bytes.get(8..).unwrap_or_default(),
            false => self.bytes,
        }
    }

    /// Says that it will be looked at soon: what a sample begins with, and the number behind a copied stack. What is short is at hand.
    pub(super) fn prefetch(&self) {
        /// Of a sample all but its call chain and the copy.
        const BEGINNING: usize = 320;
        const END: usize = 64;
        let body = self.body();
        if body.len() > 2 * BEGINNING {
            prefetch(&body[..BEGINNING]);
            prefetch(&body[body.len() - END..]);
        }
    }

    /// Where in the file the copy of a stack is that is not in memory.
    pub(super) fn copy(&self) -> Option<u64> {
        self.is_begun.then(|| Cursor::new(self.bytes).u64()).flatten()
    }

    /// Length of what belongs to it and stands behind it: what a processor traced.
    pub(super) fn trailing(&self) -> usize {
        if self.kind != kind::AUXTRACE {
            return 0;
        }
        let length = Cursor::new(self.body()).u64().unwrap_or(0);
        usize::try_from(length).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
impl<'a> Record<'a> {
    pub(super) fn of_sample(body: &'a [u8]) -> Record<'a> {
        Record {
            kind: kind::SAMPLE,
            misc: 2,
            is_begun: false,
            bytes: body,
        }
    }

    pub(super) fn of_sample_without_copy(bytes: &'a [u8]) -> Record<'a> {
        Record {
            is_begun: true,
            ..Record::of_sample(bytes)
        }
    }
}

/// Goes through records; ends where there are no more bytes or what is there is no record.
#[derive(Debug, Clone)]
pub(super) struct Records<'a> {
    rest: &'a [u8],
    broken: bool,
}

impl<'a> Records<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Records<'a> {
        Records {
            rest: bytes,
            broken: false,
        }
    }

    /// Bytes that were not read, because no record begins there or it is cut.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// Passes over bytes that belong to the record before and stand behind it.
    pub(super) fn pass_over(&mut self, length: u64) -> &'a [u8] {
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(self.rest.len());
        let (skipped, rest) = self.rest.split_at(length);
        self.rest = rest;
        skipped
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        if self.broken {
            return None;
        }
        let header = Header::of(self.rest)?;
        let rest = &self.rest[Header::LENGTH..];
        let Some((body, rest)) = header.body_length().and_then(|length| rest.split_at_checked(length)) else {
            self.broken = true;
            return None;
        };
        let record = Record::whole(header, body);
        self.rest = &rest[record.trailing().min(rest.len())..];
        Some(record)
    }
}

/// A file that was mapped as code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mapped {
    pub(super) process: u32,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) file_offset: u64,
    pub(super) path: String,
    pub(super) build_id: Option<String>,
    /// Device (major, minor) and inode, where the record has these and no build-id.
    pub(super) inode: Option<(u32, u32, u64)>,
}

impl Mapped {
    /// Whether it is code in memory that shows no file.
    pub(super) fn is_anonymous(&self) -> bool {
        is_anonymous(&self.path)
    }

    /// What a record of the kinds MMAP and MMAP2 tells; none for one of data.
    pub(super) fn of(record: &Record<'_>) -> Option<Mapped> {
        /// MMAP: not code.
        const DATA: u16 = 1 << 13;
        /// MMAP2: with a build-id in place of device and inode.
        const WITH_BUILD_ID: u16 = 1 << 14;
        const EXECUTABLE: u32 = 4;
        let mut cursor = Cursor::new(record.body());
        let (process, _thread) = (cursor.u32()?, cursor.u32()?);
        let (start, length, file_offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        let mut build_id = None;
        let mut inode = None;
        if record.kind == kind::MMAP2 {
            let identity = cursor.take(24)?;
            let (protection, _flags) = (cursor.u32()?, cursor.u32()?);
            // perf makes up the kernel's, without a protection.
            if protection & EXECUTABLE == 0 && process != KERNEL_PROCESS {
                return None;
            }
            if record.misc & WITH_BUILD_ID != 0 {
                let length = usize::from(identity[0]).min(20);
                build_id = Some(hexadecimal(&identity[4..4 + length])).filter(|id| !id.is_empty());
            } else {
                let mut identity = Cursor::new(identity);
                let (major, minor, number) = (identity.u32()?, identity.u32()?, identity.u64()?);
                inode = Some((major, minor, number)).filter(|(.., number)| *number != 0);
            }
        } else if record.misc & DATA != 0 {
            return None;
        }
        Some(Mapped {
            process,
            start,
            length,
            file_offset,
            path: until_zero(cursor.rest()),
            build_id,
            inode,
        })
    }
}

/// A thread got a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) name: String,
    /// It began another program.
    pub(super) exec: bool,
}

impl Named {
    pub(super) fn of(record: &Record<'_>) -> Option<Named> {
        const EXEC: u16 = 1 << 13;
        let mut cursor = Cursor::new(record.body());
        Some(Named {
            process: cursor.u32()?,
            thread: cursor.u32()?,
            // 15 bytes and a zero; behind it may stand the sample's fields.
            name: until_zero(cursor.rest().get(..16).unwrap_or(cursor.rest())),
            exec: record.misc & EXEC != 0,
        })
    }
}

/// A thread or process began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Forked {
    pub(super) process: u32,
    pub(super) parent: u32,
    pub(super) thread: u32,
    /// Whether it ran before the recording began: perf tells of such ones as of new ones, and what it has mapped is told by itself.
    pub(super) ran_before: bool,
}

impl Forked {
    pub(super) fn of(record: &Record<'_>) -> Option<Forked> {
        // PERF_RECORD_MISC_FORK_EXEC (include/uapi/linux/perf_event.h).
        const FORK_EXEC: u16 = 1 << 13;
        let mut cursor = Cursor::new(record.body());
        Some(Forked {
            process: cursor.u32()?,
            parent: cursor.u32()?,
            thread: cursor.u32()?,
            ran_before: record.misc & FORK_EXEC != 0,
        })
    }
}

/// The user part of a stack that was taken when the thread returned to user space.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deferred<'a> {
    /// What the samples name that it belongs to.
    pub(super) cookie: u64,
    pub(super) addresses: Words<'a>,
}

impl<'a> Deferred<'a> {
    pub(super) fn of(record: &Record<'a>) -> Option<Deferred<'a>> {
        let mut cursor = Cursor::new(record.body());
        let cookie = cursor.u64()?;
        let count = cursor.u64()?;
        Some(Deferred {
            cookie,
            addresses: cursor.words(count)?,
        })
    }
}

/// Samples that found no room, by the two accounts that there are of them: the ring's (LOST), and since Linux 6.0 the event's, which perf
/// writes at the end (LOST_SAMPLES).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lost {
    ring: u64,
    event: u64,
}

impl Lost {
    /// Adds what a record of one of the two kinds tells.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        // Dropped on purpose, by a filter of the user's (PERF_RECORD_MISC_LOST_SAMPLES_BPF).
        const BY_FILTER: u16 = 1 << 15;
        let mut cursor = Cursor::new(record.body());
        if record.kind == kind::LOST {
            let lost = cursor.u64().and_then(|_id| cursor.u64());
            self.ring = self.ring.saturating_add(lost.unwrap_or(0));
        } else if record.misc & BY_FILTER == 0 {
            self.event = self.event.saturating_add(cursor.u64().unwrap_or(0));
        }
    }

    /// How many: each account may lack what the other has, and neither has any twice.
    pub(super) fn samples(self) -> u64 {
        self.ring.max(self.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of the kind MMAP2 with a build-id in place of the inode.
    fn mapping(process: u32, protection: u32) -> Vec<u8> {
        const WITH_BUILD_ID: u16 = 1 << 14;
        let mut body = Vec::new();
        body.extend([process, 0].map(u32::to_le_bytes).concat());
        body.extend(
            [0xffff_ffff_8100_0000_u64, 0x1000, 0xffff_ffff_8100_0000]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let mut identity = [0_u8; 24];
        identity[0] = 4;
        identity[4..8].copy_from_slice(&[0xab, 0xcd, 0xef, 1]);
        body.extend(identity);
        body.extend([protection, 0].map(u32::to_le_bytes).concat());
        body.extend(b"[kernel.kallsyms]_text\0\0");
        let mut record = kind::MMAP2.to_le_bytes().to_vec();
        record.extend(WITH_BUILD_ID.to_le_bytes());
        record.extend((8 + body.len() as u16).to_le_bytes());
        record.extend(body);
        record
    }

    /// perf 7.2 tells of the kernel as of a file with a build-id, and gives it no protection.
    #[test]
    fn the_kernel_is_mapped_without_a_protection_and_nothing_else_is() {
        let of = |bytes: &[u8]| Records::of(bytes).next().as_ref().and_then(Mapped::of);
        let kernel = of(&mapping(KERNEL_PROCESS, 0)).expect("a mapping");
        assert_eq!(kernel.path, "[kernel.kallsyms]_text");
        assert_eq!(kernel.build_id.as_deref(), Some("abcdef01"));
        assert_eq!(of(&mapping(7, 0)), None);
        assert!(of(&mapping(7, 4)).is_some());
    }
}
