//! Whole bundles with a known truth, from the tables to the summary.

use crate::truths;
use scaleprof_vocabulary::{LadderVerdict, MeasurementOutcome, RunState, ThreadState};

use scaleprof_analysis::summarise;
use scaleprof_bundle::*;
use testing::planted::empty;
use truths::{FALLS, Truth, bundle, truth, watch};

#[test]
fn a_server_that_falls_over_is_found_with_its_reason() {
    let summary = summarise(&bundle(&FALLS, true));
    let verdict = summary.verdict.as_ref().unwrap();
    assert_eq!(verdict.class, LadderVerdict::FallsOver);
    assert_eq!(
        (verdict.peak_connections, verdict.peak_band, verdict.falls_over_at),
        (16, (16, 32), Some(64))
    );
    let kept = verdict.retention.unwrap();
    assert!(
        kept.low.unwrap() < 0.49 && kept.high.unwrap() > 0.49 && kept.high.unwrap() < 0.52,
        "{kept:?}"
    );
    let d = verdict.decomposition.as_ref().unwrap();
    assert!((d.utilisation + d.cpu_seconds + d.residual - d.throughput).abs() < 1e-12 && d.residual.abs() < 0.01);
    insta::assert_snapshot!(verdict.sentence, @"Throughput peaks at 13 300/s at 16 connections and falls to 49 % of that at 512: CPU time per transaction is 2.1 times that at the peak (instructions 2.0x, cycles per instruction 1.0x) while its CPUs stay busy.");
    for rung in &summary.rungs {
        assert!(rung.steady && !rung.client_limited, "{:?}", rung);
        assert_eq!((rung.repeat_count, &rung.warmup_seconds), (3, &vec![4, 4, 4]));
        assert!(rung.iron_law.as_ref().unwrap().residual.unwrap().abs() < 0.02);
        assert!((rung.context_switches_per_txn.unwrap() - 3.0).abs() < 1e-9);
        assert_eq!(rung.errors["1213"], 6);
        assert_eq!(rung.latency_ms.max, Some(50.0));
    }
    assert!(
        summary.warnings.is_empty()
            && !summary.missing.is_empty()
            && summary.missing.iter().all(|m| m.figure == "ledger"),
        "{:?} {:?}",
        summary.warnings,
        summary.missing
    );
}

#[test]
fn a_server_that_scales_is_not_blamed() {
    let rises: Vec<Truth> = [1, 2, 4, 8]
        .map(|n| truth(n, 1000.0 * f64::from(n), 0.2 * f64::from(n), 2e5))
        .to_vec();
    let verdict = summarise(&bundle(&rises, true)).verdict.unwrap();
    assert!(
        verdict.class == LadderVerdict::Scales && verdict.falls_over_at.is_none() && verdict.decomposition.is_none()
    );
    assert!(verdict.sentence.contains("still rises"), "{}", verdict.sentence);
}

#[test]
fn without_hardware_counters_the_law_stands_on_cpu_seconds_and_says_so() {
    let summary = summarise(&bundle(&FALLS, false));
    let law = summary.rungs[2].iron_law.as_ref().unwrap();
    assert!(law.instructions_per_txn.is_none() && law.residual.is_some());
    assert_eq!(
        summary
            .missing
            .iter()
            .filter(|m| m.figure == "iron_law.clock_hz")
            .count(),
        1
    );
    assert!(
        summary
            .verdict
            .unwrap()
            .sentence
            .contains("times that at the peak while its CPUs stay busy")
    );
}

