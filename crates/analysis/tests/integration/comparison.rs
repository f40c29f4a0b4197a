//! What `diff` says of two runs, where the truth is known.

use scaleprof_vocabulary::ThreadState;
use testing::{is_deep, planted, trials};

use planted::{Cost, Rung, USUAL, Unrest, run, work};
use scaleprof_analysis::comparison::{Choice, Comparison, ConditionEffect, Course, PathAccount, Refusal, compare};
use scaleprof_bundle::{Bundle, IMPORTED, SettingRow};

/// Two rungs with the same costs, but for what is planted at each.
fn rungs<'a>(work: &'a [(Vec<&'a str>, f64)], planted: [&[Cost<'a>]; 2]) -> Vec<Rung<'a>> {
    let mut rungs = Vec::new();
    for (connections, planted) in [16, 256].into_iter().zip(planted) {
        let mut costs: Vec<Cost<'a>> = work
            .iter()
            .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
            .collect();
        for (state, path, micros) in planted {
            // A planted cost replaces that of the same path.
            costs.retain(|(_, known, _)| known != path);
            costs.push((*state, path, *micros));
        }
        let all: f64 = costs.iter().map(|(_, _, micros)| micros).sum();
        rungs.push((connections, 1.96e6 / all, costs));
    }
    rungs
}

fn compared(a: &Bundle, b: &Bundle) -> Comparison {
    compare(a, b, Choice::default()).expect("two runs that can be compared")
}

/// How far a share of so many trials may be from the true one: standard deviations of the binomial distribution.
fn spread(deviations: f64, share: f64, trials: u64) -> f64 {
    deviations * (share * (1.0 - share) / trials as f64).sqrt()
}

/// Share of pairs of runs without a difference in which anything is listed.
fn false_alarms(repeats: i32, seconds: i32, unrest: Unrest, trials: u64) -> (f64, f64) {
    let work = work();
    let same = rungs(&work, [&[], &[]]);
    let (mut of_paths, mut of_throughput) = (0, 0);
    for trial in 0..trials {
        let a = run(&same, repeats, seconds, unrest, 2 * trial + 1);
        let b = run(&same, repeats, seconds, unrest, 2 * trial + 2);
        let found = compared(&a, &b);
        assert_eq!(found.rungs.len(), 2);
        of_paths += u64::from(!found.paths.is_empty());
        of_throughput += u64::from(
            found
                .rungs
                .iter()
                .any(|rung| rung.throughput_p.is_some_and(|p| p <= 0.05)),
        );
    }
    (of_paths as f64 / trials as f64, of_throughput as f64 / trials as f64)
}

#[test]
fn two_runs_of_the_same_server_seldom_differ() {
    let restless = Unrest {
        of_measurements: 0.10,
        of_paths: 0.05,
        ..USUAL
    };
    // Each path by itself moves by more than what is worth a word.
    let wild = Unrest {
        of_measurements: 0.10,
        of_paths: 0.30,
        samples_a_second: 100.0,
    };
    let runs = [
        (3, 10, USUAL),
        (2, 8, USUAL),
        (3, 10, restless),
        (5, 6, restless),
        (2, 6, wild),
        (5, 6, wild),
    ];
    // `./test` takes those with the fewest repeats, which tell the least of themselves.
    let fewest = |(repeats, ..): &(i32, i32, Unrest)| is_deep() || *repeats == 2;
    for (repeats, seconds, unrest) in runs.into_iter().filter(fewest) {
        let trials = trials(200);
        let (paths, throughput) = false_alarms(repeats, seconds, unrest, trials);
        println!("{repeats} x {seconds} s, {unrest:?}: {paths} {throughput}");
        // At most 5 % by design.
        assert!(paths <= 0.05, "{repeats} x {seconds} s, {unrest:?}: paths {paths}");
        // 5 % by design.
        assert!(
            throughput <= 0.05 + spread(3.0, 0.05, trials),
            "{repeats} x {seconds} s, {unrest:?}: throughput {throughput}"
        );
    }
}

