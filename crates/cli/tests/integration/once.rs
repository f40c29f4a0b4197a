//! Scripts that every connection runs once.

use crate::stage::{bundle, fail, place, run, succeed};
use testing::servers::distribution;

#[test]
fn a_script_that_runs_once_is_measured_over_the_time_it_took_however_long() {
    let Some(server) = distribution() else { return };
    let place = place();
    let script = place.path().join("slow.sql");
    std::fs::write(&script, "SELECT SLEEP(1.2);\nDO 1;\n").expect("written");
    let folder = place.path().join("run");
    // A second is less than the script takes: it is no limit here.
    let (out, _) = succeed(
        run(Some(&server.installation), &folder)
            .arg("--workload")
            .arg(&script)
            .args(["--once", "--connections", "1,4", "--seconds", "1"]),
    );
    assert!(
        out.contains("statement 1 (SELECT)") && out.contains("statement 2 (DO)"),
        "{out}"
    );
    let kept = bundle(&folder);
    let summary = kept.summary.expect("a summary");
    assert_eq!(summary.rungs.len(), 2);
    for rung in &summary.rungs {
        // Each connection takes 1.2 s and what the machine adds, so N of them cannot end faster than N / 1.2 s.
        let most = f64::from(rung.connections) / 1.2;
        let value = rung.throughput.value;
        assert!(value <= most * 1.001 && value > most * 0.4, "{value} of at most {most}");
        assert!(rung.steady && rung.littles_law_ratio.is_none() && !rung.client_limited);
        assert_eq!(rung.latency_ms.p50.map(|ms| ms >= 1200.0), Some(true));
        let [first, second] = rung.statements.as_slice() else {
            panic!("{:?}", rung.statements);
        };
        assert_eq!(
            (first.count, second.count),
            (u64::from(rung.connections), u64::from(rung.connections))
        );
        assert!(first.latency_ms.p50 >= Some(1190.0) && second.latency_ms.p50 < Some(1000.0));
    }
    assert!(
        out.contains("All clients had finished after, by connections: "),
        "{out}"
    );
    for measurement in 0..2 {
        let lengths: Vec<i64> = kept
            .seconds
            .iter()
            .filter(|s| s.measurement == measurement)
            .map(|s| s.duration_ns)
            .collect();
        let (last, whole) = lengths.split_last().expect("seconds");
        assert!(
            whole.iter().all(|ns| *ns == 1_000_000_000) && *last < 1_000_000_000,
            "{lengths:?}"
        );
    }
}

/// Threads are watched from before the first transaction until after the last, which is a good part more where these take milliseconds.
#[test]
fn the_time_of_a_script_that_takes_a_moment_is_in_the_ledger_whole() {
    let Some(server) = distribution() else { return };
    let place = place();
    let script = place.path().join("quick.sql");
    std::fs::write(&script, "SELECT SLEEP(0.02);\nDO 1;\n").expect("written");
    let folder = place.path().join("run");
    succeed(
        run(Some(&server.installation), &folder)
            .arg("--workload")
            .arg(&script)
            .args(["--once", "--connections", "4,32"]),
    );
    let kept = bundle(&folder);
    let summary = kept.summary.expect("a summary");
    assert_eq!(summary.rungs.len(), 2);
    for rung in &summary.rungs {
        let finished = rung.finished_seconds.expect("they finished");
        let by_throughput = f64::from(rung.connections) / rung.throughput.value;
        assert!((0.02..1.0).contains(&finished), "{finished} s");
        assert!(
            (finished / by_throughput - 1.0).abs() < 1e-6,
            "{finished} s, {by_throughput} s"
        );
        if let Some(ledger) = rung
            .ledger
            .as_ref()
            .filter(|ledger| ledger.observed_waits_share.is_some())
        {
            let residual = ledger.residual.expect("all of it was watched");
            assert!(residual.abs() < 0.02, "{residual} at {}", rung.connections);
            assert!(ledger.connections_over_throughput >= Some(finished), "{ledger:?}");
        } else {
            testing::skip!("the ledger: it needs BPF");
        }
    }
}

#[test]
fn a_statement_that_can_never_succeed_ends_the_run_at_once() {
    let Some(server) = distribution() else { return };
    let place = place();
    let script = place.path().join("wrong.sql");
    std::fs::write(&script, "DO 1;\nSELEC 2;\n").expect("written");
    let folder = place.path().join("run");
    let error = fail(
        run(Some(&server.installation), &folder)
            .arg("--workload")
            .arg(&script)
            .args(["--connections", "1,2,4", "--seconds", "1"]),
        1,
    );
    assert!(error.contains("'statement 2' failed: error 1064"), "{error}");
    assert_eq!(error.matches("1064").count(), 1, "{error}");
    assert_eq!(bundle(&folder).measurements.len(), 1);
}
