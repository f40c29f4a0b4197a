//! How much of what the server's threads did was seen, rung by rung: stacks that were lost and why,
//! stacks that are whole, code that nothing names, and what the watching itself cost.
//!
//! The figures are of whole measurements, the warm-up included, as the probe counts them. A figure
//! that was not measured has its reason.

use crate::measurement_rows::{MeasurementRows, by_measurement, complete_by_connections};
use scaleprof_bundle::{Bundle, FrameRow, NumberMap, SampleBlock, StackRow};
use scaleprof_vocabulary::{Role, SymbolSource, UnwindStatus, WorkloadName};
use std::collections::BTreeMap;

/// The figures of one rung.
#[derive(Debug, Clone, PartialEq)]
pub struct DataQuality {
    /// Connections; none for a watch.
    pub connections: Option<u32>,
    /// Each under its name, in the order of [`FIGURES`].
    pub figures: Vec<(&'static str, Figure)>,
}

/// A figure, or why there is none.
pub type Figure = Result<f64, String>;

/// What is told of every rung:
///
/// - `samples_on_cpu`, `samples_waiting`: samples of all threads of the server, on their CPUs and off them.
/// - `lost_to_full_ring`, `lost_without_slot`, `unmatched`, `samples_lost`: what was lost, by reason and in sum.
/// - `complete_stacks_share`: the part of the walks through a stack that reached the thread's first frame.
/// - `unnamed_share`: the part of the connections' sampled CPU time in functions that nothing but an address names.
/// - `reader_cpus`: CPUs that the thread used which reads what the kernel's programs send.
/// - `observed_waits_share`: the part of the time in which it was seen what threads wait for.
pub const FIGURES: [&str; 10] = [
    "samples_on_cpu",
    "samples_waiting",
    "lost_to_full_ring",
    "lost_without_slot",
    "unmatched",
    "samples_lost",
    "complete_stacks_share",
    "unnamed_share",
    "reader_cpus",
    "observed_waits_share",
];

const NOT_WATCHED: &str = "the server's threads were not watched in this run";
const ONLY_SUM: &str = "this bundle has only the sum of what was lost, not its reasons";
const LOSSES_NOT_TOLD: &str = "the recording does not tell what was lost, or only of all its processes together";
const NO_STACK: &str = "no stack was sampled";
const NOT_TOLD: &str = "the stacks were walked by another program, which does not say how far it came";
const NO_CPU_SAMPLE: &str = "no thread that serves the load was sampled on a CPU";
const NO_READER: &str = "only a watch by BPF programs has a reader";

const NO_RESTS: &str = "only a watch by BPF programs sees waits";

/// The figures of every rung that has complete measurements, by rising connections; one entry for a
/// watch.
pub fn data_quality(bundle: &Bundle) -> Vec<DataQuality> {
    let measurements = by_measurement(bundle);
    let names = Names::of(&bundle.stacks, &bundle.frames);
    if bundle.manifest.workload.name == WorkloadName::Watch {
        let all: Vec<&MeasurementRows> = measurements.values().collect();
        return Vec::from([of_measurements(None, &all, &names)]);
    }
    complete_by_connections(bundle, &measurements)
        .iter()
        .filter(|(_, measurements)| !measurements.is_empty())
        .map(|(connections, measurements)| of_measurements(Some(*connections), measurements, &names))
        .collect()
}

fn of_measurements(connections: Option<u32>, measurements: &[&MeasurementRows<'_>], names: &Names<'_>) -> DataQuality {
    let samples = Counted::of(measurements.iter().flat_map(|rows| rows.samples.iter().copied()), names);
    let watched = measurements.iter().any(|rows| !rows.states.is_empty());
    let counters = Counters::of(measurements);
    let or_not_watched = |reason: &str| if watched { reason } else { NOT_WATCHED }.to_owned();
    let counted = |name: &str, reason: &str| counters.sum(name).ok_or_else(|| or_not_watched(reason));
    let sampled = |on_cpu: bool| match watched {
        true if on_cpu => Ok(samples.on_cpu as f64),
        true => Ok((samples.all - samples.on_cpu) as f64),
        false => Err(NOT_WATCHED.to_owned()),
    };
    let complete = counters
        .sum("probe.stacks_complete")
        .zip(counters.sum("probe.stacks"))
        .or(Some((samples.complete as f64, samples.walked as f64)))
        .map(|(complete, all)| complete / all)
        .filter(|share| share.is_finite());
    let figures = FIGURES.map(|name| {
        let figure = match name {
            "samples_on_cpu" => sampled(true),
            "samples_waiting" => sampled(false),
            "samples_lost" => counted("probe.samples_lost", LOSSES_NOT_TOLD),
            "lost_to_full_ring" => counted("probe.lost_to_full_ring", ONLY_SUM),
            "lost_without_slot" => counted("probe.lost_without_slot", ONLY_SUM),
            "unmatched" => counted("probe.unmatched", ONLY_SUM),
            "complete_stacks_share" => complete.ok_or_else(|| {
                or_not_watched(if samples.all > samples.walked {
                    NOT_TOLD
                } else {
                    NO_STACK
                })
            }),
            "unnamed_share" => samples.unnamed_share().ok_or_else(|| or_not_watched(NO_CPU_SAMPLE)),
            "observed_waits_share" => counted("probe.observed_seconds", NO_RESTS).and_then(|seen| {
                let all = counted("probe.switch_seconds", NO_RESTS)?;
                Ok(seen / all)
            }),
            _ => counted("probe.cpu_nanoseconds", NO_READER).map(|nanoseconds| nanoseconds / 1e9 / counters.seconds),
        };
        (
            name,
            figure.and_then(|value| {
                if value.is_finite() {
                    Ok(value)
                } else {
                    Err(or_not_watched(NO_STACK))
                }
            }),
        )
    });
    DataQuality {
        connections,
        figures: figures.into(),
    }
}

/// What the samples of some measurements say.
#[derive(Default)]
struct Counted {
    all: u64,
    on_cpu: u64,
    /// Those of which is known how far their stacks reach, and those whose stack is whole.
    walked: u64,
    complete: u64,
    /// Time on a CPU of the threads that serve the load, nanoseconds, and the part of it in code that nothing names.
    busy_ns: f64,
    unnamed_ns: f64,
}

impl Counted {
    fn of<'b>(blocks: impl Iterator<Item = &'b SampleBlock>, names: &Names<'_>) -> Counted {
        let mut counted = Counted::default();
        for block in blocks {
            counted.add(block, names);
        }
        counted
    }

    fn add(&mut self, block: &SampleBlock, names: &Names<'_>) {
        let on_cpu = block.states().by_code(|state| state.is_on_cpu());
        let serves = block.roles().by_code(|role| *role == Role::Connection);
        let complete = block
            .unwind_statuses()
            .by_code(|status| *status == UnwindStatus::Complete);
        let walked = block
            .unwind_statuses()
            .by_code(|status| *status != UnwindStatus::Unknown);
        let stacks = block.stacks().values().iter();
        let named: Vec<bool> = stacks.map(|stack| names.is_named(*stack)).collect();
        let codes = block.states().codes().iter().zip(block.roles().codes());
        let codes = codes.zip(block.unwind_statuses().codes()).zip(block.stacks().codes());
        for ((((state, role), ending), stack), weight) in codes.zip(block.weights_ns()) {
            let is_on_cpu = on_cpu[*state as usize];
            self.all += 1;
            self.on_cpu += u64::from(is_on_cpu);
            self.walked += u64::from(walked[*ending as usize]);
            self.complete += u64::from(complete[*ending as usize]);
            if is_on_cpu && serves[*role as usize] && weight.is_finite() {
                let time = weight.max(0.0);
                self.busy_ns += time;
                self.unnamed_ns += if named[*stack as usize] { 0.0 } else { time };
            }
        }
    }

    /// By time; none where nothing was sampled on a CPU.
    fn unnamed_share(&self) -> Option<f64> {
        Some(self.unnamed_ns / self.busy_ns).filter(|share| share.is_finite())
    }
}

/// Counters of whole measurements, and how long these were.
struct Counters<'a> {
    sums: BTreeMap<&'a str, f64>,
    seconds: f64,
}

