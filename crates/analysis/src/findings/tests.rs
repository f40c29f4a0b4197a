use super::*;
use crate::by_path::ByPath;
use crate::ledger::Watched;
use crate::path_costs::PathCosts;
use crate::sampled::Sampled;
use crate::totals::{Amount, Window};
use scaleprof_bundle::{FrameRow, Latency, Ledger, LockSummary, SampleRow, Samples, StackRow, StateSeconds, UtcMicros};

/// Seconds of one made-up rung.
const SECONDS: i32 = 10;

/// What a transaction costs at one rung: state, path (outermost first), microseconds.
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
                        name_source: "symtab".into(),
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

/// Samples that give these costs, with a little unrest from second to second.
fn samples(dictionary: &mut Dictionary, visit: i32, per_second: f64, costs: Costs<'_>) -> Vec<SampleRow> {
    let mut rows = Vec::new();
    for second in 0..SECONDS {
        for (place, (state, path, micros)) in costs.iter().enumerate() {
            let unrest = 1.0 + 0.02 * f64::from((second * 7 + place as i32 * 3) % 5 - 2);
            rows.push(SampleRow {
                visit,
                second,
                time_us: UtcMicros(0),
                thread: 1,
                role: "connection".into(),
                cpu: 0,
                state: (*state).into(),
                stack: dictionary.stack(path),
                ending: "complete".into(),
                weight_ns: micros * 1e3 * per_second * unrest,
                lock: None,
                waker_kind: None,
                waker_stack: None,
                owner_stack: None,
                owner_state: None,
            });
        }
    }
    rows
}

pub(crate) fn rung(connections: u32, per_second: f64, busy: f64, costs: Costs<'_>) -> RungSummary {
    let mut states = StateSeconds::default();
    for (state, _, micros) in costs {
        if let Some(place) = states.named_mut(state) {
            *place = Some(place.unwrap_or(0.0) + micros * 1e-6);
        }
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
        warmup_seconds: Vec::new(),
        client_limited: false,
        client_limited_reason: None,
        little: None,
        client_cpus: None,
        other_cpu_share: None,
        steal_share: None,
        busy_share: Some(busy),
        iron_law: None,
        context_switches_per_txn: None,
        per_txn: BTreeMap::new(),
        statements: Vec::new(),
        ledger: Some(Ledger {
            seconds_per_txn: states,
            connections_over_throughput: Some(f64::from(connections) / per_second),
            residue: None,
            states_residue: None,
            cpu_residue: None,
            cpu_not_their_own: None,
            background: Vec::new(),
            complete_stacks_share: None,
            samples: None,
            samples_lost: None,
            waits_seen_share: None,
        }),
        paths: Vec::new(),
        locks: Vec::new(),
    }
}

