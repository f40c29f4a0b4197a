//! When threads waited, where perf summed their waits up in the kernel (`perf record --off-cpu`).
//!
//! perf writes the sum of all waits of a thread at one place when it ends, and from 6.16 on each long wait when it is over. Of a server whose
//! threads mostly wait, samples on CPUs begin late and end early: the recording is longer than from the first of them to the last.

use super::passed::Taken;
use super::record::Record;
use std::collections::HashMap;
use std::ops::Range;

/// Times from here on are no times: perf gives the sums of waits, which it writes when it ends, one behind all others
/// (`OFF_CPU_TIMESTAMP`, tools/perf/util/off_cpu.h).
const NO_TIME: u64 = 0xffff_ffff_0000_0000;

/// Whether a sample has a time of its own.
pub(super) fn has_time(taken: &Taken) -> bool {
    taken.counted.time_ns < NO_TIME
}

/// From the first to the last moment of a recording: of any of its records, from the beginning of any wait that ended at a known time, and as
/// long as the sums of a thread's waits.
pub(super) fn reach(records: &[(u64, Record<'_>)], taken: &[Taken], is_off_cpu: impl Fn(&Taken) -> bool) -> Range<u64> {
    let mut times = records
        .iter()
        .map(|(time, _)| *time)
        .filter(|time| (1..NO_TIME).contains(time));
    let Some(mut first) = times.next() else { return 0..0 };
    // They are by time.
    let last = times.next_back().unwrap_or(first);
    let mut summed: HashMap<u32, u64> = HashMap::new();
    for wait in taken.iter().filter(|taken| is_off_cpu(taken)) {
        let length = wait.counted.period as u64;
        if has_time(wait) {
            first = first.min(wait.counted.time_ns.saturating_sub(length));
        } else {
            let sum = summed.entry(wait.counted.thread).or_default();
            *sum = sum.saturating_add(length);
        }
    }
    let longest = summed.values().copied().max().unwrap_or(0);
    first.min(last.saturating_sub(longest))..last
}

/// Gives samples without a time that of the last moment. Returns how many there were.
pub(super) fn settle_times(taken: &mut [Taken], last_ns: u64) -> usize {
    let mut settled = 0;
    for sample in taken.iter_mut().filter(|taken| !has_time(taken)) {
        sample.counted.time_ns = last_ns;
        settled += 1;
    }
    settled
}
