//! The course of an experiment: what is started next, what a failure means, and when it is enough.
//!
//! Nothing here touches a server or a disk: a [`Laboratory`] does. So the whole course is tested with made-up ones.

use super::design::Design;
use super::order::round_order;
use super::step::Step;
use super::work::Work;
use crate::error::RunError;
use scaleprof_analysis::trials::{Sentinel, Session, Start, widest};
use std::collections::{BTreeMap, BTreeSet};

/// Where steps are carried out.
pub(crate) trait Laboratory {
    /// Carries out steps, several side by side, or gives what they gave when all of them were carried out before: an answer for each, in
    /// their order. `left` is what is still to be done, with them.
    ///
    /// # Errors
    /// The experiment cannot go on, whatever the variant.
    fn carry_out(&mut self, steps: &[Step], left: Work) -> Result<Vec<Result<Start, StepFailure>>, RunError>;
    /// What a step gave when it was carried out before. An error where it was and cannot be read.
    fn kept(&mut self, step: Step) -> Result<Option<Start>, RunError>;
    /// Hears that a step failed when it ran, and is tried once more, with those that ran beside it.
    fn try_again(&mut self, step: Step, why: &Why) -> Result<(), RunError>;
    /// Hears that a variant takes no part any more, and why.
    fn drop_variant(&mut self, variant: usize, why: &Why);
    /// Keeps what is known after a step.
    fn keep(&mut self, so_far: &Conducted) -> Result<(), RunError>;
}

/// A reason in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Why {
    /// For who carries it out.
    pub(crate) told: String,
    /// For files that others may read: nothing in it quotes a statement or a value.
    pub(crate) kept: String,
}

/// Why a step gave nothing.
#[derive(Debug)]
pub(crate) enum StepFailure {
    /// The variant's server cannot be started; it would not do so another time.
    CannotStart(Why),
    /// It failed when it ran; another time it may not.
    WhenItRan(Why),
}

/// What was measured so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conducted {
    pub(crate) session: Session,
    /// Variants that take no part any more, with the reason.
    pub(crate) out: BTreeMap<usize, String>,
    /// Variants that have a watched run.
    pub(crate) watched: BTreeSet<usize>,
}

impl Conducted {
    fn new(design: &Design, bases: &[usize]) -> Self {
        let mut new = Conducted {
            session: Session {
                ladder: design.connections.clone(),
                margin: design.margin,
                side_by_side: design.side_by_side,
                ..Session::default()
            },
            out: BTreeMap::new(),
            watched: BTreeSet::new(),
        };
        new.choose_bases(bases);
        new
    }

    /// Of the variants that belong together, the first that takes part is what the others are held against.
    fn choose_bases(&mut self, bases: &[usize]) {
        let mut families: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (variant, base) in bases.iter().enumerate() {
            let family = families.entry(*base).or_default();
            if !self.out.contains_key(&variant) {
                // A base comes before those that are held against it, wherever the plan has it.
                let place = if variant == *base { 0 } else { family.len() };
                family.insert(place, variant);
            }
        }
        let session = &mut self.session;
        session.others.clear();
        session.bases.clear();
        let mut first = None;
        for family in families.values() {
            let Some((base, others)) = family.split_first() else {
                continue;
            };
            // One that is held against nothing and nothing against it is measured, but compares nothing.
            first = first.or((!others.is_empty()).then_some(*base));
            session.others.extend(others);
            session.bases.extend(others.iter().map(|other| (*other, *base)));
        }
        session.others.sort_unstable();
        let any = || families.values().find_map(|family| family.first().copied());
        session.base = first.or_else(any).unwrap_or(0);
    }
}

/// Carries out an experiment to its end. What was measured is given back however it ended. `bases` has for each variant the place of
/// the one that it is held against, its own for such a one; `known_out` are variants that were dropped before it was interrupted: they
/// take part as far as their steps are there, and are dropped at the same one again, so that the answer is the same.
pub(crate) fn conduct(
    design: &Design,
    bases: &[usize],
    known_out: BTreeMap<usize, String>,
    laboratory: &mut dyn Laboratory,
) -> (Conducted, Result<(), RunError>) {
    let mut course = Course {
        design,
        bases,
        conducted: Conducted::new(design, bases),
        known_out,
        left: Work::of(design, bases.len()),
        laboratory,
    };
    let end = course.run();
    (course.conducted, end)
}

/// What became of the step at this place.
type Tried = (usize, Result<Start, StepFailure>);

struct Course<'a> {
    design: &'a Design,
    bases: &'a [usize],
    conducted: Conducted,
    known_out: BTreeMap<usize, String>,
    left: Work,
    laboratory: &'a mut dyn Laboratory,
}

