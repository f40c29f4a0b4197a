//! For which lock a thread waits that was seen at some place: holders that wait themselves make chains of locks.

use super::owners::place_of;
use crate::call_paths::{CallPaths, PathId};
use crate::rung::VisitRows;
use std::collections::BTreeMap;

/// The locks that are waited for at each place, by all threads of the server.
pub(super) struct Chains {
    locks: BTreeMap<PathId, BTreeMap<i64, f64>>,
}

impl Chains {
    pub(super) fn of(visits: &[&VisitRows<'_>], call_paths: &mut CallPaths<'_>) -> Chains {
        let mut locks: BTreeMap<PathId, BTreeMap<i64, f64>> = BTreeMap::new();
        for row in visits.iter().flat_map(|rows| rows.samples.iter()) {
            let counts = row.state == "lock" && row.weight_ns.is_finite() && row.weight_ns > 0.0;
            let Some(lock) = row.lock.filter(|_| counts) else {
                continue;
            };
            if let Some(place) = place_of(row.stack, call_paths) {
                *locks.entry(place).or_default().entry(lock).or_default() += row.weight_ns;
            }
        }
        Chains { locks }
    }

    /// The locks that are waited for at a place, with their parts of the time, the most first.
    pub(super) fn from(&self, place: PathId) -> Vec<(i64, f64)> {
        let Some(locks) = self.locks.get(&place) else {
            return Vec::new();
        };
        let all: f64 = locks.values().sum();
        let mut found: Vec<(i64, f64)> = locks.iter().map(|(lock, time)| (*lock, time / all)).collect();
        found.sort_by(|a, b| b.1.total_cmp(&a.1));
        found
    }
}