impl<'a> Counters<'a> {
    fn of(measurements: &[&MeasurementRows<'a>]) -> Counters<'a> {
        let rows = || measurements.iter().flat_map(|rows| rows.counters.iter().copied());
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for row in rows().filter(|row| row.second.is_none() && row.value.is_finite()) {
            *sums.entry(row.counter.as_str()).or_default() += row.value;
        }
        let measured = measurements.iter().flat_map(|rows| rows.seconds.iter());
        let measured: f64 = measured.map(|row| row.duration_ns.max(0) as f64 / 1e9).sum();
        let watched = rows().filter(|row| row.counter == "probe.watched_seconds" && row.value.is_finite());
        let watched: f64 = watched.map(|row| row.value).sum();
        Counters {
            sums,
            seconds: if measured > 0.0 { measured } else { watched },
        }
    }

    fn sum(&self, name: &str) -> Option<f64> {
        self.sums.get(name).copied().filter(|value| *value >= 0.0)
    }
}

/// Which stacks end in code that nothing names.
struct Names<'a> {
    /// The innermost frame of each stack.
    innermost: NumberMap<i64, i64>,
    frames: NumberMap<i64, &'a FrameRow>,
}

impl<'a> Names<'a> {
    fn of(stacks: &[StackRow], frames: &'a [FrameRow]) -> Names<'a> {
        Names {
            innermost: stacks.iter().map(|row| (row.stack, row.frame)).collect(),
            frames: frames.iter().map(|row| (row.frame, row)).collect(),
        }
    }

    fn is_named(&self, stack: i64) -> bool {
        let frame = self.innermost.get(&stack).and_then(|frame| self.frames.get(frame));
        frame.is_some_and(|frame| frame.function.is_some() && frame.symbol_source != SymbolSource::FrameBounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::{CounterRow, SampleRow, Samples, StateRow, UtcMicros};
    use scaleprof_vocabulary::ThreadState;

    fn sample(role: Role, state: ThreadState, stack: i64, weight_ns: f64) -> SampleRow {
        SampleRow {
            measurement: 0,
            second: 0,
            time_us: UtcMicros(0),
            thread: 1,
            role,
            cpu: 0,
            state,
            stack,
            unwind_status: match stack {
                9 => UnwindStatus::NoRule,
                _ => UnwindStatus::Complete,
            },
            weight_ns,
            lock: None,
            waker_kind: None,
            waker_stack: None,
            holder_stack: None,
            holder_state: None,
        }
    }

    fn counter(second: Option<i32>, counter: &str, value: f64) -> CounterRow {
        CounterRow {
            measurement: 0,
            second,
            counter: counter.into(),
            value,
            running_share: None,
        }
    }

    /// Stack n ends in frame n: 1 has a name, 2 has none, 3 has only bounds.
    fn dictionary() -> (Vec<StackRow>, Vec<FrameRow>) {
        let frame = |frame, function: Option<&str>, symbol_source: SymbolSource| FrameRow {
            frame,
            module: "mysqld".into(),
            build_id: None,
            address: frame,
            function: function.map(Into::into),
            inlined: false,
            file: None,
            line: None,
            symbol_source,
        };
        let stacks = (1..4).map(|stack| StackRow {
            stack,
            parent: None,
            frame: stack,
            depth: 0,
        });
        let frames = [
            frame(1, Some("work"), SymbolSource::Symtab),
            frame(2, None, SymbolSource::Nothing),
            frame(3, Some("mysqld!fun_3"), SymbolSource::FrameBounds),
        ];
        (stacks.collect(), frames.into())
    }

    fn figures(states: &[StateRow], samples: &[SampleRow], counters: &[CounterRow]) -> BTreeMap<&'static str, Figure> {
        let (stacks, frames) = dictionary();
        let samples: Samples = samples.iter().cloned().collect();
        let rows = MeasurementRows {
            states: states.iter().collect(),
            samples: samples.blocks().iter().collect(),
            counters: counters.iter().collect(),
            ..MeasurementRows::default()
        };
        let found = of_measurements(None, &[&rows], &Names::of(&stacks, &frames));
        found.figures.into_iter().collect()
    }

    #[test]
    fn figures_are_sums_over_the_measurements_and_shares_of_time() {
        let samples = [
            sample(Role::Connection, ThreadState::Cpu, 1, 6e6),
            sample(Role::Connection, ThreadState::Spin, 2, 1e6),
            sample(Role::Connection, ThreadState::Cpu, 3, 3e6),
            // Waits and other threads have no part in the share without a name.
            sample(Role::Connection, ThreadState::Lock, 2, 9e9),
            sample(Role::Background, ThreadState::Cpu, 9, 9e9),
        ];
        let counters = [
            counter(None, "probe.lost_to_full_ring", 3.0),
            counter(None, "probe.samples_lost", 5.0),
            counter(None, "probe.cpu_nanoseconds", 4e8),
            counter(Some(0), "probe.watched_seconds", 2.0),
        ];
        let found = figures(
            &[StateRow {
                measurement: 0,
                second: None,
                role: Role::Connection,
                thread: None,
                name: None,
                state: ThreadState::Cpu,
                nanoseconds: 0,
                lifetime_ns: None,
            }],
            &samples,
            &counters,
        );
        assert_eq!(found["samples_on_cpu"], Ok(4.0));
        assert_eq!(found["samples_waiting"], Ok(1.0));
        assert_eq!(found["lost_to_full_ring"], Ok(3.0));
        assert_eq!(found["samples_lost"], Ok(5.0));
        assert_eq!(found["complete_stacks_share"], Ok(0.8));
        assert_eq!(found["unnamed_share"], Ok(0.4));
        assert_eq!(found["reader_cpus"], Ok(0.2));
        // A watch without BPF programs has only the sum.
        assert_eq!(found["unmatched"], Err(ONLY_SUM.to_owned()));
    }

    #[test]
    fn what_was_not_watched_is_no_zero() {
        let figures = figures(&[], &[], &[]);
        // Those that are looked at above.
        assert!(figures.len() >= 8, "{figures:?}");
        for (name, figure) in figures {
            assert_eq!(figure, Err(NOT_WATCHED.to_owned()), "{name}");
        }
    }
}
