//! A whole run.

use crate::error::{RunError, in_words};
use crate::instructions::keep_code;
use crate::ladder::shuffled_measurements;
use crate::manifest;
use crate::measurement::{MeasurementContext, MeasurementEnd, MeasurementNumber};
use crate::observe::Length;
use crate::options::{LoadOptions, RunOptions, ServerChoice, WorkloadChoice};
use crate::prepare::{Ready, check_consistency, make_tables, prepare, warm_all};
use crate::privacy::public_settings;
use crate::probes::{Probes, Said};
use crate::progress::{MeasurementStart, Progress};
use crate::target::Target;
use crate::transport::fallback_warning;
use crate::turns::Seat;
use scaleprof_analysis::refine::{Seen, next_rungs};
use scaleprof_analysis::summarise;
use scaleprof_bundle::{Bundle, BundleWriter, Manifest, Missing, Summary};
use scaleprof_server::Placement;
use scaleprof_vocabulary::RunState;
use scaleprof_workload::schema::SCHEMA;
use scaleprof_workload::tpcc::Tpcc;
use scaleprof_workload::{OltpWorkload, Program, Script, TransportChoice, raise_open_file_limit};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rungs that refinement may add.
const REFINEMENTS: usize = 4;
/// Seconds without an answered statement after which something must be wrong: the statements of the OLTP workloads are
/// short, a user's may well take minutes.
const STANDSTILL_SECONDS: u32 = 8;
const STANDSTILL_OF_A_SCRIPT_SECONDS: u32 = 600;
/// The most that a user of TPC-C reads and types: ten times the mean of 12 s, and 18 s.
const LONGEST_PAUSE_SECONDS: f64 = 138.0;
/// The most that a script which runs once may take.
const LONGEST_ONCE_SECONDS: u32 = 86_400;
/// Measurements in a row that may fail before the run is given up.
const FAILURES_IN_A_ROW: u32 = 3;
/// Reads of pages from disk per measurement from which the data count as not in memory.
const DISK_READS: f64 = 1000.0;

/// What a run left.
#[derive(Debug)]
pub struct RunResult {
    /// The bundle, read back.
    pub bundle: Bundle,
    /// What it comes to.
    pub summary: Summary,
    /// Why it ended before its time; what was measured until then is in the bundle all the same.
    pub problem: Option<RunError>,
}

/// Carries out a run. `stop` ends it early; what was measured is kept.
///
/// # Errors
/// The run could not begin. Once there is a bundle, an error is in [`RunResult::problem`] instead.
pub fn run(options: &RunOptions, stop: &Arc<AtomicBool>, progress: &mut dyn Progress) -> Result<RunResult, RunError> {
    run_at(options, None, stop, progress)
}

