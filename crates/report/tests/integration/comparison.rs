//! What changed between two runs, as it is printed.

use scaleprof_vocabulary::ThreadState;
use testing::planted;

use planted::{Cost, Rung, USUAL, run, work};
use scaleprof_analysis::comparison::{Choice, compare};
use scaleprof_bundle::{Bundle, SettingRow};
use scaleprof_report::text::Style;
use scaleprof_report::text::comparison::table;

/// A server whose latch costs so much at the second rung.
fn made(latch_micros: f64, repeats: i32, seed: u64) -> Bundle {
    let latch = ["start_thread", "do_command", "change", "latch"];
    let work = work();
    let rungs: Vec<Rung<'_>> = [(16, 4.0), (256, latch_micros)]
        .into_iter()
        .map(|(connections, latch_micros)| {
            let usual = work.iter().filter(|(path, _)| *path != latch);
            let mut costs: Vec<Cost<'_>> = usual
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
                .collect();
            costs.push((ThreadState::Spin, &latch, latch_micros));
            let all: f64 = costs.iter().map(|(_, _, micros)| micros).sum();
            (connections, 1.96e6 / all, costs)
        })
        .collect();
    run(&rungs, repeats, 10, USUAL, seed)
}

fn printed(a: &Bundle, b: &Bundle, width: Option<usize>) -> String {
    let found = compare(a, b, Choice::default()).expect("two runs that can be compared");
    table(&found, ["before", "after"], Style { colour: false, width })
}

#[test]
fn of_a_server_that_scales_worse() {
    let (a, mut b) = (made(10.0, 3, 1), made(40.0, 3, 2));
    b.manifest.server.version = "5.6.15".into();
    b.manifest.machine.kernel = "6.12".into();
    let mut a = a;
    a.settings = vec![
        SettingRow::new("innodb_sync_spin_loops", "30"),
        SettingRow::new("only_in_a", "1"),
    ];
    b.settings = vec![SettingRow::new("innodb_sync_spin_loops", "200")];
    insta::assert_snapshot!(printed(&a, &b, None));
}

#[test]
fn of_two_runs_of_the_same() {
    insta::assert_snapshot!(printed(&made(10.0, 3, 3), &made(10.0, 3, 4), None));
}

#[test]
fn with_too_few_measurements() {
    insta::assert_snapshot!(printed(&made(10.0, 1, 5), &made(40.0, 1, 6), None));
}
