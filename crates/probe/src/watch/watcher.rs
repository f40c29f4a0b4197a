//! The thread that looks after the BPF programs: empties their rings, keeps to the budget, follows newly loaded libraries.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use libbpf_rs::{MapCore, RingBufferBuilder};
use scaleprof_profile::RawSample;

use super::clock::monotonic_ns;
use super::code::{CodeMap, ProcessCode};
use super::features::KernelFeatures;
use super::layout::{ThreadSlot, counted};
use super::libbpf_log::LibbpfLog;
use super::options::WatchOptions;
use super::pace::Pace;
use super::programs::{Fit, LONGEST_INTERVAL, Programs};
use super::reading::{WatchCounts, WatchReading};
use super::records::{Record, parse};
use super::rest::Rest;
use super::sleepers::{Sleeper, Sleepers};
use super::sleeps::Sleeps;
use super::threads::{ThreadTimes, Threads};
use super::turns::{Turn, Turns};
use crate::cpu_quota::cpus_of;
use crate::error::ProbeError;
use crate::process::{own_thread_clock, pid_namespaces};

/// What a handle asks of its thread.
pub(super) enum Request {
    Read(Sender<WatchReading>),
    Code(Sender<CodeMap>),
    Pause(Sender<Result<(), ProbeError>>),
    Resume(Sender<Result<(), ProbeError>>),
}

/// Records may come in another order than they were made, each CPU having its ring: they rest for so long before they count.
const REST_NS: u64 = 20_000_000;
/// Seconds from which on the number of stacks says something.
const SHORTEST_LOOK: f64 = 0.09;
const EMPTY_EVERY: Duration = Duration::from_millis(100);
/// What it may cost to see fights for the kernel's locks in which threads only spin, as a share of what seeing switches may.
const FIGHTS_SHARE: f64 = 0.25;
/// Nothing is due in a pause.
const NOT_SOON: Duration = Duration::from_secs(3600);

pub(super) struct Watcher<'obj> {
    pid: u32,
    code: ProcessCode,
    pub(super) programs: Programs<'obj>,
    pub(super) features: KernelFeatures,
    threads: Threads,
    sleeps: Sleeps,
    /// Records that rest.
    resting: Vec<Record>,
    unreadable: u64,
    code_found_no_room: bool,
    samples: Vec<RawSample>,
    /// Those that found no room while nobody read.
    unread: u64,
    began_ns: u64,
    tuned: Tuned,
    turns: Turns,
    paused: Option<Paused>,
    /// Whether mutexes name their owners by the numbers of a container.
    foreign_names: bool,
    /// Switches that were seen of threads whose slots others have by now.
    switches_of_ended: u64,
    options: WatchOptions,
}

/// The turn that a pause interrupted.
#[derive(Debug, Clone, Copy)]
struct Paused {
    left: Duration,
    watched: bool,
    saw_fights: bool,
    /// By CLOCK_MONOTONIC, nanoseconds.
    since: u64,
}

/// When the budget was last looked at.
struct Tuned {
    /// Nanoseconds watched until then.
    at: u64,
    stacks: u64,
    unmapped: u64,
}

impl<'obj> Watcher<'obj> {
    pub(super) fn start(
        place: &'obj mut MaybeUninit<libbpf_rs::OpenObject>,
        pid: u32,
        options: WatchOptions,
    ) -> Result<Self, ProbeError> {
        let code = ProcessCode::of(pid).map_err(|source| ProbeError::NoProcess { pid, source })?;
        // From before the first question: libbpf prints to the terminal otherwise.
        let log = LibbpfLog::listen();
        let mut features = KernelFeatures::ask().map_err(log.failed("reading the kernel's types"))?;
        features.previous_state &= !options.without_previous_state;
        features.contention &= !options.without_contention;
        let cpus = cpus_of(pid);
        let fit = Fit {
            watched: pid,
            features,
            most_threads: options.most_threads.max(1),
            frequency_hz: options.frequency_hz.max(1),
            ignore_run_delay: options.without_run_delay,
            foreign_names: pid_namespaces(pid).is_some_and(|depth| depth > 1),
            fights_budget: options.most_cost * FIGHTS_SHARE * cpus,
        };
        // Without the scheduler's account of queues nothing would be known of a rest.
        let accounted = features.run_delay && !options.without_run_delay;
        let pace = Pace::new(if accounted { options.most_cost } else { 1.0 }, cpus);
        let mut programs = Programs::load(place, fit, code.tables())?;
        programs.attach(fit)?;
        let began_ns = monotonic_ns();
        let mut watcher = Self {
            pid,
            code,
            programs,
            features,
            threads: Threads::default(),
            sleeps: Sleeps::default(),
            resting: Vec::new(),
            unreadable: 0,
            code_found_no_room: false,
            samples: Vec::new(),
            unread: 0,
            began_ns,
            tuned: Tuned {
                at: 0,
                stacks: 0,
                unmapped: 0,
            },
            turns: Turns::begin(began_ns, pace),
            paused: None,
            foreign_names: fit.foreign_names,
            switches_of_ended: 0,
            options,
        };
        // What was seen while the programs were attached, one after another, belongs to no reading.
        let _ = watcher.read_threads(|_| None);
        watcher.take_sleepers();
        Ok(watcher)
    }

