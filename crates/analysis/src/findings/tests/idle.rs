//! Waits that idle CPUs.

use super::made_up::*;
use crate::findings::*;
use scaleprof_vocabulary::FindingKind;

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
    assert_eq!(idle[0].kind, FindingKind::LogStall, "{idle:?}");
    assert!(idle[0].evidence[0].contains("40 % of the CPUs busy"), "{idle:?}");
    let busy = found(&[(8, 4_000.0, 1.0, few), (256, 4_100.0, 1.0, many)]);
    assert!(busy.is_empty(), "{busy:?}");
}

/// As InnoDB's queue before it (innodb_thread_concurrency) makes threads sleep.
#[test]
fn threads_that_are_made_to_sleep_are_told_while_cpus_idle() {
    let sleep: &[&str] = &[
        "main",
        "dispatch_command",
        "innobase_srv_conc_enter_innodb",
        "os_thread_sleep",
        "do_select [k]",
    ];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("sleep", sleep, 10.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("sleep", sleep, 3_000.0)];
    let idle = found(&[(8, 4_000.0, 0.4, few), (256, 4_100.0, 0.4, many)]);
    assert_eq!(idle[0].kind, FindingKind::Blocked, "{idle:?}");
    assert!(idle[0].title.starts_with("Threads are made to sleep, in "), "{idle:?}");
    // Who sleeps as long at every load is no growth.
    let same = found(&[(8, 4_000.0, 0.4, few), (16, 4_000.0, 0.4, few)]);
    assert!(same.is_empty(), "{same:?}");
}

