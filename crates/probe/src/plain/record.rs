//! The records that the kernel writes into a ring of perf events (man 2 perf_event_open, "MMAP layout";
//! include/uapi/linux/perf_event.h). Bytes in, values out.

use scaleprof_profile::walk::Registers;

/// What is asked for with every sample, in the order in which the kernel writes it: thread, time, event, CPU, period, call
/// chain (of the kernel), registers and stack of user space.
pub(super) const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 5 | 1 << 12 | 1 << 13;

/// The registers that are asked for, as bits of `enum perf_event_x86_regs`: BP, SP, IP.
#[cfg(target_arch = "x86_64")]
pub(super) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// The registers that are asked for, as bits of `enum perf_event_arm_regs`: X29, LR, SP, PC.
#[cfg(target_arch = "aarch64")]
pub(super) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

/// A record, as far as it matters here.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Record<'a> {
    /// A thread was on a CPU.
    Sample(Sample<'a>),
    /// A thread came onto its CPU or left it.
    Switch { onto: bool, at: Moment },
    /// A thread began.
    Fork {
        process: u32,
        thread: u32,
        parent: u32,
        time_ns: u64,
    },
    /// A thread ended.
    Exit { process: u32, thread: u32, time_ns: u64 },
    /// A thread was given a name.
    Name { process: u32, thread: u32, name: String },
    /// A file of code was mapped.
    Mapped,
    /// So many records found no room.
    Lost(u64),
    /// The kernel stopped sampling for a while because it took too much time.
    Throttled,
}

/// Who, when and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) process: u32,
    pub(super) thread: u32,
    /// CLOCK_MONOTONIC.
    pub(super) time_ns: u64,
    /// The number of the event that tells it.
    pub(super) event: u64,
    pub(super) cpu: u32,
}

/// A thread on a CPU.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) at: Moment,
    /// Nanoseconds that it stands for.
    pub(super) period_ns: u64,
    /// Addresses in the kernel, innermost first; none for a thread in user space.
    pub(super) kernel: Vec<u64>,
    /// Registers of user space; nothing for a thread without any.
    pub(super) registers: Option<Registers>,
    /// The stack from the stack pointer outwards, as far as it was copied.
    pub(super) stack: &'a [u8],
}

impl Sample<'_> {
    /// The eight bytes at an address of the thread's stack.
    pub(super) fn read_stack(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.registers?.sp)?).ok()?;
        let bytes = self.stack.get(offset..offset.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}

const SWITCHED_OUT: u16 = 1 << 13;
/// Numbers above this one in a call chain are marks between kernel and user space (PERF_CONTEXT_MAX).
const MARKS_FROM: u64 = -4095i64 as u64;

/// Reads one record, header included. Kinds that do not matter and records that are cut short give nothing.
pub(super) fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    let mut fields = Fields(bytes);
    let kind = fields.u32()?;
    let about = fields.u32()?;
    // Size in the upper half, which is the length of the slice.
    let about = about as u16;
    Some(match kind {
        1 | 10 => Record::Mapped,
        2 => {
            let _id = fields.u64()?;
            Record::Lost(fields.u64()?)
        }
        3 => {
            let (process, thread) = (fields.u32()?, fields.u32()?);
            let name = fields.0.split(|byte| *byte == 0).next()?;
            let name = String::from_utf8_lossy(name).into_owned();
            Record::Name { process, thread, name }
        }
        4 | 7 => {
            let (process, _parent) = (fields.u32()?, fields.u32()?);
            let (thread, parent) = (fields.u32()?, fields.u32()?);
            let time_ns = fields.u64()?;
            match kind {
                4 => Record::Exit {
                    process,
                    thread,
                    time_ns,
                },
                _ => Record::Fork {
                    process,
                    thread,
                    parent,
                    time_ns,
                },
            }
        }
        5 => Record::Throttled,
        9 => Record::Sample(sample(&mut fields)?),
        13 => Record::Lost(fields.u64()?),
        14 => Record::Switch {
            onto: about & SWITCHED_OUT == 0,
            at: moment(&mut fields)?,
        },
        _ => return None,
    })
}

/// The fields that stand at the end of records of all kinds but samples (`sample_id_all`).
fn moment(fields: &mut Fields<'_>) -> Option<Moment> {
    let (process, thread) = (fields.u32()?, fields.u32()?);
    let (time_ns, event) = (fields.u64()?, fields.u64()?);
    let (cpu, _reserved) = (fields.u32()?, fields.u32()?);
    Some(Moment {
        process,
        thread,
        time_ns,
        event,
        cpu,
    })
}

/// Who ran when a record was written, and by which event it was: at the begin of samples, at the end of all others.
pub(super) fn moment_of(bytes: &[u8]) -> Option<Moment> {
    const HEADER: usize = 8;
    const LENGTH: usize = 32;
    let kind = Fields(bytes).u32()?;
    let begins = match kind {
        9 => HEADER,
        _ => bytes.len().checked_sub(LENGTH).filter(|begins| *begins >= HEADER)?,
    };
    moment(&mut Fields(bytes.get(begins..)?))
}

