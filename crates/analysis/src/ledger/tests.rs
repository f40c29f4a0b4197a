//! A simulated closed loop whose truth is known must give the ledger exactly.

use super::*;
use crate::simulated_loop::{CPU_NS, IO_NS, LOCKED_NS, NET_NS, closed_loop};
use crate::totals::{Amount, totals};
use scaleprof_bundle::{SampleRow, Samples, UtcMicros};
use scaleprof_vocabulary::{Role, ThreadState, UnwindStatus};

fn state(second: Option<i32>, role: Role, state: ThreadState, seconds: f64) -> StateRow {
    StateRow {
        measurement: 0,
        second,
        role,
        state,
        nanoseconds: (seconds * 1e9).round() as i64,
        thread: None,
        name: None,
        lifetime_ns: None,
    }
}

/// The row of `cpu` of threads that were alive so long.
fn alive(row: StateRow, seconds: f64) -> StateRow {
    StateRow {
        lifetime_ns: Some((seconds * 1e9) as i64),
        ..row
    }
}

fn thread(thread: i64, name: &str, of: ThreadState, seconds: f64) -> StateRow {
    StateRow {
        thread: Some(thread),
        name: Some(name.into()),
        ..state(None, Role::Background, of, seconds)
    }
}

fn counter(second: Option<i32>, name: &str, value: f64) -> CounterRow {
    CounterRow {
        measurement: 0,
        second,
        counter: name.into(),
        value,
        running_share: None,
    }
}

fn sample(second: i32, of: ThreadState, weight_ns: f64, ending: UnwindStatus) -> SampleRow {
    SampleRow {
        measurement: 0,
        second,
        time_us: UtcMicros(0),
        thread: 1,
        role: Role::Connection,
        cpu: 0,
        state: of,
        stack: 1,
        unwind_status: ending,
        weight_ns,
        lock: None,
        waker_kind: None,
        waker_stack: None,
        holder_stack: None,
        holder_state: None,
    }
}

/// Seconds 2 to 4 of a measurement of 5 s with 100 transactions in each.
fn window() -> Window {
    let one = Amount {
        seconds: 1.0,
        transactions: 100.0,
    };
    Window {
        measurement: 0,
        seconds: (2..5).map(|second| (second, one)).collect(),
        whole: Amount {
            seconds: 5.0,
            transactions: 500.0,
        },
    }
}

fn found(connections: u32, states: &[StateRow], samples: &[SampleRow], counters: &[CounterRow]) -> Found {
    let samples: Samples = samples.iter().cloned().collect();
    let watched = Watched {
        states: states.iter().collect(),
        samples: samples.blocks().iter().collect(),
        counters: counters.iter().collect(),
    };
    let windows = [window()];
    ledger(connections, &windows, &totals(&windows, counters), &watched, false)
}

/// Four connections: 1 s on CPU, 3 s blocked in every second.
fn four_connections() -> Vec<StateRow> {
    (0..5)
        .flat_map(|second| {
            let row = |of: ThreadState, seconds| state(Some(second), Role::Connection, of, seconds);
            [
                alive(row(ThreadState::Cpu, 1.0), 4.0),
                row(ThreadState::Lock, 2.5),
                row(ThreadState::Net, 0.5),
            ]
        })
        .collect()
}

/// Its threads are watched for a second more than the load took.
#[test]
fn the_states_of_a_script_that_runs_once_are_held_against_the_time_that_was_watched() {
    let mut states = four_connections();
    states.push(state(Some(4), Role::Connection, ThreadState::Net, 4.0));
    states.push(alive(state(Some(4), Role::Connection, ThreadState::Cpu, 0.0), 4.0));
    let counters = [counter(None, "probe.switch_seconds", 6.0)];
    let watched = Watched {
        states: states.iter().collect(),
        samples: Vec::new(),
        counters: counters.iter().collect(),
    };
    let windows = [Window {
        seconds: (0..5)
            .map(|second| {
                (
                    second,
                    Amount {
                        seconds: 1.0,
                        transactions: 100.0,
                    },
                )
            })
            .collect(),
        ..window()
    }];
    let sums = totals(&windows, &counters);
    let told = |runs_once| {
        let ledger = ledger(4, &windows, &sums, &watched, runs_once).ledger.expect("watched");
        (
            ledger.residual.expect("whole"),
            ledger.connections_over_throughput.expect("N/X"),
        )
    };
    let ((residual, per_txn), (usual, usual_per_txn)) = (told(true), told(false));
    assert!(
        residual.abs() < 1e-9 && (per_txn - 24.0 / 500.0).abs() < 1e-9,
        "{residual}"
    );
    assert!(
        (usual - 0.2).abs() < 1e-9 && (usual_per_txn - 20.0 / 500.0).abs() < 1e-9,
        "{usual}"
    );
}

