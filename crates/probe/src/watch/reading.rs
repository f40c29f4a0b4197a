//! What a watch tells when it is asked.

use scaleprof_profile::RawSample;
use scaleprof_vocabulary::UnwindStatus;

use super::threads::ThreadTimes;

/// What was done and what was lost since the watch began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchCounts {
    /// Stacks of running threads.
    pub cpu_stacks: u64,
    /// Stacks of threads that left their CPU.
    pub sleep_stacks: u64,
    /// Stacks of owners and wakers.
    pub other_stacks: u64,
    /// Frames of all of them.
    pub frames: u64,
    /// Stacks that found no room in their ring.
    pub lost_to_full_ring: u64,
    /// Threads, at each of their switches, that found no slot.
    pub lost_without_slot: u64,
    /// Samples that found no room while nobody read: see
    /// [`WatchOptions::most_unread_samples`](super::WatchOptions::most_unread_samples).
    pub lost_unread: u64,
    /// Times that a program was not run, because another one ran on that CPU already: a thread's switch was not seen.
    pub lost_to_recursion: u64,
    /// Records that could not be read, and ends of waits without a beginning.
    pub unmatched: u64,
    /// CPU time of the thread that reads what the programs send, nanoseconds. What the programs themselves take is part of the
    /// time of the threads that switch.
    pub reader_cpu_ns: u64,
    /// Whether code that the process loaded later found no room in the kernel's tables: walks through it end there.
    pub code_found_no_room: bool,
    /// Walks by how they ended, by the number of the [`UnwindStatus`].
    pub endings: [u64; UnwindStatus::IN_KERNEL],
}

impl WatchCounts {
    /// Walks: a thread that has no user stack, as where it has given its memory back to end, is walked nowhere.
    pub fn walks(&self) -> u64 {
        self.endings.iter().sum::<u64>() - self.endings[UnwindStatus::NoUserStack as usize]
    }

    /// Part of all walks that reached the thread's first frame; none before the first walk.
    pub fn complete_share(&self) -> Option<f64> {
        let all = self.walks();
        (all > 0).then(|| self.endings[UnwindStatus::Complete as usize] as f64 / all as f64)
    }
}

/// What happened since the reading before.
#[derive(Debug, Clone)]
pub struct WatchReading {
    /// When it was taken, nanoseconds of CLOCK_MONOTONIC.
    pub taken_ns: u64,
    /// The same of the reading before, or of the start.
    pub since_ns: u64,
    /// Part of the time between the two in which switches were seen, nanoseconds.
    pub watched_ns: u64,
    /// Times of every thread that lived in between.
    pub threads: Vec<ThreadTimes>,
    /// Stacks, weighted. Those of the last 20 ms come with the next reading.
    pub samples: Vec<RawSample>,
    /// Counts since the watch began.
    pub counts: WatchCounts,
}