fn sample<'a>(fields: &mut Fields<'a>) -> Option<Sample<'a>> {
    let at = moment(fields)?;
    let period_ns = fields.u64()?;
    let kernel = call_chain(fields)?;
    let registers = registers(fields)?;
    let room = usize::try_from(fields.u64()?).ok()?;
    let mut stack = fields.bytes(room)?;
    if room > 0 {
        let copied = usize::try_from(fields.u64()?).ok()?;
        stack = stack.get(..copied).unwrap_or(stack);
    }
    Some(Sample {
        at,
        period_ns,
        kernel,
        registers,
        stack,
    })
}

fn call_chain(fields: &mut Fields<'_>) -> Option<Vec<u64>> {
    let length = usize::try_from(fields.u64()?).ok()?;
    let mut words = Fields(fields.bytes(length.checked_mul(8)?)?);
    Some(
        std::iter::from_fn(|| words.u64())
            .filter(|address| *address < MARKS_FROM)
            .collect(),
    )
}

fn registers(fields: &mut Fields<'_>) -> Option<Option<Registers>> {
    const NO_REGISTERS: u64 = 0;
    if fields.u64()? == NO_REGISTERS {
        return Some(None);
    }
    #[cfg(target_arch = "x86_64")]
    let registers = {
        let (fp, sp, pc) = (fields.u64()?, fields.u64()?, fields.u64()?);
        Registers { pc, sp, fp, lr: 0 }
    };
    #[cfg(target_arch = "aarch64")]
    let registers = {
        let (fp, lr) = (fields.u64()?, fields.u64()?);
        let (sp, pc) = (fields.u64()?, fields.u64()?);
        Registers { pc, sp, fp, lr }
    };
    Some(Some(registers))
}

/// Bytes that are read from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(first)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn record(kind: u32, about: u16, words: &[u64]) -> Vec<u8> {
        let size = (8 + words.len() * 8) as u16;
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(about.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    #[test]
    fn a_switch_says_who_came_or_went() {
        let words = [pair(7, 8), 1000, 77, pair(3, 0)];
        let at = Moment {
            process: 7,
            thread: 8,
            time_ns: 1000,
            event: 77,
            cpu: 3,
        };
        assert_eq!(parse(&record(14, 0, &words)), Some(Record::Switch { onto: true, at }));
        assert_eq!(
            parse(&record(14, SWITCHED_OUT, &words)),
            Some(Record::Switch { onto: false, at })
        );
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_sample_gives_its_stack_as_far_as_it_was_copied() {
        let kernel_mark = -128i64 as u64;
        let words = [
            pair(7, 8),
            1000,
            77,
            pair(3, 0),
            10_101_010,
            2,
            kernel_mark,
            0xffff_8000,
            1,
            20,
            30,
            40,
            16,
            5,
            6,
            8,
        ];
        let bytes = record(9, 0, &words);
        let Some(Record::Sample(sample)) = parse(&bytes) else {
            panic!("a sample");
        };
        assert_eq!(sample.kernel, [0xffff_8000]);
        assert_eq!(sample.registers.map(|r| (r.fp, r.sp, r.pc)), Some((20, 30, 40)));
        assert_eq!(
            (sample.read_stack(30), sample.read_stack(38), sample.read_stack(29)),
            (Some(5), None, None)
        );
        assert_eq!(sample.period_ns, 10_101_010);
        assert_eq!(moment_of(&bytes), Some(sample.at));
    }

    #[test]
    fn every_record_tells_who_wrote_it() {
        let task = [pair(7, 1), pair(9, 8), 55];
        let at = [pair(7, 8), 1000, 77, pair(3, 0)];
        let bytes = record(7, 0, &[&task[..], &at].concat());
        let moment = moment_of(&bytes).expect("it stands at the end");
        assert_eq!((moment.thread, moment.event, moment.cpu), (8, 77, 3));
        assert_eq!(moment_of(&record(7, 0, &at[1..])), None);
    }

    #[test]
    fn beginnings_ends_names_and_losses_are_told_apart() {
        let task = [pair(7, 1), pair(9, 8), 55];
        let fork = Record::Fork {
            process: 7,
            thread: 9,
            parent: 8,
            time_ns: 55,
        };
        assert_eq!(parse(&record(7, 0, &task)), Some(fork));
        assert!(matches!(
            parse(&record(4, 0, &task)),
            Some(Record::Exit { thread: 9, .. })
        ));
        assert_eq!(parse(&record(2, 0, &[1, 44])), Some(Record::Lost(44)));
        let name = u64::from_ne_bytes(*b"purge\0xx");
        let named = Record::Name {
            process: 7,
            thread: 9,
            name: "purge".to_owned(),
        };
        assert_eq!(parse(&record(3, 0, &[pair(7, 9), name])), Some(named));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(kind in 0u32..16, about: u16, bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut record = kind.to_ne_bytes().to_vec();
            record.extend(about.to_ne_bytes());
            record.extend(bytes);
            let _ = moment_of(&record);
            if let Some(Record::Sample(sample)) = parse(&record) {
                let _ = sample.read_stack(0);
            }
        }

        #[test]
        fn any_words_are_read_without_panic(kind in 0u32..16, words in proptest::collection::vec(0u64..40, 0..40)) {
            if let Some(Record::Sample(sample)) = parse(&record(kind, 0, &words)) {
                prop_assert!(sample.stack.len() <= words.len() * 8);
            }
        }
    }
}
