//! The BPF programs in the kernel: fitted, loaded, attached, and their tables within reach.

mod attaching;

use std::io::Read as _;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};

use libbpf_rs::skel::{OpenSkel as _, SkelBuilder as _};
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, OpenObject};

use super::calls::call_classes;
use super::features::KernelFeatures;
use super::fights::Fights;
use super::layout::{
    CodeObject, Control, MAX_MAPPINGS, MAX_OBJECTS, Mapping, NO_OBJECT, PageRows, ROWS_OF_CHUNK, Row, Rule,
    THREADS_OF_GROUP,
};
use super::libbpf_log::LibbpfLog;
use super::shared::Shared;
use super::skeleton::{WatchSkel, WatchSkelBuilder};
use super::slots::Slots;
use super::tables::{CodeTables, Lengths};
use crate::cpu_counters::online_cpus;
use crate::error::ProbeError;
use crate::perf_event::{self, Event};

/// Bytes of one ring; there is one for each CPU up to [`MOST_RINGS`].
const RING_BYTES: u32 = 1 << 20;
const MOST_RINGS: usize = 32;
/// Room for the tables of libraries that are loaded later.
const SPARE_ROWS: usize = 512 * 1024;
const SPARE_PAGES: usize = 4096;
const SPARE_RULES: usize = 8192;
/// Waits are chosen once in so many nanoseconds off CPU at first; the budget changes it.
const FIRST_INTERVAL: u64 = 10_000_000;
/// The longest of these intervals: the programs multiply it by 2^32.
pub(crate) const LONGEST_INTERVAL: u64 = 1 << 31;

/// What to load.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fit {
    pub watched: u32,
    pub features: KernelFeatures,
    pub most_threads: u32,
    pub frequency_hz: u32,
    pub ignore_run_delay: bool,
    /// Whether mutexes name their owners by other numbers than the initial PID namespace's.
    pub foreign_names: bool,
    /// What it may cost to see fights for the kernel's locks, in seconds of CPU time a second.
    pub fights_budget: f64,
}

/// Which event the timer counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerEvent {
    /// CPU cycles, on all of them: it stands still while the CPU is idle, and interrupts even code that bars interrupts.
    Cycles,
    /// The CPU clock, where some CPU at least has no hardware counter to spare. It cannot interrupt code that bars interrupts: such code is
    /// seen where it allows them again.
    CpuClock,
}

/// The loaded programs. Dropping them takes them out of the kernel.
pub(crate) struct Programs<'obj> {
    // Detached before anything that they use goes.
    /// Switches and wake-ups; none while they rest.
    switch_links: Vec<Link>,
    /// Fights for the kernel's locks: they may stay when the others rest.
    fight_links: Vec<Link>,
    fights: Fights,
    /// Whether this kernel tells of its own locks.
    sees_kernel_locks: bool,
    links: Vec<Link>,
    /// The timers once more: a link tells nothing of the event that it holds.
    timers: Vec<OwnedFd>,
    finder: Option<Link>,
    skeleton: WatchSkel<'obj>,
    pub(crate) rings: Vec<MapHandle>,
    pub(crate) slots: Slots,
    control: Shared<Control>,
    rows: Shared<Row>,
    pages: Shared<PageRows>,
    rules: Shared<Rule>,
    objects: Shared<CodeObject>,
    mappings: Shared<Mapping>,
    published: Lengths,
    pub(crate) timer_event: TimerEvent,
}

