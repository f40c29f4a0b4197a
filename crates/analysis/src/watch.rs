//! What the threads of a server did while it was watched under a load that is not ours.

use crate::by_path::ByPath;
use crate::call_paths::CallPaths;
use crate::ledger::{
    CpuSeconds, TOLERANCE, Watched, background, complete_share, cpu_seconds, not_charged, split_off_spin, why_no_spin,
};
use crate::measurement_rows::MeasurementRows;
use crate::path_costs::PathCosts;
use crate::paths::{MOST_LOCKS, heaviest_of_each, lock_summaries, number_holders_and_wakers};
use crate::rung::RungResult;
use crate::sampled::Sampled;
use crate::thread_time::ThreadTime;
use crate::totals::{Amount, Window, totals};
use scaleprof_bundle::{
    Bundle, CallPath, Ledger, LockRow, LockSummary, Missing, WatchSummary, WatchedLock, WatchedPath, WatchedThreads,
    Workload,
};
use scaleprof_vocabulary::{Role, ThreadState};
use std::collections::{BTreeMap, BTreeSet};

/// Why there is nothing per transaction.
pub(crate) fn no_load(workload: &Workload) -> &'static str {
    match workload.imported() {
        Some(_) => "throughput is unknown: give --connections and --throughput of each recording",
        None => "attach sends no load: transactions are not counted",
    }
}

/// Figures that therefore cannot be had.
const PER_TRANSACTION: [&str; 5] = ["rungs", "throughput", "latency_ms", "iron_law", "verdict"];
/// How long each second of the watch really was.
const WATCHED_SECONDS: &str = "probe.watched_seconds";
/// Call paths that the summary keeps of each state.
const MOST_PATHS: usize = 8;

/// What a watch comes to, with what could not be told and what to warn of.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub watch: Option<WatchSummary>,
    pub missing: Vec<Missing>,
    pub warnings: Vec<String>,
}

