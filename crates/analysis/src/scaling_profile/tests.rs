use super::*;
use crate::findings::tests::made_up::{Costs, made_up};
use scaleprof_vocabulary::{GrowthShape, ThreadState};

/// Microseconds of a transaction by state and path, at each rung.
fn profile(rungs: &[(u32, f64, f64, Costs<'_>)]) -> ScalingProfile {
    made_up(
        rungs,
        |_, _| (),
        |profiled, call_paths| scaling_profile(profiled, call_paths).expect("two rungs with ledgers"),
    )
}

const WORK: &[&str] = &["main", "serve", "work"];
const CRITICAL: &[&str] = &["main", "serve", "log_write", "copy"];
const WAIT: &[&str] = &["main", "serve", "log_write", "mutex_lock", "futex_wait [k]"];
const READ: &[&str] = &["main", "serve", "recv"];

/// 4 ms of work and 0.5 ms under one mutex, on a machine with CPUs to spare: X levels off at 2000/s (research: the same loop was
/// simulated). The seconds of all states are N/X.
fn convoy() -> [(u32, f64, f64, Costs<'static>); 5] {
    [
        (1, 222.2, 0.1, &[("cpu", WORK, 4000.0), ("cpu", CRITICAL, 500.0)]),
        (
            4,
            880.0,
            0.2,
            &[("cpu", WORK, 4000.0), ("cpu", CRITICAL, 500.0), ("lock", WAIT, 45.4545)],
        ),
        (
            16,
            2000.0,
            0.5,
            &[("cpu", WORK, 4000.0), ("cpu", CRITICAL, 500.0), ("lock", WAIT, 3500.0)],
        ),
        (
            32,
            2000.0,
            0.5,
            &[("cpu", WORK, 4000.0), ("cpu", CRITICAL, 500.0), ("lock", WAIT, 11500.0)],
        ),
        (
            64,
            2000.0,
            0.5,
            &[("cpu", WORK, 4000.0), ("cpu", CRITICAL, 500.0), ("lock", WAIT, 27500.0)],
        ),
    ]
}

#[test]
fn effective_and_lost_threads_add_up_to_the_connections() {
    let profile = profile(&convoy());
    assert_eq!(profile.base_connections, 1);
    for rung in &profile.rungs {
        let lost: f64 = rung.lost_threads.values().map(|lost| lost.value).sum();
        let all = rung.effective_threads + lost;
        assert!((all / f64::from(rung.connections) - 1.0).abs() < 1e-3, "{rung:?}");
        assert!(rung.residual.abs() < 1e-3);
    }
    let last = profile.rungs.last().expect("rungs");
    assert!(
        (last.lost_threads[&ThreadState::Lock].value - 55.0).abs() < 0.1,
        "{last:?}"
    );
}

#[test]
fn those_who_wait_are_named_with_how_it_grows_and_what_they_wait_for_with_its_bound() {
    let profile = profile(&convoy());
    let path = profile.paths.first().expect("a path");
    assert_eq!(
        (path.state, path.path.as_slice()),
        (ThreadState::Lock, WAIT.map_to_owned().as_slice())
    );
    let lost = path.lost_threads.last().expect("rungs");
    assert!(
        lost.low.is_some_and(|low| low < 55.0) && lost.high.is_some_and(|high| high > 55.0),
        "{lost:?}"
    );
    let [always] = profile.saturated.as_slice() else {
        panic!("{:?}", profile.saturated)
    };
    assert_eq!(always.path.last().map(String::as_str), Some("copy"));
    assert!((always.cap / 2000.0 - 1.0).abs() < 0.03, "{always:?}");
    assert!(always.active_threads[0] < 0.2);
}

/// One thread at a time is at work in the path, and all others wait in what it calls: for a row, not to get into it.
#[test]
fn a_path_in_which_others_wait_is_no_bound() {
    const WITHIN: &[&str] = &["main", "serve", "log_write", "copy", "lock_wait"];
    let rungs: [(u32, f64, f64, Costs<'_>); 3] = [
        (1, 1000.0, 0.5, &[("cpu", CRITICAL, 500.0), ("net", READ, 500.0)]),
        (32, 2000.0, 0.5, &[("cpu", CRITICAL, 500.0), ("lock", WITHIN, 15500.0)]),
        (64, 2000.0, 0.5, &[("cpu", CRITICAL, 500.0), ("lock", WITHIN, 31500.0)]),
    ];
    assert!(profile(&rungs).saturated.is_empty());
}

/// A wait that is in proportion to the connections, seen at five rungs.
#[test]
fn a_queue_grows_in_proportion() {
    const CONNECTIONS: [u32; 5] = [2, 8, 32, 128, 512];
    let costs = CONNECTIONS.map(|n| [("cpu", WORK, 50.0), ("lock", WAIT, 100.0 * f64::from(n) - 50.0)]);
    let rungs = CONNECTIONS.iter().zip(&costs);
    let rungs: Vec<(u32, f64, f64, Costs<'_>)> =
        rungs.map(|(n, costs)| (*n, 10_000.0, 0.5, costs.as_slice())).collect();
    let profile = profile(&rungs);
    assert_eq!(
        profile.paths.first().and_then(|path| path.shape),
        Some(GrowthShape::Linear)
    );
}

#[test]
fn while_no_cpu_is_free_waiting_for_one_is_no_cause_nor_anything_saturated() {
    let one: Costs<'_> = &[("cpu", CRITICAL, 500.0), ("net", READ, 500.0)];
    let many: Costs<'_> = &[
        ("cpu", CRITICAL, 500.0),
        ("runq", CRITICAL, 15000.0),
        ("net", READ, 500.0),
        ("lock", WAIT, 1000.0),
    ];
    let profile = profile(&[
        (1, 1000.0, 0.5, one),
        (16, 2000.0, 0.99, many),
        (34, 2000.0, 0.99, many),
    ]);
    let states: Vec<ThreadState> = profile.paths.iter().map(|path| path.state).collect();
    assert_eq!(states, [ThreadState::Lock], "{:?}", profile.paths);
    assert!(profile.saturated.is_empty());
    let last = profile.rungs.last().expect("rungs");
    assert!(
        last.lost_threads[&ThreadState::RunQueue].value > 1.0,
        "it is shown all the same"
    );
}

#[test]
fn what_takes_longer_everywhere_alike_is_no_paths_loss() {
    let leaves: [&'static [&'static str]; 9] = [
        &["main", "a"],
        &["main", "b"],
        &["main", "c"],
        &["main", "d"],
        &["main", "e"],
        &["main", "f"],
        &["main", "g"],
        &["main", "h"],
        WORK,
    ];
    let costs = |times: f64, work: f64| -> Vec<(&'static str, &'static [&'static str], f64)> {
        let micros = |path: &[&str]| if path == WORK { work } else { 100.0 * times };
        leaves.iter().map(|path| ("cpu", *path, micros(path))).collect()
    };
    let (few, alike, more) = (costs(1.0, 300.0), costs(1.5, 450.0), costs(1.5, 900.0));
    let same = profile(&[(1, 1000.0, 0.1, &few), (32, 16_000.0, 0.8, &alike)]);
    assert!(same.paths.is_empty(), "{:?}", same.paths);
    let told = same.rungs[1].uniform_slowdown.expect("nine functions that agree");
    assert!((told - 1.5).abs() < 0.02, "{told}");
    assert!(
        same.rungs[1].lost_threads[&ThreadState::Cpu].value > 0.0,
        "of all together it is lost"
    );

    let one = profile(&[(1, 1000.0, 0.1, &few), (32, 16_000.0, 0.8, &more)]);
    let [path] = one.paths.as_slice() else {
        panic!("{:?}", one.paths)
    };
    assert_eq!(path.path, WORK.map_to_owned());
    let lost: Vec<f64> = path.lost_threads.iter().map(|lost| lost.value).collect();
    // (900 - 1.5 x 300) us at 16 000 a second; nothing against itself.
    assert!(lost[0] == 0.0 && (lost[1] / 7.2 - 1.0).abs() < 0.05, "{lost:?}");
}

#[test]
fn a_run_that_scales_loses_nothing() {
    let costs: Costs<'_> = &[("cpu", WORK, 1000.0)];
    let profile = profile(&[(1, 1000.0, 0.1, costs), (8, 8000.0, 0.8, costs)]);
    assert!(profile.paths.is_empty() && profile.saturated.is_empty());
    assert!((profile.rungs[1].effective_threads - 8.0).abs() < 1e-9);
}

/// Names as a path of the summary has them.
trait ToOwnedNames {
    fn map_to_owned(&self) -> Vec<String>;
}

impl ToOwnedNames for &[&str] {
    fn map_to_owned(&self) -> Vec<String> {
        self.iter().map(|name| (*name).to_owned()).collect()
    }
}
