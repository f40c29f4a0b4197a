//! What becomes of variants that fail.

use super::*;

#[test]
fn a_variant_that_cannot_start_is_dropped_and_the_rest_goes_on() {
    let mut laboratory = MadeUp::new(&[1.0, 0.9, 1.0], 3);
    laboratory.cannot_start = vec![2];
    let conducted = carried_out(&usual(3), &mut laboratory);
    assert_eq!(laboratory.dropped, [(2, "unknown variable".to_owned())]);
    assert_eq!((conducted.session.base, conducted.session.others.clone()), (0, vec![1]));
    assert_eq!(
        laboratory.carried_out.iter().filter(|step| step.variant() == 2).count(),
        1
    );
    assert!(differs(&conducted));
}

#[test]
fn the_next_variant_stands_in_for_a_base_that_cannot_start() {
    let mut laboratory = MadeUp::new(&[1.0, 1.0, 0.9], 4);
    laboratory.cannot_start = vec![0];
    let conducted = carried_out(&usual(4), &mut laboratory);
    assert_eq!((conducted.session.base, conducted.session.others.clone()), (1, vec![2]));
    assert!(conducted.session.sentinels.iter().all(|pair| pair.variant == 1));
}

#[test]
fn with_one_variant_left_there_is_nothing_to_compare() {
    let mut laboratory = MadeUp::new(&[1.0, 1.0], 5);
    laboratory.cannot_start = vec![1];
    let (conducted, end) = conduct(&usual(5), &[0; 2], BTreeMap::new(), &mut laboratory);
    assert!(matches!(end, Err(RunError::NothingToCompare)));
    assert_eq!(conducted.out.len(), 1);
}

#[test]
fn a_start_that_fails_once_is_repeated_and_one_that_fails_twice_ends_its_variant() {
    let step = Step::Round { round: 2, variant: 1 };
    for (times, out) in [(1, 0), (2, 1)] {
        let mut laboratory = MadeUp::new(&[1.0, 1.0, 1.0], 6);
        laboratory.fails = vec![(step, times)];
        let conducted = carried_out(&usual(6), &mut laboratory);
        assert_eq!(conducted.out.len(), out);
        assert_eq!(laboratory.tried_again, [step], "nobody is left without a word of it");
        // And those that ran beside it with it.
        for variant in 0..3 {
            let step = Step::Round { round: 2, variant };
            assert_eq!(laboratory.carried_out.iter().filter(|one| **one == step).count(), 2);
        }
    }
}

#[test]
fn one_that_fails_for_the_first_time_when_another_is_tried_again_is_not_dropped() {
    let step = |variant| Step::Round { round: 2, variant };
    for (again, dropped) in [(1, None), (2, Some(1))] {
        let mut laboratory = MadeUp::new(&[1.0, 1.0, 1.0], 6);
        // The last one fails when all are started again for the second one's sake, which may fail then too.
        laboratory.fails = vec![(step(1), again)];
        laboratory.fails_at = vec![(step(2), 2)];
        let conducted = carried_out(&usual(6), &mut laboratory);
        assert_eq!(conducted.out.keys().copied().next(), dropped);
        assert_eq!(conducted.out.len(), usize::from(dropped.is_some()));
        assert_eq!(laboratory.tried_again, [step(1), step(2)]);
        let starts = [0, 1, 2].map(|variant| {
            let of_it = laboratory.carried_out.iter().filter(|one| **one == step(variant));
            of_it.count()
        });
        assert_eq!(starts, [3, if again == 1 { 3 } else { 2 }, 3]);
        assert_eq!(conducted.session.rounds[2].len(), 3 - conducted.out.len());
    }
}

#[test]
fn a_variant_that_cannot_start_in_an_a_a_pair_is_told_once() {
    let mut laboratory = MadeUp::new(&[1.0, 1.0, 1.0], 6);
    laboratory.cannot_start = vec![0];
    let design = of(
        DesignText {
            probe: Some(false),
            ..DesignText::default()
        },
        6,
    );
    carried_out(&design, &mut laboratory);
    assert_eq!(laboratory.dropped, [(0, "unknown variable".to_owned())]);
}

#[test]
fn one_that_cannot_start_does_not_have_those_beside_it_repeated() {
    let mut laboratory = MadeUp::new(&[1.0, 1.0, 1.0], 6);
    laboratory.cannot_start = vec![2];
    let design = of(
        DesignText {
            probe: Some(false),
            ..DesignText::default()
        },
        6,
    );
    carried_out(&design, &mut laboratory);
    assert_eq!(
        laboratory.together,
        [vec![2; 2], vec![3], vec![2; 7], vec![2; 2]].concat()
    );
}

/// What is dropped takes part as far as it was measured, when the whole is read back, be it the base of the others.
#[test]
fn what_was_dropped_on_the_way_is_dropped_there_again() {
    for variant in [0, 1] {
        let mut laboratory = MadeUp::new(&[1.0, 0.9, 1.0], 7);
        laboratory.fails = vec![(Step::Round { round: 2, variant }, 2)];
        let conducted = carried_out(&usual(7), &mut laboratory);
        let known_out: BTreeMap<usize, String> = laboratory.dropped.iter().cloned().collect();
        assert_eq!(known_out.len(), 1);
        let before = laboratory.carried_out.len();
        let (again, end) = conduct(&usual(7), &[0; 3], known_out, &mut laboratory);
        end.expect("its end");
        assert_eq!(again, conducted);
        assert_eq!(laboratory.carried_out.len(), before, "nothing is measured again");
    }
}

#[test]
fn where_too_few_were_left_there_is_nothing_to_go_on_with() {
    let mut laboratory = MadeUp::new(&[1.0, 1.0], 5);
    laboratory.fails = vec![(Step::Round { round: 1, variant: 1 }, 2)];
    let (conducted, _) = conduct(&usual(5), &[0; 2], BTreeMap::new(), &mut laboratory);
    let before = laboratory.carried_out.len();
    let (again, end) = conduct(&usual(5), &[0; 2], conducted.out.clone(), &mut laboratory);
    assert!(matches!(end, Err(RunError::NothingToCompare)));
    assert_eq!((again, laboratory.carried_out.len()), (conducted, before));
}
