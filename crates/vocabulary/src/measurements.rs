//! How a measurement went, and what was timed in it.

use crate::word::words;

words! {
    /// How a measurement ended.
    MeasurementOutcome {
        /// As it was meant to.
        Complete: "complete",
        /// By an error of a statement.
        Failed: "failed" ("a statement failed"),
        /// The server died.
        ServerDied: "server_died" ("the server died"),
        /// Somebody interrupted it.
        Interrupted: "interrupted" ("it was interrupted"),
    }
}

words! {
    /// Which time of a transaction or a statement.
    LatencyKind {
        /// From its first byte sent to its last byte received.
        Service: "service" ("service time"),
        /// From when it was to begin: in the open loop that may be earlier.
        Response: "response" ("response time"),
    }
}

words! {
    /// What was timed.
    Operation {
        /// A whole transaction.
        Transaction: "transaction",
        /// One statement of it.
        Statement: "statement",
    }
}
