//! Listening to a load: what a measurement's tables are made of.

use crate::beside_cpu::BesideCpu;
use crate::progress::Progress;
use crate::replica_watch::ReplicaWatch;
use crate::status_watch::StatusWatch;
use crate::stretch::Stretch;
use crate::threads::ThreadWatch;
use crate::turns::{Player, Seat};
use scaleprof_bundle::{CounterRow, ErrorRow, LatencyRow, SecondRow, UtcMicros};
use scaleprof_probe::{Counter, Sample, Sampler, delta, missing};
use scaleprof_vocabulary::{LatencyKind, Operation};
use scaleprof_workload::{LoadObserver, Program, SecondRecord, ThreadTimes};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a measurement is to be and how much of nothing it may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Length {
    /// Seconds; for a program that runs once, the most it may take.
    pub(crate) seconds: u32,
    /// Whether it ends when every connection has run its program once.
    pub(crate) once: bool,
    /// Seconds without an answered statement after which something must be wrong.
    pub(crate) standstill_seconds: u32,
}

/// What is asked at the end of every second beside the load; what cannot be had is not there.
pub(crate) struct Asked<'a> {
    pub(crate) sampler: Option<&'a mut Sampler>,
    pub(crate) threads: Option<&'a mut ThreadWatch>,
    pub(crate) status: Option<StatusWatch>,
    pub(crate) replicas: Option<ReplicaWatch>,
    pub(crate) beside: BesideCpu,
    /// Where the load takes turns with others.
    pub(crate) turns: Option<(Seat, Player)>,
}

/// Collects one measurement.
pub(crate) struct MeasurementObserver<'a> {
    measurement: i32,
    progress: &'a mut dyn Progress,
    sampler: Option<&'a mut Sampler>,
    samples: Vec<Sample>,
    pub(crate) started_at: UtcMicros,
    pub(crate) seconds: Vec<SecondRow>,
    pub(crate) latency: Vec<LatencyRow>,
    errors: BTreeMap<(u16, u16), u64>,
    lag: hdrhistogram::Histogram<u64>,
    idle_seconds: u32,
    /// Asks the load to stop when the server stands still.
    give_up: &'a AtomicBool,
    statement_names: Vec<String>,
    statement_verbs: Vec<Option<&'static str>>,
    transaction_names: Vec<String>,
    began: Option<Instant>,
    /// Starts and ends of seconds that were sampled.
    boundaries_seen: u32,
    /// The sample at the end of the last second is the thorough one.
    length: Length,
    status: Option<StatusWatch>,
    replicas: Option<ReplicaWatch>,
    beside: BesideCpu,
    turns: Option<(Seat, Player)>,
    /// When seconds began, where they are not one behind the other.
    second_starts: Vec<UtcMicros>,
    /// Transactions due and not begun at the end of every second; in the open loop only.
    backlog: Vec<(i32, u64)>,
    /// What the load threads did in every second, where the kernel tells.
    load_threads: Vec<(i32, ThreadTimes)>,
    /// Connections that were given up in the middle of a transaction.
    pub(crate) unfinished: Vec<u32>,
    threads: Option<&'a mut ThreadWatch>,
    /// What the server's threads did: one reading at the start, one at the end of each second.
    pub(crate) stretches: Vec<Stretch>,
}

impl<'a> MeasurementObserver<'a> {
    pub(crate) fn new(
        (measurement, length): (i32, Length),
        program: &Program,
        progress: &'a mut dyn Progress,
        asked: Asked<'a>,
        give_up: &'a AtomicBool,
    ) -> Self {
        let Asked {
            sampler,
            threads,
            status,
            replicas,
            beside,
            turns,
        } = asked;
        MeasurementObserver {
            measurement,
            progress,
            sampler,
            samples: Vec::new(),
            started_at: now(),
            seconds: Vec::new(),
            latency: Vec::new(),
            errors: BTreeMap::new(),
            lag: hdrhistogram::Histogram::new(2).unwrap_or_else(|_| unreachable!("two digits are possible")),
            idle_seconds: 0,
            give_up,
            statement_names: program.statement_names().to_vec(),
            statement_verbs: program.statement_verbs().to_vec(),
            transaction_names: program.transaction_names().to_vec(),
            began: None,
            boundaries_seen: 0,
            length,
            status,
            replicas,
            beside,
            turns,
            second_starts: Vec::new(),
            backlog: Vec::new(),
            load_threads: Vec::new(),
            unfinished: Vec::new(),
            threads,
            stretches: Vec::new(),
        }
    }

    /// Whether the load was stopped because the server did nothing any more.
    pub(crate) fn stood_still(&self) -> bool {
        self.idle_seconds >= self.length.standstill_seconds
    }

    /// 99th percentile of the client's own delay, microseconds.
    pub(crate) fn lag_p99_us(&self) -> Option<f64> {
        (!self.lag.is_empty()).then(|| self.lag.value_at_quantile(0.99) as f64 / 1000.0)
    }

