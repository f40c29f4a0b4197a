//! What the page keeps of a run that has more samples than a reader's browser should unpack.
//!
//! A state of a rung with more samples than its share is told in four parts, of which the first and the second lose nothing:
//!
//! - the sum of the seconds that count, path by path, for the flame graph of the rung
//! - threads and samples of every cell, for the heat map
//! - the seconds of the heavy paths, for intervals. Of the light ones some stand for the others: each is drawn with a chance in
//!   proportion to its time, and what is drawn is divided by that chance
//! - single samples, for a stretch of the heat map: drawn with a chance in proportion to their time, all of one weight
//!
//! Both draws are systematic (Cochran 1977, chapter 8): a random start, then even steps of time through the paths in the
//! order of the tree. So nothing is favoured, and a subtree's part of what is drawn is its part of the time, but for one step.

use scaleprof_analysis::flame::{CELL_MICROSECONDS, Rung, Sample};
use scaleprof_bundle::in_parallel;
use scaleprof_vocabulary::{PerState, ThreadState};
use std::collections::HashMap;

/// Samples that a page keeps one by one: about 2 MB of text, which unpack in a tenth of a second.
const MOST_SAMPLES: usize = 400_000;
/// Seconds of paths that a page keeps for intervals where samples were thinned: at most 2 MB of text.
const MOST_SECONDS: usize = 600_000;
const CELLS_PER_SECOND: usize = 1_000_000 / CELL_MICROSECONDS as usize;

/// A rung as the page holds it.
pub(super) struct KeptRung<'a> {
    /// Beside [`Rung::measurements`].
    pub measurements: Vec<KeptMeasurement<'a>>,
    /// The states of which not every sample is kept.
    pub thinned: Vec<Thinned>,
}

/// What is kept of a measurement.
pub(super) struct KeptMeasurement<'a> {
    /// Samples of each state, those that are kept.
    pub samples: PerState<Samples<'a>>,
    /// How many of each state there were.
    pub all: PerState<usize>,
}

/// Samples of a state in a measurement, ordered by call path and time.
pub(super) enum Samples<'a> {
    /// All of them.
    All(&'a [Sample]),
    /// Some for all.
    Some(Vec<Sample>),
}

impl Samples<'_> {
    /// Those that are kept.
    pub(super) fn kept(&self) -> &[Sample] {
        match self {
            Samples::All(samples) => samples,
            Samples::Some(samples) => samples,
        }
    }
}

/// A state of a rung of which not every sample is kept.
pub(super) struct Thinned {
    /// Which one.
    pub state: ThreadState,
    /// Thread-seconds of each call path in all seconds that count, by the path's place.
    pub sums: Vec<(u32, f64)>,
    /// The same second by second for the paths that were drawn: path, place of the second in [`Rung::counted`], thread-seconds.
    pub seconds: Vec<(u32, u32, f64)>,
    /// Thread-seconds and samples in each cell of each measurement.
    pub cells: Vec<Vec<(f64, u32)>>,
}

/// What the page keeps of all rungs.
pub(super) fn thinned(rungs: &[Rung]) -> Vec<KeptRung<'_>> {
    keep(rungs, MOST_SAMPLES, MOST_SECONDS)
}

fn keep(rungs: &[Rung], most_samples: usize, most_seconds: usize) -> Vec<KeptRung<'_>> {
    let counts: Vec<usize> = rungs
        .iter()
        .flat_map(|rung| ThreadState::ALL.map(|state| of_state(rung, state).map(<[Sample]>::len).sum()))
        .collect();
    let share = fair_share(&counts, most_samples);
    let above = counts.iter().filter(|count| **count > share).count();
    let seconds = most_seconds / above.max(1);
    in_parallel(rungs.iter().collect(), |rung| rung_of(rung, share, seconds))
}

/// The most that each may have so that all together have no more than `most`.
fn fair_share(counts: &[usize], most: usize) -> usize {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let mut left = most;
    for (at, count) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - at);
        if *count > share {
            return share.max(1);
        }
        left -= count;
    }
    usize::MAX
}

/// The samples of a state, measurement by measurement.
fn of_state(rung: &Rung, state: ThreadState) -> impl Iterator<Item = &[Sample]> {
    rung.measurements.iter().map(move |measurement| {
        let from = measurement.samples.partition_point(|sample| sample.state < state);
        let to = measurement.samples.partition_point(|sample| sample.state <= state);
        &measurement.samples[from..to]
    })
}

fn rung_of(rung: &Rung, share: usize, seconds: usize) -> KeptRung<'_> {
    let mut measurements: Vec<KeptMeasurement<'_>> = rung
        .measurements
        .iter()
        .map(|_| KeptMeasurement {
            samples: PerState::from_fn(|_| Samples::All(&[])),
            all: PerState::default(),
        })
        .collect();
    let mut thinned = Vec::new();
    for state in ThreadState::ALL {
        let samples: Vec<&[Sample]> = of_state(rung, state).collect();
        let is_thinned = samples.iter().map(|some| some.len()).sum::<usize>() > share;
        let mut step = Step::of(samples.iter().copied().flatten(), share);
        for (measurement, some) in measurements.iter_mut().zip(&samples) {
            measurement.all[state] = some.len();
            measurement.samples[state] = match is_thinned {
                true => Samples::Some(drawn(some, &mut step)),
                false => Samples::All(some),
            };
        }
        if is_thinned {
            thinned.push(whole(rung, state, &samples, seconds));
        }
    }
    KeptRung { measurements, thinned }
}

