//! What is wrong with a plan.

/// A plan that cannot be carried out: where, what, and how to fix it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PlanError {
    /// No TOML, or a key that no plan has.
    #[error("{file}{}: {problem}\nfix: see docs/experiment.md for every key", line.map_or(String::new(), |line| format!(", line {line}")))]
    Unreadable {
        /// The plan.
        file: String,
        /// Line of it, from 1.
        line: Option<usize>,
        /// What.
        problem: String,
    },
    /// A key whose value will not do.
    #[error("{}{key}: {problem}\nfix: {fix}", file.as_ref().map_or(String::new(), |file| format!("{file}: ")))]
    Key {
        /// The plan; none where the command line said it.
        file: Option<String>,
        /// Such as `design.pairs`.
        key: String,
        /// What is wrong.
        problem: String,
        /// What would do.
        fix: String,
    },
}

impl PlanError {
    /// A key whose value will not do.
    pub(crate) fn key(key: impl Into<String>, problem: impl Into<String>, fix: impl Into<String>) -> PlanError {
        PlanError::Key {
            file: None,
            key: key.into(),
            problem: problem.into(),
            fix: fix.into(),
        }
    }

    /// The same as said by a plan in a file.
    pub(crate) fn in_file(self, name: Option<&str>) -> PlanError {
        match self {
            PlanError::Key {
                file: None,
                key,
                problem,
                fix,
            } if !key.starts_with("--") => PlanError::Key {
                file: name.map(str::to_owned),
                key,
                problem,
                fix,
            },
            other => other,
        }
    }
}
