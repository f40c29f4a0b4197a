//! Whatever stands in the tables, there is a summary and it can be written.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use scaleprof_analysis::comparison::{Choice, compare};
use scaleprof_analysis::data_quality::data_quality;
use scaleprof_analysis::export::{Wanted, rung_costs, timeline};
use scaleprof_analysis::flame::flame;
use scaleprof_analysis::hot_functions::hot_functions;
use scaleprof_analysis::summarise;
use scaleprof_analysis::wait_graph::{MOST_CHAINED, MOST_LOCKS, wait_graphs};
use scaleprof_bundle::*;
use scaleprof_profile::{Unit, firefox, folded, pprof, speedscope};
use scaleprof_vocabulary::{LoopWord, MeasurementOutcome, Role, SymbolSource, ThreadState, UnwindStatus, WakerKind};
use testing::planted::empty;

fn manifest() -> impl Strategy<Value = Manifest> {
    (any::<u32>(), proptest::sample::select(&LoopWord::ALL[..])).prop_map(|(cpu_count, loop_kind)| {
        let text = r#"{"schema": 2, "scaleprof": "", "started_at": "", "ended_at": null, "state": "complete",
            "problem": null, "command": [], "missing": [], "warnings": [],
            "server": {"product": "", "version": "", "build_id": null, "binary": null, "cpus": null, "cpu_count": 2,
                       "shares_cpus_with_client": true},
            "workload": {"name": "script", "tables": null, "rows": null, "distribution": "", "protocol": "",
                         "isolation": null, "seed": 1, "loop_kind": null, "options": []},
            "machine": {"cpu_model": "", "cpus": 2, "numa_nodes": 1, "memory_bytes": 1, "kernel": "",
                        "architecture": "", "distribution": null, "hypervisor": null, "governor": null,
                        "clock_source": null, "transparent_huge_pages": null},
            "ladder": {"connections": [], "refined": [], "seconds": 0, "repeats": 0, "idle_connections": 0,
                       "rate": null}}"#;
        let mut manifest: Manifest = serde_json::from_str(text).expect("the text above");
        manifest.server.cpu_count = Some(cpu_count);
        manifest.workload.loop_kind = Some(loop_kind);
        manifest
    })
}

/// Ordinary and extreme values alike.
fn big() -> impl Strategy<Value = i64> {
    prop_oneof![0..2_000_000_000i64, any::<i64>()]
}

fn seconds() -> impl Strategy<Value = Vec<SecondRow>> {
    let row = (0..9i32, 0..40i32, big(), big(), big(), option::of(big()));
    vec(row, 0..300).prop_map(|rows| {
        let made = |(measurement, second, duration_ns, transactions, service_sum_ns, max_ns)| SecondRow {
            measurement,
            second,
            started_at: UtcMicros(0),
            duration_ns,
            transactions,
            queries: 0,
            reads: 0,
            writes: 0,
            errors: 0,
            retries: 0,
            service_sum_ns,
            response_sum_ns: service_sum_ns,
            in_transaction_ns: service_sum_ns,
            p50_ns: None,
            p95_ns: None,
            p99_ns: None,
            max_ns,
        };
        rows.into_iter().map(made).collect()
    })
}

fn rungs() -> impl Strategy<Value = Vec<MeasurementRow>> {
    vec(
        (
            prop_oneof![1..600i32, any::<i32>()],
            any::<i32>(),
            option::of(any::<f64>()),
        ),
        0..9,
    )
    .prop_map(|rows| {
        let made =
            |(measurement, (connections, client_threads, lag)): (usize, (i32, i32, Option<f64>))| MeasurementRow {
                measurement: measurement as i32,
                connections,
                idle_connections: 0,
                repeat: 0,
                offered_rate: None,
                started_at: UtcMicros(0),
                connect_seconds: 0.0,
                outcome: MeasurementOutcome::Complete,
                client_lag_p99_us: lag,
                client_threads,
                client_resident_bytes: None,
            };
        rows.into_iter().enumerate().map(made).collect()
    })
}

