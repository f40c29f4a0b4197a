//! The hottest functions of a rung, where the truth is known.

#[allow(missing_docs, dead_code)]
use scaleprof_vocabulary::ThreadState;
use testing::planted;

use planted::{Cost, Rung, USUAL, run, work};
use scaleprof_analysis::hot_functions::{HotFunction, hot_functions};
use scaleprof_bundle::Samples;

fn found(most: usize) -> Vec<HotFunction> {
    let work = work();
    let waiting = ["start_thread", "do_command", "change", "spin_wait"];
    let rungs: Vec<Rung<'_>> = [(16, 5.0), (256, 60.0)]
        .into_iter()
        .map(|(connections, spinning)| {
            let mut costs: Vec<Cost<'_>> = work
                .iter()
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
                .collect();
            costs.push((ThreadState::Spin, &waiting, spinning));
            (connections, 1.96e6 / (100.0 + spinning), costs)
        })
        .collect();
    hot_functions(&run(&rungs, 3, 10, USUAL, 1), 256, Some(16), most)
}

#[test]
fn the_hottest_function_comes_first_with_its_share_at_both_rungs() {
    let hot = found(20);
    let first = &hot[0];
    assert_eq!((first.function.as_str(), first.waits), ("spin_wait", true));
    assert!((0.35..0.40).contains(&first.share), "{}", first.share);
    let at = first.seconds_per_txn;
    let (low, high) = (at.low.expect("a limit"), at.high.expect("a limit"));
    assert!(
        (low..=high).contains(&at.value) && (55e-6..65e-6).contains(&at.value),
        "{at:?}"
    );
    let before = first.before.expect("the other rung").value;
    assert!((4e-6..6e-6).contains(&before), "{before}");
    let place = first.place.as_ref().expect("a place");
    assert_eq!((place.module.as_str(), place.line), ("mysqld", None));
    // Ten leaves of four branches are ten functions, and all of them are all CPU time.
    assert_eq!(hot.len(), 11);
    let sum: f64 = hot.iter().map(|function| function.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    assert!(hot.windows(2).all(|two| two[0].share >= two[1].share));
    assert!(hot[1..].iter().all(|function| !function.waits));
}

#[test]
fn no_more_than_asked_for_and_nothing_where_nothing_was_sampled() {
    assert_eq!(found(3).len(), 3);
    let work = work();
    let costs = work
        .iter()
        .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
        .collect();
    let mut bundle = run(&[(4, 1e4, costs)], 1, 10, USUAL, 2);
    assert!(hot_functions(&bundle, 8, None, 9).is_empty());
    bundle.samples = Samples::default();
    assert!(hot_functions(&bundle, 4, None, 9).is_empty());
}
