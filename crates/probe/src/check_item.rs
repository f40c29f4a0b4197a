//! One line of what `check` found.

/// How good it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but figures may be disturbed or incomplete.
    Warn,
    /// Something cannot be measured or run.
    Lack,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckItem {
    /// What was looked at, such as `hardware counters`.
    pub topic: &'static str,
    /// How good it is.
    pub status: Status,
    /// What was found.
    pub what: String,
    /// The command that mends it; always there for a lack.
    pub mend: Option<String>,
    /// What was printed on the way, for whoever looks into it.
    pub log: Vec<String>,
}

impl CheckItem {
    pub(crate) fn new(topic: &'static str, status: Status, what: impl Into<String>, mend: Option<String>) -> Self {
        Self {
            topic,
            status,
            what: what.into(),
            mend,
            log: Vec::new(),
        }
    }

    pub(crate) fn with_log(self, log: Vec<String>) -> Self {
        Self { log, ..self }
    }

    /// What is as it should be.
    pub fn ok(topic: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, Status::Ok, what, None)
    }

    /// What works, and may disturb figures; with the command that mends it.
    pub fn warn(topic: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::new(topic, Status::Warn, what, Some(mend.into()))
    }

    /// What keeps something from being measured or run; with the command that mends it.
    pub fn lack(topic: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::new(topic, Status::Lack, what, Some(mend.into()))
    }
}
