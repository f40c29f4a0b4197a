//! One round: a program at every rung, its bundle, and what the analysis makes of it.

use super::diseases::Disease;
use super::full_speed;
use super::program::Program;
use scaleprof_analysis::summarise;
use scaleprof_analysis::wait_graph::{WaitGraph, wait_graphs};
use scaleprof_bundle::{
    Bundle, BundleWriter, Finding, Ladder, Machine, Manifest, RungSummary, SecondRow, Server, Workload,
};
use scaleprof_experiment::{OwnLoad, OwnMeasurement, WatchOptions};
use scaleprof_probe::MachineFacts;
use scaleprof_vocabulary::{RunState, ThreadState};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How large a round is.
pub struct Size {
    rungs: &'static [u32],
    /// Seconds a rung.
    seconds: u32,
}

impl Size {
    /// For every build.
    pub const SMALL: Size = Size {
        rungs: &[1, 8],
        seconds: 3,
    };
    /// For the ten rounds.
    pub const LARGE: Size = Size {
        rungs: &[1, 2, 4, 16],
        seconds: 5,
    };
}

/// What a round found.
pub struct Found {
    pub findings: Vec<Finding>,
    /// The part of the workers' time at the last rung that they lost by their own measure.
    pub true_share: Option<f64>,
    /// Who waits for whom at every rung.
    pub waits: Vec<WaitGraph>,
    /// Threads that wait for a lock on average at the last rung, by the ledger.
    pub threads_in_lock: Option<f64>,
    rungs: Vec<String>,
    /// How many times as long as on one thread alone a transaction took, in the second of several threads in which that was least.
    dearer: f64,
    /// The same of the second in which it was most.
    slowest: f64,
    /// The largest part of the CPUs that other programs and the host of a virtual machine took at a rung.
    others: f64,
    /// The least speed of all CPUs together, as a part of that of one alone, before the first rung and after each.
    speed: f64,
}

/// From this part of the CPUs on others disturb.
const DISTURBED: f64 = 0.06;

impl Found {
    /// Why the round says nothing, if it does not: others took the CPUs, or the disease did not break out.
    pub fn is_void(&self, disease: &Disease) -> Option<&'static str> {
        if self.others > DISTURBED && !disease.writes {
            return Some("others used the CPUs");
        }
        // Of threads that share nothing the transactions themselves tell, second by second, how fast the CPUs were meanwhile.
        let is_slow = match disease.expected {
            None => self.slowest > 1.0 / full_speed::least(),
            Some(_) => self.speed < full_speed::least(),
        };
        if !disease.mostly_waits && is_slow {
            return Some("the CPUs were slower together than alone");
        }
        let broke_out = disease.dearer.is_none_or(|least| self.dearer >= least);
        (!broke_out).then_some("in a second of several threads a transaction took no longer than one alone, so that nothing was planted then")
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rungs, dearer, others) = (self.rungs.join(", "), self.dearer, self.others * 100.0);
        let slowest = self.slowest;
        write!(
            f,
            "{rungs}, {dearer:.2} to {slowest:.2} times as long as alone, others {others:.1} %, CPUs at {:.2} of their speed",
            self.speed
        )?;
        for finding in &self.findings {
            let lost = finding.lost_share;
            let share = |share: Option<f64>| share.map_or("?".to_owned(), |share| format!("{:.1}", share * 100.0));
            write!(
                f,
                "; {} {:.1} % [{}, {}]: {}",
                finding.kind.name(),
                lost.value * 100.0,
                share(lost.low),
                share(lost.high),
                finding.title
            )?;
            if f.alternate() {
                write!(
                    f,
                    "\n  {}\n  {}",
                    finding.path.join(" > "),
                    finding.evidence.join("\n  ")
                )?;
            }
        }
        if let Some(truth) = self.true_share {
            write!(f, "; by its own clock {:.1} %", truth * 100.0)?;
        }
        Ok(())
    }
}

