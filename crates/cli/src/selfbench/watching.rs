//! What watching costs: throughput with everything on over throughput without, beside perf and bpftrace, in turns.

use super::lasting_load::LastingLoad;
use super::{Case, median};
use anyhow::{Context, bail};
use scaleprof_analysis::student::t_quantile_975;
use scaleprof_experiment::{WatchOptions, Watching};
use scaleprof_workload::TransportChoice;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long ours is on, or off, at a time: the machine changes less in a quarter of a second than in more (docs/adr/0020).
const STRETCH: Duration = Duration::from_millis(250);
/// Stretches of a turn of ours: four seconds.
const STRETCHES: usize = 16;

/// Who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watcher {
    Scaleprof,
    /// As on a kernel that takes no BPF programs: states from /proc, stacks from perf events.
    ScaleprofWithoutBpf,
    PerfFramePointers,
    PerfDwarf,
    BpftraceOffCpu,
    /// The control: what comes out where nothing is to be found tells what the others' figures are worth.
    Nobody,
}

impl Watcher {
    const ALL: [Watcher; 6] = [
        Watcher::Scaleprof,
        Watcher::Nobody,
        Watcher::ScaleprofWithoutBpf,
        Watcher::PerfFramePointers,
        Watcher::PerfDwarf,
        Watcher::BpftraceOffCpu,
    ];

    fn name(self) -> &'static str {
        match self {
            Watcher::Scaleprof => "scaleprof, everything on",
            Watcher::ScaleprofWithoutBpf => "scaleprof without BPF",
            Watcher::PerfFramePointers => "perf record -F 99 -g",
            Watcher::PerfDwarf => "perf record -F 99 --call-graph dwarf",
            Watcher::BpftraceOffCpu => "bpftrace, off-CPU stacks",
            Watcher::Nobody => "nobody, as a control",
        }
    }

    /// Whether it can be had in the midst of a load, for a moment at a time.
    fn is_ours(self) -> bool {
        matches!(self, Watcher::Scaleprof | Watcher::Nobody)
    }

    /// A watcher attaches to hundreds of threads, compiles its script, or finds out how often it may
    /// look: beginning is not counted, of nobody.
    fn begins_in(self) -> Duration {
        Duration::from_secs(match self {
            // It first tries BPF, and then reads how to unwind all code of the server, which takes half a
            // second of CPU time.
            Watcher::ScaleprofWithoutBpf => 8,
            _ => 2,
        })
    }

    fn is_here(self) -> bool {
        let program = match self {
            Watcher::Scaleprof | Watcher::Nobody => return true,
            Watcher::ScaleprofWithoutBpf => "unshare",
            Watcher::PerfFramePointers | Watcher::PerfDwarf => "perf",
            Watcher::BpftraceOffCpu => "bpftrace",
        };
        let mut version = Command::new(program);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    }

    fn command(self, pid: u32, folder: &Path) -> Option<Command> {
        let perf = |call_graph: &[&str]| {
            let mut command = Command::new("perf");
            command
                .args(["record", "-q", "-F", "99"])
                .args(call_graph)
                .args(["-p", &pid.to_string(), "-o"])
                .arg(folder.join("perf.data"));
            command
        };
        match self {
            Watcher::Scaleprof | Watcher::Nobody => None,
            Watcher::ScaleprofWithoutBpf => Some(without_bpf(pid, folder)),
            Watcher::PerfFramePointers => Some(perf(&["-g"])),
            Watcher::PerfDwarf => Some(perf(&["--call-graph", "dwarf"])),
            Watcher::BpftraceOffCpu => Some(bpftrace(pid)),
        }
    }
}

/// `attach --pid` of our own where the kernel's types are hidden, without which no BPF program loads.
fn without_bpf(pid: u32, folder: &Path) -> Command {
    const HIDE_AND_WATCH: &str = r#"mount -t tmpfs tmpfs /sys/kernel/btf || exit
        exec "$0" attach --quiet --any-process --seconds 3600 --pid "$1" --output "$(mktemp -d "$2/watch.XXXXXX")""#;
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", HIDE_AND_WATCH]);
    command.arg(std::env::current_exe().unwrap_or_else(|_| "scaleprof".into()));
    command.arg(pid.to_string()).arg(folder);
    command
}