#[test]
fn a_path_that_scales_worse_is_found_with_an_interval_that_holds_the_truth() {
    let work = work();
    let waiting = ["start_thread", "do_command", "change", "latch"];
    let trials = trials(60);
    let (mut found, mut held, mut beyond_held, mut others) = (0u32, 0u32, 0u32, 0);
    for trial in 0..trials {
        let a = run(
            &rungs(
                &work,
                [
                    &[(ThreadState::Spin, &waiting, 4.0)],
                    &[(ThreadState::Spin, &waiting, 10.0)],
                ],
            ),
            3,
            10,
            USUAL,
            3 * trial,
        );
        let b = run(
            &rungs(
                &work,
                [
                    &[(ThreadState::Spin, &waiting, 4.0)],
                    &[(ThreadState::Spin, &waiting, 40.0)],
                ],
            ),
            3,
            10,
            USUAL,
            3 * trial + 1,
        );
        let comparison = compared(&a, &b);
        let last: Vec<_> = comparison.paths.iter().filter(|path| path.connections == 256).collect();
        let Some(first) = last
            .first()
            .filter(|path| path.path.last().is_some_and(|leaf| leaf == "latch"))
        else {
            continue;
        };
        found += u32::from(first.course == Course::ScalesWorse && first.state == PathAccount::Spinning);
        let holds = |estimate: scaleprof_bundle::Estimate, truth: f64| {
            u32::from(estimate.low.expect("a limit") <= truth && truth <= estimate.high.expect("a limit"))
        };
        held += holds(first.change, 30e-6);
        beyond_held += holds(first.beyond_base.expect("a base rung"), 30e-6);
        others += comparison.paths.len() - 1;
    }
    println!("found {found}, held {held}, {beyond_held} of {trials}; {others} others");
    let least = 0.95 - spread(3.0, 0.95, trials);
    assert!(u64::from(found) * 20 >= trials * 19, "{found}");
    for held in [held, beyond_held] {
        assert!(f64::from(held) / trials as f64 >= least, "{held}");
    }
    assert!(others as u64 * 6 <= trials, "{others}");
}

