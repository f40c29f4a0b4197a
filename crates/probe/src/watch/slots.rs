//! The slots of the threads, as they are read while the programs write them.

use std::cell::Cell;
use std::time::Duration;

use super::layout::ThreadSlot;
use super::shared::Shared;

/// All slots. Free ones are given away in rising order, and again once their threads have ended: so those that ever had a thread
/// are the first ones, and no reader need look past them.
#[derive(Debug)]
pub(crate) struct Slots {
    table: Shared<ThreadSlot>,
    ever_used: Cell<usize>,
}

impl Slots {
    pub(crate) fn new(table: Shared<ThreadSlot>) -> Self {
        Self {
            table,
            ever_used: Cell::new(0),
        }
    }

    /// The slots that threads have at this moment, each as nobody wrote it meanwhile.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, ThreadSlot)> + '_ {
        self.indexes()
            .filter_map(|index| Some((index, self.get(index)?)))
            .filter(|(_, slot)| slot.thread != 0)
    }

    /// Those of threads that have told their end. Looking for them costs far less than reading all.
    pub(crate) fn ending(&self) -> impl Iterator<Item = (usize, ThreadSlot)> + '_ {
        let ended = std::mem::offset_of!(ThreadSlot, ended);
        self.indexes()
            .filter(move |index| self.table.byte(*index, ended) != Some(0))
            .filter_map(|index| Some((index, self.get(index)?)))
    }

    fn indexes(&self) -> impl Iterator<Item = usize> + '_ {
        // `thread` is the first word of a slot. One that is being given away at this moment may not have it yet.
        const BEING_GIVEN: usize = 64;
        let is_used = move |index: usize| self.table.first_word(index).is_some_and(|thread| thread != 0);
        let mut end = self.ever_used.get();
        while let Some(next) = (end..end + BEING_GIVEN).rev().find(|index| is_used(*index)) {
            end = next + 1;
        }
        self.ever_used.set(end);
        (0..end).filter(move |index| is_used(*index))
    }

    /// A copy of a slot that nobody wrote meanwhile; after many tries the last one, which is off by one interval at most.
    pub(crate) fn get(&self, index: usize) -> Option<ThreadSlot> {
        // Writing takes less than a microsecond, unless the host of a virtual machine takes the writer's CPU meanwhile.
        const AT_ONCE: u32 = 100;
        const IN_ALL: u32 = 200;
        const PAUSE: Duration = Duration::from_micros(200);
        let mut slot = self.table.get(index)?;
        for tried in 0..IN_ALL {
            let again = self.table.get(index)?;
            if slot.version % 2 == 0 && slot.version == again.version {
                return Some(slot);
            }
            slot = again;
            if tried >= AT_ONCE {
                std::thread::sleep(PAUSE);
            }
        }
        Some(slot)
    }

    /// Asks where a thread is that runs now and has what `waiter` waits for: it is told as soon as it is seen.
    pub(crate) fn want(&self, index: usize, waiter: u32) {
        self.table
            .set_word(index, std::mem::offset_of!(ThreadSlot, wanted_by), waiter);
    }

    /// Empties a slot.
    pub(crate) fn clear(&self, index: usize) {
        self.table.set(index, ThreadSlot::default());
    }
}
