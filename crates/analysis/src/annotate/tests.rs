use super::*;
use crate::instruction_costs::tests::bundle;
use crate::made_up_sample::sample;
use crate::rung_instructions::by_rung;
use scaleprof_bundle::{BranchRow, SampleRow};
use scaleprof_vocabulary::{BranchKind, ThreadState};

/// `walk` from 0x2000 on: four instructions, the last of which goes back to the second.
fn rows() -> Vec<InstructionRow> {
    let row = |address: i64, length: i32, text: &str| InstructionRow {
        module: "mysqld".into(),
        build_id: Some("ab12".into()),
        function: "walk".into(),
        function_start: 0x2000,
        address,
        length,
        text: text.into(),
        ..InstructionRow::default()
    };
    vec![
        row(0x2000, 0x10, "push rbp"),
        InstructionRow {
            inlined: Some("look > peek".into()),
            ..row(0x2010, 8, "mov rax, [rdi]")
        },
        InstructionRow {
            branch: Some(BranchKind::Conditional),
            target: Some(0x2010),
            ..row(0x2018, 2, "jne 0x2010")
        },
        InstructionRow {
            branch: Some(BranchKind::Call),
            target: Some(0x2000),
            ..row(0x201a, 5, "call walk")
        },
        InstructionRow {
            function: "other".into(),
            function_start: 0x3000,
            ..row(0x3000, 1, "ret")
        },
    ]
}

/// 8 and 64 connections; a second instruction is seen at 64 only.
fn rungs() -> Vec<RungInstructions> {
    let mut bundle = bundle();
    let more: Vec<SampleRow> = (0..20)
        .map(|second| SampleRow {
            measurement: 1,
            ..sample(second, ThreadState::Cpu, 8, 20.0)
        })
        .collect();
    bundle.samples.extend(more);
    by_rung(&bundle)
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-9
}

#[test]
fn instructions_carry_their_cost_at_both_rungs_and_its_growth() {
    let rungs = rungs();
    let compared = choose(&rungs, None, None).unwrap();
    assert_eq!(
        (
            compared.base.and_then(|rung| rung.connections),
            compared.rung.connections
        ),
        (Some(8), Some(64))
    );
    let rows = rows();
    let functions = catalogue(&compared, &rows);
    let Selection::One(walk) = select(&functions, "walk") else {
        panic!("{functions:?}");
    };
    let found = annotate(walk, &rows, Some(&compared)).unwrap();
    let costs: Vec<(i64, Option<f64>, Option<f64>)> = found
        .instructions
        .iter()
        .map(|one| {
            let value = |cost: Option<InstructionCost>| cost.map(|cost| (cost.seconds_per_txn.value * 1e7).round());
            (one.address, value(one.base), value(one.compared))
        })
        .collect();
    // In tenths of a microsecond: 200 µs at 8; at 64 the 400 µs of the ledger are shared by both.
    assert_eq!(
        costs,
        [
            (0x2000, None, None),
            (0x2010, Some(2000.0), Some(2000.0)),
            (0x2018, None, Some(2000.0)),
            (0x201a, None, None)
        ]
    );
    let growths: Vec<Option<f64>> = found
        .instructions
        .iter()
        .map(|one| one.growth.map(|growth| (growth.value * 1e7).round()))
        .collect();
    assert_eq!(growths, [None, Some(0.0), Some(2000.0), None]);
    let (base, last) = (found.base.unwrap(), found.compared.unwrap());
    assert!(close(base.seconds_per_txn.unwrap().value, 2e-4) && close(last.seconds_per_txn.unwrap().value, 4e-4));
    assert!(close(found.growth.unwrap().value, 2e-4) && close(last.all_seconds_per_txn.unwrap(), 4e-4));
    assert_eq!((base.samples, last.samples), (20, 40));
    let hottest = "50 % of the function's time is at 2018; above it is `mov rax, [rdi]`";
    assert_eq!(found.notes, [SKID, hottest]);
}

#[test]
fn targets_of_branches_are_marked_and_those_of_calls_are_not() {
    let rows = rows();
    let function = FunctionCost::unseen(("mysqld", Some("ab12"), "walk"));
    let found = annotate(&function, &rows, None).unwrap();
    let targets: Vec<i64> = found
        .instructions
        .iter()
        .filter(|one| one.is_branch_target)
        .map(|one| one.address)
        .collect();
    assert_eq!(targets, [0x2010]);
    assert_eq!(found.instructions[1].inlined, ["look".into(), "peek".into()]);
    assert!(found.notes.is_empty() && found.compared.is_none() && found.growth.is_none());
}