/// The findings of a made-up run: connections, transactions a second, busy share and costs of each rung.
fn found(rungs: &[(u32, f64, f64, Costs<'_>)]) -> Vec<Finding> {
    found_with(rungs, |_, _| ())
}

/// The same, with `change` of the summary of each rung, which is told its connections.
fn found_with(rungs: &[(u32, f64, f64, Costs<'_>)], change: impl Fn(u32, &mut RungSummary)) -> Vec<Finding> {
    made_up(rungs, change, |profiled, call_paths| {
        let setting = |(name, value): (&str, &str)| SettingRow::new(name, value);
        let surroundings = Surroundings {
            manifest: &manifest(),
            settings: &[("innodb_spin_wait_delay", "6"), ("innodb_sync_spin_loops", "30")].map(setting),
        };
        findings(profiled, &surroundings, call_paths)
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
        .map(|((_, per_second, _, costs), visit)| {
            samples(&mut dictionary, visit, *per_second, costs)
                .into_iter()
                .collect()
        })
        .collect();
    let mut call_paths = CallPaths::of_rows(&dictionary.stacks, &dictionary.frames);
    let profiled: Vec<(RungSummary, PathCosts, InstructionCosts)> = rungs
        .iter()
        .zip(&rows)
        .zip(0..)
        .map(|(((connections, per_second, busy, costs), rows), visit)| {
            let second = Amount {
                seconds: 1.0,
                transactions: *per_second,
            };
            let window = Window {
                visit,
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
            change(*connections, &mut summary);
            (
                summary,
                PathCosts::of(ByPath::of(&samples), &call_paths),
                InstructionCosts::of(&samples.sampled, &call_paths),
            )
        })
        .collect();
    let profiled: Vec<Profiled<'_>> = profiled
        .iter()
        .map(|(summary, costs, instructions)| Profiled {
            summary,
            costs,
            instructions,
            transactions: 1e6,
        })
        .collect();
    look(&profiled, &call_paths)
}

/// Of a MySQL 5.6 on a machine whose PAUSE takes 24 ns.
fn manifest() -> Manifest {
    let text = r#"{
        "schema": 1, "scaleprof": "0", "started_at": "", "ended_at": null, "state": "complete", "problem": null, "command": [],
        "server": {"product": "MySQL", "version": "5.6.14"},
        "workload": {"name": "x", "distribution": "uniform", "protocol": "binary", "seed": 1, "loop_kind": "closed", "options": []},
        "machine": {"cpu_model": "", "cpus": 2, "numa_nodes": 1, "memory_bytes": 0, "kernel": "", "architecture": "x86_64",
            "pause_nanoseconds": 24.0},
        "ladder": {"connections": [], "refined": [], "seconds": 1, "repeats": 1, "idle_connections": 0, "rate": null},
        "missing": [], "warnings": []}"#;
    serde_json::from_str(text).expect("a manifest")
}

const PARSE: &[&str] = &["main", "dispatch_command", "parse"];
const READ: &[&str] = &["main", "dispatch_command", "row_search", "buf_page_get"];
const SPIN: &[&str] = &[
    "main",
    "dispatch_command",
    "row_upd",
    "trx_start_low",
    "mutex_spin_wait",
    "ut_delay",
];
const SPINLOCK: &[&str] = &[
    "main",
    "dispatch_command",
    "sync_array_wait_event",
    "futex_wait [k]",
    "native_queued_spin_lock_slowpath [k]",
];

#[test]
fn spinning_comes_first_with_who_waits_and_what_to_try() {
    let few: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 5.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 42.0), ("cpu", READ, 63.0), ("spin", SPIN, 95.0)];
    let findings = found(&[(16, 19_000.0, 1.0, few), (512, 10_000.0, 1.0, many)]);
    let first = &findings[0];
    assert_eq!(first.kind, "spin_waiting");
    assert!(
        first.title.contains("InnoDB's own mutexes and rw-locks"),
        "{}",
        first.title
    );
    assert!((first.lost_share.value - 0.475).abs() < 0.005, "{:?}", first.lost_share);
    assert!(first.lost_share.low.is_some_and(|low| low > 0.4));
    assert_eq!(
        (first.rungs, first.path.last().map(String::as_str)),
        ([16, 512], Some("ut_delay"))
    );
    assert!(
        first
            .evidence
            .iter()
            .any(|line| line.contains("trx_start_low > mutex_spin_wait > ut_delay")),
        "{first:?}"
    );
    let is_tried = |first: &Finding, setting: &str| first.tries.iter().any(|line| line.contains(setting));
    let advised = [
        "innodb_thread_concurrency",
        "innodb_sync_spin_loops = 5",
        "innodb_spin_wait_delay = 3",
        "innodb_sync_array_size = 16",
    ];
    for setting in advised {
        assert!(is_tried(first, setting), "{setting}: {first:?}");
    }
    // Too few threads to queue for one mutex before they sleep.
    let fewer = found(&[(16, 19_000.0, 1.0, few), (128, 10_000.0, 1.0, many)]);
    assert!(!is_tried(&fewer[0], "innodb_sync_array_size"), "{fewer:?}");
}

#[test]
fn spin_loops_that_somebody_set_far_from_the_default_are_told_as_such() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 5.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("spin", SPIN, 95.0)];
    let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(16, 19_000.0, 1.0, few), (512, 10_000.0, 1.0, many)];
    let found = made_up(
        rungs,
        |_, _| (),
        |profiled, call_paths| {
            let settings = [
                SettingRow {
                    default_value: Some("30".into()),
                    set_by: Some("user".into()),
                    ..SettingRow::new("innodb_sync_spin_loops", "200")
                },
                SettingRow::new("innodb_sync_array_size", "16"),
            ];
            let surroundings = Surroundings {
                manifest: &manifest(),
                settings: &settings,
            };
            findings(profiled, &surroundings, call_paths)
        },
    );
    let tries = &found[0].tries;
    let told = |words: &str| tries.iter().any(|line| line.contains(words));
    assert!(
        told("innodb_sync_spin_loops is set to 200, far from its default of 30: try the default first"),
        "{tries:?}"
    );
    // As advised already.
    assert!(!told("innodb_sync_array_size"), "{tries:?}");
}

#[test]
fn a_spinlock_of_the_kernel_is_named_with_the_function_above_it() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("cpu", SPINLOCK, 1.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 101.0), ("cpu", SPINLOCK, 60.0)];
    let found = found(&[(8, 19_000.0, 1.0, few), (256, 12_000.0, 1.0, many)]);
    assert_eq!(found[0].kind, "kernel_spinlock");
    assert!(found[0].title.contains("InnoDB's sync array"), "{}", found[0].title);
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_path_that_grew_is_told_once_and_what_grew_everywhere_alike_is_not_blamed() {
    let leaves: Vec<[&str; 3]> = ["a", "b", "c", "d", "e", "f", "g", "h"]
        .map(|leaf| ["main", "work", leaf])
        .into();
    let few: Vec<(&str, &[&str], f64)> = leaves
        .iter()
        .map(|path| ("cpu", &path[..], 10.0))
        .chain([("cpu", READ, 20.0)])
        .collect();
    let many: Vec<(&str, &[&str], f64)> = leaves
        .iter()
        .map(|path| ("cpu", &path[..], 12.0))
        .chain([("cpu", READ, 60.0)])
        .collect();
    let found = found(&[(8, 19_000.0, 1.0, &few), (256, 12_000.0, 1.0, &many)]);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    assert_eq!(kinds, ["cost_growth", "slower_everywhere"], "{found:?}");
    assert_eq!(found[0].path, READ);
    // (60 - 1.2 x 20) of 156.
    assert!(
        (found[0].lost_share.value - 36.0 / 156.0).abs() < 0.01,
        "{:?}",
        found[0].lost_share
    );
}

