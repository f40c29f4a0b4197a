//! The samples of a flame graph add up to the ledger.

use crate::truths;
use scaleprof_analysis::Per;
use scaleprof_analysis::flame::{Flame, Rung, Sample, flame};
use scaleprof_analysis::summarise;
use scaleprof_bundle::*;
use scaleprof_vocabulary::ThreadState;
use std::collections::HashMap;
use truths::{FALLS, bundle, watch};

/// Seconds that count, by measurement, and the transactions of all of them.
fn counted(rung: &Rung) -> (HashMap<i32, Vec<i32>>, f64) {
    let mut seconds: HashMap<i32, Vec<i32>> = HashMap::new();
    for one in &rung.counted {
        seconds.entry(one.measurement).or_default().push(one.second);
    }
    (seconds, rung.counted.iter().map(|one| one.amount).sum())
}

/// Seconds per transaction of the samples that count.
fn per_transaction(rung: &Rung, wanted: impl Fn(&Sample) -> bool) -> f64 {
    let (seconds, transactions) = counted(rung);
    let mut sum = 0.0;
    for measurement in &rung.measurements {
        let counts = |sample: &&Sample| seconds[&measurement.measurement].contains(&((sample.cell / 50) as i32));
        let found = measurement
            .samples
            .iter()
            .filter(counts)
            .filter(|sample| wanted(sample));
        sum += found.map(|sample| sample.thread_seconds).sum::<f64>();
    }
    sum / transactions
}

fn path(flame: &Flame, node: u32) -> Vec<&str> {
    let mut path = Vec::new();
    let mut depth = u32::MAX;
    for node in flame.nodes[..=node as usize].iter().rev() {
        if node.depth < depth {
            path.push(flame.functions[node.function as usize].as_str());
            depth = node.depth;
        }
    }
    path.reverse();
    path
}

#[test]
fn frames_add_up_to_the_ledger_and_to_the_paths_of_the_summary() {
    let mut bundle = bundle(&FALLS, true);
    watch(&mut bundle);
    let summary = summarise(&bundle);
    let flame = flame(&bundle).unwrap();
    assert_eq!(flame.per, Per::Transaction);
    assert_eq!(flame.rungs.len(), summary.rungs.len());
    for (rung, expected) in flame.rungs.iter().zip(&summary.rungs) {
        assert_eq!(rung.connections, Some(expected.connections));
        let ledger = expected.ledger.as_ref().unwrap();
        for (state, seconds) in ledger.seconds_per_txn.iter() {
            let found = per_transaction(rung, |sample| sample.state == state);
            assert!(
                (found - seconds.unwrap_or(0.0)).abs() < 1e-12,
                "{state:?}: {found} and {seconds:?}"
            );
        }
        assert!(!expected.paths.is_empty());
        for known in &expected.paths {
            let found = per_transaction(rung, |sample| {
                sample.state == known.state && path(&flame, sample.node) == known.path
            });
            assert!(
                (found / known.seconds_per_txn.value - 1.0).abs() < 1e-9,
                "{:?}",
                known.path
            );
        }
    }
}

#[test]
fn the_warm_up_is_there_and_does_not_count() {
    let mut bundle = bundle(&FALLS, true);
    watch(&mut bundle);
    let flame = flame(&bundle).unwrap();
    assert_eq!(flame.rungs.len(), FALLS.len());
    for rung in &flame.rungs {
        let (seconds, _) = counted(rung);
        for measurement in &rung.measurements {
            assert_eq!((measurement.seconds, measurement.samples.len()), (30, 4 * 30));
            assert!(
                !seconds[&measurement.measurement].contains(&0),
                "the first second is at half speed"
            );
            assert!(measurement.samples.iter().any(|sample| sample.cell == 0));
        }
    }
}

#[test]
fn samples_stand_in_the_cell_of_their_time() {
    let mut bundle = bundle(&FALLS[..2], true);
    watch(&mut bundle);
    for rung in &mut bundle.measurements {
        rung.started_at = UtcMicros(5_000_123);
    }
    let mut rows: Vec<SampleRow> = bundle.samples.rows().collect();
    for sample in &mut rows {
        sample.time_us = UtcMicros(5_000_123 + i64::from(sample.second) * 1_000_000 + 39_999);
    }
    bundle.samples = rows.iter().cloned().collect();
    let all = flame(&bundle).unwrap();
    let samples = || {
        all.rungs
            .iter()
            .flat_map(|rung| &rung.measurements)
            .flat_map(|measurement| &measurement.samples)
    };
    assert!(samples().all(|sample| sample.cell % 50 == 1));
    // What was taken before the first second, and what nobody can believe, is left out.
    for (sample, second) in rows.iter_mut().zip([-1, i32::MAX]) {
        sample.second = second;
    }
    bundle.samples = rows.into_iter().collect();
    let kept = flame(&bundle).unwrap();
    let left = kept
        .rungs
        .iter()
        .flat_map(|rung| &rung.measurements)
        .map(|measurement| measurement.samples.len());
    assert_eq!(left.sum::<usize>(), samples().count() - 2);
}

#[test]
fn callers_stand_before_what_they_call_and_the_heaviest_first() {
    let mut bundle = bundle(&FALLS, true);
    watch(&mut bundle);
    let flame = flame(&bundle).unwrap();
    let paths: Vec<Vec<&str>> = (0..flame.nodes.len() as u32).map(|node| path(&flame, node)).collect();
    assert_eq!(
        paths,
        [
            vec!["start_thread"],
            vec!["start_thread", "lock"],
            vec!["start_thread", "work"],
            vec!["start_thread", "more_work"]
        ]
    );
}

#[test]
fn without_samples_there_is_no_graph() {
    assert_eq!(flame(&bundle(&FALLS, true)), None);
}

#[test]
fn a_watch_counts_by_the_second() {
    let mut bundle = bundle(&FALLS[2..3], true);
    watch(&mut bundle);
    bundle.manifest.workload.name = scaleprof_vocabulary::WorkloadName::Watch;
    bundle.measurements.truncate(1);
    bundle.seconds.clear();
    bundle.samples.retain_measurements(|measurement| measurement == 0);
    bundle.states.retain(|row| row.measurement == 0);
    bundle.counters = (0..30)
        .map(|second| CounterRow {
            measurement: 0,
            second: Some(second),
            counter: "probe.watched_seconds".into(),
            value: 1.0,
            running_share: None,
        })
        .collect();
    let summary = summarise(&bundle);
    let found = flame(&bundle).unwrap();
    assert_eq!(
        (found.per, found.rungs.len(), found.rungs[0].connections),
        (Per::Second, 1, None)
    );
    let threads = per_transaction(&found.rungs[0], |sample| sample.state == ThreadState::Lock);
    let expected = summary.watch.unwrap().connections.seconds_per_second[ThreadState::Lock].unwrap();
    assert!(
        (threads / expected - 1.0).abs() < 1e-12 && expected > 13.0,
        "{threads} and {expected}"
    );
}