impl<'obj> Programs<'obj> {
    /// Loads the programs for the process whose code is in `tables`. Nothing runs before [`attach`](Self::attach).
    pub(crate) fn load(
        place: &'obj mut MaybeUninit<OpenObject>,
        fit: Fit,
        tables: &CodeTables,
    ) -> Result<Self, ProbeError> {
        let log = LibbpfLog::listen();
        let failed = |doing| log.failed(doing);
        let cpus = online_cpus()?;
        let ring_count = cpus.len().clamp(1, MOST_RINGS);
        let possible = libbpf_rs::num_possible_cpus().unwrap_or(cpus.len());
        let lengths = tables.lengths();

        let mut open = WatchSkelBuilder::default()
            .open(place)
            .map_err(failed("opening the BPF programs"))?;
        let Some(settings) = open.maps.rodata_data.as_deref_mut() else {
            return Err(ProbeError::Bpf {
                doing: "opening the BPF programs",
                why: "they have no settings".to_owned(),
            });
        };
        settings.watched = fit.watched;
        settings.has_previous_state = fit.features.previous_state;
        settings.ignore_run_delay = fit.ignore_run_delay;
        settings.foreign_names = fit.foreign_names;
        settings.call_class = call_classes();
        settings.ring_count = ring_count as u32;

        open.progs.on_contention.set_autoload(fit.features.contention);
        open.progs.on_contention_end.set_autoload(fit.features.contention);

        let chunks = (lengths.rows + SPARE_ROWS).div_ceil(ROWS_OF_CHUNK);
        let page_room = lengths.pages + SPARE_PAGES;
        let rule_room = lengths.rules + SPARE_RULES;
        let sizing = failed("sizing the BPF tables");
        (|| {
            open.maps.rows.set_max_entries(chunks as u32)?;
            open.maps.pages.set_max_entries(page_room as u32)?;
            open.maps.rules.set_max_entries(rule_room as u32)?;
            open.maps.slots.set_max_entries(fit.most_threads)?;
            open.maps.free_slots.set_max_entries(fit.most_threads)?;
            open.maps
                .slot_of_thread
                .set_max_entries(highest_thread_number().div_ceil(THREADS_OF_GROUP) + 1)?;
            open.maps
                .rings
                .set_max_entries(ring_count.max(possible.min(MOST_RINGS)) as u32)
        })()
        .map_err(sizing)?;
        let skeleton = open.load().map_err(failed("loading the BPF programs"))?;

        let mut rings = Vec::with_capacity(ring_count);
        for index in 0..ring_count as u32 {
            let options = libbpf_rs::libbpf_sys::bpf_map_create_opts {
                sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
                ..Default::default()
            };
            let ring = MapHandle::create(MapType::RingBuf, Some("scaleprof_ring"), 0, 0, RING_BYTES, &options)
                .map_err(failed("making a ring"))?;
            let descriptor = ring.as_fd().as_raw_fd();
            skeleton
                .maps
                .rings
                .update(&index.to_ne_bytes(), &descriptor.to_ne_bytes(), MapFlags::ANY)
                .map_err(failed("placing a ring"))?;
            rings.push(ring);
        }
        for slot in (0..fit.most_threads).rev() {
            skeleton
                .maps
                .free_slots
                .update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
                .map_err(failed("filling the table of threads"))?;
        }

        let io = |source: std::io::Error| ProbeError::Bpf {
            doing: "mapping a BPF table",
            why: source.to_string(),
        };
        let maps = &skeleton.maps;
        let mut programs = Self {
            switch_links: Vec::new(),
            fight_links: Vec::new(),
            fights: Fights::new(fit.fights_budget, cpus.len()),
            sees_kernel_locks: fit.features.contention,
            links: Vec::new(),
            timers: Vec::new(),
            finder: None,
            slots: Slots::new(Shared::map(maps.slots.as_fd(), fit.most_threads as usize).map_err(io)?),
            control: Shared::map(maps.controls.as_fd(), 1).map_err(io)?,
            rows: Shared::map(maps.rows.as_fd(), chunks * ROWS_OF_CHUNK).map_err(io)?,
            pages: Shared::map(maps.pages.as_fd(), page_room).map_err(io)?,
            rules: Shared::map(maps.rules.as_fd(), rule_room).map_err(io)?,
            objects: Shared::map(maps.objects.as_fd(), MAX_OBJECTS).map_err(io)?,
            mappings: Shared::map(maps.mappings.as_fd(), 2 * MAX_MAPPINGS).map_err(io)?,
            skeleton,
            rings,
            published: Lengths::default(),
            timer_event: TimerEvent::CpuClock,
        };
        programs.control.set(
            0,
            Control {
                off_cpu_interval: FIRST_INTERVAL,
                enabled: 1,
                ..Control::default()
            },
        );
        programs.publish(tables);
        Ok(programs)
    }

