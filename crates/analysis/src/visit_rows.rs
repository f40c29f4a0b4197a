//! The rows of a bundle's tables, visit by visit.

use scaleprof_bundle::{Bundle, CounterRow, ErrorRow, LatencyRow, LockRow, RungRow, SampleBlock, SecondRow, StateRow};
use std::collections::BTreeMap;

/// The rows of one visit.
#[derive(Debug, Default)]
pub(crate) struct VisitRows<'a> {
    pub rung: Option<&'a RungRow>,
    pub seconds: Vec<&'a SecondRow>,
    pub counters: Vec<&'a CounterRow>,
    pub latency: Vec<&'a LatencyRow>,
    pub errors: Vec<&'a ErrorRow>,
    pub states: Vec<&'a StateRow>,
    pub samples: Vec<&'a SampleBlock>,
    pub locks: Vec<&'a LockRow>,
}

/// The rows of every visit.
pub(crate) fn by_visit(bundle: &Bundle) -> BTreeMap<i32, VisitRows<'_>> {
    let mut visits: BTreeMap<i32, VisitRows> = BTreeMap::new();
    for row in &bundle.rungs {
        visits.entry(row.visit).or_default().rung = Some(row);
    }
    for row in &bundle.seconds {
        visits.entry(row.visit).or_default().seconds.push(row);
    }
    for row in &bundle.counters {
        visits.entry(row.visit).or_default().counters.push(row);
    }
    for row in &bundle.latency {
        visits.entry(row.visit).or_default().latency.push(row);
    }
    for row in &bundle.errors {
        visits.entry(row.visit).or_default().errors.push(row);
    }
    for row in &bundle.states {
        visits.entry(row.visit).or_default().states.push(row);
    }
    for block in bundle.samples.blocks() {
        visits.entry(block.visit()).or_default().samples.push(block);
    }
    for row in &bundle.locks {
        visits.entry(row.visit).or_default().locks.push(row);
    }
    visits
}

/// The complete visits of every rung; what does not count is warned about.
pub(crate) fn by_connections<'a>(
    bundle: &Bundle,
    visits: &'a BTreeMap<i32, VisitRows<'a>>,
    warnings: &mut Vec<String>,
) -> BTreeMap<u32, Vec<&'a VisitRows<'a>>> {
    let mut rungs: BTreeMap<u32, Vec<&VisitRows>> = BTreeMap::new();
    for row in &bundle.rungs {
        let Some((connections, rows)) = u32::try_from(row.connections).ok().zip(visits.get(&row.visit)) else {
            warnings.push(format!(
                "visit {} names {} connections and is not counted",
                row.visit, row.connections
            ));
            continue;
        };
        let rung = rungs.entry(connections).or_default();
        if row.outcome == "complete" {
            rung.push(rows);
        } else {
            warnings.push(format!(
                "visit {} at {connections} connections ended as {} and is not counted",
                row.visit, row.outcome
            ));
        }
    }
    rungs
}

/// The complete visits of every rung.
pub(crate) fn complete_by_connections<'a>(
    bundle: &Bundle,
    visits: &'a BTreeMap<i32, VisitRows<'a>>,
) -> BTreeMap<u32, Vec<&'a VisitRows<'a>>> {
    by_connections(bundle, visits, &mut Vec::new())
}