#[test]
fn waits_count_only_while_cpus_idle() {
    let lock: &[&str] = &[
        "main",
        "dispatch_command",
        "trx_commit",
        "log_write_up_to",
        "futex_wait [k]",
    ];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", lock, 10.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", lock, 3_000.0)];
    let idle = found(&[(8, 4_000.0, 0.4, few), (256, 4_100.0, 0.4, many)]);
    assert_eq!(idle[0].kind, "log_stall", "{idle:?}");
    assert!(idle[0].evidence[0].contains("40 % busy"), "{idle:?}");
    let busy = found(&[(8, 4_000.0, 1.0, few), (256, 4_100.0, 1.0, many)]);
    assert!(busy.is_empty(), "{busy:?}");
}

#[test]
fn a_healthy_run_has_no_finding() {
    let same: Costs<'_> = &[
        ("cpu", PARSE, 40.0),
        ("cpu", READ, 60.0),
        ("net", &["main", "recv"], 100.0),
    ];
    let little: Costs<'_> = &[
        ("cpu", PARSE, 41.0),
        ("cpu", READ, 61.0),
        ("net", &["main", "recv"], 2_000.0),
    ];
    assert!(
        found(&[
            (1, 5_000.0, 0.5, same),
            (8, 19_000.0, 1.0, same),
            (64, 18_800.0, 1.0, little)
        ])
        .is_empty()
    );
    assert!(found(&[(8, 19_000.0, 1.0, same)]).is_empty());
    assert!(found(&[]).is_empty());
}

const FEW_SPIN: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 1.0)];
const SOME_SPIN: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 60.0), ("spin", SPIN, 8.0)];