    /// Attaches everything: first the switches, then the threads that are there already, then the timer.
    pub(crate) fn attach(&mut self, fit: Fit) -> Result<(), ProbeError> {
        let log = LibbpfLog::listen();
        let failed = |doing| log.failed(doing);
        let programs = &self.skeleton.progs;
        for (program, doing) in [
            (&programs.on_free, "watching ends of threads"),
            (&programs.on_exit, "watching ends of threads"),
            (&programs.on_new, "watching new threads"),
        ] {
            self.links.push(program.attach().map_err(failed(doing))?);
        }
        self.attach_switches()?;
        self.attach_fights()?;
        let programs = &self.skeleton.progs;
        self.finder = Some(
            programs
                .find_threads
                .attach()
                .map_err(failed("finding the server's threads"))?,
        );
        self.run_over_threads()?;

        let open = |event, cpu| perf_event::open_timer(event, cpu, fit.frequency_hz);
        let (timers, kind) = timers(&online_cpus()?, open).map_err(|error| {
            ProbeError::Event(perf_event::explain(Event::CpuClock, &error, &perf_event::paranoid()))
        })?;
        self.timer_event = kind;
        for timer in timers {
            let same = timer.try_clone().map_err(|error| ProbeError::Bpf {
                doing: "keeping the timer",
                why: error.to_string(),
            })?;
            self.timers.push(same);
            let link = programs
                .on_sample
                .attach_perf_event(timer.as_raw_fd())
                .map_err(failed("attaching the timer"))?;
            // From here on the link closes the event when it goes; without one we do.
            let _ = timer.into_raw_fd();
            self.links.push(link);
        }
        Ok(())
    }

