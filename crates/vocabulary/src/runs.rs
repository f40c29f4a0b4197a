//! How a run stands, and what its ladder or an experiment shows.

use crate::word::words;

words! {
    /// How a run stands.
    RunState {
        /// It runs, or was killed before it could say otherwise.
        Running: "running",
        /// Every rung was measured.
        Complete: "complete",
        /// The user stopped it.
        Interrupted: "interrupted",
        /// It could not go on.
        Failed: "failed",
    }
}

words! {
    /// How throughput goes as connections are added.
    LadderVerdict {
        /// It rises to its peak and holds at least 95 % of it.
        Scales: "scales",
        /// It surely loses some of its peak, too little to call it a fall. No run has this verdict yet.
        Declines: "declines",
        /// A rung past the peak surely loses more than 5 %.
        FallsOver: "falls_over" ("falls over"),
        /// Fewer than three rungs count, the load is an open loop, too few connections were at work at
        /// the last rung, or that is below 95 % of the peak and a fall is not sure.
        Inconclusive: "inconclusive",
    }
}

words! {
    /// How the throughput of a variant compares with its base.
    ExperimentVerdict {
        /// Significantly more.
        Faster: "faster",
        /// Significantly less.
        Slower: "slower",
        /// The whole interval of the ratio is within the margin, even if the difference is significant:
        /// so little does not matter, and two starts of the same server may differ as much.
        NoDifference: "no_difference" ("no difference"),
        /// Neither: the interval is too wide.
        Inconclusive: "inconclusive",
    }
}