#[test]
fn rungs_in_which_the_client_was_the_limit_are_refused() {
    let mut truths = FALLS;
    truths[6].little = 0.9;
    truths[7].little = 0.8;
    let summary = summarise(&bundle(&truths, true));
    assert!(summary.rungs[7].client_limited && summary.rungs[7].client_limited_reason.is_some());
    let verdict = summary.verdict.unwrap();
    assert_eq!(verdict.decomposition.unwrap().to, 128);
    assert!(
        verdict.sentence.contains("Excluded: 256 and 512 connections"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn measurements_that_did_not_complete_are_warned_about_and_left_out() {
    let mut bundle = bundle(&FALLS, true);
    for row in &mut bundle.measurements {
        if row.connections == 512 || (row.connections == 256 && row.repeat == 2) {
            row.outcome = MeasurementOutcome::ServerDied;
        }
    }
    bundle.manifest.state = RunState::Failed;
    bundle.manifest.problem = Some("the server died".into());
    bundle.partial_measurements = vec![24];
    let summary = summarise(&bundle);
    assert_eq!(
        summary.rungs.last().map(|rung| (rung.connections, rung.repeat_count)),
        Some((256, 2))
    );
    let said = summary.warnings.join("\n");
    for words in [
        "the rung of 512 connections has no complete measurement and is left out",
        "at 256 connections is not counted: the server died",
        "measurement 24 was not finished",
        "the run failed: the server died",
    ] {
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_watched_run_has_a_ledger_that_closes_at_every_rung() {
    let mut bundle = bundle(&FALLS, true);
    watch(&mut bundle);
    let summary = summarise(&bundle);
    assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    for (rung, truth) in summary.rungs.iter().zip(FALLS) {
        let ledger = rung.ledger.as_ref().unwrap();
        let round_trip = f64::from(truth.connections) / rung.throughput.value;
        assert!((ledger.connections_over_throughput.unwrap() / round_trip - 1.0).abs() < 1e-3);
        for residual in [ledger.residual, ledger.states_residual, ledger.cpu_residual] {
            assert!(residual.unwrap().abs() < 1e-6, "{residual:?}");
        }
        assert_eq!(ledger.background[0].name, "purge");
        assert_eq!(ledger.complete_stacks_share, Some(1.0));

        let of = |state: ThreadState, function: &str| {
            let path = ["start_thread", function];
            let found = rung.paths.iter().find(|p| p.state == state && p.path == path);
            found.unwrap().seconds_per_txn.value
        };
        let cpu = ledger.seconds_per_txn[ThreadState::Cpu].unwrap();
        assert!(
            (of(ThreadState::Cpu, "work") / cpu - 2.0 / 3.0).abs() < 1e-9
                && (of(ThreadState::Cpu, "more_work") / cpu - 1.0 / 3.0).abs() < 1e-9
        );
        assert_eq!(rung.locks[0].name.as_deref(), Some("kernel_mutex"));
        assert!(
            (rung.locks[0].seconds_per_txn.value / ledger.seconds_per_txn[ThreadState::Lock].unwrap() - 1.0).abs()
                < 1e-9
        );
        assert_eq!(rung.locks[0].holder, ["start_thread", "more_work"]);
    }
    let missing: Vec<&str> = summary.missing.iter().map(|one| one.figure.as_str()).collect();
    assert_eq!(missing, ["ledger.seconds_per_txn.spin"]);
}

#[test]
fn a_run_that_measured_nothing_has_a_summary_without_a_verdict() {
    let mut bundle = empty();
    bundle.manifest.state = RunState::Running;
    let summary = summarise(&bundle);
    assert!(summary.verdict.is_none() && summary.rungs.is_empty() && summary.usl.is_none());
    assert!(summary.warnings.iter().any(|w| w.contains("killed")));
}

#[test]
fn a_rung_that_never_settles_is_marked_and_kept() {
    let mut bundle = bundle(&FALLS[..3], true);
    for row in bundle.seconds.iter_mut().filter(|row| row.measurement == 1) {
        row.transactions = (row.transactions as f64 * (1.0 + 0.02 * f64::from(row.second))) as i64;
    }
    let summary = summarise(&bundle);
    let rung = &summary.rungs[1];
    assert!(!rung.steady && rung.jitter.unwrap() > 0.02);
    assert!(
        rung.unsteady_reason.as_ref().unwrap().starts_with("measurement 1: "),
        "{:?}",
        rung.unsteady_reason
    );
    assert!(
        summary
            .warnings
            .iter()
            .any(|w| w == "throughput did not settle at 4 connections")
    );
}

#[test]
fn an_open_loop_is_not_judged_by_its_peak() {
    let mut bundle = bundle(&FALLS[..3], true);
    bundle.manifest.workload.loop_kind = Some(scaleprof_vocabulary::LoopWord::Open);
    bundle.manifest.ladder.rate = Some(14_000.0);
    let summary = summarise(&bundle);
    assert!(summary.rungs[0].littles_law_ratio.is_none() && summary.rungs[0].response_ms.is_some());
    let verdict = summary.verdict.unwrap();
    assert_eq!(verdict.class, LadderVerdict::Inconclusive);
    let sentence = verdict.sentence;
    assert!(
        sentence.contains("95 % of the 14 000/s that were offered"),
        "{sentence}"
    );
}

#[test]
fn percentiles_that_leave_out_what_never_began_are_warned_of() {
    let warned = |left: f64| {
        let mut bundle = bundle(&FALLS[..3], true);
        bundle.manifest.workload.loop_kind = Some(scaleprof_vocabulary::LoopWord::Open);
        for rung in &mut bundle.measurements {
            rung.offered_rate = Some(1000.0);
        }
        for second in 0..30 {
            bundle.counters.push(CounterRow {
                measurement: 0,
                second: Some(second),
                counter: "client.backlog_level".into(),
                value: left * f64::from(second + 1) / 30.0,
                running_share: None,
            });
        }
        let warnings = summarise(&bundle).warnings;
        warnings.into_iter().find(|text| text.contains("had not started"))
    };
    // Of 30 000 that were due in the 30 s of the first measurement.
    assert_eq!(warned(290.0), None);
    let text = warned(6000.0).unwrap();
    assert!(
        text.starts_with(&format!("at {} connections 20 %", FALLS[0].connections)),
        "{text}"
    );
}

#[test]
fn a_summary_survives_the_disk_and_is_the_same_when_made_again() {
    let mut made = bundle(&FALLS, true);
    watch(&mut made);
    let folder = tempfile::tempdir().unwrap();
    let writer = BundleWriter::create(folder.path()).unwrap();
    writer.write_manifest(&made.manifest).unwrap();
    for row in &made.measurements {
        fn of<T: Clone>(rows: &[T], measurement: impl Fn(&T) -> bool) -> Vec<T> {
            rows.iter().filter(|row| measurement(row)).cloned().collect()
        }
        let v = row.measurement;
        let rows = MeasurementRows {
            seconds: of(&made.seconds, |r| r.measurement == v),
            counters: of(&made.counters, |r| r.measurement == v),
            latency: of(&made.latency, |r| r.measurement == v),
            errors: of(&made.errors, |r| r.measurement == v),
            states: of(&made.states, |r| r.measurement == v),
            samples: made.samples.rows().filter(|r| r.measurement == v).collect(),
            locks: of(&made.locks, |r| r.measurement == v),
            stacks: made.stacks.clone(),
            frames: made.frames.clone(),
        };
        writer.write_measurement(row, &rows).unwrap();
    }
    let read = Bundle::open(folder.path()).unwrap();
    let summary = summarise(&read);
    assert_eq!(summary, summarise(&made));
    writer.write_summary(&summary).unwrap();
    let kept = Bundle::open(folder.path()).unwrap().summary.unwrap();
    assert_eq!(kept.verdict.unwrap().sentence, summary.verdict.unwrap().sentence);
}
