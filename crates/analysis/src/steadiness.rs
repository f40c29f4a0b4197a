//! Whether throughput settled.

use crate::changepoints::{noise_variance, segment_starts};
use crate::student::two_sided_p;
pub use crate::unsteady::{SHORTEST, Unsteady};
use crate::warmup::{mean, warmup_seconds};

/// Changes below this are let pass: TPC-C's jitter of under 2 % over the window, as scaleprof asks it of every rung.
const MATERIAL: f64 = 0.02;
const SHORTEST_SEGMENT: usize = 5;
/// Parts of a window that are looked at pair by pair; a quarter of an hour has so many seconds.
const MOST_MEANS: usize = 900;

/// What a series of throughputs is like.
#[derive(Debug, Clone, PartialEq)]
pub struct Steadiness {
    /// Seconds to cut from its head.
    pub warmup: usize,
    /// Relative difference between the halves of what is left; none where it is too short.
    pub jitter: Option<f64>,
    /// Why it is not steady; none where it is.
    pub problem: Option<Unsteady>,
}

/// Judges a series of throughputs, one figure a second.
///
/// The head is cut by [`warmup_seconds`], at most half of the series; nothing else is ever cut. What is left is steady when it has no stall, no change
/// of level or trend of 2 % or more that noise does not explain, no swing of 10 % or more, and halves within 2 %.
pub fn judge(rates: &[f64]) -> Steadiness {
    if rates.len() < SHORTEST {
        let problem = Some(Unsteady::TooShort { seconds: rates.len() });
        return Steadiness {
            warmup: 0,
            jitter: None,
            problem,
        };
    }
    // A head that is as long as the rest is no warm-up: the series is judged, and counted, whole.
    let settled = warmup_seconds(rates);
    let warmup = settled.unwrap_or(0);
    let window = &rates[warmup..];
    let level = mean(window);
    if level <= 0.0 {
        let problem = Some(Unsteady::Stall {
            second: warmup,
            seconds: window.len(),
        });
        return Steadiness {
            warmup,
            jitter: None,
            problem,
        };
    }
    let half = window.len() / 2;
    let jitter = (mean(&window[window.len() - half..]) - mean(&window[..half])).abs() / level;
    let coarse = Coarse::of(window);
    let problem = stall(window)
        .or_else(|| coarse.in_seconds(swing(&coarse.means).or_else(|| level_change(&coarse))))
        .or_else(|| trend(window))
        .or_else(|| (jitter >= MATERIAL || settled.is_none()).then_some(Unsteady::Jitter { jitter }))
        .map(|problem| from_the_measurements_start(problem, warmup));
    Steadiness {
        warmup,
        jitter: Some(jitter),
        problem,
    }
}

/// A window in at most [`MOST_MEANS`] parts: what follows looks at every pair of them, and hours have many seconds.
struct Coarse {
    means: Vec<f64>,
    /// Seconds of each.
    seconds: usize,
}

impl Coarse {
    fn of(window: &[f64]) -> Coarse {
        let seconds = window.len().div_ceil(MOST_MEANS);
        Coarse {
            means: window.chunks(seconds).map(mean).collect(),
            seconds,
        }
    }

    /// What was found in parts, in seconds.
    fn in_seconds(&self, problem: Option<Unsteady>) -> Option<Unsteady> {
        Some(match problem? {
            Unsteady::Step { second, change } => Unsteady::Step {
                second: second * self.seconds,
                change,
            },
            Unsteady::Oscillation { period, amplitude } => Unsteady::Oscillation {
                period: period * self.seconds as f64,
                amplitude,
            },
            other => other,
        })
    }
}

fn from_the_measurements_start(problem: Unsteady, warmup: usize) -> Unsteady {
    match problem {
        Unsteady::Step { second, change } => Unsteady::Step {
            second: second + warmup,
            change,
        },
        Unsteady::Stall { second, seconds } => Unsteady::Stall {
            second: second + warmup,
            seconds,
        },
        other => other,
    }
}

fn stall(window: &[f64]) -> Option<Unsteady> {
    let mut sorted = window.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[sorted.len() / 2];
    // A rung with a few transactions a second has empty seconds by chance: counting noise is the root of the count.
    let stalled = |rate: f64| rate < 0.5 * median && median - rate > 4.0 * median.sqrt();
    let second = window.iter().position(|rate| stalled(*rate))?;
    Some(Unsteady::Stall {
        second,
        seconds: window.iter().filter(|rate| stalled(**rate)).count(),
    })
}

