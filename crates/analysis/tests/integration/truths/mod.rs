//! Bundles whose truth is known.

use scaleprof_bundle::*;
use scaleprof_vocabulary::{LatencyKind, MeasurementOutcome, Operation, Role, SymbolSource, ThreadState, UnwindStatus};
use testing::planted::empty;

/// What a rung is made of.
#[derive(Clone, Copy)]
pub struct Truth {
    pub connections: i32,
    pub throughput: f64,
    pub cpus_used: f64,
    pub instructions: f64,
    /// X·R/N.
    pub little: f64,
}

pub const FALLS: [Truth; 8] = [
    truth(1, 1_200.0, 0.6, 2.9e5),
    truth(4, 5_000.0, 1.3, 2.9e5),
    truth(16, 13_312.0, 1.92, 2.9e5),
    truth(32, 13_000.0, 1.92, 2.9e5),
    truth(64, 11_000.0, 1.94, 3.5e5),
    truth(128, 9_000.0, 1.94, 4.2e5),
    truth(256, 7_700.0, 1.94, 4.9e5),
    truth(512, 6_523.0, 1.96, 5.8e5),
];

pub const fn truth(connections: i32, throughput: f64, cpus_used: f64, instructions: f64) -> Truth {
    Truth {
        connections,
        throughput,
        cpus_used,
        instructions,
        little: 0.999,
    }
}

/// Three repeats of 30 s, the first 4 s at half speed, with noise of about 1 %.
pub fn bundle(truths: &[Truth], hardware: bool) -> Bundle {
    let mut bundle = empty();
    for repeat in 0..3 {
        for truth in truths {
            let measurement = bundle.measurements.len() as i32;
            add_measurement(&mut bundle, measurement, repeat, truth, hardware);
        }
    }
    bundle
}

fn add_measurement(bundle: &mut Bundle, measurement: i32, repeat: i32, truth: &Truth, hardware: bool) {
    bundle.measurements.push(MeasurementRow {
        measurement,
        connections: truth.connections,
        idle_connections: 0,
        repeat,
        offered_rate: None,
        started_at: UtcMicros(0),
        connect_seconds: 0.1,
        outcome: MeasurementOutcome::Complete,
        client_lag_p99_us: Some(1.0),
        client_threads: 1,
        client_resident_bytes: None,
    });
    for second in 0..30 {
        let noise = 1.0 + 0.01 * f64::from((second * 7 + measurement * 5) % 11 - 5) / 3.2;
        let rate = truth.throughput * if second < 4 { 0.5 } else { noise };
        let transactions = rate.round();
        let service_ns = (1e9 * truth.little * f64::from(truth.connections)) as i64;
        bundle.seconds.push(SecondRow {
            measurement,
            second,
            started_at: UtcMicros(i64::from(second) * 1_000_000),
            duration_ns: 1_000_000_000,
            transactions: transactions as i64,
            queries: transactions as i64,
            reads: 0,
            writes: transactions as i64,
            errors: 0,
            retries: 0,
            service_sum_ns: service_ns,
            response_sum_ns: service_ns,
            in_transaction_ns: service_ns,
            p50_ns: None,
            p95_ns: None,
            p99_ns: None,
            max_ns: Some(50_000_000),
        });
        let median = service_ns / (transactions as i64).max(1);
        bundle.latency.push(LatencyRow {
            measurement,
            second,
            kind: LatencyKind::Service,
            operation: Operation::Transaction,
            number: None,
            name: None,
            value_ns: median,
            count: transactions as i64,
        });
        let cpu = truth.cpus_used * rate / truth.throughput;
        let mut count = |counter: &str, value: f64| {
            let counter = counter.to_owned();
            bundle.counters.push(CounterRow {
                measurement,
                second: Some(second),
                counter,
                value,
                running_share: None,
            });
        };
        count("server.cpu_user_seconds", 0.7 * cpu);
        count("server.cpu_system_seconds", 0.3 * cpu);
        count("server.cpu_seconds_by_scheduler", 1.002 * cpu);
        count("server.voluntary_switches", 2.0 * transactions);
        count("server.involuntary_switches", transactions);
        count("client.cpu_user_seconds", 0.02);
        count("client.cpu_system_seconds", 0.03);
        if hardware {
            count("hw.instructions", truth.instructions * transactions);
            count("hw.cycles", 2.0e9 * cpu);
            count("hw.task_clock_seconds", cpu);
        }
    }
    let total: i64 = bundle
        .seconds
        .iter()
        .filter(|row| row.measurement == measurement)
        .map(|row| row.transactions)
        .sum();
    bundle.counters.push(CounterRow {
        measurement,
        second: None,
        counter: "server.transactions_by_status".into(),
        value: total as f64,
        running_share: None,
    });
    bundle.errors.push(ErrorRow {
        measurement,
        error_code: 1213,
        statement: "index_updates".into(),
        count: 2,
        retried: true,
    });
}

