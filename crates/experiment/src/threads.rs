//! Watching the server's threads through the measurements of a run.

use scaleprof_vocabulary::{Role, ThreadState};
use std::collections::{BTreeMap, BTreeSet};

use scaleprof_bundle::{MeasurementClock, MeasurementRows, UtcMicros};
use scaleprof_probe::data_layout::USUAL_DEBUG_BYTES;
use scaleprof_probe::disassembly::FunctionListing;
use scaleprof_probe::plain::{PlainOptions, PlainWatch};
use scaleprof_probe::{
    CodeMap, ProbeError, ProcessCode, ProcessNames, Watch, WatchOptions, pid_namespaces, symbol_search,
};
use scaleprof_profile::Converter;

use crate::code_source::{CodeFile, CodeSource, KeepShared};
use crate::roles::{ThreadUse, handlers, roles, roles_of_any_load};
use crate::sample_store::SampleStore;
use crate::shared_data::SharedData;
use crate::stretch::{Stretch, ThreadStretch, lives, of_kernel, of_plain, whole_measurement};
use crate::thread_rows::{
    counter_rows, life_rows, lost_rows, rows_of, second_rows, seen_rows, switching_rows, thread_rows,
};
use scaleprof_analysis::cache_lines::Kept;

/// Watches one server.
pub(crate) struct ThreadWatch {
    pid: u32,
    source: Source,
    names: ProcessNames,
    converter: Converter,
    /// The samples since the last rows.
    store: SampleStore,
    /// What the server itself calls its threads, where it told.
    called: BTreeMap<u32, String>,
    /// Whether some of its code is not known to the programs.
    code_found_no_room: bool,
    /// How often the kernel stopped sampling for a moment.
    throttled: u64,
    /// Why it ended.
    problem: Option<String>,
}

enum Source {
    /// BPF programs: exact states, stacks on and off the CPU, locks, wakers.
    Kernel(Watch),
    /// Without privileges.
    Plain(Box<PlainWatch>),
    /// Neither any more; where the code lay then.
    Ended(Option<CodeMap>),
}

/// Whose load it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load<'a> {
    /// Ours, with so many connections.
    Ours(u32),
    /// Somebody's: all connections are part of it.
    Anybodys,
    /// The process's own: these threads of it do the work.
    Of(&'a BTreeSet<u32>),
}

impl ThreadWatch {
    /// Begins to watch. Without the privileges for BPF it falls back on what one may see of one's own process, and tells why.
    pub(crate) fn start(pid: u32, options: WatchOptions) -> Result<(Self, Vec<(String, String)>), ProbeError> {
        let (source, lacks) = match Watch::start(pid, options) {
            Ok(watch) => {
                let mut lacks = lacks_in_container(pid);
                lacks.extend(watch.missing().into_iter().map(|missing| (missing.what, missing.why)));
                (Source::Kernel(watch), lacks)
            }
            Err(refused) => {
                let plain = PlainOptions {
                    frequency_hz: options.frequency_hz,
                    ..PlainOptions::default()
                };
                // Where even that is refused, the first refusal says more.
                let Ok(watch) = PlainWatch::start(pid, plain) else {
                    return Err(refused);
                };
                let lacks = lacks_of(&watch, &refused);
                (Source::Plain(Box::new(watch)), lacks)
            }
        };
        let mut watch = Self {
            pid,
            source,
            names: ProcessNames::new(symbol_search()).asking_debuginfod(options.ask_debuginfod),
            converter: Converter::new(),
            store: SampleStore::default(),
            called: BTreeMap::new(),
            code_found_no_room: false,
            throttled: 0,
            problem: None,
        };
        if options.ask_debuginfod {
            // Now, and not between the first two rungs.
            watch.read_names();
        }
        Ok((watch, lacks))
    }

    /// Takes the server's own names of its threads, by their numbers, for the rows that are added from now on.
    pub(crate) fn call_threads(&mut self, called: BTreeMap<u32, String>) {
        // Numbers in a container are not those of our rows.
        let is_ours = pid_namespaces(self.pid) == Some(1);
        self.called = called;
        self.called.retain(|_, _| is_ours);
    }

    /// Reads the symbols of all files that are mapped now.
    pub(crate) fn read_names(&mut self) {
        self.follow_code();
        self.names.read_all();
    }

    /// Stops watching for a while, or goes on; a watch without privileges cannot be stopped.
    pub(crate) fn set_paused(&self, paused: bool) -> Result<(), ProbeError> {
        match &self.source {
            Source::Kernel(watch) if paused => watch.pause(),
            Source::Kernel(watch) => watch.resume(),
            Source::Plain(_) => Err(ProbeError::Bpf {
                doing: "pausing",
                why: "the server is watched without BPF, and only BPF programs can be paused".to_owned(),
            }),
            Source::Ended(_) => Ok(()),
        }
    }

