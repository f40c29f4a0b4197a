//! Which call paths are tested: a family that is fixed before any difference is looked at.
//!
//! Reports are made of paths that were picked because they differ, and thousands could have been. So the error rate must hold for
//! whatever is picked: chance may let anything be listed in at most one comparison of twenty. That needs a list of what can be picked
//! at all, made without a look at the differences.
//!
//! - **Places** are the paths with half a per cent or more of what both runs together spend. What both spend together says nothing
//!   about how they differ where they do not, so choosing by it favours no difference. A chain of calls in which only the last
//!   calls several others is one place, named for its end. Paths through which nearly all of the work goes on are none:
//!   naming them would say nothing.
//! - What a place spends itself and in calls too small to be places is a **piece**. Pieces have no time in common and add up to
//!   all. A place is tested with all that is within it (its pieces), and where it has places inside, its own piece by itself.
//! - Places lie within one another, so their tests depend on each other, and a false discovery rate over them means nothing: one true
//!   change would count once for every path around it and make room for false ones beside it. Holm's rule (1979) holds however
//!   tests depend. Each has its part of the 5 % in proportion to what it spends, as large ones are worth more; that, too, is
//!   fixed beforehand.
//! - What is listed has no time in common: of the places whose change is sure, the inner ones where they hold most of
//!   the outer one's change, else the outer one ([`Family::picked`]).