/// A jump of `walk`, of the first measurement at 64 connections.
fn jump(from: i64, to: i64, taken: i64, mispredicted: Option<i64>) -> BranchRow {
    BranchRow {
        measurement: 1,
        from_module: "mysqld".into(),
        from_build_id: Some("ab12".into()),
        from_address: from,
        to_module: "mysqld".into(),
        to_address: to,
        taken,
        with_prediction: mispredicted.map_or(0, |_| taken),
        mispredicted,
        ..BranchRow::default()
    }
}

#[test]
fn jumps_are_those_of_the_instruction_in_the_measurements_of_the_rung_that_is_looked_at() {
    let bundle = bundle();
    let rungs = rungs();
    let compared = choose(&rungs, None, None).unwrap();
    let rows = rows();
    let functions = catalogue(&compared, &rows);
    let mut found = annotate(&functions[0], &rows, Some(&compared)).unwrap();
    let of_other_measurement = BranchRow {
        measurement: 0,
        ..jump(0x2018, 0x2010, 1000, None)
    };
    let of_other_build = BranchRow {
        from_build_id: None,
        ..jump(0x2018, 0x2010, 1000, None)
    };
    let jumps = [
        jump(0x2018, 0x2010, 30, Some(3)),
        of_other_measurement,
        of_other_build,
        jump(0x201a, 0x2000, 1, None),
        jump(0x201a, 0x3000, 5, Some(0)),
        jump(0x201a, 0x2000, 2, None),
        jump(0x3000, 0x2000, 9, None),
    ];
    found.add_jumps(&bundle.measurements, &jumps);
    let jumping = found
        .instructions
        .iter()
        .filter_map(|one| Some((one.address, one.branch_stats.as_ref()?)));
    let taken: Vec<(i64, i64, Option<f64>)> = jumping
        .map(|(address, jumps)| (address, jumps.taken, jumps.mispredicted_share()))
        .collect();
    assert_eq!(taken, [(0x2018, 30, Some(0.1)), (0x201a, 8, Some(0.0))]);
    let targets = &found.instructions[3].branch_stats.as_ref().unwrap().targets;
    let targets: Vec<(i64, i64, Option<i64>)> = targets
        .iter()
        .map(|one| (one.address, one.taken, one.mispredicted))
        .collect();
    assert_eq!(targets, [(0x3000, 5, Some(0)), (0x2000, 3, None)], "most often first");
    assert!(
        found
            .notes
            .last()
            .is_some_and(|note| note.contains("for proportions only"))
    );

    let mut unmeasured = annotate(&functions[0], &rows, None).unwrap();
    unmeasured.add_jumps(&bundle.measurements, &jumps);
    assert!(unmeasured.notes.is_empty(), "no rung is looked at");
}

/// Somebody else may have written the bundle.
#[test]
fn counts_of_jumps_that_are_too_large_to_add_end_at_the_largest_number() {
    let bundle = bundle();
    let rungs = rungs();
    let compared = choose(&rungs, None, None).unwrap();
    let rows = rows();
    let functions = catalogue(&compared, &rows);
    let mut found = annotate(&functions[0], &rows, Some(&compared)).unwrap();
    let largest = jump(0x2018, 0x2010, i64::MAX, Some(i64::MAX));
    let least = jump(0x2018, 0x2000, i64::MIN, None);
    let jumps = [largest.clone(), largest.clone(), least, largest];
    found.add_jumps(&bundle.measurements, &jumps);
    let jumping = found
        .instructions
        .iter()
        .find_map(|one| one.branch_stats.as_ref())
        .unwrap();
    let targets: Vec<(i64, i64)> = jumping.targets.iter().map(|one| (one.address, one.taken)).collect();
    assert_eq!(targets, [(0x2010, i64::MAX), (0x2000, i64::MIN)]);
    assert_eq!(
        (jumping.taken, jumping.with_prediction, jumping.mispredicted),
        (i64::MAX - 1, i64::MAX, Some(i64::MAX))
    );
}

#[test]
fn samples_beside_the_instructions_are_told() {
    let rungs = rungs();
    let compared = choose(&rungs, None, None).unwrap();
    let mut rows = rows();
    rows.retain(|row| row.address != 0x2018);
    let functions = catalogue(&compared, &rows);
    let found = annotate(&functions[0], &rows, Some(&compared)).unwrap();
    assert!(
        close(found.unmatched_seconds_per_txn, 2e-4) && found.notes.len() == 3,
        "{found:?}"
    );
}

#[test]
fn a_build_of_another_file_gives_no_listing() {
    let rungs = rungs();
    let compared = choose(&rungs, None, None).unwrap();
    let mut rows = rows();
    for row in &mut rows {
        row.build_id = Some("cd34".into());
    }
    let functions = catalogue(&compared, &rows);
    assert_eq!(functions[0].function, "walk");
    assert!(!functions[0].has_instructions && annotate(&functions[0], &rows, Some(&compared)).is_none());
}