    /// Takes everything out of the server's way. What was read can still be named: that takes seconds in which nothing need be seen.
    pub(crate) fn end(&mut self) {
        let map = self.code_map();
        self.source = Source::Ended(map);
    }

    fn code_map(&self) -> Option<CodeMap> {
        match &self.source {
            Source::Kernel(watch) => watch.code().ok(),
            Source::Plain(_) => ProcessCode::of(self.pid).ok().map(|mut code| code.map()),
            Source::Ended(map) => map.clone(),
        }
    }

    /// What happened since the last reading; nothing where the watch has ended.
    pub(crate) fn read(&mut self) -> Stretch {
        match &mut self.source {
            Source::Kernel(watch) => match watch.read() {
                Ok(reading) => {
                    self.code_found_no_room |= reading.counts.code_found_no_room;
                    of_kernel(reading, &mut self.store)
                }
                Err(error) => {
                    self.problem.get_or_insert_with(|| error.to_string());
                    Stretch::default()
                }
            },
            Source::Plain(watch) => {
                let (stretch, throttled) = of_plain(watch, &mut self.store);
                self.throttled += throttled;
                stretch
            }
            Source::Ended(_) => Stretch::default(),
        }
    }

    /// The figures that are missing since the watch ended by itself or could not follow the server's code, with the reason.
    pub(crate) fn problems(&self) -> Vec<(String, String)> {
        let ended = self.problem.as_ref().map(|reason| {
            (
                "states, stacks and locks of the last rungs".to_owned(),
                format!("the watch over the server's threads ended by itself: {reason}"),
            )
        });
        let without_room = self.code_found_no_room.then(|| {
            (
                "stacks through libraries that were loaded late".to_owned(),
                "the server loaded more code than the probe has room for, so stacks through it end there. Attach \
                 again"
                    .to_owned(),
            )
        });
        let throttled = (self.throttled > 0).then(|| {
            (
                "samples of some moments".to_owned(),
                format!(
                    "the kernel stopped sampling {} times for a moment, as that took longer than kernel.perf_cpu_time_max_percent allows",
                    self.throttled
                ),
            )
        });
        let unwalked = self
            .names
            .problems()
            .map(|(file, why)| (format!("stacks through {file}"), why.to_owned()));
        let kernel = self.names.kernel_problem();
        let kernel = kernel.map(|why| ("names of the kernel's functions".to_owned(), why.to_owned()));
        let told = ended.into_iter().chain(without_room).chain(throttled).chain(kernel);
        told.chain(unwalked).collect()
    }

