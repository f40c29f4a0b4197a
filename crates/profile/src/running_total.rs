//! Whole numbers in place of fractions, without losing what many small ones come to.

/// Rounds values one behind the other so that what was given is never off by more than a half from what was asked for, in total
/// and so by no more than one over any stretch of them. Each value by itself is off by less than one.
///
/// A hundred thousand call paths of 0.3 µs would all be 0 if each were rounded by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunningTotal {
    exact: f64,
    given: i64,
}

impl RunningTotal {
    /// The whole number for the next value.
    pub(crate) fn next(&mut self, value: f64) -> i64 {
        self.exact += value;
        // `as` takes what is no number as 0 and what is too large as the largest.
        let total = self.exact.round() as i64;
        let given = total.saturating_sub(self.given);
        self.given = total;
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_stretch_is_off_by_one_at_most(values in vec(0.0..3.0, 1..200), cut in 0..200_usize) {
            let mut total = RunningTotal::default();
            let given: Vec<i64> = values.iter().map(|value| total.next(*value)).collect();
            let cut = cut.min(values.len());
            for part in [0..cut, cut..values.len(), 0..values.len()] {
                let exact: f64 = values[part.clone()].iter().sum();
                let sum: i64 = given[part].iter().sum();
                prop_assert!((sum as f64 - exact).abs() <= 1.0 + 1e-9);
            }
            prop_assert!(given.iter().zip(&values).all(|(given, value)| (*given as f64 - value).abs() < 1.0 + 1e-9 && *given >= 0));
        }
    }
}