/// Three rungs whose latch costs so much at the last.
fn latched<'a>(work: &'a [(Vec<&'a str>, f64)], latch: &'a [&'a str], micros: f64) -> Vec<Rung<'a>> {
    [(16, 4.0), (64, 4.0), (256, micros)]
        .into_iter()
        .map(|(connections, micros)| {
            let usual = work.iter().filter(|(path, _)| path != latch);
            let mut costs: Vec<Cost<'a>> = usual
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
                .collect();
            costs.push((ThreadState::Spin, latch, micros));
            let all: f64 = costs.iter().map(|(_, _, micros)| micros).sum();
            (connections, 1.96e6 / all, costs)
        })
        .collect()
}

#[test]
fn intervals_hold_the_truth_with_two_three_and_five_measurements() {
    let work = work();
    let latch = ["start_thread", "do_command", "change", "latch"];
    let trials = trials(200);
    // The widest median half of an interval: twice what is found, 6.0, 4.3 and 3.2 µs.
    let all = [(2, 12e-6), (3, 8.6e-6), (5, 6.4e-6)];
    for (measurements, widest) in if is_deep() { &all[..] } else { &all[..1] } {
        let (measurements, widest) = (*measurements, *widest);
        let (mut held, mut listed, mut rest_held) = (0u32, 0u32, 0u32);
        let mut halves = Vec::new();
        for trial in 0..trials {
            let seed = 1000 * measurements as u64 + 2 * trial;
            let a = run(&latched(&work, &latch, 10.0), measurements, 8, USUAL, seed);
            let b = run(&latched(&work, &latch, 70.0), measurements, 8, USUAL, seed + 1);
            let found = compared(&a, &b);
            let holds = |estimate: scaleprof_bundle::Estimate, truth: f64| {
                let (low, high) = estimate.low.zip(estimate.high).expect("limits");
                u32::from(low <= truth && truth <= high)
            };
            let mut last = found.paths.iter().filter(|path| path.connections == 256);
            if let Some(path) = last.find(|path| path.path == latch) {
                listed += 1;
                held += holds(path.change, 60e-6);
                halves.push(path.change.high.expect("a limit") - path.change.value);
            }
            // Nothing but the latch changed.
            rest_held += holds(found.rungs[2].unexplained.expect("a rest").not_listed, 0.0);
        }
        let share = f64::from(held) / f64::from(listed);
        let of_rest = f64::from(rest_held) / trials as f64;
        halves.sort_by(f64::total_cmp);
        let half = halves[halves.len() / 2];
        println!(
            "{measurements} measurements: {listed} of {trials} listed, {share:.3} held, {of_rest:.3} of the rest's, ±{half}"
        );
        assert!(
            u64::from(listed) * 20 >= trials * 19,
            "{measurements} measurements: {listed}"
        );
        // 95 % by design: neither too narrow nor, where there are enough trials to tell, too wide.
        let least = if is_deep() {
            0.92
        } else {
            0.95 - spread(3.0, 0.95, trials)
        };
        assert!(
            share >= least && (share <= 0.99 || !is_deep()),
            "{measurements} measurements: {share}"
        );
        assert!(half < widest, "{measurements} measurements: ±{half}");
        assert!(of_rest >= least, "{measurements} measurements: {of_rest}");
    }
}

#[test]
fn a_path_that_makes_a_transaction_a_fifth_dearer_is_found_and_so_is_a_branch_that_gets_a_fifth_dearer() {
    let work = work();
    let latch = ["start_thread", "do_command", "change", "latch"];
    // A third of the cost in ten leaves, none of which changed enough by itself.
    let dearer: Vec<(Vec<&str>, f64)> = work
        .iter()
        .map(|(path, micros)| (path.clone(), micros * if path[2] == "search" { 1.2 } else { 1.0 }))
        .collect();
    let many = Unrest {
        of_measurements: 0.01,
        of_paths: 0.01,
        samples_a_second: 1000.0,
    };
    let trials = trials(40);
    let (mut of_paths, mut of_branches) = (0u64, 0u64);
    for trial in 0..trials {
        let a = run(&latched(&work, &latch, 4.0), 3, 10, USUAL, 2 * trial + 7000);
        let b = run(&latched(&work, &latch, 24.0), 3, 10, USUAL, 2 * trial + 7001);
        let is_it = |found: &Comparison, innermost: &str, connections: u32| {
            let mut paths = found.paths.iter();
            paths.any(|path| path.connections == connections && path.path.last().is_some_and(|leaf| leaf == innermost))
        };
        of_paths += u64::from(is_it(&compared(&a, &b), "latch", 256));
        let a = run(&rungs(&work, [&[], &[]]), 4, 10, many, 2 * trial + 8000);
        let b = run(&rungs(&dearer, [&[], &[]]), 4, 10, many, 2 * trial + 8001);
        let found = compared(&a, &b);
        of_branches += u64::from(is_it(&found, "search", 16) || is_it(&found, "search", 256));
    }
    println!("{of_paths} paths, {of_branches} branches of {trials}");
    for found in [of_paths, of_branches] {
        assert!(found * 20 >= trials * 19, "{found}");
    }
}

#[test]
fn figures_are_those_of_the_reports_and_states_add_up_to_the_time_of_a_transaction() {
    let work = work();
    let latch = ["start_thread", "do_command", "change", "latch"];
    let (mut a, b) = (
        run(&latched(&work, &latch, 4.0), 3, 10, USUAL, 31),
        run(&latched(&work, &latch, 30.0), 3, 10, USUAL, 32),
    );
    // One measurement of A is much shorter than the others, so that a mean of measurements is
    // something else than the whole.
    a.seconds.retain(|row| row.measurement != 2 || row.second < 5);
    let found = compared(&a, &b);
    for (side, bundle) in [&a, &b].into_iter().enumerate() {
        let report = scaleprof_analysis::summarise(bundle);
        assert_eq!((found.rungs.len(), report.rungs.len()), (3, 3));
        let of = |pair: scaleprof_analysis::comparison::Pair| [pair.a, pair.b][side];
        for (rung, reported) in found.rungs.iter().zip(&report.rungs) {
            assert_eq!(of(rung.throughput), Some(reported.throughput.value));
            let law = reported.iron_law.as_ref().expect("an iron law");
            assert_eq!(of(rung.cpu_seconds_per_txn), Some(law.cpu_seconds_per_txn));
            let ledger = reported.ledger.as_ref().expect("a ledger");
            let states: f64 = rung.states.iter().filter_map(|state| of(state.seconds_per_txn)).sum();
            let whole = ledger.connections_over_throughput.expect("N/X");
            assert!((states / whole - 1.0).abs() < 1e-3, "{states} of {whole}");
        }
    }
}

#[test]
fn what_is_listed_and_what_is_not_add_up_to_the_whole_change() {
    let work = work();
    let latch = ["start_thread", "do_command", "change", "latch"];
    let a = run(&latched(&work, &latch, 4.0), 3, 10, USUAL, 41);
    let b = run(&latched(&work, &latch, 40.0), 3, 10, USUAL, 42);
    let found = compared(&a, &b);
    for rung in &found.rungs {
        let told = rung.unexplained.expect("a rest");
        assert!((told.uniform + told.listed + told.not_listed.value - told.total).abs() < 1e-12);
        let here = found.paths.iter().filter(|path| path.connections == rung.connections);
        let listed: f64 = here.map(|path| path.change.value).sum();
        assert!((told.listed - listed).abs() < 1e-12);
        let cpu = rung.states.iter().filter(|state| state.state.is_on_cpu());
        let whole: f64 = cpu.map(|state| state.change.value).sum();
        assert!((told.total - whole).abs() < 1e-9, "{} {whole}", told.total);
    }
    let last = found.rungs[2].unexplained.expect("a rest");
    assert!(last.listed > 30e-6 && last.not_listed.value.abs() < 6e-6, "{last:?}");
}

#[test]
fn a_path_that_changed_at_two_rungs_is_one_path_in_the_sentence() {
    let work = work();
    let sending = ["start_thread", "do_command", "commit", "send"];
    let at_both = |micros: f64| {
        rungs(
            &work,
            [
                &[(ThreadState::Cpu, &sending, micros)],
                &[(ThreadState::Cpu, &sending, micros)],
            ],
        )
    };
    let (before, after) = (at_both(2.0), at_both(40.0));
    let found = compared(&run(&before, 3, 10, USUAL, 5), &run(&after, 3, 10, USUAL, 6));
    let sends = found.paths.iter().filter(|path| path.path == sending);
    assert_eq!((sends.count(), found.paths.len()), (2, 2), "{:?}", found.paths);
    assert!(
        found.sentence.contains("one call path changed significantly"),
        "{}",
        found.sentence
    );
}

#[test]
fn a_run_beside_itself_is_said_to_be_the_same() {
    let work = work();
    let a = run(&rungs(&work, [&[], &[]]), 2, 6, USUAL, 1);
    let found = compared(&a, &a.clone());
    assert!(
        found.sentence.contains("A and B are the same run"),
        "{}",
        found.sentence
    );
    assert!(found.paths.is_empty());
    let other = compared(&a, &run(&rungs(&work, [&[], &[]]), 2, 6, USUAL, 2));
    assert!(!other.sentence.contains("same run"), "{}", other.sentence);
}

#[test]
fn a_path_that_is_dearer_at_every_rung_is_slower_everywhere_and_its_opposite_faster() {
    let work = work();
    let sending = ["start_thread", "do_command", "commit", "send"];
    let at_both = |micros: f64| {
        rungs(
            &work,
            [
                &[(ThreadState::Cpu, &sending, micros)],
                &[(ThreadState::Cpu, &sending, micros)],
            ],
        )
    };
    let (before, after) = (at_both(2.0), at_both(16.0));
    let (a, b) = (run(&before, 4, 12, USUAL, 5), run(&after, 4, 12, USUAL, 6));
    let courses = |a: &Bundle, b: &Bundle| -> Vec<(u32, Course)> {
        let paths = compared(a, b).paths;
        let sends = paths
            .iter()
            .filter(|path| path.path.last().is_some_and(|leaf| leaf == "send"));
        sends.map(|path| (path.connections, path.course)).collect()
    };
    assert_eq!(courses(&a, &b), [(16, Course::Slower), (256, Course::SlowerEverywhere)]);
    assert_eq!(courses(&b, &a), [(16, Course::Faster), (256, Course::FasterEverywhere)]);
}

#[test]
fn paths_that_only_one_run_has_are_new_or_gone() {
    let work = work();
    let added = ["start_thread", "do_command", "change", "check_constraints", "look_up"];
    let a = run(&rungs(&work, [&[], &[]]), 3, 10, USUAL, 8);
    let b = run(
        &rungs(&work, [&[], &[(ThreadState::Cpu, &added, 25.0)]]),
        3,
        10,
        USUAL,
        9,
    );
    let one = |a: &Bundle, b: &Bundle| {
        let found = compared(a, b);
        let change = found
            .paths
            .into_iter()
            .find(|path| path.path.iter().any(|f| f == "check_constraints"));
        let change = change.expect("the path that only one has");
        (
            change.course,
            change.seconds_per_txn.a.unwrap_or(1.0),
            change.seconds_per_txn.b.unwrap_or(1.0),
        )
    };
    let (course, before, after) = one(&a, &b);
    assert_eq!((course, before), (Course::New, 0.0));
    assert!((20e-6..30e-6).contains(&after), "{after}");
    let (course, _, after) = one(&b, &a);
    assert_eq!((course, after), (Course::Gone, 0.0));
}

#[test]
fn while_the_cpus_idle_a_longer_wait_is_found_and_else_it_is_not() {
    let work = work();
    let waiting = ["start_thread", "do_command", "commit", "wait_for_log"];
    let compared_at = |rate: f64| {
        let rungs = |wait: f64| -> Vec<Rung<'_>> {
            let costs = work
                .iter()
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros));
            vec![(
                64,
                rate,
                costs.chain([(ThreadState::Lock, &waiting[..], wait)]).collect(),
            )]
        };
        compared(
            &run(&rungs(500.0), 3, 10, USUAL, 21),
            &run(&rungs(1500.0), 3, 10, USUAL, 22),
        )
    };
    // 40 % of two CPUs.
    let idle = compared_at(8_000.0);
    assert!(!idle.rungs[0].busy && idle.base_rung.is_none());
    let [path] = &idle.paths[..] else {
        panic!("{:?}", idle.paths)
    };
    assert_eq!(
        (path.state, path.path.last().map(String::as_str)),
        (PathAccount::Waiting(ThreadState::Lock), Some("wait_for_log"))
    );
    let (low, high) = (path.change.low.expect("a limit"), path.change.high.expect("a limit"));
    assert!((low..=high).contains(&1e-3), "{:?}", path.change);
    // Of 64 connections over 8 000/s.
    assert!((0.10..0.15).contains(&path.share), "{}", path.share);
    let busy = compared_at(19_600.0);
    assert!(busy.rungs[0].busy && busy.paths.is_empty(), "{:?}", busy.paths);
}

