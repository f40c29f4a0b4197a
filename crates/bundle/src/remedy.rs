//! Settings that may relieve a finding, and what became of throughput where they were tried.

use crate::Estimate;
use scaleprof_vocabulary::ExperimentVerdict;
use serde::{Deserialize, Serialize};

/// A setting of the server that may help, as it would be given with `--set`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Remedy {
    /// Its name.
    pub setting: String,
    /// The value to try.
    pub value: String,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} = {}", self.setting, self.value)
    }
}

/// A remedy that was tried (`run --try`): servers with it and servers without in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemedyResult {
    /// What was tried.
    #[serde(flatten)]
    pub remedy: Remedy,
    /// The rung at which it was.
    pub connections: u32,
    /// Throughput with it over throughput without; none where it could not be measured.
    pub throughput: Option<Estimate>,
    /// Pairs of server starts behind it.
    pub pairs: u32,
    /// Throughput with it against throughput without; `None` if it could not be measured.
    pub verdict: Option<ExperimentVerdict>,
    /// An interval within this share to either side counts as no difference.
    pub margin: Option<f64>,
    /// Why it could not be measured, or why the figure is not to be relied on.
    pub caveat: Option<String>,
}