#[test]
fn a_simulated_closed_loop_closes_exactly_at_every_rung() {
    let mut lock_waits = Vec::new();
    for connections in [1, 4, 8, 16, 32] {
        let run = closed_loop(connections, 2, 12);
        let watched = Watched {
            states: run.states.iter().collect(),
            ..Watched::default()
        };
        let found = ledger(connections, &[run.window(2)], &BTreeMap::new(), &watched, false);
        let ledger = found.ledger.unwrap();
        assert!(
            ledger.residual.unwrap().abs() < 1e-9,
            "{connections}: {:?}",
            ledger.residual
        );
        assert!(ledger.states_residual.unwrap().abs() < 1e-9);
        let times = ledger.seconds_per_txn;
        let expected = ledger.connections_over_throughput.unwrap();
        assert!((times.sum() / expected - 1.0).abs() < 1e-9, "{connections}");
        // Work under way at the edges of the window is all that these may differ by.
        for (seen, truth) in [
            (times[ThreadState::Cpu], CPU_NS + LOCKED_NS),
            (times[ThreadState::Io], IO_NS),
            (times[ThreadState::Net], NET_NS),
        ] {
            let truth = truth as f64 / 1e9;
            assert!(
                (seen.unwrap() / truth - 1.0).abs() < 0.02,
                "{connections}: {seen:?} {truth}"
            );
        }
        assert!(found.warnings.is_empty());
        lock_waits.push(times[ThreadState::Lock].unwrap());
    }
    assert_eq!(lock_waits[0], 0.0);
    assert!(lock_waits.windows(2).all(|pair| pair[0] <= pair[1]), "{lock_waits:?}");
}

#[test]
fn warm_up_is_left_out_and_a_state_without_rows_is_zero() {
    let mut states = four_connections();
    states[0].nanoseconds = 900_000_000_000;
    let ledger = found(4, &states, &[], &[]).ledger.unwrap();
    let times = ledger.seconds_per_txn;
    assert_eq!(
        (
            times[ThreadState::Cpu],
            times[ThreadState::Lock],
            times[ThreadState::Net]
        ),
        (Some(0.01), Some(0.025), Some(0.005))
    );
    assert_eq!(
        (
            times[ThreadState::Io],
            times[ThreadState::Sleep],
            times[ThreadState::Spin]
        ),
        (Some(0.0), Some(0.0), None)
    );
    assert_eq!(ledger.connections_over_throughput, Some(0.04));
    assert_eq!((ledger.residual, ledger.states_residual), (Some(0.0), Some(0.0)));
}

#[test]
fn a_thread_that_was_not_seen_shows_as_a_residual_and_a_warning() {
    let found = found(5, &four_connections(), &[], &[]);
    assert!((found.ledger.unwrap().residual.unwrap() + 0.2).abs() < 1e-12);
    assert_eq!(
        found.warnings,
        [
            "residual -20.0 % at 5 connections: the states of connection threads do not add up to connections over throughput"
        ]
    );
}

#[test]
fn states_that_do_not_fill_the_lifetime_are_warned_about() {
    let mut states = four_connections();
    for row in states.iter_mut().filter(|row| row.state == ThreadState::Cpu) {
        row.lifetime_ns = Some(4_100_000_000);
    }
    let found = found(4, &states, &[], &[]);
    assert!((found.ledger.unwrap().states_residual.unwrap() - (4.0 / 4.1 - 1.0)).abs() < 1e-12);
    assert!(
        found.warnings[0].contains(
            "residual -2.4 % at 4 connections: the states of connection threads do not add up to the lifetime"
        ),
        "{:?}",
        found.warnings
    );
}

