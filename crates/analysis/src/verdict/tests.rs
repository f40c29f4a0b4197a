use super::*;
use crate::peak::tests::ladder;
use scaleprof_vocabulary::LadderVerdict;

/// Points: connections, throughput, utilisation, instructions, cycles per instruction; 2 CPUs at 2 GHz.
fn judged(points: &[(u32, f64, f64, f64, f64)]) -> Vec<Judged> {
    let rungs = ladder(&points.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>());
    let law = |(_, _, utilisation, i, k): &(u32, f64, f64, f64, f64)| IronLaw {
        cpus: 2.0,
        utilisation: *utilisation,
        clock_hz: Some(2e9),
        instructions_per_txn: Some(*i),
        cycles_per_instruction: Some(*k),
        cpu_seconds_per_txn: i * k / 2e9,
        system_share: None,
        residual: None,
        residual_sources: None,
    };
    rungs
        .into_iter()
        .zip(points)
        .map(|(rung, point)| Judged {
            rung,
            law: Some(law(point)),
            machine_busy: None,
        })
        .collect()
}

fn said(points: &[(u32, f64, f64, f64, f64)], refused: &[u32]) -> String {
    verdict(&judged(points), refused).unwrap().sentence
}

#[test]
fn sentences() {
    let dear = [
        (1, 1200., 0.5, 2e5, 1.),
        (16, 13_312., 0.95, 2.9e5, 1.),
        (512, 6523., 0.97, 5.51e5, 1.1),
    ];
    let idle = [
        (1, 1200., 0.5, 2e5, 1.),
        (16, 13_312., 0.95, 2.9e5, 1.),
        (512, 4_000., 0.29, 2.9e5, 1.),
    ];
    let both = [
        (1, 1200., 0.5, 2e5, 1.),
        (16, 13_312., 0.95, 2.9e5, 1.),
        (512, 4_000., 0.55, 5e5, 1.),
    ];
    let rising = [
        (1, 100., 0.5, 2e5, 1.),
        (2, 200., 0.95, 2e5, 1.),
        (4, 390., 0.97, 2e5, 1.),
    ];
    let level = [
        (1, 100., 0.5, 2e5, 1.),
        (2, 200., 0.95, 2e5, 1.),
        (4, 203., 0.97, 2e5, 1.),
    ];
    let holds = [
        (1, 100., 0.5, 2e5, 1.),
        (2, 200., 0.95, 2e5, 1.),
        (4, 195., 0.97, 2e5, 1.),
    ];
    let doubt = [
        (1, 100., 0.5, 2e5, 1.),
        (2, 200., 0.95, 2e5, 1.),
        (4, 188., 0.97, 2e5, 1.),
    ];
    let dead = [
        (1, 100., 0.5, 2e5, 1.),
        (2, 200., 0.95, 2e5, 1.),
        (4, 0., 0.97, 2e5, 1.),
    ];
    let one = [(1, 100., 0.5, 2e5, 1.)];
    let text = [
        said(&dear, &[]),
        said(&idle, &[]),
        said(&both, &[]),
        said(&rising, &[]),
        said(&level, &[]),
        said(&holds, &[256, 512]),
        said(&doubt, &[1]),
        said(&dead, &[]),
        said(&one, &[]),
        nothing_counts(&[1, 2, 4]),
    ];
    insta::assert_snapshot!(text.join("\n"), @r"
    Throughput peaks at 13 300/s at 16 connections and falls to 49 % of that at 512: CPU time per transaction is 2.1 times that at the peak (instructions 1.9x, cycles per instruction 1.1x) while its CPUs stay busy.
    Throughput peaks at 13 300/s at 16 connections and falls to 30 % of that at 512: the server leaves CPUs idle or to other processes (the server's use of them is down from 95 % to 29 %).
    Throughput peaks at 13 300/s at 16 connections and falls to 30 % of that at 512: CPU time per transaction is 1.7 times that at the peak (instructions 1.7x, cycles per instruction 1.0x) and the server leaves CPUs idle or to other processes (the server's use of them is down from 95 % to 55 %).
    Throughput still rises at the last rung: 390/s at 4 connections, 95 % above that at 2. Measure more connections to find the peak.
    Throughput levels off at 203/s at 4 connections, the last rung; no fall.
    Throughput peaks at 200/s at 2 connections and keeps 98 % of that at 4. Excluded: 256 and 512 connections, because the client was the limit.
    94 % of the peak remains at 4 connections; the interval (91 to 97 %) does not exclude noise. Peak: 200/s at 2 connections. Excluded: 1 connection, because the client was the limit.
    Throughput peaks at 200/s at 2 connections and stops at 4.
    Cannot tell whether throughput scales: only one rung measured. Throughput is 100/s at 1 connection.
    Not reliable: the client, not the server, was the limit at 1, 2 and 4 connections.
    ");
}

#[test]
fn a_fall_without_hardware_counters_names_cpu_seconds_alone() {
    let mut rungs = judged(&[
        (1, 1e3, 0.5, 2e5, 1.),
        (16, 1e4, 0.95, 2e5, 1.),
        (512, 5e3, 0.97, 4e5, 1.),
    ]);
    for law in rungs.iter_mut().filter_map(|j| j.law.as_mut()) {
        (law.clock_hz, law.instructions_per_txn, law.cycles_per_instruction) = (None, None, None);
    }
    let text = verdict(&rungs, &[]).unwrap().sentence;
    insta::assert_snapshot!(text, @"Throughput peaks at 10 000/s at 16 connections and falls to 50 % of that at 512: CPU time per transaction is 2.0 times that at the peak while its CPUs stay busy.");
}

#[test]
fn a_fall_without_any_counter_is_still_a_fall() {
    let mut rungs = judged(&[
        (1, 1e3, 0.5, 2e5, 1.),
        (16, 1e4, 0.95, 2e5, 1.),
        (512, 5e3, 0.97, 4e5, 1.),
    ]);
    rungs.iter_mut().for_each(|j| j.law = None);
    let found = verdict(&rungs, &[]).unwrap();
    assert!(found.class == LadderVerdict::FallsOver && found.decomposition.is_none());
    assert!(found.sentence.ends_with("at 512."), "{}", found.sentence);
}

#[test]
fn too_few_rungs_neither_scale_nor_fall() {
    let mut rungs = judged(&[(1, 1e4, 0.9, 2e5, 1.), (16, 5e3, 0.97, 4e5, 1.)]);
    let of_two = verdict(&rungs, &[]).unwrap();
    assert_eq!(
        (of_two.class, of_two.falls_over_at),
        (LadderVerdict::Inconclusive, None)
    );
    assert!(of_two.sentence.starts_with("Cannot tell"), "{}", of_two.sentence);
    rungs.truncate(1);
    assert_eq!(verdict(&rungs, &[]).unwrap().class, LadderVerdict::Inconclusive);
}

#[test]
fn nothing_measured_has_no_verdict() {
    assert_eq!(verdict(&[], &[8]), None);
}

#[test]
fn a_server_that_gets_less_of_busy_cpus_is_not_said_to_leave_them_idle() {
    let mut rungs = judged(&[
        (1, 900.0, 0.5, 1e6, 1.0),
        (16, 1000.0, 0.9, 1e6, 1.0),
        (512, 500.0, 0.45, 1e6, 1.0),
    ]);
    rungs.iter_mut().for_each(|rung| rung.machine_busy = Some(0.98));
    let text = verdict(&rungs, &[]).unwrap().sentence;
    assert!(text.contains("other processes use its CPUs"), "{text}");
    assert!(!text.contains("idle"), "{text}");
}
