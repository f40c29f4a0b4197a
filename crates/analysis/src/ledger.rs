//! The thread ledger (DESIGN section 2): in a closed loop of N connections the thread-seconds per transaction in all states
//! add up to N/X, by Little's law.

use crate::measured_seconds::MeasuredSeconds;
use crate::numbers::percent;
use crate::thread_time::ThreadTime;
use crate::totals::{Total, Window};
use scaleprof_bundle::{BackgroundThreads, CounterRow, Ledger, Missing, SampleBlock, StateRow};
use scaleprof_vocabulary::{PerState, Role, ThreadState, UnwindStatus};
use std::collections::{BTreeMap, BTreeSet};

/// Residuals beyond this are warned about.
pub(crate) const TOLERANCE: f64 = 0.02;

/// What the probe wrote of the measurements of one rung.
#[derive(Debug, Clone, Default)]
pub struct Watched<'a> {
    /// Rows of `states`.
    pub states: Vec<&'a StateRow>,
    /// Stretches of `samples`.
    pub samples: Vec<&'a SampleBlock>,
    /// Rows of `counters`.
    pub counters: Vec<&'a CounterRow>,
}

/// The ledger of one rung, with what could not be told and what to warn of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Found {
    /// The ledger; none where the server's threads were not watched.
    pub ledger: Option<Ledger>,
    /// What is missing in it, each with its reason.
    pub missing: Vec<Missing>,
    /// Residuals that are too large, in words.
    pub warnings: Vec<String>,
}

/// The ledger of the rung with `connections` over the measured windows of its measurements; `sums`
/// are the totals of its counters. Of a script that every connection runs once the threads were
/// watched from before the first began until after the last had finished, which may be a good part
/// more: `runs_once` says to hold their states against that time.
pub fn ledger(
    connections: u32,
    windows: &[Window],
    sums: &BTreeMap<String, Total>,
    watched: &Watched<'_>,
    runs_once: bool,
) -> Found {
    let of_role = |role: Role| {
        let rows = watched.states.iter().copied();
        rows.filter(move |row| row.role == role && row.thread.is_none())
    };
    let Some(mut time) = ThreadTime::of(windows, of_role(Role::Connection)) else {
        return Found {
            missing: vec![Missing {
                figure: "ledger".into(),
                reason: "the server's threads were not watched; `scaleprof check` lists the requirements".into(),
            }],
            ..Found::default()
        };
    };
    let mut missing = Vec::new();
    split_off_spin(&mut time.states, windows, watched);
    if time.states[ThreadState::Spin].is_none() {
        missing.push(Missing {
            figure: "ledger.seconds_per_txn.spin".into(),
            reason: why_no_spin(&watched.counters).into(),
        });
    }
    if time.lifetime.is_none() {
        missing.push(Missing {
            figure: "ledger.residual".into(),
            reason:
                "only samples are known, so states need not add up to N/X; `scaleprof run` and `attach` account for \
                 all time"
                    .into(),
        });
    }
    let compare = |a: f64, b: f64| Some(a / b - 1.0).filter(|residual| residual.is_finite());
    let total = |name: &str| sums.get(name).map(|total| total.value);
    let watched_for = total("probe.switch_seconds").filter(|_| runs_once);
    let connection_seconds = f64::from(connections) * watched_for.unwrap_or(time.over.seconds);
    let whole = |value: f64| (value.is_finite() && value >= 0.0).then_some(value as u64);
    let cpu = cpu_seconds(windows, watched);
    let ledger = Ledger {
        seconds_per_txn: time.per_transaction(),
        connections_over_throughput: Some(connection_seconds / time.over.transactions).filter(|v| v.is_finite()),
        // Where how long threads lived is not known, nor is the time in all states.
        residual: time
            .lifetime
            .and_then(|_| compare(time.states.sum(), connection_seconds)),
        states_residual: time.lifetime.and_then(|lifetime| compare(time.states.sum(), lifetime)),
        cpu_residual: cpu.and_then(|cpu| compare(cpu.charged(), cpu.by_scheduler)),
        uncharged_cpu_share: cpu.and_then(CpuSeconds::not_their_own_share),
        background: background(windows, watched),
        complete_stacks_share: total("probe.stacks_complete")
            .zip(total("probe.stacks"))
            .and_then(|(complete, all)| Some(complete / all).filter(|v| v.is_finite()))
            .or_else(|| complete_share(windows, &watched.samples)),
        samples: total("probe.samples").and_then(whole),
        samples_lost: total("probe.samples_lost").and_then(whole),
        observed_waits_share: total("probe.observed_seconds")
            .zip(total("probe.switch_seconds"))
            .and_then(|(seen, all)| Some(seen / all).filter(|v| v.is_finite())),
    };
    let warnings = warnings(connections, &ledger, not_charged(cpu, sums));
    Found {
        ledger: Some(ledger),
        missing,
        warnings,
    }
}

