//! How much dearer something got from one rung to another.

use scaleprof_bundle::Estimate;

/// The difference of two independent figures with its 95 % interval; a figure that is missing is 0, since nobody was seen there.
/// None where nothing is compared, or both are missing; without limits where a figure has none.
pub(super) fn growth(is_compared: bool, before: Option<Estimate>, after: Option<Estimate>) -> Option<Estimate> {
    if !is_compared || (before.is_none() && after.is_none()) {
        return None;
    }
    const NOTHING: Estimate = Estimate {
        value: 0.0,
        low: Some(0.0),
        high: Some(0.0),
    };
    let (before, after) = (before.unwrap_or(NOTHING), after.unwrap_or(NOTHING));
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

    #[test]
    fn errors_of_independent_figures_add_as_squares() {
        assert_eq!(
            growth(true, estimate(10.0, 3.0), estimate(25.0, 4.0)),
            estimate(15.0, 5.0)
        );
        assert_eq!(growth(true, None, estimate(25.0, 4.0)), estimate(25.0, 4.0));
        assert_eq!(growth(true, estimate(25.0, 4.0), None), estimate(-25.0, 4.0));
    }

    #[test]
    fn nothing_is_told_of_what_is_not_compared_or_was_not_seen() {
        assert_eq!(growth(false, None, estimate(1.0, 1.0)), None);
        assert_eq!(growth(true, None, None), None);
        let unsure = Estimate {
            value: 3.0,
            low: None,
            high: None,
        };
        let found = growth(true, estimate(1.0, 1.0), Some(unsure)).unwrap();
        assert_eq!((found.value, found.low), (2.0, None));
    }
}
