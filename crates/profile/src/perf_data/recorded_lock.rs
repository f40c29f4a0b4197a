//! Which locks samples waited for, where calls of futex(2) were recorded.

use super::address_space;
use super::files::Files;
use super::futexes::{FutexCall, Futexes};
use super::passed::Taken;
use super::stacks::Wanted;
use super::timeline::{Layout, LayoutId};
use crate::LockWait;
use std::collections::HashMap;

/// Places that are looked at for variables that hold locks: a recording that needs more was made to take long.
const MOST_PLACES_LOOKED_AT: usize = 1 << 27;

/// A lock that a thread waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordedLock {
    /// The call that it waited in.
    pub(super) call: FutexCall,
    /// Its address in the space of the recording; none where it is in no file.
    pub(super) variable: Option<u64>,
}

impl RecordedLock {
    /// As a collector gives it.
    pub(super) fn wait(self) -> LockWait {
        LockWait {
            address: self.variable.unwrap_or(0),
            kernel: false,
            operation: self.call.operation,
            owner: None,
            holder_stack: None,
            holder_state: None,
            goes_on: false,
        }
    }
}

/// For which lock each of these samples waited that tells it, by the sample's place.
pub(super) fn locks(
    futexes: Option<&Futexes>,
    samples: (&[Taken], &[Wanted]),
    layouts: &[Layout],
    files: &Files,
) -> HashMap<usize, RecordedLock> {
    let Some(futexes) = futexes else {
        return HashMap::new();
    };
    let waits = samples.0.iter().zip(samples.1).enumerate();
    // Of the heap there is nothing to find, and many locks lie there.
    let mut known: HashMap<(LayoutId, u64), Option<u64>> = HashMap::new();
    let mut places_left = MOST_PLACES_LOOKED_AT;
    let of_sample = |(place, (taken, wanted)): (usize, (&Taken, &Wanted))| {
        let call = futexes.call(taken.futex?)?;
        let layout = layouts.get(wanted.layout.0 as usize);
        let mut look = || {
            let layout = layout?;
            places_left = places_left.checked_sub(layout.places.len())?;
            address_space::of_data(layout, call.address, files)
        };
        let variable = *known.entry((wanted.layout, call.address)).or_insert_with(&mut look);
        Some((place, RecordedLock { call, variable }))
    };
    waits.filter_map(of_sample).collect()
}