/// How many loops that wait for another thread were found in the machine code that a measurement
/// ran.
const WAITING_LOOPS: &str = "probe.spin_loops";

/// Why the time in loops that wait for another thread is not known.
pub(crate) fn why_no_spin(counters: &[&CounterRow]) -> &'static str {
    match counters.iter().any(|row| row.counter == WAITING_LOOPS) {
        true => "no spin loop found: the executed code has none or was unreadable; any spin time counts as cpu",
        false => "the server's machine code was not searched for spin loops; any spin time counts as cpu",
    }
}

/// Whether a sample in a loop that waits would have been told as one. Where no loop was found, the
/// code may not have been readable or is for another architecture; every measurement must have
/// found some, or its part could not be told.
fn knows_loops(counters: &[&CounterRow]) -> bool {
    let mut found = counters.iter().filter(|row| row.counter == WAITING_LOOPS).peekable();
    found.peek().is_some() && found.all(|row| row.value > 0.0)
}

/// Only stacks tell spinning from working: of the time on a CPU the part goes to `spin` that the samples give it. Unknown
/// where no sample spins and no loops are known in which one could.
pub(crate) fn split_off_spin(states: &mut PerState<Option<f64>>, windows: &[Window], watched: &Watched<'_>) {
    if states[ThreadState::Spin].is_some() {
        return;
    }
    let looked = knows_loops(&watched.counters);
    let seconds = MeasuredSeconds::of(windows);
    let (mut working, mut spinning) = (0.0, 0.0);
    for block in &watched.samples {
        let is_measured: Vec<bool> = seconds.places(block).iter().map(Option::is_some).collect();
        let serves = block.roles().by_code(|role| *role == Role::Connection);
        let states = block.states();
        let seconds = block.seconds().codes().iter();
        let rows = seconds.zip(block.roles().codes()).zip(states.codes());
        for (((second, role), state), weight) in rows.zip(block.weights_ns()) {
            if !is_measured[*second as usize] || !serves[*role as usize] || !weight.is_finite() {
                continue;
            }
            match states.values()[*state as usize] {
                ThreadState::Cpu => working += weight,
                ThreadState::Spin => spinning += weight,
                _ => {}
            }
        }
    }
    if let Some(cpu) = states[ThreadState::Cpu].filter(|_| spinning > 0.0 || (looked && working > 0.0)) {
        let share = spinning / (working + spinning);
        states[ThreadState::Spin] = Some(cpu * share);
        states[ThreadState::Cpu] = Some(cpu * (1.0 - share));
    }
}

/// The part of the measured samples whose stacks reach the beginning of their threads; none where nobody knows how far they reach.
pub(crate) fn complete_share(windows: &[Window], samples: &[&SampleBlock]) -> Option<f64> {
    let seconds = MeasuredSeconds::of(windows);
    let (mut complete, mut all) = (0u64, 0u64);
    for block in samples {
        let is_measured: Vec<bool> = seconds.places(block).iter().map(Option::is_some).collect();
        let endings = block.unwind_statuses();
        let is_complete = endings.by_code(|status| *status == UnwindStatus::Complete);
        let is_known = endings.by_code(|status| *status != UnwindStatus::Unknown);
        for (second, ending) in block.seconds().codes().iter().zip(endings.codes()) {
            let counts = u64::from(is_measured[*second as usize] && is_known[*ending as usize]);
            all += counts;
            complete += counts * u64::from(is_complete[*ending as usize]);
        }
    }
    (all > 0).then(|| complete as f64 / all as f64)
}