#[test]
fn cpu_time_of_all_roles_is_held_against_the_schedulers() {
    let mut states = four_connections();
    for second in 0..5 {
        states.push(state(Some(second), Role::Background, ThreadState::Cpu, 0.2));
        states.push(state(Some(second), Role::Control, ThreadState::Spin, 0.05));
    }
    let name = "server.cpu_seconds_by_scheduler";
    let by_second: Vec<_> = (0..5).map(|second| counter(Some(second), name, 1.25)).collect();
    assert!(
        found(4, &states, &[], &by_second)
            .ledger
            .unwrap()
            .cpu_residual
            .unwrap()
            .abs()
            < 1e-12
    );
    // Only the measurement's figure: the states of all its seconds, the warm-up included.
    let of_measurement = [counter(None, name, 5.0)];
    let residual = found(4, &states, &[], &of_measurement)
        .ledger
        .unwrap()
        .cpu_residual
        .unwrap();
    assert!((residual - 0.25).abs() < 1e-12);
    // A second of states is missing: nothing can be compared.
    let gap: Vec<_> = states.into_iter().filter(|row| row.second != Some(1)).collect();
    assert_eq!(found(4, &gap, &[], &of_measurement).ledger.unwrap().cpu_residual, None);
}

#[test]
fn time_that_the_host_took_is_no_part_of_the_schedulers_account_and_is_said() {
    let states = four_connections();
    let by_second = |name: &str, value: f64| {
        (0..5)
            .map(|second| counter(Some(second), name, value))
            .collect::<Vec<_>>()
    };
    let mut counters = by_second("server.cpu_seconds_by_scheduler", 0.9);
    counters.extend(by_second("threads.cpu_seconds_uncharged", 0.1));
    let found = found(4, &states, &[], &counters);
    let ledger = found.ledger.unwrap();
    assert!(ledger.cpu_residual.unwrap().abs() < 1e-12, "{ledger:?}");
    assert!((ledger.uncharged_cpu_share.unwrap() - 0.1).abs() < 1e-12);
    assert!(
        found.warnings.iter().any(|text| text.contains("10 % of the CPU time")
            && text.contains("is uncharged")
            && text.contains("was not measured")),
        "{:?}",
        found.warnings
    );
}

#[test]
fn time_that_nobody_is_charged_with_is_told_with_what_explains_it_and_what_does_not() {
    let cpu = CpuSeconds {
        by_states: 10.0,
        not_their_own: 1.0,
        by_scheduler: 9.0,
    };
    let words = |interrupts: f64, host: f64| {
        let total = |value: f64| Total {
            value,
            ..Total::default()
        };
        let sums = [
            ("machine.cpu_irq_seconds".to_owned(), total(interrupts)),
            ("machine.cpu_steal_seconds".to_owned(), total(host)),
        ];
        not_charged(Some(cpu), &sums.into()).expect("a word")
    };
    let little = words(0.05, 0.01);
    assert!(
        little.starts_with("10 % of the CPU time (1.00 s) is uncharged"),
        "{little}"
    );
    assert!(little.contains("explain at most 6.0 % of it"), "{little}");
    assert!(words(0.9, 0.2).contains("may explain it"), "{}", words(0.9, 0.2));
}

#[test]
fn background_threads_stand_apart_by_name_and_busiest_first() {
    let mut states = four_connections();
    states.extend([
        thread(7, "purge", ThreadState::Sleep, 10.0),
        thread(7, "purge", ThreadState::Cpu, 0.5),
        thread(8, "cleaner", ThreadState::Io, 2.0),
        thread(9, "cleaner", ThreadState::Cpu, 1.0),
        thread(1, "one_connection", ThreadState::Cpu, 1.0),
    ]);
    states.last_mut().unwrap().role = Role::Connection;
    let ledger = found(4, &states, &[], &[]).ledger.unwrap();
    let seen: Vec<_> = ledger.background.iter().map(|t| (t.name.as_str(), t.threads)).collect();
    assert_eq!(seen, [("cleaner", Some(2)), ("purge", Some(1))]);
    let cleaner = ledger.background[0].seconds_per_second;
    assert_eq!(
        (cleaner[ThreadState::Io], cleaner[ThreadState::Cpu]),
        (Some(0.4), Some(0.2))
    );
    assert_eq!(ledger.residual, Some(0.0));
}

