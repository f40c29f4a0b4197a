//! What the flame graph and the heat map of a report show: every sample of the threads that serve
//! the load, with the thread-seconds that it stands for.
//!
//! The weights are those of the ledger: the samples of a state are scaled to the exact time in that
//! state over the seconds that count, so that the frames of a rung add up to its ledger. The
//! samples of other seconds (the warm-up) come along with the same scale, for a heat map that shows
//! a whole measurement; a sum per transaction leaves them out.

mod tree;

use crate::call_paths::{CallPaths, PathId};
use crate::measurement_rows::{MeasurementRows, by_measurement, complete_by_connections};
use crate::pacing::Pacing;
use crate::per::Per;
use crate::rung;
use crate::sampled::Sampled;
use crate::watch;
use scaleprof_bundle::{Bundle, MeasurementRow, SampleBlock, in_parallel};
use scaleprof_vocabulary::{Role, ThreadState};
use serde::Serialize;
use tree::Order;

/// Length of a heat map's cell: 50 to a second, FlameScope's default.
pub const CELL_MICROSECONDS: i64 = 20_000;
const CELLS_PER_SECOND: i64 = 1_000_000 / CELL_MICROSECONDS;
/// Seconds of a measurement past which nothing is shown, over a day: only a damaged table has more.
const MOST_SECONDS: i64 = 100_000;

/// Which of two bundles that are shown over one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The one before.
    A,
    /// The one after.
    B,
}

/// All samples of a bundle, or of two, over one tree of call paths.
#[derive(Debug, Clone, PartialEq)]
pub struct Flame {
    /// What weights are divided by.
    pub per: Per,
    /// Names of the functions; those of the kernel end in ` [k]`.
    pub functions: Vec<String>,
    /// The call paths: a parent stands before its children, and with all that is within it before the next of its siblings.
    /// Siblings stand in the order of their time over all rungs, the heaviest first, so that a graph keeps its order from
    /// rung to rung.
    pub nodes: Vec<Node>,
    /// The rungs by rising connections; one for a watch. Of two bundles those of A, then those of B.
    pub rungs: Vec<Rung>,
}

/// A function inside of a call path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// How many functions call it: 0 for the outermost.
    pub depth: u32,
    /// Its place in [`Flame::functions`].
    pub function: u32,
}

/// The measurements of a rung.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// The bundle that it is of, where two are shown.
    pub side: Option<Side>,
    /// Connections; none for a watch.
    pub connections: Option<u32>,
    /// The seconds that count.
    pub counted: Vec<Second>,
    /// Its complete measurements in the order in which they ran.
    pub measurements: Vec<Measurement>,
}

/// A second that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// The measurement.
    pub measurement: i32,
    /// The second of it.
    pub second: i32,
    /// What it is divided by: transactions, or seconds of a watch.
    pub amount: f64,
}

/// The samples of one measurement.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Its number.
    pub measurement: i32,
    /// Which repeat of the rung it was, from 0.
    pub repeat: i32,
    /// How many seconds it has.
    pub seconds: u32,
    /// The samples in its seconds, ordered by state, node and cell.
    pub samples: Vec<Sample>,
}

/// A thread at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// What it did.
    pub state: ThreadState,
    /// Place of its call path in [`Flame::nodes`].
    pub node: u32,
    /// When, in [`CELL_MICROSECONDS`] since the measurement began. A wait stands where it began.
    pub cell: u32,
    /// Thread-seconds that it stands for.
    pub thread_seconds: f64,
}

/// The samples of a bundle; none where no stack of a thread that serves the load was sampled.
///
/// What is past 100 000 s of a measurement, or past 2^32 call paths, is left out.
pub fn flame(bundle: &Bundle) -> Option<Flame> {
    let mut call_paths = CallPaths::of(bundle);
    let rungs = raw_rungs(bundle, None, &mut call_paths);
    in_order(Per::of(bundle), rungs, &call_paths)
}

/// The samples of two bundles over one tree, in which a call path of both is one: so any rung of one can be held against any rung
/// of the other. None where neither has a stack, or where one was only watched and the other not.
///
/// Code that only its address names is one function for each module of which the two have another build.
pub fn flame_of_both(a: &Bundle, b: &Bundle) -> Option<Flame> {
    let per = Per::of(a);
    if per != Per::of(b) {
        return None;
    }
    let mut call_paths = CallPaths::of_both(a, b);
    let mut rungs = raw_rungs(a, Some(Side::A), &mut call_paths);
    rungs.extend(raw_rungs(b, Some(Side::B), &mut call_paths));
    in_order(per, rungs, &call_paths)
}

/// The rungs of a bundle that were sampled.
fn raw_rungs(bundle: &Bundle, side: Option<Side>, call_paths: &mut CallPaths<'_>) -> Vec<Raw> {
    let measurements = by_measurement(bundle);
    match Per::of(bundle) {
        Per::Second => {
            let all: Vec<&MeasurementRows> = measurements.values().collect();
            let sampled = watch::sampled(&all).into_iter();
            sampled
                .map(|sampled| Raw::of(side, None, &all, &sampled, call_paths))
                .collect()
        }
        Per::Transaction => {
            let pacing = Pacing::of(&bundle.manifest.workload);
            let rungs = complete_by_connections(bundle, &measurements);
            let sampled = in_parallel(rungs.iter().collect(), |(connections, measurements)| {
                rung::sampled(*connections, pacing, measurements)
            });
            let raw = rungs
                .iter()
                .zip(sampled)
                .filter_map(|((connections, measurements), sampled)| {
                    Some(Raw::of(side, Some(*connections), measurements, &sampled?, call_paths))
                });
            raw.collect()
        }
    }
}