#[test]
fn a_slower_machine_is_said_once_and_no_path_is_blamed() {
    let work = work();
    let slower: Vec<(Vec<&str>, f64)> = work.iter().map(|(path, micros)| (path.clone(), micros * 1.3)).collect();
    let many = Unrest {
        samples_a_second: 4000.0,
        ..USUAL
    };
    let a = run(&rungs(&work, [&[], &[]]), 3, 10, many, 1);
    let b = run(&rungs(&slower, [&[], &[]]), 3, 10, many, 2);
    let found = compared(&a, &b);
    assert!(found.paths.is_empty(), "{:?}", found.paths);
    for rung in &found.rungs {
        assert!((1.2..1.4).contains(&rung.uniform_slowdown), "{}", rung.uniform_slowdown);
        let ratio = rung.throughput_ratio.expect("a ratio");
        assert!(ratio.high.expect("a limit") < 0.95, "{ratio:?}");
        assert!(rung.throughput_p.expect("a probability") <= 0.05);
    }
    assert!(
        found.sentence.contains("16") && found.sentence.contains("256 connections"),
        "{}",
        found.sentence
    );
}

#[test]
fn what_paths_count_adds_up_to_no_more_than_the_whole_change() {
    let work = work();
    let latch = ["start_thread", "do_command", "change", "latch"];
    let log = ["start_thread", "do_command", "change", "log"];
    let a = run(&rungs(&work, [&[], &[]]), 3, 10, USUAL, 11);
    let b = run(
        &rungs(
            &work,
            [&[], &[(ThreadState::Cpu, &latch, 30.0), (ThreadState::Cpu, &log, 25.0)]],
        ),
        3,
        10,
        USUAL,
        12,
    );
    let found = compared(&a, &b);
    let cost = |pair: scaleprof_analysis::comparison::Pair| pair.b.unwrap_or(0.0) - pair.a.unwrap_or(0.0);
    let told: f64 = found
        .paths
        .iter()
        .filter(|path| path.connections == 256)
        .map(|path| path.change.value)
        .sum();
    let whole = cost(found.rungs[1].cpu_seconds_per_txn);
    assert!((0.8 * whole..1.15 * whole).contains(&told), "{told} of {whole}");
}