/// What bcc's offcputime does, in bpftrace: a user and a kernel stack at each switch from one of the server's threads. Its
/// tracepoints need tracefs, which a private mount namespace gets without touching the host's.
fn bpftrace(pid: u32) -> Command {
    let script = format!(
        "tracepoint:sched:sched_switch {{ if (pid == {pid}) {{ @start[tid] = nsecs; @user[tid] = ustack(perf); \
         @kernel[tid] = kstack(perf); }} $next = args->next_pid; if (@start[$next]) {{ \
         @[@user[$next], @kernel[$next]] = sum(nsecs - @start[$next]); delete(@start[$next]); }} }}"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c"]).arg(format!(
        "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; ulimit -l unlimited; exec bpftrace -e '{script}'"
    ));
    command
}

/// Another program at work.
struct Running(Child);

impl Running {
    fn start(mut command: Command, begins_in: Duration) -> std::io::Result<Self> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(quiet.spawn()?);
        std::thread::sleep(begins_in);
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What it gathered is of no use here, and printing it takes some of them minutes.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One combination.
#[derive(Debug, Serialize)]
pub(super) struct WatchingRow {
    workload: String,
    connections: u32,
    rounds: u32,
    nobody_per_second: Option<f64>,
    watchers: Vec<Watched>,
}

#[derive(Debug, Serialize)]
struct Watched {
    watcher: &'static str,
    /// How often it watched.
    turns: usize,
    /// Geometric mean of the turns' throughput with it over that around them.
    ratio: f64,
    /// 95 % interval (t on the logarithms); none with one round.
    low: Option<f64>,
    high: Option<f64>,
}

/// Measures one combination under one load that goes on.
///
/// Another program begins and ends between seconds in which nobody watches, and its seconds are compared with as many around them.
/// Ours can be paused, which takes everything out of the kernel's way in the midst of what it does: so two seconds with it are compared
/// with two without in stretches of a quarter of a second (ABBA BAAB), which does away with a drift, and with most of what is slower
/// than that. Pausing and going on are in neither; its own turns of watching and resting, which a pause only interrupts, are. The same
/// is done with nobody, as a control.
pub(super) fn measure(
    (socket, pid): (&Path, u32),
    case: Case,
    rounds: u32,
    beside_others: bool,
    transport: TransportChoice,
    stop: impl Fn() -> bool,
) -> anyhow::Result<Option<WatchingRow>> {
    let folder = tempfile::tempdir().context("making a folder for perf's recordings")?;
    let wanted = Watcher::ALL
        .into_iter()
        .filter(|watcher| beside_others || watcher.is_ours());
    let (present, absent): (Vec<Watcher>, Vec<Watcher>) = wanted.partition(|watcher| watcher.is_here());
    for absent in absent {
        eprintln!("{} cannot be had here and is left out", absent.name());
    }
    let others = present.iter().copied().filter(|watcher| *watcher != Watcher::Scaleprof);
    let order: Vec<Watcher> = others.flat_map(|other| [Watcher::Scaleprof, other]).collect();
    // A watcher's seconds, those before and after, and up to fourteen to begin and end in; or four and
    // the rest of one.
    let a_turn = (3 * case.seconds + 14).max(5);
    let longest = a_turn * order.len() as u32 * rounds + 30;
    let mut load = LastingLoad::start(socket, case, longest, transport)?;
    let ours = Watching::start(pid, WatchOptions::default())?;
    // It warms up, and finds out how often it may look.
    load.rate_for(Duration::from_secs(4))?;
    ours.set_paused(true)?;
    let mut ratios: Vec<(Watcher, f64)> = Vec::new();
    let mut alone = Vec::new();
    for round in 0..rounds as usize {
        eprintln!(
            "{}, {} connections, round {} of {rounds}",
            case.workload,
            case.connections,
            round + 1
        );
        for turn in 0..order.len() {
            if stop() {
                return Ok(None);
            }
            // Forwards and backwards by turns, so that what comes before is not always the same.
            let place = if round % 2 == 0 { turn } else { order.len() - 1 - turn };
            let watcher = order[place];
            let (watched, nobody) = match watcher.command(pid, folder.path()) {
                None => {
                    let on = pattern((round + turn / 2) % 2 == 0);
                    let mut switch = |on: bool| match watcher {
                        Watcher::Scaleprof => Ok(ours.set_paused(!on)?),
                        _ => Ok(()),
                    };
                    let rates = load.alternate(&on, STRETCH, &mut switch)?;
                    let mean_of = |wanted: bool| {
                        let those = rates.iter().zip(on).filter(|(_, on)| *on == wanted);
                        those.map(|(rate, _)| rate).sum::<f64>() / (STRETCHES / 2) as f64
                    };
                    (mean_of(true), mean_of(false))
                }
                Some(command) => {
                    let seconds = Duration::from_secs(u64::from(case.seconds));
                    let before = load.rate_for(seconds)?;
                    let mut running = Running::start(command, watcher.begins_in())
                        .with_context(|| format!("starting {}", watcher.name()))?;
                    let watched = load.rate_for(seconds)?;
                    if let Some(ended) = running.0.try_wait()? {
                        bail!("{} was not there to be measured: {ended}", watcher.name());
                    }
                    drop(running);
                    let after = load.rate_for(seconds)?;
                    (watched, (before + after) / 2.0)
                }
            };
            alone.push(nobody);
            ratios.push((watcher, watched / nobody));
        }
    }
    let watchers = present.iter().map(|watcher| {
        let theirs = ratios.iter().filter(|(who, _)| who == watcher);
        let logs: Vec<f64> = theirs.map(|(_, ratio)| ratio.ln()).collect();
        let (mean, half) = mean_and_half_width(&logs);
        Watched {
            watcher: watcher.name(),
            turns: logs.len(),
            ratio: mean.exp(),
            low: half.map(|half| (mean - half).exp()),
            high: half.map(|half| (mean + half).exp()),
        }
    });
    Ok(Some(WatchingRow {
        workload: case.workload.name().to_owned(),
        connections: case.connections,
        rounds,
        watchers: watchers.collect(),
        nobody_per_second: median(alone.into_iter()),
    }))
}

/// When it is on: ABBA BAAB over and over, or the other way round.
fn pattern(begins_on: bool) -> [bool; STRETCHES] {
    const ON_FIRST: [bool; 8] = [true, false, false, true, false, true, true, false];
    std::array::from_fn(|at| ON_FIRST[at % ON_FIRST.len()] == begins_on)
}

fn mean_and_half_width(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, Some(t_quantile_975(n - 1.0) * (variance / n).sqrt()))
}

