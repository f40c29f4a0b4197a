//! The judged lines of a bundle, from its own table of who touches what: no binary is needed.

use super::costs::{AtAddresses, MeasuredCosts};
use super::facts::{CodeFunction, Place};
use super::judge::{judge, order};
use super::judged::{JudgedLine, LineKind};
use super::kept::{LINE, PAIR, facts_of};
use super::roles::{Program, writes};
use crate::rung_instructions::RungInstructions;
use scaleprof_bundle::{DataAccessRow, Estimate};
use scaleprof_vocabulary::AccessKind;
use std::collections::{BTreeMap, BTreeSet};

/// A judged line with what its instructions cost at every rung.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleLine {
    /// File name of the executable or library.
    pub module: String,
    /// What is in it, what is wrong with it, what helps.
    pub line: JudgedLine,
    /// Whether two rungs say how its cost grows; else the steps of its evidence that need them say nothing.
    pub is_compared: bool,
    /// CPU seconds per transaction (per second of a watch) at the instructions that touch it and at those behind them, at each
    /// rung; none where there is no figure.
    pub costs: Vec<Option<Estimate>>,
    /// Samples there, at all rungs.
    pub samples: u64,
    /// The addresses of these instructions, and of those behind them.
    pub addresses: BTreeSet<u64>,
    /// Who touches it, those that take most time first.
    pub touchers: Vec<LineToucher>,
}

/// A function that touches a place in a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineToucher {
    /// Place of the place among [`JudgedLine::places`].
    pub place: usize,
    /// Its name.
    pub function: String,
    /// Whether it writes; a function that does both is there twice.
    pub writes: bool,
    /// Whether by locked instructions.
    pub locked: bool,
    /// Whether in a loop that waits for another thread.
    pub in_spin_loop: bool,
    /// Instructions that do, by address; the one at which, or behind which, most samples fell first.
    pub instructions: Vec<u64>,
    /// CPU seconds per transaction at and behind them, at each rung.
    pub seconds: Vec<f64>,
    /// Samples there, at all rungs.
    pub samples: u64,
}

/// A file and its build-id, and its rows by pair of lines.
type Module<'a> = (&'a str, Option<&'a str>);
type Pairs<'a> = BTreeMap<i64, Vec<&'a DataAccessRow>>;

/// The lines, the gravest first; those that are predicted for longer lines behind all others. A line at whose instructions no
/// thread that serves the load was seen is left out. `rungs` as [`by_rung`](crate::rung_instructions::by_rung) gives them.
pub fn lines_of_bundle(rows: &[DataAccessRow], rungs: &[RungInstructions]) -> Vec<BundleLine> {
    let mut modules: BTreeMap<Module<'_>, Pairs<'_>> = BTreeMap::new();
    for row in rows {
        let module = modules.entry((&row.module, row.build_id.as_deref())).or_default();
        module.entry(row.line_pair_address).or_default().push(row);
    }
    let mut lines = Vec::new();
    for ((module, build_id), pairs) in modules {
        let measured = MeasuredCosts::of(rungs, module, build_id).ok();
        let at_rungs: Vec<AtAddresses<'_>> = rungs.iter().map(|rung| AtAddresses::of(rung, module)).collect();
        for (pair, rows) in pairs {
            let (places, functions) = facts_of(&rows);
            let pair = pair as u64;
            let is_inside = |line: &JudgedLine| (pair..pair.saturating_add(PAIR)).contains(&line.address);
            let usual = judge(&places, &functions, LINE, measured.as_ref()).into_iter();
            let longer = judge(&places, &functions, PAIR, measured.as_ref()).into_iter();
            let found = usual.chain(longer.filter(|line| line.kind == LineKind::LongerLinesOnly));
            for line in found.filter(is_inside) {
                lines.push(shown(
                    module,
                    line,
                    (&places, &functions),
                    &at_rungs,
                    measured.is_some(),
                ));
            }
        }
    }
    lines.retain(|line| line.samples > 0);
    let is_predicted = |line: &BundleLine| line.line.kind == LineKind::LongerLinesOnly;
    lines.sort_by(|a, b| {
        is_predicted(a)
            .cmp(&is_predicted(b))
            .then_with(|| order(&a.line, &b.line))
    });
    lines
}

