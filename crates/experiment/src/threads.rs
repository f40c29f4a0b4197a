//! Watching the server's threads through the visits of a run, and what a visit's tables say of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use scaleprof_bundle::{CounterRow, StateRow, UtcMicros, VisitClock, VisitRows};
use scaleprof_probe::disassembly::FunctionListing;
use scaleprof_probe::plain::{PlainOptions, PlainWatch};
use scaleprof_probe::{ProbeError, ProcessCode, ProcessNames, Watch, WatchCounts, WatchOptions, symbol_search};
use scaleprof_profile::{Converter, Ending, RawSample, Role, ThreadState};

use crate::code_source::{CodeSource, MOST_DEBUG_BYTES};
use crate::roles::{ThreadUse, handlers, roles, roles_of_any_load};
use crate::shared_data::SharedData;

/// Watches one server.
pub(crate) struct ThreadWatch {
    pid: u32,
    source: Source,
    names: ProcessNames,
    converter: Converter,
}

enum Source {
    /// BPF programs: exact states, stacks on and off the CPU, locks, wakers.
    Kernel(Watch),
    /// Without privileges.
    Plain(Box<PlainWatch>),
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

/// What was seen between two readings.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    /// Nanoseconds of CLOCK_MONOTONIC; 0 where the watch had ended.
    pub(crate) taken_ns: u64,
    /// How long the kernel's programs watched, and how long of it they saw switches; none without them.
    switches_seen: Option<SwitchTime>,
    threads: Vec<ThreadStretch>,
    samples: Vec<RawSample>,
    /// Since the watch began.
    counts: Counts,
}