fn counters() -> impl Strategy<Value = Vec<CounterRow>> {
    let names = prop::sample::select(vec![
        "server.cpu_user_seconds",
        "server.cpu_system_seconds",
        "server.cpu_seconds_by_scheduler",
        "server.transactions_by_status",
        "client.cpu_user_seconds",
        "client.cpu_system_seconds",
        "machine.cpu_idle_seconds",
        "machine.cpu_user_seconds",
        "machine.cpu_system_seconds",
        "machine.cpu_steal_seconds",
        "hw.instructions",
        "hw.cycles",
        "hw.task_clock_seconds",
    ]);
    vec(
        (
            0..9i32,
            option::of(0..40i32),
            names,
            any::<f64>(),
            option::of(any::<f64>()),
        ),
        0..200,
    )
    .prop_map(|rows| {
        let made = |(measurement, second, counter, value, running_share): (_, _, &str, _, _)| CounterRow {
            measurement,
            second,
            counter: counter.into(),
            value,
            running_share,
        };
        rows.into_iter().map(made).collect()
    })
}

const ROLES: [Role; 3] = Role::ALL;
const STATES: [ThreadState; 4] = [
    ThreadState::Cpu,
    ThreadState::Spin,
    ThreadState::Lock,
    ThreadState::Other,
];

fn states() -> impl Strategy<Value = Vec<StateRow>> {
    let row = (
        0..9i32,
        option::of(0..40i32),
        (0..3usize, 0..4usize),
        option::of(0..3i64),
        (any::<i64>(), option::of(any::<i64>())),
    );
    vec(row, 0..200).prop_map(|rows| {
        rows.into_iter()
            .map(
                |(measurement, second, (role, state), thread, (nanoseconds, lifetime_ns))| StateRow {
                    measurement,
                    second,
                    role: ROLES[role],
                    thread,
                    name: thread.filter(|n| *n > 0).map(|n| n.to_string()),
                    state: STATES[state],
                    nanoseconds,
                    lifetime_ns,
                },
            )
            .collect()
    })
}

fn samples() -> impl Strategy<Value = Samples> {
    let row = (
        (0..9i32, -2..40i32),
        (0..3usize, 0..4usize),
        0..12i64,
        any::<f64>(),
        (option::of(0..4i64), option::of(0..12i64), option::of(0..4usize)),
    );
    vec(row, 0..200).prop_map(|rows| {
        rows.into_iter()
            .map(
                |((measurement, second), (role, state), stack, weight_ns, (lock, other, did))| SampleRow {
                    measurement,
                    second,
                    time_us: UtcMicros(0),
                    thread: 1,
                    role: ROLES[role],
                    cpu: 0,
                    state: STATES[state],
                    stack,
                    unwind_status: UnwindStatus::Complete,
                    weight_ns,
                    lock,
                    waker_kind: other.map(|_| WakerKind::SameProcess),
                    waker_stack: other,
                    holder_stack: other,
                    holder_state: did.map(|state| STATES[state]),
                },
            )
            .collect()
    })
}

