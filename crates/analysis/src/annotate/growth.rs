//! How much dearer something got from one rung to another.

use scaleprof_bundle::Estimate;

/// What was seen of something at one rung.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// What it costs; none where no thread was seen in it.
    pub cost: Option<Estimate>,
    /// What it costs less than, where nobody was seen; none where nothing was sampled at all.
    pub least_seen: Option<f64>,
}

impl Sight {
    /// Where nobody was seen it is not known to be nothing: few samples miss much.
    fn estimate(self) -> Estimate {
        self.cost.unwrap_or(Estimate {
            value: 0.0,
            low: self.least_seen.map(|_| 0.0),
            high: self.least_seen,
        })
    }
}

/// The difference of two independent figures with its 95 % interval. None where nothing is compared (`before` is none), or it was
/// seen at neither rung; without limits where a figure has none.
pub(super) fn growth(before: Option<Sight>, after: Sight) -> Option<Estimate> {
    let before = before.filter(|before| before.cost.is_some() || after.cost.is_some())?;
    let (before, after) = (before.estimate(), after.estimate());
    let value = after.value - before.value;
    // The upper side: the lower one is cut off at 0.
    let half = |estimate: Estimate| estimate.high.map(|high| high - estimate.value);
    let half = half(before).zip(half(after)).map(|(a, b)| a.hypot(b));
    Some(Estimate {
        value,
        low: half.map(|half| value - half),
        high: half.map(|half| value + half),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, half: f64) -> Option<Estimate> {
        Some(Estimate {
            value,
            low: Some(value - half),
            high: Some(value + half),
        })
    }

    fn seen(cost: Option<Estimate>) -> Sight {
        Sight {
            cost,
            least_seen: Some(3.0),
        }
    }

    #[test]
    fn errors_of_independent_figures_add_as_squares() {
        let found = growth(Some(seen(estimate(10.0, 3.0))), seen(estimate(25.0, 4.0)));
        assert_eq!(found, estimate(15.0, 5.0));
    }

    #[test]
    fn what_was_not_seen_is_known_to_be_small_and_not_to_be_nothing() {
        assert_eq!(growth(Some(seen(None)), seen(estimate(25.0, 4.0))), estimate(25.0, 5.0));
        assert_eq!(
            growth(Some(seen(estimate(25.0, 4.0))), seen(None)),
            estimate(-25.0, 5.0)
        );
        // One sample here and none there is no growth.
        let (low, _) = growth(Some(seen(None)), seen(estimate(1.0, 1.0)))
            .and_then(|found| found.low.zip(found.high))
            .expect("limits");
        assert!(low < 0.0, "{low}");
        let nothing_sampled = Sight {
            cost: None,
            least_seen: None,
        };
        let found = growth(Some(nothing_sampled), seen(estimate(1.0, 0.1))).expect("a value");
        assert_eq!((found.value, found.low, found.high), (1.0, None, None));
    }

    #[test]
    fn nothing_is_told_of_what_is_not_compared_or_was_not_seen() {
        assert_eq!(growth(None, seen(estimate(1.0, 1.0))), None);
        assert_eq!(growth(Some(seen(None)), seen(None)), None);
        let unsure = Estimate {
            value: 3.0,
            low: None,
            high: None,
        };
        let found = growth(Some(seen(estimate(1.0, 1.0))), seen(Some(unsure))).unwrap();
        assert_eq!((found.value, found.low), (2.0, None));
    }
}
