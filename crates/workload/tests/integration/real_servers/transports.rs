//! What must not depend on how packets travel, and how a load ends before its time.

use super::general_log::{statements, while_logging};
use super::stage::*;
use scaleprof_workload::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use testing::servers::distribution;

/// The first statements of every connection, with their values.
fn streams(stage: &Stage, transport: Transport, seed: u64) -> BTreeSet<Vec<String>> {
    const STATEMENTS: usize = 60;
    let options = OltpOptions {
        tables: 2,
        table_size: 1000,
        ..OltpOptions::default()
    };
    let load = LoadPlan {
        connections: 3,
        // How connections are dealt to threads must not matter either.
        threads: if transport == Transport::Epoll { 1 } else { 2 },
        seed,
        transport,
        ..plan(stage, oltp(OltpWorkloadKind::ReadOnly, &options))
    };
    let log = while_logging(stage, || {
        run(&load).outcome();
    });
    let streams: BTreeSet<_> = statements(log)
        .into_values()
        .map(|entries| {
            assert!(entries.len() >= STATEMENTS, "{} statements", entries.len());
            entries[..STATEMENTS].iter().map(|e| e.text.clone()).collect()
        })
        .collect();
    assert_eq!(streams.len(), 3, "every connection has values of its own");
    streams
}

#[test]
fn the_same_seed_sends_the_same_statements_by_either_transport() {
    on_the_distribution_server(|stage| {
        let options = OltpOptions {
            tables: 2,
            table_size: 1000,
            ..OltpOptions::default()
        };
        prepare(stage, &options, OltpWorkloadKind::ReadOnly);
        let epoll = streams(stage, Transport::Epoll, 5);
        assert!(
            epoll.is_disjoint(&streams(stage, Transport::Epoll, 6)),
            "another seed sends the same"
        );
        if transports().contains(&Transport::IoUring) {
            assert_eq!(epoll, streams(stage, Transport::IoUring, 5));
        }
    });
}

#[test]
fn a_killed_server_ends_the_load_at_once() {
    let Some(server) = distribution() else { return };
    for transport in transports() {
        let stage = start(&server, 32);
        execute(&mut client(&stage), "CREATE DATABASE other");
        let load = LoadPlan {
            connections: 20,
            idle_connections: 2,
            threads: 2,
            seconds: 60,
            transport,
            ..plan(&stage, script("DO 1; SELECT 1", Repetition::Loop))
        };
        let pid = stage.pid() as i32;
        let mut killed = None;
        let ran = run_with(&load, &Arc::default(), &mut |second| {
            if second == 0 {
                // SAFETY: kill has no memory effects, and the process is our sandbox's.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                killed = Some(Instant::now());
            }
        });
        let took = killed.expect("a second").elapsed();
        assert!(
            matches!(ran.result, Err(LoadError::Lost(_))),
            "{transport}: {:?}",
            ran.result
        );
        // 60 s were planned; 10 s is for a machine that is busy with other things.
        assert!(took < Duration::from_secs(10), "{transport}: {took:?}");
    }
}

/// Sets the stop flag at the end of the first second and says how long the load took to end.
fn stop_a_load(load: &LoadPlan) -> Duration {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    let mut set = None;
    let ran = run_with(load, &stop, &mut |_| {
        flag.store(true, Ordering::Relaxed);
        set.get_or_insert_with(Instant::now);
    });
    assert!(matches!(ran.result, Err(LoadError::Stopped)), "{:?}", ran.result);
    set.expect("it is set").elapsed()
}

#[test]
fn the_stop_flag_ends_a_load_whatever_its_statements_do() {
    on_the_distribution_server(|stage| {
        for transport in transports() {
            for text in ["DO 1", "DO SLEEP(60)"] {
                let load = LoadPlan {
                    connections: 10,
                    threads: 2,
                    seconds: 60,
                    transport,
                    ..plan(stage, script(text, Repetition::Loop))
                };
                // A tenth of a second is usual.
                let took = stop_a_load(&load);
                println!("{transport} {text}: it ended after {took:?}");
                assert!(took < Duration::from_secs(2), "{transport} {text}: {took:?}");
            }
        }
        // The server may go on sleeping for them.
        let mut control = client(stage);
        let left = "SELECT id FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'";
        for row in control.query(left).expect("the connections").rows {
            let _ = control.execute(&format!("KILL {}", row[0].as_deref().unwrap_or_default()));
        }
    });
}

#[test]
fn thousands_of_statements_are_prepared_on_one_connection() {
    on_the_distribution_server(|stage| {
        // The server answers one before it reads the next: too many on the way and both wait for ever.
        let texts: Vec<String> = (0..5000)
            .map(|n| format!("SELECT ?, ?, ?, {n}, '{}'", "x".repeat(100)))
            .collect();
        let mut client = client(stage);
        let (done, finished) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let prepared = client.prepare_all(texts.iter().map(String::as_str));
            // Nobody listens when it took too long.
            let _ = done.send(prepared.map(|all| all.iter().filter(|p| p.is_ok()).count()));
        });
        let count = finished
            .recv_timeout(Duration::from_secs(50))
            .expect("an answer in time");
        assert_eq!(count.expect("prepared"), 5000);
    });
}
