//! Runs of a server that does not exist, with what a transaction costs at each rung.

use crate::by_path::ByPath;
use crate::findings::*;
use crate::ledger::Watched;
use crate::lock_costs::LockCosts;
use crate::path_costs::PathCosts;
use crate::paths::{MOST_LOCKS, lock_summaries};
use crate::sampled::Sampled;
use crate::totals::{Amount, Window};
use scaleprof_bundle::{FrameRow, Latency, Ledger, SampleRow, Samples, StackRow, UtcMicros};
use scaleprof_vocabulary::{PerState, Role, SymbolSource, ThreadState, UnwindStatus};

/// Seconds of one made-up rung.
pub(super) const SECONDS: i32 = 10;

/// What a transaction costs at one rung: state, path (outermost first), microseconds. `lock:7` waits for the lock with the number 7.
pub(crate) type Costs<'a> = &'a [(&'a str, &'a [&'a str], f64)];

/// Dictionaries of all paths of a made-up run.
#[derive(Default)]
struct Dictionary {
    functions: Vec<String>,
    stacks: Vec<StackRow>,
    frames: Vec<FrameRow>,
}

impl Dictionary {
    /// `function@3` is another instruction of the function than `function`.
    fn stack(&mut self, path: &[&str]) -> i64 {
        let mut parent = None;
        for function in path {
            let frame = match self.functions.iter().position(|known| known == function) {
                Some(place) => place as i64,
                None => {
                    self.functions.push((*function).to_owned());
                    let bare = function.split('@').next().unwrap_or(function);
                    let (name, module) = match bare.strip_suffix(" [k]") {
                        Some(name) => (name, "[kernel]"),
                        None => (bare, "mysqld"),
                    };
                    self.frames.push(FrameRow {
                        frame: self.frames.len() as i64,
                        module: module.into(),
                        build_id: None,
                        address: self.frames.len() as i64,
                        function: Some(name.into()),
                        inlined: false,
                        file: None,
                        line: None,
                        symbol_source: SymbolSource::Symtab,
                    });
                    self.frames.len() as i64 - 1
                }
            };
            let known = self
                .stacks
                .iter()
                .find(|row| row.parent == parent && row.frame == frame);
            parent = Some(match known {
                Some(row) => row.stack,
                None => {
                    let stack = self.stacks.len() as i64;
                    self.stacks.push(StackRow {
                        stack,
                        parent,
                        frame,
                        depth: 0,
                    });
                    stack
                }
            });
        }
        parent.expect("a path has functions")
    }
}

/// A state, and the lock that is waited for.
fn with_lock(state: &str) -> (ThreadState, Option<i64>) {
    let (state, lock) = match state.split_once(':') {
        Some((state, lock)) => (state, lock.parse().ok()),
        None => (state, None),
    };
    (ThreadState::parse(state).expect("a state"), lock)
}

/// Samples that give these costs, with a little unrest from second to second.
fn samples(dictionary: &mut Dictionary, measurement: i32, per_second: f64, costs: Costs<'_>) -> Vec<SampleRow> {
    let mut rows = Vec::new();
    for second in 0..SECONDS {
        for (place, (state, path, micros)) in costs.iter().enumerate() {
            let (state, lock) = with_lock(state);
            let unrest = 1.0 + 0.02 * f64::from((second * 7 + place as i32 * 3) % 5 - 2);
            rows.push(SampleRow {
                measurement,
                second,
                time_us: UtcMicros(0),
                thread: 1,
                role: Role::Connection,
                cpu: 0,
                state,
                stack: dictionary.stack(path),
                unwind_status: UnwindStatus::Complete,
                weight_ns: micros * 1e3 * per_second * unrest,
                lock,
                waker_kind: None,
                waker_stack: None,
                holder_stack: None,
                holder_state: None,
            });
        }
    }
    rows
}

pub(crate) fn rung(connections: u32, per_second: f64, busy: f64, costs: Costs<'_>) -> RungSummary {
    let mut states: PerState<Option<f64>> = PerState::default();
    for (state, _, micros) in costs {
        let sum = &mut states[with_lock(state).0];
        *sum = Some(sum.unwrap_or(0.0) + micros * 1e-6);
    }
    let none = Latency {
        mean: None,
        p50: None,
        p95: None,
        p99: None,
        p999: None,
        max: None,
    };
    RungSummary {
        connections,
        repeat_count: 1,
        throughput: Estimate {
            value: per_second,
            low: None,
            high: None,
        },
        latency_ms: none,
        response_ms: None,
        errors: BTreeMap::new(),
        steady: true,
        unsteady_reason: None,
        jitter: None,
        finished_seconds: None,
        warmup_seconds: Vec::new(),
        client_limited: false,
        client_limited_reason: None,
        littles_law_ratio: None,
        effective_concurrency: None,
        too_few_at_work: false,
        load_threads: None,
        client_cpus: None,
        noise_cpu_share: None,
        steal_share: None,
        busy_share: Some(busy),
        iron_law: None,
        context_switches_per_txn: None,
        per_txn: BTreeMap::new(),
        statements: Vec::new(),
        transactions: Vec::new(),
        long_run: None,
        tpcc: None,
        replicas: Vec::new(),
        neighbours: Vec::new(),
        ledger: Some(Ledger {
            seconds_per_txn: states,
            connections_over_throughput: Some(f64::from(connections) / per_second),
            residual: None,
            states_residual: None,
            cpu_residual: None,
            uncharged_cpu_share: None,
            background: Vec::new(),
            complete_stacks_share: None,
            samples: None,
            samples_lost: None,
            observed_waits_share: None,
        }),
        paths: Vec::new(),
        locks: Vec::new(),
    }
}

/// The findings of a made-up run: connections, transactions a second, busy share and costs of each rung.
pub(super) fn found(rungs: &[(u32, f64, f64, Costs<'_>)]) -> Vec<Finding> {
    found_with(rungs, |_, _| ())
}

/// The same, with `change` of the summary of each rung, which is told its connections.
pub(super) fn found_with(rungs: &[(u32, f64, f64, Costs<'_>)], change: impl Fn(u32, &mut RungSummary)) -> Vec<Finding> {
    made_up(rungs, change, |profiled, call_paths| {
        let setting = |(name, value): (&str, &str)| SettingRow::new(name, value);
        let surroundings = Surroundings {
            manifest: &manifest(),
            settings: &[("innodb_spin_wait_delay", "6"), ("innodb_sync_spin_loops", "30")].map(setting),
            code: &MachineCode::default,
        };
        findings(profiled, &surroundings, call_paths).findings
    })
}

/// What `look` sees in a made-up run.
pub(crate) fn made_up<T>(
    rungs: &[(u32, f64, f64, Costs<'_>)],
    change: impl Fn(u32, &mut RungSummary),
    look: impl FnOnce(&[Profiled<'_>], &CallPaths<'_>) -> T,
) -> T {
    let mut dictionary = Dictionary::default();
    let rows: Vec<Samples> = rungs
        .iter()
        .zip(0..)
        .map(|((_, per_second, _, costs), measurement)| {
            samples(&mut dictionary, measurement, *per_second, costs)
                .into_iter()
                .collect()
        })
        .collect();
    let mut call_paths = CallPaths::of_rows(&dictionary.stacks, &dictionary.frames);
    let profiled: Vec<(RungSummary, PathCosts, LockCosts, InstructionCosts)> = rungs
        .iter()
        .zip(&rows)
        .zip(0..)
        .map(|(((connections, per_second, busy, costs), rows), measurement)| {
            let second = Amount {
                seconds: 1.0,
                transactions: *per_second,
            };
            let window = Window {
                measurement,
                seconds: (0..SECONDS).map(|at| (at, second)).collect(),
                whole: Amount {
                    seconds: f64::from(SECONDS),
                    transactions: per_second * f64::from(SECONDS),
                },
            };
            let watched = Watched {
                states: Vec::new(),
                samples: rows.blocks().iter().collect(),
                counters: Vec::new(),
            };
            let samples = Sampled::of(&[window], &watched, None).on(&mut call_paths);
            let mut summary = rung(*connections, *per_second, *busy, costs);
            let locks = samples.sampled.heaviest_locks(MOST_LOCKS);
            summary.locks = lock_summaries(&locks, &samples, &[], &call_paths);
            change(*connections, &mut summary);
            (
                summary,
                PathCosts::of(ByPath::of(&samples), &call_paths),
                LockCosts::of(&samples, &locks),
                InstructionCosts::of(&samples.sampled, &call_paths),
            )
        })
        .collect();
    let profiled: Vec<Profiled<'_>> = profiled
        .iter()
        .map(|(summary, costs, locks, instructions)| Profiled {
            summary,
            costs,
            locks,
            instructions,
            transactions: 1e6,
        })
        .collect();
    look(&profiled, &call_paths)
}

/// Of a MySQL 5.6 on a machine whose PAUSE takes 24 ns.
pub(super) fn manifest() -> Manifest {
    let text = r#"{
        "schema": 2, "scaleprof": "0", "started_at": "", "ended_at": null, "state": "complete", "problem": null, "command": [],
        "server": {"product": "MySQL", "version": "5.6.14"},
        "workload": {"name": "oltp_read_write", "distribution": "uniform", "protocol": "binary", "seed": 1, "loop_kind": "closed", "options": []},
        "machine": {"cpu_model": "", "cpus": 2, "numa_nodes": 1, "memory_bytes": 0, "kernel": "", "architecture": "x86_64",
            "pause_nanoseconds": 24.0},
        "ladder": {"connections": [], "refined": [], "seconds": 1, "repeats": 1, "idle_connections": 0, "rate": null},
        "missing": [], "warnings": []}"#;
    serde_json::from_str(text).expect("a manifest")
}

pub(super) const PARSE: &[&str] = &["main", "dispatch_command", "parse"];
pub(super) const READ: &[&str] = &["main", "dispatch_command", "row_search", "buf_page_get"];
pub(super) const SPIN: &[&str] = &[
    "main",
    "dispatch_command",
    "row_upd",
    "trx_start_low",
    "mutex_spin_wait",
    "ut_delay",
];
pub(super) const SPINLOCK: &[&str] = &[
    "main",
    "dispatch_command",
    "sync_array_wait_event",
    "futex_wait [k]",
    "native_queued_spin_lock_slowpath [k]",
];

pub(super) fn names(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}