/// Runs a program through its rungs.
pub fn round(disease: &Disease, size: &Size) -> Found {
    // Not in memory: one of them syncs a file.
    let folder = tempfile::Builder::new()
        .prefix("planted-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("a folder");
    let mut program = Program::start(disease.program, folder.path());
    let mut load = OwnLoad::start(program.pid(), WatchOptions::default()).expect("it can be watched");
    let bundle = BundleWriter::create(folder.path().join("bundle")).expect("an empty folder");
    bundle.write_manifest(&manifest(disease, size)).expect("writable");
    let mut true_share = None;
    let mut measurements = Vec::new();
    let mut speed = full_speed::of_all_cpus();
    for (measurement, workers) in (0..).zip(size.rungs) {
        let measurement = OwnMeasurement {
            measurement,
            repeat: 0,
            workers: program.workers(*workers),
            seconds: size.seconds,
        };
        // Threads find their CPUs.
        std::thread::sleep(Duration::from_millis(200));
        let (rung, rows) = load.measurement(&measurement, || program.transactions());
        true_share = program.stop();
        speed = speed.min(full_speed::of_all_cpus());
        bundle.write_measurement(&rung, &rows).expect("writable");
        measurements.push((*workers, rows.seconds));
    }
    load.keep_code(&bundle).expect("its binary can be read");
    drop(load);
    let bundle = Bundle::open(bundle.path()).expect("readable");
    let summary = summarise(&bundle);
    keep(&bundle.path, disease.program);
    let times = times_as_long(&measurements);
    Found {
        rungs: summary.rungs.iter().map(of_rung).collect(),
        dearer: times.iter().copied().fold(f64::INFINITY, f64::min),
        slowest: times.iter().copied().fold(0.0, f64::max),
        true_share,
        speed,
        waits: wait_graphs(&bundle),
        threads_in_lock: summary.rungs.last().and_then(threads_in_lock),
        others: summary
            .rungs
            .iter()
            .map(|rung| rung.noise_cpu_share.unwrap_or(0.0) + rung.steal_share.unwrap_or(0.0))
            .fold(0.0, f64::max),
        findings: summary.findings,
    }
}

/// Little's law: connections times the part of their time.
fn threads_in_lock(rung: &RungSummary) -> Option<f64> {
    let ledger = rung.ledger.as_ref()?;
    Some(f64::from(rung.connections) * ledger.seconds_per_txn[ThreadState::Lock]? / ledger.connections_over_throughput?)
}

/// How many times as long on a CPU as on one thread alone a transaction took, where threads that could run kept all CPUs busy: by the
/// programs' own counts, second by second, since the host of a virtual machine moves its CPUs whenever it likes.
fn times_as_long(measurements: &[(u32, Vec<SecondRow>)]) -> Vec<f64> {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    let [(_, alone), others @ ..] = measurements else {
        panic!("no rung")
    };
    let rates = |seconds: &[SecondRow]| -> Vec<f64> {
        let rate = |second: &SecondRow| second.transactions as f64 / (second.duration_ns as f64 / 1e9);
        seconds.iter().map(rate).collect()
    };
    let alone = rates(alone);
    let alone = alone.iter().sum::<f64>() / alone.len() as f64;
    let times = others.iter().flat_map(|(workers, seconds)| {
        let most = alone * f64::from((*workers).min(cpus));
        rates(seconds).into_iter().map(move |rate| most / rate)
    });
    times.collect()
}

/// A rung in short.
fn of_rung(rung: &RungSummary) -> String {
    let busy = rung
        .busy_share
        .map_or("?".to_owned(), |share| format!("{:.0}", share * 100.0));
    format!(
        "{} threads {:.0}/s busy {busy} %",
        rung.connections, rung.throughput.value
    )
}

fn keep(bundle: &Path, program: &str) {
    let Some(folder) = std::env::var_os("PLANTED_KEEP").map(PathBuf::from) else {
        return;
    };
    let to = (0..)
        .map(|number| folder.join(format!("{program}-{number}")))
        .find(|path| !path.exists())
        .expect("a free name");
    let copied = Command::new("cp").arg("-r").args([bundle, &to]).status();
    assert!(copied.expect("cp runs").success(), "kept in {}", to.display());
}

fn manifest(disease: &Disease, size: &Size) -> Manifest {
    let facts = MachineFacts::read();
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    Manifest {
        schema: scaleprof_bundle::SCHEMA,
        scaleprof: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        ended_at: None,
        state: RunState::Complete,
        problem: None,
        command: Vec::new(),
        server: Server {
            product: "planted".to_owned(),
            version: disease.program.to_owned(),
            build_id: None,
            binary: Some(disease.program.to_owned()),
            cpus: None,
            cpu_count: Some(cpus),
            shares_cpus_with_client: Some(true),
        },
        workload: Workload {
            name: scaleprof_vocabulary::WorkloadName::Imported,
            imported_as: Some(disease.program.to_owned()),
            tables: None,
            rows: None,
            distribution: "none".to_owned(),
            protocol: "none".to_owned(),
            isolation: None,
            seed: 1,
            loop_kind: Some(scaleprof_vocabulary::LoopWord::Closed),
            options: Vec::new(),
        },
        machine: Machine {
            cpu_model: facts.cpu_model.unwrap_or_default(),
            cpus: Some(cpus),
            numa_nodes: Some(1),
            memory_bytes: facts.memory_bytes,
            kernel: facts.kernel_release.unwrap_or_default(),
            architecture: facts.architecture,
            distribution: None,
            hypervisor: None,
            governor: None,
            clock_source: None,
            transparent_huge_pages: None,
            pause_nanoseconds: None,
        },
        ladder: Ladder {
            connections: size.rungs.to_vec(),
            refined: Vec::new(),
            seconds: size.seconds,
            repeats: 1,
            idle_connections: 0,
            rate: None,
            interleaving: None,
        },
        missing: Vec::new(),
        warnings: Vec::new(),
    }
}