/// Carries out a run that takes turns with others, where it has a seat.
pub(crate) fn run_at(
    options: &RunOptions,
    seat: Option<Seat>,
    stop: &Arc<AtomicBool>,
    progress: &mut dyn Progress,
) -> Result<RunResult, RunError> {
    // Everything that can be wrong with the options comes before anything is started.
    let program = Arc::new(program(&options.load)?);
    let beside = seat.as_ref().map_or(1, Seat::table);
    let loaded = options.server.company().loaded_servers() * beside;
    let most = options.most_connections() * loaded;
    raise_open_file_limit(most).map_err(|limit| RunError::OpenFiles { wanted: most, limit })?;
    let transport = options.load.transport.choose().map_err(RunError::Transport)?;
    // Once for all measurements: they are not to differ in it.
    let mut options = options.clone();
    options.load.transport = TransportChoice::Only(transport.transport);
    let options = &options;
    let bundle = BundleWriter::create(&options.output)?;

    let alone = seat.as_ref().map(|seat| seat.prepare_alone(stop)).transpose();
    let prepared = alone.and_then(|_alone| prepare(options, stop, progress));
    let prepared = prepared.and_then(|ready| ready.target.variables().map(|variables| (ready, variables)));
    let (mut ready, variables) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            // Nothing was measured: an empty bundle would only be in the way. It goes only if it is empty.
            let _ = std::fs::remove_dir(bundle.path());
            return Err(match stop.load(Ordering::Relaxed) {
                true => RunError::Stopped,
                false => error,
            });
        }
    };
    let mut manifest = manifest::begin(options, &ready.target, &ready.placement, &variables);
    manifest.ladder.interleaving = seat.as_ref().map(Seat::turns);
    ready.warnings.extend(transport.fallback.as_ref().map(fallback_warning));
    for warning in std::mem::take(&mut ready.warnings) {
        progress.warning(&warning);
        manifest.warnings.push(warning);
    }
    if let (Target::Private(_), true) = (&ready.target, ready.placement.shared) {
        if ready.placement.server_nice().is_some() {
            progress.warning(&ready.placement.reason);
        }
        manifest.warnings.push(ready.placement.reason.clone());
    }
    if let Some(shared) = shares_cpus(&options.server, &ready.placement) {
        progress.warning(&shared);
        manifest.warnings.push(shared);
    }
    let mut settings = public_settings(&variables, &ready.target.origins(&variables)?);
    settings.extend(manifest::placement_settings(
        &options.server,
        &ready.target,
        &ready.placement,
        ready.scheduling,
    ));
    settings.extend(ready.guest_lock.as_ref().map(manifest::encryption_setting));
    bundle.write_settings(&settings)?;
    bundle.write_manifest(&manifest)?;

    let mut climb = Climb {
        options,
        context: MeasurementContext {
            load: &options.load,
            program,
            threads: options.load.threads.unwrap_or_else(|| default_threads(&ready)),
            transport: transport.transport,
            scheduling: ready.scheduling,
            client_cpus: ready.placement.client.iter().map(|cpu| cpu as usize).collect(),
            length: length(options),
            sample_cost_ns: None,
            bundle: &bundle,
            stop,
            seat,
        },
        throughput: BTreeMap::new(),
        missing: BTreeMap::new(),
        next_measurement: 0,
        failures: 0,
        last_failure: None,
    };
    let problem = climb
        .climb(&mut ready, &mut manifest, progress)
        .and_then(|()| check_consistency(&ready.target, &options.load, "after the run", stop, progress))
        .err()
        .map(|error| match scaleprof_wire::was_stopped(&error) {
            true => RunError::Stopped,
            false => error,
        });
    manifest.missing = std::mem::take(&mut climb.missing)
        .into_iter()
        .map(|(figure, reason)| Missing { figure, reason })
        .collect();
    if let Some(restless) = climb.context.seat.as_ref().and_then(Seat::restless) {
        progress.warning(&restless);
        manifest.warnings.push(restless);
    }
    let finished = finish(&bundle, &mut manifest, &ready, problem.as_ref());
    leave(ready, options, progress);
    let closed = finished.and_then(|()| {
        let written = Bundle::open(bundle.path())?;
        let summary = summarise(&written);
        bundle.write_summary(&summary)?;
        Ok((written, summary))
    });
    // What ended the run comes first: a full disk also keeps the end from being written.
    match (closed, problem) {
        (Ok((bundle, summary)), problem) => Ok(RunResult {
            bundle,
            summary,
            problem,
        }),
        (Err(_), Some(problem)) | (Err(problem), None) => Err(problem),
    }
}

/// What there is to say where servers beside the one under test take CPU time from it or from the client.
fn shares_cpus(server: &ServerChoice, placement: &Placement) -> Option<String> {
    let ServerChoice::Private {
        company, cpus_company, ..
    } = server
    else {
        return None;
    };
    let words = company.words()?;
    let cpus = cpus_company.as_ref().unwrap_or(&placement.server);
    let with = match (
        cpus.within(&placement.server).is_empty(),
        cpus.within(&placement.client).is_empty(),
    ) {
        (true, true) => return None,
        (false, true) => "the server",
        (true, false) => "the client",
        (false, false) => "the server and the client",
    };
    Some(format!(
        "the other servers ({words}) share CPUs with {with}, so their CPU use affects this run; separate them with --cpus-others"
    ))
}

/// Notes how the run ended and keeps the server's error log beside the bundle: it may hold names, so it is no part
/// of what is given to others.
fn finish(
    bundle: &BundleWriter,
    manifest: &mut Manifest,
    ready: &Ready,
    problem: Option<&RunError>,
) -> Result<(), RunError> {
    manifest.ended_at = Some(manifest::timestamp());
    manifest.problem = problem.map(RunError::for_bundle);
    manifest.state = match problem {
        None => RunState::Complete,
        Some(RunError::Stopped) => RunState::Interrupted,
        Some(_) => RunState::Failed,
    };
    if let Target::Private(sandbox) = &ready.target {
        // A full disk must not keep the manifest from being written.
        let _ = sandbox.keep_error_log(&error_log_beside(bundle.path()));
    }
    Ok(bundle.write_manifest(manifest)?)
}

/// Where the server's error log of a bundle is kept.
pub(crate) fn error_log_beside(bundle: &std::path::Path) -> PathBuf {
    let mut name = bundle.file_name().unwrap_or_default().to_owned();
    name.push("-server.log");
    bundle.with_file_name(name)
}

