//! What was seen of the server's threads between two readings, whoever saw it.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::collections::{BTreeMap, HashMap};

use scaleprof_probe::plain::PlainWatch;
use scaleprof_probe::{WatchCounts, WatchReading};
use scaleprof_profile::RawSample;

use crate::sample_store::{SampleStore, StoredSample};

/// What was seen between two readings.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    /// Nanoseconds of CLOCK_MONOTONIC; 0 where the watch had ended.
    pub(crate) taken_ns: u64,
    /// How long the kernel's programs watched, and how long of it they saw switches; none without them.
    pub(crate) switches_seen: Option<SwitchTime>,
    pub(crate) threads: Vec<ThreadStretch>,
    pub(crate) samples: Vec<StoredSample>,
    /// Since the watch began.
    pub(crate) counts: Counts,
}

#[derive(Debug)]
pub(crate) struct ThreadStretch {
    pub(crate) thread: u32,
    pub(crate) name: String,
    pub(crate) lifetime_ns: u64,
    pub(crate) nanoseconds: [u64; ThreadState::IN_KERNEL],
    /// Of its waits for a socket, what was seen and not concluded.
    pub(crate) net_seen_ns: u64,
    /// What only the kernel's programs count.
    pub(crate) switching: Option<Switching>,
    pub(crate) ended: bool,
    /// Its end was told before, and this is what it ran on.
    pub(crate) after_end: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switching {
    pub(crate) voluntary: u64,
    pub(crate) preempted: u64,
    pub(crate) migrations: u64,
    pub(crate) not_its_own_ns: u64,
    /// Waits outside of any system call: for pages.
    pub(crate) fault_waits: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SwitchTime {
    pub(crate) all_ns: u64,
    pub(crate) seen_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) stacks: u64,
    pub(crate) complete: u64,
    pub(crate) lost: u64,
    /// The same by its reason; none where only the sum is known.
    pub(crate) lost_by: Option<LostBy>,
    /// CPU time of whoever reads it; none where that is not known.
    pub(crate) reader_ns: Option<u64>,
}

/// Why samples are lost.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LostBy {
    pub(crate) full_ring: u64,
    pub(crate) without_slot: u64,
    pub(crate) unmatched: u64,
    /// For want of memory: nobody read for long, or the watch goes on for too long.
    pub(crate) for_memory: u64,
    pub(crate) to_recursion: u64,
}

impl Stretch {
    /// Threads that lived in it.
    pub(crate) fn thread_count(&self) -> usize {
        self.threads.len()
    }
}

pub(crate) fn of_kernel(reading: WatchReading, store: &mut SampleStore) -> Stretch {
    let samples = store.store(reading.samples);
    Stretch {
        taken_ns: reading.taken_ns,
        counts: counts(&reading.counts, store.lost),
        switches_seen: Some(SwitchTime {
            all_ns: reading.taken_ns.saturating_sub(reading.since_ns),
            seen_ns: reading.watched_ns,
        }),
        samples,
        threads: reading
            .threads
            .into_iter()
            .map(|thread| ThreadStretch {
                thread: thread.thread,
                name: thread.name,
                lifetime_ns: thread.lifetime_ns,
                nanoseconds: thread.nanoseconds,
                net_seen_ns: thread.net_seen_ns,
                ended: thread.ended,
                after_end: thread.after_end,
                switching: Some(Switching {
                    voluntary: thread.switches,
                    preempted: thread.preemptions,
                    migrations: thread.migrations,
                    not_its_own_ns: thread.not_its_own_ns,
                    fault_waits: thread.fault_waits,
                }),
            })
            .collect(),
    }
}

/// `not_stored`: samples that were read and found no room after that.
fn counts(counts: &WatchCounts, not_stored: u64) -> Counts {
    let for_memory = counts.lost_unread + not_stored;
    Counts {
        stacks: counts.walks(),
        complete: counts.endings[UnwindStatus::Complete as usize],
        reader_ns: Some(counts.reader_cpu_ns),
        lost: counts.lost_to_full_ring
            + counts.lost_without_slot
            + counts.unmatched
            + for_memory
            + counts.lost_to_recursion,
        lost_by: Some(LostBy {
            full_ring: counts.lost_to_full_ring,
            without_slot: counts.lost_without_slot,
            unmatched: counts.unmatched,
            for_memory,
            to_recursion: counts.lost_to_recursion,
        }),
    }
}

