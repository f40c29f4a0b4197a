//! Watches one's own server: samples of its threads on CPU, and the time of every thread by state.
//!
//! A thread of ours empties the kernel's rings before they overflow, unwinds the stacks in them and looks at the server's
//! threads some 20 times a second, less often where there are so many threads that this would cost more than one
//! hundredth of a CPU.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use scaleprof_profile::{RawSample, RawStack};

use super::access::{self, Refusal};
use super::bursts::{self, Bursts, Turn};
use super::lack::Lack;
use super::record::{Record, Sample};
use super::recorder::{Recorder, Told};
use super::sampling_event::EventOptions;
use super::stack_unwinder::StackUnwinder;
use super::thread_table::ThreadTable;
use crate::error::ProbeError;
use crate::process::{own_thread_clock, process_cpu_clock};

/// How to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlainOptions {
    /// Samples in a second of each thread's CPU time; 0 for none.
    pub frequency_hz: u32,
    /// Bytes of a thread's stack that are copied with each sample; at most 65 000, a multiple of 8. A stack that is larger
    /// ends as [`UnreadableMemory`](UnwindStatus::UnreadableMemory): with 16 KiB it is 1 % of the samples of a MariaDB 10.11
    /// (its parser alone has a frame of several KiB), with 32 KiB none.
    pub stack_bytes: u32,
    /// Whether events are on all the time and the kernel tells of each switch of threads, of each thread that begins and
    /// of each that ends. This gives all of the time of threads that live for a moment only, and costs more than all the
    /// rest: a fifth of the CPU time of a server with 50 000 statements a second, on a virtual machine. Without it samples are taken
    /// in bursts, one in every second, and the last moments of threads that end are known only in sum
    /// ([`PlainReading::unseen_cpu_ns`]).
    pub switches: bool,
    /// Looks at every thread in a second, at most.
    pub looks_hz: u32,
}

impl Default for PlainOptions {
    fn default() -> Self {
        Self {
            frequency_hz: 99,
            stack_bytes: 32_768,
            switches: false,
            looks_hz: 20,
        }
    }
}

/// What was seen since the last time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlainReading {
    /// Every thread that lived in that time, ended ones too.
    pub threads: Vec<PlainThread>,
    /// Where threads were on CPU.
    pub samples: Vec<RawSample>,
    /// CPU time of the process that is in none of `threads`: that of threads in the moments before they ended. Negative
    /// by a tick of the scheduler at most.
    pub unseen_cpu_ns: i64,
    /// Records that found no room, of samples and switches; above 0 shares of samples may be off.
    pub lost: u64,
    /// How often the kernel stopped sampling for a moment because it took too long.
    pub throttled: u64,
}

impl PlainReading {
    /// Samples whose stack ends at the thread's start, over all that have a user stack; nothing if there are none.
    pub fn complete_share(&self) -> Option<f64> {
        let endings = self.samples.iter().map(|sample| sample.stack.ending);
        let with_stack: Vec<UnwindStatus> = endings.filter(|ending| *ending != UnwindStatus::NoUserStack).collect();
        let complete = with_stack
            .iter()
            .filter(|ending| **ending == UnwindStatus::Complete)
            .count();
        (!with_stack.is_empty()).then(|| complete as f64 / with_stack.len() as f64)
    }
}

/// The time of one thread since the last reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainThread {
    /// The thread's number, as we see it.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// How long it lived in that time.
    pub lifetime_ns: u64,
    /// The same by state; the sum is the lifetime. Time on CPU and in the run queue is the scheduler's and exact (late by
    /// a tick at most), and so is what the blocked states have together. How this divides among them is estimated: each
    /// look that found the thread blocked counts for the state that it was in.
    pub nanoseconds: [u64; ThreadState::IN_KERNEL],
    /// Whether any of it was divided so.
    pub estimated: bool,
    /// Whether it has ended.
    pub ended: bool,
}

/// Samples that are kept between two readings: more than a minute of 64 busy CPUs.
const MOST_SAMPLES: usize = 500_000;
/// The share of a CPU that looking at threads may take is one over this.
const COST_DIVISOR: u32 = 100;
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Watches one process without any privilege.
pub struct PlainWatch {
    watched: Arc<Mutex<Watched>>,
    stop: Arc<OwnedFd>,
    reader: Option<JoinHandle<()>>,
}

struct Watched {
    table: ThreadTable,
    recorder: Option<Recorder>,
    unwinder: Option<StackUnwinder>,
    /// Files were mapped since the maps were read.
    maps_are_old: bool,
    samples: Vec<RawSample>,
    lost: u64,
    throttled: u64,
    refusals: Vec<Refusal>,
    process: u32,
    frequency_hz: u32,
    bursts: Option<Bursts>,
    /// The first sample of this burst.
    burst_begins_at: usize,
    /// CPU time of the whole process at the last reading.
    process_cpu: Option<Duration>,
}