#[test]
fn spinning_is_told_though_a_transaction_got_no_dearer_and_with_what_a_round_takes() {
    let found = found(&[(8, 19_000.0, 1.0, SOME_SPIN), (64, 19_000.0, 1.0, SOME_SPIN)]);
    assert_eq!(found[0].kind, "spin_waiting", "{found:?}");
    // Up to 5 x 50 PAUSEs of 24 ns; 30 rounds of half of that.
    let round = found[0].evidence.iter().find(|line| line.starts_with("one round"));
    let round = round.expect("what a round takes");
    assert!(
        round.contains("up to 6.00 \u{b5}s") && round.contains("90.0 \u{b5}s"),
        "{round}"
    );
}

#[test]
fn the_rung_that_spins_most_is_told_where_the_last_one_does_not() {
    let found = found(&[(8, 19_000.0, 1.0, SOME_SPIN), (64, 19_000.0, 1.0, FEW_SPIN)]);
    assert_eq!((found.len(), found[0].rungs), (1, [8, 8]), "{found:?}");
}

#[test]
fn spinning_at_another_rung_comes_behind_what_explains_the_fall_and_says_that_it_does_not() {
    let few: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 20.0), ("spin", SPIN, 30.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 40.0), ("cpu", READ, 80.0), ("spin", SPIN, 0.1)];
    let found = found(&[(8, 19_000.0, 1.0, few), (64, 14_000.0, 1.0, many)]);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    // A third of a transaction is more than what READ grew by, and yet it comes second.
    assert_eq!(kinds, ["cost_growth", "spin_waiting"], "{found:?}");
    let spinning = &found[1];
    assert!(spinning.title.ends_with(", at 8 connections"), "{spinning:?}");
    assert!(
        spinning.evidence[0].contains("no cause of what is lost at 64: there such loops take 0.1 \u{b5}s"),
        "{spinning:?}"
    );
}

#[test]
fn a_condition_variable_is_not_called_a_lock() {
    let costs: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let wait = ["pthread_cond_wait", "__pthread_cond_wait_common", "futex_wait [k]"];
    let of = |product: &str, place: &str| {
        let waiting = [&["main", "dispatch_command", place][..], &wait].concat();
        let change = |connections: u32, summary: &mut RungSummary| {
            if connections == 8 {
                let lock = LockSummary {
                    name: None,
                    ..lock(1_200.0, &waiting, &["main", "somebody"])
                };
                summary.locks = vec![lock];
            }
        };
        let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(1, 6_000.0, 0.3, costs), (8, 5_000.0, 0.4, costs)];
        let found = made_up(rungs, change, |profiled, call_paths| {
            let mut manifest = manifest();
            manifest.server.product = product.into();
            let surroundings = Surroundings {
                manifest: &manifest,
                settings: &[],
            };
            findings(profiled, &surroundings, call_paths)
        });
        found[0].clone()
    };
    let plain = of("MySQL", "wait_for_work");
    assert_eq!(plain.title, "Threads wait at a condition variable, in wait_for_work");
    let said = plain.evidence.join("\n");
    assert!(
        said.contains("until another thread wakes them") && !said.contains("holder"),
        "{said}"
    );
    let answer = of("MariaDB", "net_real_write");
    assert_eq!(answer.kind, "log_stall");
    assert!(
        answer.title.contains("log is on disk") && answer.title.contains("asynchronous group commit"),
        "{answer:?}"
    );
    assert!(answer.evidence.join("\n").contains("condition variable"), "{answer:?}");
}

/// A function with three instructions, at one of which threads stand for so long.
fn with_hot(others: f64, hot: f64) -> Vec<(&'static str, &'static [&'static str], f64)> {
    const FIRST: &[&str] = &["main", "dispatch_command", "look_up@1"];
    const HOT: &[&str] = &["main", "dispatch_command", "look_up@2"];
    const THIRD: &[&str] = &["main", "dispatch_command", "look_up@3"];
    vec![
        ("cpu", PARSE, 100.0),
        ("cpu", FIRST, others),
        ("cpu", HOT, hot),
        ("cpu", THIRD, others),
    ]
}

#[test]
fn an_instruction_that_grows_beside_others_that_do_not_waits_for_a_cache_line() {
    let found = found(&[
        (1, 8_000.0, 1.0, &with_hot(15.0, 10.0)),
        (2, 8_000.0, 1.0, &with_hot(15.0, 60.0)),
    ]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].kind, "cache_line_sharing");
    assert!(found[0].title.contains("look_up"), "{found:?}");
    assert!((found[0].lost_share.value - 50.0 / 190.0).abs() < 0.01, "{found:?}");
    assert!(
        found[0].evidence.iter().any(|line| line.contains("6.0 times")),
        "{found:?}"
    );
}

