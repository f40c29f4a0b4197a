//! The order of the call paths in a flame graph.

use super::Node;
use crate::call_paths::{CallPaths, PathId};
use std::collections::HashMap;

/// The call paths in the order of the graph.
pub(super) struct Order {
    /// Names of the functions.
    pub functions: Vec<String>,
    /// Every path before those within it, and of siblings the heaviest first.
    pub nodes: Vec<Node>,
    /// The place of each path in `nodes`.
    places: Vec<u32>,
}

impl Order {
    /// All of `call_paths`, by the time of each, what it calls not included.
    pub(super) fn of(call_paths: &CallPaths<'_>, own_time: &[f64]) -> Order {
        let ids: Vec<PathId> = call_paths.ids().collect();
        let mut time = own_time.to_vec();
        time.resize(ids.len(), 0.0);
        // A path has a higher number than what it is within.
        for id in ids.iter().rev() {
            if let Some(parent) = call_paths.parent(*id) {
                time[parent.place()] += time[id.place()];
            }
        }
        let mut roots: Vec<PathId> = Vec::new();
        let mut within: Vec<Vec<PathId>> = vec![Vec::new(); ids.len()];
        for id in &ids {
            match call_paths.parent(*id) {
                Some(parent) => within[parent.place()].push(*id),
                None => roots.push(*id),
            }
        }
        let mut order = Order {
            functions: Vec::new(),
            nodes: Vec::with_capacity(ids.len()),
            places: vec![0; ids.len()],
        };
        let mut numbers: HashMap<usize, u32> = HashMap::new();
        // The last is taken first, so the heaviest must stand last; equal ones stand by their numbers, always the same way.
        let lightest_first = |paths: &mut Vec<PathId>| {
            paths.sort_by(|a, b| time[a.place()].total_cmp(&time[b.place()]).then(b.cmp(a)));
        };
        lightest_first(&mut roots);
        let mut open: Vec<(PathId, u32)> = roots.into_iter().map(|path| (path, 0)).collect();
        while let Some((path, depth)) = open.pop() {
            let Ok(place) = u32::try_from(order.nodes.len()) else {
                break;
            };
            let functions = &mut order.functions;
            let function = *numbers.entry(call_paths.leaf(path)).or_insert_with(|| {
                functions.push(call_paths.innermost(path).to_owned());
                (functions.len() - 1) as u32
            });
            order.places[path.place()] = place;
            order.nodes.push(Node { depth, function });
            let mut inner = std::mem::take(&mut within[path.place()]);
            lightest_first(&mut inner);
            open.extend(inner.into_iter().map(|path| (path, depth + 1)));
        }
        order
    }

    /// The place of a path in `nodes`.
    pub(super) fn place(&self, path: PathId) -> u32 {
        self.places[path.place()]
    }
}
