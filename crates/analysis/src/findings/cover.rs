//! Which call paths to name for a loss that is spread over thousands of stacks.

use crate::call_paths::{CallPaths, PathId};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A path that stands for others.
pub(crate) struct Covered {
    /// What to name.
    pub path: PathId,
    /// The whole paths within it that no path before it stands for.
    pub within: HashSet<PathId>,
}

/// Paths that are named at most.
const MOST: usize = 6;
/// A path is too general while one of those inside of it holds so much of it.
const HOLDS_MOST: f64 = 0.5;

/// An inner path with more than so much of the outer one's loss has gained it from its neighbours.
const MOVED: f64 = 1.2;
/// A path with so much of all cost is the whole of the server's work: naming it says nothing.
const WHOLE_WORK: f64 = 0.6;

/// Greedy cover: the path with the largest loss is followed inwards while one inner path holds most of it, named, and taken
/// out with all that is within it; then the next. So no loss is told twice. Paths with less than `least` are not named, nor
/// are those through which nearly all of the work goes on. `costs` gives each whole path's loss and what it costs altogether.
pub(crate) fn cover(
    costs: impl Iterator<Item = (PathId, f64, f64)>,
    call_paths: &CallPaths<'_>,
    least: f64,
) -> Vec<Covered> {
    let mut inclusive: BTreeMap<PathId, f64> = BTreeMap::new();
    let mut own: BTreeMap<PathId, f64> = BTreeMap::new();
    let mut cost_of: BTreeMap<PathId, f64> = BTreeMap::new();
    let mut all = 0.0;
    let mut children: BTreeMap<Option<PathId>, BTreeSet<PathId>> = BTreeMap::new();
    for (path, loss, cost) in costs {
        all += cost;
        *own.entry(path).or_default() += loss;
        let mut at = Some(path);
        while let Some(path) = at {
            *inclusive.entry(path).or_default() += loss;
            *cost_of.entry(path).or_default() += cost;
            let parent = call_paths.parent(path);
            children.entry(parent).or_default().insert(path);
            at = parent;
        }
    }
    let mut named = Vec::new();
    let mut taken: HashSet<PathId> = HashSet::new();
    // Each turn takes out one path.
    for _ in 0..4 * MOST {
        let worst = |parent: Option<PathId>, inclusive: &BTreeMap<PathId, f64>| {
            let inner = children.get(&parent).into_iter().flatten().copied();
            inner
                .map(|path| (path, inclusive.get(&path).copied().unwrap_or(0.0)))
                .max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let Some((mut path, mut loss)) = worst(None, &inclusive).filter(|(_, loss)| *loss >= least) else {
            break;
        };
        // Unless most of it is lost in its innermost function itself.
        let is_all = |path: PathId, loss: f64| {
            let itself = own.get(&path).copied().unwrap_or(0.0);
            cost_of.get(&path).is_some_and(|cost| *cost > WHOLE_WORK * all) && itself < HOLDS_MOST * loss
        };
        while let Some((inner, of_inner)) = worst(Some(path), &inclusive) {
            // What an inner path lost and its neighbour saved only moved: the outer one tells the difference.
            let holds_most = (HOLDS_MOST * loss..=MOVED * loss).contains(&of_inner);
            if !holds_most && !is_all(path, loss) {
                break;
            }
            (path, loss) = (inner, of_inner);
        }
        let says_something = loss >= least && !(is_all(path, loss) && children.contains_key(&Some(path)));
        let mut at = Some(path);
        while let Some(outer) = at {
            if let Some(sum) = inclusive.get_mut(&outer) {
                *sum -= loss;
            }
            at = call_paths.parent(outer);
        }
        let mut within = HashSet::new();
        let mut inner = vec![path];
        while let Some(path) = inner.pop() {
            inclusive.insert(path, 0.0);
            if own.contains_key(&path) && taken.insert(path) {
                within.insert(path);
            }
            inner.extend(children.get(&Some(path)).into_iter().flatten());
        }
        if says_something && named.len() < MOST {
            named.push(Covered { path, within });
        }
    }
    named
}