/// Gives too how often the kernel stopped sampling for a moment.
pub(crate) fn of_plain(watch: &mut PlainWatch, store: &mut SampleStore) -> (Stretch, u64) {
    let reading = watch.read();
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let is_complete = |sample: &&RawSample| sample.stack.ending == UnwindStatus::Complete;
    let stacks = reading.samples.len() as u64;
    let complete = reading.samples.iter().filter(is_complete).count() as u64;
    let samples = store.store(reading.samples);
    // Counts go on from reading to reading, as those of the programs in the kernel do.
    store.count(stacks, complete, reading.lost);
    let stretch = Stretch {
        switches_seen: None,
        taken_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        counts: Counts {
            stacks: store.seen,
            complete: store.complete,
            lost: store.lost,
            lost_by: None,
            reader_ns: None,
        },
        samples,
        threads: reading
            .threads
            .into_iter()
            .map(|thread| ThreadStretch {
                thread: thread.thread,
                name: thread.name,
                lifetime_ns: thread.lifetime_ns,
                nanoseconds: thread.nanoseconds,
                net_seen_ns: thread.nanoseconds[ThreadState::Net as usize],
                switching: None,
                ended: thread.ended,
                after_end: false,
            })
            .collect(),
    };
    (stretch, reading.throttled)
}

/// How many threads of each number there were: the kernel gives the number of one that has ended to another.
pub(crate) fn lives(seconds: &[Stretch]) -> HashMap<u32, u64> {
    let mut lives: HashMap<u32, (u64, bool)> = HashMap::new();
    for thread in seconds.iter().flat_map(|stretch| &stretch.threads) {
        let (count, lives_on) = lives.entry(thread.thread).or_default();
        *count += u64::from(!*lives_on && !thread.after_end);
        *lives_on = !thread.ended;
    }
    lives.into_iter().map(|(thread, (count, _))| (thread, count)).collect()
}

/// Every thread over all seconds. Threads of one number are one.
pub(crate) fn whole_measurement(seconds: &[Stretch]) -> BTreeMap<u32, ThreadStretch> {
    let mut whole: BTreeMap<u32, ThreadStretch> = BTreeMap::new();
    for thread in seconds.iter().flat_map(|stretch| &stretch.threads) {
        let sum = whole.entry(thread.thread).or_insert_with(|| ThreadStretch {
            thread: thread.thread,
            name: String::new(),
            lifetime_ns: 0,
            nanoseconds: [0; ThreadState::IN_KERNEL],
            net_seen_ns: 0,
            switching: None,
            ended: false,
            after_end: false,
        });
        // A thread may get its name only after its start.
        sum.name.clone_from(&thread.name);
        sum.lifetime_ns += thread.lifetime_ns;
        sum.net_seen_ns += thread.net_seen_ns;
        for (sum, ns) in sum.nanoseconds.iter_mut().zip(thread.nanoseconds) {
            *sum += ns;
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_given_again_is_another_threads() {
        let thread = |thread: u32, ended: bool, after_end: bool| ThreadStretch {
            thread,
            name: String::new(),
            lifetime_ns: 1,
            nanoseconds: [0; ThreadState::IN_KERNEL],
            net_seen_ns: 0,
            switching: None,
            ended,
            after_end,
        };
        let second = |threads: Vec<ThreadStretch>| Stretch {
            threads,
            ..Stretch::default()
        };
        let seconds = [
            // The end of 9 was told before the first of these.
            second(vec![
                thread(7, false, false),
                thread(8, true, false),
                thread(8, true, false),
                thread(9, true, true),
            ]),
            second(vec![
                thread(7, false, false),
                thread(8, false, false),
                thread(9, false, false),
            ]),
            second(vec![
                thread(7, true, false),
                thread(8, true, true),
                thread(9, true, false),
            ]),
        ];
        assert_eq!(lives(&seconds), HashMap::from([(7, 1), (8, 3), (9, 1)]));
    }
}