    /// Adds what the stretches of a measurement under that load say to its rows. The first reading
    /// was the measurement's start; each of the others ended a second.
    pub(crate) fn add_rows(
        &mut self,
        measurement: i32,
        started_at: UtcMicros,
        load: Load<'_>,
        stretches: &mut [Stretch],
        rows: &mut MeasurementRows,
    ) {
        // What these stretches hold stays theirs.
        self.store.clear();
        let is_whole = stretches.iter().all(|stretch| stretch.taken_ns > 0);
        let parts = stretches
            .split_first_mut()
            .filter(|(_, seconds)| !seconds.is_empty() && is_whole);
        let Some((start, seconds)) = parts else {
            return;
        };
        let clock = MeasurementClock {
            monotonic_ns: start.taken_ns,
            utc: started_at,
        };
        let whole = whole_measurement(seconds);
        let uses: Vec<ThreadUse> = whole
            .iter()
            .map(|(thread, stretch)| ThreadUse {
                thread: *thread,
                cpu_ns: stretch.nanoseconds[ThreadState::Cpu as usize],
                // What was only concluded says nothing of this one thread.
                net_ns: stretch.net_seen_ns,
            })
            .collect();
        self.follow_code();
        // A sample belongs to the second that it came with: long waits are told in parts, and each part began in a second
        // before its own, as all that is told lags a moment behind.
        let mut came_in = Vec::new();
        for (second, stretch) in (0..).zip(&mut *seconds) {
            for sample in std::mem::take(&mut stretch.samples) {
                let mut sample = sample.restored();
                self.names.without_probe(&mut sample.stack);
                self.converter.add(&sample, &mut self.names);
                came_in.push(second);
            }
        }
        let profile = self.converter.take();
        let roles = match load {
            Load::Ours(connections) => roles(self.pid, connections, &uses),
            Load::Anybodys => roles_of_any_load(self.pid, &uses, &handlers(&profile)),
            Load::Of(workers) => workers.iter().map(|thread| (*thread, Role::Connection)).collect(),
        };
        let role = |thread: u32| roles.get(&thread).copied().unwrap_or(Role::Background);
        for (second, stretch) in seconds.iter().enumerate() {
            rows.states
                .extend(second_rows(measurement, second as i32, stretch, &role));
        }
        let name_of_all = std::fs::read_to_string(format!("/proc/{}/comm", self.pid))
            .ok()
            .map(|name| name.trim_end().to_owned());
        let name = |(thread, stretch): (&u32, &'_ ThreadStretch)| -> String {
            // A server that names its threads to the kernel does so more exactly.
            let has_no_name = role(*thread) == Role::Background && Some(&stretch.name) == name_of_all.as_ref();
            let called = self.called.get(thread).filter(|_| has_no_name);
            called.unwrap_or(&stretch.name).clone()
        };
        let names: BTreeMap<u32, String> = whole.iter().map(|of| (*of.0, name(of))).collect();
        for (thread, stretch) in &whole {
            rows.states.extend(thread_rows(
                measurement,
                (*thread, &names[thread]),
                stretch,
                role(*thread),
            ));
        }
        let names = names.iter().map(|(thread, name)| (*thread, name.as_str())).collect();
        rows.counters
            .extend(life_rows(measurement, &lives(seconds), &names, &role));
        let samples = profile.samples.len() as u64;
        let first = rows.samples.len();
        rows.add_profile(measurement, profile, &clock, role);
        for (row, second) in rows.samples.iter_mut().skip(first).zip(came_in) {
            row.second = second;
        }
        let last = seconds.last().map_or(start.counts, |last| last.counts);
        rows.counters
            .extend(counter_rows(measurement, samples, start.counts, last));
        if let Some((after, before)) = last.lost_by.zip(start.counts.lost_by) {
            rows.counters.extend(lost_rows(measurement, before, after));
        }
        rows.counters.extend(seen_rows(measurement, seconds));
        let reader = last.reader_ns.zip(start.counts.reader_ns);
        if let Some((after, before)) = reader {
            let spent = after.saturating_sub(before) as f64;
            rows.counters
                .extend(rows_of(measurement, None, [("probe.cpu_nanoseconds", spent)]));
        }
        // A reader must know that these were looked for: no sample in one is a zero then.
        let loops = self.names.spin_loops() as f64;
        rows.counters
            .extend(rows_of(measurement, None, [("probe.spin_loops", loops)]));
        for (second, stretch) in seconds.iter().enumerate() {
            rows.counters
                .extend(switching_rows(measurement, second as i32, &stretch.threads));
        }
    }

    /// Symbols are looked up after the measurement, so that reading them does not disturb it, and
    /// while the server lives.
    fn follow_code(&mut self) {
        if self.code_map().is_some_and(|map| self.names.follow(map)) {
            self.converter.forget_addresses();
        }
    }
}

impl CodeSource for ThreadWatch {
    fn disassemble(&mut self, files: &[(CodeFile<'_>, Vec<u64>)]) -> Vec<Result<Vec<FunctionListing>, String>> {
        let files = files.iter();
        let listed = files.map(|((module, build_id), addresses)| self.names.disassemble(module, *build_id, addresses));
        listed.collect()
    }

    fn shared_data(&mut self, files: &[CodeFile<'_>], keep: &KeepShared<'_>) -> Vec<Result<Kept, String>> {
        let kept = files.iter().map(|file| {
            self.names.with_code(file.0, file.1, |bytes, symbols, waiting| {
                let data = SharedData::of(symbols, bytes, waiting, USUAL_DEBUG_BYTES);
                data.map(|data| keep(*file, &data)).map_err(|error| error.to_string())
            })
        });
        kept.collect()
    }
}

/// glibc keeps the number of a mutex's owner as the owner's PID namespace has it, and the kernel's programs know threads by that of
/// the host.
fn lacks_in_container(pid: u32) -> Vec<(String, String)> {
    let is_namesake = scaleprof_probe::pid_namespaces(pid).is_none_or(|depth| depth <= 1);
    let lack = (
        "holders of mutexes".to_owned(),
        "the server runs in a PID namespace of its own, whose numbers its mutexes have: holders are unknown, wakers \
         are known"
            .to_owned(),
    );
    if is_namesake { Vec::new() } else { vec![lack] }
}

fn lacks_of(watch: &PlainWatch, refused: &ProbeError) -> Vec<(String, String)> {
    let mut lacks: Vec<(String, String)> = watch
        .missing()
        .into_iter()
        .map(|lack| {
            let fix = lack.command.map_or_else(String::new, |command| format!("; {command}"));
            (lack.what, format!("{}{fix}", lack.why))
        })
        .collect();
    lacks.push((
        "call paths of threads that wait, the locks that they wait for and who wakes them".to_owned(),
        format!("only BPF programs see a thread as it blocks; {refused}"),
    ));
    lacks
}
