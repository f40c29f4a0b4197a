//! How throughput went in one measurement.

use crate::unsteady::{SHORTEST, Unsteady};
use crate::warmup::{mean, warmup_seconds};

/// How throughput went in one measurement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Course {
    /// Its place in the order of the run.
    pub measurement: i32,
    /// Mean of the measured window, transactions per second.
    pub mean: f64,
    /// By which part it rose while it was measured, where its head is one of warming up.
    pub warming: Option<f64>,
    /// By which part it moved for good within the window otherwise.
    pub moved: Option<f64>,
}

impl Course {
    /// `rates`: of each second after the `warmup` seconds that were cut off.
    pub(crate) fn of(measurement: i32, warmup: usize, rates: &[f64], problem: Option<&Unsteady>) -> Course {
        let unsettled = warmup == 0 && rates.len() >= SHORTEST && warmup_seconds(rates).is_none();
        let third = rates.len() / 3;
        let rise = || mean(&rates[rates.len() - third..]) / mean(&rates[..third]) - 1.0;
        let moved = problem.and_then(|problem| match problem {
            Unsteady::Trend { change } | Unsteady::Step { change, .. } => Some(*change),
            _ => None,
        });
        let warming = match moved {
            Some(change) if (warmup > 0 || unsettled) && change > 0.0 => Some(change),
            _ => unsettled.then(rise).filter(|rise| rise.is_finite() && *rise > 0.0),
        };
        Course {
            measurement,
            mean: mean(rates),
            warming,
            moved: moved.filter(|_| warming.is_none()),
        }
    }
}
