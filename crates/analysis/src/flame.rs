//! What the flame graph and the heat map of a report show: every sample of the threads that serve the load, with the
//! thread-seconds that it stands for.
//!
//! The weights are those of the ledger: the samples of a state are scaled to the exact time in that state over the seconds
//! that count, so that the frames of a rung add up to its ledger. The samples of other seconds (the warm-up) come along with
//! the same scale, for a heat map that shows a whole visit; a sum per transaction leaves them out.

mod tree;

use crate::call_paths::{CallPaths, PathId};
use crate::ledger::CONNECTION;
use crate::paths::Sampled;
use crate::rung::{self, Pacing, VisitRows};
use crate::student::t_quantile_975;
use crate::summarise::{by_visit, complete_by_connections};
use crate::watch;
use scaleprof_bundle::{Bundle, RungRow, SampleRow, WATCH};
use serde::Serialize;
use tree::Order;

/// The states that samples have; [`Sample::state`] is a place in this list.
pub const STATES: [&str; 8] = crate::path_costs::STATES;
/// Length of a heat map's cell: 50 to a second, FlameScope's default.
pub const CELL_MICROSECONDS: i64 = 20_000;
const CELLS_PER_SECOND: i64 = 1_000_000 / CELL_MICROSECONDS;
/// Seconds of a visit past which nothing is shown, over a day: only a damaged table has more.
const MOST_SECONDS: i64 = 100_000;

/// What the weights of a rung are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// Its transactions.
    Transaction,
    /// Its seconds: a server that was only watched.
    Second,
}

impl Per {
    /// What it is in a bundle.
    pub(crate) fn of(bundle: &Bundle) -> Per {
        match bundle.manifest.workload.name.as_str() {
            WATCH => Per::Second,
            _ => Per::Transaction,
        }
    }
}

/// All samples of a bundle over one tree of call paths.
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
    /// The rungs by rising connections; one for a watch.
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

/// The visits of a rung.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Connections; none for a watch.
    pub connections: Option<u32>,
    /// The seconds that count.
    pub counted: Vec<Second>,
    /// Half the width of a 95 % interval in standard errors; none where there are too few seconds for one.
    pub interval_factor: Option<f64>,
    /// Its complete visits in the order in which they ran.
    pub visits: Vec<Visit>,
}

/// A second that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Second {
    /// The visit.
    pub visit: i32,
    /// The second of it.
    pub second: i32,
    /// What it is divided by: transactions, or seconds of a watch.
    pub amount: f64,
}

/// The samples of one visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    /// Its number.
    pub visit: i32,
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
    /// Place of its state in [`STATES`].
    pub state: usize,
    /// Place of its call path in [`Flame::nodes`].
    pub node: u32,
    /// When, in [`CELL_MICROSECONDS`] since the visit began. A wait stands where it began.
    pub cell: u32,
    /// Thread-seconds that it stands for.
    pub thread_seconds: f64,
}

/// The samples of a bundle; none where no stack of a thread that serves the load was sampled.
///
/// What is past 100 000 s of a visit, or past 2^32 call paths, is left out.
pub fn flame(bundle: &Bundle) -> Option<Flame> {
    let visits = by_visit(bundle);
    let mut call_paths = CallPaths::of(bundle);
    let per = Per::of(bundle);
    let rungs: Vec<Raw> = match per {
        Per::Second => {
            let all: Vec<&VisitRows> = visits.values().collect();
            let sampled = watch::sampled(&all)?;
            Vec::from([Raw::of(None, &all, &sampled, &mut call_paths)])
        }
        Per::Transaction => {
            let pacing = Pacing::of(&bundle.manifest.workload);
            let rungs = complete_by_connections(bundle, &visits);
            let raw = rungs.iter().filter_map(|(connections, visits)| {
                let sampled = rung::sampled(*connections, pacing, visits)?;
                Some(Raw::of(Some(*connections), visits, &sampled, &mut call_paths))
            });
            raw.collect()
        }
    };
    if rungs
        .iter()
        .all(|rung| rung.rung.visits.iter().all(|visit| visit.samples.is_empty()))
    {
        return None;
    }
    let mut own_time = vec![0.0; call_paths.ids().count()];
    for rung in &rungs {
        rung.weigh(&mut own_time);
    }
    let order = Order::of(&call_paths, &own_time);
    let rungs = rungs.into_iter().map(|raw| raw.placed(&order)).collect();
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
    /// Beside the samples of each visit.
    paths: Vec<Vec<PathId>>,
}

