//! What sets the pace of a load.

use scaleprof_bundle::Workload;
use scaleprof_vocabulary::LoopWord;

/// What begins the next transaction of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pacing {
    /// The end of the one before.
    Closed,
    /// Its appointment.
    Open,
    /// A pause behind the end of the one before: users who read and type.
    Paused,
    /// Nothing: every connection runs one.
    Once,
    /// The end of the one before; only how many there were in all was told, with an imported recording.
    Told,
}

impl Pacing {
    pub(crate) fn of(workload: &Workload) -> Pacing {
        let once = |(name, value): &(String, String)| name == "repetition" && value == "once";
        match workload.loop_kind {
            Some(LoopWord::Open) => Pacing::Open,
            _ if workload.imported().is_some() => Pacing::Told,
            _ if workload.options.iter().any(once) => Pacing::Once,
            _ if workload.options.iter().any(|(name, _)| name == "think_times") => Pacing::Paused,
            _ => Pacing::Closed,
        }
    }
}
