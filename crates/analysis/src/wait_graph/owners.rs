//! Who held a lock when a wait for it began.

use super::HolderSource;
use crate::call_paths::{CallPaths, PathId};
use crate::sampled::Wait;
use crate::visit_rows::VisitRows;
use scaleprof_bundle::SampleBlock;
use std::collections::BTreeMap;

/// A holder: where it was, as far as that is known, and what it was doing.
pub(super) type HolderKey<'a> = (Option<PathId>, Option<&'a str>);

/// What the bundle knows of the holders of locks.
pub(super) enum Owners {
    /// Each sample names its own.
    EachWait,
    /// By lock and visit: places with their parts of the waits, and the waits that were sampled there.
    MostFrequent(BTreeMap<(i64, i32), Vec<Frequent>>),
    Nobody,
}

/// The place where the holder of a lock was most often, in one visit and at one operation.
pub(super) struct Frequent {
    place: Option<PathId>,
    share: f64,
    samples: u64,
}

impl Owners {
    pub(super) fn of(visits: &[&VisitRows<'_>], call_paths: &mut CallPaths<'_>) -> Owners {
        let mut samples = visits.iter().flat_map(|rows| rows.samples.iter());
        if samples.any(|block| names_owners(block)) {
            return Owners::EachWait;
        }
        let rows = || visits.iter().flat_map(|rows| rows.locks.iter());
        let mut waits: BTreeMap<(i64, i32), f64> = BTreeMap::new();
        for row in rows() {
            *waits.entry((row.lock, row.visit)).or_default() += row.waits.max(0) as f64;
        }
        let mut frequent: BTreeMap<(i64, i32), Vec<Frequent>> = BTreeMap::new();
        for row in rows().filter(|row| row.owner_samples > 0) {
            let Some(stack) = row.owner_stack else { continue };
            let places = frequent.entry((row.lock, row.visit)).or_default();
            // Only a damaged table has a holder at more waits than there were.
            let left = 1.0 - places.iter().map(|one| one.share).sum::<f64>();
            let share = row.owner_samples as f64 / waits[&(row.lock, row.visit)];
            places.push(Frequent {
                place: place_of(stack, call_paths),
                share: share.min(left.max(0.0)),
                samples: row.owner_samples.unsigned_abs(),
            });
        }
        match frequent.is_empty() {
            true => Owners::Nobody,
            false => Owners::MostFrequent(frequent),
        }
    }

    pub(super) fn source(&self) -> HolderSource {
        match self {
            Owners::EachWait => HolderSource::EachWait,
            Owners::MostFrequent(_) => HolderSource::MostFrequentPlace,
            Owners::Nobody => HolderSource::Nobody,
        }
    }

    /// Who held the lock of that wait in a visit, each with the part of its time.
    pub(super) fn of_wait<'a>(
        &self,
        wait: &Wait<'a>,
        visit: i32,
        call_paths: &mut CallPaths<'_>,
    ) -> Vec<(HolderKey<'a>, f64)> {
        match self {
            Owners::EachWait => {
                let place = wait.owner_stack.and_then(|stack| place_of(stack, call_paths));
                let held = wait.owner_state.map(|state| ((place, Some(state)), 1.0));
                held.into_iter().collect()
            }
            Owners::MostFrequent(_) => {
                let of_lock = wait.lock.map_or(&[][..], |lock| self.frequent(lock, visit));
                of_lock.iter().map(|one| ((one.place, None), one.share)).collect()
            }
            Owners::Nobody => Vec::new(),
        }
    }

    /// The places where the holder of a lock was most often, with the waits at which it was there: of all waits of the visit.
    pub(super) fn counted(&self, lock: i64, visits: impl Iterator<Item = i32>) -> BTreeMap<Option<PathId>, u64> {
        let mut counted: BTreeMap<Option<PathId>, u64> = BTreeMap::new();
        for one in visits.flat_map(|visit| self.frequent(lock, visit)) {
            let samples = counted.entry(one.place).or_default();
            *samples = samples.saturating_add(one.samples);
        }
        counted
    }

    fn frequent(&self, lock: i64, visit: i32) -> &[Frequent] {
        match self {
            Owners::MostFrequent(frequent) => frequent.get(&(lock, visit)).map_or(&[], Vec::as_slice),
            _ => &[],
        }
    }
}

/// Whether some sample says what the holder of a lock was doing.
fn names_owners(block: &SampleBlock) -> bool {
    let states = block.owner_states();
    // A value may be that of no row.
    states.values().iter().any(Option::is_some)
        && states
            .codes()
            .iter()
            .any(|code| states.values()[*code as usize].is_some())
}

/// The functions of the server at the inner end of a stack: without those of the kernel, in which a thread that is off its CPU
/// always is. None where no function is known.
pub(super) fn place_of(stack: i64, call_paths: &mut CallPaths<'_>) -> Option<PathId> {
    let mut at = Some(call_paths.path(stack));
    while let Some(path) = at.filter(|path| call_paths.innermost(*path).ends_with(" [k]")) {
        at = call_paths.parent(path);
    }
    at.filter(|path| !call_paths.innermost(*path).starts_with("[incomplete"))
}
