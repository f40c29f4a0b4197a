//! `scaleprof selfbench`: what the client costs here, beside sysbench's, in one run.
//!
//! Both run as processes of their own against the same server, in turns; the CPU time of each is what the kernel
//! accounts to the process from its start to its end, connecting included.

mod child;
mod lasting_load;
mod table;
mod watching;

use crate::arguments::{BenchArguments, SelfbenchArguments, SelfbenchCommand};
use crate::bench_load;
use crate::output::{put, say};
use crate::stop;
use anyhow::{Context, bail};
use child::{Measured, ours, sysbench};
use scaleprof_builds::server_path;
use scaleprof_server::{Installation, Janitor, Sandbox, SandboxBuilder, ServerSettings, Settings, WorkFolder};
use scaleprof_workload::OltpWorkloadKind;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use table::Row;

/// Tables and rows of the load.
const TABLES: u32 = 4;
const ROWS: u32 = 50_000;

/// One combination to measure.
#[derive(Debug, Clone, Copy)]
struct Case {
    workload: OltpWorkloadKind,
    connections: u32,
    seconds: u32,
    rows: u32,
}

pub(crate) fn execute(arguments: &SelfbenchArguments) -> anyhow::Result<ExitCode> {
    let (bench, fill) = match &arguments.command {
        SelfbenchCommand::LoadProcess(load) => {
            if std::env::var_os(child::LOAD_PROCESS).is_none() {
                bail!("selfbench starts this process itself; to load a server: scaleprof run");
            }
            return bench_load::execute(load);
        }
        SelfbenchCommand::Client(bench) | SelfbenchCommand::Watch { bench, .. } => (bench, None),
        SelfbenchCommand::Fill { bench, rows } => (bench, Some(*rows)),
    };
    let stop = stop::flag()?;
    let sandbox = start(bench, fill.unwrap_or(ROWS))?;
    let scaleprof_wire::Endpoint::Unix(socket) = sandbox.endpoint().clone() else {
        bail!("the private server has no socket");
    };
    let server = name_of(&sandbox);
    if let SelfbenchCommand::Watch { alone, .. } = arguments.command {
        return bench_watching(bench, alone, &sandbox, &socket, &stop);
    }
    let has_sysbench = child::has_sysbench();
    if !has_sysbench {
        eprintln!("sysbench is not installed: only scaleprof is measured (apt-get install sysbench)");
    }
    let rows = match fill {
        Some(fill) => vec![measure_fill(bench, &socket, fill, has_sysbench)?],
        None => measure_client(bench, &socket, has_sysbench, &stop)?,
    };
    drop(sandbox);
    match bench.json {
        true => say!(
            "{}",
            serde_json::to_string_pretty(&serde_json::json!({"server": server, "rows": rows}))?
        ),
        false => put!("{server}\n\n{}", table::text(&rows)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Every workload at every number of connections.
fn cases(arguments: &BenchArguments) -> impl Iterator<Item = Case> {
    arguments.workload.iter().flat_map(move |&workload| {
        arguments.connections.iter().map(move |&connections| Case {
            workload,
            connections,
            seconds: arguments.seconds,
            rows: ROWS,
        })
    })
}

/// The client beside sysbench's, in turns.
fn measure_client(
    arguments: &BenchArguments,
    socket: &Path,
    has_sysbench: bool,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<Row>> {
    child::fill_ours(socket, ROWS)?;
    let mut rows = Vec::new();
    for case in cases(arguments) {
        let (mut our, mut their) = (Vec::new(), Vec::new());
        for turn in 0..arguments.repeats {
            if stop.load(Ordering::Relaxed) {
                return Err(scaleprof_experiment::RunError::Stopped.into());
            }
            eprintln!(
                "{}, {} connections, turn {} of {}",
                case.workload,
                case.connections,
                turn + 1,
                arguments.repeats
            );
            our.push(ours(socket, case, arguments.transport)?);
            if has_sysbench {
                their.push(sysbench(socket, case)?);
            }
        }
        rows.push(Row::new(case.workload.name(), case.connections, &our, &their));
    }
    Ok(rows)
}

fn name_of(sandbox: &Sandbox) -> String {
    let installation = sandbox.installation();
    format!("{} {}", installation.product, installation.version_text)
}

/// What watching the server costs it.
fn bench_watching(
    arguments: &BenchArguments,
    alone: bool,
    sandbox: &Sandbox,
    socket: &Path,
    stop: &AtomicBool,
) -> anyhow::Result<ExitCode> {
    child::fill_ours(socket, ROWS)?;
    let mut rows = Vec::new();
    for case in cases(arguments) {
        let stopped = || stop.load(Ordering::Relaxed);
        let target = (socket, sandbox.pid());
        match watching::measure(target, case, arguments.repeats, !alone, arguments.transport, stopped)? {
            Some(row) => rows.push(row),
            None => return Err(scaleprof_experiment::RunError::Stopped.into()),
        }
    }
    let server = name_of(sandbox);
    match arguments.json {
        true => say!(
            "{}",
            serde_json::to_string_pretty(&serde_json::json!({"server": server, "rows": rows}))?
        ),
        false => put!("{server}\n\n{}", watching::text(&rows)),
    }
    Ok(ExitCode::SUCCESS)
}

fn start(arguments: &BenchArguments, rows: u32) -> anyhow::Result<Sandbox> {
    let installation = match &arguments.server {
        Some(path) => Installation::at(&server_path(path)?)?,
        None => Installation::distribution()?,
    };
    let most = arguments.connections.iter().max().copied().unwrap_or(1);
    let settings = Settings::new(ServerSettings {
        connections: most + 16,
        dataset: Some(u64::from(TABLES) * u64::from(rows) * 245),
        ..ServerSettings::default()
    })?;
    let work = WorkFolder::open(&WorkFolder::default_path())?;
    Ok(SandboxBuilder::new(installation, settings, work)
        .janitor(Janitor::spawn()?)
        .start_fresh()?)
}

/// Filling tables, ours and sysbench's in turns, with as many threads as tables.
fn measure_fill(arguments: &BenchArguments, socket: &Path, rows: u32, has_sysbench: bool) -> anyhow::Result<Row> {
    let (mut our, mut their) = (Vec::new(), Vec::new());
    for turn in 0..arguments.repeats {
        eprintln!(
            "filling {TABLES} tables of {rows} rows, turn {} of {}",
            turn + 1,
            arguments.repeats
        );
        our.push(child::fill_ours(socket, rows).context("filling")?);
        if has_sysbench {
            their.push(child::fill_sysbench(socket, rows)?);
        }
    }
    Ok(Row::new("fill", TABLES, &our, &their))
}

/// The median of some figures.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(values[n / 2]),
        _ => Some((values[n / 2 - 1] + values[n / 2]) / 2.0),
    }
}

/// Median of a figure of some measurements.
fn median_of(measured: &[Measured], figure: impl Fn(&Measured) -> f64) -> Option<f64> {
    median(measured.iter().map(figure))
}
