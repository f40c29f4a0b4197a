//! The functions in which the connections' threads spend their CPU time at one rung, wherever they are called from.

use crate::call_paths::CallPaths;
use crate::ledger::CONNECTION;
use crate::path_costs::Pathway;
use crate::summarise::measured_rungs;
use scaleprof_bundle::{Bundle, Estimate, FrameRow};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A function, with the time spent in its own code.
#[derive(Debug, Clone, PartialEq)]
pub struct HotFunction {
    /// Its name; those of the kernel end in ` [k]`.
    pub function: String,
    /// CPU time in it per transaction, seconds; loops that wait for another thread included.
    pub seconds_per_txn: Estimate,
    /// The part of the CPU time of the connections' threads.
    pub share: f64,
    /// CPU time in it per transaction at the other rung, seconds.
    pub before: Option<Estimate>,
    /// Whether most of its time is in loops that only wait for another thread.
    pub waits: bool,
    /// The place in it that was seen most often.
    pub place: Option<Place>,
}

/// A place in machine code, and in the source where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// File name of the executable or library.
    pub module: String,
    /// Address in it; in the kernel the offset from the start of the function.
    pub address: i64,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<i32>,
}

/// The `most` functions with the most CPU time at the rung with `connections`, the hottest first, beside what they took at
/// the rung with `before`. Empty where no stacks were sampled there.
pub fn hot_functions(bundle: &Bundle, connections: u32, before: Option<u32>, most: usize) -> Vec<HotFunction> {
    let mut call_paths = CallPaths::of(bundle);
    let rungs = measured_rungs(bundle, &mut call_paths);
    let costs = |wanted: u32| rungs.iter().find(|rung| rung.summary.connections == wanted);
    let Some(at) = costs(connections) else {
        return Vec::new();
    };
    let earlier = before.and_then(costs);
    let by_function = |pathways: &mut dyn Iterator<Item = Pathway>| {
        let mut found: BTreeMap<String, Vec<Pathway>> = BTreeMap::new();
        for pathway in pathways {
            let function = call_paths.innermost(pathway.path).to_owned();
            found.entry(function).or_default().push(pathway);
        }
        found
    };
    let on_cpu = by_function(&mut at.costs.pathways("cpu").chain(at.costs.pathways("spin")));
    let spinning = by_function(&mut at.costs.pathways("spin"));
    let earlier = earlier.map(|rung| {
        let found = by_function(&mut rung.costs.pathways("cpu").chain(rung.costs.pathways("spin")));
        (rung, found)
    });
    let seconds = |pathways: &[Pathway]| -> f64 { pathways.iter().map(|pathway| at.costs.seconds(*pathway)).sum() };
    let all: f64 = on_cpu.values().map(|pathways| seconds(pathways)).sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let mut hottest: Vec<(&String, f64)> = on_cpu
        .iter()
        .map(|(name, pathways)| (name, seconds(pathways)))
        .collect();
    hottest.sort_by(|a, b| b.1.total_cmp(&a.1));
    hottest.truncate(most);
    let wanted: HashSet<&str> = hottest.iter().map(|(name, _)| name.as_str()).collect();
    let mut places = places(bundle, connections, &mut CallPaths::of(bundle), &wanted);
    hottest
        .into_iter()
        .filter_map(|(name, own)| {
            Some(HotFunction {
                seconds_per_txn: at.costs.estimate(&on_cpu[name])?,
                share: own / all,
                before: earlier.as_ref().and_then(|(rung, found)| {
                    let pathways = found.get(name).map_or(&[][..], Vec::as_slice);
                    rung.costs.estimate(pathways)
                }),
                waits: spinning.get(name).is_some_and(|pathways| seconds(pathways) > own / 2.0),
                place: places.remove(name.as_str()),
                function: name.clone(),
            })
        })
        .collect()
}

/// The place of each of these functions that stands for the most time.
fn places(
    bundle: &Bundle,
    connections: u32,
    call_paths: &mut CallPaths<'_>,
    wanted: &HashSet<&str>,
) -> HashMap<String, Place> {
    let visits: HashSet<i32> = bundle
        .rungs
        .iter()
        .filter(|rung| u32::try_from(rung.connections) == Ok(connections))
        .map(|rung| rung.visit)
        .collect();
    let innermost: HashMap<i64, i64> = bundle.stacks.iter().map(|row| (row.stack, row.frame)).collect();
    let frames: HashMap<i64, &FrameRow> = bundle.frames.iter().map(|row| (row.frame, row)).collect();
    let mut weights: BTreeMap<(String, i64), f64> = BTreeMap::new();
    let samples = bundle.samples.iter().filter(|row| {
        visits.contains(&row.visit) && row.role == CONNECTION && ["cpu", "spin"].contains(&row.state.as_str())
    });
    for row in samples {
        let path = call_paths.path(row.stack);
        let function = call_paths.innermost(path);
        if let Some(frame) = innermost.get(&row.stack).filter(|_| wanted.contains(function)) {
            *weights.entry((function.to_owned(), *frame)).or_default() += row.weight_ns;
        }
    }
    let mut heaviest: HashMap<String, (f64, Place)> = HashMap::new();
    for ((function, frame), weight) in weights {
        let known = heaviest.get(&function).map_or(0.0, |(weight, _)| *weight);
        if let Some(row) = frames.get(&frame).filter(|_| weight > known) {
            let place = Place {
                module: row.module.clone(),
                address: row.address,
                file: row.file.clone(),
                line: row.line,
            };
            heaviest.insert(function, (weight, place));
        }
    }
    heaviest
        .into_iter()
        .map(|(function, (_, place))| (function, place))
        .collect()
}
