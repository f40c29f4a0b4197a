//! The functions in which the connections' threads spend their CPU time at one rung, wherever they are called from.

use crate::call_paths::CallPaths;
use crate::measured_rungs::measured_rungs;
use crate::path_costs::StatePath;
use scaleprof_bundle::{Bundle, Estimate, FrameRow, NumberMap};
use scaleprof_vocabulary::{Role, ThreadState};
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
    let by_function = |state_paths: &mut dyn Iterator<Item = StatePath>| {
        let mut found: BTreeMap<&str, Vec<StatePath>> = BTreeMap::new();
        for state_path in state_paths {
            let function = call_paths.innermost(state_path.path);
            found.entry(function).or_default().push(state_path);
        }
        found
    };
    let on_cpu = by_function(
        &mut at
            .costs
            .state_paths(ThreadState::Cpu)
            .chain(at.costs.state_paths(ThreadState::Spin)),
    );
    let spinning = by_function(&mut at.costs.state_paths(ThreadState::Spin));
    let earlier = earlier.map(|rung| {
        let found = by_function(
            &mut rung
                .costs
                .state_paths(ThreadState::Cpu)
                .chain(rung.costs.state_paths(ThreadState::Spin)),
        );
        (rung, found)
    });
    let seconds =
        |state_paths: &[StatePath]| -> f64 { state_paths.iter().map(|state_path| at.costs.seconds(*state_path)).sum() };
    let all: f64 = on_cpu.values().map(|state_paths| seconds(state_paths)).sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let mut hottest: Vec<(&str, f64)> = on_cpu
        .iter()
        .map(|(name, state_paths)| (*name, seconds(state_paths)))
        .collect();
    hottest.sort_by(|a, b| b.1.total_cmp(&a.1));
    hottest.truncate(most);
    let wanted: HashSet<&str> = hottest.iter().map(|(name, _)| *name).collect();
    let mut places = places(bundle, connections, &call_paths, &wanted);
    hottest
        .into_iter()
        .filter_map(|(name, own)| {
            Some(HotFunction {
                seconds_per_txn: at.costs.estimate(&on_cpu[name])?,
                share: own / all,
                before: earlier.as_ref().and_then(|(rung, found)| {
                    // Where nobody was seen in it there is no figure: it may have taken a little.
                    rung.costs.estimate(found.get(name)?)
                }),
                waits: spinning
                    .get(name)
                    .is_some_and(|state_paths| seconds(state_paths) > own / 2.0),
                place: places.remove(name),
                function: name.to_owned(),
            })
        })
        .collect()
}

/// The place of each of these functions that stands for the most time.
fn places(
    bundle: &Bundle,
    connections: u32,
    call_paths: &CallPaths<'_>,
    wanted: &HashSet<&str>,
) -> HashMap<String, Place> {
    let measurements: HashSet<i32> = bundle
        .measurements
        .iter()
        .filter(|rung| u32::try_from(rung.connections) == Ok(connections))
        .map(|rung| rung.measurement)
        .collect();
    let innermost: NumberMap<i64, i64> = bundle.stacks.iter().map(|row| (row.stack, row.frame)).collect();
    let frames: NumberMap<i64, &FrameRow> = bundle.frames.iter().map(|row| (row.frame, row)).collect();
    let mut weights: BTreeMap<(String, i64), f64> = BTreeMap::new();
    let blocks = bundle.samples.blocks().iter();
    for block in blocks.filter(|block| measurements.contains(&block.measurement())) {
        let serves = block.roles().by_code(|role| *role == Role::Connection);
        let runs = block.states().by_code(|state| state.is_on_cpu());
        // By stack: the sum that its samples go to, where they go to one.
        let mut keys: Vec<(String, i64)> = Vec::new();
        let mut numbers: HashMap<(String, i64), usize> = HashMap::new();
        let places = block.stacks().values().iter().map(|stack| {
            let function = call_paths.innermost(call_paths.known(*stack)?);
            let frame = innermost.get(stack).filter(|_| wanted.contains(function))?;
            let key = (function.to_owned(), *frame);
            Some(*numbers.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                keys.len() - 1
            }))
        });
        let places: Vec<Option<usize>> = places.collect();
        let mut sums: Vec<Option<f64>> = vec![None; keys.len()];
        for (place, key) in keys.iter().enumerate() {
            sums[place] = weights.get(key).copied();
        }
        let codes = block.roles().codes().iter().zip(block.states().codes());
        for (((role, state), stack), weight) in codes.zip(block.stacks().codes()).zip(block.weights_ns()) {
            if let Some(place) = places[*stack as usize].filter(|_| serves[*role as usize] && runs[*state as usize]) {
                *sums[place].get_or_insert(0.0) += weight;
            }
        }
        weights.extend(keys.into_iter().zip(sums).filter_map(|(key, sum)| Some((key, sum?))));
    }
    let mut heaviest: HashMap<String, (f64, Place)> = HashMap::new();
    for ((function, frame), weight) in weights {
        let known = heaviest.get(&function).map_or(0.0, |(weight, _)| *weight);
        if let Some(row) = frames.get(&frame).filter(|_| weight > known) {
            let place = Place {
                module: row.module.to_string(),
                address: row.address,
                file: row.file.as_deref().map(str::to_owned),
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
