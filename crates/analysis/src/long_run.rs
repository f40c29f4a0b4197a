//! Whether throughput holds over hours: jitter, trend and levels of one long measurement.

use crate::changepoints::{noise_variance, segment_starts};
use crate::student::t_quantile_975;
use crate::warmup::mean;
use scaleprof_bundle::{Estimate, Level, LongRun};

/// From so many seconds on a measurement is looked at as a long run: of less a change by the hour
/// would be a guess.
pub const SHORTEST: usize = 300;
/// The window of TPC-C's rule on jitter.
const TWO_HOURS: usize = 7200;
/// How far the window of jitter is moved at a time.
const STEP: usize = 60;
/// Means of so many stretches of equal length stand for the run: long enough that neighbours hardly depend on each other.
const BATCHES: usize = 30;
/// Seconds that one figure is made of where changes of level are looked for, and how many of these a level has at least.
const BLOCK: usize = 10;
const SHORTEST_LEVEL: usize = 6;
/// Neighbouring levels that differ by less are one: TPC-C lets 2 % pass.
const MATERIAL: f64 = 0.02;

/// Of throughputs, one figure a second, from which the warm-up was cut. None where they are too few, or all are 0.
pub fn long_run(rates: &[f64]) -> Option<LongRun> {
    let level = mean(rates);
    if rates.len() < SHORTEST || level <= 0.0 {
        return None;
    }
    let window = rates.len().min(TWO_HOURS);
    let starts = (0..=rates.len() - window).step_by(STEP);
    let jitters = starts.map(|start| jitter(&rates[start..start + window]));
    Some(LongRun {
        seconds: rates.len() as u32,
        jitter: jitters.fold(0.0, f64::max),
        jitter_window_seconds: window as u32,
        change_per_hour: change_per_hour(rates, level),
        levels: levels(rates, level),
    })
}

/// Relative difference between the halves.
fn jitter(window: &[f64]) -> f64 {
    let half = window.len() / 2;
    let (first, second) = (mean(&window[..half]), mean(&window[window.len() - half..]));
    (second - first).abs() / mean(window).max(f64::MIN_POSITIVE)
}

/// The slope of a straight line through the means of [`BATCHES`] stretches, as a part of the mean. What is left of the dependence
/// between neighbours widens the interval by the factor for an AR(1) series, (1 + r) / (1 - r).
fn change_per_hour(rates: &[f64], level: f64) -> Estimate {
    let length = rates.len() / BATCHES;
    let batches: Vec<f64> = rates.chunks_exact(length).take(BATCHES).map(mean).collect();
    let n = batches.len() as f64;
    let (middle, average) = ((n - 1.0) / 2.0, mean(&batches));
    let spread: f64 = (0..batches.len()).map(|at| (at as f64 - middle).powi(2)).sum();
    let product: f64 = batches
        .iter()
        .enumerate()
        .map(|(at, batch)| (at as f64 - middle) * (batch - average))
        .sum();
    let slope = product / spread;
    let residuals: Vec<f64> = batches
        .iter()
        .enumerate()
        .map(|(at, batch)| batch - average - slope * (at as f64 - middle))
        .collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let neighbours: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let r = (neighbours / squares.max(f64::MIN_POSITIVE)).clamp(0.0, 0.8);
    let error = (squares / (n - 2.0) / spread * (1.0 + r) / (1.0 - r)).sqrt();
    let per_hour = 3600.0 / length as f64 / level;
    let half = t_quantile_975(n - 2.0) * error * per_hour;
    let value = slope * per_hour;
    Estimate {
        value,
        low: Some(value - half),
        high: Some(value + half),
    }
}