    /// Works until nobody can ask any more.
    pub(super) fn serve(&mut self, inbox: &Receiver<Request>) {
        let inboxes: Vec<Rc<RefCell<Vec<Record>>>> = (0..self.programs.rings.len()).map(|_| Rc::default()).collect();
        let unreadable = Rc::new(RefCell::new(0));
        // Handles of their own: the programs are borrowed for other things meanwhile.
        let rings: Vec<libbpf_rs::MapHandle> = self
            .programs
            .rings
            .iter()
            .filter_map(|ring| libbpf_rs::MapHandle::try_from(ring).ok())
            .collect();
        let mut builder = RingBufferBuilder::new();
        for (ring, into) in rings.iter().zip(&inboxes) {
            let (into, unreadable) = (Rc::clone(into), Rc::clone(&unreadable));
            let added = builder.add(ring as &dyn MapCore, move |bytes| {
                match parse(bytes) {
                    Some(record) => into.borrow_mut().push(record),
                    None => *unreadable.borrow_mut() += 1,
                }
                0
            });
            if added.is_err() {
                return;
            }
        }
        let Ok(ring) = builder.build() else { return };
        // Gives up to when all records are there. The clock is read first: one ring is read after another, and where this thread loses its CPU
        // in between, the next may hold the end of a wait whose beginning came into the one before meanwhile.
        let empty = |watcher: &mut Self| {
            let whole_until = monotonic_ns().saturating_sub(REST_NS);
            let _ = ring.consume_raw();
            for inbox in &inboxes {
                watcher.resting.append(&mut inbox.borrow_mut());
            }
            watcher.unreadable = *unreadable.borrow();
            whole_until
        };
        loop {
            let wait = match self.paused {
                Some(_) => NOT_SOON,
                None => self.turns.until_next(monotonic_ns()).min(EMPTY_EVERY),
            };
            match inbox.recv_timeout(wait) {
                Ok(Request::Read(answer)) => {
                    let whole_until = empty(self);
                    let _ = answer.send(self.reading(whole_until));
                }
                Ok(Request::Code(answer)) => {
                    let _ = self.refresh_code();
                    let _ = answer.send(self.code.map());
                }
                Ok(Request::Pause(answer)) => {
                    let _ = answer.send(self.pause());
                    continue;
                }
                Ok(Request::Resume(answer)) => {
                    let _ = answer.send(self.resume());
                    continue;
                }
                Err(RecvTimeoutError::Timeout) => {
                    let whole_until = empty(self);
                    self.settle(whole_until);
                    self.take_ended();
                    self.take_turns();
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.tune();
        }
    }

    /// Takes the records up to `until`, in the order of time.
    fn settle(&mut self, until: u64) {
        self.resting.sort_by_key(|record| record.time);
        let ripe = self.resting.partition_point(|record| record.time <= until);
        for record in self.resting.drain(..ripe) {
            self.sleeps.take(record, &mut self.samples);
        }
        self.keep_to_room();
    }

    /// A reading that is far off must not take all memory: what came last is lost then, and counted.
    fn keep_to_room(&mut self) {
        let room = self.options.most_unread_samples as usize;
        self.unread += self.samples.len().saturating_sub(room) as u64;
        self.samples.truncate(room);
    }

    /// All records up to `whole_until` were read.
    fn reading(&mut self, whole_until: u64) -> WatchReading {
        let now = monotonic_ns();
        // What is not marked stands as blocked until its thread runs, and is set right then.
        let _ = self.programs.run_over_threads();
        let told_until = self.tell_until(whole_until);
        let pid = self.pid;
        let threads = self.read_threads(|thread| {
            std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/comm"))
                .ok()
                .map(|name| name.trim_end().to_owned())
        });
        let period = 1e9 / f64::from(self.options.frequency_hz.max(1));
        let mut samples = self.turns.take(&mut self.samples, told_until);
        for sample in samples.iter_mut().filter(|sample| sample.state == ThreadState::Cpu) {
            sample.weight_ns = period;
        }
        let since_ns = std::mem::replace(&mut self.began_ns, now);
        WatchReading {
            taken_ns: now,
            since_ns,
            watched_ns: self.turns.watched_since_reading(now),
            threads,
            samples,
            counts: self.counts(),
        }
    }

    /// What every thread did since the last time; the slots of those that have ended are free for others then.
    fn read_threads(&mut self, name_of: impl Fn(u32) -> Option<String>) -> Vec<ThreadTimes> {
        let rest = Rest::of(&self.programs.control());
        let (threads, ended) = self.threads.read(&self.programs.slots, rest, monotonic_ns, name_of);
        self.free(ended);
        threads
    }

    /// Gives the slots of threads that have ended to others, between two readings.
    fn take_ended(&mut self) {
        let rest = Rest::of(&self.programs.control());
        let ended = self.threads.take_ended(&self.programs.slots, rest, monotonic_ns());
        self.free(ended);
    }

    fn free(&mut self, slots: Vec<usize>) {
        for slot in slots {
            let last = self.programs.slots.get(slot);
            self.switches_of_ended += last.map_or(0, |slot| slot.seen_switches);
            self.programs.free_slot(slot);
        }
    }

    /// Tells the waits that are still under way, up to a moment; no further than where the programs went to rest. Up to when it was.
    fn tell_until(&mut self, horizon: u64) -> u64 {
        let horizon = match self.turns.resting_since() {
            // Whatever was seen before is in the rings by now.
            Some(since) => {
                self.settle(u64::MAX);
                since
            }
            None => {
                self.settle(horizon);
                horizon
            }
        };
        let by_thread: std::collections::HashMap<u32, ThreadSlot> = self
            .programs
            .slots
            .used()
            .filter(|(_, slot)| slot.ended == 0)
            .map(|(_, slot)| (slot.thread, slot))
            .collect();
        self.sleeps
            .tell_until(horizon, |thread| by_thread.get(&thread).copied(), &mut self.samples);
        self.keep_to_room();
        horizon
    }

    /// Rests, or goes on watching, when it is time to.
    fn take_turns(&mut self) {
        let now = monotonic_ns();
        match self.turns.due(now) {
            Some(Turn::Watched) => {
                let used = self.programs.slots.used().map(|(_, slot)| slot.seen_switches);
                let switches = self.switches_of_ended + used.sum::<u64>();
                match self.turns.rest_after(switches, now) {
                    Some(rest) => match self.programs.rest(rest) {
                        Ok(()) => self.turns.rest(self.programs.control().rested_from, rest),
                        Err(_) => self.turns.put_off(now),
                    },
                    // What cannot be attached now is tried again after the next stint.
                    None => {
                        let _ = self.programs.review_fights();
                    }
                }
            }
            Some(Turn::Rested) => {
                let rested_from = self.tell_until(now);
                // What cannot be put back now is tried again, and the reading tells for how long nothing was seen.
                if self.go_on(rested_from).is_err() {
                    self.turns.put_off(now);
                }
            }
            None => {}
        }
    }

    /// Watches again after a rest; waits are told up to where it began.
    fn go_on(&mut self, rested_from: u64) -> Result<(), ProbeError> {
        self.programs.go_on()?;
        self.turns.weigh(&mut self.samples, rested_from);
        let now = monotonic_ns();
        self.turns.go_on(now);
        self.sleeps.rested_until(now);
        self.take_sleepers();
        Ok(())
    }

    /// Takes everything out of the kernel's way, in the midst of a turn.
    fn pause(&mut self) -> Result<(), ProbeError> {
        if self.paused.is_some() {
            return Ok(());
        }
        let left = self.turns.left(monotonic_ns());
        let watched = self.turns.resting_since().is_none();
        let saw_fights = self.programs.leave()?;
        if watched {
            self.turns.rest(self.programs.control().rested_from, Duration::ZERO);
        }
        let since = monotonic_ns();
        self.turns.end_in(Duration::MAX, since);
        self.paused = Some(Paused {
            left,
            watched,
            saw_fights,
            since,
        });
        let stopped = self.programs.switch_timers(false);
        if stopped.is_err() {
            // Half of a pause is none: what is left out comes back, as far as that goes.
            let _ = self.resume();
        }
        stopped
    }

    /// Goes on with that turn.
    fn resume(&mut self) -> Result<(), ProbeError> {
        let Some(paused) = self.paused.take() else {
            return Ok(());
        };
        // Threads went on beginning and ending: those that live need the slots.
        self.take_ended();
        let ticking = self.programs.switch_timers(true);
        let length = monotonic_ns().saturating_sub(paused.since);
        let with_fights = self.programs.resume_fights(paused.saw_fights, length);
        let going_on = match paused.watched {
            true => {
                let rested_from = self.tell_until(monotonic_ns());
                self.go_on(rested_from)
            }
            false => Ok(()),
        };
        // What could not be put back is tried again when the turn is over.
        self.turns.end_in(paused.left, monotonic_ns());
        ticking.and(with_fights).and(going_on)
    }

    fn counts(&self) -> WatchCounts {
        let count = |which| self.programs.count(which);
        let mut endings = [0; UnwindStatus::IN_KERNEL];
        for (number, place) in endings.iter_mut().enumerate() {
            *place = self.programs.ending_count(number as u32);
        }
        WatchCounts {
            cpu_stacks: count(counted::CPU_STACKS),
            sleep_stacks: count(counted::SLEEP_STACKS),
            other_stacks: count(counted::OTHER_STACKS),
            frames: count(counted::FRAMES),
            lost_to_full_ring: count(counted::RING_FULL) + count(counted::NO_SCRATCH),
            lost_without_slot: count(counted::NO_SLOT),
            lost_unread: self.unread,
            lost_to_recursion: self.programs.recursion_misses(),
            unmatched: self.unreadable + self.sleeps.unmatched,
            reader_cpu_ns: own_thread_clock().as_nanos() as u64,
            code_found_no_room: self.code_found_no_room,
            endings,
        }
    }

    /// Once a second that was watched, sooner where they are far too many: as many stacks as the budget allows, and new libraries where walks met unknown code.
    fn tune(&mut self) {
        let watched = self.turns.watched(monotonic_ns());
        let seconds = watched.saturating_sub(self.tuned.at) as f64 / 1e9;
        if seconds < SHORTEST_LOOK {
            return;
        }
        let stacks = self.programs.count(counted::SLEEP_STACKS);
        let made = stacks.saturating_sub(self.tuned.stacks) as f64 / seconds;
        let budget = f64::from(self.options.sleep_stacks_per_second.max(1));
        // A new load comes at once, and a second of it far over the budget would be felt.
        if seconds < 1.0 && made < 2.0 * budget {
            return;
        }
        let interval = self.programs.control().off_cpu_interval as f64;
        // Down slowly: a quiet second says little about the next one.
        let factor = (made / budget).clamp(0.7, 100.0);
        if !(0.8..=1.1).contains(&factor) {
            let least = 100_000.0;
            self.programs
                .set_interval((interval * factor).clamp(least, LONGEST_INTERVAL as f64) as u64);
        }
        // Some of them found their way out by their frame pointers; from code in anonymous memory all do.
        let guessed = (!self.code.has_own_making()).then_some(UnwindStatus::FramePointer);
        let unmapped = [Some(UnwindStatus::NoMapping), guessed].into_iter().flatten();
        let unmapped: u64 = unmapped.map(|ending| self.programs.ending_count(ending as u32)).sum();
        if unmapped > self.tuned.unmapped {
            let _ = self.refresh_code();
        }
        self.tuned = Tuned {
            at: watched,
            stacks,
            unmapped,
        };
    }

    fn refresh_code(&mut self) -> std::io::Result<()> {
        if self.code.refresh()? {
            self.code_found_no_room |= !self.programs.publish(self.code.tables());
        }
        Ok(())
    }

    /// Walks, from here, the stacks of the threads that slept before the programs were there, or there again.
    fn take_sleepers(&mut self) {
        let Ok(memory) = self.code.memory() else { return };
        let epoch = self.programs.control().epoch;
        let found = Sleepers::new(&self.code, &self.programs.slots, (epoch, self.foreign_names), memory)
            .walk(|slot| self.sleeps.knows(slot));
        for Sleeper {
            slot,
            state,
            stack,
            lock,
        } in found
        {
            self.sleeps.found_asleep(&slot, state, stack, lock);
        }
    }
}
