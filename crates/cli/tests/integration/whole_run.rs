//! Whole runs on real servers, and what stands in their bundles.

use crate::stage::{Running, bundle, place, run, scaleprof, succeed, texts, work_folder};
use scaleprof_bundle::Summary;
use scaleprof_vocabulary::RunState;
use std::collections::BTreeSet;
use testing::servers::{Server, distribution, fetched};

/// As a user starts it: with progress, and with rungs that are added around the peak.
#[test]
fn rungs_are_added_around_the_peak_and_told() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("run");
    let mut command = scaleprof();
    command.args([
        "run",
        "--repeats",
        "1",
        "--buffer-pool",
        "64M",
        "--tables",
        "1",
        "--rows",
        "500",
    ]);
    command.args(["--connections", "1,4", "--seconds", "1", "--server"]);
    command.arg(&server.installation.binary);
    command
        .arg("--work-dir")
        .arg(work_folder())
        .arg("--output")
        .arg(&folder);
    let output = Running::start(&mut command).end();
    assert!(output.status.success(), "{:?}", texts(&output));
    let rungs: BTreeSet<i32> = bundle(&folder).measurements.iter().map(|row| row.connections).collect();
    assert!(rungs.is_superset(&BTreeSet::from([1, 2, 4])), "{rungs:?}");
}

#[test]
fn a_short_run_leaves_a_complete_bundle_from_which_all_can_be_shown_again() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("run");
    let (out, err) = succeed(run(Some(&server.installation), &folder).args([
        "--tables",
        "2",
        "--rows",
        "500",
        "--connections",
        "4,16",
        "--seconds",
        "5",
        "--json",
    ]));
    assert_eq!(
        out,
        std::fs::read_to_string(folder.join("summary.json")).expect("summary.json")
    );
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    assert!(
        !err.contains('\u{1b}') && !err.contains('\r'),
        "progress despite --quiet: {err}"
    );

    for rung in &summary.rungs {
        assert!(rung.throughput.value > 0.0);
        let little = rung.littles_law_ratio.expect("X·R/N");
        assert!((little - 1.0).abs() < 0.02, "X·R/N is {little}");
        let law = rung.iron_law.as_ref().expect("the iron law");
        let residual = law.residual.expect("two sources");
        // One of them counts ticks of 10 ms, two kinds at two ends: of 5 s on a CPU these are 0.8 % at most.
        assert!(
            residual.abs() < 0.02,
            "the law is off by {residual}: {:?}",
            law.residual_sources
        );
        let ledger = rung.ledger.as_ref().expect("its threads were watched");
        for residual in [ledger.residual, ledger.states_residual] {
            assert!(residual.expect("lifetimes are known").abs() < 0.01, "{ledger:#?}");
        }
        let round_trip = f64::from(rung.connections) / rung.throughput.value;
        let of_ledger = ledger.connections_over_throughput.expect("N/X");
        // The one is a mean of seconds, the other all of them together.
        assert!((of_ledger / round_trip - 1.0).abs() < 0.02, "{of_ledger} {round_trip}");
    }
    assert_eq!(
        summary.rungs.iter().map(|rung| rung.connections).collect::<Vec<_>>(),
        [4, 16]
    );

    let kept = bundle(&folder);
    assert_eq!(kept.manifest.state, RunState::Complete);
    assert_eq!(kept.summary.as_ref(), Some(&summary));
    for table in ["measurements", "seconds", "counters", "latency", "errors"] {
        for measurement in 0..2 {
            assert!(
                folder
                    .join(format!("{table}/measurement-{measurement:05}.parquet"))
                    .exists(),
                "{table} {measurement}"
            );
        }
    }
    let names: BTreeSet<&str> = kept.settings.iter().map(|row| row.name.as_str()).collect();
    for name in [
        "scaleprof.server_cpu_list",
        "scaleprof.client_cpu_list",
        "scaleprof.load_scheduling",
        "innodb_buffer_pool_size",
    ] {
        assert!(names.contains(name), "{name}");
    }
    let placed = kept.manifest.warnings.iter().filter(|text| text.contains("share all"));
    assert_eq!(
        placed.count() > 0,
        kept.manifest.server.shares_cpus_with_client == Some(true)
    );

    let sentence = &summary.verdict.as_ref().expect("a verdict").sentence;
    let page = std::fs::read_to_string(folder.join("report.html")).expect("report.html");
    assert!(page.contains(sentence), "the page lacks: {sentence}");

    // From the bundle alone, elsewhere.
    let moved = place.path().join("moved");
    std::fs::rename(&folder, &moved).expect("moved");
    let show = |format: &str| succeed(scaleprof().arg("report").arg(&moved).args(["--format", format])).0;
    assert_eq!(show("json"), out);
    let one_line = show("text").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(sentence), "{one_line}");
    std::fs::remove_file(moved.join("report.html")).expect("removed");
    show("html");
    assert_eq!(
        std::fs::read_to_string(moved.join("report.html")).expect("report.html"),
        page
    );
}

