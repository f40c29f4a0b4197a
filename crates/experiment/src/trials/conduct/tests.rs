//! Whole experiments with made-up servers.

use super::super::design::design;
use super::super::plan_file::DesignText;
use super::*;
use proptest::prelude::*;
use scaleprof_analysis::trials::{RungFigures, judge};
use scaleprof_vocabulary::ExperimentVerdict;
use scaleprof_workload::ConnectionRng;

mod failures;

const LADDER: [u32; 3] = [1, 16, 256];

/// Servers whose throughput is known but for noise: 1.2 % from start to start, 8 % of them disturbed, a drift of up to 6 % to either
/// side (research of the design).
struct MadeUp {
    /// Throughput of each variant over the first's.
    factors: Vec<f64>,
    rng: ConnectionRng,
    drift: f64,
    clock: f64,
    /// What each step gave, as bundles keep it.
    kept: Vec<(Step, Start)>,
    carried_out: Vec<Step>,
    /// How many steps each was side by side.
    together: Vec<usize>,
    /// Ends after so many steps, as if it were killed.
    killed_after: Option<usize>,
    cannot_start: Vec<usize>,
    /// Steps that fail so many times more.
    fails: Vec<(Step, u32)>,
    /// Steps that fail the so-many-th time that they are carried out.
    fails_at: Vec<(Step, usize)>,
    tried_again: Vec<Step>,
    dropped: Vec<(usize, String)>,
}

impl MadeUp {
    fn new(factors: &[f64], seed: u64) -> MadeUp {
        let mut rng = ConnectionRng::new(seed, 0);
        let drift = 0.12 * (uniform(&mut rng) - 0.5);
        MadeUp {
            factors: factors.to_vec(),
            rng,
            drift,
            clock: 0.0,
            kept: Vec::new(),
            carried_out: Vec::new(),
            together: Vec::new(),
            killed_after: None,
            cannot_start: Vec::new(),
            fails: Vec::new(),
            fails_at: Vec::new(),
            tried_again: Vec::new(),
            dropped: Vec::new(),
        }
    }

    fn start(&mut self, factor: f64) -> Start {
        let mut level = self.drift * self.clock / 30.0 + 0.009 * normal(&mut self.rng);
        if uniform(&mut self.rng) < 0.08 {
            level -= 0.02 + 0.06 * uniform(&mut self.rng);
        }
        self.clock += 1.0;
        let rungs = LADDER.map(|connections| {
            let throughput = 5000.0 * factor * (level + 0.008 * normal(&mut self.rng)).exp();
            (connections, figures(throughput))
        });
        Start {
            began: self.clock,
            rungs: rungs.into(),
        }
    }
}

/// A rung of which nothing is known but its throughput.
pub(crate) fn figures(throughput: f64) -> RungFigures {
    RungFigures {
        throughput,
        law: None,
        switches_per_txn: None,
        p50_ms: None,
        p99_ms: None,
        offered: false,
        client_limited: false,
        steady: true,
        noise_cpu_share: None,
        steal_share: None,
        replicas: Vec::new(),
        together: None,
    }
}

fn uniform(rng: &mut ConnectionRng) -> f64 {
    f64::from(rng.uniform(0, 1 << 30)) / f64::from(1 << 30)
}

