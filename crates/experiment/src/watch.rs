//! Watching a running server under a load that is not ours: nothing is sent to it and nothing is changed in it.

use crate::instructions::keep_code;
use crate::manifest;
use crate::observe::{counter_rows, now};
use crate::processes::{is_ended, is_server, name_of};
use crate::progress::Progress;
use crate::stretch::Stretch;
use crate::target::cpus_of;
use crate::threads::{Load, ThreadWatch};
use scaleprof_analysis::summarise;
use scaleprof_bundle::{
    Bundle, BundleError, BundleWriter, CounterRow, Ladder, Manifest, MeasurementRow, MeasurementRows, Missing, Server,
    SettingRow, Summary, Workload,
};
use scaleprof_probe::{MachineFacts, ProbeError, Sample, Sampler, SamplerOptions, WatchOptions, how_to_get_privileges};
use scaleprof_server::CpuSet;
use scaleprof_vocabulary::{MeasurementOutcome, Role, RunState, ThreadState, WorkloadName};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How soon the user's stop is heard.
const PATIENCE: Duration = Duration::from_millis(20);
/// What stands for the number of connections where it is not known.
const UNKNOWN: i32 = -1;
const NO_ACCOUNT: &str = "only the process was watched: product and version are what a server says over a connection";

/// What to watch.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// The server's process.
    pub pid: u32,
    /// Whether to watch it though it has not the name of a server that we know.
    pub force: bool,
    /// How long, seconds.
    pub seconds: u32,
    /// How its threads are watched.
    pub options: WatchOptions,
    /// Where the bundle goes.
    pub output: PathBuf,
    /// The command line that repeats it, without passwords and paths.
    pub command: Vec<String>,
}

/// What a watch left.
#[derive(Debug)]
pub struct WatchResult {
    /// The bundle, read back.
    pub bundle: Bundle,
    /// What it comes to.
    pub summary: Summary,
    /// Why it ended before its time, where it was not the user who ended it.
    pub problem: Option<String>,
}

/// Why a server could not be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no such process.
    #[error("there is no process {pid}; servers that run: pgrep -l 'mysqld|mariadbd'")]
    NoProcess {
        /// As given.
        pid: u32,
    },
    /// It is one of a process's threads.
    #[error("{pid} is a thread of process {of}: give --pid {of}")]
    Thread {
        /// As given.
        pid: u32,
        /// Its process.
        of: u32,
    },
    /// It is something else.
    #[error(
        "process {pid} is '{name}', not a mysqld or mariadbd\nfix: find servers with pgrep -l 'mysqld|mariadbd', or watch \
         it with --any-process"
    )]
    NotAServer {
        /// As given.
        pid: u32,
        /// Its name.
        name: String,
    },
    /// The kernel does not let us.
    #[error("the threads of process {pid} cannot be watched: {source}")]
    Refused {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: ProbeError,
    },
    /// The same as root.
    #[error("the threads of process {pid} cannot be watched: {source}")]
    RefusedToRoot {
        /// The process.
        pid: u32,
        /// What the kernel says.
        source: ProbeError,
    },
    /// The bundle.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