#[test]
fn a_condition_variable_is_not_called_a_lock() {
    let few: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let wait = ["pthread_cond_wait", "__pthread_cond_wait_common", "futex_wait [k]"];
    let of = |product: &str, place: &str| {
        let waiting = [&["main", "dispatch_command", place][..], &wait].concat();
        let change = |_, summary: &mut RungSummary| hold(summary, &["main", "somebody"]);
        let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", &waiting, 1_200.0)];
        let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(1, 6_000.0, 0.3, few), (8, 5_000.0, 0.4, many)];
        let found = made_up(rungs, change, |profiled, call_paths| {
            let mut manifest = manifest();
            manifest.server.product = product.into();
            let surroundings = Surroundings {
                manifest: &manifest,
                settings: &[],
                code: &MachineCode::default,
            };
            findings(profiled, &surroundings, call_paths).findings
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
    assert_eq!(answer.kind, FindingKind::LogStall);
    assert!(
        answer.title.contains("log is on disk") && answer.title.contains("asynchronous group commit"),
        "{answer:?}"
    );
    assert!(answer.evidence.join("\n").contains("condition variable"), "{answer:?}");
    // Somebody holds what this one stands for.
    for product in ["MySQL", "MariaDB"] {
        let held = of(product, "MDL_wait::timed_wait");
        assert_eq!(held.title, "Threads wait for a metadata lock");
        let said = held.evidence.join("\n");
        assert!(!said.contains("condition variable"), "{said}");
        let tries = held.suggestions.join("\n");
        assert!(
            tries.contains("performance_schema.metadata_locks") && tries.contains("METADATA_LOCK_INFO"),
            "{tries}"
        );
    }
}

/// All of a rung's locks have a holder that was there.
fn hold(summary: &mut RungSummary, holder: &[&str]) {
    for lock in &mut summary.locks {
        lock.holder = names(holder);
        (lock.holder_samples, lock.total_waits) = (90, 120);
    }
}

/// In MySQL 8.0 and later the log writer's threads wake those that commit, by events that are classes; the names are of 9.7.
#[test]
fn those_that_wait_for_the_threads_of_the_log_wait_for_the_log() {
    let commit = [
        "main",
        "dispatch_command(THD*)",
        "trx_flush_log_if_needed(unsigned long, trx_t*)",
    ];
    let wait = [
        "os_event::wait_time_low(std::chrono::duration<long>, long)",
        "os_event::timed_wait(timespec const*)",
        "pthread_cond_timedwait",
        "futex_wait [k]",
    ];
    for inner in [
        &["log_write_up_to(log_t&, unsigned long, bool)"][..],
        &[
            "log_write_up_to(log_t&, unsigned long, bool)",
            "log_wait_for_write(log_t const&, unsigned long, bool*)",
        ],
    ] {
        let waiting = [&commit[..], inner, &wait].concat();
        let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", &waiting, 10.0)];
        let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", &waiting, 3_000.0)];
        let found = found(&[(8, 4_000.0, 0.4, few), (256, 4_100.0, 0.4, many)]);
        assert_eq!((found.len(), found[0].kind), (1, FindingKind::LogStall), "{found:?}");
        assert!(found[0].title.contains("InnoDB's redo log"), "{}", found[0].title);
    }
}

/// And they are variables of the server.
fn name(summary: &mut RungSummary) {
    for (lock, number) in summary.locks.iter_mut().zip(0..) {
        lock.name = Some(format!("planted_{number}"));
        lock.module = Some("mysqld".into());
    }
}

#[test]
fn a_lock_whose_holder_syncs_a_file_is_a_stall_of_the_log_and_the_sync_is_not_told_again() {
    let sync: &[&str] = &["main", "write_the_log", "fdatasync", "do_fsync [k]"];
    let waiting: &[&str] = &[
        "main",
        "write_the_log",
        "pthread_mutex_lock",
        "__lll_lock_wait",
        "futex_wait [k]",
    ];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("io", sync, 50.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("io", sync, 150.0), ("lock:1", waiting, 1_500.0)];
    let found = found_with(&[(1, 6_000.0, 0.3, few), (8, 4_500.0, 0.5, many)], |_, summary| {
        name(summary);
        hold(summary, &["main", "write_the_log", "fdatasync"]);
    });
    assert_eq!((found.len(), found[0].kind), (1, FindingKind::LogStall), "{found:?}");
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
    let few: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", &waiting, 1_200.0)];
    let found = found(&[(1, 6_000.0, 0.3, few), (8, 5_000.0, 0.4, many)]);
    assert_eq!(found[0].kind, FindingKind::AllocatorContention, "{found:?}");
}

#[test]
fn whichever_loses_more_decides_when_cpus_idle_a_little() {
    let lock_wait: &[&str] = &["main", "dispatch_command", "trx_commit", "futex_wait [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", lock_wait, 10.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 300.0), ("lock", lock_wait, 1_000.0)];
    // A third of the CPUs idles, and a transaction costs three times as much.
    let dearer = found(&[(1, 8_000.0, 0.5, few), (8, 5_000.0, 0.67, many)]);
    assert_eq!(dearer[0].kind, FindingKind::CostGrowth, "{dearer:?}");
    // Three quarters idle.
    let idle = found(&[(1, 8_000.0, 0.5, few), (8, 5_000.0, 0.25, many)]);
    assert_eq!(idle[0].kind, FindingKind::LockConvoy, "{idle:?}");
}

#[test]
fn cpus_that_other_programs_took_are_not_busy() {
    let wait: &[&str] = &["main", "dispatch_command", "trx_commit", "futex_wait [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", wait, 10.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock", wait, 1_000.0)];
    let rungs: &[(u32, f64, f64, Costs<'_>)] = &[(1, 5_000.0, 0.9, few), (8, 5_000.0, 0.97, many)];
    assert!(found(rungs).is_empty());
    let found = found_with(rungs, |_, summary| summary.noise_cpu_share = Some(0.4));
    assert_eq!(found[0].kind, FindingKind::LockConvoy, "{found:?}");
}

/// Waits for locks on the heap: each stack counts as a lock of its own, and together they take so many microseconds.
fn scattered(functions: &[String], micros: f64) -> Vec<(String, Vec<&str>, f64)> {
    let each = micros / functions.len() as f64;
    let locks = functions.iter().zip(100..);
    let locks = locks.map(|(function, number)| {
        let path = vec![
            "main",
            "dispatch_command",
            function,
            "take_page_latch",
            "__lll_lock_wait",
        ];
        (format!("lock:{number}"), path, each)
    });
    locks.collect()
}

/// A thousand transactions a second by eight connections: 8 ms each, of which 1.2 ms are waits for locks on sixty stacks.
#[test]
fn waits_for_a_lock_that_many_stacks_take_are_added_up_though_another_lock_is_named() {
    let functions: Vec<String> = (0..60).map(|number| format!("caller_{number}")).collect();
    let scattered = scattered(&functions, 1_200.0);
    let named: &[&str] = &[
        "main",
        "dispatch_command",
        "log",
        "pthread_mutex_lock",
        "futex_wait [k]",
    ];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("lock:1", named, 30.0)];
    let mut many: Vec<(&str, &[&str], f64)> = few.to_vec();
    many.extend(
        scattered
            .iter()
            .map(|(state, path, micros)| (state.as_str(), &path[..], *micros)),
    );
    let found = found_with(&[(1, 1_000.0, 0.3, few), (8, 1_000.0, 0.4, &many)], |_, summary| {
        name(summary);
    });
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::LockConvoy], "{found:?}");
    assert!(
        (found[0].lost_share.value - 0.15).abs() < 0.002,
        "{:?}",
        found[0].lost_share
    );
    let said = found[0].evidence.join("\n");
    assert!(said.contains("98 % of it in take_page_latch"), "{said}");
}

#[test]
fn waits_for_many_locks_are_told_as_such() {
    let functions: Vec<String> = (0..60).map(|number| format!("caller_{number}")).collect();
    let mut scattered = scattered(&functions, 1_200.0);
    for ((_, path, _), function) in scattered.iter_mut().zip(&functions) {
        path[3] = function;
        path[2] = "serve";
    }
    let few: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let mut many: Vec<(&str, &[&str], f64)> = few.to_vec();
    many.extend(
        scattered
            .iter()
            .map(|(state, path, micros)| (state.as_str(), &path[..], *micros)),
    );
    let found = found(&[(1, 1_000.0, 0.3, few), (8, 1_000.0, 0.4, &many)]);
    assert_eq!(
        (found.len(), found[0].title.as_str()),
        (1, "Threads queue for locks in many places"),
        "{found:?}"
    );
    assert!(
        (found[0].lost_share.value - 0.15).abs() < 0.002,
        "{:?}",
        found[0].lost_share
    );
}

/// Of the locks with a name one loses enough to be told; the waits of the other are added to those of the heap.
#[test]
fn no_wait_for_a_lock_is_told_twice_and_none_is_left_out() {
    let one: &[&str] = &[
        "main",
        "dispatch_command",
        "log",
        "pthread_mutex_lock",
        "futex_wait [k]",
    ];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0)];
    let many: Costs<'_> = &[
        ("cpu", PARSE, 100.0),
        ("lock:1", one, 3_000.0),
        // The same path, but another lock, and not known which.
        ("lock:2", one, 140.0),
        ("lock", one, 140.0),
    ];
    let found = found_with(&[(1, 1_000.0, 0.3, few), (8, 1_000.0, 0.4, many)], |_, summary| {
        name(summary);
    });
    let shares: Vec<f64> = found.iter().map(|finding| finding.lost_share.value).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].title.contains("planted_0") && !found[1].title.contains("planted"),
        "{found:?}"
    );
    assert!(
        (shares[0] - 3_000.0 / 8_000.0).abs() < 0.002 && (shares[1] - 280.0 / 8_000.0).abs() < 0.002,
        "{shares:?}"
    );
}

