use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use scaleprof_analysis::flame::{Measurement, Second};
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// Path, cell and thread-seconds of a sample on a CPU.
type Made = (u32, u32, f64);

const SECONDS: u32 = 4;

/// A rung of two measurements whose first second does not count.
fn rung(measurements: [Vec<Made>; 2]) -> Rung {
    let measurements = measurements.into_iter().zip(0..).map(|(samples, measurement)| {
        let mut samples: Vec<Sample> = samples
            .into_iter()
            .map(|(node, cell, thread_seconds)| Sample {
                state: ThreadState::Cpu,
                node,
                cell,
                thread_seconds,
            })
            .collect();
        samples.sort_by_key(|sample| (sample.node, sample.cell));
        Measurement {
            measurement,
            repeat: measurement,
            seconds: SECONDS,
            samples,
        }
    });
    let seconds = |measurement| {
        (1..SECONDS as i32).map(move |second| Second {
            measurement,
            second,
            amount: 100.0,
        })
    };
    Rung {
        side: None,
        connections: Some(8),
        counted: (0..2).flat_map(seconds).collect(),
        measurements: measurements.collect(),
    }
}

fn samples() -> impl Strategy<Value = [Vec<Made>; 2]> {
    let made = || vec((0..40_u32, 0..SECONDS * 50, 0.0..0.02_f64), 0..300);
    [made(), made()]
}

/// Thread-seconds of the paths in the seconds that count.
fn by_path(samples: impl Iterator<Item = (u32, u32, f64)>) -> BTreeMap<u32, f64> {
    let mut sums = BTreeMap::new();
    for (node, _, time) in samples.filter(|(_, cell, _)| *cell >= 50) {
        *sums.entry(node).or_default() += time;
    }
    sums
}

fn all(rung: &Rung) -> impl Iterator<Item = Made> {
    let samples = rung.measurements.iter().flat_map(|measurement| &measurement.samples);
    samples.map(|sample| (sample.node, sample.cell, sample.thread_seconds))
}

fn near(one: f64, other: f64, within: f64) -> bool {
    (one - other).abs() <= within + 1e-9
}

proptest! {
    #[test]
    fn sums_of_paths_and_cells_are_those_of_all_samples(made in samples(), most in 1..200_usize) {
        let rung = rung(made);
        let kept = keep(std::slice::from_ref(&rung), most, 60);
        let before = by_path(all(&rung));
        let count = all(&rung).count();
        prop_assert_eq!(kept[0].thinned.len(), usize::from(count > most));
        let Some(thinned) = kept[0].thinned.first() else {
            for (measurement, kept) in rung.measurements.iter().zip(&kept[0].measurements) {
                prop_assert_eq!(kept.samples[ThreadState::Cpu].kept(), measurement.samples.as_slice());
            }
            return Ok(());
        };
        let after: BTreeMap<u32, f64> = thinned.sums.iter().copied().collect();
        prop_assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
        for (node, sum) in &before {
            prop_assert!(near(*sum, after[node], 0.0), "{} {} {}", node, sum, after[node]);
        }
        for (measurement, cells) in rung.measurements.iter().zip(&thinned.cells) {
            for (cell, (time, count)) in (0..).zip(cells) {
                let within = || measurement.samples.iter().filter(|sample| sample.cell == cell);
                prop_assert_eq!(within().count() as u32, *count);
                prop_assert!(near(within().map(|sample| sample.thread_seconds).sum(), *time, 0.0));
            }
        }
    }

    /// Every subtree is a stretch of the paths, so the first so many of them are enough to look at.
    #[test]
    fn what_is_kept_has_the_time_of_each_stretch_of_paths_but_for_one_step(made in samples(), most in 1..200_usize) {
        let rung = rung(made);
        let kept = keep(std::slice::from_ref(&rung), most, 60);
        let Some(thinned) = kept[0].thinned.first() else { return Ok(()) };
        let drawn = || kept[0].measurements.iter().flat_map(|measurement| measurement.samples[ThreadState::Cpu].kept());
        prop_assert!(drawn().count() <= most);
        let whole: f64 = all(&rung).map(|(.., time)| time).sum();
        let step = whole / most as f64;
        let paths: f64 = thinned.sums.iter().map(|(_, sum)| sum).sum();
        for last in [0, 7, 19, 39] {
            // Each measurement is gone through on its own.
            let time: f64 = all(&rung).filter(|(node, ..)| *node <= last).map(|(.., time)| time).sum();
            let found: f64 = drawn().filter(|sample| sample.node <= last).map(|sample| sample.thread_seconds).sum();
            prop_assert!(near(time, found, 2.0 * step), "{} {} {}", time, found, step);
            let time: f64 = thinned.sums.iter().filter(|(node, _)| *node <= last).map(|(_, sum)| sum).sum();
            let found: f64 = thinned.seconds.iter().filter(|(node, ..)| *node <= last).map(|(.., time)| time).sum();
            prop_assert!(near(time, found, paths / 10.0), "{} {} {}", time, found, paths);
        }
    }

    #[test]
    fn shares_are_fair_and_use_what_there_is(counts in vec(0..1000_usize, 1..20), most in 20..5000_usize) {
        let share = fair_share(&counts, most);
        let taken: usize = counts.iter().map(|count| (*count).min(share)).sum();
        prop_assert!(taken <= most);
        if counts.iter().sum::<usize>() > most {
            prop_assert!(taken + counts.len() > most, "{} of {}", taken, most);
        } else {
            prop_assert_eq!(share, usize::MAX);
        }
    }
}

#[test]
fn seconds_of_light_paths_are_neither_favoured_nor_forgotten() {
    // Fifty light paths of which a tenth can be drawn, many times over with other lengths: on average each has its time.
    let mut sums = [0.0; 50];
    let trials = 4000;
    for trial in 0..trials {
        let time = |node: u32| f64::from(node % 5 + 1) * (1.0 + f64::from(trial) * 1e-4);
        let seconds: Vec<Vec<(u32, u32, f64)>> = (0..50).map(|node| vec![(node, 0, time(node))]).collect();
        let paths: Vec<&[(u32, u32, f64)]> = seconds.iter().map(Vec::as_slice).collect();
        let totals: Vec<(u32, f64)> = (0..50).map(|node| (node, time(node))).collect();
        for (node, _, drawn) in seconds_of_drawn(&paths, &totals, 5) {
            sums[node as usize] += drawn / time(node) / f64::from(trials);
        }
    }
    for (node, mean) in sums.iter().enumerate() {
        assert!((mean - 1.0).abs() < 0.35, "{node}: {mean}");
    }
}