fn shown(
    module: &str,
    line: JudgedLine,
    (places, functions): (&[Place], &[CodeFunction]),
    rungs: &[AtAddresses<'_>],
    is_compared: bool,
) -> BundleLine {
    let program = Program::of(places, functions);
    let start = line.address as i64;
    let is_in_line = |place: &Place| {
        let end = place.address.saturating_add(place.size.max(1));
        place.address < line.address.saturating_add(line.bytes) && end > line.address
    };
    let mut touchers = Vec::new();
    let mut all = BTreeSet::new();
    for place in places.iter().filter(|place| is_in_line(place)) {
        let judged = line
            .variables
            .iter()
            .position(|judged| judged.name == place.name && judged.offset == place.address as i64 - start);
        let Some(number) = judged else { continue };
        let mut by_function: BTreeMap<(usize, bool), Vec<&super::PlaceAccess>> = BTreeMap::new();
        let running = place.accesses.iter().filter(|access| program.runs(place, access));
        for access in running.filter(|access| access.kind != AccessKind::Passed) {
            by_function
                .entry((access.function, writes(access.kind)))
                .or_default()
                .push(access);
        }
        for ((function, writes), accesses) in by_function {
            let at = |access: &super::PlaceAccess| {
                BTreeSet::from([access.instruction, access.sampled_at[0], access.sampled_at[1]])
            };
            let samples = |addresses: &BTreeSet<u64>| rungs.iter().map(|rung| rung.samples(addresses)).sum::<u64>();
            let addresses: BTreeSet<u64> = accesses.iter().flat_map(|access| at(access)).collect();
            let mut by_samples: Vec<(u64, u64)> = accesses
                .iter()
                .map(|access| (samples(&at(access)), access.instruction))
                .collect();
            by_samples.sort_by_key(|(samples, address)| (std::cmp::Reverse(*samples), *address));
            let seconds = rungs
                .iter()
                .map(|rung| rung.estimate(&addresses).map_or(0.0, |cost| cost.value));
            touchers.push(LineToucher {
                place: number,
                function: functions
                    .get(function)
                    .map_or_else(String::new, |function| function.name.clone()),
                writes,
                locked: accesses.iter().any(|access| access.locked),
                in_spin_loop: accesses.iter().any(|access| access.in_spin_loop),
                instructions: by_samples.into_iter().map(|(_, address)| address).collect(),
                seconds: seconds.collect(),
                samples: samples(&addresses),
            });
            all.extend(addresses);
        }
    }
    touchers.sort_by(|a, b| {
        b.samples
            .cmp(&a.samples)
            .then_with(|| b.instructions.len().cmp(&a.instructions.len()))
    });
    BundleLine {
        module: module.to_owned(),
        is_compared,
        costs: rungs.iter().map(|rung| rung.estimate(&all)).collect(),
        samples: rungs.iter().map(|rung| rung.samples(&all)).sum(),
        addresses: all,
        touchers,
        line,
    }
}

#[cfg(test)]
mod tests {
    use super::super::PlaceAccess;
    use super::super::kept::rows_to_keep;
    use super::super::tests::{
        INIT, INSERT, OTHER, SEARCH, SPIN, SPIN_MORE, access, counter, functions, place, rung, setting,
    };
    use super::*;
    use AccessKind::{Passed, Read, Update, Write};
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// The rows of a bundle for what is touched at addresses with samples.
    fn kept(places: &[Place], seen: &[u64]) -> Vec<DataAccessRow> {
        let seen: HashMap<u64, u64> = seen.iter().map(|address| (*address, 10)).collect();
        let kept = rows_to_keep(places, &functions(), &seen, |_| Vec::new(), 1000);
        let rows = kept.rows.into_iter().map(|row| DataAccessRow {
            module: "mysqld".into(),
            build_id: Some("ab12".into()),
            ..row
        });
        rows.collect()
    }

    fn two_rungs() -> [RungInstructions; 2] {
        [
            rung(4, &[(0x104, 2.0), (0x300, 1.0), (0x5000, 97.0)], false),
            rung(64, &[(0x104, 30.0), (0x200, 1.0), (0x300, 9.0), (0x5000, 100.0)], false),
        ]
    }

    #[test]
    fn a_line_of_a_bundle_tells_who_touches_it_and_what_that_costs_at_every_rung() {
        let rows = kept(&[setting(0x1010), counter(0x1008)], &[0x104]);
        let found = lines_of_bundle(&rows, &two_rungs());
        assert_eq!(found.len(), 1, "{found:?}");
        let line = &found[0];
        assert_eq!((line.line.kind, line.line.address), (LineKind::FalseSharing, 0x1000));
        assert_eq!((line.module.as_str(), line.is_compared), ("mysqld", true));
        // 2 + 1 and 30 + 1 + 9 ms of 100 transactions.
        let costs: Vec<f64> = line
            .costs
            .iter()
            .flatten()
            .map(|cost| (cost.value * 1e9).round())
            .collect();
        assert_eq!(costs, [30_000.0, 400_000.0]);
        let touchers: Vec<(&str, &str, bool, u64)> = line
            .touchers
            .iter()
            .map(|one| {
                (
                    line.line.variables[one.place].name.as_str(),
                    one.function.as_str(),
                    one.writes,
                    one.samples,
                )
            })
            .collect();
        assert_eq!(
            touchers,
            [
                ("counter", "spin", true, 20),
                ("enabled", "search", false, 20),
                ("enabled", "insert", false, 10),
                ("counter", "spin_more", true, 0),
            ]
        );
        assert_eq!(line.touchers[1].instructions, [0x100]);
        assert_eq!(
            line.line.variables[1].rare_writers, 1,
            "the start's write is not forgotten"
        );
    }

    #[test]
    fn one_rung_says_what_a_line_costs_and_not_how_it_grows() {
        let rows = kept(&[setting(0x1010), counter(0x1008)], &[0x104]);
        let found = lines_of_bundle(&rows, &two_rungs()[1..]);
        assert_eq!(found.len(), 1);
        assert!(!found[0].is_compared && found[0].costs.len() == 1 && found[0].costs[0].is_some());
        assert_eq!(lines_of_bundle(&rows, &[]), [], "nobody was seen");
    }

    #[test]
    fn what_meets_in_two_lines_only_is_told_for_longer_ones_and_last() {
        let near = [setting(0x1010), counter(0x1048)];
        let found = lines_of_bundle(&kept(&near, &[0x104]), &two_rungs());
        let kinds: Vec<(LineKind, u64)> = found.iter().map(|line| (line.line.kind, line.line.bytes)).collect();
        assert_eq!(kinds, [(LineKind::LongerLinesOnly, 128)]);
    }

    #[test]
    fn lines_without_samples_and_lines_without_room_are_not_kept() {
        assert_eq!(kept(&[setting(0x1010), counter(0x1008)], &[0x7777]), []);
        let seen = HashMap::from([(0x100, 1)]);
        let places = [setting(0x1010), counter(0x1008)];
        let none = rows_to_keep(&places, &functions(), &seen, |_| Vec::new(), 4);
        assert_eq!((none.rows.len(), none.left_out), (0, 1), "five accesses");
    }

    #[test]
    fn what_nobody_touches_is_kept_beside_the_others_unless_it_is_told_already() {
        let seen = HashMap::from([(0x100, 1)]);
        let places = [setting(0x1010), counter(0x1008)];
        let beside = |range: std::ops::Range<u64>| {
            assert_eq!(range, 0x1000..0x1080);
            vec![("spare".to_owned(), 0x1020, 4), ("counter".to_owned(), 0x1008, 8)]
        };
        let rows = rows_to_keep(&places, &functions(), &seen, beside, 1000).rows;
        let quiet: Vec<&str> = rows
            .iter()
            .filter(|row| row.instruction.is_none())
            .map(|row| row.variable.as_str())
            .collect();
        assert_eq!(quiet, ["spare"]);
    }

    fn any_access() -> impl Strategy<Value = PlaceAccess> {
        let functions = prop::sample::select(vec![SEARCH, INSERT, SPIN, SPIN_MORE, INIT, OTHER]);
        let uses = prop::sample::select(vec![Read, Write, Update, Passed]);
        (functions, uses, 0..40_u64, any::<[bool; 3]>()).prop_map(|(function, what, at, [locked, in_loop, waits])| {
            PlaceAccess {
                locked,
                in_loop,
                in_spin_loop: waits,
                callee: (what == Passed && locked).then(|| "pthread_mutex_lock".to_owned()),
                ..access(function, what, 0x100 + 8 * at)
            }
        })
    }

    fn any_places() -> impl Strategy<Value = Vec<Place>> {
        let names = [
            "LOCK_a.m_mutex",
            "LOCK_a.m_psi",
            "guard variable for once",
            "once",
            "table[2]",
            "plain",
            "n_waits",
        ];
        let one = (
            prop::sample::select(names.to_vec()),
            0..40_u64,
            1..24_u64,
            prop::collection::vec(any_access(), 1..5),
        );
        let all = prop::collection::vec(one, 1..10);
        all.prop_map(|all| {
            let mut places: Vec<Place> = all
                .into_iter()
                .map(|(name, at, size, accesses)| place(name, 0x1000 + 8 * at, size, accesses))
                .collect();
            places.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
            places.dedup_by(|a, b| (a.address, &a.name) == (b.address, &b.name));
            places
        })
    }

    proptest! {
        /// Judging what a bundle kept comes to the same as judging the whole binary.
        #[test]
        fn a_bundle_s_lines_are_those_of_the_binary(places in any_places()) {
            let rungs = [rung(4, &[(0x108, 2.0)], false), rung(64, &[(0x108, 30.0), (0x120, 9.0), (0x164, 3.0)], false)];
            let seen = [0x108, 0x120, 0x164];
            let costs = MeasuredCosts::of(&rungs, "mysqld", Some("ab12")).unwrap();
            let functions = functions();
            let usual = judge(&places, &functions, LINE, Some(&costs));
            let longer = judge(&places, &functions, PAIR, Some(&costs)).into_iter().filter(|line| line.kind == LineKind::LongerLinesOnly);
            let mut expected: Vec<JudgedLine> = usual.into_iter().chain(longer).collect();
            let found = lines_of_bundle(&kept(&places, &seen), &rungs);
            // Only lines at whose instructions somebody was seen are told; all of these are.
            expected.retain(|line| line.variables.iter().any(|place| {
                [place.read_cost, place.write_cost].into_iter().flatten().any(|cost| cost.samples != [0, 0])
            }));
            let words = |line: &JudgedLine| (line.bytes, line.address, line.kind, line.sentence.clone(), line.evidence.clone());
            let mut expected: Vec<_> = expected.iter().map(words).collect();
            let mut found: Vec<_> = found.iter().map(|line| words(&line.line)).collect();
            expected.sort_by_key(|line| (line.0, line.1));
            found.sort_by_key(|line| (line.0, line.1));
            prop_assert_eq!(found, expected);
        }
    }
}