impl PlainWatch {
    /// Begins to watch a process. What the kernel refuses is left out and stands in [`missing`](Self::missing); an error
    /// comes only where nothing is to be seen at all.
    pub fn start(pid: u32, options: PlainOptions) -> Result<Self, ProbeError> {
        let watched = Arc::new(Mutex::new(Watched::start(pid, options)?));
        let failed = |error: io::Error| ProbeError::Event(format!("a thread that watches cannot be started: {error}"));
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let stop = Arc::new(stop);
        let reader = {
            let (watched, stop) = (Arc::clone(&watched), Arc::clone(&stop));
            let pause = Duration::from_secs(1) / options.looks_hz.max(1);
            std::thread::Builder::new()
                .name("scaleprof-plain".to_owned())
                .spawn(move || read_on(&watched, &stop, pause))
                .map_err(failed)?
        };
        Ok(Self {
            watched,
            stop,
            reader: Some(reader),
        })
    }

    /// What was seen since the last reading, or since the start.
    pub fn read(&mut self) -> PlainReading {
        let mut watched = lock(&self.watched);
        // Twice: the end of a thread is believed when its last switches must have been seen.
        watched.drain();
        watched.drain();
        watched.look();
        watched.burst_begins_at = 0;
        let threads = watched.table.read_out();
        PlainReading {
            unseen_cpu_ns: watched.unseen_cpu_ns(&threads),
            threads,
            samples: std::mem::take(&mut watched.samples),
            lost: std::mem::take(&mut watched.lost),
            throttled: std::mem::take(&mut watched.throttled),
        }
    }

    /// What cannot be seen this way or was refused, and what would give it.
    pub fn missing(&self) -> Vec<Lack> {
        lock(&self.watched).missing()
    }
}

impl Drop for PlainWatch {
    fn drop(&mut self) {
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn lock(watched: &Mutex<Watched>) -> MutexGuard<'_, Watched> {
    watched.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the thread of ours does until it is stopped.
fn read_on(watched: &Mutex<Watched>, stop: &OwnedFd, shortest_pause: Duration) {
    let rings: Vec<OwnedFd> = {
        let watched = lock(watched);
        let rings = watched.recorder.iter().flat_map(Recorder::wake_ups);
        rings.filter_map(|ring| ring.try_clone_to_owned().ok()).collect()
    };
    let mut next_look = Instant::now() + shortest_pause;
    let mut chance = Chance(super::thread_table::now_ns() | 1);
    loop {
        let mut files = vec![PollFd::new(stop, PollFlags::IN)];
        files.extend(
            rings
                .iter()
                .map(|ring| PollFd::from_borrowed_fd(ring.as_fd(), PollFlags::IN)),
        );
        let next_turn = lock(watched).bursts.as_ref().map_or(next_look, Bursts::next);
        let left = next_look.min(next_turn).saturating_duration_since(Instant::now());
        let patience = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let _ = rustix::event::poll(&mut files, Some(&patience));
        if !files[0].revents().is_empty() {
            return;
        }
        let mut watched = lock(watched);
        watched.drain();
        watched.turn(chance.next());
        if Instant::now() >= next_look {
            let before = own_thread_clock();
            watched.look();
            let cost = own_thread_clock().saturating_sub(before);
            let pause = (cost * COST_DIVISOR).clamp(shortest_pause, LONGEST_PAUSE.max(shortest_pause));
            // Never in step with a server that does things at regular times.
            next_look = Instant::now() + pause.mul_f64(0.5 + chance.next());
        }
    }
}

/// Numbers between 0 and 1 for the length of pauses (xorshift; Marsaglia, 2003).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl Watched {
    fn start(process: u32, options: PlainOptions) -> Result<Self, ProbeError> {
        let no_process = |source| ProbeError::NoProcess { pid: process, source };
        let mut refusals = Vec::new();
        let mut table = ThreadTable::new(process, false).map_err(no_process)?;
        let numbers = table.numbers();
        let first = *numbers
            .first()
            .ok_or_else(|| no_process(io::Error::from_raw_os_error(libc::ESRCH)))?;
        let in_bursts = !options.switches;
        let event_options = EventOptions {
            frequency_hz: options.frequency_hz * if in_bursts { bursts::TIMES } else { 1 },
            stack_bytes: options.stack_bytes,
            kernel: false,
            switches: options.switches,
            children: false,
            wake_at: 0,
        };
        let wanted = options.frequency_hz > 0 || options.switches;
        let recorder = wanted.then(|| Recorder::start(&access::cpus_of(&numbers), event_options, first));
        let recorder = match recorder.transpose() {
            Ok(recorder) => recorder,
            Err(error) => {
                refusals.push(Refusal::Events(error.into()));
                None
            }
        };
        let unwinder = match (&recorder, StackUnwinder::of_process(process)) {
            (None, _) => None,
            (_, Ok(unwinder)) => Some(unwinder),
            (_, Err(error)) => {
                refusals.push(Refusal::Maps(error.into()));
                None
            }
        };
        if recorder.is_some() {
            // Taken anew: from here on the kernel tells who begins and ends.
            access::allow_many_files();
            table = ThreadTable::new(process, true).map_err(no_process)?;
        }
        let mut watched = Self {
            table,
            recorder,
            unwinder,
            maps_are_old: false,
            samples: Vec::new(),
            lost: 0,
            throttled: 0,
            refusals,
            process,
            frequency_hz: options.frequency_hz,
            bursts: None,
            burst_begins_at: 0,
            process_cpu: process_cpu_clock(process).ok(),
        };
        for thread in watched.table.numbers() {
            watched.follow(thread);
        }
        if watched.recorder.is_some() && in_bursts {
            // Threads that began just now did so before or after the one that made them was followed. By the end of the
            // first burst it is known of all; those that begin later are followed from their beginning.
            for _ in 0..4 {
                watched.drain();
                watched.look();
            }
            watched.bursts = Some(Bursts::begin(Instant::now()));
            watched.samples.clear();
        }
        Ok(watched)
    }

    /// Begins or ends a burst when it is time.
    fn turn(&mut self, chance: f64) {
        let turn = self
            .bursts
            .as_mut()
            .and_then(|bursts| bursts.turn(Instant::now(), chance));
        match turn {
            Some(Turn::On) => {
                self.burst_begins_at = self.samples.len();
                self.switch(true);
                // What was mapped meanwhile nobody told.
                self.maps_are_old = true;
            }
            Some(Turn::Off { longer }) => {
                self.switch(false);
                self.drain();
                self.table.rely_on_looks();
                for sample in &mut self.samples[self.burst_begins_at..] {
                    sample.weight_ns /= longer;
                }
            }
            None => {}
        }
    }

    fn switch(&mut self, on: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.switch(on);
        }
    }

