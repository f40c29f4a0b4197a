//! One measurement of a rung: the load, the counters, and the rows that come of it.

use crate::beside_cpu::BesideCpu;
use crate::company::Beside;
use crate::error::{RunError, in_words};
use crate::late::{Late, stalled_at_the_end};
use crate::neighbour_load::{Ended, Failure, NeighbourLoads};
use crate::observe::{Asked, Length, MeasurementObserver};
use crate::options::LoadOptions;
use crate::progress::{MeasurementDone, Progress};
use crate::replica_watch::{CatchUp, ReplicaWatch, catch_up, still_behind};
use crate::status::{Status, transaction_counter};
use crate::status_watch::StatusWatch;
use crate::target::{Access, Target};
use crate::threads::{Load, ThreadWatch};
use crate::turns::Seat;
use crate::unfinished::{self, Killed};
use scaleprof_bundle::{BundleWriter, CounterRow, MeasurementRow, MeasurementRows};
use scaleprof_probe::Sampler;
use scaleprof_server::{Sandbox, thread_names};
use scaleprof_vocabulary::MeasurementOutcome;
use scaleprof_wire::Client;
use scaleprof_workload::schema::SCHEMA;
use scaleprof_workload::{
    LoadClock, LoadError, LoadOutcome, LoadPlan, LoadScheduling, LoopKind, Program, Tally, Transport, drive,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What is the same for all measurements of a run.
pub(crate) struct MeasurementContext<'a> {
    pub(crate) load: &'a LoadOptions,
    pub(crate) program: Arc<Program>,
    pub(crate) threads: u32,
    pub(crate) transport: Transport,
    pub(crate) client_cpus: Vec<usize>,
    pub(crate) scheduling: LoadScheduling,
    pub(crate) length: Length,
    /// CPU time of one sample, nanoseconds, where it was measured and no measurement tells of it
    /// yet.
    pub(crate) sample_cost_ns: Option<f64>,
    pub(crate) bundle: &'a BundleWriter,
    pub(crate) stop: &'a Arc<AtomicBool>,
    /// Where it takes turns with other runs.
    pub(crate) seat: Option<Seat>,
}

/// Replicas may take so many times the length of a measurement to make up what they are behind.
const CATCH_UP: u64 = 5;

/// Which measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MeasurementNumber {
    pub(crate) measurement: u32,
    pub(crate) connections: u32,
    pub(crate) repeat: u32,
}

/// What is left to say of a measurement after its rows were written.
pub(crate) struct MeasurementEnd {
    /// Why it was not complete.
    pub(crate) problem: Option<RunError>,
    /// Figures that could not be counted, with the reasons.
    pub(crate) missing: Vec<(String, String)>,
    /// Reads of data pages from disk during the measurement, as the server counts them.
    pub(crate) disk_page_reads: Option<f64>,
    /// Transactions per second over the whole measurement.
    pub(crate) throughput: f64,
    /// What there is to say of transactions that outlived it, and of replicas that did not catch up.
    pub(crate) warnings: Vec<String>,
}

