//! Which call paths to name for a loss that is spread over thousands of stacks.

use crate::call_paths::{CallPaths, PathId};
use crate::path_set::PathSet;

/// A path that stands for others.
pub(crate) struct Covered {
    /// What to name.
    pub path: PathId,
    /// The whole paths within it that no path before it stands for.
    pub within: PathSet,
}

/// Paths that are named at most.
const MOST: usize = 6;
/// A path is too general while one of those inside of it holds so much of it.
const HOLDS_MOST: f64 = 0.5;

/// An inner path with more than so much of the outer one's loss has gained it from its neighbours.
const MOVED: f64 = 1.2;
/// A path with so much of all cost is the whole of the server's work: naming it says nothing.
const WHOLE_WORK: f64 = 0.4;

/// Greedy cover: the path with the largest loss is followed inwards while one inner path holds most of it, named, and taken
/// out with all that is within it; then the next. So no loss is told twice. Paths with less than `least` are not named, nor
/// are those through which nearly all of the work goes on. `costs` gives each whole path's loss and what it costs altogether.
pub(crate) fn cover(
    costs: impl Iterator<Item = (PathId, f64, f64)>,
    call_paths: &CallPaths<'_>,
    least: f64,
) -> Vec<Covered> {
    let tree = Tree::of(costs, call_paths);
    let mut inclusive: Vec<f64> = tree.nodes.iter().map(|node| node.loss).collect();
    let mut named = Vec::new();
    let mut taken = PathSet::default();
    // Each turn takes out one path.
    for _ in 0..4 * MOST {
        let worst = |paths: &[PathId], inclusive: &[f64]| {
            let paths = paths.iter().map(|path| (*path, inclusive[path.place()]));
            paths.max_by(|a, b| a.1.total_cmp(&b.1))
        };
        let Some((mut path, mut loss)) = worst(&tree.roots, &inclusive).filter(|(_, loss)| *loss >= least) else {
            break;
        };
        // Unless most of it is lost in its innermost function itself.
        let is_all = |path: PathId, loss: f64| {
            let node = &tree.nodes[path.place()];
            node.cost > WHOLE_WORK * tree.cost && node.own.unwrap_or(0.0) < HOLDS_MOST * loss
        };
        let mut says_something = true;
        while let Some((inner, of_inner)) = worst(tree.within(path), &inclusive) {
            // What an inner path lost and its neighbour saved only moved: the outer one tells the difference.
            let holds_most = (HOLDS_MOST * loss..=MOVED * loss).contains(&of_inner);
            if !holds_most && !is_all(path, loss) {
                break;
            }
            if of_inner < least {
                // Too general to be named, and so are all places within it too small: taken out as a whole, it is in nobody's way.
                says_something = false;
                break;
            }
            (path, loss) = (inner, of_inner);
        }
        let mut at = Some(path);
        while let Some(outer) = at {
            inclusive[outer.place()] -= loss;
            at = call_paths.parent(outer);
        }
        let mut within = PathSet::default();
        let mut inner = vec![path];
        while let Some(path) = inner.pop() {
            inclusive[path.place()] = 0.0;
            if tree.nodes[path.place()].own.is_some() && taken.insert(path) {
                within.insert(path);
            }
            inner.extend(tree.within(path));
        }
        if says_something && named.len() < MOST {
            named.push(Covered { path, within });
        }
    }
    named
}

/// The paths that cost something, and all that they are within.
struct Tree {
    /// By number of the path.
    nodes: Vec<Node>,
    roots: Vec<PathId>,
    /// The paths one function further in, path after path and by rising number.
    inner: Vec<PathId>,
    /// What all cost.
    cost: f64,
}

#[derive(Clone, Default)]
struct Node {
    /// The loss of the path itself, where it is one of those that were given.
    own: Option<f64>,
    /// The loss and the cost of all that is within it.
    loss: f64,
    cost: f64,
    is_there: bool,
    /// Where the paths further in stand.
    first: usize,
    count: usize,
}

impl Tree {
    fn of(costs: impl Iterator<Item = (PathId, f64, f64)>, call_paths: &CallPaths<'_>) -> Tree {
        let mut nodes = vec![Node::default(); call_paths.ids().len()];
        let mut all = 0.0;
        for (path, loss, cost) in costs {
            all += cost;
            *nodes[path.place()].own.get_or_insert(0.0) += loss;
            let mut at = Some(path);
            while let Some(path) = at {
                let node = &mut nodes[path.place()];
                node.loss += loss;
                node.cost += cost;
                node.is_there = true;
                at = call_paths.parent(path);
            }
        }
        let mut roots = Vec::new();
        let mut all_inner = 0;
        let there = || call_paths.ids();
        for path in there() {
            if !nodes[path.place()].is_there {
                continue;
            }
            match call_paths.parent(path) {
                Some(parent) => {
                    nodes[parent.place()].count += 1;
                    all_inner += 1;
                }
                None => roots.push(path),
            }
        }
        let mut inner = vec![None; all_inner];
        let mut next = 0;
        for node in &mut nodes {
            node.first = next;
            next += std::mem::take(&mut node.count);
        }
        for path in there() {
            if let Some(parent) = call_paths.parent(path).filter(|_| nodes[path.place()].is_there) {
                let parent = &mut nodes[parent.place()];
                inner[parent.first + parent.count] = Some(path);
                parent.count += 1;
            }
        }
        Tree {
            nodes,
            roots,
            inner: inner.into_iter().flatten().collect(),
            cost: all,
        }
    }

    /// The paths one function further in.
    fn within(&self, path: PathId) -> &[PathId] {
        let node = &self.nodes[path.place()];
        &self.inner[node.first..node.first + node.count]
    }
}