/// CPU seconds of all threads of the server over the same time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct CpuSeconds {
    /// By their states.
    by_states: f64,
    /// The part of that which the scheduler charged to no thread, such as that of interrupts and of the host of a virtual machine.
    not_their_own: f64,
    /// By the scheduler's account of the server.
    pub(crate) by_scheduler: f64,
}

impl CpuSeconds {
    /// What the scheduler should have charged.
    pub(crate) fn charged(self) -> f64 {
        self.by_states - self.not_their_own
    }

    pub(crate) fn not_their_own_share(self) -> Option<f64> {
        Some(self.not_their_own / self.by_states).filter(|share| share.is_finite())
    }

    fn plus(self, other: Self) -> Self {
        Self {
            by_states: self.by_states + other.by_states,
            not_their_own: self.not_their_own + other.not_their_own,
            by_scheduler: self.by_scheduler + other.by_scheduler,
        }
    }
}

/// The measured seconds that both accounts have, else the measurements that both have.
pub(crate) fn cpu_seconds(windows: &[Window], watched: &Watched<'_>) -> Option<CpuSeconds> {
    type Time = (i32, Option<i32>);
    let mut by_states: BTreeMap<Time, f64> = BTreeMap::new();
    for row in watched.states.iter().filter(|row| row.thread.is_none()) {
        let nanoseconds = if row.state.is_on_cpu() {
            row.nanoseconds.max(0)
        } else {
            0
        };
        *by_states.entry((row.measurement, row.second)).or_default() += nanoseconds as f64 / 1e9;
    }
    let counter = |name: &str| -> BTreeMap<Time, f64> {
        let rows = watched.counters.iter();
        rows.filter(|row| row.counter == name && row.value.is_finite())
            .map(|row| ((row.measurement, row.second), row.value))
            .collect()
    };
    let by_scheduler = counter("server.cpu_seconds_by_scheduler");
    let not_their_own = counter("threads.cpu_seconds_uncharged");
    let at = |times: &[Time], scheduler: Time| {
        let sum = |of: &BTreeMap<Time, f64>| times.iter().filter_map(|time| of.get(time)).sum();
        Some(CpuSeconds {
            by_states: sum(&by_states),
            not_their_own: sum(&not_their_own),
            by_scheduler: *by_scheduler.get(&scheduler)?,
        })
    };
    let common = |times: &mut dyn Iterator<Item = Time>| {
        times
            .filter(|time| by_states.contains_key(time))
            .filter_map(|time| at(&[time], time))
            .reduce(CpuSeconds::plus)
    };
    let mut seconds = windows
        .iter()
        .flat_map(|window| window.seconds.keys().map(|second| (window.measurement, Some(*second))));
    if let Some(found) = common(&mut seconds) {
        return Some(found);
    }
    let mut measurements = windows.iter().map(|window| (window.measurement, None));
    if let Some(found) = common(&mut measurements) {
        return Some(found);
    }
    // The scheduler's account may be known for the measurement only and the states by second: all
    // of the measurement's seconds then.
    windows
        .iter()
        .filter_map(|window| {
            let seconds: Vec<Time> = by_states
                .range((window.measurement, Some(i32::MIN))..=(window.measurement, Some(i32::MAX)))
                .map(|(time, _)| *time)
                .collect();
            let all_there = seconds.len() as f64 > window.whole.seconds - 0.5;
            all_there.then(|| at(&seconds, (window.measurement, None)))?
        })
        .reduce(CpuSeconds::plus)
}

/// Worth a word from this part of the CPU time on.
const MUCH_NOT_THEIR_OWN: f64 = 0.02;

