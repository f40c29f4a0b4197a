//! One sample (`PERF_RECORD_SAMPLE`): its fields stand where its event says.

use super::attribute::{Attribute, field};
use super::copied_stack::CopiedStack;
use super::cursor::{Cursor, Words};
use super::record::Record;

/// The fields of a sample that are used. What an event does not record is 0 or empty.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sampled<'a> {
    pub(super) ip: u64,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) time_ns: u64,
    pub(super) cpu: u32,
    pub(super) period: Option<u64>,
    pub(super) chain: Words<'a>,
    /// What a tracepoint says.
    pub(super) raw: &'a [u8],
    /// Last branches, the newest first: three numbers each, from, to and flags.
    pub(super) branches: Words<'a>,
    pub(super) registers: Words<'a>,
    /// The copy of the user stack.
    pub(super) copied: CopiedStack<'a>,
}

/// Branch stacks begin with a number of the hardware's (PERF_SAMPLE_BRANCH_HW_INDEX).
const WITH_HARDWARE_INDEX: u64 = 1 << 17;
/// Behind them stands what events counted up to each branch (PERF_SAMPLE_BRANCH_COUNTERS).
const WITH_COUNTERS: u64 = 1 << 19;

impl<'a> Sampled<'a> {
    /// Reads a sample of that event; none where it is cut.
    pub(super) fn of(record: &Record<'a>, event: &Attribute) -> Option<Sampled<'a>> {
        let mut cursor = Cursor::new(record.body());
        let mut sample = Sampled::default();
        if let Some(length) = sample.read(&mut cursor, event)? {
            sample.copied = match record.copy() {
                Some(place) => CopiedStack::InFile { place, length },
                None => CopiedStack::Here(cursor.take(length)?),
            };
        }
        if event.is_off_cpu() && event.has(field::RAW) {
            sample.take_wait_from_raw()?;
        }
        Some(sample)
    }

    /// Where in a sample, of which this is the beginning and which is so long as a whole, the copy of its stack begins; none where it
    /// has none, or the beginning is too short to tell.
    pub(super) fn copy_in(beginning: &[u8], whole: usize, event: &Attribute) -> Option<usize> {
        let mut cursor = Cursor::new(beginning);
        let length = Sampled::default().read(&mut cursor, event)??;
        let from = beginning.len() - cursor.rest().len();
        (length <= whole - from).then_some(from)
    }

    /// Reads all fields up to the copy of the stack, of which it returns the length, with that of the number behind it; outside none where the
    /// sample is cut.
    fn read(&mut self, cursor: &mut Cursor<'a>, event: &Attribute) -> Option<Option<usize>> {
        let sample = self;
        let has = |field| event.has(field);
        if has(field::IDENTIFIER) {
            cursor.u64()?;
        }
        if has(field::IP) {
            sample.ip = cursor.u64()?;
        }
        if has(field::TID) {
            sample.process = cursor.u32()?;
            sample.thread = cursor.u32()?;
        }
        if has(field::TIME) {
            sample.time_ns = cursor.u64()?;
        }
        for field in [field::ADDR, field::ID, field::STREAM_ID] {
            if has(field) {
                cursor.u64()?;
            }
        }
        if has(field::CPU) {
            sample.cpu = cursor.u32()?;
            cursor.u32()?;
        }
        if has(field::PERIOD) {
            sample.period = Some(cursor.u64()?);
        }
        if has(field::READ) {
            skip_read(cursor, event.read_format)?;
        }
        if has(field::CALLCHAIN) {
            let count = cursor.u64()?;
            sample.chain = cursor.words(count)?;
        }
        if has(field::RAW) {
            let length = cursor.u32()?;
            sample.raw = cursor.take(length as usize)?;
        }
        if has(field::BRANCH_STACK) {
            let count = cursor.u64()?;
            if event.branch_sample_type & WITH_HARDWARE_INDEX != 0 {
                cursor.u64()?;
            }
            sample.branches = cursor.words(count.checked_mul(3)?)?;
            if event.branch_sample_type & WITH_COUNTERS != 0 {
                cursor.words(count)?;
            }
        }
        if has(field::REGS_USER) && cursor.u64()? != 0 {
            sample.registers = cursor.words(u64::from(event.registers.count_ones()))?;
        }
        if has(field::STACK_USER) {
            let length = usize::try_from(cursor.u64()?).ok()?;
            if length > 0 {
                return Some(Some(length.checked_add(8)?));
            }
        }
        Some(None)
    }

    /// Since perf 6.16 a wait's thread, length and stack stand in the raw data, as the kernel program put them out (`off_cpu_dump`,
    /// tools/perf/util/bpf_skel/off_cpu.bpf.c); the fields outside are those of whoever ran when the wait ended.
    fn take_wait_from_raw(&mut self) -> Option<()> {
        let mut raw = Cursor::new(self.raw);
        self.process = raw.u32()?;
        self.thread = raw.u32()?;
        self.period = Some(raw.u64()?);
        let count = raw.u64()?;
        self.chain = raw.words(count)?;
        self.ip = self.chain.get(1).unwrap_or(0);
        Some(())
    }

    /// The register of that number, as the kernel numbers them (arch/*/include/uapi/asm/perf_regs.h).
    pub(super) fn register(&self, event: &Attribute, number: u32) -> Option<u64> {
        let bit = 1_u64.checked_shl(number)?;
        if event.registers & bit == 0 {
            return None;
        }
        self.registers.get((event.registers & (bit - 1)).count_ones() as usize)
    }
}

fn skip_read(cursor: &mut Cursor<'_>, format: u64) -> Option<()> {
    const TIMES: u64 = 0b11;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = u64::from((format & TIMES).count_ones());
    let each = 1 + u64::from((format & (ID | LOST)).count_ones());
    let count = match format & GROUP {
        0 => times + each,
        _ => cursor.u64()?.checked_mul(each)?.checked_add(times)?,
    };
    cursor.words(count).map(|_| ())
}

/// The time of a record that is no sample: it stands before its end.
pub(super) fn time_at_end(body: &[u8], event: &Attribute) -> Option<u64> {
    if !event.ids_everywhere || !event.has(field::TIME) {
        return None;
    }
    let behind = [field::ID, field::STREAM_ID, field::CPU, field::IDENTIFIER];
    let behind = behind.iter().filter(|field| event.has(**field)).count();
    let from = body.len().checked_sub((behind + 1) * 8)?;
    Cursor::new(&body[from..]).u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled<'a>(body: &'a [u8], event: &Attribute) -> Option<Sampled<'a>> {
        Sampled::of(&Record::of_sample(body), event)
    }

    fn stack(sample: &Sampled<'_>) -> Vec<u8> {
        sample.copied.bytes(None, &mut Vec::new()).expect("in memory").to_vec()
    }

    fn words(of: &[u64]) -> Vec<u8> {
        of.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn every_field_is_found_where_the_event_says() {
        let event = Attribute {
            sample_type: field::IDENTIFIER
                | field::IP
                | field::TID
                | field::TIME
                | field::CPU
                | field::PERIOD
                | field::READ
                | field::CALLCHAIN
                | field::REGS_USER
                | field::STACK_USER,
            // A group of two with times and numbers.
            read_format: 0b1111,
            // bp, sp and ip of x86-64.
            registers: 1 << 6 | 1 << 7 | 1 << 8,
            ..Attribute::default()
        };
        let mut body = words(&[7, 0x1000, 9 << 32 | 8, 55, 3, 1000]);
        body.extend(words(&[2, 10, 11, 1, 70, 2, 71]));
        body.extend(words(&[3, 0xffff_ffff_ffff_fe00, 0x1000, 0x2000]));
        body.extend(words(&[2, 0xb0, 0x5000, 0x1000]));
        body.extend(words(&[24, 1, 2, 3, 16]));
        let sample = sampled(&body, &event).expect("whole");
        assert_eq!((sample.process, sample.thread, sample.time_ns), (8, 9, 55));
        assert_eq!((sample.cpu, sample.period), (3, Some(1000)));
        assert_eq!(sample.chain.iter().collect::<Vec<u64>>()[1..], [0x1000, 0x2000]);
        let register = |number| sample.register(&event, number);
        assert_eq!(
            (register(6), register(7), register(8)),
            (Some(0xb0), Some(0x5000), Some(0x1000))
        );
        assert_eq!(register(0), None);
        assert_eq!(stack(&sample), words(&[1, 2]), "what was not filled is left out");
        for cut in 0..body.len() {
            assert!(sampled(&body[..cut], &event).is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn a_sample_whose_copy_is_elsewhere_has_the_same_fields() {
        let event = Attribute {
            sample_type: field::IP | field::CALLCHAIN | field::REGS_USER | field::STACK_USER,
            registers: 1 << 6,
            ..Attribute::default()
        };
        // Instruction pointer, chain, registers, and a copy of 16 bytes.
        let body = words(&[0x1000, 1, 0x2000, 2, 0xb0, 16, 3, 4, 8]);
        let copy = 6 * 8;
        for length in 0..body.len() {
            let found = Sampled::copy_in(&body[..length], body.len(), &event);
            assert_eq!(found, (length >= copy).then_some(copy), "of the first {length}");
        }
        assert_eq!(Sampled::copy_in(&body, body.len() - 1, &event), None, "the copy is cut");
        let begun = [&words(&[500]), &body[..copy]].concat();
        let begun = Record::of_sample_without_copy(&begun);
        let (own, whole) = (
            Sampled::of(&begun, &event).expect("whole"),
            sampled(&body, &event).expect("whole"),
        );
        assert_eq!(own.copied, CopiedStack::InFile { place: 500, length: 24 });
        assert_eq!((own.ip, own.registers.get(0)), (whole.ip, whole.registers.get(0)));
        assert_eq!(own.chain.get(0), whole.chain.get(0));
    }

    #[test]
    fn what_stands_around_the_last_branches_is_passed_over() {
        for (with, index, counters) in [
            (0, &[][..], &[][..]),
            (WITH_HARDWARE_INDEX, &[5], &[]),
            (WITH_COUNTERS, &[], &[8, 9]),
            (WITH_HARDWARE_INDEX | WITH_COUNTERS, &[5], &[8, 9]),
        ] {
            let event = Attribute {
                sample_type: field::BRANCH_STACK | field::STACK_USER,
                branch_sample_type: with,
                ..Attribute::default()
            };
            let branches = [1, 2, 3, 4, 5, 6];
            let body = words(&[&[2][..], index, &branches, counters, &[8, 77, 8]].concat());
            let sample = sampled(&body, &event).expect("whole");
            assert_eq!(sample.branches.iter().collect::<Vec<u64>>(), branches);
            assert_eq!(stack(&sample), words(&[77]));
            for cut in 0..body.len() {
                assert!(sampled(&body[..cut], &event).is_none(), "cut at {cut}");
            }
        }
    }

    #[test]
    fn numbers_that_overflow_are_no_sample() {
        let event = Attribute {
            sample_type: field::BRANCH_STACK,
            ..Attribute::default()
        };
        for many in [u64::MAX, u64::MAX / 3, u64::MAX / 24, 1 << 40] {
            assert!(sampled(&words(&[many, 1, 2, 3]), &event).is_none(), "{many}");
        }
        let event = Attribute {
            sample_type: field::READ,
            read_format: 0b1111,
            ..Attribute::default()
        };
        assert!(sampled(&words(&[u64::MAX / 2]), &event).is_none());
    }
}
