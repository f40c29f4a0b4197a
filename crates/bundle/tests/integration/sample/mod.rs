//! A manifest and rows for the tests.

use scaleprof_bundle::*;

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
            name: "oltp_read_write".into(),
            tables: Some(4),
            rows: Some(50_000),
            distribution: "uniform".into(),
            protocol: "binary".into(),
            isolation: None,
            seed: 1,
            loop_kind: "closed".into(),
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
            turns: None,
        },
        missing: vec![],
        warnings: vec![],
    }
}

pub fn rung(visit: i32) -> RungRow {
    RungRow {
        visit,
        connections: 1 << visit,
        idle_connections: 0,
        repeat: 0,
        offered_rate: None,
        started_at: UtcMicros(1_800_000_000_000_000),
        connect_seconds: 0.25,
        outcome: "complete".into(),
        client_lag_p99_us: Some(12.5),
        client_threads: 2,
        client_resident_bytes: None,
    }
}

pub fn second(visit: i32, second: i32) -> SecondRow {
    SecondRow {
        visit,
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
        inside_ns: 100_000_000,
        p50_ns: Some(900_000),
        p95_ns: None,
        p99_ns: Some(2_000_000),
        max_ns: Some(9_000_000),
    }
}

pub fn counter(visit: i32, second: Option<i32>, counter: &str, value: f64) -> CounterRow {
    CounterRow {
        visit,
        second,
        counter: counter.into(),
        value,
        counted_share: None,
    }
}

pub fn latency(visit: i32, second: i32, value_ns: i64, count: i64) -> LatencyRow {
    LatencyRow {
        visit,
        second,
        kind: "service".into(),
        what: "transaction".into(),
        value_ns,
        count,
    }
}

pub fn error(visit: i32) -> ErrorRow {
    ErrorRow {
        visit,
        number: 1213,
        statement: "index_updates".into(),
        count: 3,
        retried: true,
    }
}

/// One sampled wait: the frame `main` is the same in every visit, the frame inside it is the visit's own.
pub fn profiled(visit: i32) -> VisitRows {
    let frame = |frame: i64, function: &str| FrameRow {
        frame,
        module: "mariadbd".into(),
        build_id: Some("00ff".into()),
        address: 0x1000 + frame,
        function: Some(function.into()),
        inlined: false,
        file: None,
        line: None,
        name_source: "symtab".into(),
    };
    let stack = |stack: i64, parent: Option<i64>, frame: i64| StackRow {
        stack,
        parent,
        frame,
        depth: i32::from(parent.is_some()),
    };
    let own = i64::from(visit) + 100;
    VisitRows {
        states: vec![StateRow {
            visit,
            second: Some(0),
            role: "connection".into(),
            state: "lock".into(),
            nanoseconds: 1_000_000,
            ..StateRow::default()
        }],
        samples: vec![SampleRow {
            visit,
            second: 0,
            time_us: UtcMicros(1_800_000_000_000_007),
            thread: 4711,
            role: "connection".into(),
            cpu: 1,
            state: "lock".into(),
            stack: own,
            ending: "complete".into(),
            weight_ns: 1e6,
            lock: Some(9),
            waker_kind: Some("sibling".into()),
            waker_stack: Some(1),
            owner_stack: Some(1),
            owner_state: Some("io".into()),
        }],
        locks: vec![LockRow {
            visit,
            lock: 9,
            name: Some("log_sys+64".into()),
            module: Some("mariadbd".into()),
            operation: "wait".into(),
            waits: 1,
            wait_ns: 1e6,
            owner_stack: Some(1),
            owner_samples: 1,
        }],
        stacks: vec![stack(1, None, 1), stack(own, Some(1), own)],
        frames: vec![frame(1, "main"), frame(own, "wait")],
        ..VisitRows::default()
    }
}

/// Two finished visits, as a run would write them.
pub fn write_two_visits(folder: &std::path::Path) -> BundleWriter {
    let writer = BundleWriter::create(folder).unwrap();
    writer.write_manifest(&manifest()).unwrap();
    for visit in 0..2 {
        let seconds: Vec<_> = (0..5).map(|s| second(visit, s)).collect();
        let counters: Vec<_> = (0..5)
            .map(|s| counter(visit, Some(s), "server.cpu_user_seconds", 0.75))
            .collect();
        let buckets = [latency(visit, 0, 1_000_000, 90), latency(visit, 0, 2_000_000, 10)];
        writer
            .write_visit(
                &rung(visit),
                &VisitRows {
                    seconds,
                    counters,
                    latency: buckets.to_vec(),
                    errors: vec![error(visit)],
                    ..profiled(visit)
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
