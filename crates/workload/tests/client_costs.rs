//! What the client costs: two thousand connections, and waiting. A program of its own, in which each test is a process of its own
//! (nextest): they look at the whole process.

use testing::servers;
#[path = "integration/real_servers/stage.rs"]
#[allow(dead_code)] // the other program uses its part
mod stage;

use scaleprof_workload::*;
use stage::*;
use std::sync::Arc;

/// A line of /proc/self/status, KiB.
fn memory_kib(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("our status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the line");
    line.trim_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .expect("a number")
}

/// CPU time of this process, seconds.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

const WORKING: u32 = 2000;
const IDLE: u32 = 100;

#[test]
fn two_thousand_connections_are_all_at_work_and_cost_little_memory() {
    let Some(server) = servers::distribution() else { return };
    if let Err(limit) = raise_open_file_limit(WORKING + IDLE) {
        testing::skip!("only {limit} files may be open. ulimit -n 4096");
        return;
    }
    let stage = start(&server, WORKING + IDLE);
    let options = OltpOptions {
        tables: 2,
        table_size: 1000,
        ..OltpOptions::default()
    };
    prepare(&stage, &options, OltpWorkloadKind::PointSelect);
    let mut control = client(&stage);
    for transport in transports() {
        let load = LoadPlan {
            connections: WORKING,
            idle_connections: IDLE,
            threads: 2,
            seconds: 4,
            transport,
            ..plan(&stage, oltp(OltpWorkloadKind::PointSelect, &options))
        };
        let (mut connected, mut memory) = (0, 0);
        let ran = run_with(&load, &Arc::default(), &mut |second| {
            if second == 1 {
                connected = status(&mut control, "Threads_connected");
                memory = memory_kib("VmRSS");
            }
        });
        assert!(ran.transactions() > 0);
        assert_eq!(ran.records.len(), 4);
        // And ourselves.
        assert_eq!(connected, u64::from(WORKING + IDLE) + 1, "{transport}");
        assert!(memory < 100 * 1024, "{transport}: {memory} KiB");
        println!("{transport}: {memory} KiB");
        // In the first second the threads begin.
        ran.assert_all_at_work(1, WORKING, &transport.to_string());
        // Those that have left are still being closed by the server.
        wait_until_closed(&mut control);
    }
}

/// A counter of SHOW GLOBAL STATUS.
fn status(control: &mut scaleprof_wire::Client, name: &str) -> u64 {
    let shown = control
        .query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))
        .expect("the status");
    shown.rows[0][1]
        .as_deref()
        .and_then(|text| text.parse().ok())
        .expect("a number")
}

fn wait_until_closed(control: &mut scaleprof_wire::Client) {
    let began = std::time::Instant::now();
    while number(
        control,
        "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'root'",
    ) > 1
    {
        assert!(began.elapsed().as_secs() < 60, "connections are left");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// Time is up after one second, the statement under way ends four seconds later: nothing is to be done meanwhile.
#[test]
fn waiting_for_the_last_statement_costs_nothing() {
    let Some(server) = servers::distribution() else { return };
    let stage = start(&server, 8);
    execute(&mut client(&stage), "CREATE DATABASE other");
    for transport in transports() {
        let load = LoadPlan {
            transport,
            ..plan(&stage, stage::script("DO SLEEP(4)", Repetition::Loop))
        };
        let before = cpu_seconds();
        let ran = run(&load);
        let spent = cpu_seconds() - before;
        assert_eq!(ran.outcome().late_transactions, 1);
        assert!(spent < 0.5, "{transport}: waiting took {spent} s of CPU time");
    }
}