    /// Lets the timers run, or stops them.
    pub(crate) fn switch_timers(&self, on: bool) -> Result<(), ProbeError> {
        for timer in &self.timers {
            perf_event::switch_timer(timer.as_fd(), on).map_err(|error| ProbeError::Bpf {
                doing: "switching the timer",
                why: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Runs over the threads of the process: those that are new get a slot, those that wait for a CPU a mark since when.
    pub(crate) fn run_over_threads(&self) -> Result<(), ProbeError> {
        let Some(finder) = &self.finder else { return Ok(()) };
        let failed = |why: String| ProbeError::Bpf {
            doing: "finding the server's threads",
            why,
        };
        let mut iterator = libbpf_rs::Iter::new(finder).map_err(|error| failed(format!("{error:#}")))?;
        iterator
            .read_to_end(&mut Vec::new())
            .map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    /// Shows the kernel what is new in the tables, then the new mappings. False where they did not fit.
    pub(crate) fn publish(&mut self, tables: &CodeTables) -> bool {
        let (old, new) = (self.published, tables.lengths());
        let fits = self.rows.set_all(old.rows, &tables.rows[old.rows..])
            && self.rules.set_all(old.rules, &tables.rules[old.rules..])
            && self.pages.set_all(old.pages, &tables.pages[old.pages..])
            && self.objects.set_all(old.objects, &tables.objects[old.objects..]);
        if fits {
            self.published = new;
        }
        // Mappings go out even so: of what was unmapped since, nothing may be walked by the rules of what lay there before. A file whose
        // rules are not there has none.
        let known = self.published.objects;
        let with_known_rules = |mapping: &Mapping| Mapping {
            object: if (mapping.object as usize) < known {
                mapping.object
            } else {
                NO_OBJECT
            },
            ..*mapping
        };
        let mappings: Vec<Mapping> = tables.mappings.iter().map(with_known_rules).collect();
        let mut control = self.control();
        // Walks that run at this moment go on in the old half.
        let half = (control.generation + 1) % 2;
        if !self.mappings.set_all(half as usize * MAX_MAPPINGS, &mappings) {
            return false;
        }
        control.mapping_count[half as usize] = mappings.len() as u32;
        control.generation += 1;
        self.control.set(0, control);
        fits
    }

    pub(crate) fn control(&self) -> Control {
        self.control.get(0).unwrap_or_default()
    }

    fn change(&self, to: impl FnOnce(&mut Control)) {
        let mut control = self.control();
        to(&mut control);
        self.control.set(0, control);
    }

    pub(crate) fn set_interval(&self, off_cpu_interval: u64) {
        self.change(|control| control.off_cpu_interval = off_cpu_interval.clamp(1, LONGEST_INTERVAL));
    }

    /// Gives the slot of a thread that has ended to others.
    pub(crate) fn free_slot(&self, index: usize) {
        self.slots.clear(index);
        let index = index as u32;
        // It is full only if a slot was freed twice, which loses nothing.
        let _ = self
            .skeleton
            .maps
            .free_slots
            .update(&[], &index.to_ne_bytes(), MapFlags::ANY);
    }

    /// One of the counts, summed over the CPUs.
    pub(crate) fn count(&self, which: u32) -> u64 {
        sum_of_cpus(&self.skeleton.maps.counts, which)
    }

    /// Times that the kernel did not run a program because one ran on that CPU already (`recursion_misses`, Linux 5.12).
    pub(crate) fn recursion_misses(&self) -> u64 {
        let programs = &self.skeleton.progs;
        let on_every_switch = [
            &programs.on_switch,
            &programs.on_waking,
            &programs.on_new,
            &programs.on_exit,
            &programs.on_free,
        ];
        on_every_switch.into_iter().map(|program| misses(program.as_fd())).sum()
    }

    /// How many walks ended so.
    pub(crate) fn ending_count(&self, ending: u32) -> u64 {
        sum_of_cpus(&self.skeleton.maps.endings, ending)
    }
}

fn misses(program: BorrowedFd<'_>) -> u64 {
    let mut facts = libbpf_rs::libbpf_sys::bpf_prog_info::default();
    let mut length = size_of_val(&facts) as u32;
    let place: *mut libbpf_rs::libbpf_sys::bpf_prog_info = &mut facts;
    // SAFETY: the kernel writes no more than `length` bytes there; without pointers in it, it writes nowhere else.
    let told = unsafe { libbpf_rs::libbpf_sys::bpf_obj_get_info_by_fd(program.as_raw_fd(), place.cast(), &mut length) };
    if told == 0 { facts.recursion_misses } else { 0 }
}

/// A timer for each CPU. Not all CPUs of a machine need have counters, or one to spare: those that have none count the CPU clock.
fn timers<T, E>(cpus: &[u32], mut open: impl FnMut(Event, u32) -> Result<T, E>) -> Result<(Vec<T>, TimerEvent), E> {
    let mut all_count_cycles = true;
    let mut timers = Vec::with_capacity(cpus.len());
    for cpu in cpus {
        let timer = open(Event::Cycles, *cpu).or_else(|_| {
            all_count_cycles = false;
            open(Event::CpuClock, *cpu)
        })?;
        timers.push(timer);
    }
    let kind = match all_count_cycles {
        true => TimerEvent::Cycles,
        false => TimerEvent::CpuClock,
    };
    Ok((timers, kind))
}

fn sum_of_cpus(map: &impl MapCore, key: u32) -> u64 {
    let values = map.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten();
    values
        .unwrap_or_default()
        .iter()
        .filter_map(|bytes| Some(u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?)))
        .sum()
}

/// Threads have numbers below this one (/proc/sys/kernel/pid_max; 2^22 is the most that there is).
fn highest_thread_number() -> u32 {
    const MOST: u32 = 1 << 22;
    let told = std::fs::read_to_string("/proc/sys/kernel/pid_max").ok();
    told.and_then(|text| text.trim().parse().ok())
        .map_or(MOST, |most: u32| most.min(MOST))
}

#[cfg(test)]
mod tests;
