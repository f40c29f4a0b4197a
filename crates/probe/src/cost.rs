//! What counting itself costs: the CPU time of a sample, and the throughput it takes from the server.

use std::time::Duration;

use crate::sampler::Sampler;

/// CPU time that one sample costs the sampling thread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterCost {
    /// Nanoseconds of CPU time of one sample, median of several.
    pub nanoseconds_per_sample: f64,
    /// Nanoseconds of the dearest of them.
    pub most_nanoseconds: f64,
    /// Share of one CPU that one sample a second takes (0 to 1).
    pub share_of_one_cpu: f64,
}

impl CounterCost {
    /// Takes `samples` samples one after the other (at least one) and measures them. Hardware groups take a turn at each.
    pub fn measure(sampler: &mut Sampler, samples: u32) -> Self {
        let costs: Vec<f64> = (0..samples.max(1))
            .map(|_| nanoseconds(sampler.sample().cost()))
            .collect();
        let most = costs.iter().copied().fold(0.0, f64::max);
        let middle = median(&costs).unwrap_or(0.0);
        Self {
            nanoseconds_per_sample: middle,
            most_nanoseconds: most,
            share_of_one_cpu: middle / 1e9,
        }
    }
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}

/// What counting takes from the server, from windows with and without it.
///
/// The caller runs the load and alternates [`Sampler::suspend_counting`] and [`Sampler::resume_counting`]; cgroup-filtered
/// hardware counters are loaded anew whenever a CPU passes from the server to another process, which costs most where the
/// client shares the server's CPUs in a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CountingLoss {
    /// Share of throughput lost to counting, median over pairs of neighbouring windows; negative if it was faster.
    pub share: f64,
    /// The smallest and the largest share of any pair: how far chance goes.
    pub range: (f64, f64),
    /// Number of pairs.
    pub pairs: usize,
}

/// Compares throughputs of neighbouring windows: (with counting, without). Pairs without a positive throughput do not
/// count; `None` if none is left.
pub fn counting_loss(pairs: &[(f64, f64)]) -> Option<CountingLoss> {
    let shares: Vec<f64> = pairs
        .iter()
        .filter(|(with, without)| with.is_finite() && without.is_finite() && *with >= 0.0 && *without > 0.0)
        .map(|(with, without)| 1.0 - with / without)
        .collect();
    let lowest = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(CountingLoss {
        share: median(&shares)?,
        range: (lowest, highest),
        pairs: shares.len(),
    })
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[middle - 1], upper)
    } else {
        upper
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_odd_window_does_not_decide() {
        let loss = counting_loss(&[(98.0, 100.0), (50.0, 100.0), (99.0, 100.0)]).expect("pairs");
        assert!((loss.share - 0.02).abs() < 1e-9);
        assert!((loss.range.0 - 0.01).abs() < 1e-9 && (loss.range.1 - 0.5).abs() < 1e-9);
        assert_eq!(loss.pairs, 3);
    }

    #[test]
    fn windows_without_throughput_are_no_evidence() {
        assert_eq!(counting_loss(&[(1.0, 0.0), (f64::NAN, 1.0)]), None);
    }
}