    fn unseen_cpu_ns(&mut self, threads: &[PlainThread]) -> i64 {
        let seen: u64 = threads
            .iter()
            .map(|thread| thread.nanoseconds[ThreadState::Cpu as usize])
            .sum();
        let now = process_cpu_clock(self.process).ok();
        let (Some(before), Some(now)) = (std::mem::replace(&mut self.process_cpu, now), now) else {
            return 0;
        };
        now.saturating_sub(before).as_nanos() as i64 - seen as i64
    }

    fn follow(&mut self, thread: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.follow(thread);
        }
    }

    fn look(&mut self) {
        for thread in self.table.round() {
            if let Some(recorder) = &mut self.recorder {
                recorder.follow_found(thread);
            }
        }
    }

    fn drain(&mut self) {
        let Some(mut recorder) = self.recorder.take() else {
            return;
        };
        recorder.drain(|told| match &told {
            Told::Record(Record::Sample(sample)) => self.take_sample(sample),
            Told::Record(Record::Mapped) => self.maps_are_old = true,
            Told::Record(Record::Lost(lost)) => self.lost += lost,
            Told::Record(Record::Throttled) => self.throttled += 1,
            _ => self.table.take(&told),
        });
        self.recorder = Some(recorder);
        self.table.drained();
        if self.maps_are_old {
            self.read_maps_again();
        }
    }

    fn take_sample(&mut self, sample: &Sample<'_>) {
        // A child's, which inherited the events: see EventOptions::children.
        if sample.at.process != self.process {
            return;
        }
        if self.samples.len() == MOST_SAMPLES {
            self.lost += 1;
            return;
        }
        let mut stack = self.unwind(sample);
        if stack.ending == UnwindStatus::NoMapping && self.maps_are_old {
            self.read_maps_again();
            stack = self.unwind(sample);
        }
        stack.kernel.clone_from(&sample.kernel);
        self.samples.push(RawSample {
            time_ns: sample.at.time_ns,
            thread: sample.at.thread,
            cpu: sample.at.cpu,
            state: ThreadState::Cpu,
            weight_ns: 1e9 / f64::from(self.frequency_hz.max(1)),
            stack,
            lock: None,
            waker: None,
        });
    }

    fn unwind(&mut self, sample: &Sample<'_>) -> RawStack {
        let ending = match (sample.registers, &mut self.unwinder) {
            (Some(registers), Some(unwinder)) => {
                return unwinder.unwind_from(registers, &mut |address| sample.read_stack(address));
            }
            (None, _) => UnwindStatus::NoUserStack,
            (_, None) => UnwindStatus::NotTaken,
        };
        RawStack {
            ending,
            ..RawStack::default()
        }
    }

    fn read_maps_again(&mut self) {
        self.maps_are_old = false;
        if let Some(unwinder) = &mut self.unwinder {
            // A process that has just ended keeps the maps that it had.
            let _ = unwinder.read_maps_again();
        }
    }

    fn missing(&self) -> Vec<Lack> {
        let mut refusals = self.refusals.clone();
        if let Some(recorder) = &self.recorder {
            if !recorder.samples_kernel() {
                refusals.push(Refusal::Kernel);
            }
            if let Some((threads, error)) = recorder.refused() {
                refusals.push(Refusal::SomeThreads(*threads, error.to_string()));
            }
        }
        if !self.table.sees_system_calls() {
            refusals.push(Refusal::SystemCalls);
        }
        let mut missing = access::explain(self.process, &refusals);
        missing.extend(self.unwinder.iter().flat_map(StackUnwinder::missing));
        missing
    }
}
