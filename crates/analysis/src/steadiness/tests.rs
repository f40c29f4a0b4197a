use super::*;
use crate::simulated::{Noise, noisy};

fn quiet(seed: u64, length: usize) -> Vec<f64> {
    noisy(seed, length, 1000.0, Noise { sd: 0.01, lag: 0.2 })
}

fn share(test: impl Fn(u64) -> bool) -> f64 {
    (0..100).filter(|seed| test(*seed)).count() as f64 / 100.0
}

#[test]
fn a_quiet_series_is_steady() {
    for length in [20, 30, 60, 300] {
        let steady = share(|seed| judge(&quiet(seed, length)).problem.is_none());
        assert!(steady > 0.9, "{length} s: {steady}");
    }
}

#[test]
fn a_quiet_series_after_a_warm_up_is_steady_and_the_warm_up_is_cut() {
    let good = share(|seed| {
        let mut rates = quiet(seed, 60);
        rates
            .iter_mut()
            .take(10)
            .enumerate()
            .for_each(|(n, v)| *v *= 0.3 + 0.07 * n as f64);
        let found = judge(&rates);
        found.problem.is_none() && (10..=15).contains(&found.warmup)
    });
    assert!(good > 0.85, "{good}");
}

#[test]
fn a_planted_trend_is_refused_as_a_trend() {
    let mut named = 0;
    for seed in 0..100 {
        let mut rates = quiet(seed, 60);
        rates
            .iter_mut()
            .enumerate()
            .for_each(|(n, v)| *v *= 1.0 - 0.003 * n as f64);
        let problem = judge(&rates).problem;
        assert!(problem.is_some());
        named += usize::from(matches!(problem, Some(Unsteady::Trend { change }) if change < -0.05));
    }
    assert!(named >= 90, "{named}");
}

#[test]
fn a_planted_step_is_refused_and_placed() {
    let mut named = 0;
    for seed in 0..100 {
        let mut rates = quiet(seed, 60);
        rates.iter_mut().skip(40).for_each(|v| *v *= 0.85);
        let problem = judge(&rates).problem;
        assert!(problem.is_some());
        named += usize::from(matches!(problem, Some(Unsteady::Step { second, .. }) if second.abs_diff(40) <= 2));
    }
    assert!(named >= 95, "{named}");
}

#[test]
fn a_planted_stall_is_refused_even_if_short() {
    for seed in 0..100 {
        let mut rates = quiet(seed, 60);
        rates[45] *= 0.1;
        rates[46] *= 0.2;
        assert_eq!(judge(&rates).problem, Some(Unsteady::Stall { second: 45, seconds: 2 }));
    }
}

#[test]
fn a_server_that_does_nothing_is_stalled() {
    assert!(matches!(judge(&[0.0; 30]).problem, Some(Unsteady::Stall { .. })));
}

#[test]
fn planted_oscillations_fast_and_slow_are_refused() {
    for period in [4.0, 7.0, 25.0] {
        let mut named = 0;
        for seed in 0..100 {
            let mut rates = quiet(seed, 120);
            let wave = |n: usize| (2.0 * std::f64::consts::PI * n as f64 / period).sin();
            rates
                .iter_mut()
                .enumerate()
                .for_each(|(n, v)| *v *= 1.0 + 0.15 * wave(n));
            let problem = judge(&rates).problem;
            assert!(problem.is_some(), "{period}");
            named += usize::from(matches!(problem, Some(Unsteady::Oscillation { .. })));
        }
        assert!(named >= 90, "{period}: {named}");
    }
}

#[test]
fn halves_that_differ_by_three_percent_are_not_steady() {
    for seed in 0..100 {
        let mut rates = noisy(seed, 60, 1000.0, Noise { sd: 0.005, lag: 0.0 });
        rates.iter_mut().skip(30).for_each(|v| *v *= 1.03);
        let found = judge(&rates);
        assert!(found.problem.is_some(), "{found:?}");
    }
    let refused = share(|seed| {
        let drift = |(n, v): (usize, &f64)| v * (1.0 + 0.06 * n as f64 / 60.0);
        judge(&quiet(seed, 60).iter().enumerate().map(drift).collect::<Vec<_>>())
            .problem
            .is_some()
    });
    assert!(refused > 0.9, "{refused}");
}

#[test]
fn a_series_that_is_too_short_says_so() {
    for length in 0..SHORTEST {
        let found = judge(&quiet(1, length));
        assert_eq!(found.problem, Some(Unsteady::TooShort { seconds: length }));
        assert!(found.problem.is_some_and(|p| p.to_string().contains("too short")));
    }
}

#[test]
fn a_rung_of_few_transactions_is_not_called_stalled_for_empty_seconds() {
    let rates: Vec<f64> = (0..60).map(|n| f64::from([2, 1, 3, 0, 2, 1][n % 6])).collect();
    assert!(!matches!(judge(&rates).problem, Some(Unsteady::Stall { .. })));
}

#[test]
fn whole_numbers_that_differ_by_one_once_are_no_step() {
    // One connection, transactions of 0.95 s.
    let mut rates = [1.0; 30];
    rates[18] = 2.0;
    assert_eq!(
        judge(&rates).problem.filter(|p| matches!(p, Unsteady::Step { .. })),
        None
    );
}

#[test]
fn a_step_in_hours_of_seconds_is_found_where_it_is() {
    let mut rates = quiet(5, 14_400);
    rates.iter_mut().skip(9000).for_each(|rate| *rate *= 0.9);
    let found = judge(&rates).problem;
    assert!(
        matches!(found, Some(Unsteady::Step { second, change }) if second.abs_diff(9000) <= 64 && (change + 0.1).abs() < 0.02),
        "{found:?}"
    );
}

#[test]
fn reasons_read_well() {
    let reasons = [
        Unsteady::TooShort { seconds: 5 },
        Unsteady::Trend { change: -0.123 },
        Unsteady::Step {
            second: 40,
            change: 0.051,
        },
        Unsteady::Oscillation {
            period: 7.2,
            amplitude: 0.21,
        },
        Unsteady::Stall { second: 12, seconds: 3 },
        Unsteady::Jitter { jitter: 0.031 },
    ];
    let text: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    too short: 5 s measured, 10 s required
    trend: throughput moves by -12.3 % over the window
    step: throughput jumps by +5.1 % at second 40
    oscillation: throughput swings by 21 % about every 7 s
    stall: 3 s with less than half of the median throughput, the first at second 12
    jitter: the halves of the window differ by 3.1 %, 2 % are allowed
    ");
}

proptest::proptest! {
    #[test]
    fn no_series_brings_it_down(rates in proptest::collection::vec(0.0..1e7f64, 0..80)) {
        let found = judge(&rates);
        proptest::prop_assert!(found.warmup * 2 <= rates.len());
        proptest::prop_assert!(found.jitter.is_none_or(f64::is_finite));
    }
}
