//! Where the level of a series changes.

/// Starts of the segments of constant level into which `series` falls, the first being 0.
///
/// Optimal partitioning with PELT's pruning (Killick, Fearnhead and Eckley 2012), squared error over `variance` as the
/// cost, and the Bayesian information criterion as the penalty: each change adds a level and a place, so 2 ln n. A
/// segment has at least `shortest` seconds. `variance` is that of the noise, its autocorrelation included.
pub fn segment_starts(series: &[f64], shortest: usize, variance: f64) -> Vec<usize> {
    let n = series.len();
    if n < 2 * shortest.max(1) || variance <= 0.0 || variance.is_nan() {
        return vec![0];
    }
    let sums = Sums::new(series);
    let penalty = 2.0 * (n as f64).ln();
    // best[t] is the least cost of the first t values, from[t] the start of the last segment there.
    let mut best = vec![f64::INFINITY; n + 1];
    let mut from = vec![0; n + 1];
    best[0] = -penalty;
    let mut candidates = vec![0];
    for end in shortest..=n {
        if end >= 2 * shortest {
            candidates.push(end - shortest);
        }
        for start in &candidates {
            let total = best[*start] + sums.squares(*start, end) / variance + penalty;
            if total < best[end] {
                best[end] = total;
                from[end] = *start;
            }
        }
        candidates.retain(|start| best[*start] + sums.squares(*start, end) / variance <= best[end]);
    }
    let mut starts = Vec::new();
    let mut end = n;
    while end > 0 {
        starts.push(from[end]);
        end = from[end];
    }
    starts.reverse();
    starts
}

/// Variance of the noise around a changing level: robust, from the differences of neighbours, times the factor by which
/// autocorrelation at lag 1 widens the spread of a mean, (1 + r) / (1 - r).
///
/// Differences see neither steps nor trends, so these do not hide themselves. With r known only through the ratio of the
/// spread of differences at lag 2 to that at lag 1 (for an AR(1) series 1 + r), r is kept within 0 and 0.8.
pub fn noise_variance(series: &[f64]) -> f64 {
    let spread = |lag: usize| {
        let mut gaps: Vec<f64> = series
            .iter()
            .zip(series.iter().skip(lag))
            .map(|(a, b)| (b - a).abs())
            .collect();
        gaps.sort_by(f64::total_cmp);
        // Median absolute deviation of a normal variate, and twice the variance of one value.
        gaps.get(gaps.len() / 2)
            .map_or(0.0, |median| (median / 0.6745).powi(2) / 2.0)
    };
    let (one, two) = (spread(1), spread(2));
    if one <= 0.0 {
        return 0.0;
    }
    let lag = (two / one - 1.0).clamp(0.0, 0.8);
    // Differences of an autocorrelated series are smaller than those of independent values: 1 - r of the variance.
    one / (1.0 - lag) * (1.0 + lag) / (1.0 - lag)
}

struct Sums {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Sums {
    fn new(series: &[f64]) -> Sums {
        let (mut first, mut second) = (vec![0.0], vec![0.0]);
        let centre = crate::warmup::mean(series);
        let (mut a, mut b) = (0.0, 0.0);
        for value in series {
            a += value - centre;
            b += (value - centre).powi(2);
            first.push(a);
            second.push(b);
        }
        Sums { first, second }
    }

    fn squares(&self, start: usize, end: usize) -> f64 {
        let sum = self.first[end] - self.first[start];
        (self.second[end] - self.second[start] - sum * sum / (end - start) as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::{Noise, noisy};

    #[test]
    fn a_planted_step_is_found_where_it_is() {
        let mut alone = 0;
        for seed in 0..50 {
            let mut series = noisy(seed, 60, 1000.0, Noise { sd: 0.01, lag: 0.0 });
            series.iter_mut().skip(25).for_each(|v| *v *= 0.9);
            let starts = segment_starts(&series, 5, noise_variance(&series));
            assert!(
                starts.len() >= 2 && starts.iter().any(|s| s.abs_diff(25) <= 2),
                "{starts:?}"
            );
            alone += usize::from(starts.len() == 2);
        }
        // Noise makes another change in at most a fifth of them.
        assert!(alone >= 40, "{alone} of 50");
    }

    #[test]
    fn noise_is_seldom_taken_for_a_change() {
        let count = |lag| {
            (0..200)
                .filter(|seed| {
                    let series = noisy(*seed, 60, 1000.0, Noise { sd: 0.01, lag });
                    segment_starts(&series, 5, noise_variance(&series)).len() > 1
                })
                .count()
        };
        assert!(count(0.0) < 40, "{}", count(0.0));
        assert!(count(0.5) < 60, "{}", count(0.5));
    }

    #[test]
    fn segments_are_never_shorter_than_asked() {
        for seed in 0..50 {
            let series = noisy(seed, 43, 10.0, Noise { sd: 0.5, lag: 0.9 });
            let mut starts = segment_starts(&series, 5, 0.01);
            // So much noise is all changes to who takes it for so little.
            assert!(starts.len() > 3, "{starts:?}");
            starts.push(series.len());
            assert!(starts.windows(2).all(|pair| pair[1] - pair[0] >= 5), "{starts:?}");
        }
    }
}