impl Raw {
    fn of(
        connections: Option<u32>,
        visits: &[&VisitRows<'_>],
        sampled: &Sampled<'_>,
        call_paths: &mut CallPaths<'_>,
    ) -> Raw {
        let counted: Vec<Second> = sampled
            .seconds()
            .map(|((visit, second), amount)| Second { visit, second, amount })
            .collect();
        let mut rung = Rung {
            connections,
            interval_factor: (counted.len() >= crate::block_ratio::FEWEST)
                .then(|| t_quantile_975(counted.len() as f64 - 1.0)),
            counted,
            visits: Vec::new(),
        };
        let mut paths = Vec::new();
        for rows in visits {
            let Some(row) = rows.rung else { continue };
            let (samples, stacks): (Vec<Sample>, Vec<i64>) = rows
                .samples
                .iter()
                .filter_map(|sample| Some((of_a_row(sample, row, sampled)?, sample.stack)))
                .unzip();
            let last = samples.iter().map(|sample| i64::from(sample.cell) / CELLS_PER_SECOND);
            let last = last.chain(rows.seconds.iter().map(|second| i64::from(second.second)));
            let last = last.filter(|second| (0..MOST_SECONDS).contains(second));
            rung.visits.push(Visit {
                visit: row.visit,
                repeat: row.repeat,
                seconds: last.max().map_or(0, |last| u32::try_from(last + 1).unwrap_or(0)),
                samples,
            });
            paths.push(stacks.into_iter().map(|stack| call_paths.path(stack)).collect());
        }
        Raw { rung, paths }
    }

    /// Adds the time per transaction of every path, to that of the other rungs.
    fn weigh(&self, own_time: &mut [f64]) {
        let all: f64 = self.rung.counted.iter().map(|second| second.amount).sum();
        let net = STATES.iter().position(|state| *state == "net");
        for (visit, paths) in self.rung.visits.iter().zip(&self.paths) {
            for (sample, path) in visit.samples.iter().zip(paths) {
                // Idle threads, which the graph leaves out at first, would decide the order else.
                let weight = if Some(sample.state) == net || all <= 0.0 {
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
        for (visit, paths) in self.rung.visits.iter_mut().zip(&self.paths) {
            for (sample, path) in visit.samples.iter_mut().zip(paths) {
                sample.node = order.place(*path);
            }
            visit
                .samples
                .sort_by_key(|sample| (sample.state, sample.node, sample.cell));
        }
        self.rung
    }
}

/// A sample of a thread that serves the load, its node still unknown; none for other threads and for what is before the
/// visit's first second.
fn of_a_row(row: &SampleRow, rung: &RungRow, sampled: &Sampled<'_>) -> Option<Sample> {
    let of_the_load = row.role == CONNECTION && row.weight_ns.is_finite() && row.weight_ns >= 0.0;
    let state = STATES.iter().position(|state| *state == row.state && of_the_load)?;
    let since_start = row.time_us.0.saturating_sub(rung.started_at.0);
    if !(0..MOST_SECONDS).contains(&i64::from(row.second)) {
        return None;
    }
    let cell = i64::from(row.second) * CELLS_PER_SECOND + since_start.rem_euclid(1_000_000) / CELL_MICROSECONDS;
    Some(Sample {
        state,
        node: 0,
        cell: u32::try_from(cell).ok()?,
        thread_seconds: row.weight_ns / 1e9 * sampled.scale(&row.state),
    })
}