use super::accounts::Sides;
use super::costs::{MeasurementCosts, add};
use crate::call_paths::{CallPaths, PathId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Paths with less of the cost are no places.
const LEAST_COST: f64 = 0.005;
/// A path with so much of the cost is the whole of the server's work: naming it says nothing.
const WHOLE_WORK: f64 = 0.6;
/// Inner places are told instead of the outer one from this part of its change on, one alone or all together.
const ONE_HOLDS: f64 = 0.5;
const TOGETHER_HOLD: f64 = 0.8;
/// An inner place with more than so much of the outer one's change has gained it from its neighbours: the outer one tells
/// the difference.
const MOVED: f64 = 1.2;

/// A place of the call tree, or the piece of one.
#[derive(Debug, PartialEq)]
pub(super) struct Place {
    pub(super) path: PathId,
    /// The pieces that it is made of.
    pieces: Range<usize>,
    /// Places right inside of it; empty for a piece.
    inner: Vec<usize>,
    /// What both runs spend in it on average, over what a transaction costs: its part of the errors that are allowed.
    pub(super) weight: f64,
    /// Whether it may be listed, and so is tested.
    pub(super) is_tested: bool,
}

/// All that can be listed of one account at one rung.
#[derive(Debug, Default)]
pub(super) struct Family {
    /// Outer ones before inner ones.
    places: Vec<Place>,
    /// The outermost places.
    outermost: Vec<usize>,
    piece_of: BTreeMap<PathId, usize>,
    piece_count: usize,
}

impl Family {
    pub(super) fn of(sides: &Sides, call_paths: &CallPaths<'_>) -> Family {
        // How deep a thread stands when its stack is cut says nothing.
        let whole = sides.paths().into_iter().filter(|path| call_paths.is_whole(*path));
        let costs = whole.map(|path| {
            let (a, b) = sides.of_path(path);
            (path, (a + b) / 2.0)
        });
        Family::of_costs(costs, sides.cost, |path| call_paths.parent(path))
    }

    /// From what whole paths cost on average of both runs, and what a transaction costs.
    fn of_costs(
        costs: impl Iterator<Item = (PathId, f64)>,
        cost: f64,
        parent: impl Fn(PathId) -> Option<PathId>,
    ) -> Family {
        let mut tree = Tree::default();
        for (whole, spent) in costs {
            tree.all += spent;
            tree.ends.insert(whole);
            let mut at = Some(whole);
            while let Some(path) = at {
                *tree.inclusive.entry(path).or_default() += spent;
                at = parent(path);
                tree.children.entry(at).or_default().insert(path);
            }
        }
        let mut family = Family::default();
        if cost > 0.0 {
            tree.cost = cost;
            let roots: Vec<PathId> = tree.children.get(&None).into_iter().flatten().copied().collect();
            for root in roots {
                match tree.is_place(root) {
                    true => {
                        let place = family.add(root, &tree);
                        family.outermost.push(place);
                    }
                    false => family.add_small(&[root], &tree),
                }
            }
        }
        family
    }

    /// A place with all that is inside.
    fn add(&mut self, path: PathId, tree: &Tree) -> usize {
        let mut path = path;
        // A function that does nothing but call one other is the same place.
        while let Some(inner) = tree.only_child(path) {
            path = inner;
        }
        let inside = tree.children.get(&Some(path)).into_iter().flatten().copied();
        let (large, small): (Vec<PathId>, Vec<PathId>) = inside.partition(|inner| tree.is_place(*inner));
        let spent = |path: &PathId| tree.inclusive.get(path).copied().unwrap_or(0.0);
        let (first, number) = (self.piece_count, self.places.len());
        let share = spent(&path) / tree.cost;
        self.places.push(Place {
            path,
            pieces: first..first,
            inner: Vec::new(),
            weight: share,
            is_tested: large.is_empty() || spent(&path) <= WHOLE_WORK * tree.all,
        });
        self.add_small(&small, tree);
        if tree.ends.contains(&path) {
            self.piece_of.insert(path, first);
        }
        let mut inner = Vec::new();
        if !large.is_empty() {
            let own = share - large.iter().map(spent).sum::<f64>() / tree.cost;
            inner.push(self.places.len());
            self.places.push(Place {
                path,
                pieces: first..first + 1,
                inner: Vec::new(),
                weight: own,
                is_tested: own >= LEAST_COST,
            });
            // A call path of a thousand frames takes more than a thread's stack may have left.
            let deeper = |path: &PathId| stacker::maybe_grow(64 << 10, 1 << 20, || self.add(*path, tree));
            inner.extend(large.iter().map(deeper));
        }
        let pieces = first..self.piece_count;
        if let Some(place) = self.places.get_mut(number) {
            place.pieces = pieces;
            place.inner = inner;
        }
        number
    }

    /// A piece of these paths with all that goes on from them.
    fn add_small(&mut self, paths: &[PathId], tree: &Tree) {
        let piece = self.piece_count;
        self.piece_count += 1;
        let mut within = paths.to_vec();
        while let Some(path) = within.pop() {
            if tree.ends.contains(&path) {
                self.piece_of.insert(path, piece);
            }
            within.extend(tree.children.get(&Some(path)).into_iter().flatten());
        }
    }

    /// The places, by number.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    pub(super) fn piece_count(&self) -> usize {
        self.piece_count
    }

    /// What a measurement spends in each piece in each of its seconds.
    pub(super) fn pieces(&self, measurement: &MeasurementCosts) -> Vec<Vec<f64>> {
        measurement.pieces(&self.piece_of, self.piece_count)
    }

    /// Whether a whole path belongs to a place, be it one that neither run has at this rung.
    pub(super) fn holds(&self, place: &Place, path: PathId, call_paths: &CallPaths<'_>) -> bool {
        if let Some(piece) = self.piece_of.get(&path) {
            return place.pieces.contains(piece);
        }
        let inner = || self.places.iter().filter(|other| other.path != place.path);
        let is_own_piece = place.inner.is_empty();
        call_paths.is_within(path, place.path)
            && !(is_own_piece
                && inner().any(|other| {
                    call_paths.is_within(other.path, place.path) && call_paths.is_within(path, other.path)
                }))
    }

    /// Of the places whose change is sure, those to list: none has time in common with another. `sure` gives these changes, by
    /// number.
    pub(super) fn picked(&self, sure: &[Option<f64>]) -> Vec<usize> {
        let outermost = self.outermost.iter();
        outermost.flat_map(|place| self.picked_within(*place, sure)).collect()
    }

    fn picked_within(&self, number: usize, sure: &[Option<f64>]) -> Vec<usize> {
        let Some(place) = self.places.get(number) else {
            return Vec::new();
        };
        let inside: Vec<usize> = place
            .inner
            .iter()
            .flat_map(|inner| stacker::maybe_grow(64 << 10, 1 << 20, || self.picked_within(*inner, sure)))
            .collect();
        let change = |number: usize| sure.get(number).copied().flatten();
        let Some(whole) = change(number) else {
            return inside;
        };
        let parts = || {
            let changes = inside.iter().filter_map(|inner| change(*inner));
            changes.map(|value| value / whole).filter(|part| *part > 0.0)
        };
        let together: f64 = parts().sum();
        let holds_most = parts().any(|part| part >= ONE_HOLDS) || together >= TOGETHER_HOLD;
        match holds_most && together <= MOVED {
            true => inside,
            false => vec![number],
        }
    }
}

/// Sums the blocks of some pieces.
pub(super) fn sum_of(place: &Place, pieces: &[Vec<f64>]) -> Vec<f64> {
    let mut of_place = pieces.get(place.pieces.clone()).into_iter().flatten();
    let mut sum = of_place.next().cloned().unwrap_or_default();
    for blocks in of_place {
        add(&mut sum, blocks);
    }
    sum
}

/// What all paths cost with what is inside of them.
#[derive(Default)]
struct Tree {
    inclusive: BTreeMap<PathId, f64>,
    children: BTreeMap<Option<PathId>, BTreeSet<PathId>>,
    /// Where sampled stacks end.
    ends: BTreeSet<PathId>,
    all: f64,
    cost: f64,
}

impl Tree {
    fn is_place(&self, path: PathId) -> bool {
        self.inclusive
            .get(&path)
            .is_some_and(|spent| *spent >= LEAST_COST * self.cost)
    }

    fn only_child(&self, path: PathId) -> Option<PathId> {
        let children = self.children.get(&Some(path))?;
        let only = children.first().copied().filter(|_| children.len() == 1);
        only.filter(|_| !self.ends.contains(&path))
    }
}

#[cfg(test)]
mod tests;
