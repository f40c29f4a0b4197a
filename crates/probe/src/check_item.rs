//! One line of what `check` found.

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but figures may be disturbed or incomplete.
    Warn,
    /// Something cannot be measured.
    Missing,
    /// A run cannot work.
    Required,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckItem {
    /// What was looked at, such as `hardware counters`.
    pub topic: &'static str,
    /// How good it is.
    pub status: Status,
    /// What was found.
    pub message: String,
    /// The command that fixes it; always there for what is missing.
    pub fix: Option<String>,
    /// What was printed on the way, for whoever looks into it.
    pub log: Vec<String>,
}

impl CheckItem {
    pub(crate) fn new(topic: &'static str, status: Status, message: impl Into<String>, fix: Option<String>) -> Self {
        Self {
            topic,
            status,
            message: message.into(),
            fix,
            log: Vec::new(),
        }
    }

    pub(crate) fn with_log(self, log: Vec<String>) -> Self {
        Self { log, ..self }
    }

    /// What is as it should be.
    pub fn ok(topic: &'static str, message: impl Into<String>) -> Self {
        Self::new(topic, Status::Ok, message, None)
    }

    /// What works, and may disturb figures; with the command that fixes it.
    pub fn warn(topic: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(topic, Status::Warn, message, Some(fix.into()))
    }

    /// What keeps a run from working; with the command that fixes it.
    pub fn required(topic: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(topic, Status::Required, message, Some(fix.into()))
    }

    /// What keeps something from being measured; with the command that fixes it.
    pub fn missing(topic: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(topic, Status::Missing, message, Some(fix.into()))
    }
}