#[test]
fn what_grew_behind_the_function_of_a_shared_line_is_told_too() {
    const IN_KERNEL: &[&str] = &["main", "dispatch_command", "look_up@2", "exc_other [k]"];
    const OTHER: &[&str] = &["main", "dispatch_command", "look_up@9", "built_for_another"];
    let costs = |others: f64, hot: f64, more: f64| {
        let mut costs = with_hot(others, hot);
        costs.extend([("cpu", IN_KERNEL, more), ("cpu", OTHER, more), ("cpu", READ, 200.0)]);
        costs
    };
    // In what it calls, and in the kernel, 18 \u{b5}s each; what grew in the function itself beside the line belongs to the line.
    let found = found(&[
        (1, 8_000.0, 1.0, &costs(15.0, 10.0, 2.0)),
        (2, 8_000.0, 1.0, &costs(24.0, 160.0, 20.0)),
    ]);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    assert_eq!(kinds, ["cache_line_sharing", "cost_growth", "cost_growth"], "{found:?}");
    let cost = 300.0 + 2.0 * 24.0 + 160.0 + 40.0;
    let lost: Vec<f64> = found.iter().map(|finding| finding.lost_share.value * cost).collect();
    assert!(
        (lost[0] - 150.0).abs() < 1.0 && (lost[1] - 18.0).abs() < 1.0 && (lost[2] - 18.0).abs() < 1.0,
        "{lost:?}"
    );
    let ends: Vec<Option<&str>> = found
        .iter()
        .map(|finding| finding.path.last().map(String::as_str))
        .collect();
    assert_eq!(ends[0], Some("look_up"));
    assert!(
        ends.contains(&Some("exc_other [k]")) && ends.contains(&Some("built_for_another")),
        "{ends:?}"
    );
}

#[test]
fn threads_in_the_kernel_or_in_loops_that_wait_stand_at_no_shared_line() {
    // Two samples a second of many microseconds at the instruction itself; all others that came from it are in the kernel.
    let costs = |hot: f64| {
        let mut costs = with_hot(15.0, hot);
        const IN_KERNEL: &[&str] = &["main", "dispatch_command", "look_up@2", "exc_other [k]"];
        costs.extend(vec![("cpu", IN_KERNEL, 0.01); 400]);
        costs
    };
    let (before, after) = (costs(10.0), costs(60.0));
    made_up(
        &[(1, 8_000.0, 1.0, &before), (2, 8_000.0, 1.0, &after)],
        |_, _| (),
        |rungs, _| {
            let [base, last] = rungs else { panic!("two rungs") };
            let found = shared_line::shared_lines(base.instructions, last.instructions, 1.0, 1e-6);
            assert_eq!(found.len(), 1);
            // Ten seconds, one sample in each.
            assert_eq!(found[0].samples(), [10, 10]);
        },
    );
}

#[test]
fn a_function_that_has_more_to_do_waits_for_no_cache_line() {
    let found = found(&[
        (1, 8_000.0, 1.0, &with_hot(15.0, 10.0)),
        (2, 8_000.0, 1.0, &with_hot(90.0, 60.0)),
    ]);
    let kinds: Vec<&str> = found.iter().map(|finding| finding.kind.as_str()).collect();
    assert_eq!(kinds, ["cost_growth"], "{found:?}");
}