#[test]
fn one_measurement_on_a_side_is_told_without_an_interval_and_said_so() {
    let work = work();
    let latch = ["start_thread", "do_command", "change", "latch"];
    let a = run(&rungs(&work, [&[], &[]]), 1, 10, USUAL, 11);
    let b = run(
        &rungs(&work, [&[], &[(ThreadState::Cpu, &latch, 40.0)]]),
        3,
        10,
        USUAL,
        12,
    );
    let found = compared(&a, &b);
    assert!(
        found.sentence.contains("Throughput change unknown"),
        "{}",
        found.sentence
    );
    let last = &found.rungs[1];
    assert_eq!(
        (last.throughput_p, last.throughput_ratio.and_then(|ratio| ratio.low)),
        (None, None)
    );
    assert!(
        last.notes
            .iter()
            .any(|note| note.contains("has one measurement, so significance is unknown")),
        "{:?}",
        last.notes
    );
    let first = found
        .paths
        .iter()
        .find(|path| path.connections == 256)
        .expect("the largest change");
    assert_eq!(
        (first.path.last().map(String::as_str), first.p, first.change.low),
        (Some("latch"), None, None)
    );
}

#[test]
fn of_one_recording_it_is_said_to_import_more_and_not_to_run_more() {
    let work = work();
    let mut recorded = run(&rungs(&work, [&[], &[]]), 1, 10, USUAL, 11);
    let options = &mut recorded.manifest.workload.options;
    options.push((IMPORTED.to_owned(), "perf.data, cpu-clock".to_owned()));
    let found = compared(&recorded, &recorded);
    let notes = found.rungs.iter().flat_map(|rung| &rung.notes);
    let (more, other): (Vec<&String>, Vec<&String>) = notes.partition(|note| note.contains("import three of each"));
    assert_eq!(more.len(), 2 * found.rungs.len(), "{more:?} {other:?}");
    assert!(!other.iter().any(|note| note.contains("--repeats")), "{other:?}");
}

