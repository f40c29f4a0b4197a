use super::*;
use proptest::prelude::*;

/// Paths by name: `a/b` lies in `a`.
struct Names(Vec<&'static str>);

impl Names {
    fn id(&self, name: &str) -> PathId {
        let place = self.0.iter().position(|known| *known == name);
        PathId::at(place.expect("a known path"))
    }

    fn parent(&self, path: PathId) -> Option<PathId> {
        let (outer, _) = self.0[path.place()].rsplit_once('/')?;
        Some(self.id(outer))
    }

    fn name(&self, path: PathId) -> &'static str {
        self.0[path.place()]
    }

    /// The family of so many hundredths of the cost.
    fn family(&self, spent: &[(&str, f64)]) -> Family {
        let costs = spent.iter().map(|(name, cost)| (self.id(name), *cost));
        Family::of_costs(costs, 100.0, |path| self.parent(path))
    }

    /// The tested places with the pieces that they are made of.
    fn tested(&self, family: &Family) -> Vec<(&'static str, Range<usize>)> {
        let tested = family.places().iter().filter(|place| place.is_tested);
        tested
            .map(|place| (self.name(place.path), place.pieces.clone()))
            .collect()
    }
}

fn server() -> Names {
    Names(vec![
        "main",
        "main/work",
        "main/work/read",
        "main/work/read/page",
        "main/work/read/page/latch",
        "main/work/read/page/copy",
        "main/work/write",
        "main/work/tiny",
    ])
}

const USUAL: [(&str, f64); 5] = [
    ("main/work/read/page/latch", 30.0),
    ("main/work/read/page/copy", 20.0),
    ("main/work/read/page", 5.0),
    ("main/work/write", 44.9),
    ("main/work/tiny", 0.1),
];

#[test]
fn chains_are_one_place_and_the_whole_work_is_none() {
    let names = server();
    let tested = names.tested(&names.family(&USUAL));
    assert_eq!(
        tested,
        [
            ("main/work/read/page", 1..4),
            // What it spends itself.
            ("main/work/read/page", 1..2),
            ("main/work/read/page/latch", 2..3),
            ("main/work/read/page/copy", 3..4),
            ("main/work/write", 4..5),
        ]
    );
}

/// What is listed where these places, by name and whether it is their own piece, changed by so much.
fn listed(changes: &[(&str, bool, f64)]) -> Vec<&'static str> {
    let names = server();
    let family = names.family(&USUAL);
    let sure: Vec<Option<f64>> = family
        .places()
        .iter()
        .map(|place| {
            let is_it = |(name, is_piece, _): &&(&str, bool, f64)| {
                names.name(place.path) == *name && place.inner.is_empty() == *is_piece && place.is_tested
            };
            changes.iter().find(is_it).map(|(_, _, value)| *value)
        })
        .collect();
    let picked = family.picked(&sure);
    picked
        .iter()
        .map(|number| names.name(family.places()[*number].path))
        .collect()
}

#[test]
fn the_inner_place_is_told_where_it_holds_most_of_the_change() {
    let page = ("main/work/read/page", false, 10.0);
    assert_eq!(
        listed(&[page, ("main/work/read/page/latch", true, 9.0)]),
        ["main/work/read/page/latch"]
    );
    assert_eq!(
        listed(&[page, ("main/work/read/page/latch", true, 3.0)]),
        ["main/work/read/page"]
    );
    // Most of it only moved there from its neighbour.
    assert_eq!(
        listed(&[
            page,
            ("main/work/read/page/latch", true, 30.0),
            ("main/work/read/page/copy", true, -20.0)
        ]),
        ["main/work/read/page"]
    );
    assert_eq!(
        listed(&[
            ("main/work/read/page/latch", true, 30.0),
            ("main/work/read/page/copy", true, -30.0),
            ("main/work/write", true, 5.0)
        ]),
        [
            "main/work/read/page/latch",
            "main/work/read/page/copy",
            "main/work/write"
        ]
    );
    assert!(listed(&[]).is_empty());
}

proptest! {
    #[test]
    fn pieces_share_nothing_and_what_is_listed_overlaps_nowhere(
        parents in prop::collection::vec(0usize..40, 1..40),
        spent in prop::collection::vec(0.0..20.0f64, 40),
        ends in prop::collection::vec(any::<bool>(), 40),
        changes in prop::collection::vec(prop::option::of(-9.0..9.0f64), 200),
    ) {
        // Each path lies in an earlier one, the first in none.
        let parent = |path: PathId| (path.place() > 0).then(|| PathId::at(parents[path.place() - 1] % path.place()));
        let paths = || (0..=parents.len()).filter(|place| ends[*place % 40]).map(PathId::at);
        let costs = paths().map(|path| (path, spent[path.place() % 40]));
        let family = Family::of_costs(costs, 100.0, parent);
        for path in paths() {
            let piece = family.piece_of.get(&path).copied();
            prop_assert!(piece.is_some_and(|piece| piece < family.piece_count()));
            // It is in exactly those places that lie around it, or that it ends in.
            for place in family.places().iter().filter(|place| !place.inner.is_empty()) {
                let mut outer = std::iter::successors(Some(path), |path| parent(*path));
                prop_assert_eq!(outer.any(|outer| outer == place.path), place.pieces.contains(&piece.unwrap()));
            }
        }
        let sure: Vec<Option<f64>> = (0..family.places().len()).map(|place| changes[place % 200]).collect();
        let mut taken = BTreeSet::new();
        for number in family.picked(&sure) {
            prop_assert!(sure[number].is_some());
            prop_assert!(family.places()[number].pieces.clone().all(|piece| taken.insert(piece)));
        }
    }
}