/// Stops our server; drops our schema from somebody else's where that was asked for.
fn leave(ready: Ready, options: &RunOptions, progress: &mut dyn Progress) {
    // What follows a server goes first: it would only complain of its death.
    drop(ready.beside);
    match ready.target {
        Target::Private(sandbox) => {
            let shuts_down = matches!(options.server, ServerChoice::Private { shut_down: true, .. });
            if !shuts_down {
                sandbox.stop_hard();
            } else if let Err(error) = sandbox.stop() {
                progress.warning(&error.to_string());
            }
        }
        Target::Attached(attach) if attach.drop_schema => {
            let target = Target::Attached(attach);
            let dropped = target
                .connect_to_work()
                .and_then(|mut client| Ok(scaleprof_workload::schema::drop_ours(&mut client)?));
            if let Err(error) = dropped {
                progress.warning(&match scaleprof_wire::was_stopped(&error) {
                    true => format!("the server may still be dropping the load's schema {SCHEMA}: {error}"),
                    false => format!("the load's schema was left behind: {error}"),
                });
            }
        }
        Target::Attached(_) => progress.remains(&format!(
            "the tables stay in the schema {SCHEMA} for the next run; --drop-schema removes them after a run, and so \
             does DROP DATABASE {SCHEMA}"
        )),
    }
    if let ServerChoice::Private { cache_size: None, .. } = &options.server
        && let Some(source) = ready.source
        && let Err(error) = source.forget()
    {
        progress.warning(&format!("the prepared data were left behind: {error}"));
    }
    // Held until the schema is as it shall stay.
    drop(ready.guest_lock);
}

pub(crate) fn program(load: &LoadOptions) -> Result<Program, RunError> {
    Ok(match &load.workload {
        WorkloadChoice::Oltp(kind) => Program::Oltp(OltpWorkload::new(*kind, load.oltp.clone())?),
        WorkloadChoice::Tpcc(tpcc) => Program::Tpcc(Tpcc::new(tpcc.clone())?),
        WorkloadChoice::Script { text, repetition, .. } => Program::Script(Script::parse(text, *repetition)?),
    })
}

fn length(options: &RunOptions) -> Length {
    let once = options.load.runs_once();
    Length {
        seconds: if once { LONGEST_ONCE_SECONDS } else { options.seconds },
        once,
        standstill_seconds: match &options.load.workload {
            WorkloadChoice::Oltp(_) => STANDSTILL_SECONDS,
            WorkloadChoice::Tpcc(tpcc) => {
                STANDSTILL_SECONDS + (LONGEST_PAUSE_SECONDS * tpcc.pauses.unwrap_or(0.0)) as u32
            }
            WorkloadChoice::Script { .. } => STANDSTILL_OF_A_SCRIPT_SECONDS,
        },
    }
}

/// One thread of the client for eight of its CPUs, at most four: a thread serves over 100 000 statements a second.
fn default_threads(ready: &Ready) -> u32 {
    (ready.placement.client.len() as u32 / 8).clamp(1, 4)
}

/// Going through the measurements.
struct Climb<'a> {
    options: &'a RunOptions,
    context: MeasurementContext<'a>,
    /// Throughput of every measurement, by connections.
    throughput: BTreeMap<u32, Vec<f64>>,
    missing: BTreeMap<String, String>,
    next_measurement: u32,
    failures: u32,
    last_failure: Option<RunError>,
}

