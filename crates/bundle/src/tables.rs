//! The rows of a bundle's tables.
//!
//! A *measurement* is one repeat of one rung: a rung that is repeated three times has three
//! measurements. Measurements are numbered in the order in which they ran, so the number is also
//! the clock of the run.

use scaleprof_vocabulary::{LatencyKind, MeasurementOutcome, Operation, SettingSource};

/// Microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcMicros(pub i64);

/// One measurement (table `measurements`).
#[derive(Debug, Clone, PartialEq)]
pub struct MeasurementRow {
    /// Position in the run's order, from 0.
    pub measurement: i32,
    /// Connections that run transactions.
    pub connections: i32,
    /// Connections that are open and do nothing.
    pub idle_connections: i32,
    /// Which repeat of this rung it is, from 0.
    pub repeat: i32,
    /// Transactions per second that the open loop offered; none in the closed loop.
    pub offered_rate: Option<f64>,
    /// Start of second 0.
    pub started_at: UtcMicros,
    /// How long it took to open the connections, seconds.
    pub connect_seconds: f64,
    /// How it ended.
    pub outcome: MeasurementOutcome,
    /// 99th percentile of the time from a socket being ready to being served by the client, microseconds.
    pub client_lag_p99_us: Option<f64>,
    /// Threads of the client.
    pub client_threads: i32,
    /// Resident memory of the client at the end of the measurement, bytes.
    pub client_resident_bytes: Option<i64>,
}

/// One second of one measurement (table `seconds`). Warm-up seconds are kept too; the analysis cuts
/// them.
#[derive(Debug, Clone, PartialEq)]
pub struct SecondRow {
    /// The measurement.
    pub measurement: i32,
    /// Second of the measurement, from 0.
    pub second: i32,
    /// When it began.
    pub started_at: UtcMicros,
    /// How long it really was, nanoseconds.
    pub duration_ns: i64,
    /// Transactions that committed in it.
    pub transactions: i64,
    /// Statements answered in it (BEGIN and COMMIT count).
    pub queries: i64,
    /// Statements that returned a result set.
    pub reads: i64,
    /// Statements that changed rows.
    pub writes: i64,
    /// Errors of the server in it, the retried ones included.
    pub errors: i64,
    /// Transactions begun again after a deadlock or lock wait timeout.
    pub retries: i64,
    /// Sum of the service times (first send to last reply) of the transactions that ended in it, nanoseconds.
    pub service_sum_ns: i64,
    /// Sum of their response times (intended start to last reply), nanoseconds; the same in the closed loop.
    pub response_sum_ns: i64,
    /// Time that connections spent inside transactions in it, nanoseconds, whether or not these ended in it. Over the length
    /// of the second times the connections it is X·R/N.
    pub in_transaction_ns: i64,
    /// Percentiles of the service time in it, nanoseconds; none where no transaction ended.
    pub p50_ns: Option<i64>,
    /// 95th percentile.
    pub p95_ns: Option<i64>,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// The longest.
    pub max_ns: Option<i64>,
}

/// One counter in one second of one measurement (table `counters`): the change in that second, or
/// the level for the names that end in `_level`. docs/bundle.md lists the names and units.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterRow {
    /// The measurement.
    pub measurement: i32,
    /// The second; none for a figure of the whole measurement.
    pub second: Option<i32>,
    /// Its name, such as `server.cpu_user_seconds`, `hw.instructions`, `status.Com_commit`.
    pub counter: String,
    /// Its value in the unit that the name says.
    pub value: f64,
    /// Share of the time in which it was really counted, where the kernel multiplexed; 1 or none otherwise.
    pub running_share: Option<f64>,
}

/// One bucket of a latency histogram (table `latency`).
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyRow {
    /// The measurement.
    pub measurement: i32,
    /// The second.
    pub second: i32,
    /// Which time.
    pub kind: LatencyKind,
    /// What took it.
    pub operation: Operation,
    /// Which statement of a script, or which kind of transaction where a workload has several, from
    /// 1; none for all transactions together.
    pub number: Option<i32>,
    /// The name of the kind, such as `new_order`, or the verb of the statement, such as `SELECT`;
    /// none where there is none, and for a verb that is not well known.
    pub name: Option<String>,
    /// The highest value of the bucket, nanoseconds.
    pub value_ns: i64,
    /// How many fell into it.
    pub count: i64,
}

impl LatencyRow {
    /// Whether it counts transactions of all kinds.
    #[must_use]
    pub fn is_of_all_transactions(&self) -> bool {
        self.operation == Operation::Transaction && self.number.is_none()
    }
}

/// Errors of one kind in one measurement (table `errors`).
#[derive(Debug, Clone, PartialEq)]
pub struct ErrorRow {
    /// The measurement.
    pub measurement: i32,
    /// The server's error number.
    pub error_code: i32,
    /// The kind of statement that met it, such as `index_updates` or `statement 3`; never its text.
    pub statement: String,
    /// How often.
    pub count: i64,
    /// Whether the transaction was begun again.
    pub retried: bool,
}

/// One setting of the server (table `settings`). Names of hosts, users and paths are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingRow {
    /// Its name, as in SHOW GLOBAL VARIABLES.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The value that it has when nobody sets it; none where the server does not say.
    pub default_value: Option<String>,
    /// Where its value comes from; `None` if the server does not say.
    pub set_by: Option<SettingSource>,
}

impl SettingRow {
    /// A setting of which only the value is known.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> SettingRow {
        SettingRow {
            name: name.into(),
            value: value.into(),
            default_value: None,
            set_by: None,
        }
    }
}