/// Watches a server for a while and keeps what was seen. `stop` ends it early. The calling thread has a lower priority afterwards (nice 5).
///
/// # Errors
/// It is no server, cannot be watched, or the bundle cannot be written.
pub fn watch(
    request: &WatchRequest,
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Result<WatchResult, WatchError> {
    let life = Life::of(request)?;
    let bundle = BundleWriter::create(&request.output)?;
    progress.stage("beginning to watch");
    let (mut threads, lacks) = match ThreadWatch::start(request.pid, request.options) {
        Ok(started) => started,
        Err(source) => {
            // Nothing was seen: an empty bundle would only be in the way. It goes only if it is empty.
            let _ = std::fs::remove_dir(bundle.path());
            let pid = request.pid;
            return Err(match rustix::process::geteuid().is_root() {
                true => WatchError::RefusedToRoot { pid, source },
                false => WatchError::Refused { pid, source },
            });
        }
    };
    // Somebody else's server may end at any moment, and then its files are out of reach.
    threads.read_names();
    let mut missing: BTreeMap<String, String> = lacks.into_iter().collect();
    for figure in ["server.product", "server.version"] {
        missing.insert(figure.to_owned(), NO_ACCOUNT.to_owned());
    }
    missing.insert(
        "server.shares_cpus_with_client".to_owned(),
        "attach sends no load, so it has no client".to_owned(),
    );
    let mut warnings = Vec::new();
    let mut sampler = sampler(request.pid, &mut warnings, &mut missing);
    let mut manifest = begin(request);
    if manifest.server.binary.is_none() {
        for figure in ["server.binary", "server.build_id"] {
            let fix = how_to_get_privileges();
            let reason = format!("the program of the process is hidden from this user; {fix}");
            missing.insert(figure.to_owned(), reason);
        }
    }
    for warning in warnings {
        progress.warning(&warning);
        manifest.warnings.push(warning);
    }
    bundle.write_settings(&settings(cpus_of(request.pid)))?;
    bundle.write_manifest(&manifest)?;

    let mut seen = look(request, &life, (&mut threads, sampler.as_mut()), stop, progress);
    threads.end();
    give_way();
    progress.stage("naming what was seen");
    let mut rows = MeasurementRows::default();
    let (counters, lacks) = counter_rows(0, &seen.samples);
    // There is no client of ours: what this process used is not the client's.
    rows.counters
        .extend(counters.into_iter().filter(|row| !is_of_client(&row.counter)));
    missing.extend(lacks.into_iter().filter(|(figure, _)| !is_of_client(figure)));
    rows.counters.extend(watched_seconds(&seen.stretches));
    threads.add_rows(0, seen.started_at, Load::Anybodys, &mut seen.stretches, &mut rows);
    bundle.write_measurement(&rung(&seen, &rows), &rows)?;
    missing.extend(keep_code(&bundle, &mut threads)?);
    missing.extend(threads.problems());

    manifest.missing = missing
        .into_iter()
        .map(|(figure, reason)| Missing { figure, reason })
        .collect();
    manifest.ended_at = Some(manifest::timestamp());
    (manifest.state, manifest.problem) = match seen.end {
        End::InTime => (RunState::Complete, None),
        End::Stopped => (RunState::Interrupted, Some("stopped by the user".to_owned())),
        End::ServerGone => (
            RunState::Failed,
            Some("the server ended while it was watched".to_owned()),
        ),
        End::WatchGone => (RunState::Failed, Some("the watch ended before its time".to_owned())),
    };
    bundle.write_manifest(&manifest)?;
    let written = Bundle::open(bundle.path())?;
    let summary = summarise(&written);
    bundle.write_summary(&summary)?;
    Ok(WatchResult {
        bundle: written,
        summary,
        problem: manifest.problem.filter(|_| manifest.state == RunState::Failed),
    })
}

/// From here on this thread, and those that it starts, get a third of a server thread's share where both want a CPU (sched(7); in cgroups
/// of their own the groups share it alike, and this changes nothing). No less: of a server with fifty threads for each CPU nothing
/// would be left in which to come to an end. A thread has a nice value of its own (setpriority(2)), and needs no privilege to raise it.
fn give_way() {
    const NICE: i32 = 5;
    if rustix::process::getpriority_process(None).is_ok_and(|nice| nice < NICE) {
        let _ = rustix::process::setpriority_process(None, NICE);
    }
}

fn is_of_client(figure: &str) -> bool {
    figure.starts_with("client.")
}

/// How a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    InTime,
    Stopped,
    ServerGone,
    WatchGone,
}

/// What was seen: one reading at the start, one at the end of each second.
struct Seen {
    started_at: scaleprof_bundle::UtcMicros,
    stretches: Vec<Stretch>,
    samples: Vec<Sample>,
    end: End,
}

fn look(
    request: &WatchRequest,
    life: &Life,
    (threads, mut sampler): (&mut ThreadWatch, Option<&mut Sampler>),
    stop: &AtomicBool,
    progress: &mut dyn Progress,
) -> Seen {
    let mut seen = Seen {
        started_at: now(),
        stretches: Vec::new(),
        samples: Vec::new(),
        end: End::InTime,
    };
    let mut boundary = |seen: &mut Seen, at_end: bool| {
        if let Some(sampler) = &mut sampler {
            seen.samples.push(match at_end {
                true => sampler.sample_at_end_of_measurement(),
                false => sampler.sample(),
            });
        }
        let stretch = threads.read();
        let goes_on = stretch.taken_ns > 0;
        if goes_on {
            seen.stretches.push(stretch);
        }
        goes_on
    };
    if !boundary(&mut seen, true) {
        seen.end = End::WatchGone;
        return seen;
    }
    seen.started_at = now();
    let began = Instant::now();
    for second in 1..=request.seconds {
        let count = seen.stretches.last().map_or(0, Stretch::thread_count);
        progress.watched(second - 1, request.seconds, count);
        let until = began + Duration::from_secs(u64::from(second));
        seen.end = wait(until, life, stop);
        let over = seen.end != End::InTime || second == request.seconds;
        if !boundary(&mut seen, over) && seen.end == End::InTime {
            seen.end = End::WatchGone;
        }
        if seen.end != End::InTime {
            break;
        }
    }
    seen
}

/// Waits until that moment, or until there is nothing more to wait for.
fn wait(until: Instant, life: &Life, stop: &AtomicBool) -> End {
    loop {
        if stop.load(Ordering::Relaxed) {
            return End::Stopped;
        }
        if life.is_over() {
            return End::ServerGone;
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return End::InTime;
        }
        std::thread::sleep(left.min(PATIENCE));
    }
}

/// A process, by an open file of its: its number may be another's one day, the file is not.
struct Life {
    stat: File,
}