/// Fisher's test for one hidden period (1929) on the periodogram, for periods of up to a third of the window.
fn swing(window: &[f64]) -> Option<Unsteady> {
    let n = window.len();
    let level = mean(window);
    let mut powers = Vec::new();
    for k in 1..=(n - 1) / 2 {
        let step = 2.0 * std::f64::consts::PI * k as f64 / n as f64;
        let (mut a, mut b) = (0.0, 0.0);
        for (t, value) in window.iter().enumerate() {
            a += (value - level) * (step * t as f64).cos();
            b += (value - level) * (step * t as f64).sin();
        }
        powers.push(a * a + b * b);
    }
    let total: f64 = powers.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let (at, power) = powers.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let chance = powers.len() as f64 * (1.0 - power / total).powi(powers.len() as i32 - 1);
    // A period that does not divide the window spreads over neighbouring frequencies.
    let near: f64 = powers[at.saturating_sub(1)..(at + 2).min(powers.len())].iter().sum();
    let amplitude = 2.0 * near.sqrt() / n as f64 / level;
    (at >= 2 && chance < 1e-3 && amplitude >= 0.1).then(|| Unsteady::Oscillation {
        period: n as f64 / (at + 1) as f64,
        amplitude,
    })
}

fn level_change(coarse: &Coarse) -> Option<Unsteady> {
    let window = coarse.means.as_slice();
    let level = mean(window);
    // Whole numbers are at least as noisy as counting is, even where most neighbours are equal.
    let variance = noise_variance(window).max(level / coarse.seconds as f64);
    let mut starts = segment_starts(window, SHORTEST_SEGMENT, variance);
    starts.push(window.len());
    let levels: Vec<f64> = starts.windows(2).map(|pair| mean(&window[pair[0]..pair[1]])).collect();
    let jumps: Vec<f64> = levels.windows(2).map(|pair| (pair[1] - pair[0]) / level).collect();
    let (at, change) = jumps
        .iter()
        .copied()
        .enumerate()
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
    let spread =
        levels.iter().copied().fold(f64::NEG_INFINITY, f64::max) - levels.iter().copied().fold(f64::INFINITY, f64::min);
    if spread / level < MATERIAL {
        return None;
    }
    let turns = jumps.windows(2).filter(|pair| pair[0] * pair[1] < 0.0).count();
    if turns >= 2 {
        let period = 2.0 * window.len() as f64 / levels.len() as f64;
        return Some(Unsteady::Oscillation {
            period,
            amplitude: spread / level / 2.0,
        });
    }
    // A trend shows as a staircase; the line must explain more than the steps do for the parameters that each has.
    let squares: f64 = starts
        .windows(2)
        .zip(&levels)
        .map(|(pair, level)| {
            window[pair[0]..pair[1]]
                .iter()
                .map(|v| (v - level).powi(2))
                .sum::<f64>()
        })
        .sum();
    let line = Line::through(window);
    let penalty = variance * (window.len() as f64).ln();
    let stairs = squares + 2.0 * penalty * jumps.len() as f64;
    if turns == 0 && line.squares + penalty < stairs {
        return Some(Unsteady::Trend {
            change: line.slope * window.len() as f64 / level,
        });
    }
    Some(Unsteady::Step {
        second: starts[at + 1],
        change,
    })
}

fn trend(window: &[f64]) -> Option<Unsteady> {
    let line = Line::through(window);
    let change = line.slope * window.len() as f64 / mean(window);
    let degrees = window.len() as f64 - 2.0;
    let unlikely = two_sided_p(line.slope / line.error, degrees) < 0.01;
    (unlikely && change.abs() >= MATERIAL).then_some(Unsteady::Trend { change })
}

struct Line {
    slope: f64,
    error: f64,
    squares: f64,
}

impl Line {
    fn through(window: &[f64]) -> Line {
        let middle = (window.len() as f64 - 1.0) / 2.0;
        let level = mean(window);
        let (mut xy, mut xx) = (0.0, 0.0);
        for (t, value) in window.iter().enumerate() {
            xy += (t as f64 - middle) * (value - level);
            xx += (t as f64 - middle).powi(2);
        }
        let slope = xy / xx;
        let squares: f64 = window
            .iter()
            .enumerate()
            .map(|(t, v)| (v - level - slope * (t as f64 - middle)).powi(2))
            .sum();
        let error = (squares / (window.len() as f64 - 2.0).max(1.0) / xx)
            .sqrt()
            .max(1e-12 * level.abs());
        Line { slope, error, squares }
    }
}

#[cfg(test)]
mod tests;
