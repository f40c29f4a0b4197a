//! Follows addresses through a function's registers, from block to block, until nothing new is learnt.

use scaleprof_vocabulary::AccessKind;
use std::collections::BTreeSet;

use super::image::Image;
use super::loops::in_loops;
use super::registers::Registers;
use super::step::{Convention, Flow, Step};
use super::{Access, FunctionAccesses};

/// A function with more blocks is looked at block by block, each for itself: code that tables were made of.
const MOST_BLOCKS: usize = 20_000;

/// What a function does with variables.
pub(super) fn accesses(steps: &[Step], convention: &Convention, image: &Image<'_>, into: &mut FunctionAccesses) {
    let blocks = Blocks::of(steps);
    let states = blocks.states(convention, image);
    let in_loop = in_loops(blocks.starts.len(), |block| blocks.behind(block));
    for (number, ((start, state), in_loop)) in blocks.starts.iter().zip(states).zip(in_loop).enumerate() {
        let mut registers = state.unwrap_or_else(Registers::unknown);
        for (place, step) in blocks.within(number).iter().enumerate() {
            let place = start + place;
            let site = Site {
                step,
                seen_at: seen_at(steps, place),
                in_loop,
            };
            note(&site, &registers, convention, image, into);
            registers.step(step, convention, image);
            note_function(step, &registers, image, into);
        }
    }
}

/// An instruction in its function.
struct Site<'a> {
    step: &'a Step,
    seen_at: [u64; 2],
    in_loop: bool,
}

/// Where a thread is seen that waited for an instruction.
fn seen_at(steps: &[Step], place: usize) -> [u64; 2] {
    let behind = |place: usize, else_at: u64| steps.get(place).map_or(else_at, |step| step.end);
    let next = behind(place, 0);
    match steps.get(place + 1).map(|step| step.flow) {
        Some(Flow::MayGo(_)) => [next, behind(place + 1, next)],
        _ => [next, next],
    }
}

/// Writes down what an instruction touches or hands on.
fn note(
    site: &Site<'_>,
    registers: &Registers,
    convention: &Convention,
    image: &Image<'_>,
    into: &mut FunctionAccesses,
) {
    let step = site.step;
    for used in step.uses.iter().flatten() {
        if let Some(known) = registers.resolve(&used.address, image)
            && image.is_writable(known.value)
        {
            into.accesses.push(Access {
                instruction: step.address,
                seen_at: site.seen_at,
                in_loop: site.in_loop,
                place: known.value,
                size: used.size,
                exact: known.exact,
                kind: used.kind,
                locked: used.locked,
                callee: None,
            });
        }
    }
    let callee = match step.flow {
        Flow::Calls(callee) => callee,
        // Out of the function is into its own cold part or into another one for good, if only perhaps.
        Flow::Goes(target) | Flow::MayGo(target) if !into.function.contains(&target) => Some(target),
        _ => return,
    };
    into.calls.extend(callee);
    // What a function's cold part finds in the registers of arguments is the function's own.
    if matches!(step.flow, Flow::MayGo(_)) {
        return;
    }
    for argument in convention.arguments {
        if let Some(known) = registers.get(argument)
            && image.is_writable(known.value)
        {
            into.accesses.push(Access {
                instruction: step.address,
                seen_at: site.seen_at,
                in_loop: site.in_loop,
                place: known.value,
                size: 0,
                exact: known.exact,
                kind: AccessKind::Passed,
                locked: false,
                callee,
            });
        }
    }
}

/// Functions whose addresses are taken may be called from anywhere.
fn note_function(step: &Step, registers: &Registers, image: &Image<'_>, into: &mut FunctionAccesses) {
    use super::step::Sets::{Address, Number, Pointer};
    if let Some(Address(to, _) | Number(to, _) | Pointer(to, _)) = step.sets
        && let Some(known) = registers.get(to)
        && known.exact
        && !image.is_writable(known.value)
    {
        into.addresses.push(known.value);
    }
}

/// A function cut where threads come from elsewhere or go away.
struct Blocks<'a> {
    steps: &'a [Step],
    /// By place.
    starts: Vec<usize>,
    /// The blocks in which the thread may be after each.
    behind: Vec<[Option<usize>; 2]>,
}

