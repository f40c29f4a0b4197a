//! The rows of one recording.

use super::{KnownLoad, stat_counters};
use crate::roles::handlers;
use crate::sample_pieces::in_pieces;
use foldhash::{HashMap, HashSet};
use scaleprof_bundle::{
    Bundle, CounterRow, Manifest, MeasurementClock, MeasurementRow, MeasurementRows, SampleRow, Samples, SecondRow,
    StateRow, UtcMicros, sample_rows,
};
use scaleprof_profile::import::{RecordedBranches, RecordedFile, Recording, RecordingFormat, Weights};
use scaleprof_profile::perf_stat::PerfStat;
use scaleprof_profile::{KERNEL, SCALEPROF, Sample, StackId, both};
use scaleprof_vocabulary::{MeasurementOutcome, Role, ThreadState, UnwindStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;
/// The kernel's code for user space is the thread's own time.
const VDSO: &str = "[vdso]";
/// What stands for the number of connections where it is not known.
const UNKNOWN: i32 = -1;

/// What is known of a recording from outside.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) measurement: i32,
    pub(super) repeat: i32,
    pub(super) load: Option<KnownLoad>,
    /// What perf stat counted.
    pub(super) stat: Option<PerfStat>,
    /// What stands for the start of the recording, whose clock does not tell the day.
    pub(super) started_at: UtcMicros,
}

/// A recording as a measurement.
pub(super) struct ImportedMeasurement {
    pub(super) rung: MeasurementRow,
    /// All rows but the samples.
    pub(super) rows: MeasurementRows,
    pub(super) rest: ImportedSamples,
}

/// What becomes of a recording apart from its rows: its samples, which are made into rows when these are written, and what is asked of it
/// besides.
pub(super) struct ImportedSamples {
    measurement: i32,
    recording: Recording,
    clock: MeasurementClock,
    serving: HashSet<u32>,
}

impl ImportedMeasurement {
    pub(super) fn of(known: &Known, recording: Recording) -> ImportedMeasurement {
        ImportedMeasurement::made(known, recording, |_, rows| ((), rows())).0
    }

    /// The same with its samples as a bundle [in memory](Self::into_bundle) has them: they are made beside the rows.
    pub(super) fn with_samples(known: &Known, recording: Recording) -> (ImportedMeasurement, Samples) {
        ImportedMeasurement::made(known, recording, |samples, rows| both(samples, rows))
    }

    /// With what `make` makes of the samples beside the rows.
    fn made<T>(
        known: &Known,
        mut recording: Recording,
        make: impl FnOnce(&(dyn Fn() -> Samples + Sync), &dyn Fn() -> MeasurementRows) -> (T, MeasurementRows),
    ) -> (ImportedMeasurement, T) {
        if recording.weights == Weights::Counts {
            share_out(&mut recording);
        }
        let span = Span::of(&recording);
        let clock = MeasurementClock {
            monotonic_ns: span.start_ns,
            utc: known.started_at,
        };
        let serving = handlers(&recording.profile);
        let role = |thread| role(&serving, thread);
        let samples = || Samples::of_profile(known.measurement, &recording.profile.samples, &clock, role);
        let rows = || MeasurementRows {
            states: states(known.measurement, &recording, (&span, &clock), &role),
            counters: counters(known.measurement, &recording, (&span, &clock)),
            ..MeasurementRows::default()
        };
        let (samples, mut rows) = make(&samples, &rows);
        if let Some(load) = known.load {
            rows.seconds = seconds(known, &load, &span);
        }
        if let Some(stat) = &known.stat {
            let nanoseconds: i64 = match rows.seconds.is_empty() {
                true => span.seconds_ns.iter().sum::<u64>() as i64,
                false => rows.seconds.iter().map(|second| second.duration_ns).sum(),
            };
            let counted = stat_counters::rows(known.measurement, stat, nanoseconds as f64 / SECOND as f64);
            rows.counters.extend(counted);
        }
        rows.take_profile_without_samples(known.measurement, &mut recording.profile);
        let connections = |load: KnownLoad| i32::try_from(load.connections).unwrap_or(i32::MAX);
        let rung = MeasurementRow {
            measurement: known.measurement,
            connections: known.load.map_or(UNKNOWN, connections),
            idle_connections: 0,
            repeat: known.repeat,
            offered_rate: None,
            started_at: known.started_at,
            connect_seconds: 0.0,
            outcome: MeasurementOutcome::Complete,
            client_lag_p99_us: None,
            client_threads: 0,
            client_resident_bytes: None,
        };
        let rest = ImportedSamples {
            measurement: known.measurement,
            recording,
            clock,
            serving,
        };
        (ImportedMeasurement { rung, rows, rest }, samples)
    }

