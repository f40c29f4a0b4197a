//! A figure, or why there is none.

/// A figure of the time between two samples (or, if its name ends in `_level`, of the later one).
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Such as `server.cpu_user_seconds`: seconds, bytes or a plain count, as the name says.
    pub name: &'static str,
    /// The value, already scaled up where only a share was counted and the share is known exactly.
    pub value: f64,
    /// Which share of what happened was really counted (1 = all). `None` for sources that always count all.
    pub running_share: Option<f64>,
}

/// A figure that could not be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name, as in [`Counter::name`].
    pub figure: &'static str,
    /// Why, with the command that mends it where there is one.
    pub reason: String,
}
