//! A manifest and rows for the tests.

use scaleprof_bundle::*;
use scaleprof_vocabulary::{
    LatencyKind, MeasurementOutcome, Operation, Role, RunState, SymbolSource, ThreadState, UnwindStatus, WakerKind,
};

pub fn manifest() -> Manifest {
    Manifest {
        schema: SCHEMA,
        scaleprof: "0.1.0".into(),
        started_at: "2026-11-21T03:00:00Z".into(),
        ended_at: None,
        state: RunState::Running,
        problem: None,
        command: vec!["scaleprof".into(), "run".into()],
        server: Server {
            product: "MariaDB".into(),
            version: "10.11.19-MariaDB".into(),
            build_id: Some("00ff".into()),
            binary: Some("mariadbd".into()),
            cpus: Some("0-1".into()),
            cpu_count: Some(2),
            shares_cpus_with_client: Some(true),
        },
        workload: Workload {
            name: scaleprof_vocabulary::WorkloadName::OltpReadWrite,
            imported_as: None,
            tables: Some(4),
            rows: Some(50_000),
            distribution: "uniform".into(),
            protocol: "binary".into(),
            isolation: None,
            seed: 1,
            loop_kind: Some(scaleprof_vocabulary::LoopWord::Closed),
            options: vec![],
        },
        machine: Machine {
            cpu_model: "a CPU".into(),
            cpus: Some(2),
            numa_nodes: Some(1),
            memory_bytes: Some(1 << 33),
            kernel: "6.1".into(),
            architecture: "x86_64".into(),
            distribution: None,
            hypervisor: None,
            governor: None,
            clock_source: None,
            transparent_huge_pages: None,
            pause_nanoseconds: None,
        },
        ladder: Ladder {
            connections: vec![1, 2],
            refined: vec![],
            seconds: 10,
            repeats: 1,
            idle_connections: 0,
            rate: None,
            interleaving: None,
        },
        missing: vec![],
        warnings: vec![],
    }
}

pub fn rung(measurement: i32) -> MeasurementRow {
    MeasurementRow {
        measurement,
        connections: 1 << measurement,
        idle_connections: 0,
        repeat: 0,
        offered_rate: None,
        started_at: UtcMicros(1_800_000_000_000_000),
        connect_seconds: 0.25,
        outcome: MeasurementOutcome::Complete,
        client_lag_p99_us: Some(12.5),
        client_threads: 2,
        client_resident_bytes: None,
    }
}

pub fn second(measurement: i32, second: i32) -> SecondRow {
    SecondRow {
        measurement,
        second,
        started_at: UtcMicros(1_800_000_000_000_000 + i64::from(second) * 1_000_000),
        duration_ns: 1_000_000_000,
        transactions: 100,
        queries: 2000,
        reads: 1400,
        writes: 400,
        errors: 0,
        retries: 0,
        service_sum_ns: 100_000_000,
        response_sum_ns: 100_000_000,
        in_transaction_ns: 100_000_000,
        p50_ns: Some(900_000),
        p95_ns: None,
        p99_ns: Some(2_000_000),
        max_ns: Some(9_000_000),
    }
}

pub fn counter(measurement: i32, second: Option<i32>, counter: &str, value: f64) -> CounterRow {
    CounterRow {
        measurement,
        second,
        counter: counter.into(),
        value,
        running_share: None,
    }
}

pub fn latency(measurement: i32, second: i32, value_ns: i64, count: i64) -> LatencyRow {
    LatencyRow {
        measurement,
        second,
        kind: LatencyKind::Service,
        operation: Operation::Transaction,
        number: None,
        name: None,
        value_ns,
        count,
    }
}

pub fn error(measurement: i32) -> ErrorRow {
    ErrorRow {
        measurement,
        error_code: 1213,
        statement: "index_updates".into(),
        count: 3,
        retried: true,
    }
}

/// One sampled wait: the frame `main` is the same in every measurement, the frame inside it is the
/// measurement's own.
pub fn profiled(measurement: i32) -> MeasurementRows {
    let frame = |frame: i64, function: &str| FrameRow {
        frame,
        module: "mariadbd".into(),
        build_id: Some("00ff".into()),
        address: 0x1000 + frame,
        function: Some(function.into()),
        inlined: false,
        file: None,
        line: None,
        symbol_source: SymbolSource::Symtab,
    };
    let stack = |stack: i64, parent: Option<i64>, frame: i64| StackRow {
        stack,
        parent,
        frame,
        depth: i32::from(parent.is_some()),
    };
    let own = i64::from(measurement) + 100;
    MeasurementRows {
        states: vec![StateRow {
            measurement,
            second: Some(0),
            role: Role::Connection,
            state: ThreadState::Lock,
            nanoseconds: 1_000_000,
            thread: None,
            name: None,
            lifetime_ns: None,
        }],
        samples: vec![SampleRow {
            measurement,
            second: 0,
            time_us: UtcMicros(1_800_000_000_000_007),
            thread: 4711,
            role: Role::Connection,
            cpu: 1,
            state: ThreadState::Lock,
            stack: own,
            unwind_status: UnwindStatus::Complete,
            weight_ns: 1e6,
            lock: Some(9),
            waker_kind: Some(WakerKind::SameProcess),
            waker_stack: Some(1),
            holder_stack: Some(1),
            holder_state: Some(ThreadState::Io),
        }],
        locks: vec![LockRow {
            measurement,
            lock: 9,
            name: Some("log_sys+64".into()),
            module: Some("mariadbd".into()),
            operation: "wait".into(),
            waits: 1,
            wait_ns: 1e6,
            holder_stack: Some(1),
            holder_samples: 1,
        }],
        stacks: vec![stack(1, None, 1), stack(own, Some(1), own)],
        frames: vec![frame(1, "main"), frame(own, "wait")],
        ..MeasurementRows::default()
    }
}

/// Two finished measurements, as a run would write them.
pub fn write_two_measurements(folder: &std::path::Path) -> BundleWriter {
    let writer = BundleWriter::create(folder).unwrap();
    writer.write_manifest(&manifest()).unwrap();
    for measurement in 0..2 {
        let seconds: Vec<_> = (0..5).map(|s| second(measurement, s)).collect();
        let counters: Vec<_> = (0..5)
            .map(|s| counter(measurement, Some(s), "server.cpu_user_seconds", 0.75))
            .collect();
        let buckets = [
            latency(measurement, 0, 1_000_000, 90),
            latency(measurement, 0, 2_000_000, 10),
        ];
        writer
            .write_measurement(
                &rung(measurement),
                &MeasurementRows {
                    seconds,
                    counters,
                    latency: buckets.to_vec(),
                    errors: vec![error(measurement)],
                    ..profiled(measurement)
                },
            )
            .unwrap();
    }
    let setting = SettingRow {
        default_value: Some("1".into()),
        ..SettingRow::new("innodb_flush_log_at_trx_commit", "1")
    };
    writer.write_settings(&[setting]).unwrap();
    writer
}
