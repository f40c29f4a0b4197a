//! The loops of a function's instructions.
//!
//! What lies between a backward branch and its target need not be the loop: a compiler lays what it takes for unlikely, such as a wait, at
//! the function's end, and the work that is done once the wait is over in between. So a loop is what compilers call the natural loop of
//! the branch (Aho, Lam, Sethi and Ullman, "Compilers", 9.6.6): all that can come back to the branch without passing its target.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::step::{Does, Step};

/// A loop with more instructions does more than wait.
const MOST_INSTRUCTIONS: usize = 96;

/// Which instruction may run after which.
pub(super) struct Turns<'a> {
    steps: &'a [Step],
}

impl<'a> Turns<'a> {
    pub(super) fn of(steps: &'a [Step]) -> Self {
        Self { steps }
    }

    /// The places of each loop's instructions by rising place, the loop of the fewest first; from the
    /// [predecessors](Self::predecessors).
    pub(super) fn loops(&self, before: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let backward = self
            .steps
            .iter()
            .enumerate()
            .filter_map(|(last, step)| match step.does {
                Does::Branch(target) if target <= step.address => Some((self.place_of(target)?, last)),
                _ => None,
            });
        let natural = backward.filter_map(|(first, last)| {
            self.natural(before, first, last)
                .or_else(|| self.entered_at_its_test(before, first, last))
        });
        let mut loops: Vec<Vec<usize>> = natural.collect();
        loops.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        loops.dedup();
        loops
    }

    /// All that comes back to `last` without passing `first`, to which `last` branches; none where that is too much to be a wait, or
    /// where it can be entered elsewhere than at `first`, so that it has no beginning.
    fn natural(&self, before: &[Vec<usize>], first: usize, last: usize) -> Option<Vec<usize>> {
        let mut inside = BTreeSet::from([first, last]);
        let mut rim = vec![last];
        while let Some(at) = rim.pop() {
            if at == first {
                continue;
            }
            if at == 0 || inside.len() > MOST_INSTRUCTIONS {
                return None;
            }
            for &place in before.get(at)? {
                if inside.insert(place) {
                    rim.push(place);
                }
            }
        }
        // Code that only the unwinder goes to, such as what catches exceptions, may lead into a loop and is none of it.
        let mut turn = BTreeSet::from([first]);
        let mut rim = vec![first];
        while let Some(at) = rim.pop() {
            let next = self.successors(at).filter(|next| inside.contains(next));
            rim.extend(next.filter(|next| turn.insert(*next)));
        }
        (turn.contains(&last) && turn.len() <= MOST_INSTRUCTIONS).then(|| turn.into_iter().collect())
    }

    /// The same of a loop that is entered at its test, at its end: `jmp test; body: ...; test: ...; jne body`. It begins there.
    fn entered_at_its_test(&self, before: &[Vec<usize>], first: usize, last: usize) -> Option<Vec<usize>> {
        // Nothing lies in between but what is done in it.
        if last - first > MOST_INSTRUCTIONS {
            return None;
        }
        (first + 1..=last).find_map(|head| {
            let ways_in = before.get(head)?;
            let is_entered = ways_in.iter().any(|from| !(first..=last).contains(from));
            (is_entered && ways_in.contains(&(head - 1)))
                .then(|| self.natural(before, head, head - 1))
                .flatten()
        })
    }

    /// The shortest way from an instruction back to itself without a call of others. `room` are the instructions that may still be
    /// looked at in this function; none where there are too few.
    pub(super) fn through(&self, place: usize, room: &Cell<usize>) -> Option<Vec<usize>> {
        let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
        let mut rim = vec![place];
        for _ in 0..MOST_INSTRUCTIONS {
            room.set(room.get().checked_sub(rim.len())?);
            let mut next_rim = Vec::new();
            for at in std::mem::take(&mut rim) {
                for next in self.successors(at) {
                    if next == place {
                        let mut turn = vec![at];
                        let mut back = at;
                        while back != place {
                            back = *came_from.get(&back)?;
                            turn.push(back);
                        }
                        turn.sort_unstable();
                        return Some(turn);
                    }
                    if !self.steps.get(next)?.calls() && !came_from.contains_key(&next) {
                        came_from.insert(next, at);
                        next_rim.push(next);
                    }
                }
            }
            rim = next_rim;
        }
        None
    }

    /// By place, those that may run before.
    pub(super) fn predecessors(&self) -> Vec<Vec<usize>> {
        let mut before = vec![Vec::new(); self.steps.len()];
        for place in 0..self.steps.len() {
            for next in self.successors(place) {
                if let Some(of_next) = before.get_mut(next) {
                    of_next.push(place);
                }
            }
        }
        before
    }

    fn successors(&self, place: usize) -> impl Iterator<Item = usize> {
        let step = self.steps.get(place);
        let target = step.and_then(|step| match step.does {
            Does::Branch(target) => self.place_of(target),
            _ => None,
        });
        let next = step
            .filter(|step| step.goes_on && place + 1 < self.steps.len())
            .map(|_| place + 1);
        next.into_iter().chain(target)
    }

    fn place_of(&self, address: u64) -> Option<usize> {
        self.steps.binary_search_by_key(&address, |step| step.address).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An instruction of four bytes.
    fn step(at: u64, does: Does, goes_on: bool) -> Step {
        Step {
            address: at * 4,
            end: at * 4 + 4,
            does,
            goes_on,
        }
    }

    fn branch(at: u64, to: u64, goes_on: bool) -> Step {
        step(at, Does::Branch(to * 4), goes_on)
    }

    fn loops_of(steps: &[Step]) -> Vec<Vec<usize>> {
        let turns = Turns::of(steps);
        turns.loops(&turns.predecessors())
    }

    #[test]
    fn work_between_a_test_and_its_wait_is_no_part_of_the_loop() {
        // 0 entry; 1 head: load; 2 jump to the wait; 3 and 4 work, return; 5 pause; 6 back to 1.
        let steps = [
            step(0, Does::Other, true),
            step(1, Does::Load, true),
            branch(2, 5, true),
            step(3, Does::Load, true),
            step(4, Does::Other, false),
            step(5, Does::Other, true),
            branch(6, 1, false),
        ];
        assert_eq!(loops_of(&steps), [vec![1, 2, 5, 6]]);
    }

    #[test]
    fn a_loop_within_a_loop_is_a_part_of_it() {
        let steps = [
            step(0, Does::Other, true),
            step(1, Does::Load, true),
            step(2, Does::Other, true),
            branch(3, 2, true),
            branch(4, 1, true),
            step(5, Does::Other, false),
        ];
        assert_eq!(loops_of(&steps), [vec![2, 3], vec![1, 2, 3, 4]]);
    }

    #[test]
    fn a_loop_that_is_entered_at_its_test_begins_there() {
        // 0 entry; 1 jump to the test; 2 and 3 body; 4 test; 5 back to the body.
        let steps = [
            step(0, Does::Other, true),
            branch(1, 4, false),
            step(2, Does::Other, true),
            step(3, Does::Other, true),
            step(4, Does::Load, true),
            branch(5, 2, true),
            step(6, Does::Other, false),
        ];
        assert_eq!(loops_of(&steps), [vec![2, 3, 4, 5]]);
    }

    #[test]
    fn what_can_be_entered_in_its_middle_is_no_loop_of_that_branch() {
        // The entry jumps behind the head.
        let steps = [
            branch(0, 2, true),
            step(1, Does::Load, true),
            step(2, Does::Other, true),
            branch(3, 1, true),
            step(4, Does::Other, false),
        ];
        assert!(loops_of(&steps).is_empty());
    }
}
