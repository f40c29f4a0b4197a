//! Threads that slept before the programs were there, or there again after a rest: where they are, what they wait for, who holds it
//! and where that one is.
//!
//! The programs see only who goes to sleep. On a server that hangs nobody does any more, and these are the waits that matter. Their
//! registers are in the slots, their memory is read from here. Nothing of it stands still: what is found counts only if the slots
//! and the futex say the same before and after.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::collections::HashMap;

use scaleprof_profile::{LockWait, RawStack};

use super::code::ProcessCode;
use super::futex;
use super::layout::ThreadSlot;
use super::native::StartRegisters;
use super::records::lock_wait;
use super::slots::Slots;

/// A thread that was found asleep.
#[derive(Debug)]
pub(super) struct Sleeper {
    pub(super) slot: ThreadSlot,
    pub(super) state: ThreadState,
    pub(super) stack: RawStack,
    pub(super) lock: Option<LockWait>,
}

/// The threads of a process and its memory.
pub(super) struct Sleepers<'a, Memory> {
    code: &'a ProcessCode,
    slots: &'a Slots,
    epoch: u32,
    foreign_names: bool,
    memory: Memory,
    /// All threads, by their numbers, with the places of their slots.
    threads: HashMap<u32, (usize, ThreadSlot)>,
    /// Where owners are: one thread may hold what many wait for.
    owners: HashMap<u32, Owner>,
}

#[derive(Debug, Clone)]
struct Owner {
    index: usize,
    stack: RawStack,
    state: ThreadState,
}

impl<'a, Memory: FnMut(u64) -> Option<u64>> Sleepers<'a, Memory> {
    /// `epoch` is that of the programs' control: a slot of an older one tells nothing of this moment. `foreign_names`: mutexes name
    /// their owners by other numbers than slots have, so that owners cannot be found.
    pub(super) fn new(
        code: &'a ProcessCode,
        slots: &'a Slots,
        (epoch, foreign_names): (u32, bool),
        memory: Memory,
    ) -> Self {
        Self {
            code,
            slots,
            epoch,
            foreign_names,
            memory,
            threads: slots
                .used()
                .filter(|(_, slot)| slot.ended == 0)
                .map(|(index, slot)| (slot.thread, (index, slot)))
                .collect(),
            owners: HashMap::new(),
        }
    }

    /// Walks the stacks of those that were chosen and are not known yet.
    pub(super) fn walk(mut self, is_known: impl Fn(&ThreadSlot) -> bool) -> Vec<Sleeper> {
        let chosen = |slot: &ThreadSlot| slot.from_start != 0 && slot.sampled != 0 && !is_known(slot);
        let found: Vec<(usize, ThreadSlot)> = self
            .threads
            .values()
            .filter(|(_, slot)| chosen(slot))
            .copied()
            .collect();
        let walked = found.into_iter().filter_map(|(index, slot)| {
            let state = ThreadState::from_number(slot.state)?;
            let stack = self.stack_of(index, &slot);
            let lock = match self.has_moved(index, &slot) {
                true => lock_wait(slot.lock, slot.lock_operation, 0),
                false => self.lock_of(index, &slot),
            };
            Some(Sleeper {
                slot,
                state,
                stack,
                lock,
            })
        });
        walked.collect()
    }

    /// The stack of a thread that is off its CPU; not taken where it did not stay off.
    fn stack_of(&mut self, index: usize, slot: &ThreadSlot) -> RawStack {
        let start = StartRegisters {
            pc: slot.pc,
            sp: slot.sp,
            fp: slot.fp,
            lr: slot.link_register(),
        };
        let stack = self.code.unwind(start, &mut self.memory);
        // It woke meanwhile: what was read is no stack of one moment.
        match self.has_moved(index, slot) {
            true => not_taken(),
            false => stack,
        }
    }

    fn has_moved(&self, index: usize, slot: &ThreadSlot) -> bool {
        let moved = |again: ThreadSlot| {
            again.version != slot.version || again.state == ThreadState::Cpu as u8 || again.thread != slot.thread
        };
        self.slots.get(index).is_none_or(moved)
    }

    /// What a thread waits for, and who has it.
    fn lock_of(&mut self, index: usize, waiter: &ThreadSlot) -> Option<LockWait> {
        let operation = waiter.lock_operation;
        let address = match waiter.lock {
            0 => return None,
            named => futex::address_of(named, operation, &mut self.memory),
        };
        let owner = futex::owner(address, operation, &mut self.memory).filter(|_| !self.foreign_names);
        let mut lock = lock_wait(address, operation, owner.unwrap_or(0))?;
        let Some(number) = owner.filter(|owner| *owner != waiter.thread) else {
            return Some(lock);
        };
        let Some(owner) = self.owner(number) else {
            return Some(lock);
        };
        let still = futex::owner(address, operation, &mut self.memory) == Some(number);
        if still && !self.has_moved(index, waiter) {
            if owner.state == ThreadState::Cpu {
                self.slots.want(owner.index, waiter.thread);
            }
            lock.holder_state = Some(owner.state);
            lock.holder_stack = Some(owner.stack);
        }
        Some(lock)
    }

    /// Where a thread that owns something is; nothing where it is none of this process, or nobody knows.
    fn owner(&mut self, number: u32) -> Option<Owner> {
        if let Some(owner) = self.owners.get(&number) {
            return Some(owner.clone());
        }
        let (index, slot) = self
            .threads
            .get(&number)
            .copied()
            .filter(|(_, slot)| slot.epoch == self.epoch)?;
        let owner = match ThreadState::from_number(slot.state)? {
            ThreadState::Cpu => Owner {
                index,
                stack: not_taken(),
                state: ThreadState::Cpu,
            },
            state => Owner {
                index,
                stack: self.stack_of(index, &slot),
                state: if slot.runnable_at != 0 {
                    ThreadState::RunQueue
                } else {
                    state
                },
            },
        };
        self.owners.insert(number, owner.clone());
        Some(owner)
    }
}

fn not_taken() -> RawStack {
    RawStack {
        ending: UnwindStatus::NotTaken,
        ..RawStack::default()
    }
}
