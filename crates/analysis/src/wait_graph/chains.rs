//! For which lock a thread waits that was seen at some place: holders that wait themselves make chains of locks.

use super::owners::place_of;
use crate::call_paths::{CallPaths, PathId};
use crate::measurement_rows::MeasurementRows;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;

/// The locks that are waited for at each place, by all threads of the server.
pub(super) struct Chains {
    locks: BTreeMap<PathId, BTreeMap<i64, f64>>,
}

impl Chains {
    pub(super) fn of(measurements: &[&MeasurementRows<'_>], call_paths: &mut CallPaths<'_>) -> Chains {
        let mut locks: BTreeMap<PathId, BTreeMap<i64, f64>> = BTreeMap::new();
        for block in measurements.iter().flat_map(|rows| rows.samples.iter()) {
            let waits = block.states().by_code(|state| *state == ThreadState::Lock);
            let (stack_of, lock_of) = (block.stacks().values(), block.locks().values());
            let mut known: Vec<Option<Option<PathId>>> = vec![None; stack_of.len()];
            let codes = block.states().codes().iter().zip(block.locks().codes());
            let codes = codes.zip(block.stacks().codes()).zip(block.weights_ns());
            for (((state, lock), stack), weight) in codes {
                let counts = waits[*state as usize] && weight.is_finite() && *weight > 0.0;
                let Some(lock) = lock_of[*lock as usize].filter(|_| counts) else {
                    continue;
                };
                let stack = *stack as usize;
                if let Some(place) = *known[stack].get_or_insert_with(|| place_of(stack_of[stack], call_paths)) {
                    *locks.entry(place).or_default().entry(lock).or_default() += weight;
                }
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