#[test]
fn what_was_waited_for_a_lock_at_the_base_counts_though_ten_others_stood_before_it() {
    let paths: Vec<[String; 3]> = (0..12)
        .map(|number| ["main".into(), format!("f{number}"), "wait".into()])
        .collect();
    let paths: Vec<Vec<&str>> = paths
        .iter()
        .map(|path| path.iter().map(String::as_str).collect())
        .collect();
    let states: Vec<String> = (0..12).map(|number| format!("lock:{number}")).collect();
    let rung = |last: f64| -> Vec<(&str, &[&str], f64)> {
        let locks = states
            .iter()
            .zip(&paths)
            .map(|(state, path)| (state.as_str(), &path[..]));
        let locks = locks.zip(0..);
        locks
            .map(|((state, path), number)| (state, path, if number == 11 { last } else { 300.0 }))
            .collect()
    };
    let found = found(&[(4, 1_000.0, 0.3, &rung(250.0)), (8, 1_000.0, 0.4, &rung(600.0))]);
    let of_it = found.iter().find(|finding| finding.path.contains(&"f11".to_owned()));
    let share = of_it.expect("the lock that grew").lost_share.value;
    assert!((share - 350.0 / 8_000.0).abs() < 0.003, "{share}");
}

#[test]
fn the_disk_is_told_though_a_lock_that_loses_nothing_has_a_holder_that_syncs() {
    let sync: &[&str] = &["main", "write_pages", "fdatasync", "do_fsync [k]"];
    let waiting: &[&str] = &["main", "write_pages", "pthread_mutex_lock", "futex_wait [k]"];
    let few: Costs<'_> = &[("cpu", PARSE, 100.0), ("io", sync, 50.0), ("lock:1", waiting, 20.0)];
    let many: Costs<'_> = &[("cpu", PARSE, 100.0), ("io", sync, 1_500.0), ("lock:1", waiting, 30.0)];
    let found = found_with(&[(1, 6_000.0, 0.3, few), (8, 4_500.0, 0.5, many)], |_, summary| {
        hold(summary, &["main", "write_pages", "fdatasync"]);
    });
    let kinds: Vec<FindingKind> = found.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::DiskBound], "{found:?}");
}