/// The rungs with the places of their paths in the order of the graph; none where there is no sample.
fn in_order(per: Per, rungs: Vec<Raw>, call_paths: &CallPaths<'_>) -> Option<Flame> {
    if rungs.iter().all(|rung| {
        rung.rung
            .measurements
            .iter()
            .all(|measurement| measurement.samples.is_empty())
    }) {
        return None;
    }
    let mut own_time = vec![0.0; call_paths.ids().len()];
    for rung in &rungs {
        rung.weigh(&mut own_time);
    }
    let order = Order::of(call_paths, &own_time);
    let rungs = in_parallel(rungs, |raw| raw.placed(&order));
    Some(Flame {
        per,
        functions: order.functions,
        nodes: order.nodes,
        rungs,
    })
}

/// A rung whose samples name their call paths by the numbers of [`CallPaths`].
struct Raw {
    rung: Rung,
    /// Beside the samples of each measurement.
    paths: Vec<Vec<PathId>>,
}

impl Raw {
    fn of(
        side: Option<Side>,
        connections: Option<u32>,
        measurements: &[&MeasurementRows<'_>],
        sampled: &Sampled<'_>,
        call_paths: &mut CallPaths<'_>,
    ) -> Raw {
        let counted: Vec<Second> = sampled
            .seconds
            .iter()
            .map(|((measurement, second), amount)| Second {
                measurement,
                second,
                amount,
            })
            .collect();
        let mut rung = Rung {
            side,
            connections,
            counted,
            measurements: Vec::new(),
        };
        let mut paths = Vec::new();
        for rows in measurements {
            let Some(row) = rows.rung else { continue };
            let most = rows.samples.iter().map(|block| block.len()).sum();
            let mut samples = Vec::with_capacity(most);
            let mut of_measurement = Vec::with_capacity(most);
            for block in &rows.samples {
                add_block(block, row, sampled, call_paths, &mut samples, &mut of_measurement);
            }
            let last = samples.iter().map(|sample| i64::from(sample.cell) / CELLS_PER_SECOND);
            let last = last.chain(rows.seconds.iter().map(|second| i64::from(second.second)));
            let last = last.filter(|second| (0..MOST_SECONDS).contains(second));
            rung.measurements.push(Measurement {
                measurement: row.measurement,
                repeat: row.repeat,
                seconds: last.max().map_or(0, |last| u32::try_from(last + 1).unwrap_or(0)),
                samples,
            });
            paths.push(of_measurement);
        }
        Raw { rung, paths }
    }

    /// Adds the time per transaction of every path, to that of the other rungs.
    fn weigh(&self, own_time: &mut [f64]) {
        let all: f64 = self.rung.counted.iter().map(|second| second.amount).sum();
        for (measurement, paths) in self.rung.measurements.iter().zip(&self.paths) {
            for (sample, path) in measurement.samples.iter().zip(paths) {
                // Idle threads, which the graph leaves out at first, would decide the order else.
                let weight = if sample.state.waits_for_work() || all <= 0.0 {
                    0.0
                } else {
                    sample.thread_seconds / all
                };
                own_time[path.place()] += weight;
            }
        }
    }

    /// The rung with the places of its paths.
    fn placed(mut self, order: &Order) -> Rung {
        for (measurement, paths) in self.rung.measurements.iter_mut().zip(&self.paths) {
            for (sample, path) in measurement.samples.iter_mut().zip(paths) {
                sample.node = order.place(*path);
            }
            measurement
                .samples
                .sort_by_key(|sample| (sample.state, sample.node, sample.cell));
        }
        self.rung
    }
}

/// Adds the samples of threads that serve the load, their nodes still unknown, with their paths; without those of before the
/// measurement's first second.
fn add_block(
    block: &SampleBlock,
    rung: &MeasurementRow,
    sampled: &Sampled<'_>,
    call_paths: &mut CallPaths<'_>,
    samples: &mut Vec<Sample>,
    paths: &mut Vec<PathId>,
) {
    let serves = block.roles().by_code(|role| *role == Role::Connection);
    let states = block.states().by_code(|state| (*state, sampled.scale(*state)));
    let mut known: Vec<Option<PathId>> = vec![None; block.stacks().values().len()];
    let codes = block
        .roles()
        .codes()
        .iter()
        .zip(block.states().codes())
        .zip(block.seconds().codes())
        .zip(block.stacks().codes())
        .zip(block.times_us())
        .zip(block.weights_ns());
    for (((((role, state), second), stack), time), weight) in codes {
        let of_the_load = serves[*role as usize] && weight.is_finite() && *weight >= 0.0;
        if !of_the_load {
            continue;
        }
        let (state, scale) = states[*state as usize];
        let second = i64::from(block.seconds().values()[*second as usize]);
        if !(0..MOST_SECONDS).contains(&second) {
            continue;
        }
        let since_start = time.0.saturating_sub(rung.started_at.0);
        let cell = second * CELLS_PER_SECOND + since_start.rem_euclid(1_000_000) / CELL_MICROSECONDS;
        let Ok(cell) = u32::try_from(cell) else { continue };
        samples.push(Sample {
            state,
            node: 0,
            cell,
            thread_seconds: weight / 1e9 * scale,
        });
        let stack = *stack as usize;
        paths.push(*known[stack].get_or_insert_with(|| call_paths.path(block.stacks().values()[stack])));
    }
}