impl MeasurementContext<'_> {
    /// Runs one measurement and writes its rows, whatever came of it.
    pub(crate) fn run(
        &mut self,
        (target, beside): (&mut Target, &mut Beside),
        (sampler, mut threads): (Option<&mut Sampler>, Option<&mut ThreadWatch>),
        number: MeasurementNumber,
        progress: &mut dyn Progress,
    ) -> Result<MeasurementEnd, RunError> {
        let MeasurementNumber {
            measurement,
            connections,
            repeat,
        } = number;
        self.caught_up(target, beside, progress)?;
        let plan = self.plan(&target.access(), number);
        // Kept for the whole measurement: opening it under load would wait behind the load.
        let mut control = target.connect()?;
        let status = target.connect().ok().and_then(|client| StatusWatch::start(client).ok());
        let replicas = ReplicaWatch::start(target, beside)?;
        let before = Status::read(&mut control)?;

        let rests = sampler.as_ref().and_then(|sampler| sampler.rests());
        let turns = self.seat.clone().zip(target.player(rests));
        // Set by the user's ^C (through `forward`) or by the observer when the server stands still.
        let give_up = Arc::new(AtomicBool::new(self.stop.load(Ordering::Relaxed)));
        let mut observer = MeasurementObserver::new(
            (measurement as i32, self.length),
            &self.program,
            progress,
            Asked {
                sampler,
                threads: threads.as_deref_mut(),
                status,
                replicas,
                beside: BesideCpu::of(beside),
                turns,
            },
            &give_up,
        );
        let (result, neighbours) = self.beside_neighbours(beside, number, |failed| {
            let result = self.drive_until_stopped(&plan, (&give_up, failed), &mut observer);
            // From here on servers are asked things again.
            self.seat.iter().for_each(Seat::done);
            (result, observer.began())
        });
        let (of_neighbours, failure) = match neighbours {
            Ok(ended) => (ended, None),
            Err(failure) => (Ended::default(), Some(failure)),
        };
        let after = match &result {
            Ok(_) => Status::read(&mut control).ok(),
            Err(_) => None,
        };

        let (mut counters, mut missing) = observer.counter_rows();
        counters.extend(observer.status_rows());
        counters.extend(observer.backlog_rows());
        counters.extend(observer.load_thread_rows());
        counters.extend(observer.rows_of_others());
        counters.extend(of_neighbours.rows);
        let by_second: BTreeSet<String> = counters.iter().map(|row| row.counter.clone()).collect();
        let mut whole_measurement = |counter: String, value: f64| {
            counters.push(CounterRow {
                measurement: measurement as i32,
                second: None,
                counter,
                value,
                running_share: None,
            });
        };
        if let Some(cost) = self.sample_cost_ns.take() {
            whole_measurement("probe.sample_overhead_ns_level".to_owned(), cost);
        }
        let mut disk_page_reads = None;
        if let (Some(after), Ok(outcome)) = (&after, &result) {
            // What has figures by second would count twice in a sum over all rows.
            for (name, change) in after.since(&before).filter(|(_, change)| *change > 0.0) {
                let counter = format!("status.{name}");
                if !by_second.contains(&counter) {
                    whole_measurement(counter, change);
                }
            }
            if let Some(count) = self.transactions_by_status(&before, after, outcome) {
                whole_measurement("server.transactions_by_status".to_owned(), count);
            }
            let reads = |status: &Status| status.get("innodb_buffer_pool_reads");
            disk_page_reads = reads(after).zip(reads(&before)).map(|(a, b)| a - b);
        }

        let stood_still = observer.stood_still();
        let connect_seconds = result.as_ref().map_or(0.0, |outcome| outcome.connect_seconds);
        // Where a neighbour failed the load was ended for that.
        let failure = failure.map(|failure| self.neighbours_problem(failure, connections));
        let late = result.as_ref().ok().and_then(Late::of);
        let own = result.err();
        let problem = failure
            .or_else(|| own.map(|source| self.problem(source, (&mut *target, &mut *beside), connections, stood_still)));
        let (problem, behind) = match problem {
            Some(problem) => (Some(problem), Vec::new()),
            None => match self.caught_up(target, beside, observer.progress()) {
                Ok(behind) => (None, behind),
                Err(problem) => (Some(problem), Vec::new()),
            },
        };
        counters.extend(behind.iter().flat_map(|replica| replica.rows(measurement as i32)));
        let rung = MeasurementRow {
            measurement: measurement as i32,
            connections: connections as i32,
            idle_connections: self.load.idle_connections as i32,
            repeat: repeat as i32,
            offered_rate: match self.load.loop_kind {
                LoopKind::Closed => None,
                LoopKind::Open { rate, .. } => Some(rate),
            },
            started_at: observer.started_at,
            connect_seconds,
            outcome: outcome(problem.as_ref()),
            client_lag_p99_us: observer.lag_p99_us(),
            // Those of the neighbours' loads too: the client's CPU time is that of all.
            client_threads: (plan.threads as usize * (1 + beside.neighbours().len())) as i32,
            client_resident_bytes: resident_bytes(),
        };
        let unfinished = std::mem::take(&mut observer.unfinished);
        let unfinished = self.end_unfinished(target, &mut control, problem.as_ref(), (connections, &unfinished));
        self.end_unfinished_beside(beside, &of_neighbours.unfinished);
        let errors = observer.error_rows();
        let throughput = observer.throughput();
        let (started_at, mut stretches) = (observer.started_at, observer.stretches);
        let mut rows = MeasurementRows {
            seconds: observer.seconds,
            counters,
            latency: observer.latency,
            errors,
            ..MeasurementRows::default()
        };
        if let Some(threads) = threads {
            if after.is_some() {
                threads.call_threads(thread_names(&mut control).unwrap_or_default());
            }
            threads.add_rows(
                measurement as i32,
                started_at,
                Load::Ours(connections),
                &mut stretches,
                &mut rows,
            );
            missing.extend(threads.problems());
        }
        let stalled = late.and_then(|late| stalled_at_the_end(&rows.latency, late, &in_words(connections)));
        self.bundle.write_measurement(&rung, &rows)?;
        progress.measurement_done(MeasurementDone {
            connections,
            throughput,
        });
        Ok(MeasurementEnd {
            problem,
            missing,
            disk_page_reads,
            throughput,
            warnings: [
                unfinished,
                still_behind(&behind, &in_words(connections), self.stop),
                stalled,
            ]
            .into_iter()
            .flatten()
            .collect(),
        })
    }

    /// The same for neighbours; what goes on there all the same is in no figure.
    fn end_unfinished_beside(&self, beside: &Beside, unfinished: &[Vec<u32>]) {
        for (neighbour, unfinished) in beside.neighbours().iter().zip(unfinished) {
            let access = Access::of(neighbour);
            if let (false, Ok(mut control)) = (unfinished.is_empty(), access.connect()) {
                let _ = unfinished::kill(&mut control, &access.credentials.user, unfinished);
            }
        }
    }

    /// Ends what the server still does for connections of this measurement. Not where it is gone
    /// with us anyway.
    fn end_unfinished(
        &self,
        target: &Target,
        control: &mut Client,
        problem: Option<&RunError>,
        (connections, unfinished): (u32, &[u32]),
    ) -> Option<String> {
        let in_vain = match problem {
            Some(RunError::ServerDied { .. } | RunError::DiskFull { .. }) => true,
            Some(RunError::Stopped) => matches!(target, Target::Private(_)),
            _ => false,
        };
        if in_vain || unfinished.is_empty() {
            return None;
        }
        let with = in_words(connections);
        match unfinished::kill(control, &target.credentials().user, unfinished) {
            Ok(Killed { killed: 0, .. }) => None,
            Ok(Killed { killed, left: 0 }) => Some(format!(
                "{killed} transactions were in flight 10 s after a measurement with {with}; scaleprof killed them, \
                 and no figure includes them"
            )),
            Ok(Killed { left, .. }) => Some(format!(
                "{left} transactions of a measurement with {with} did not end after KILL and disturb later measurements"
            )),
            Err(_) => Some(format!(
                "transactions of a measurement with {with} may still run: the server refused to kill them"
            )),
        }
    }

    /// Runs the load while the neighbours, where there are some, bear the same. `failed` is set when one of them ends before its time.
    fn beside_neighbours(
        &self,
        beside: &Beside,
        number: MeasurementNumber,
        load: impl FnOnce(&Arc<AtomicBool>) -> (Result<LoadOutcome, LoadError>, Option<Instant>),
    ) -> (Result<LoadOutcome, LoadError>, Result<Ended, Failure>) {
        let plan = |(place, neighbour): (u64, &Sandbox)| {
            let plan = self.plan(&Access::of(neighbour), number);
            // Each draws rows of its own.
            LoadPlan {
                seed: plan.seed.wrapping_add(place << 24),
                ..plan
            }
        };
        let plans = (1..).zip(beside.neighbours()).map(plan).collect();
        let loads = match NeighbourLoads::start(plans, self.stop) {
            Ok(loads) => loads,
            Err(failure) => return (Err(LoadError::Stopped), Err(failure)),
        };
        let (result, began) = load(&loads.failed());
        (
            result,
            loads.finish(number.measurement as i32, began, self.length.seconds),
        )
    }

    /// What is behind a neighbour's failure, and so behind the measurement's.
    fn neighbours_problem(&self, (neighbour, source): Failure, connections: u32) -> RunError {
        match self.stop.load(Ordering::Relaxed) {
            true => RunError::Stopped,
            false => RunError::Neighbour {
                neighbour,
                connections,
                source,
            },
        }
    }

    /// Waits for replicas that are behind, for some times the length of a measurement.
    fn caught_up(
        &self,
        target: &Target,
        beside: &mut Beside,
        progress: &mut dyn Progress,
    ) -> Result<Vec<CatchUp>, RunError> {
        let longest = Duration::from_secs(u64::from(self.length.seconds.clamp(30, 600)) * CATCH_UP);
        catch_up(target, beside, longest, self.stop, progress)
    }

    fn plan(&self, server: &Access, number: MeasurementNumber) -> LoadPlan {
        LoadPlan {
            endpoint: server.endpoint.clone(),
            credentials: server.credentials.in_database(SCHEMA),
            program: self.program.clone(),
            connections: number.connections,
            idle_connections: self.load.idle_connections,
            seconds: self.length.seconds,
            loop_kind: self.load.loop_kind,
            threads: self.threads.min(number.connections),
            cpus: self.client_cpus.clone(),
            scheduling: self.scheduling,
            // Every measurement draws other rows; the same seed repeats the whole run.
            seed: self.load.seed.wrapping_add(u64::from(number.measurement) << 32),
            transport: self.transport,
            session_statements: self
                .load
                .isolation
                .iter()
                .map(|level| format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"))
                .collect(),
            clock: self.seat.as_ref().map_or_else(LoadClock::default, Seat::clock),
            tally: Tally::default(),
        }
    }

    /// The server's own count of the transactions in the recorded seconds: what it counted, less those that ended
    /// after the last second.
    fn transactions_by_status(&self, before: &Status, after: &Status, outcome: &LoadOutcome) -> Option<f64> {
        let (counter, per_transaction) = transaction_counter(self.load)?;
        let counted = (after.get(counter)? - before.get(counter)?) / per_transaction;
        Some(counted - outcome.late_transactions as f64)
    }

    /// Runs the load; the user's stop is passed on to it, and so is the failure of a neighbour.
    fn drive_until_stopped(
        &self,
        plan: &LoadPlan,
        (give_up, failed): (&Arc<AtomicBool>, &Arc<AtomicBool>),
        observer: &mut MeasurementObserver<'_>,
    ) -> Result<LoadOutcome, LoadError> {
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if self.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed) {
                        give_up.store(true, Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let result = drive(plan, give_up, observer);
            over.store(true, Ordering::Relaxed);
            result
        })
    }

    /// What is behind the load's error.
    fn problem(
        &self,
        error: LoadError,
        (target, beside): (&mut Target, &mut Beside),
        connections: u32,
        stood_still: bool,
    ) -> RunError {
        if self.stop.load(Ordering::Relaxed) {
            return RunError::Stopped;
        }
        // A replica that is gone can hold up the one that it followed.
        if let Beside::Replicas(replicas) = beside
            && let Err(error) = replicas.check_alive()
        {
            return error.into();
        }
        let seconds = self.length.standstill_seconds;
        // A server that answers with an error is alive.
        let lost = match &error {
            LoadError::Lost(_) => true,
            LoadError::Open { source, .. } => source.number().is_none(),
            _ => false,
        };
        if let Some(death) = lost.then(|| target.death()).flatten() {
            return RunError::ServerDied { connections, death };
        }
        if let Some(free) = target.full_disk() {
            return RunError::DiskFull { free_mib: free >> 20 };
        }
        if stood_still {
            return RunError::StoodStill { seconds, connections };
        }
        RunError::Load {
            connections,
            source: error,
        }
    }
}

fn outcome(problem: Option<&RunError>) -> MeasurementOutcome {
    match problem {
        None => MeasurementOutcome::Complete,
        Some(RunError::Stopped) => MeasurementOutcome::Interrupted,
        Some(RunError::ServerDied { .. }) => MeasurementOutcome::ServerDied,
        Some(_) => MeasurementOutcome::Failed,
    }
}

/// Memory of this process, bytes.
fn resident_bytes() -> Option<i64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * i64::try_from(rustix::param::page_size()).ok()?)
}
