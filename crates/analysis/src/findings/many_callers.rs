//! Functions that got dearer for so many callers that no path tells of them.
//!
//! A copy, a checksum or an atomic counter may be reached from forty places, each of which lost too little for a word. Paths from
//! the outside in then name what all of them have in common, which is too general, or nothing.

use std::collections::HashMap;

use crate::call_paths::{CallPaths, PathId};
use crate::path_costs::StatePath;

/// Functions that are told at most.
const MOST: usize = 3;
/// Below so many callers their paths tell as much.
const LEAST_CALLERS: usize = 3;
/// A caller with so much of the loss tells of it by its path.
const HOLDS_MOST: f64 = 0.5;

/// A function with all the paths that end in it, or in what the kernel does for it.
pub(super) struct ManyCallers {
    /// Its number among the names of functions.
    pub function: usize,
    /// The paths that end there.
    pub state_paths: Vec<StatePath>,
    /// From how many paths it is called.
    pub callers: usize,
    /// The path of the caller with the most of the loss, with its part of it.
    pub heaviest: (PathId, f64),
}

#[derive(Default)]
struct Group {
    loss: f64,
    state_paths: Vec<StatePath>,
    /// By the caller's path.
    callers: HashMap<PathId, f64>,
}

/// The functions that lost at least so much, for many callers of which none holds most of it; the gravest first. `loss` of each
/// path.
pub(super) fn many_callers(
    state_paths: &[StatePath],
    loss: impl Fn(StatePath) -> f64,
    call_paths: &CallPaths<'_>,
    least: f64,
) -> Vec<ManyCallers> {
    let names = call_paths.function_names();
    let mut groups: HashMap<usize, Group> = HashMap::new();
    for state_path in state_paths {
        let mut at = state_path.path;
        while names[call_paths.leaf(at)].ends_with(" [k]") {
            match call_paths.parent(at) {
                Some(outer) => at = outer,
                None => break,
            }
        }
        let Some(caller) = call_paths.parent(at) else { continue };
        let group = groups.entry(call_paths.leaf(at)).or_default();
        let lost = loss(*state_path);
        group.loss += lost;
        group.state_paths.push(*state_path);
        *group.callers.entry(caller).or_default() += lost;
    }
    let mut found: Vec<(f64, ManyCallers)> = groups
        .into_iter()
        .filter(|(_, group)| group.loss >= least && group.callers.len() >= LEAST_CALLERS)
        .filter_map(|(function, group)| {
            let by_loss = |a: &(&PathId, &f64), b: &(&PathId, &f64)| a.1.total_cmp(b.1).then(b.0.cmp(a.0));
            let (caller, lost) = group.callers.iter().max_by(by_loss)?;
            let part = lost / group.loss;
            let heaviest = (*caller, part);
            let callers = group.callers.len();
            (part < HOLDS_MOST).then_some((
                group.loss,
                ManyCallers {
                    function,
                    state_paths: group.state_paths,
                    callers,
                    heaviest,
                },
            ))
        })
        .collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.function.cmp(&b.1.function)));
    found.truncate(MOST);
    found.into_iter().map(|(_, function)| function).collect()
}