impl Life {
    /// The process that is to be watched, if it is one that can be.
    fn of(request: &WatchRequest) -> Result<Life, WatchError> {
        let pid = request.pid;
        let gone = |_| WatchError::NoProcess { pid };
        let stat = File::open(format!("/proc/{pid}/stat")).map_err(gone)?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(gone)?;
        let process = status
            .lines()
            .find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        if let Some(of) = process.filter(|of| *of != pid) {
            return Err(WatchError::Thread { pid, of });
        }
        let name = name_of(pid).ok_or(WatchError::NoProcess { pid })?;
        if !request.force && !is_server(&name) {
            return Err(WatchError::NotAServer { pid, name });
        }
        let life = Life { stat };
        match life.is_over() {
            true => Err(WatchError::NoProcess { pid }),
            false => Ok(life),
        }
    }

    /// Whether it has ended; a zombie has.
    fn is_over(&self) -> bool {
        let mut text = [0; 512];
        let Ok(length) = self.stat.read_at(&mut text, 0) else {
            return true;
        };
        is_ended(&String::from_utf8_lossy(&text[..length]))
    }
}

fn sampler(pid: u32, warnings: &mut Vec<String>, missing: &mut BTreeMap<String, String>) -> Option<Sampler> {
    let options = SamplerOptions {
        // It is not ours: it stays in the cgroup that its owner put it into.
        leave_cgroup: true,
        ..SamplerOptions::default()
    };
    match Sampler::start(pid, options) {
        Ok(sampler) => {
            warnings.extend(sampler.notes().iter().cloned());
            Some(sampler)
        }
        Err(error) => {
            warnings.push(format!("nothing of the server's CPU time can be measured: {error}"));
            missing.insert("server.*".to_owned(), error.to_string());
            None
        }
    }
}

/// How long each second really was: the last may have ended early.
fn watched_seconds(stretches: &[Stretch]) -> Vec<CounterRow> {
    let lengths = stretches.windows(2).enumerate();
    lengths
        .map(|(second, pair)| CounterRow {
            measurement: 0,
            second: Some(second as i32),
            counter: "probe.watched_seconds".to_owned(),
            value: pair[1].taken_ns.saturating_sub(pair[0].taken_ns) as f64 / 1e9,
            running_share: None,
        })
        .collect()
}

/// The one measurement of a watch. It counts whenever it ended: what was seen until then is whole.
fn rung(seen: &Seen, rows: &MeasurementRows) -> MeasurementRow {
    let of_connections = rows.states.iter().filter(|row| row.role == Role::Connection);
    let told = |state| {
        use ThreadState::{Io, Lock, Net, Sleep};
        matches!(state, Net | Lock | Io | Sleep)
    };
    let roles_are_told =
        !rows.samples.is_empty() || rows.states.iter().any(|row| told(row.state) && row.nanoseconds > 0);
    let connections: BTreeSet<i64> = of_connections.filter_map(|row| row.thread).collect();
    MeasurementRow {
        measurement: 0,
        connections: match roles_are_told {
            true => i32::try_from(connections.len()).unwrap_or(i32::MAX),
            false => UNKNOWN,
        },
        idle_connections: 0,
        repeat: 0,
        offered_rate: None,
        started_at: seen.started_at,
        connect_seconds: 0.0,
        outcome: MeasurementOutcome::Complete,
        client_lag_p99_us: None,
        client_threads: 0,
        client_resident_bytes: None,
    }
}

fn begin(request: &WatchRequest) -> Manifest {
    let facts = MachineFacts::read();
    let cpus = cpus_of(request.pid);
    let binary = std::fs::read_link(format!("/proc/{}/exe", request.pid)).ok();
    let binary = binary.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    // What the kernel says of a file that was replaced.
    let binary = binary.map(|name| name.trim_end_matches(" (deleted)").to_owned());
    let unknown = || scaleprof_bundle::UNKNOWN.to_owned();
    Manifest {
        schema: scaleprof_bundle::SCHEMA,
        scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: manifest::timestamp(),
        ended_at: None,
        state: RunState::Running,
        problem: None,
        command: request.command.clone(),
        server: Server {
            product: unknown(),
            version: unknown(),
            build_id: scaleprof_server::identify::build_id(&PathBuf::from(format!("/proc/{}/exe", request.pid))),
            binary,
            cpus: cpus
                .as_ref()
                .filter(|cpus| cpus.len() < facts.cpus.unwrap_or(0))
                .map(CpuSet::to_string),
            cpu_count: cpus.as_ref().map(|cpus| cpus.len() as u32),
            shares_cpus_with_client: None,
        },
        workload: Workload {
            name: WorkloadName::Watch,
            imported_as: None,
            tables: None,
            rows: None,
            distribution: "none".to_owned(),
            protocol: "none".to_owned(),
            isolation: None,
            seed: 0,
            loop_kind: None,
            options: Vec::new(),
        },
        machine: manifest::machine(&facts),
        ladder: Ladder {
            connections: Vec::new(),
            refined: Vec::new(),
            seconds: request.seconds,
            repeats: 1,
            idle_connections: 0,
            rate: None,
            interleaving: None,
        },
        missing: Vec::new(),
        warnings: Vec::new(),
    }
}

fn settings(cpus: Option<CpuSet>) -> Vec<SettingRow> {
    let row = |cpus: CpuSet| SettingRow::new("scaleprof.server_cpu_list", cpus.to_string());
    cpus.map(row).into_iter().collect()
}
