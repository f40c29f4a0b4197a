//! What the watch tells of a server under load, and what must be true of it.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use scaleprof_probe::symbols::SymbolSearch;
use scaleprof_probe::{ProcessNames, ThreadTimes, Watch, WatchCounts, WatchOptions, process_cpu_clock};
use scaleprof_profile::RawSample;

use super::difference::name;
use super::stage::CONNECTIONS;

/// A watch over a server, and what it told of some time.
pub struct Watched {
    watch: Watch,
    pid: u32,
    threads: Vec<ThreadTimes>,
    samples: Vec<RawSample>,
    /// Ends of waits without a beginning before anything was read: threads that slept when the watch began may wake before
    /// it has looked at them.
    unmatched: u64,
    /// The least and the most time on CPU that the kernel's clock allows for the same time, nanoseconds.
    clock: (f64, f64),
}

impl Watched {
    /// Begins; nothing where BPF programs cannot be loaded, which is said aloud and is a failure in CI.
    pub fn start(pid: u32) -> Option<Self> {
        match Watch::start(pid, WatchOptions::default()) {
            Ok(watch) => Some(Self {
                watch,
                pid,
                threads: Vec::new(),
                samples: Vec::new(),
                unmatched: 0,
                clock: (0.0, 0.0),
            }),
            Err(error) => {
                testing::skip!("watching: {error}");
                None
            }
        }
    }

    /// Keeps what the threads did in some time.
    pub fn for_some_time(mut self, time: Duration) -> Self {
        std::thread::sleep(Duration::from_millis(300));
        // A reading takes a moment of which the clock knows nothing: it is asked on both sides.
        let began = self.clock();
        let first = self.watch.read().expect("readable");
        let after_beginning = self.clock();
        std::thread::sleep(time);
        let before_end = self.clock();
        let last = self.watch.read().expect("readable");
        self.clock = (before_end - after_beginning, self.clock() - began);
        self.threads = last.threads;
        self.samples = first.samples;
        self.samples.extend(last.samples);
        self.unmatched = first.counts.unmatched;
        self
    }

    /// Ends the watch, with the counts of its whole time.
    pub fn end(mut self) -> Seen {
        let last = self.watch.read().expect("readable");
        self.samples.extend(last.samples);
        let mut names = ProcessNames::new(SymbolSearch::default());
        names.follow(self.watch.code().expect("readable"));
        Seen {
            threads: self.threads,
            clock: self.clock,
            lost_ends: last.counts.unmatched - self.unmatched,
            counts: last.counts,
            broken_off: broken_off(&self.samples, &mut names),
        }
    }

    fn clock(&self) -> f64 {
        process_cpu_clock(self.pid).expect("readable").as_nanos() as f64
    }
}

/// What was seen.
pub struct Seen {
    threads: Vec<ThreadTimes>,
    clock: (f64, f64),
    counts: WatchCounts,
    /// Ends of waits whose beginning was lost.
    lost_ends: u64,
    /// Where walks ended too early, and how often.
    broken_off: BTreeMap<String, u64>,
}

impl Seen {
    pub fn must_be_good(&self) {
        let share = self.counts.complete_share().expect("stacks were walked");
        assert!(share > 0.99, "{self}");
        let lost = self.counts.lost_to_full_ring + self.counts.lost_without_slot;
        assert_eq!(lost, 0, "{:?}", self.counts);
        assert_eq!(self.lost_ends, 0, "{:?}", self.counts);

        for thread in &self.threads {
            assert!(gap(thread) < 0.01, "{thread:?}");
        }
        let connections = self.connections().count();
        assert!(
            connections >= CONNECTIONS as usize,
            "{connections} connection threads: {:#?}",
            self.threads
        );

        let (least, most) = self.clock;
        let cpu = self.cpu();
        assert!(
            cpu > least * 0.99 && cpu < most * 1.01,
            "on CPU by the watch {cpu:.0}, by the clock {least:.0} to {most:.0}"
        );
    }

    /// Threads that wait for a client again and again, and work in between.
    fn connections(&self) -> impl Iterator<Item = &ThreadTimes> {
        self.threads
            .iter()
            .filter(|thread| thread.net_waits > 10 && thread.nanoseconds[ThreadState::Cpu as usize] > 0)
    }

    /// What the scheduler charges them with: time that the host of a virtual machine took is not in it.
    fn cpu(&self) -> f64 {
        let cpu = |thread: &ThreadTimes| (thread.nanoseconds[ThreadState::Cpu as usize] - thread.not_its_own_ns) as f64;
        self.threads.iter().map(cpu).sum()
    }
}

/// The outermost frames of stacks that are not whole.
fn broken_off(samples: &[RawSample], names: &mut ProcessNames) -> BTreeMap<String, u64> {
    let mut places = BTreeMap::new();
    let own = samples.iter().map(|sample| &sample.stack);
    let wakers = samples
        .iter()
        .filter_map(|sample| sample.waker.as_ref()?.stack.as_ref());
    let owners = samples
        .iter()
        .filter_map(|sample| sample.lock.as_ref()?.holder_stack.as_ref());
    for stack in own.chain(wakers).chain(owners) {
        if let (false, Some(last)) = (stack.ending == UnwindStatus::Complete, stack.user.len().checked_sub(1)) {
            let (module, address, function) = name(stack, last, names);
            let place = format!("{} at {module}+{address:#x} {function}", stack.ending.name());
            *places.entry(place).or_insert(0) += 1;
        }
    }
    places
}

/// Part of a thread's lifetime that its states leave out or count twice.
fn gap(thread: &ThreadTimes) -> f64 {
    let states: u64 = thread.nanoseconds.iter().sum();
    states.abs_diff(thread.lifetime_ns) as f64 / thread.lifetime_ns.max(1) as f64
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        let all: u64 = counts.endings.iter().sum();
        let share = counts.complete_share().unwrap_or_default();
        write!(f, "{:.4} % of {all} walks complete (", share * 100.0)?;
        let endings = UnwindStatus::ALL
            .iter()
            .zip(counts.endings)
            .filter(|(_, count)| *count > 0);
        for (position, (ending, count)) in endings.enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{} {count}", ending.name())?;
        }
        let worst = self.threads.iter().map(gap).fold(0.0, f64::max);
        let (least, most) = self.clock;
        write!(
            f,
            "), {:.1} frames a walk; {} threads, {} of connections, states add up within {:.4} %; {:.3} s on CPU, by the \
             clock {:.3} to {:.3} s",
            counts.frames as f64 / all.max(1) as f64,
            self.threads.len(),
            self.connections().count(),
            worst * 100.0,
            self.cpu() / 1e9,
            least / 1e9,
            most / 1e9,
        )?;
        for (place, count) in &self.broken_off {
            write!(f, "\n  {count} times {place}")?;
        }
        Ok(())
    }
}