impl<'a> Blocks<'a> {
    fn of(steps: &'a [Step]) -> Blocks<'a> {
        let mut is_start = vec![false; steps.len()];
        let mut mark = |place: Option<usize>| {
            if let Some(start) = place.and_then(|place| is_start.get_mut(place)) {
                *start = true;
            }
        };
        mark(Some(0));
        for (place, step) in steps.iter().enumerate() {
            match step.flow {
                Flow::MayGo(target) | Flow::Goes(target) => {
                    mark(place_of(steps, target));
                    mark(Some(place + 1));
                }
                Flow::Leaves => mark(Some(place + 1)),
                Flow::Next | Flow::Calls(_) => {}
            }
        }
        let starts = (0..steps.len()).filter(|place| is_start.get(*place) == Some(&true));
        let mut blocks = Blocks {
            steps,
            starts: starts.collect(),
            behind: Vec::new(),
        };
        // Asked for again and again.
        blocks.behind = (0..blocks.starts.len()).map(|block| blocks.ways(block)).collect();
        blocks
    }

    /// The registers at the start of each block; none for those whose way in is not known.
    fn states(&self, convention: &Convention, image: &Image<'_>) -> Vec<Option<Registers>> {
        let mut states: Vec<Option<Registers>> = vec![None; self.starts.len()];
        // Who starts knowing nothing, and where nothing is to be learnt, knows nothing anywhere.
        let nothing = Registers::unknown();
        let learns = |step: &Step| matches!(nothing.set_by(step, image), Some((_, Some(_))));
        if self.starts.len() > MOST_BLOCKS || !self.steps.iter().any(learns) {
            return states;
        }
        let mut open = BTreeSet::new();
        for first in 0..self.starts.len() {
            // What no known way leads to (landing pads of exceptions, targets of jump tables) starts knowing nothing.
            if states.get(first).is_some_and(Option::is_some) {
                continue;
            }
            open.insert(first);
            self.enter(&mut states, first, &Registers::unknown(), false);
            while let Some(block) = open.pop_first() {
                let Some(Some(state)) = states.get(block) else { continue };
                let mut registers = state.clone();
                for step in self.within(block) {
                    registers.step(step, convention, image);
                }
                for next in self.behind(block).into_iter().flatten() {
                    if self.enter(&mut states, next, &registers, next <= block) {
                        open.insert(next);
                    }
                }
            }
        }
        states
    }

    /// Whether the block learns something by it.
    fn enter(&self, states: &mut [Option<Registers>], block: usize, with: &Registers, is_way_back: bool) -> bool {
        match states.get_mut(block) {
            Some(Some(state)) => state.meet(with, is_way_back),
            Some(state) => {
                *state = Some(with.clone());
                true
            }
            None => false,
        }
    }

    /// The instructions of a block.
    fn within(&self, block: usize) -> &'a [Step] {
        let start = self.starts.get(block).copied().unwrap_or(usize::MAX);
        let end = self.starts.get(block + 1).copied().unwrap_or(self.steps.len());
        self.steps.get(start..end).unwrap_or_default()
    }

    /// The blocks in which the thread may be afterwards.
    fn behind(&self, block: usize) -> [Option<usize>; 2] {
        self.behind.get(block).copied().unwrap_or_default()
    }

    /// The same from the block's last instruction.
    fn ways(&self, block: usize) -> [Option<usize>; 2] {
        let next = Some(block + 1).filter(|next| *next < self.starts.len());
        let at = |target| self.starts.binary_search(&place_of(self.steps, target)?).ok();
        match self.within(block).last().map(|step| step.flow) {
            Some(Flow::Next | Flow::Calls(_)) => [next, None],
            Some(Flow::MayGo(target)) => [next, at(target)],
            Some(Flow::Goes(target)) => [at(target), None],
            Some(Flow::Leaves) | None => [None, None],
        }
    }
}

fn place_of(steps: &[Step], address: u64) -> Option<usize> {
    steps.binary_search_by_key(&address, |step| step.address).ok()
}
