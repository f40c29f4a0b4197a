//! Listings of machine code as they are printed.

use scaleprof_analysis::Per;
use scaleprof_analysis::annotate::{
    AnnotatedInstruction, Annotation, Compared, FunctionCost, InstructionCost, JumpTarget, Jumps, RungCost, SKID,
};
use scaleprof_analysis::instruction_costs::InstructionCosts;
use scaleprof_analysis::rung_instructions::RungInstructions;
use scaleprof_bundle::Estimate;
use scaleprof_report::text::{Style, annotation, candidates, hot_functions};
use scaleprof_vocabulary::BranchKind;

fn estimate(value: f64, half: f64) -> Estimate {
    Estimate {
        value,
        low: Some(value - half),
        high: Some(value + half),
    }
}

fn instruction(address: i64, text: &str, line: i32) -> AnnotatedInstruction {
    AnnotatedInstruction {
        address,
        length: 3,
        text: text.into(),
        file: Some("ut/ut0ut.cc".into()),
        line: Some(line),
        inlined: vec![],
        branch: None,
        target: None,
        is_branch_target: false,
        in_spin_loop: false,
        access: None,
        data_address: None,
        data_size: None,
        locked: false,
        base: None,
        compared: None,
        growth: None,
        branch_stats: None,
    }
}

fn cost(seconds: f64, kernel: f64) -> Option<InstructionCost> {
    Some(InstructionCost {
        seconds_per_txn: estimate(seconds, seconds / 5.0),
        kernel_seconds_per_txn: kernel,
        samples: 7,
    })
}

/// A loop that waits, of which one instruction takes nearly all time.
fn delay() -> Annotation {
    let rung = |connections, seconds| RungCost {
        connections: Some(connections),
        seconds_per_txn: Some(estimate(seconds, seconds / 10.0)),
        kernel_seconds_per_txn: 0.0,
        all_seconds_per_txn: Some(1e-4),
        samples: 123,
        all_samples: 3210,
        least_seen_seconds_per_txn: Some(0.093e-6),
    };
    Annotation {
        per: Per::Transaction,
        function: "ut_delay".into(),
        module: "mysqld".into(),
        build_id: Some("ab12".into()),
        base: Some(rung(64, 18.5e-6)),
        compared: Some(rung(512, 44.7e-6)),
        growth: Some(estimate(26.2e-6, 9e-6)),
        instructions: vec![
            instruction(0xa64ef6, "xor edx, edx", 408),
            AnnotatedInstruction {
                in_spin_loop: true,
                is_branch_target: true,
                inlined: vec!["relax".into(), "pause_once".into()],
                ..instruction(0xa64efb, "pause", 410)
            },
            AnnotatedInstruction {
                in_spin_loop: true,
                base: cost(18.4e-6, 0.0),
                compared: cost(44.6e-6, 0.2e-6),
                growth: Some(estimate(26.2e-6, 9e-6)),
                ..instruction(0xa64efd, "add rdx, 1", 408)
            },
            AnnotatedInstruction {
                base: cost(0.1e-6, 0.0),
                compared: cost(0.08e-6, 0.0),
                growth: Some(estimate(-0.02e-6, 0.1e-6)),
                ..instruction(0xa64f0e, "cmp qword ptr [ut_always_false], 0", 408)
            },
        ],
        unmatched_seconds_per_txn: 0.0,
        notes: vec![SKID.into()],
    }
}

#[test]
fn a_listing_at_two_rungs() {
    insta::assert_snapshot!(annotation(&delay(), Style::plain()));
}

#[test]
fn a_listing_without_measurements() {
    let mut found = delay();
    (found.base, found.compared, found.growth, found.build_id) = (None, None, None, None);
    found.notes.clear();
    for one in &mut found.instructions {
        (one.base, one.compared, one.growth, one.file, one.line) = (None, None, None, None, None);
    }
    insta::assert_snapshot!(annotation(&found, Style::plain()));
}