/// The stretches in which throughput stayed where it was.
fn levels(rates: &[f64], level: f64) -> Vec<Level> {
    let blocks: Vec<f64> = rates.chunks_exact(BLOCK).map(mean).collect();
    let variance = noise_variance(&blocks).max((1e-6 * level).powi(2));
    let mut starts: Vec<usize> = segment_starts(&blocks, SHORTEST_LEVEL, variance);
    // The smallest step first, until none is left that is too small to matter.
    loop {
        let ends = starts.iter().skip(1).copied().chain([blocks.len()]);
        let means: Vec<f64> = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| mean(&blocks[*start..end]))
            .collect();
        let steps = means.windows(2).map(|pair| (pair[1] - pair[0]).abs() / level);
        let smallest = steps.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
        match smallest.filter(|(_, step)| *step < MATERIAL) {
            Some((at, _)) => drop(starts.remove(at + 1)),
            None => break,
        }
    }
    let ends = starts.iter().skip(1).map(|start| start * BLOCK).chain([rates.len()]);
    let found = starts
        .iter()
        .map(|start| start * BLOCK)
        .zip(ends)
        .map(|(start, end)| Level {
            from_second: start as u32,
            seconds: (end - start) as u32,
            throughput: mean(&rates[start..end]),
        });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Noise of 1 with an autocorrelation of `r`: sums of twelve uniform numbers.
    fn noise(seed: u64, r: f64, count: usize) -> Vec<f64> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut normal = || {
            (0..12)
                .map(|_| f64::from(random.next_u32()) / f64::from(u32::MAX))
                .sum::<f64>()
                - 6.0
        };
        let mut now = 0.0;
        (0..count)
            .map(|_| {
                now = r * now + (1.0 - r * r).sqrt() * normal();
                now
            })
            .collect()
    }

    fn series(seed: u64, r: f64, count: usize, level: impl Fn(f64) -> f64) -> Vec<f64> {
        let noise = noise(seed, r, count);
        noise
            .iter()
            .enumerate()
            .map(|(second, noise)| level(second as f64) * (1.0 + 0.05 * noise))
            .collect()
    }

    #[test]
    fn a_decline_is_inside_of_its_interval_nineteen_times_of_twenty() {
        for r in [0.0, 0.6, 0.9] {
            let mut halves = Vec::new();
            let held = (0..200).filter(|seed| {
                let rates = series(*seed, r, 3600, |second| 1000.0 * (1.0 - 0.03 * second / 3600.0));
                let change = long_run(&rates).expect("it is long").change_per_hour;
                // Of the mean, which is 1.5 % below the start.
                let truth = -0.03 / 0.985;
                halves.push(change.high.unwrap() - change.value);
                change.low.is_some_and(|low| low <= truth) && change.high.is_some_and(|high| high >= truth)
            });
            let held = held.count();
            halves.sort_by(f64::total_cmp);
            // Half the width if the noise of 5 % and its autocorrelation were known: the error of a slope over 3600 s. 1.01
            // to 1.07 times as much is found.
            let ideal = 1.96 * 0.05 * (12.0 / 3600.0_f64).sqrt() * ((1.0 + r) / (1.0 - r)).sqrt();
            let half = halves[100];
            assert!(
                (184..200).contains(&held) && half < 1.3 * ideal,
                "r = {r}: {held} of 200, {half} of {ideal}"
            );
        }
    }

    #[test]
    fn a_steady_run_is_one_level_with_little_jitter() {
        let found = long_run(&series(7, 0.3, 10_000, |_| 500.0)).expect("it is long");
        assert_eq!((found.seconds, found.jitter_window_seconds), (10_000, 7200));
        assert!(found.jitter < 0.01, "{found:?}");
        assert_eq!(found.levels.len(), 1, "{found:?}");
        assert_eq!((found.levels[0].from_second, found.levels[0].seconds), (0, 10_000));
    }

    #[test]
    fn noise_seldom_makes_a_level() {
        for r in [0.0, 0.6] {
            let more = (0..100)
                .filter(|seed| long_run(&series(*seed, r, 1800, |_| 500.0)).is_some_and(|run| run.levels.len() > 1));
            let more = more.count();
            assert!(more <= 5, "r = {r}: {more} of 100");
        }
    }

    #[test]
    fn a_step_down_is_two_levels_and_jitter() {
        let step = |second: f64| if second < 1200.0 { 1000.0 } else { 900.0 };
        let found = long_run(&series(3, 0.3, 1800, step)).expect("it is long");
        let [before, after] = found.levels.as_slice() else {
            panic!("{found:?}")
        };
        assert!(before.seconds.abs_diff(1200) <= 60, "{found:?}");
        assert!((before.throughput / 1000.0 - 1.0).abs() < 0.01 && (after.throughput / 900.0 - 1.0).abs() < 0.01);
        assert_eq!(found.jitter_window_seconds, 1800);
        assert!(found.jitter > 0.05, "{found:?}");
        assert!(found.change_per_hour.high.is_some_and(|high| high < 0.0));
    }

    #[test]
    fn a_short_measurement_is_no_long_run() {
        assert_eq!(long_run(&vec![100.0; SHORTEST - 1]), None);
        assert_eq!(long_run(&vec![0.0; SHORTEST]), None);
    }

    proptest::proptest! {
        #[test]
        fn levels_follow_each_other_and_hold_every_second(
            planted in proptest::collection::vec((6..30_usize, 100.0..1e6_f64), 1..5),
            rest in 0..BLOCK,
            seed: u64,
        ) {
            // Each step lasts a minute at least; the last as long as the shortest run needs.
            let mut steps: Vec<(usize, f64)> = planted.iter().map(|(blocks, level)| (blocks * BLOCK, *level)).collect();
            let seconds: usize = steps.iter().map(|(seconds, _)| seconds).sum();
            steps.last_mut().expect("a step").0 += SHORTEST.saturating_sub(seconds) + rest;
            let levels: Vec<f64> = steps.iter().flat_map(|(seconds, level)| vec![*level; *seconds]).collect();
            let rates = series(seed, 0.3, levels.len(), |second| levels[second as usize]);
            let found = long_run(&rates).expect("long and not 0");
            let mut next = 0;
            for level in &found.levels {
                proptest::prop_assert_eq!(level.from_second, next);
                next += level.seconds;
            }
            proptest::prop_assert_eq!(next as usize, rates.len());
            proptest::prop_assert!(found.jitter.is_finite() && found.change_per_hour.value.is_finite());
            // Noise of 5 % hides no step of a fifth of the highest level.
            let highest = levels.iter().copied().fold(0.0, f64::max);
            let stands_out = |pair: &[(usize, f64)]| (pair[1].1 - pair[0].1).abs() > 0.2 * highest;
            if steps.windows(2).all(stands_out) {
                proptest::prop_assert!(found.levels.len() >= steps.len(), "{:?} of {:?}", found.levels, steps);
            }
        }
    }
}