/// Time that the server's threads held a CPU and that the scheduler charged to none of them, with what explains it: at most all that
/// interrupts and the host of a virtual machine took of the whole machine in that time.
pub(crate) fn not_charged(cpu: Option<CpuSeconds>, sums: &BTreeMap<String, Total>) -> Option<String> {
    let cpu = cpu?;
    let share = cpu.not_their_own_share().filter(|share| *share > MUCH_NOT_THEIR_OWN)?;
    let charged = format!(
        "{} of the CPU time ({:.2} s) is uncharged: the scheduler attributed it to no thread",
        percent(share),
        cpu.not_their_own
    );
    let taken = |what: &str| {
        sums.get(&format!("machine.cpu_{what}_seconds"))
            .map(|total| total.value.max(0.0))
    };
    let Some((interrupts, host)) = taken("irq").zip(taken("steal")) else {
        return Some(format!(
            "{charged}; the time of interrupts and of the hypervisor was not measured"
        ));
    };
    let causes = format!("interrupts ({interrupts:.2} s) and the hypervisor ({host:.2} s)");
    let explained = (interrupts + host) / cpu.not_their_own;
    Some(match explained >= 1.0 {
        true => format!("{charged}; {causes} took more of all CPUs, which may explain it"),
        false => format!("{charged}; {causes} explain at most {} of it", percent(explained)),
    })
}

/// The threads that serve no connection, by name; where they were not told apart, all together.
pub(crate) fn background(windows: &[Window], Watched { states, counters, .. }: &Watched<'_>) -> Vec<BackgroundThreads> {
    let all = || states.iter().copied().filter(|row| row.role == Role::Background);
    let mut by_name: BTreeMap<&str, Vec<&StateRow>> = BTreeMap::new();
    for row in all().filter(|row| row.thread.is_some()) {
        by_name
            .entry(row.name.as_deref().unwrap_or("(without a name)"))
            .or_default()
            .push(row);
    }
    // A thread that was not there in a measurement was not busy in it.
    let measurements: BTreeSet<i32> = all().map(|row| row.measurement).collect();
    let of_measurements = windows
        .iter()
        .filter(|window| measurements.contains(&window.measurement));
    let watched: f64 = of_measurements.map(|window| window.whole.seconds).sum();
    let mut found: Vec<BackgroundThreads> = by_name
        .into_iter()
        .filter_map(|(name, rows)| {
            let mut threads: BTreeMap<i32, BTreeSet<i64>> = BTreeMap::new();
            for row in &rows {
                threads.entry(row.measurement).or_default().extend(row.thread);
            }
            let counter = format!("threads.background.{name}_level");
            let counted = counters
                .iter()
                .filter(|row| row.counter == counter && row.value.is_finite());
            let counted = counted.map(|row| row.value as usize);
            let most = threads.values().map(BTreeSet::len).chain(counted).max()?;
            let mut time = ThreadTime::of(windows, rows)?;
            time.over.seconds = watched;
            Some(BackgroundThreads {
                name: name.to_owned(),
                threads: u32::try_from(most).ok(),
                seconds_per_second: time.per_second(),
            })
        })
        .collect();
    if found.is_empty() {
        found.extend(ThreadTime::of(windows, all()).map(|time| BackgroundThreads {
            name: "all background threads".to_owned(),
            threads: None,
            seconds_per_second: time.per_second(),
        }));
    }
    let busy = |threads: &BackgroundThreads| {
        let busy = [
            ThreadState::Cpu,
            ThreadState::Spin,
            ThreadState::RunQueue,
            ThreadState::Io,
        ]
        .into_iter();
        busy.filter_map(|state| threads.seconds_per_second[state]).sum::<f64>()
    };
    found.sort_by(|a, b| busy(b).total_cmp(&busy(a)).then_with(|| a.name.cmp(&b.name)));
    found
}

fn warnings(connections: u32, ledger: &Ledger, not_charged: Option<String>) -> Vec<String> {
    let residuals = [
        (
            ledger.residual,
            "the states of connection threads do not add up to connections over throughput",
        ),
        (
            ledger.states_residual,
            "the states of connection threads do not add up to the lifetime of these threads",
        ),
        (
            ledger.cpu_residual,
            "the CPU time of the threads does not add up to the scheduler's figure for the server",
        ),
    ];
    let not_charged = not_charged.map(|words| format!("at {connections} connections {words}"));
    residuals
        .into_iter()
        .filter_map(|(residual, words)| {
            let residual = residual.filter(|residual| residual.abs() > TOLERANCE)?;
            let percent = residual * 100.0;
            Some(format!(
                "residual {percent:+.1} % at {connections} connections: {words}"
            ))
        })
        .chain(not_charged)
        .collect()
}

#[cfg(test)]
mod tests;
