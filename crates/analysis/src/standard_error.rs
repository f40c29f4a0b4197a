//! A standard error, and what becomes of two.

/// A standard error and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StandardError {
    /// In the unit of the value.
    pub value: f64,
    /// Degrees of freedom, not necessarily whole (Welch and Satterthwaite).
    pub degrees: f64,
}

impl StandardError {
    /// Of the sum of two with independent errors (Satterthwaite 1946).
    pub(crate) fn and(self, other: StandardError) -> StandardError {
        let (one, two) = (self.value.powi(2), other.value.powi(2));
        let spread = one.powi(2) / self.degrees + two.powi(2) / other.degrees;
        let degrees = if spread > 0.0 {
            (one + two).powi(2) / spread
        } else {
            self.degrees + other.degrees
        };
        StandardError {
            value: (one + two).sqrt(),
            degrees,
        }
    }
}