/// Stacks in which parents are missing or in a circle.
fn dictionaries() -> impl Strategy<Value = (Vec<LockRow>, Vec<StackRow>, Vec<FrameRow>)> {
    let locks = vec(
        (0..9i32, 0..4i64, any::<f64>(), option::of(0..12i64), any::<i64>()),
        0..20,
    );
    let stacks = vec((0..10i64, option::of(0..12i64), 0..6i64), 0..20);
    let frames = vec((0..4i64, option::of("[a-c.0-9]{0,9}")), 0..8);
    (locks, stacks, frames).prop_map(|(locks, stacks, frames)| {
        let lock = |(measurement, lock, wait_ns, holder_stack, holder_samples): (_, _, _, Option<i64>, _)| LockRow {
            measurement,
            lock,
            name: holder_stack.map(|_| "log_sys".to_owned()),
            module: None,
            operation: "wait".into(),
            waits: holder_samples,
            wait_ns,
            holder_stack,
            holder_samples,
        };
        let stack = |(stack, parent, frame)| StackRow {
            stack,
            parent,
            frame,
            depth: 0,
        };
        let frame = |(frame, function): (i64, Option<String>)| FrameRow {
            frame,
            module: "[kernel]".into(),
            build_id: None,
            address: 0,
            function: function.map(Into::into),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Nothing,
        };
        (
            locks.into_iter().map(lock).collect(),
            stacks.into_iter().map(stack).collect(),
            frames.into_iter().map(frame).collect(),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testing::trials(200) as u32))]

    #[test]
    fn any_tables_give_a_summary_that_can_be_written(
        manifest in manifest(), rungs in rungs(), seconds in seconds(), counters in counters(),
        states in states(), samples in samples(), (locks, stacks, frames) in dictionaries(),
    ) {
        let bundle = Bundle { manifest, measurements: rungs, seconds, counters, states, samples, locks, stacks, frames, ..empty() };
        let summary = summarise(&bundle);
        let text = serde_json::to_string(&summary).unwrap();
        let read: Result<Summary, _> = serde_json::from_str(&text);
        prop_assert!(read.is_ok(), "{:?} {}", read.err(), text);
        if let Some(flame) = flame(&bundle) {
            let places = flame.nodes.len() as u32;
            let mut samples = flame.rungs.iter().flat_map(|rung| &rung.measurements).flat_map(|measurement| {
                measurement.samples.iter().map(|sample| (sample, measurement.seconds))
            });
            let all_fit = samples.all(|(sample, seconds)| {
                sample.node < places && sample.cell < seconds * 50 && sample.thread_seconds >= 0.0
            });
            prop_assert!(all_fit);
            prop_assert!(flame.nodes.first().is_some_and(|node| node.depth == 0));
            prop_assert!(flame.nodes.windows(2).all(|pair| pair[1].depth <= pair[0].depth + 1));
        }
        for rung in rung_costs(&bundle, &Wanted::default()) {
            prop_assert!(rung.profile.costs.iter().all(|cost| cost.thread_seconds >= 0.0 && cost.samples > 0));
            prop_assert!(pprof::write(&rung.profile).is_ok());
            folded::write(&rung.profile, Unit::PerAmount);
            prop_assert!(speedscope::write(&[&rung.profile], 0, Unit::Seconds).is_ok());
            let timeline = timeline(&bundle, rung.connections, &Wanted::default());
            prop_assert!(timeline.is_none_or(|timeline| firefox::write(&timeline).is_ok()));
        }
        for graph in wait_graphs(&bundle) {
            prop_assert!(graph.locks.len() <= MOST_LOCKS + MOST_CHAINED);
            let links = graph.locks.iter().flat_map(|lock| &lock.holders).flat_map(|holder| &holder.waits_for);
            prop_assert!(links.filter_map(|link| link.told_as).all(|at| at < graph.locks.len()));
        }
        let figures = data_quality(&bundle);
        prop_assert!(figures.iter().flat_map(|rung| &rung.figures).all(|(_, figure)| figure.as_ref().map_or(true, |value| value.is_finite())));
        for rung in &summary.rungs {
            hot_functions(&bundle, rung.connections, Some(1), 9);
        }
        let mut other = bundle.clone();
        other.samples = bundle.samples.rows().take(bundle.samples.len() / 2).collect();
        for (a, b) in [(&bundle, &other), (&other, &bundle)] {
            if let Ok(comparison) = compare(a, b, Choice { force: true, ..Choice::default() }) {
                prop_assert!(serde_json::to_string(&comparison).is_ok());
            }
        }
    }
}