#[derive(Debug)]
struct ThreadStretch {
    thread: u32,
    name: String,
    lifetime_ns: u64,
    nanoseconds: [u64; 8],
    /// What only the kernel's programs count.
    switching: Option<Switching>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Switching {
    voluntary: u64,
    preempted: u64,
    migrations: u64,
    not_its_own_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct SwitchTime {
    all_ns: u64,
    seen_ns: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    stacks: u64,
    complete: u64,
    lost: u64,
    /// The same by its reason; none where only the sum is known.
    lost_by: Option<LostBy>,
    /// CPU time of whoever reads it; none where that is not known.
    reader_ns: Option<u64>,
}

/// Why samples are lost.
#[derive(Debug, Clone, Copy, Default)]
struct LostBy {
    full_ring: u64,
    without_slot: u64,
    unmatched: u64,
}

impl Stretch {
    /// Threads that lived in it.
    pub(crate) fn thread_count(&self) -> usize {
        self.threads.len()
    }
}

impl ThreadWatch {
    /// Begins to watch. Without the privileges for BPF it falls back on what one may see of one's own process, and tells why.
    pub(crate) fn start(pid: u32, options: WatchOptions) -> Result<(Self, Vec<(String, String)>), ProbeError> {
        let (source, lacks) = match Watch::start(pid, options) {
            Ok(watch) => (Source::Kernel(watch), Vec::new()),
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
        };
        if options.ask_debuginfod {
            // Now, and not between the first two rungs.
            watch.follow_code();
            watch.names.read_all();
        }
        Ok((watch, lacks))
    }

    /// What happened since the last reading; nothing where the watch has ended.
    pub(crate) fn read(&mut self) -> Stretch {
        match &mut self.source {
            Source::Kernel(watch) => watch.read().map(of_kernel).unwrap_or_default(),
            Source::Plain(watch) => of_plain(watch),
        }
    }

    /// Adds what the stretches of a visit under that load say to its rows. The first reading was the visit's start; each of
    /// the others ended a second.
    pub(crate) fn add_rows(
        &mut self,
        visit: i32,
        started_at: UtcMicros,
        load: Load<'_>,
        stretches: &mut [Stretch],
        rows: &mut VisitRows,
    ) {
        let Some((start, seconds)) = stretches.split_first_mut().filter(|(_, seconds)| !seconds.is_empty()) else {
            return;
        };
        let clock = VisitClock {
            monotonic_ns: start.taken_ns,
            utc: started_at,
        };
        let whole = whole_visit(seconds);
        let uses: Vec<ThreadUse> = whole
            .iter()
            .map(|(thread, stretch)| ThreadUse {
                thread: *thread,
                cpu_ns: stretch.nanoseconds[ThreadState::Cpu as usize],
                net_ns: stretch.nanoseconds[ThreadState::Net as usize],
            })
            .collect();
        self.follow_code();
        for sample in seconds.iter_mut().flat_map(|stretch| &mut stretch.samples) {
            self.names.without_probe(&mut sample.stack);
            self.converter.add(sample, &mut self.names);
        }
        let profile = self.converter.take();
        let roles = match load {
            Load::Ours(connections) => roles(self.pid, connections, &uses),
            Load::Anybodys => roles_of_any_load(self.pid, &uses, &handlers(&profile)),
            Load::Of(workers) => workers.iter().map(|thread| (*thread, Role::Connection)).collect(),
        };
        let role = |thread: u32| roles.get(&thread).copied().unwrap_or(Role::Background);
        for (second, stretch) in seconds.iter().enumerate() {
            rows.states.extend(second_rows(visit, second as i32, stretch, &role));
        }
        for (thread, stretch) in &whole {
            rows.states.extend(thread_rows(visit, *thread, stretch, role(*thread)));
        }
        let samples = profile.samples.len() as u64;
        rows.add_profile(visit, &profile, &clock, role);
        let last = seconds.last().map_or(start.counts, |last| last.counts);
        rows.counters.extend(counter_rows(visit, samples, start.counts, last));
        if let Some((after, before)) = last.lost_by.zip(start.counts.lost_by) {
            rows.counters.extend(lost_rows(visit, before, after));
        }
        rows.counters.extend(seen_rows(visit, seconds));
        let reader = last.reader_ns.zip(start.counts.reader_ns);
        if let Some((after, before)) = reader {
            let spent = after.saturating_sub(before) as f64;
            rows.counters
                .extend(rows_of(visit, None, [("probe.cpu_nanoseconds", spent)]));
        }
        // A reader must know that these were looked for: no sample in one is a zero then.
        let loops = self.names.waiting_loops() as f64;
        rows.counters
            .extend(rows_of(visit, None, [("probe.waiting_loops", loops)]));
        for (second, stretch) in seconds.iter().enumerate() {
            rows.counters
                .extend(switching_rows(visit, second as i32, &stretch.threads));
        }
    }

    /// Symbols are looked up after the visit, so that reading them does not disturb it, and while the server lives.
    fn follow_code(&mut self) {
        let map = match &self.source {
            Source::Kernel(watch) => watch.code().ok(),
            Source::Plain(_) => ProcessCode::of(self.pid).ok().map(|code| code.map()),
        };
        if map.is_some_and(|map| self.names.follow(map)) {
            self.converter.forget_addresses();
        }
    }
}

impl CodeSource for ThreadWatch {
    fn disassemble(
        &mut self,
        module: &str,
        build_id: Option<&str>,
        addresses: &[u64],
    ) -> Result<Vec<FunctionListing>, String> {
        self.names.disassemble(module, build_id, addresses)
    }

    fn shared_data(&mut self, module: &str, build_id: Option<&str>) -> Result<SharedData, String> {
        self.names.with_code(module, build_id, |bytes, symbols, waiting| {
            SharedData::of(symbols, bytes, waiting, MOST_DEBUG_BYTES).map_err(|error| error.to_string())
        })
    }
}

fn lacks_of(watch: &PlainWatch, refused: &ProbeError) -> Vec<(String, String)> {
    let mut lacks: Vec<(String, String)> = watch
        .missing()
        .into_iter()
        .map(|lack| {
            let mend = lack.command.map_or_else(String::new, |command| format!("; {command}"));
            (lack.what, format!("{}{mend}", lack.why))
        })
        .collect();
    lacks.push((
        "stacks of waiting threads, locks, wakers".to_owned(),
        format!("the kernel did not take the BPF programs: {refused}"),
    ));
    lacks
}

fn of_kernel(reading: scaleprof_probe::WatchReading) -> Stretch {
    Stretch {
        taken_ns: reading.taken_ns,
        counts: counts(&reading.counts),
        switches_seen: Some(SwitchTime {
            all_ns: reading.taken_ns.saturating_sub(reading.since_ns),
            seen_ns: reading.watched_ns,
        }),
        samples: reading.samples,
        threads: reading
            .threads
            .into_iter()
            .map(|thread| ThreadStretch {
                thread: thread.thread,
                name: thread.name,
                lifetime_ns: thread.lifetime_ns,
                nanoseconds: thread.nanoseconds,
                switching: Some(Switching {
                    voluntary: thread.switches,
                    preempted: thread.preemptions,
                    migrations: thread.migrations,
                    not_its_own_ns: thread.not_its_own_ns,
                }),
            })
            .collect(),
    }
}

fn counts(counts: &WatchCounts) -> Counts {
    Counts {
        stacks: counts.endings.iter().sum(),
        complete: counts.endings[Ending::Complete as usize],
        reader_ns: Some(counts.reader_cpu_ns),
        lost: counts.lost_to_full_ring + counts.lost_without_slot + counts.unmatched,
        lost_by: Some(LostBy {
            full_ring: counts.lost_to_full_ring,
            without_slot: counts.lost_without_slot,
            unmatched: counts.unmatched,
        }),
    }
}

fn of_plain(watch: &mut PlainWatch) -> Stretch {
    let reading = watch.read();
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let complete = |sample: &&RawSample| sample.stack.ending == Ending::Complete;
    Stretch {
        switches_seen: None,
        taken_ns: time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64,
        counts: Counts {
            stacks: reading.samples.len() as u64,
            complete: reading.samples.iter().filter(complete).count() as u64,
            lost: reading.lost,
            lost_by: None,
            reader_ns: None,
        },
        samples: reading.samples,
        threads: reading
            .threads
            .into_iter()
            .map(|thread| ThreadStretch {
                thread: thread.thread,
                name: thread.name,
                lifetime_ns: thread.lifetime_ns,
                nanoseconds: thread.nanoseconds,
                switching: None,
            })
            .collect(),
    }
}

/// Every thread over all seconds.
fn whole_visit(seconds: &[Stretch]) -> BTreeMap<u32, ThreadStretch> {
    let mut whole: BTreeMap<u32, ThreadStretch> = BTreeMap::new();
    for thread in seconds.iter().flat_map(|stretch| &stretch.threads) {
        let sum = whole.entry(thread.thread).or_insert_with(|| ThreadStretch {
            thread: thread.thread,
            name: String::new(),
            lifetime_ns: 0,
            nanoseconds: [0; 8],
            switching: None,
        });
        // A thread may get its name only after its start.
        sum.name.clone_from(&thread.name);
        sum.lifetime_ns += thread.lifetime_ns;
        for (sum, ns) in sum.nanoseconds.iter_mut().zip(thread.nanoseconds) {
            *sum += ns;
        }
    }
    whole
}

const LIFETIME: &str = "lifetime";

/// The states that a collector tells; spinning is found later, in the stacks.
fn told_states() -> impl Iterator<Item = ThreadState> {
    ThreadState::ALL.into_iter().filter(|state| *state != ThreadState::Spin)
}

fn second_rows(visit: i32, second: i32, stretch: &Stretch, role: &impl Fn(u32) -> Role) -> Vec<StateRow> {
    let mut sums: HashMap<(&'static str, &'static str), u64> = HashMap::new();
    for thread in &stretch.threads {
        let role = role(thread.thread).name();
        *sums.entry((role, LIFETIME)).or_default() += thread.lifetime_ns;
        for state in told_states() {
            *sums.entry((role, state.name())).or_default() += thread.nanoseconds[state as usize];
        }
    }
    let mut rows: Vec<StateRow> = sums
        .into_iter()
        .map(|((role, state), nanoseconds)| StateRow {
            visit,
            second: Some(second),
            role: role.to_owned(),
            thread: None,
            name: None,
            state: state.to_owned(),
            nanoseconds: signed(nanoseconds),
        })
        .collect();
    rows.sort_by(|a, b| (&a.role, &a.state).cmp(&(&b.role, &b.state)));
    rows
}

fn thread_rows(visit: i32, thread: u32, stretch: &ThreadStretch, role: Role) -> Vec<StateRow> {
    let states = told_states().map(|state| (state.name(), stretch.nanoseconds[state as usize]));
    states
        .chain([(LIFETIME, stretch.lifetime_ns)])
        .filter(|(_, nanoseconds)| *nanoseconds > 0)
        .map(|(state, nanoseconds)| StateRow {
            visit,
            second: None,
            role: role.name().to_owned(),
            thread: Some(i64::from(thread)),
            name: Some(stretch.name.clone()),
            state: state.to_owned(),
            nanoseconds: signed(nanoseconds),
        })
        .collect()
}

fn counter_rows(visit: i32, samples: u64, before: Counts, after: Counts) -> Vec<CounterRow> {
    rows_of(
        visit,
        None,
        [
            ("probe.samples", samples as f64),
            ("probe.samples_lost", after.lost.saturating_sub(before.lost) as f64),
            ("probe.stacks", after.stacks.saturating_sub(before.stacks) as f64),
            (
                "probe.stacks_complete",
                after.complete.saturating_sub(before.complete) as f64,
            ),
        ],
    )
}

/// For how long switches were seen; nothing where there was nobody to see them.
fn seen_rows(visit: i32, seconds: &[Stretch]) -> Vec<CounterRow> {
    let times: Vec<SwitchTime> = seconds.iter().filter_map(|stretch| stretch.switches_seen).collect();
    if times.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&SwitchTime) -> u64| times.iter().map(of).sum::<u64>() as f64 / 1e9;
    rows_of(
        visit,
        None,
        [
            ("probe.switch_seconds", sum(|time| time.all_ns)),
            ("probe.switch_seconds_seen", sum(|time| time.seen_ns)),
        ],
    )
}

fn lost_rows(visit: i32, before: LostBy, after: LostBy) -> Vec<CounterRow> {
    let lost = |of: fn(&LostBy) -> u64| of(&after).saturating_sub(of(&before)) as f64;
    rows_of(
        visit,
        None,
        [
            ("probe.lost_to_full_ring", lost(|by| by.full_ring)),
            ("probe.lost_without_slot", lost(|by| by.without_slot)),
            ("probe.unmatched", lost(|by| by.unmatched)),
        ],
    )
}

/// How the server's threads got and lost their CPUs; nothing where that was not counted.
fn switching_rows(visit: i32, second: i32, threads: &[ThreadStretch]) -> Vec<CounterRow> {
    let counted: Vec<Switching> = threads.iter().filter_map(|thread| thread.switching).collect();
    if counted.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&Switching) -> u64| counted.iter().map(of).sum::<u64>() as f64;
    rows_of(
        visit,
        Some(second),
        [
            ("threads.voluntary_switches", sum(|thread| thread.voluntary)),
            ("threads.preemptions", sum(|thread| thread.preempted)),
            ("threads.migrations", sum(|thread| thread.migrations)),
            (
                "threads.cpu_seconds_not_their_own",
                sum(|thread| thread.not_its_own_ns) * 1e-9,
            ),
        ],
    )
}

fn rows_of<const N: usize>(visit: i32, second: Option<i32>, counters: [(&str, f64); N]) -> Vec<CounterRow> {
    counters
        .into_iter()
        .map(|(counter, value)| CounterRow {
            visit,
            second,
            counter: counter.to_owned(),
            value,
            counted_share: None,
        })
        .collect()
}

fn signed(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}
