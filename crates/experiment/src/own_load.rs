//! Watching a program that does transactions by itself and counts them, as a run watches a server.

use crate::instructions::keep_code;
use crate::observe::{counter_rows, now};
use crate::stretch::Stretch;
use crate::threads::{Load, ThreadWatch};
use scaleprof_bundle::{BundleError, BundleWriter, MeasurementRow, MeasurementRows, SecondRow, UtcMicros};
use scaleprof_probe::{ProbeError, Sample, Sampler, SamplerOptions, WatchOptions};
use scaleprof_vocabulary::MeasurementOutcome;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The probes of a run on a process that needs no client: its threads do one transaction after another in a closed loop.
///
/// So the way from what the kernel tells to a finding can be tested on programs whose disease is known.
pub struct OwnLoad {
    threads: ThreadWatch,
    sampler: Sampler,
}

/// One measurement of a rung of such a program.
#[derive(Debug, Clone)]
pub struct OwnMeasurement {
    /// Its number in the bundle.
    pub measurement: i32,
    /// Which repeat of its rung it is.
    pub repeat: i32,
    /// The threads that do transactions, by their numbers.
    pub workers: BTreeSet<u32>,
    /// How long it is, seconds.
    pub seconds: u32,
}

impl OwnLoad {
    /// Begins to watch a process.
    ///
    /// # Errors
    /// Where its threads cannot be watched or its counters not be read.
    pub fn start(pid: u32, options: WatchOptions) -> Result<OwnLoad, ProbeError> {
        let (threads, _) = ThreadWatch::start(pid, options)?;
        let options = SamplerOptions {
            leave_cgroup: true,
            ..SamplerOptions::default()
        };
        let sampler = Sampler::start(pid, options)?;
        Ok(OwnLoad { threads, sampler })
    }

    /// Watches for the time of one measurement. `transactions` tells how many its threads have done
    /// since it began, all together; it is asked at the start and at the end of every second.
    pub fn measurement(
        &mut self,
        measurement: &OwnMeasurement,
        mut transactions: impl FnMut() -> u64,
    ) -> (MeasurementRow, MeasurementRows) {
        let began = Instant::now();
        let mut boundaries = vec![self.boundary(measurement.seconds == 0, &mut transactions)];
        let started_at = now();
        for second in 1..=measurement.seconds {
            let until = began + Duration::from_secs(u64::from(second));
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            boundaries.push(self.boundary(second == measurement.seconds, &mut transactions));
        }
        let connections = measurement.workers.len();
        let mut rows = MeasurementRows::default();
        for (second, pair) in (0..).zip(boundaries.windows(2)) {
            rows.seconds.push(second_row(
                (measurement.measurement, second),
                started_at,
                &pair[0],
                &pair[1],
                connections,
            ));
        }
        let (samples, mut stretches): (Vec<Sample>, Vec<Stretch>) = boundaries
            .into_iter()
            .map(|boundary| (boundary.sample, boundary.stretch))
            .unzip();
        rows.counters = counter_rows(measurement.measurement, &samples).0;
        self.threads.add_rows(
            measurement.measurement,
            started_at,
            Load::Of(&measurement.workers),
            &mut stretches,
            &mut rows,
        );
        let rung = MeasurementRow {
            measurement: measurement.measurement,
            connections: i32::try_from(connections).unwrap_or(i32::MAX),
            idle_connections: 0,
            repeat: measurement.repeat,
            offered_rate: None,
            started_at,
            connect_seconds: 0.0,
            outcome: MeasurementOutcome::Complete,
            client_lag_p99_us: None,
            client_threads: 1,
            client_resident_bytes: None,
        };
        (rung, rows)
    }

    /// Writes the machine code of the hot functions, as a run does when its measurements are written.
    ///
    /// # Errors
    /// The bundle cannot be read back or written.
    pub fn keep_code(&mut self, bundle: &BundleWriter) -> Result<(), BundleError> {
        keep_code(bundle, &mut self.threads).map(drop)
    }

    fn boundary(&mut self, at_end: bool, transactions: &mut impl FnMut() -> u64) -> Boundary {
        let sample = match at_end {
            true => self.sampler.sample_at_end_of_measurement(),
            false => self.sampler.sample(),
        };
        let stretch = self.threads.read();
        Boundary {
            at: Instant::now(),
            transactions: transactions(),
            sample,
            stretch,
        }
    }
}

/// What was read between two seconds.
struct Boundary {
    at: Instant,
    transactions: u64,
    sample: Sample,
    stretch: Stretch,
}

/// A second of threads that are always inside of a transaction. How long one took they do not tell; on average it is the time of
/// all of them over the transactions that ended.
fn second_row(
    (measurement, second): (i32, i32),
    started_at: UtcMicros,
    begin: &Boundary,
    end: &Boundary,
    connections: usize,
) -> SecondRow {
    let signed = |n: u128| i64::try_from(n).unwrap_or(i64::MAX);
    let duration_ns = signed(end.at.duration_since(begin.at).as_nanos());
    let transactions = signed(u128::from(end.transactions.saturating_sub(begin.transactions)));
    let in_transaction_ns = duration_ns.saturating_mul(i64::try_from(connections).unwrap_or(i64::MAX));
    SecondRow {
        measurement,
        second,
        started_at: UtcMicros(started_at.0 + i64::from(second) * 1_000_000),
        duration_ns,
        transactions,
        queries: transactions,
        reads: 0,
        writes: 0,
        errors: 0,
        retries: 0,
        service_sum_ns: in_transaction_ns,
        response_sum_ns: in_transaction_ns,
        in_transaction_ns,
        p50_ns: None,
        p95_ns: None,
        p99_ns: None,
        max_ns: None,
    }
}