    /// A bundle of it alone, as it is read back, and what is left.
    pub(super) fn into_bundle(self, path: &Path, manifest: &Manifest, samples: Samples) -> (Bundle, ImportedSamples) {
        let ImportedMeasurement { rung, rows, rest } = self;
        (Bundle::of_one_measurement(path, manifest, rung, rows, samples), rest)
    }
}

impl ImportedSamples {
    /// Threads that served clients; 0 where nothing tells which did.
    pub(super) fn clients(&self) -> usize {
        self.serving.len()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.recording.profile.samples.len()
    }

    /// Lets go of them: there may be millions.
    pub(super) fn forget(&mut self) {
        self.recording.profile.samples = Vec::new();
    }

    /// Some of them as rows: all would take more memory than the recording itself.
    pub(super) fn rows(&self, places: Range<usize>) -> Vec<SampleRow> {
        let some = self.recording.profile.samples.get(places).unwrap_or_default();
        let role = |thread| role(&self.serving, thread);
        sample_rows(self.measurement, some, &self.clock, role).collect()
    }

    /// The jumps that were recorded with it, if any were.
    pub(super) fn branches(&self) -> Option<&RecordedBranches> {
        self.recording.branches.as_ref()
    }

    /// Where its code is.
    pub(super) fn files(&self) -> &[RecordedFile] {
        &self.recording.files
    }
}

/// Whom a thread serves: in a database server, by the functions that it was seen in; in another program all threads count.
fn role(serving: &HashSet<u32>, thread: u32) -> Role {
    match serving.is_empty() || serving.contains(&thread) {
        true => Role::Connection,
        false => Role::Background,
    }
}

/// Gives its samples weights that add up to its length: nobody knows how much time they were, so that figures per second are shares of
/// all of it.
fn share_out(recording: &mut Recording) {
    let total: f64 = recording.profile.samples.iter().map(|sample| sample.weight_ns).sum();
    let length = recording
        .span
        .as_ref()
        .map(|span| span.end - span.start)
        .filter(|length| *length > 0);
    let each = length.unwrap_or(SECOND) as f64 / total;
    if each.is_finite() {
        for sample in &mut recording.profile.samples {
            sample.weight_ns *= each;
        }
    }
}

/// How long a recording was.
struct Span {
    start_ns: u64,
    /// Length of every second; the last may be shorter.
    seconds_ns: Vec<u64>,
}

impl Span {
    /// From the first to the last sample. Where samples have no times it is as long as one thread would have taken for all of
    /// it, so that figures per second are shares.
    fn of(recording: &Recording) -> Span {
        let (start_ns, length) = match &recording.span {
            Some(span) if span.end > span.start => (span.start, span.end - span.start),
            _ => {
                let total: f64 = recording.profile.samples.iter().map(|sample| sample.weight_ns).sum();
                (recording.span.as_ref().map_or(0, |span| span.start), total as u64)
            }
        };
        // A bundle of a day has 86 400 seconds; a clock that jumps must not make a thousand times as many.
        let length = length.clamp(1, 1_000_000 * SECOND);
        // Where no sample has a time, nothing tells one second from another: all of it is one.
        let mut times = recording.profile.samples.iter().map(|sample| sample.time_ns);
        let first = times.next();
        if times.all(|time| Some(time) == first) {
            return Span {
                start_ns,
                seconds_ns: vec![length],
            };
        }
        let whole = (length / SECOND) as usize;
        let mut seconds_ns = vec![SECOND; whole];
        // The last sample lies in a second of its own.
        seconds_ns.extend(Some(length % SECOND).filter(|rest| *rest > 0 || whole == 0));
        Span { start_ns, seconds_ns }
    }

    /// The seconds, for so many rows each. None of a clock that jumped: such rows would be more than all that was recorded.
    fn seconds(&self, rows: usize) -> Range<i32> {
        const MOST_ROWS: usize = 1 << 20;
        match i32::try_from(self.seconds_ns.len()) {
            Ok(seconds) if self.seconds_ns.len() * rows.max(1) <= MOST_ROWS => 0..seconds,
            _ => 0..0,
        }
    }
}