impl Course<'_> {
    fn run(&mut self) -> Result<(), RunError> {
        if self.design.watch {
            for variant in 0..self.bases.len() {
                if self.together(&[Step::Watched { variant }])?.iter().any(Option::is_some) {
                    self.conducted.watched.insert(variant);
                }
            }
        }
        self.sentinels(false)?;
        for round in 0..self.design.most_pairs {
            self.round(round)?;
            if self.design.is_precise(round + 1, widest(&self.conducted.session)) {
                break;
            }
        }
        self.left = Work {
            watched: 0,
            starts: self.design.sentinels * 2,
        };
        self.sentinels(true)
    }

    fn sentinels(&mut self, at_end: bool) -> Result<(), RunError> {
        let sentinels = self.design.sentinels;
        for pair in 0..sentinels {
            let variant = self.conducted.session.base;
            let of = |second| Step::Sentinel {
                at_end,
                pair: (pair, second),
                variant,
            };
            // Turns are taken in the order of the steps: in every second pair of the session the second start comes first.
            let before = if at_end { sentinels + pair } else { pair };
            let exchanged = self.design.side_by_side && before % 2 == 1;
            let mut both = self.steps(&[of(exchanged), of(!exchanged)])?;
            if exchanged {
                both.reverse();
            }
            let both: Option<Vec<Start>> = both.into_iter().collect();
            if let Some(starts) = both.and_then(|both| <[Start; 2]>::try_from(both).ok()) {
                self.conducted.session.sentinels.push(Sentinel { variant, starts });
                self.laboratory.keep(&self.conducted)?;
            }
        }
        Ok(())
    }

    fn round(&mut self, round: u32) -> Result<(), RunError> {
        self.conducted.session.rounds.push(BTreeMap::new());
        let order = round_order(self.bases.len(), round, self.design.seed);
        if self.design.side_by_side {
            return self.part_of_round(round, &order);
        }
        order
            .iter()
            .try_for_each(|variant| self.part_of_round(round, &[*variant]))
    }

    /// Variants of a round that are started together.
    fn part_of_round(&mut self, round: u32, variants: &[usize]) -> Result<(), RunError> {
        let steps: Vec<Step> = variants.iter().map(|&variant| Step::Round { round, variant }).collect();
        let starts = self.together(&steps)?;
        let known = variants
            .iter()
            .zip(starts)
            .filter_map(|(variant, start)| Some((*variant, start?)));
        if let Some(round) = self.conducted.session.rounds.last_mut() {
            round.extend(known);
        }
        self.laboratory.keep(&self.conducted)
    }

    /// Steps that belong together, side by side where the design wants that; none where a step's variant takes no part.
    fn steps(&mut self, steps: &[Step]) -> Result<Vec<Option<Start>>, RunError> {
        if self.design.side_by_side {
            return self.together(steps);
        }
        let mut found = Vec::new();
        for step in steps {
            found.extend(self.together(std::slice::from_ref(step))?);
        }
        Ok(found)
    }

    /// Steps at the same time. Where some failed when they ran for the first time all are tried once more: what ran beside them ran beside
    /// something else than the rest. Who fails a second time takes no part any more.
    fn together(&mut self, steps: &[Step]) -> Result<Vec<Option<Start>>, RunError> {
        let left = self.left;
        let mut found: BTreeMap<usize, Start> = BTreeMap::new();
        let mut asked = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::Watched { .. } => self.left.watched = self.left.watched.saturating_sub(1),
                Step::Sentinel { .. } | Step::Round { .. } => self.left.starts = self.left.starts.saturating_sub(1),
            }
            let variant = step.variant();
            if self.conducted.out.contains_key(&variant) {
                continue;
            }
            match self.known_out.get(&variant).cloned() {
                None => asked.push(at),
                Some(why) => match self.laboratory.kept(*step)? {
                    Some(start) => drop(found.insert(at, start)),
                    None => self.without(variant, why)?,
                },
            }
        }
        let mut failed_once = BTreeSet::new();
        let mut out: Vec<(usize, Why)> = Vec::new();
        // Each time around another variant has failed for the first time.
        while !asked.is_empty() {
            let tried = self.attempt(steps, std::mem::take(&mut asked), left)?;
            let mut first_failures = Vec::new();
            let mut starts = Vec::new();
            for (at, one) in tried {
                match one {
                    Ok(start) => starts.push((at, start)),
                    Err(StepFailure::WhenItRan(why)) if !failed_once.contains(&steps[at].variant()) => {
                        first_failures.push((at, why));
                    }
                    Err(StepFailure::CannotStart(why) | StepFailure::WhenItRan(why)) => out.push((at, why)),
                }
            }
            if first_failures.is_empty() {
                found.extend(starts);
                break;
            }
            for (at, why) in &first_failures {
                self.laboratory.try_again(steps[*at], why)?;
                failed_once.insert(steps[*at].variant());
            }
            asked.extend(first_failures.iter().map(|(at, _)| *at));
            asked.extend(starts.iter().map(|(at, _)| *at));
            asked.sort_unstable();
        }
        for (at, why) in out {
            let variant = steps[at].variant();
            // Side by side it may fail in both starts of an A/A pair.
            if !self.conducted.out.contains_key(&variant) {
                self.laboratory.drop_variant(variant, &why);
                self.without(variant, why.kept)?;
            }
        }
        Ok((0..steps.len()).map(|at| found.remove(&at)).collect())
    }

    /// Has those of the steps carried out that are at these places.
    fn attempt(&mut self, steps: &[Step], places: Vec<usize>, left: Work) -> Result<Vec<Tried>, RunError> {
        let asked: Vec<Step> = places.iter().map(|&at| steps[at]).collect();
        let found = self.laboratory.carry_out(&asked, left)?;
        Ok(places.into_iter().zip(found).collect())
    }

    /// Goes on without a variant, if enough are left.
    fn without(&mut self, variant: usize, why: String) -> Result<(), RunError> {
        self.conducted.out.insert(variant, why);
        self.conducted.choose_bases(self.bases);
        self.laboratory.keep(&self.conducted)?;
        match self.conducted.session.others.is_empty() {
            true => Err(RunError::NothingToCompare),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