#[test]
fn the_servers_status_is_kept_by_second_and_nothing_counts_twice() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("run");
    succeed(run(Some(&server.installation), &folder).args([
        "--tables",
        "2",
        "--rows",
        "500",
        "--connections",
        "2",
        "--seconds",
        "5",
    ]));
    let kept = bundle(&folder);
    let rows = |by_second: bool| {
        kept.counters
            .iter()
            .filter(move |row| row.second.is_some() == by_second)
    };
    let by_second: BTreeSet<&str> = rows(true).map(|row| row.counter.as_str()).collect();
    for row in rows(false) {
        assert!(
            !by_second.contains(row.counter.as_str()),
            "{} counts twice",
            row.counter
        );
    }
    assert!(by_second.contains("status.com_commit"), "{by_second:?}");
    // A second that could not be read in time has no row; those that have one agree with the client's count.
    for row in rows(true).filter(|row| row.counter == "status.com_commit") {
        let second = kept.seconds.iter().find(|second| Some(second.second) == row.second);
        let client = second.expect("the second").transactions as f64;
        // Both ends may be read a quarter of a second late.
        assert!((row.value / client - 1.0).abs() < 0.6, "{row:?} against {client}");
    }
    let sum = |name: &str| {
        kept.counters
            .iter()
            .filter(|row| row.counter == name)
            .map(|row| row.value)
            .sum::<f64>()
    };
    let client: i64 = kept.seconds.iter().map(|second| second.transactions).sum();
    let ratio = sum("server.transactions_by_status") / client as f64;
    assert!(
        (ratio - 1.0).abs() < 0.01,
        "the server counts {ratio} of the client's transactions"
    );
    assert!(sum("probe.sample_overhead_ns_level") > 0.0);
}

fn runs_on(server: Option<Server>) {
    let Some(server) = server else { return };
    let place = place();
    let folder = place.path().join("run");
    let (out, _) = succeed(run(Some(&server.installation), &folder).args([
        "--workload",
        "oltp_point_select",
        "--tables",
        "1",
        "--rows",
        "500",
        "--connections",
        "1,4",
        "--seconds",
        "2",
    ]));
    assert!(out.contains("connections") && out.contains("Report: "), "{out}");
    let kept = bundle(&folder);
    assert_eq!((kept.manifest.state, kept.measurements.len()), (RunState::Complete, 2));
    assert_eq!(kept.seconds.len(), 4);
    assert!(kept.seconds.iter().all(|second| second.transactions > 0));
    let rungs = kept.summary.expect("a summary").rungs;
    assert_eq!(rungs.len(), 2);
    assert!(rungs.iter().all(|rung| rung.iron_law.is_some()));
}

#[test]
fn runs_on_mysql_5_6() {
    runs_on(fetched("mysql-5.6.14"));
}

#[test]
fn runs_on_mysql_9_7() {
    runs_on(fetched("mysql-9.7"));
}

#[test]
fn runs_on_mariadb_11_8() {
    runs_on(fetched("mariadb-11.8"));
}
