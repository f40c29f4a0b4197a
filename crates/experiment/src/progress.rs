//! Telling whoever watches how far a run is.

use scaleprof_workload::schema::FillProgress;

/// A measurement that is about to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasurementStart {
    /// Its number, from 0.
    pub measurement: u32,
    /// Measurements in all, as far as is known now.
    pub of: u32,
    /// Connections of the rung.
    pub connections: u32,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Seconds it takes; none where it ends when every connection has run its script once.
    pub seconds: Option<u32>,
}

/// A measurement that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasurementDone {
    /// Connections of the rung.
    pub connections: u32,
    /// Transactions per second over the whole measurement, warm-up included.
    pub throughput: f64,
}

/// Hears how far a run is. All methods do nothing unless they are written.
#[allow(unused_variables)]
pub trait Progress {
    /// Something takes its time; in words such as "starting the server".
    fn stage(&mut self, what: &str) {}
    /// The tables are being filled.
    fn filling(&mut self, progress: FillProgress) {}
    /// A measurement begins.
    fn measurement_begins(&mut self, start: MeasurementStart) {}
    /// Its connections are being opened.
    fn connecting(&mut self, open: u32, wanted: u32) {}
    /// A second of it is over, with so many transactions and such a 99th percentile (nanoseconds).
    fn second(&mut self, second: u32, transactions: u64, p99_ns: u64) {}
    /// A second of watching a server is over, of so many; it has so many threads.
    fn watched(&mut self, second: u32, of: u32, threads: usize) {}
    /// It is over.
    fn measurement_done(&mut self, done: MeasurementDone) {}
    /// Rungs were added around the peak and the fall-over.
    fn refined(&mut self, rungs: &[u32]) {}
    /// Something that the reader of the figures should know.
    fn warning(&mut self, text: &str) {}
    /// Something stays behind on purpose; in words, with how to be rid of it.
    fn remains(&mut self, text: &str) {}
}
