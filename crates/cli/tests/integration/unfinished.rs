//! Transactions that outlive their measurement, and those that never began.

use crate::stage::{bundle, place, run, running_server, scaleprof, socket, succeed};
use scaleprof_vocabulary::LadderVerdict;
use std::time::{Duration, Instant};
use testing::servers::distribution;

#[test]
fn what_a_measurement_left_running_is_killed_before_the_next_and_nobody_else_is() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let script = place.path().join("stuck.sql");
    // Half of the connections get stuck in their fifth transaction.
    let text = "SET @n = COALESCE(@n, 0) + 1;\nSELECT SLEEP(IF(@n = 5 AND CONNECTION_ID() % 2 = 0, 300, 0));\n";
    std::fs::write(&script, text).expect("written");

    let mut bystander = server.connect().expect("a connection");
    let theirs = std::thread::spawn(move || bystander.query_value("SELECT SLEEP(20)"));
    let folder = place.path().join("run");
    let mut command = scaleprof();
    command.args([
        "run",
        "--yes",
        "--user",
        "root",
        "--repeats",
        "2",
        "--no-refine",
        "--quiet",
    ]);
    command.args(["--connections", "4", "--seconds", "2"]);
    command.arg("--socket").arg(socket(&server));
    command.arg("--workload").arg(&script);
    let began = Instant::now();
    succeed(command.arg("--output").arg(&folder));
    // Two measurements of 2 s, and the ends of their statements, which would sleep 300 s.
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());

    let kept = bundle(&folder);
    assert_eq!(kept.measurements.len(), 2);
    let killed = kept
        .manifest
        .warnings
        .iter()
        .filter(|text| text.contains("scaleprof killed them"));
    assert_eq!(killed.count(), 2, "{:?}", kept.manifest.warnings);
    let mut client = server.connect().expect("a connection");
    let left = client.query("SHOW PROCESSLIST").expect("a list");
    let stuck = left.rows.iter().flatten().flatten().filter(|text| text.contains("300"));
    assert_eq!(stuck.count(), 0, "{left:?}");
    let slept = theirs.join().expect("a thread").expect("an answer");
    assert_eq!(slept.as_deref(), Some("0"), "somebody else's statement ran to its end");
}

#[test]
fn above_capacity_the_backlog_is_kept_and_the_percentiles_are_warned_of() {
    let Some(found) = distribution() else { return };
    let place = place();
    let script = place.path().join("slow.sql");
    std::fs::write(&script, "DO SLEEP(0.02);\n").expect("written");
    let folder = place.path().join("run");
    let mut command = run(Some(&found.installation), &folder);
    command.arg("--workload").arg(&script);
    // Two connections bear 100 a second at most.
    succeed(command.args(["--rate", "500", "--connections", "2", "--seconds", "3"]));
    let kept = bundle(&folder);
    let backlog = kept.counters.iter().filter(|row| row.counter == "client.backlog_level");
    let by_second: Vec<(Option<i32>, f64)> = backlog.map(|row| (row.second, row.value)).collect();
    let [(Some(0), first), (Some(1), second), (Some(2), third)] = by_second[..] else {
        panic!("{by_second:?}");
    };
    assert!(first < second && second < third && third > 1000.0, "{by_second:?}");
    let summary = kept.summary.expect("a summary");
    let warned = summary.warnings.iter().any(|text| text.contains("had not started"));
    assert!(warned, "{:?}", summary.warnings);
    assert_eq!(summary.verdict.expect("a verdict").class, LadderVerdict::Inconclusive);
}