/// The same with the jumps that were recorded: of a loop, and of a call through a register to two functions.
fn delay_with_jumps() -> Annotation {
    let target = |function: &str, taken| JumpTarget {
        module: "mysqld".into(),
        function: Some(function.into()),
        address: 0xa60000,
        taken,
        mispredicted: None,
    };
    let mut found = delay();
    found.instructions.push(AnnotatedInstruction {
        branch: Some(BranchKind::Conditional),
        target: Some(0xa64efb),
        branch_stats: Some(Jumps {
            taken: 12_345,
            with_prediction: 12_000,
            mispredicted: Some(600),
            targets: vec![target("ut_delay", 12_345)],
            ..Jumps::default()
        }),
        ..instruction(0xa64f14, "jb 0xa64efb", 408)
    });
    found.instructions.push(AnnotatedInstruction {
        branch: Some(BranchKind::Call),
        branch_stats: Some(Jumps {
            taken: 8,
            targets: vec![target("ha_innobase::index_read", 6), target("ha_innobase::rnd_next", 2)],
            ..Jumps::default()
        }),
        ..instruction(0xa64f1a, "call rax", 411)
    });
    found
}

#[test]
fn jumps_stand_with_how_often_they_were_taken_and_predicted_wrongly() {
    insta::assert_snapshot!(annotation(&delay_with_jumps(), Style::plain()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [20, 60, 80] {
        let style = Style {
            colour: false,
            width: Some(width),
        };
        for found in [delay(), delay_with_jumps()] {
            let text = annotation(&found, style);
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{width}:\n{text}"
            );
        }
    }
}

#[test]
fn the_hot_line_stands_out_in_colour_and_colours_change_no_letter() {
    let style = Style {
        colour: true,
        width: None,
    };
    let text = annotation(&delay(), style);
    let hot = text
        .lines()
        .find(|line| line.contains("add rdx, 1"))
        .expect("it is listed");
    assert!(hot.starts_with("\x1b["), "{hot:?}");
    let cold = text
        .lines()
        .find(|line| line.contains("xor edx, edx"))
        .expect("it is listed");
    assert!(!cold.contains('\x1b'), "{cold:?}");
    let mut plain = text;
    for code in ["0", "1", "2", "33"] {
        plain = plain.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(plain, annotation(&delay(), Style::plain()));
}

fn functions() -> Vec<FunctionCost> {
    let function = |name: &str, base: f64, compared: f64| FunctionCost {
        base: (base > 0.0).then(|| estimate(base, base / 5.0)),
        compared: Some(estimate(compared, compared / 5.0)),
        growth: Some(estimate(compared - base, compared / 3.0)),
        samples: 9,
        ..FunctionCost::unseen(("mysqld", None, name))
    };
    vec![
        FunctionCost {
            waiting_share: 1.0,
            ..function("ut_delay", 18.5e-6, 44.7e-6)
        },
        function("rec_get_offsets_func", 1.44e-6, 1.48e-6),
        function("mysql_update", 0.0, 0.25e-6),
    ]
}

#[test]
fn the_list_of_functions() {
    let rung = |connections| RungInstructions {
        connections: Some(connections),
        client_limited: false,
        costs: InstructionCosts::default(),
    };
    let (base, last) = (rung(64), rung(512));
    let compared = Compared {
        base: Some(&base),
        rung: &last,
    };
    let functions = functions();
    let all = hot_functions(&compared, &functions, 2, Style::plain());
    let alone = Compared {
        base: None,
        rung: &last,
    };
    let one = hot_functions(&alone, &functions, 9, Style::plain());
    let references: Vec<&FunctionCost> = functions.iter().collect();
    insta::assert_snapshot!(format!("{all}\n---\n\n{one}\n---\n\n{}", candidates(&references, 2)));
}

#[test]
fn what_no_thread_was_seen_in_is_said_to_be_small_and_not_nothing() {
    let mut found = delay();
    if let Some(base) = found.base.as_mut() {
        base.seconds_per_txn = None;
        base.samples = 0;
    }
    found.growth = Some(Estimate {
        value: 44.7e-6,
        low: Some(40.2e-6),
        high: Some(49.2e-6),
    });
    let text = annotation(&found, Style::plain());
    let said = "at   64 connections not seen in 3 210 samples, below 93.0 ns of a transaction (95 % sure)";
    assert!(text.contains(said), "{text}");
    assert!(
        text.contains("empty: not seen, below 93.0 ns at 64 connections"),
        "{text}"
    );
}
