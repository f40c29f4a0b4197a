//! Whether it is told how many of the connections were at work: on CPUs that client and server share, and on CPUs of their own.

use crate::stage::{place, run, succeed};
use scaleprof_bundle::{RungSummary, Summary};
use std::path::Path;
use testing::servers::{Server, distribution};

const CONNECTIONS: u32 = 128;

/// A run with the server on CPU 0, and its last rung.
fn with_client_on(cpu: &str, server: &Server, folder: &Path) -> (Summary, RungSummary) {
    let mut command = run(Some(&server.installation), folder);
    command.args(["--workload", "oltp_read_write", "--tables", "1", "--rows", "2000"]);
    command.args(["--cpus-server", "0", "--cpus-client", cpu]);
    command.args([
        "--connections",
        &format!("4,16,{CONNECTIONS}"),
        "--seconds",
        "4",
        "--json",
    ]);
    let (out, _) = succeed(&mut command);
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let last = summary.rungs.last().expect("three rungs").clone();
    (summary, last)
}

/// The same server with the same load: a client that has a CPU of its own keeps all connections at work, one that has to wait for the
/// server's does not, and the verdict says so.
#[test]
fn connections_that_wait_for_a_client_on_the_servers_cpus_are_told_from_those_at_work() {
    let Some(server) = distribution() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        testing::skip!("a client with a CPU of its own: there is one CPU");
        return;
    }
    let place = place();
    let at_work =
        |rung: &RungSummary| rung.effective_concurrency.expect("threads were watched") / f64::from(CONNECTIONS);

    let (summary, apart) = with_client_on("1", &server, &place.path().join("apart"));
    println!("apart: {:.3} of them at work", at_work(&apart));
    assert!(at_work(&apart) > 0.9 && !apart.too_few_at_work, "{}", at_work(&apart));
    let sentence = summary.verdict.expect("a verdict").sentence;
    assert!(!sentence.contains("at work"), "{sentence}");

    // Of 512 a tenth were (docs/adr/0024).
    let (summary, shared) = with_client_on("0", &server, &place.path().join("shared"));
    println!("shared: {:.3} of them at work", at_work(&shared));
    assert!(at_work(&shared) < 0.6 && shared.too_few_at_work, "{}", at_work(&shared));
    let verdict = summary.verdict.expect("a verdict");
    assert!(
        verdict.sentence.contains("Of 128 connections only"),
        "{}",
        verdict.sentence
    );
    assert_eq!(verdict.scales, None, "what so many do is not known");
}