    /// The errors, as rows.
    pub(crate) fn error_rows(&self) -> Vec<ErrorRow> {
        self.errors
            .iter()
            .map(|(&(number, statement), &count)| ErrorRow {
                measurement: self.measurement,
                error_code: i32::from(number),
                statement: self
                    .statement_names
                    .get(usize::from(statement))
                    .cloned()
                    .unwrap_or_default(),
                count: i64::try_from(count).unwrap_or(i64::MAX),
                retried: true,
            })
            .collect()
    }

    /// The counters of every second, and what could not be counted.
    pub(crate) fn counter_rows(&self) -> (Vec<CounterRow>, Vec<(String, String)>) {
        counter_rows(self.measurement, &self.samples)
    }

    /// The changes of the server's status in every second that could be read in time.
    pub(crate) fn status_rows(&mut self) -> Vec<CounterRow> {
        self.status
            .take()
            .map_or_else(Vec::new, |watch| watch.finish(self.measurement))
    }

    /// How far the servers beside this one were in every second, and what CPU time they took.
    pub(crate) fn rows_of_others(&mut self) -> Vec<CounterRow> {
        let watch = self.replicas.take();
        let mut rows = watch.map_or_else(Vec::new, |watch| watch.finish(self.measurement));
        rows.extend(self.beside.rows(self.measurement));
        rows
    }

    /// Who hears how far it is.
    pub(crate) fn progress(&mut self) -> &mut dyn Progress {
        self.progress
    }

    /// When second 0 began; none where it never did.
    pub(crate) fn began(&self) -> Option<Instant> {
        self.began
    }

    /// What an open loop offered and the server had not begun, at the end of every second.
    pub(crate) fn backlog_rows(&self) -> impl Iterator<Item = CounterRow> {
        self.backlog.iter().map(|&(second, backlog)| CounterRow {
            measurement: self.measurement,
            second: Some(second),
            counter: "client.backlog_level".to_owned(),
            value: backlog as f64,
            running_share: None,
        })
    }

    /// What the load threads did in every second.
    pub(crate) fn load_thread_rows(&self) -> impl Iterator<Item = CounterRow> {
        self.load_threads.iter().flat_map(|&(second, times)| {
            let counted = [
                ("client.threads_cpu_seconds", times.cpu_ns),
                ("client.threads_run_queue_seconds", times.run_queue_ns),
            ];
            counted.map(|(counter, ns)| CounterRow {
                measurement: self.measurement,
                second: Some(second),
                counter: counter.to_owned(),
                value: ns as f64 / 1e9,
                running_share: None,
            })
        })
    }

    /// Transactions over the time that they really took.
    pub(crate) fn throughput(&self) -> f64 {
        let transactions: i64 = self.seconds.iter().map(|second| second.transactions).sum();
        let ns: i64 = self.seconds.iter().map(|second| second.duration_ns).sum();
        if ns > 0 {
            transactions as f64 / (ns as f64 / 1e9)
        } else {
            0.0
        }
    }

    /// Something begins or ends: `boundary` seconds have passed.
    fn boundary(&mut self, boundary: u32, at_end: bool) {
        if let Some(status) = &self.status {
            status.tick(boundary);
        }
        if let Some(replicas) = &self.replicas {
            replicas.tick(boundary);
        }
        self.sample(at_end);
        self.beside.read();
        if let Some(threads) = &mut self.threads {
            self.stretches.push(threads.read());
        }
    }

    /// How long the second was that is recorded now. The workers cut their seconds by the clock: they are one second long
    /// whatever the machine does, but for the last of a program that runs once, which ends when all have run it.
    fn duration_ns(&mut self, second: u32) -> i64 {
        let whole = 1_000_000_000;
        let boundaries_seen = self.boundaries_seen;
        if !self.length.once || boundaries_seen > second + 1 {
            return whole;
        }
        let ns = self.began.map_or(whole, |began| {
            let since = began.elapsed().saturating_sub(Duration::from_secs(u64::from(second)));
            i64::try_from(since.as_nanos()).unwrap_or(whole)
        });
        self.boundaries_seen = second + 2;
        self.boundary(second + 1, true);
        ns.clamp(1, whole)
    }

    fn sample(&mut self, at_end: bool) {
        if let Some(sampler) = &mut self.sampler {
            self.samples.push(match at_end {
                true => sampler.sample_at_end_of_measurement(),
                false => sampler.sample(),
            });
        }
    }

    fn push_latency(
        &mut self,
        second: i32,
        kind: LatencyKind,
        (operation, number, name): Timed<'_>,
        histogram: &hdrhistogram::Histogram<u32>,
    ) {
        for bucket in histogram.iter_recorded() {
            self.latency.push(LatencyRow {
                measurement: self.measurement,
                second,
                kind,
                operation,
                number,
                name: name.map(str::to_owned),
                value_ns: bucket.value_iterated_to() as i64,
                count: bucket.count_since_last_iteration() as i64,
            });
        }
    }
}

/// Of what a latency is: operation, number and name of [`LatencyRow`].
type Timed<'a> = (Operation, Option<i32>, Option<&'a str>);
const ALL_TRANSACTIONS: Timed<'static> = (Operation::Transaction, None, None);