#[test]
fn rungs_are_taken_as_named_and_unknown_ones_refused_with_those_there_are() {
    let rungs = rungs();
    let found = choose(&rungs, Some(64), Some(8)).unwrap();
    assert_eq!(
        (found.base.and_then(|rung| rung.connections), found.rung.connections),
        (Some(64), Some(8))
    );
    let only = choose(&rungs[..1], None, None).unwrap();
    assert!(only.base.is_none() && only.rung.connections == Some(8));
    let error = choose(&rungs, None, Some(7)).unwrap_err();
    assert_eq!(
        error,
        "the bundle has no rung of 7 connections with samples; it has 8, 64"
    );
    assert!(choose(&[], None, None).is_err());
}

#[test]
fn the_client_s_own_limit_is_no_rung_to_look_at_unless_it_is_named() {
    let mut rungs = rungs();
    rungs[1].client_limited = true;
    let found = choose(&rungs, None, None).unwrap();
    assert_eq!(
        (found.base.and_then(|rung| rung.connections), found.rung.connections),
        (None, Some(8))
    );
    assert_eq!(choose(&rungs, None, Some(64)).unwrap().rung.connections, Some(64));
}

fn named(functions: &[&str]) -> Vec<FunctionCost> {
    functions
        .iter()
        .map(|function| FunctionCost::unseen(("mysqld", None, function)))
        .collect()
}

#[test]
fn the_whole_name_wins_over_a_part_and_a_part_must_be_of_one_only() {
    let functions = named(&[
        "buf_page_get_gen",
        "buf_page_get",
        "THD::awake",
        "awake_all",
        "ut_delay",
    ]);
    let one = |wanted: &str| match select(&functions, wanted) {
        Selection::One(function) => function.function.clone(),
        other => format!("{other:?}"),
    };
    assert_eq!(one("buf_page_get"), "buf_page_get");
    assert_eq!(one("awake"), "THD::awake");
    assert_eq!(one("delay"), "ut_delay");
    assert_eq!(one("mysqld!buf_page_get"), "buf_page_get");
    let Selection::Several(several) = select(&functions, "page_get") else {
        panic!("two hold it");
    };
    assert_eq!(several.len(), 2);
    assert_eq!(select(&functions, "nothing_like_it"), Selection::Unknown);
}

#[test]
fn a_function_that_was_built_in_leads_to_those_that_hold_it() {
    let rungs = rungs();
    let compared = choose(&rungs, None, None).unwrap();
    // A sample says that `peek` is in `walk`, and the instructions that `look` is.
    let mut functions = catalogue(&compared, &rows());
    assert_eq!(Vec::from_iter(&functions[0].inlined), ["look", "peek"]);
    functions[0].inlined.remove("look");
    assert_eq!(select(&functions, "look"), Selection::Unknown);
    let Selection::BuiltInto(holders) = select(&functions, "peek") else {
        panic!("{functions:?}");
    };
    assert_eq!(holders[0].function, "walk");
}

#[test]
fn every_rung_has_its_costs_beside_the_machine_code_and_they_are_those_of_two_rungs_laid_side_by_side() {
    let rungs = rungs();
    let rows = rows();
    let all = every_rung(&rungs, &rows).unwrap();
    let connections: Vec<Option<u32>> = all.rungs.iter().map(|(connections, _)| *connections).collect();
    assert_eq!(connections, [Some(8), Some(64)]);
    assert_eq!((all.base, all.shown, all.per), (Some(0), 1, Per::Transaction));
    let names: Vec<&str> = all.functions.iter().map(|one| one.function.as_str()).collect();
    assert_eq!(names, ["walk", "other"], "those that cost most first");
    let walk = &all.functions[0];
    let compared = choose(&rungs, None, None).unwrap();
    let functions = catalogue(&compared, &rows);
    let Selection::One(one) = select(&functions, "walk") else {
        panic!("{functions:?}");
    };
    let listing = annotate(one, &rows, Some(&compared)).unwrap();
    assert_eq!(
        walk.costs,
        [listing.base.clone().unwrap(), listing.compared.clone().unwrap()]
    );
    assert_eq!(walk.instructions.len(), listing.instructions.len());
    for (here, there) in walk.instructions.iter().zip(&listing.instructions) {
        let at = |rung: usize| {
            here.costs
                .iter()
                .find(|(place, _)| *place == rung)
                .map(|(_, cost)| *cost)
        };
        assert_eq!((at(0), at(1)), (there.base, there.compared), "{:x}", there.address);
        assert_eq!(here.is_branch_target, there.is_branch_target);
    }
    assert!(
        close(all.covered, 1.0),
        "{}: every sample is in one of them",
        all.covered
    );
    assert!(every_rung(&[], &rows).is_none());
}