#[test]
fn what_is_not_alike_is_refused_or_named() {
    let work = work();
    let a = run(&rungs(&work, [&[], &[]]), 2, 8, USUAL, 1);
    let mut b = run(&rungs(&work, [&[], &[]]), 2, 8, USUAL, 2);
    b.manifest.machine.cpu_model = "another CPU".into();
    b.manifest.server.version = "5.7.44".into();
    let row = |name: &str, value: &str| SettingRow::new(name, value);
    let mut with_settings = a.clone();
    with_settings.settings = vec![
        row("innodb_sync_spin_loops", "30"),
        row("version", "1"),
        row("gone", "1"),
        row("innodb_pct", "75"),
    ];
    b.settings = vec![
        row("innodb_sync_spin_loops", "5"),
        row("version", "2"),
        row("innodb_pct", "75.0000"),
    ];
    let found = compared(&with_settings, &b);
    let named: Vec<(&str, ConditionEffect)> = found
        .differences
        .iter()
        .map(|one| (one.what.as_str(), one.effect))
        .collect();
    assert_eq!(
        named,
        [
            ("CPU model", ConditionEffect::Confounds),
            ("version", ConditionEffect::Intended)
        ]
    );
    assert!(
        found.warnings.iter().any(|warning| warning.contains("CPU model")),
        "{:?}",
        found.warnings
    );
    let settings: Vec<(&str, Option<&str>)> = found
        .settings
        .iter()
        .map(|one| (one.name.as_str(), one.b.as_deref()))
        .collect();
    assert_eq!(settings, [("gone", None), ("innodb_sync_spin_loops", Some("5"))]);

    b.manifest.workload.rows = Some(1);
    let refused = compare(&a, &b, Choice::default()).expect_err("another load");
    assert!(matches!(&refused, Refusal::Unlike(unlike) if unlike[0].what == "rows per table"));
    assert!(refused.to_string().contains("--any-workload"), "{refused}");
    let forced = compare(
        &a,
        &b,
        Choice {
            force: true,
            ..Choice::default()
        },
    )
    .expect("all the same");
    assert!(forced.warnings[0].contains("rows per table"), "{:?}", forced.warnings);

    b.manifest.workload.rows = a.manifest.workload.rows;
    let wanted = compare(
        &a,
        &b,
        Choice {
            connections: Some(99),
            ..Choice::default()
        },
    )
    .expect_err("no such rung");
    assert!(wanted.to_string().contains("both runs have 16, 256"), "{wanted}");
    for rung in &mut b.measurements {
        rung.connections += 1;
    }
    let apart = compare(&a, &b, Choice::default()).expect_err("no common rung");
    assert!(apart.to_string().contains("16, 256 and 17, 257"), "{apart}");
    b.manifest.workload.name = scaleprof_vocabulary::WorkloadName::Watch;
    assert_eq!(compare(&a, &b, Choice::default()), Err(Refusal::OneWatched));
}
