//! Call paths by function, for formats that know nothing of addresses.

use crate::{CostProfile, StackId};
use std::collections::{BTreeMap, HashMap};

/// The call paths of some profiles as one, each a list of functions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FunctionPaths {
    /// Names of the functions in the order of the alphabet.
    pub functions: Vec<String>,
    /// By path, as places in `functions` from the outermost on: thread-seconds in each of the profiles. A path stands before those
    /// within it, and these before all others.
    pub paths: BTreeMap<Vec<u32>, Vec<f64>>,
}

impl FunctionPaths {
    /// Those of the profiles, which may be rungs of one bundle or of several.
    pub(crate) fn of(profiles: &[&CostProfile]) -> FunctionPaths {
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        for profile in profiles {
            for (_, frame) in profile.frames.iter() {
                numbers.entry(frame.function_name()).or_default();
            }
        }
        for (number, place) in numbers.values_mut().zip(0..) {
            *number = place;
        }
        let mut paths: BTreeMap<Vec<u32>, Vec<f64>> = BTreeMap::new();
        for (at, profile) in profiles.iter().enumerate() {
            for (stack, seconds) in by_stack(profile) {
                let frames = profile.stacks.frames(stack).into_iter();
                let functions = frames.filter_map(|frame| profile.frames.get(frame)?.function_name().into());
                let path = functions.filter_map(|name| numbers.get(&name).copied()).collect();
                paths.entry(path).or_insert_with(|| vec![0.0; profiles.len()])[at] += seconds;
            }
        }
        FunctionPaths {
            functions: numbers.into_keys().collect(),
            paths,
        }
    }
}

/// The thread-seconds of each stack, whatever the threads were doing.
fn by_stack(profile: &CostProfile) -> HashMap<StackId, f64> {
    let mut sums = HashMap::new();
    for cost in &profile.costs {
        *sums.entry(cost.stack).or_default() += cost.thread_seconds;
    }
    sums
}