#[test]
fn background_threads_that_were_not_told_apart_are_one_entry() {
    let mut states = four_connections();
    states.push(state(Some(3), Role::Background, ThreadState::Cpu, 0.25));
    let ledger = found(4, &states, &[], &[]).ledger.unwrap();
    assert_eq!(ledger.background.len(), 1);
    assert_eq!(ledger.background[0].threads, None);
    assert_eq!(ledger.background[0].seconds_per_second[ThreadState::Cpu], Some(0.25));
}

#[test]
fn samples_of_spin_loops_take_their_part_from_the_time_on_cpu() {
    let samples = [
        sample(2, ThreadState::Cpu, 3e6, UnwindStatus::Complete),
        sample(3, ThreadState::Spin, 1e6, UnwindStatus::NoRule),
        sample(0, ThreadState::Spin, 9e6, UnwindStatus::Complete),
        sample(4, ThreadState::Lock, 1e6, UnwindStatus::Complete),
    ];
    let found = found(4, &four_connections(), &samples, &[]);
    let ledger = found.ledger.unwrap();
    assert_eq!(ledger.seconds_per_txn[ThreadState::Spin], Some(0.0025));
    assert_eq!(ledger.seconds_per_txn[ThreadState::Cpu], Some(0.0075));
    assert_eq!(
        (ledger.residual, ledger.complete_stacks_share),
        (Some(0.0), Some(2.0 / 3.0))
    );
    assert!(found.missing.is_empty());
}

#[test]
fn losses_and_complete_stacks_come_from_the_probes_own_counts() {
    let counters = [
        counter(None, "probe.samples", 1000.0),
        counter(None, "probe.samples_lost", 3.0),
        counter(None, "probe.switch_seconds", 4.0),
        counter(None, "probe.observed_seconds", 1.0),
        counter(None, "probe.stacks", 800.0),
        counter(None, "probe.stacks_complete", 796.0),
    ];
    let ledger = found(4, &four_connections(), &[], &counters).ledger.unwrap();
    assert_eq!((ledger.samples, ledger.samples_lost), (Some(1000), Some(3)));
    assert_eq!(ledger.observed_waits_share, Some(0.25));
    assert_eq!(ledger.complete_stacks_share, Some(0.995));
}

#[test]
fn a_run_without_states_says_so() {
    let found = found(4, &[], &[], &[]);
    assert_eq!(found.ledger, None);
    assert_eq!(found.missing[0].figure, "ledger");
    let only_spin = super::tests::found(4, &four_connections(), &[], &[]).missing;
    assert_eq!(only_spin[0].figure, "ledger.seconds_per_txn.spin");
}

#[test]
fn no_transaction_leaves_times_out_and_keeps_the_residual() {
    let mut window = window();
    for amount in window.seconds.values_mut() {
        amount.transactions = 0.0;
    }
    let states = four_connections();
    let watched = Watched {
        states: states.iter().collect(),
        ..Watched::default()
    };
    let ledger = ledger(4, &[window], &BTreeMap::new(), &watched, false).ledger.unwrap();
    assert_eq!(
        (
            ledger.seconds_per_txn[ThreadState::Cpu],
            ledger.connections_over_throughput
        ),
        (None, None)
    );
    assert_eq!(ledger.residual, Some(0.0));
}

#[test]
fn where_no_loop_that_waits_was_found_nothing_is_known_of_spinning() {
    let works = [sample(3, ThreadState::Cpu, 3e6, UnwindStatus::Complete)];
    let spin = |counters: &[CounterRow]| {
        let found = found(4, &four_connections(), &works, counters);
        (found.ledger.unwrap().seconds_per_txn[ThreadState::Spin], found.missing)
    };
    let loops = |found: f64| counter(None, "probe.spin_loops", found);
    let (time, missing) = spin(&[loops(12.0)]);
    assert_eq!((time, missing), (Some(0.0), Vec::new()));
    for (counters, reason) in [
        (vec![], "the server's machine code was not searched for spin loops"),
        (vec![loops(0.0)], "no spin loop found"),
        (vec![loops(12.0), loops(0.0)], "no spin loop found"),
    ] {
        let (time, missing) = spin(&counters);
        assert_eq!((time, missing.len()), (None, 1), "{missing:?}");
        assert!(missing[0].reason.starts_with(reason), "{missing:?}");
    }
}