/// Time by second, thread and state, by these.
fn time_of_threads(samples: &[Sample], clock: &MeasurementClock) -> Vec<((i32, u32, ThreadState), f64)> {
    let mut sums: HashMap<(i32, u32, ThreadState), f64> = HashMap::default();
    for sample in samples {
        // As collectors tell it: spinning is found in the samples again.
        let state = match sample.state {
            ThreadState::Spin => ThreadState::Cpu,
            state => state,
        };
        let second = clock.second(sample.time_ns);
        *sums.entry((second, sample.thread, state)).or_default() += sample.weight_ns;
    }
    let mut sums: Vec<((i32, u32, ThreadState), f64)> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|((second, thread, state), _)| (*second, *thread, *state as u8));
    sums
}

/// Time by role, second and state, and by thread, as the samples tell it. How long threads lived is not known.
fn states(
    measurement: i32,
    recording: &Recording,
    (span, clock): (&Span, &MeasurementClock),
    role: &impl Fn(u32) -> Role,
) -> Vec<StateRow> {
    type Place = (Option<i32>, Role, Option<u32>, ThreadState);
    let mut sums: BTreeMap<Place, f64> = BTreeMap::new();
    let of_threads = in_pieces(&recording.profile.samples, |piece| time_of_threads(piece, clock));
    for ((second, thread, state), nanoseconds) in of_threads.into_iter().flatten() {
        let role = role(thread);
        *sums.entry((Some(second), role, None, state)).or_default() += nanoseconds;
        *sums.entry((None, role, Some(thread), state)).or_default() += nanoseconds;
    }
    // A second in which nobody was seen counts like the others: figures per second are of all of them.
    let seen: BTreeSet<(Role, ThreadState)> = sums
        .keys()
        .filter(|(second, ..)| second.is_some())
        .map(|(_, role, _, state)| (*role, *state))
        .collect();
    for second in span.seconds(seen.len()) {
        for (role, state) in &seen {
            sums.entry((Some(second), *role, None, *state)).or_default();
        }
    }
    let rows = sums
        .into_iter()
        .map(|((second, role, thread, state), nanoseconds)| StateRow {
            measurement,
            second,
            role,
            thread: thread.map(i64::from),
            name: thread.and_then(|thread| Some(recording.threads.get(&thread)?.name.clone())),
            state,
            nanoseconds: nanoseconds as i64,
            lifetime_ns: None,
        });
    rows.collect()
}

fn counters(measurement: i32, recording: &Recording, (span, clock): (&Span, &MeasurementClock)) -> Vec<CounterRow> {
    let row = |second: Option<i32>, counter: &str, value: f64| CounterRow {
        measurement,
        second,
        counter: counter.to_owned(),
        value,
        running_share: None,
    };
    let mut rows: Vec<CounterRow> = (0..)
        .zip(&span.seconds_ns)
        .map(|(second, length)| row(Some(second), "probe.watched_seconds", *length as f64 / SECOND as f64))
        .collect();
    let samples = &recording.profile.samples;
    // A line of folded stacks stands for many.
    let taken = recording.samples_of_unknown_rate.unwrap_or(samples.len() as f64);
    rows.push(row(None, "probe.samples", taken));
    rows.extend(
        recording
            .samples_lost
            .map(|lost| row(None, "probe.samples_lost", lost as f64)),
    );
    // Formats of names alone do not say how far a stack reaches.
    let of_piece = |piece: &[Sample]| {
        let ended = |ending| piece.iter().filter(|sample| sample.ending == ending).count();
        [
            piece.len() - ended(UnwindStatus::Unknown),
            ended(UnwindStatus::Complete),
        ]
    };
    let counts = in_pieces(samples, of_piece).into_iter();
    let [walked, complete] = counts.fold([0, 0], |sum, piece| [sum[0] + piece[0], sum[1] + piece[1]]);
    if walked > 0 {
        rows.push(row(None, "probe.stacks", walked as f64));
        rows.push(row(None, "probe.stacks_complete", complete as f64));
    }
    // Not where the weights are no time: a part of them would be called spinning.
    let loops = recording
        .spin_loops
        .filter(|_| recording.weights == Weights::Nanoseconds);
    rows.extend(loops.map(|loops| row(None, "probe.spin_loops", loops as f64)));
    rows.extend(cpu_counters(measurement, recording, (span, clock)));
    rows
}