/// Even steps of time through what one draws from.
struct Step {
    length: f64,
    /// What is left until the next draw.
    left: f64,
}

impl Step {
    fn over(all: f64, draws: usize) -> Step {
        let length = all / draws as f64;
        // A start that depends on nothing but the length, so that a page is the same each time: its lowest bits are as good as
        // dice (SplitMix64's finalizer, Steele et al. 2014).
        let mut bits = length.to_bits();
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let share = ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64;
        Step {
            length,
            left: length * share,
        }
    }

    fn of<'a>(samples: impl Iterator<Item = &'a Sample>, draws: usize) -> Step {
        Step::over(samples.map(|sample| sample.thread_seconds).sum(), draws)
    }

    /// How often something of that time is drawn.
    fn draws(&mut self, time: f64) -> f64 {
        self.left -= time;
        if self.left >= 0.0 || self.length <= 0.0 {
            return 0.0;
        }
        let draws = (-self.left / self.length).ceil();
        self.left += draws * self.length;
        draws
    }
}

/// Samples of one weight, but for those that were drawn more than once.
fn drawn(samples: &[Sample], step: &mut Step) -> Vec<Sample> {
    let draw = |sample: &Sample| {
        let draws = step.draws(sample.thread_seconds);
        (draws > 0.0).then_some(Sample {
            thread_seconds: draws * step.length,
            ..*sample
        })
    };
    samples.iter().filter_map(draw).collect()
}

fn whole(rung: &Rung, state: ThreadState, samples: &[&[Sample]], most_seconds: usize) -> Thinned {
    let places: HashMap<(i32, i32), u32> = rung
        .counted
        .iter()
        .zip(0..)
        .map(|(second, place)| ((second.measurement, second.second), place))
        .collect();
    let mut cells = Vec::new();
    let mut by_second: Vec<(u32, u32, f64)> = Vec::new();
    for (measurement, samples) in rung.measurements.iter().zip(samples) {
        let place_of: Vec<Option<u32>> = (0..measurement.seconds)
            .map(|second| {
                places
                    .get(&(measurement.measurement, i32::try_from(second).ok()?))
                    .copied()
            })
            .collect();
        let mut of_measurement = vec![(0.0, 0_u32); measurement.seconds as usize * CELLS_PER_SECOND];
        for sample in *samples {
            let cell = sample.cell as usize;
            if let Some((time, count)) = of_measurement.get_mut(cell) {
                *time += sample.thread_seconds;
                *count += 1;
            }
            let Some(place) = place_of.get(cell / CELLS_PER_SECOND).copied().flatten() else {
                continue;
            };
            match by_second.last_mut() {
                Some((node, second, sum)) if (*node, *second) == (sample.node, place) => *sum += sample.thread_seconds,
                _ => by_second.push((sample.node, place, sample.thread_seconds)),
            }
        }
        cells.push(of_measurement);
    }
    by_second.sort_by_key(|(node, place, _)| (*node, *place));
    let of_path: Vec<&[(u32, u32, f64)]> = by_second.chunk_by(|one, other| one.0 == other.0).collect();
    let sums: Vec<(u32, f64)> = of_path
        .iter()
        .filter_map(|seconds| Some((seconds.first()?.0, seconds.iter().map(|second| second.2).sum())))
        .collect();
    Thinned {
        state,
        seconds: seconds_of_drawn(&of_path, &sums, most_seconds / rung.counted.len().max(1)),
        sums,
        cells,
    }
}

/// The seconds of no more than `most` paths. Those as heavy as a step through the others stand for themselves and are left out of
/// the draw: the light ones that are drawn then have the time of the light ones, but for one step.
fn seconds_of_drawn(of_path: &[&[(u32, u32, f64)]], sums: &[(u32, f64)], most: usize) -> Vec<(u32, u32, f64)> {
    let (lightest_certain, mut step) = light_step(sums, most.max(1));
    let mut seconds = Vec::new();
    for (path, (_, sum)) in of_path.iter().zip(sums) {
        let times = match *sum >= lightest_certain {
            true => 1.0,
            false if step.draws(*sum) > 0.0 => step.length / sum,
            false => continue,
        };
        seconds.extend(path.iter().map(|(node, second, time)| (*node, *second, time * times)));
    }
    seconds
}

/// From which sum on a path is kept for certain, and the step through those below it.
fn light_step(sums: &[(u32, f64)], most: usize) -> (f64, Step) {
    let mut heaviest_first: Vec<f64> = sums.iter().map(|(_, sum)| *sum).collect();
    heaviest_first.sort_by(|a, b| b.total_cmp(a));
    let mut rest: f64 = heaviest_first.iter().sum();
    let mut lightest_certain = f64::INFINITY;
    for (certain, sum) in heaviest_first.iter().enumerate() {
        let draws = most.saturating_sub(certain);
        if draws == 0 || (draws < heaviest_first.len() - certain && *sum < rest / draws as f64) {
            return (lightest_certain, Step::over(rest.max(0.0), draws.max(1)));
        }
        rest -= sum;
        lightest_certain = *sum;
    }
    (lightest_certain, Step::over(0.0, 1))
}

#[cfg(test)]
mod tests;