/// Adds to a bundle what the probe would have seen: on CPUs as long as the counters say, waiting for one lock the rest of the
/// time, and a purge thread. The time on CPUs is two thirds of `work` and one third of `more_work`.
pub fn watch(bundle: &mut Bundle) {
    let functions = ["start_thread", "work", "more_work", "lock"];
    bundle.frames = (0i64..)
        .zip(functions)
        .map(|(frame, function)| FrameRow {
            frame,
            module: "mysqld".into(),
            build_id: None,
            address: frame,
            function: Some(function.into()),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Symtab,
        })
        .collect();
    bundle.stacks = (0..4)
        .map(|frame| StackRow {
            stack: frame,
            parent: (frame > 0).then_some(0),
            frame,
            depth: i32::from(frame > 0),
        })
        .collect();
    let seconds: Vec<(i32, i32)> = bundle.seconds.iter().map(|row| (row.measurement, row.second)).collect();
    for (measurement, second) in seconds {
        let connections = f64::from(bundle.measurements[measurement as usize].connections);
        let of_counter = |row: &&CounterRow| {
            row.measurement == measurement
                && row.second == Some(second)
                && row.counter == "server.cpu_seconds_by_scheduler"
        };
        let all_cpu = bundle.counters.iter().find(of_counter).unwrap().value;
        let cpu = 0.9 * all_cpu.min(connections);
        let mut state = |role, thread: Option<i64>, of, seconds: f64| {
            bundle.states.push(StateRow {
                measurement,
                second: Some(second),
                role,
                thread,
                name: thread.map(|_| "purge".into()),
                state: of,
                nanoseconds: (seconds * 1e9).round() as i64,
                lifetime_ns: (role == Role::Connection && of == ThreadState::Cpu)
                    .then_some((connections * 1e9).round() as i64),
            });
        };
        state(Role::Connection, None, ThreadState::Cpu, cpu);
        state(Role::Connection, None, ThreadState::Lock, connections - cpu);
        for thread in [None, Some(77)] {
            state(Role::Background, thread, ThreadState::Cpu, all_cpu - cpu);
        }
        let mut sample = |of, stack: i64, lock: Option<i64>| {
            bundle.samples.extend([SampleRow {
                measurement,
                second,
                time_us: UtcMicros(0),
                thread: 1,
                role: Role::Connection,
                cpu: 0,
                state: of,
                stack,
                unwind_status: UnwindStatus::Complete,
                weight_ns: 1e7,
                lock,
                waker_kind: None,
                waker_stack: None,
                holder_stack: None,
                holder_state: None,
            }]);
        };
        sample(ThreadState::Cpu, 1, None);
        sample(ThreadState::Cpu, 1, None);
        sample(ThreadState::Cpu, 2, None);
        sample(ThreadState::Lock, 3, Some(5));
    }
    for rung in &bundle.measurements {
        bundle.locks.push(LockRow {
            measurement: rung.measurement,
            lock: 5,
            name: Some("kernel_mutex".into()),
            module: Some("mysqld".into()),
            operation: "wait".into(),
            waits: 30,
            wait_ns: 3e8,
            holder_stack: Some(2),
            holder_samples: 3,
        });
    }
}
