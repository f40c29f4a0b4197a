//! Why a throughput did not settle, in words.

use std::fmt;

/// Shortest series of which anything is said, seconds.
pub const SHORTEST: usize = 10;

/// Why a series is not steady. Seconds count from the start of the measurement.
#[derive(Debug, Clone, PartialEq)]
pub enum Unsteady {
    /// Too short to tell.
    TooShort {
        /// Its length, seconds.
        seconds: usize,
    },
    /// It keeps rising or falling.
    Trend {
        /// Relative change from the window's start to its end.
        change: f64,
    },
    /// It jumps to another level.
    Step {
        /// The second of the largest jump.
        second: usize,
        /// The jump's relative size.
        change: f64,
    },
    /// It swings.
    Oscillation {
        /// Seconds from crest to crest, about.
        period: f64,
        /// From the mean to the crest, relative.
        amplitude: f64,
    },
    /// It nearly stops.
    Stall {
        /// First second with less than half of the median.
        second: usize,
        /// How many such seconds there are.
        seconds: usize,
    },
    /// The halves of the window differ without a clear form.
    Jitter {
        /// By how much, relative.
        jitter: f64,
    },
}

impl fmt::Display for Unsteady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsteady::TooShort { seconds } => {
                write!(f, "too short: {seconds} s measured, {SHORTEST} s required")
            }
            Unsteady::Trend { change } => {
                write!(f, "trend: throughput moves by {:+.1} % over the window", change * 100.0)
            }
            Unsteady::Step { second, change } => {
                write!(
                    f,
                    "step: throughput jumps by {:+.1} % at second {second}",
                    change * 100.0
                )
            }
            Unsteady::Oscillation { period, amplitude } => {
                write!(
                    f,
                    "oscillation: throughput swings by {:.0} % about every {period:.0} s",
                    amplitude * 100.0
                )
            }
            Unsteady::Stall { second, seconds } => {
                write!(
                    f,
                    "stall: {seconds} s with less than half of the median throughput, the first at second {second}"
                )
            }
            Unsteady::Jitter { jitter } => {
                write!(
                    f,
                    "jitter: the halves of the window differ by {:.1} %, 2 % are allowed",
                    jitter * 100.0
                )
            }
        }
    }
}