/// The rows for a person.
pub(super) fn text(rows: &[WatchingRow]) -> String {
    let mut out = String::from("Throughput while watched, over throughput without:\n");
    for row in rows {
        let _ = writeln!(
            out,
            "\n{}, {} connections, {} rounds, {:.0} tx/s unwatched",
            row.workload,
            row.connections,
            row.rounds,
            row.nobody_per_second.unwrap_or(f64::NAN)
        );
        for watched in &row.watchers {
            let interval = match (watched.low, watched.high) {
                (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
                _ => "one turn: no interval".to_owned(),
            };
            let _ = writeln!(
                out,
                "  {:<38} {:.3}  ({interval}; {} turns)",
                watched.watcher, watched.ratio, watched.turns
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_on_for_as_long_as_it_is_off_and_a_drift_befalls_both() {
        for begins_on in [true, false] {
            let on = pattern(begins_on);
            let places = |wanted| -> Vec<usize> { (0..STRETCHES).filter(|&at| on[at] == wanted).collect() };
            let (with, without) = (places(true), places(false));
            assert_eq!(with.len(), without.len());
            assert_eq!(with.iter().sum::<usize>(), without.iter().sum::<usize>());
            assert_eq!(on[0], begins_on);
        }
    }

    #[test]
    fn the_interval_is_that_of_student() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        // 4.303 · 1/√3
        assert!((half.expect("three values") - 2.484).abs() < 0.01);
        assert_eq!(mean_and_half_width(&[1.0]), (1.0, None));
    }
}