/// The sum of twelve uniform numbers less six.
fn normal(rng: &mut ConnectionRng) -> f64 {
    (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
}

fn why(words: &str) -> Why {
    Why {
        told: words.to_owned(),
        kept: words.to_owned(),
    }
}

impl MadeUp {
    fn carry_out_one(&mut self, step: Step) -> Result<Result<Start, StepFailure>, RunError> {
        if self.killed_after.is_some_and(|after| self.carried_out.len() >= after) {
            return Err(RunError::Stopped);
        }
        self.carried_out.push(step);
        if self.cannot_start.contains(&step.variant()) {
            return Ok(Err(StepFailure::CannotStart(why("unknown variable"))));
        }
        if let Some((_, times)) = self
            .fails
            .iter_mut()
            .find(|(known, times)| *known == step && *times > 0)
        {
            *times -= 1;
            return Ok(Err(StepFailure::WhenItRan(why("it died"))));
        }
        let times = self.carried_out.iter().filter(|one| **one == step).count();
        if self.fails_at.contains(&(step, times)) {
            return Ok(Err(StepFailure::WhenItRan(why("it died"))));
        }
        let start = self.start(self.factors[step.variant()]);
        self.kept.push((step, start.clone()));
        Ok(Ok(start))
    }
}

impl Laboratory for MadeUp {
    fn carry_out(&mut self, steps: &[Step], _: Work) -> Result<Vec<Result<Start, StepFailure>>, RunError> {
        let of = |step: &Step| self.kept.iter().find(|(known, _)| known == step);
        let kept: Option<Vec<Start>> = steps.iter().map(|step| Some(of(step)?.1.clone())).collect();
        if let Some(kept) = kept {
            return Ok(kept.into_iter().map(Ok).collect());
        }
        // Side by side with what was broken off.
        self.kept.retain(|(step, _)| !steps.contains(step));
        let before = (self.rng.clone(), self.clock, self.carried_out.len());
        let found = steps.iter().map(|step| self.carry_out_one(*step)).collect();
        match found {
            Ok(_) => self.together.push(steps.len()),
            // What was broken off is forgotten, but what it left behind.
            Err(_) => {
                (self.rng, self.clock) = (before.0, before.1);
                self.carried_out.truncate(before.2);
            }
        }
        found
    }

    fn kept(&mut self, step: Step) -> Result<Option<Start>, RunError> {
        let found = self.kept.iter().find(|(known, _)| *known == step);
        Ok(found.map(|(_, start)| start.clone()))
    }

    fn try_again(&mut self, step: Step, _: &Why) -> Result<(), RunError> {
        self.tried_again.push(step);
        Ok(())
    }

    fn drop_variant(&mut self, variant: usize, why: &Why) {
        self.dropped.push((variant, why.kept.clone()));
    }

    fn keep(&mut self, _: &Conducted) -> Result<(), RunError> {
        Ok(())
    }
}

fn of(text: DesignText, seed: u64) -> Design {
    let mut design = design(&Default::default(), &text, seed).expect("a design");
    design.connections = LADDER.to_vec();
    design
}

fn usual(seed: u64) -> Design {
    of(DesignText::default(), seed)
}

fn carried_out(design: &Design, laboratory: &mut MadeUp) -> Conducted {
    let variants = laboratory.factors.len();
    let (conducted, end) = conduct(design, &vec![0; variants], BTreeMap::new(), laboratory);
    end.expect("its end");
    conducted
}

fn differs(conducted: &Conducted) -> bool {
    judge(&conducted.session).variants.iter().any(|variant| {
        let rungs = variant.rungs.iter().filter_map(|rung| rung.throughput);
        let mut all = rungs.chain(variant.overall);
        all.any(|compared| matches!(compared.verdict, ExperimentVerdict::Faster | ExperimentVerdict::Slower))
    })
}

#[test]
fn the_default_course_is_watched_runs_a_a_pairs_rounds_and_a_a_pairs() {
    let mut laboratory = MadeUp::new(&[1.0, 1.0], 1);
    let conducted = carried_out(&usual(1), &mut laboratory);
    let steps = &laboratory.carried_out;
    assert_eq!(steps.len(), 2 + 4 + 16 + 4);
    assert!(steps[..2].iter().all(|step| matches!(step, Step::Watched { .. })));
    assert!(steps[2..6].iter().all(|step| matches!(
        step,
        Step::Sentinel {
            at_end: false,
            variant: 0,
            ..
        }
    )));
    assert!(steps[22..].iter().all(|step| matches!(
        step,
        Step::Sentinel {
            at_end: true,
            variant: 0,
            ..
        }
    )));
    // Blocks of four are ABBA or BAAB.
    for block in steps[6..22].chunks(4) {
        let variants: Vec<usize> = block.iter().map(Step::variant).collect();
        assert_eq!((variants[0], variants[1]), (variants[3], variants[2]));
        assert_ne!(variants[0], variants[1]);
    }
    assert_eq!(
        (conducted.session.sentinels.len(), conducted.session.rounds.len()),
        (4, 8)
    );
}

#[test]
fn what_is_compared_runs_side_by_side_unless_it_is_wanted_one_by_one() {
    let pairs_and_rounds = |side_by_side: bool| {
        let mut design = usual(1);
        design.side_by_side = side_by_side;
        let mut laboratory = MadeUp::new(&[1.0, 1.0, 1.0], 1);
        carried_out(&design, &mut laboratory);
        (laboratory.together, laboratory.carried_out)
    };
    let (together, in_turns) = pairs_and_rounds(true);
    assert_eq!(together, [vec![1; 3], vec![2; 2], vec![3; 8], vec![2; 2]].concat());
    let (together, one_by_one) = pairs_and_rounds(false);
    assert_eq!(together, vec![1; 3 + 4 + 24 + 4]);
    let by_place = |mut steps: Vec<Step>| {
        steps.sort_by_key(Step::folder);
        steps
    };
    assert_eq!(by_place(in_turns), by_place(one_by_one));
}

#[test]
fn who_has_the_first_turn_in_one_pair_or_round_has_the_last_in_the_next() {
    for sentinels in [1, 2, 3] {
        let mut design = usual(1);
        design.sentinels = sentinels;
        let mut laboratory = MadeUp::new(&[1.0, 1.0, 1.0], 1);
        let conducted = carried_out(&design, &mut laboratory);
        assert_eq!(conducted.session.sentinels.len(), 2 * sentinels as usize);
        let seconds: Vec<bool> = laboratory
            .carried_out
            .iter()
            .filter_map(|step| match step {
                Step::Sentinel { pair: (_, second), .. } => Some(*second),
                _ => None,
            })
            .collect();
        let expected = [false, true, true, false].repeat(sentinels as usize);
        assert_eq!(seconds, expected);
        let of_rounds = laboratory
            .carried_out
            .iter()
            .filter(|step| matches!(step, Step::Round { .. }));
        let variants: Vec<usize> = of_rounds.map(Step::variant).collect();
        for block in variants.chunks(6) {
            let mirrored: Vec<usize> = block[..3].iter().rev().copied().collect();
            assert_eq!(block[3..], mirrored);
        }
    }
    // What each start of a pair gave is kept as its own.
    let mut laboratory = MadeUp::new(&[1.0, 1.0], 1);
    let conducted = carried_out(&usual(1), &mut laboratory);
    for (pair, kept) in conducted.session.sentinels.iter().take(2).zip(0..) {
        for (start, second) in pair.starts.iter().zip([false, true]) {
            let step = Step::Sentinel {
                at_end: false,
                pair: (kept, second),
                variant: 0,
            };
            assert!(laboratory.kept.contains(&(step, start.clone())));
        }
    }
}

#[test]
fn equal_servers_seem_different_in_at_most_five_experiments_of_a_hundred() {
    let trials = 1000;
    let seem = (0..trials).filter(|seed| differs(&carried_out(&usual(*seed), &mut MadeUp::new(&[1.0, 1.0], *seed))));
    let share = seem.count() as f64 / trials as f64;
    assert!(share <= 0.05, "{share}");
}

#[test]
fn a_planted_loss_of_five_percent_is_found_in_nine_of_ten() {
    let trials = 500;
    let found = (0..trials).filter(|seed| {
        let conducted = carried_out(&usual(*seed), &mut MadeUp::new(&[1.0, 0.95], *seed));
        judge(&conducted.session).variants[0]
            .overall
            .is_some_and(|whole| whole.verdict == ExperimentVerdict::Slower)
    });
    let share = found.count() as f64 / trials as f64;
    assert!(share >= 0.9, "{share}");
}

#[test]
fn a_precise_one_ends_on_width_and_equal_servers_stay_equal() {
    let design = |seed| {
        let text = DesignText {
            precision_percent: Some(1.2),
            ..DesignText::default()
        };
        of(text, seed)
    };
    let trials = 1000;
    let (mut rounds, mut seem) = (0, 0);
    for seed in 0..trials {
        let conducted = carried_out(&design(seed), &mut MadeUp::new(&[1.0, 1.0], seed));
        assert!(conducted.session.rounds.len().is_multiple_of(2) && conducted.session.rounds.len() >= 6);
        rounds += conducted.session.rounds.len();
        seem += i32::from(differs(&conducted));
    }
    assert!((8.0..19.0).contains(&(rounds as f64 / trials as f64)), "{rounds}");
    assert!(f64::from(seem) / trials as f64 <= 0.05, "{seem}");
}

#[test]
fn variants_with_a_base_of_their_own_are_held_against_it() {
    // The second two are half as fast as the first two, and the last is slower than its own base.
    let mut laboratory = MadeUp::new(&[1.0, 1.0, 0.5, 0.4], 8);
    let (conducted, end) = conduct(&usual(8), &[0, 0, 2, 2], BTreeMap::new(), &mut laboratory);
    end.expect("its end");
    let judged = judge(&conducted.session);
    let found: Vec<(usize, f64)> = judged
        .variants
        .iter()
        .map(|variant| (variant.variant, variant.overall.expect("measured").ratio.value))
        .collect();
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.04;
    assert!(
        matches!(found[..], [(1, one), (3, other)] if near(one, 1.0) && near(other, 0.8)),
        "{found:?}"
    );
    assert!(conducted.session.sentinels.iter().all(|pair| pair.variant == 0));
    // Without a base of its own the next of the same family is it; one that is left alone is held against nothing.
    for (cannot_start, bases) in [(vec![0], vec![(3, 2)]), (vec![3], vec![(1, 0)])] {
        let mut laboratory = MadeUp::new(&[1.0, 1.0, 0.5, 0.4], 9);
        laboratory.cannot_start = cannot_start;
        let (conducted, end) = conduct(&usual(9), &[0, 0, 2, 2], BTreeMap::new(), &mut laboratory);
        end.expect("its end");
        assert_eq!(conducted.session.bases.into_iter().collect::<Vec<_>>(), bases);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn killed_at_any_step_it_goes_on_to_the_same_end(seed in any::<u64>(), after in 0..40_usize) {
        let mut whole = MadeUp::new(&[1.0, 0.97, 1.0], seed);
        let expected = carried_out(&usual(seed), &mut whole);
        let mut killed = MadeUp::new(&[1.0, 0.97, 1.0], seed);
        killed.killed_after = Some(after);
        let (_, end) = conduct(&usual(seed), &[0; 3], BTreeMap::new(), &mut killed);
        let was_killed = matches!(end, Err(RunError::Stopped));
        prop_assert_eq!(was_killed, after < whole.carried_out.len());
        killed.killed_after = None;
        prop_assert_eq!(carried_out(&usual(seed), &mut killed), expected);
        prop_assert_eq!(killed.carried_out, whole.carried_out);
        prop_assert_eq!(killed.together, whole.together);
    }
}