/// Sums up all that was watched.
pub(crate) fn watched<'a>(bundle: &Bundle, measurements: impl Iterator<Item = &'a MeasurementRows<'a>>) -> Found {
    let measurements: Vec<&MeasurementRows> = measurements.collect();
    let missing = |figure: &str, reason: &str| Missing {
        figure: figure.into(),
        reason: reason.into(),
    };
    let mut found = Found {
        missing: PER_TRANSACTION
            .map(|figure| missing(figure, no_load(&bundle.manifest.workload)))
            .into(),
        ..Found::default()
    };
    let rows = rows_of(&measurements);
    let windows = windows(&rows);
    let seconds: f64 = windows.iter().map(|window| window.whole.seconds).sum();
    if seconds <= 0.0 || rows.states.is_empty() {
        found.missing.push(missing(
            "watch",
            "it ended before anything of the server's threads was seen",
        ));
        return found;
    }
    let mut connections = threads(&windows, &rows, Role::Connection, true);
    let others = threads(&windows, &rows, Role::Background, false);
    let cpu = cpu_seconds(&windows, &rows);
    let sums = totals(&windows, rows.counters.iter().copied());
    let total = |name: &str| sums.get(name).map(|total| total.value);
    let count = |name: &str| total(name).filter(|value| *value >= 0.0).map(|value| value as u64);
    let sampled = Sampled::of(&windows, &rows, Some(&connections.seconds_per_second));
    let mut call_paths = CallPaths::of(bundle);
    let lock_rows: Vec<&LockRow> = measurements
        .iter()
        .flat_map(|rows| rows.locks.iter().copied())
        .collect();
    let locks = sampled.heaviest_locks(MOST_LOCKS);
    let samples = sampled.on(&mut call_paths);
    number_holders_and_wakers(&locks, &samples, &lock_rows, &mut call_paths);
    let paths = heaviest_of_each(&ByPath::of(&samples), &ThreadState::ALL, MOST_PATHS, &call_paths);
    let locks = lock_summaries(&locks, &samples, &lock_rows, &call_paths);
    if !knows_roles(&rows) {
        connections.threads = None;
        let reason = "what the server's threads wait for was not seen: all waiting is in other, and the threads that serve clients are not \
                      known";
        found.missing.push(missing("watch.connections", reason));
    } else if connections.threads == Some(0) {
        let reason = "no thread of the server served a client while it was watched";
        found
            .missing
            .push(missing("watch.connections.seconds_per_second", reason));
    } else if connections.seconds_per_second[ThreadState::Spin].is_none() {
        let reason = why_no_spin(&rows.counters);
        found
            .missing
            .push(missing("watch.connections.seconds_per_second.spin", reason));
    }
    if cpu.is_none() {
        let reason = "the scheduler's account of the server could not be read over the same seconds";
        found.missing.push(missing("watch.cpu_residual", reason));
    }
    let on_cpu = |of: &WatchedThreads| {
        let states = of.seconds_per_second.iter().filter(|(state, _)| state.is_on_cpu());
        states.filter_map(|(_, seconds)| *seconds).sum::<f64>()
    };
    // Another tool may have recorded waits only.
    let tells_time = !bundle.manifest.workload.has_shares_only();
    let is_recording = bundle.manifest.workload.imported().is_some();
    let scheduler = sums.get("server.cpu_seconds_by_scheduler");
    let summary = WatchSummary {
        seconds,
        background: background(&windows, &rows),
        cpus_by_states: Some(on_cpu(&connections) + on_cpu(&others))
            .filter(|cpus| tells_time && (*cpus > 0.0 || !is_recording)),
        cpus_by_scheduler: scheduler.and_then(|total| total.per_second()),
        cpu_residual: cpu.and_then(|cpu| off_by(cpu.charged(), cpu.by_scheduler)),
        uncharged_cpu_share: cpu.and_then(CpuSeconds::not_their_own_share),
        complete_stacks_share: total("probe.stacks_complete")
            .zip(total("probe.stacks"))
            .and_then(|(complete, all)| Some(complete / all).filter(|share| share.is_finite()))
            .or_else(|| complete_share(&windows, &rows.samples)),
        samples: count("probe.samples"),
        samples_lost: count("probe.samples_lost"),
        observed_waits_share: total("probe.observed_seconds")
            .zip(total("probe.switch_seconds"))
            .and_then(|(seen, all)| Some(seen / all).filter(|v| v.is_finite())),
        paths: paths.into_iter().map(path_per_second).collect(),
        locks: locks.into_iter().map(lock_per_second).collect(),
        connections,
        others,
    };
    found.warnings = warnings(&summary, not_charged(cpu, &sums));
    found.watch = Some(summary);
    found
}

/// The samples of the threads that serve clients, scaled to the exact time in their states; none where no second was watched.
pub(crate) fn sampled<'a>(measurements: &[&'a MeasurementRows<'a>]) -> Option<Sampled<'a>> {
    let rows = rows_of(measurements);
    let windows = windows(&rows);
    let connections = threads(&windows, &rows, Role::Connection, true);
    (!windows.is_empty()).then(|| Sampled::of(&windows, &rows, Some(&connections.seconds_per_second)))
}