impl Climb<'_> {
    fn climb(
        &mut self,
        ready: &mut Ready,
        manifest: &mut Manifest,
        progress: &mut dyn Progress,
    ) -> Result<(), RunError> {
        let mut probes = self.probes(&ready.target, manifest, progress);
        let end = self.all_measurements(ready, manifest, &mut probes, progress);
        // Also of a run that ended early: what was measured until then shall be readable elsewhere.
        if let Some(threads) = probes.threads().filter(|_| !self.throughput.is_empty()) {
            progress.stage("keeping the machine code of the hot functions");
            let lacks = keep_code(self.context.bundle, threads).unwrap_or_else(|error| {
                progress.warning(&format!("the machine code of the hot functions was not kept: {error}"));
                // The error names folders of this machine, which are nobody else's business.
                let reason = "the bundle could not be read back or written when the run ended";
                Vec::from(["instructions", "data_accesses"].map(|table| (table.to_owned(), reason.to_owned())))
            });
            self.missing.extend(lacks);
        }
        end
    }

    fn all_measurements(
        &mut self,
        ready: &mut Ready,
        manifest: &mut Manifest,
        probes: &mut Probes,
        progress: &mut dyn Progress,
    ) -> Result<(), RunError> {
        let planned = shuffled_measurements(&self.options.connections, self.options.repeats, self.options.order_seed);
        self.measurements(&planned, ready, manifest, probes, progress)?;
        let mut budget = if self.options.refine { REFINEMENTS } else { 0 };
        while budget > 0 {
            let rungs = next_rungs(&self.seen(), budget);
            if rungs.is_empty() {
                break;
            }
            budget -= rungs.len().min(budget);
            progress.refined(&rungs);
            manifest.ladder.refined.extend(&rungs);
            self.context.bundle.write_manifest(manifest)?;
            let seed = self.options.order_seed ^ u64::from(self.next_measurement);
            let more = shuffled_measurements(&rungs, self.options.repeats, seed);
            self.measurements(&more, ready, manifest, probes, progress)?;
        }
        // A run of which nothing is left to show has failed.
        match self.last_failure.take() {
            Some(problem) if self.throughput.is_empty() => Err(problem),
            _ => Ok(()),
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.throughput
            .iter()
            .map(|(&connections, measurements)| Seen {
                connections,
                throughput: measurements.iter().sum::<f64>() / measurements.len() as f64,
            })
            .collect()
    }

    fn measurements(
        &mut self,
        planned: &[(u32, u32)],
        ready: &mut Ready,
        manifest: &mut Manifest,
        probes: &mut Probes,
        progress: &mut dyn Progress,
    ) -> Result<(), RunError> {
        let of = self.next_measurement + planned.len() as u32;
        for &(connections, repeat) in planned {
            if self.context.stop.load(Ordering::Relaxed) {
                return Err(RunError::Stopped);
            }
            if self.context.load.needs_fresh_data() && self.next_measurement > 0 {
                self.refresh(ready, manifest, probes, progress)?;
            }
            let number = MeasurementNumber {
                measurement: self.next_measurement,
                connections,
                repeat,
            };
            progress.measurement_begins(MeasurementStart {
                measurement: number.measurement,
                of,
                connections,
                repeat,
                seconds: (!self.options.load.runs_once()).then_some(self.options.seconds),
            });
            self.next_measurement += 1;
            let servers = (&mut ready.target, &mut ready.beside);
            let end = self.context.run(servers, probes.both(), number, progress)?;
            self.judge(end, connections, manifest, progress)?;
        }
        Ok(())
    }

    /// What follows from how a measurement ended.
    fn judge(
        &mut self,
        end: MeasurementEnd,
        connections: u32,
        manifest: &mut Manifest,
        progress: &mut dyn Progress,
    ) -> Result<(), RunError> {
        self.missing.extend(end.missing);
        if let Some(reads) = end.disk_page_reads.filter(|&reads| reads > DISK_READS) {
            let warning = format!(
                "{reads:.0} pages were read from disk in a measurement with {}: the data were not all in memory",
                in_words(connections)
            );
            progress.warning(&warning);
            manifest.warnings.push(warning);
        }
        for warning in end.warnings {
            progress.warning(&warning);
            manifest.warnings.push(warning);
        }
        let Some(problem) = end.problem else {
            self.failures = 0;
            self.throughput.entry(connections).or_default().push(end.throughput);
            return Ok(());
        };
        self.failures += 1;
        if problem.is_final() || self.failures >= FAILURES_IN_A_ROW {
            return Err(problem);
        }
        progress.warning(&problem.to_string());
        manifest.warnings.push(problem.for_bundle());
        self.last_failure = Some(problem);
        Ok(())
    }

    /// The same server on untouched data, for workloads that use their tables up.
    fn refresh(
        &mut self,
        ready: &mut Ready,
        manifest: &mut Manifest,
        probes: &mut Probes,
        progress: &mut dyn Progress,
    ) -> Result<(), RunError> {
        *probes = Probes::default();
        let stop = self.context.stop;
        let seat = self.context.seat.as_ref();
        let alone = seat.map(|seat| seat.prepare_alone(stop)).transpose()?;
        match &ready.source {
            Some(source) => {
                progress.stage("starting the server on fresh data");
                // Not two at once: the machine may have memory for one buffer pool only.
                if let Target::Private(used_up) = &mut ready.target {
                    used_up.kill();
                }
                ready.beside.kill();
                let (server, beside) = source.start(self.context.stop)?;
                ready.target = Target::Private(Box::new(server));
                ready.beside = beside;
            }
            None => make_tables(&ready.target, self.context.load, self.context.stop, progress)?,
        }
        warm_all(
            &ready.target,
            &ready.beside,
            self.context.load,
            self.context.stop,
            progress,
        )?;
        drop(alone);
        *probes = self.probes(&ready.target, manifest, progress);
        Ok(())
    }

    fn probes(&mut self, target: &Target, manifest: &mut Manifest, progress: &mut dyn Progress) -> Probes {
        let mut said = Said::default();
        let measure_cost = self.next_measurement == 0;
        let (probes, cost) = Probes::start(
            target,
            self.options.watch,
            (measure_cost, self.context.seat.is_some()),
            &mut said,
        );
        if cost.is_some() {
            self.context.sample_cost_ns = cost;
        }
        self.missing.extend(said.missing);
        for warning in said.warnings {
            if !manifest.warnings.contains(&warning) {
                progress.warning(&warning);
                manifest.warnings.push(warning);
            }
        }
        probes
    }
}
