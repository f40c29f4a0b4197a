use super::*;
use crate::findings::tests::made_up::rung;
use crate::steadiness::judge;
use scaleprof_vocabulary::FindingKind;

fn course(measurement: i32, rates: &[f64]) -> Course {
    let found = judge(rates);
    Course::of(
        measurement,
        found.warmup,
        &rates[found.warmup..],
        found.problem.as_ref(),
    )
}

/// A rung whose measurements have these throughputs, second by second, and numbers.
fn rungs(measurements: &[(u32, Vec<Course>)]) -> Vec<Finding> {
    let summaries: Vec<RungSummary> = measurements
        .iter()
        .map(|(connections, _)| rung(*connections, 100.0, 1.0, &[]))
        .collect();
    let measured: Vec<Measured<'_>> = summaries
        .iter()
        .zip(measurements)
        .map(|(summary, (_, measurements))| Measured { summary, measurements })
        .collect();
    doubts(&measured)
}

/// Ripples of 1 % around a level that changes by `change` from the first second to the last.
fn series(level: f64, change: f64) -> Vec<f64> {
    (0..20)
        .map(|second| {
            let ripple = [0.0, 0.01, -0.007, 0.004, -0.01][second % 5];
            level * (1.0 + change * second as f64 / 19.0 + ripple)
        })
        .collect()
}

fn kinds(findings: &[Finding]) -> Vec<FindingKind> {
    findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn steady_measurements_leave_no_doubt() {
    let steady = |measurement| course(measurement, &series(1000.0, 0.0));
    let found = rungs(&[
        (1, vec![steady(0), steady(3)]),
        (8, vec![steady(1), steady(4)]),
        (64, vec![steady(2), steady(5)]),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn measurements_of_a_few_seconds_leave_no_doubt_whatever_they_do() {
    let found = rungs(&[(8, vec![course(0, &[100.0, 200.0, 300.0, 250.0, 330.0, 360.0])])]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_throughput_that_falls_within_its_measurements_drifts() {
    let found = rungs(&[(
        8,
        vec![course(0, &series(1000.0, -0.3)), course(1, &series(1000.0, -0.3))],
    )]);
    assert_eq!(kinds(&found), [FindingKind::Drifting], "{found:?}");
    assert!((found[0].lost_share.value - 0.3).abs() < 0.1, "{found:?}");
    assert!(found[0].evidence[0].contains("at 8 connections"), "{found:?}");
}

#[test]
fn a_throughput_that_falls_from_measurement_to_measurement_drifts_whatever_the_rung() {
    let at = |measurement: i32| {
        course(
            measurement,
            &series(1000.0 * (1.0 - 0.03 * f64::from(measurement)), 0.0),
        )
    };
    // In the order of the run: 64, 1, 8, 8, 64, 1, 1, 64, 8.
    let found = rungs(&[
        (1, vec![at(1), at(5), at(6)]),
        (8, vec![at(2), at(3), at(8)]),
        (64, vec![at(0), at(4), at(7)]),
    ]);
    assert_eq!(kinds(&found), [FindingKind::Drifting], "{found:?}");
    assert!(found[0].evidence[0].contains("across all rungs"), "{found:?}");
    assert!((found[0].lost_share.value - 0.24).abs() < 0.03, "{found:?}");
}

#[test]
fn a_server_that_warms_up_for_more_than_half_of_a_measurement_is_not_warm() {
    let rates: Vec<f64> = (0..20u8).map(|second| 50.0 * f64::from(second.min(15) + 5)).collect();
    let found = rungs(&[(8, vec![course(0, &rates), course(1, &rates)])]);
    assert_eq!(kinds(&found), [FindingKind::NotWarmedUp], "{found:?}");
}

#[test]
fn a_client_at_its_limit_at_the_last_rung_is_told_with_the_reason() {
    let mut last = rung(64, 100.0, 0.5, &[]);
    let first = rung(8, 100.0, 0.5, &[]);
    last.client_limited = true;
    last.client_limited_reason = Some("the client used 1.50 CPUs with 2 threads".into());
    let measured = |summary| Measured {
        summary,
        measurements: &[],
    };
    let found = doubts(&[measured(&first), measured(&last)]);
    assert_eq!(kinds(&found), [FindingKind::ClientLimited]);
    assert!(found[0].evidence[0].contains("1.50 CPUs"), "{found:?}");
    // One small rung of several is only named in the verdict.
    assert!(doubts(&[measured(&last), measured(&first), measured(&first)]).is_empty());
}