/// Measurements as a rung of one connection that runs a transaction a second, for comparing: a
/// second stands where a transaction does elsewhere. None where no second was watched.
pub(crate) fn as_rung(measurements: &[&MeasurementRows<'_>], call_paths: &mut CallPaths<'_>) -> Option<RungResult> {
    let rows = rows_of(measurements);
    let windows = windows(&rows);
    if windows.is_empty() {
        return None;
    }
    let connections = threads(&windows, &rows, Role::Connection, true);
    let sampled = Sampled::of(&windows, &rows, Some(&connections.seconds_per_second));
    let samples = sampled.on(call_paths);
    let ledger = Ledger {
        seconds_per_txn: connections.seconds_per_second,
        connections_over_throughput: Some(connections.seconds_per_second.sum()),
        residual: None,
        states_residual: connections.states_residual,
        cpu_residual: None,
        uncharged_cpu_share: None,
        background: Vec::new(),
        complete_stacks_share: complete_share(&windows, &rows.samples),
        samples: None,
        samples_lost: None,
        observed_waits_share: None,
    };
    Some(RungResult::per_second(
        ledger,
        PathCosts::of(ByPath::of(&samples), call_paths),
    ))
}

fn rows_of<'a>(measurements: &[&'a MeasurementRows<'a>]) -> Watched<'a> {
    Watched {
        states: measurements
            .iter()
            .flat_map(|rows| rows.states.iter().copied())
            .collect(),
        samples: measurements
            .iter()
            .flat_map(|rows| rows.samples.iter().copied())
            .collect(),
        counters: measurements
            .iter()
            .flat_map(|rows| rows.counters.iter().copied())
            .collect(),
    }
}

/// The seconds that were watched. A second stands here where a transaction stands elsewhere: what other modules give per
/// transaction is per second then.
fn windows(rows: &Watched<'_>) -> Vec<Window> {
    let mut windows: BTreeMap<i32, Window> = BTreeMap::new();
    for row in rows
        .counters
        .iter()
        .filter(|row| row.counter == WATCHED_SECONDS && row.value > 0.0)
    {
        let Some(second) = row.second else { continue };
        let amount = Amount {
            seconds: row.value,
            transactions: row.value,
        };
        let window = windows.entry(row.measurement).or_insert_with(|| Window {
            measurement: row.measurement,
            seconds: BTreeMap::new(),
            whole: Amount::default(),
        });
        window.seconds.insert(second, amount);
        window.whole.seconds += row.value;
        window.whole.transactions += row.value;
    }
    windows.into_values().collect()
}

fn threads(windows: &[Window], rows: &Watched<'_>, role: Role, with_spin: bool) -> WatchedThreads {
    let of_role = || rows.states.iter().copied().filter(|row| row.role == role);
    // The kernel gives the number of a thread that has ended to another. Where nobody counted them, numbers must do.
    let counted = rows
        .counters
        .iter()
        .filter(|row| row.counter == format!("threads.{}_level", role.name()) && row.value.is_finite());
    let counted = counted
        .map(|row| row.value as u64)
        .reduce(|sum, count| sum.saturating_add(count));
    let seen: BTreeSet<i64> = of_role().filter_map(|row| row.thread).collect();
    let seen = counted.unwrap_or(seen.len() as u64);
    let time = ThreadTime::of(windows, of_role().filter(|row| row.thread.is_none()));
    let time = time.map(|mut time| {
        if with_spin {
            split_off_spin(&mut time.states, windows, rows);
        }
        // Seconds in which there was no such thread count too.
        time.over.seconds = windows.iter().map(|window| window.whole.seconds).sum();
        time
    });
    WatchedThreads {
        threads: Some(u32::try_from(seen).unwrap_or(u32::MAX)),
        seconds_per_second: time.as_ref().map(ThreadTime::per_second).unwrap_or_default(),
        lifetime_per_second: time.as_ref().and_then(|time| Some(time.lifetime? / time.over.seconds)),
        states_residual: time.as_ref().and_then(|time| off_by(time.states.sum(), time.lifetime?)),
    }
}

fn off_by(a: f64, b: f64) -> Option<f64> {
    Some(a / b - 1.0).filter(|residual| residual.is_finite())
}

fn path_per_second(path: CallPath) -> WatchedPath {
    WatchedPath {
        state: path.state,
        path: path.path,
        seconds_per_second: path.seconds_per_txn,
        samples: path.samples,
    }
}

fn lock_per_second(lock: LockSummary) -> WatchedLock {
    WatchedLock {
        name: lock.name,
        module: lock.module,
        seconds_per_second: lock.seconds_per_txn,
        samples: lock.samples,
        waiter: lock.waiter,
        holder: lock.holder,
        holder_samples: lock.holder_samples,
        waker: lock.waker,
    }
}

fn warnings(watch: &WatchSummary, not_charged: Option<String>) -> Vec<String> {
    let residuals = [
        (
            watch.connections.states_residual,
            "the states of the threads that serve clients are off by {} from the time that these threads lived",
        ),
        (
            watch.others.states_residual,
            "the states of the other threads are off by {} from the time that these threads lived",
        ),
        (
            watch.cpu_residual,
            "the CPU time of the server's threads is off by {} from the scheduler's account of the server",
        ),
    ];
    let too_large = residuals.into_iter().filter_map(|(residual, words)| {
        let residual = residual.filter(|residual| residual.abs() > TOLERANCE)?;
        Some(words.replace("{}", &format!("{:+.1} %", residual * 100.0)))
    });
    too_large.chain(not_charged).collect()
}

/// Whether the threads that serve connections could be known from the others. What a thread waits for may be hidden from us; then
/// all of its waiting is in `other`, but for `io`, which the kernel says of a thread without its system call.
fn knows_roles(rows: &Watched<'_>) -> bool {
    let is_of_a_call = |state| matches!(state, ThreadState::Net | ThreadState::Lock | ThreadState::Sleep);
    !rows.samples.is_empty()
        || rows
            .states
            .iter()
            .any(|row| is_of_a_call(row.state) && row.nanoseconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::{CounterRow, StateRow};
    use scaleprof_vocabulary::PerState;

    fn state(second: i32, role: Role, state: ThreadState, nanoseconds: i64) -> StateRow {
        StateRow {
            measurement: 0,
            second: Some(second),
            role,
            thread: None,
            name: None,
            state,
            nanoseconds,
            lifetime_ns: None,
        }
    }

    fn alive(second: i32, role: Role, on_cpu: i64, lifetime: i64) -> StateRow {
        StateRow {
            lifetime_ns: Some(lifetime),
            ..state(second, role, ThreadState::Cpu, on_cpu)
        }
    }

    fn second(second: i32, value: f64) -> CounterRow {
        CounterRow {
            measurement: 0,
            second: Some(second),
            counter: WATCHED_SECONDS.into(),
            value,
            running_share: None,
        }
    }

    #[test]
    fn threads_that_had_one_number_one_after_another_are_counted() {
        let of_thread = |thread: i64| StateRow {
            thread: Some(thread),
            second: None,
            ..alive(0, Role::Background, 0, 5)
        };
        let states = [of_thread(7), of_thread(8)];
        let count = CounterRow {
            second: None,
            counter: "threads.background_level".to_owned(),
            ..second(0, 30.0)
        };
        let counters = [second(0, 1.0), count];
        let told = |counters: &[CounterRow]| {
            let rows = Watched {
                states: states.iter().collect(),
                samples: Vec::new(),
                counters: counters.iter().collect(),
            };
            threads(&windows(&rows), &rows, Role::Background, false).threads
        };
        assert_eq!((told(&counters), told(&counters[..1])), (Some(30), Some(2)));
    }

    #[test]
    fn times_are_per_second_that_was_watched_also_where_nobody_was_there() {
        let states = [
            alive(0, Role::Connection, 500_000_000, 1_500_000_000),
            state(0, Role::Connection, ThreadState::Net, 1_000_000_000),
        ];
        let counters = [second(0, 1.0), second(1, 0.5)];
        let rows = Watched {
            states: states.iter().collect(),
            counters: counters.iter().collect(),
            ..Watched::default()
        };
        let windows = windows(&rows);
        let found = threads(&windows, &rows, Role::Connection, true);
        assert_eq!(found.seconds_per_second[ThreadState::Cpu], Some(0.5 / 1.5));
        assert_eq!(found.lifetime_per_second, Some(1.0));
        assert_eq!(found.states_residual, Some(0.0));
        let nobody = threads(&windows, &rows, Role::Background, false);
        assert_eq!(nobody.seconds_per_second, PerState::default());
        assert_eq!((nobody.threads, nobody.states_residual), (Some(0), None));
    }

    #[test]
    fn without_the_calls_of_threads_nobody_knows_which_serve_connections() {
        let knows = |waits_in: ThreadState| {
            let states = [
                alive(0, Role::Background, 500_000_000, 1_500_000_000),
                state(0, Role::Background, waits_in, 1_000_000_000),
            ];
            knows_roles(&Watched {
                states: states.iter().collect(),
                ..Watched::default()
            })
        };
        assert!(knows(ThreadState::Net) && knows(ThreadState::Lock) && knows(ThreadState::Sleep));
        assert!(!knows(ThreadState::Other) && !knows(ThreadState::Io) && !knows(ThreadState::RunQueue));
    }
}