fn names(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

/// A lock with who waits for it and where its holder was.
fn lock(micros: f64, waiting: &[&str], holder: &[&str]) -> LockSummary {
    LockSummary {
        name: Some("planted".into()),
        module: Some("mysqld".into()),
        seconds_per_txn: Estimate {
            value: micros * 1e-6,
            low: Some(micros * 0.9e-6),
            high: Some(micros * 1.1e-6),
        },
        samples: 100,
        waiting: names(waiting),
        holder: names(holder),
        holder_samples: 90,
        waker: Vec::new(),
        waker_samples: 0,
    }
}

#[test]
fn a_lock_whose_holder_syncs_a_file_is_a_stall_of_the_log_and_the_sync_is_not_told_again() {
    let sync: &[&str] = &["main", "write_the_log", "fdatasync", "do_fsync [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("io", sync, 50.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("io", sync, 150.0), ("lock", READ, 1_500.0)];
    let found = found_with(
        &[(1, 6_000.0, 0.3, few), (8, 4_500.0, 0.5, many)],
        |connections, summary| {
            if connections == 8 {
                let waiting = [
                    "main",
                    "write_the_log",
                    "pthread_mutex_lock",
                    "__lll_lock_wait",
                    "futex_wait [k]",
                ];
                summary.locks = vec![lock(1_500.0, &waiting, &["main", "write_the_log", "fdatasync"])];
            }
        },
    );
    assert_eq!((found.len(), found[0].kind.as_str()), (1, "log_stall"), "{found:?}");
    assert!(found[0].title.contains("planted"), "{found:?}");
    assert!(
        found[0]
            .evidence
            .iter()
            .any(|line| line.contains("wait for it in write_the_log")),
        "{found:?}"
    );
}

#[test]
fn the_lock_of_an_allocator_is_the_allocators() {
    let waiting = ["main", "build", "malloc", "__lll_lock_wait_private", "futex_wait [k]"];
    let costs: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let found = found_with(
        &[(1, 6_000.0, 0.3, costs), (8, 5_000.0, 0.4, costs)],
        |connections, summary| {
            if connections == 8 {
                summary.locks = vec![lock(1_200.0, &waiting, &[])];
            }
        },
    );
    assert_eq!(found[0].kind, "allocator_contention", "{found:?}");
}

#[test]
fn whichever_loses_more_decides_when_cpus_idle_a_little() {
    let lock_wait: &[&str] = &["main", "dispatch_command", "trx_commit", "futex_wait [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", lock_wait, 10.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 300.0), ("lock", lock_wait, 1_000.0)];
    // A third of the CPUs idles, and a transaction costs three times as much.
    let dearer = found(&[(1, 8_000.0, 0.5, few), (8, 5_000.0, 0.67, many)]);
    assert_eq!(dearer[0].kind, "cost_growth", "{dearer:?}");
    // Three quarters idle.
    let idle = found(&[(1, 8_000.0, 0.5, few), (8, 5_000.0, 0.25, many)]);
    assert_eq!(idle[0].kind, "lock_convoy", "{idle:?}");
}

#[test]
fn cpus_that_other_programs_took_are_not_busy() {
    let wait: &[&str] = &["main", "dispatch_command", "trx_commit", "futex_wait [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", wait, 10.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", wait, 1_000.0)];
    let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(1, 5_000.0, 0.9, few), (8, 5_000.0, 0.97, many)];
    assert!(found(rungs).is_empty());
    let found = found_with(rungs, |_, summary| summary.other_cpu_share = Some(0.4));
    assert_eq!(found[0].kind, "lock_convoy", "{found:?}");
}

#[test]
fn a_function_that_is_most_of_the_work_is_named_where_it_loses_by_itself() {
    const WORK: &[&str] = &["main", "dispatch_command", "lock_it"];
    const INNER: &[&str] = &["main", "dispatch_command", "lock_it", "clock_gettime"];
    let few: Costs<'_> = &[("cpu", PARSE, 20.0), ("cpu", WORK, 10.0), ("cpu", INNER, 1.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 20.0), ("cpu", WORK, 80.0), ("cpu", INNER, 6.0)];
    let found = found(&[(1, 8_000.0, 1.0, few), (8, 8_000.0, 1.0, many)]);
    assert_eq!((found.len(), &found[0].path[..]), (1, &names(WORK)[..]), "{found:?}");
}
