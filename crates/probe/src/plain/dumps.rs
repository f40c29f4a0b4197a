//! Samples as the kernel hands them over, before anybody walks their stacks: for those who compare walkers.

use std::io;
use std::time::{Duration, Instant};

use scaleprof_profile::walk::Registers;

use super::record::Record;
use super::recorder::{Recorder, Told};
use super::sampling_event::EventOptions;
use super::thread_table::ThreadTable;
use super::{PlainOptions, access};
use crate::error::ProbeError;

/// Between two looks into the rings, which hold several times what comes meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// Samples the threads of a process for `time` and hands over where each stood in user space, in the kernel's order on each CPU: its
/// registers, and what reads the eight bytes at an address of the part of its stack that was copied.
///
/// Only `frequency_hz` and `stack_bytes` of the options matter. Gives how many samples found no room.
///
/// # Errors
/// Where there is no such process, or where the kernel lets nobody sample it or one of its threads.
pub fn sampled_stacks(
    pid: u32,
    options: PlainOptions,
    time: Duration,
    mut take: impl FnMut(Registers, &mut dyn FnMut(u64) -> Option<u64>),
) -> Result<u64, ProbeError> {
    let refused = |source| ProbeError::NoProcess { pid, source };
    let threads = ThreadTable::new(pid, false).map_err(refused)?.numbers();
    let first = threads.first().ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
    let events = EventOptions {
        frequency_hz: options.frequency_hz,
        stack_bytes: options.stack_bytes,
        kernel: false,
        switches: false,
        children: false,
        wake_at: 0,
    };
    access::allow_many_files();
    let mut recorder = Recorder::start(&access::cpus_of(&threads), events, *first).map_err(refused)?;
    threads.iter().for_each(|thread| recorder.follow(*thread));
    if let Some((threads, why)) = recorder.refused() {
        return Err(ProbeError::Event(format!("{threads} threads cannot be sampled: {why}")));
    }
    let mut lost = 0;
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::thread::sleep(PAUSE);
        recorder.drain(|told| match told {
            // A child's may come too: see EventOptions::children.
            Told::Record(Record::Sample(sample)) if sample.at.process == pid => {
                if let Some(registers) = sample.registers {
                    take(registers, &mut |address| sample.read_stack(address));
                }
            }
            Told::Record(Record::Lost(records)) => lost += records,
            _ => {}
        });
    }
    Ok(lost)
}
