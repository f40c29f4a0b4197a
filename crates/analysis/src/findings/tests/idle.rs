//! Waits that idle CPUs.

use super::made_up::*;
use crate::findings::*;
use scaleprof_bundle::LockSummary;

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