/// The counters of every second between two samples, and what could not be counted.
pub(crate) fn counter_rows(measurement: i32, samples: &[Sample]) -> (Vec<CounterRow>, Vec<(String, String)>) {
    let mut rows = Vec::new();
    let mut lacks = BTreeMap::new();
    for (second, pair) in samples.windows(2).enumerate() {
        for Counter {
            name,
            value,
            running_share,
        } in delta(&pair[0], &pair[1])
        {
            rows.push(CounterRow {
                measurement,
                second: Some(second as i32),
                counter: name.to_owned(),
                value,
                running_share,
            });
        }
        for lack in missing(&pair[0], &pair[1]) {
            lacks.insert(lack.figure.to_owned(), lack.reason);
        }
    }
    // What only the ends of a measurement can tell.
    if let (Some(first), Some(last)) = (samples.first(), samples.last())
        && samples.len() > 1
    {
        let seen: std::collections::BTreeSet<String> = rows.iter().map(|row| row.counter.clone()).collect();
        for Counter {
            name,
            value,
            running_share,
        } in delta(first, last)
        {
            if !seen.contains(name) {
                rows.push(CounterRow {
                    measurement,
                    second: None,
                    counter: name.to_owned(),
                    value,
                    running_share,
                });
                lacks.remove(name);
            }
        }
    }
    (rows, lacks.into_iter().collect())
}

impl LoadObserver for MeasurementObserver<'_> {
    fn left_unfinished(&mut self, connection_ids: &[u32]) {
        self.unfinished.extend(connection_ids);
    }

    fn connected(&mut self, open: u32, wanted: u32) {
        self.progress.connecting(open, wanted);
    }

    fn begins(&mut self) {
        if let Some((seat, player)) = &self.turns {
            seat.ready(self.measurement as u32, player.clone(), self.give_up);
        }
        self.boundary(0, true);
        self.boundaries_seen = 1;
        self.began = Some(Instant::now());
        self.started_at = now();
        self.second_starts
            .extend(self.turns.is_some().then_some(self.started_at));
    }

    fn second_ended(&mut self, second: u32) {
        self.second_starts.extend(self.turns.is_some().then(now));
        // A program that ran once may have ended this second early.
        if self.boundaries_seen <= second + 1 {
            self.boundaries_seen = second + 2;
            self.boundary(second + 1, second + 1 == self.length.seconds);
        }
    }

    fn record(&mut self, record: SecondRecord) {
        let me = self;
        let second = record.second as i32;
        let duration_ns = me.duration_ns(record.second);
        let started_at = me.second_starts.get(record.second as usize).copied();
        let percentile = |q| (!record.service.is_empty()).then(|| record.service.value_at_quantile(q) as i64);
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        me.seconds.push(SecondRow {
            measurement: me.measurement,
            second,
            started_at: started_at.unwrap_or(UtcMicros(me.started_at.0 + i64::from(second) * 1_000_000)),
            duration_ns,
            transactions: count(record.transactions),
            queries: count(record.queries),
            reads: count(record.reads),
            writes: count(record.writes),
            errors: count(record.error_count()),
            retries: count(record.retries),
            service_sum_ns: count(record.service_sum_ns),
            response_sum_ns: count(record.response_sum_ns),
            in_transaction_ns: count(record.in_transaction_ns),
            p50_ns: percentile(0.5),
            p95_ns: percentile(0.95),
            p99_ns: percentile(0.99),
            max_ns: (!record.service.is_empty()).then(|| record.service.max() as i64),
        });
        me.load_threads.extend(record.load_threads.map(|times| (second, times)));
        me.push_latency(second, LatencyKind::Service, ALL_TRANSACTIONS, &record.service);
        if let Some(response) = &record.response {
            me.backlog.push((second, record.backlog));
            me.push_latency(second, LatencyKind::Response, ALL_TRANSACTIONS, response);
        }
        for (number, histogram) in (1..).zip(&record.statements) {
            let verb = me.statement_verbs.get(number as usize - 1).copied().flatten();
            me.push_latency(
                second,
                LatencyKind::Service,
                (Operation::Statement, Some(number), verb),
                histogram,
            );
        }
        for (number, histogram) in (1..).zip(&record.kinds) {
            let name = me.transaction_names.get(number as usize - 1).cloned();
            me.push_latency(
                second,
                LatencyKind::Service,
                (Operation::Transaction, Some(number), name.as_deref()),
                histogram,
            );
        }
        for (key, count) in &record.errors {
            *me.errors.entry(*key).or_default() += count;
        }
        for bucket in record.lag.iter_recorded() {
            me.lag
                .saturating_record_n(bucket.value_iterated_to(), bucket.count_since_last_iteration());
        }
        me.idle_seconds = if record.queries == 0 { me.idle_seconds + 1 } else { 0 };
        if me.stood_still() {
            me.give_up.store(true, Ordering::Relaxed);
        }
        let p99 = record.service.value_at_quantile(0.99);
        me.progress.second(record.second, record.transactions, p99);
    }
}

/// The time.
pub(crate) fn now() -> UtcMicros {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UtcMicros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