/// The server's CPU time, by its samples: user and system as `/proc` has them. Not where the kernel was left out, as part of it
/// would be missing, and not where samples are no time.
fn cpu_counters(measurement: i32, recording: &Recording, (span, clock): (&Span, &MeasurementClock)) -> Vec<CounterRow> {
    if recording.without_kernel || recording.weights != Weights::Nanoseconds {
        return Vec::new();
    }
    let profile = &recording.profile;
    // Folded stacks mark functions of the kernel or do not.
    let marks_kernel = || profile.frames.iter().any(|(_, frame)| &*frame.module == KERNEL);
    if recording.format == RecordingFormat::Folded && !marks_kernel() {
        return Vec::new();
    }
    let is_of_kernel = |stack| {
        let innermost = profile.stacks.get(stack);
        let frame = innermost.and_then(|node| profile.frames.get(node.frame));
        frame.is_some_and(|frame| frame.module.starts_with('[') && ![VDSO, SCALEPROF].contains(&&*frame.module))
    };
    let on_cpu = |sample: &&Sample| sample.state.is_on_cpu();
    // Another tool may have recorded waits alone.
    if !profile.samples.iter().any(|sample| on_cpu(&sample)) {
        return Vec::new();
    }
    let mut sums: BTreeMap<i32, [f64; 2]> = span.seconds(2).map(|second| (second, [0.0; 2])).collect();
    let of_piece = |samples: &[Sample]| {
        let mut known: HashMap<StackId, bool> = HashMap::default();
        let mut sums: BTreeMap<i32, [f64; 2]> = BTreeMap::new();
        for sample in samples.iter().filter(on_cpu) {
            let second = sums.entry(clock.second(sample.time_ns)).or_default();
            let of_kernel = *known.entry(sample.stack).or_insert_with(|| is_of_kernel(sample.stack));
            second[usize::from(of_kernel)] += sample.weight_ns / SECOND as f64;
        }
        sums
    };
    for (second, [user, system]) in in_pieces(&profile.samples, of_piece).into_iter().flatten() {
        let sum = sums.entry(second).or_default();
        *sum = [sum[0] + user, sum[1] + system];
    }
    let rows = sums.into_iter().flat_map(|(second, [user, system])| {
        [("server.cpu_user_seconds", user), ("server.cpu_system_seconds", system)].map(|(counter, value)| CounterRow {
            measurement,
            second: Some(second),
            counter: counter.to_owned(),
            value,
            running_share: None,
        })
    });
    rows.collect()
}

/// What the user knows of the load, spread evenly over the recording. In a closed loop every connection is always inside of a
/// transaction.
fn seconds(known: &Known, load: &KnownLoad, span: &Span) -> Vec<SecondRow> {
    let mut done = 0.0_f64;
    let rows = (0..).zip(&span.seconds_ns).map(|(second, length)| {
        let before = done.round() as i64;
        done += load.throughput * *length as f64 / SECOND as f64;
        let transactions = done.round() as i64 - before;
        let in_transaction_ns = i64::try_from(*length)
            .unwrap_or(i64::MAX)
            .saturating_mul(i64::from(load.connections));
        SecondRow {
            measurement: known.measurement,
            second,
            started_at: UtcMicros(known.started_at.0 + i64::from(second) * 1_000_000),
            duration_ns: i64::try_from(*length).unwrap_or(i64::MAX),
            transactions,
            queries: 0,
            reads: 0,
            writes: 0,
            errors: 0,
            retries: 0,
            service_sum_ns: in_transaction_ns,
            response_sum_ns: in_transaction_ns,
            in_transaction_ns,
            p50_ns: None,
            p95_ns: None,
            p99_ns: None,
            max_ns: None,
        }
    });
    as_told(rows.collect(), load)
}

/// Transactions are whole ones, and a short recording has few. When it began and ended is only known from its first and last sample: its
/// last second is taken as long as makes the throughput what was told.
fn as_told(mut rows: Vec<SecondRow>, load: &KnownLoad) -> Vec<SecondRow> {
    let transactions: i64 = rows.iter().map(|row| row.transactions).sum();
    let took = (transactions as f64 / load.throughput * SECOND as f64).round() as i64;
    let before: i64 = rows.iter().rev().skip(1).map(|row| row.duration_ns).sum();
    if let Some(last) = rows.last_mut().filter(|_| transactions > 0 && took > before) {
        last.duration_ns = took - before;
        last.in_transaction_ns = last.duration_ns.saturating_mul(i64::from(load.connections));
        (last.service_sum_ns, last.response_sum_ns) = (last.in_transaction_ns, last.in_transaction_ns);
    }
    rows
}

#[cfg(test)]
mod tests;
