//! `attach`: a server that scaleprof did not start.

use crate::servers::distribution;
use crate::stage::{bundle, fail, place, running_server, scaleprof, socket, succeed};
use scaleprof_server::Sandbox;
use std::path::Path;
use std::process::Command;

fn attach(folder: &Path) -> Command {
    let mut command = scaleprof();
    command.args(["attach", "--user", "root", "--repeats", "1", "--no-refine", "--quiet"]);
    command.args(["--tables", "1", "--rows", "300", "--connections", "2", "--seconds", "3"]);
    command.arg("--output").arg(folder);
    command
}

fn schemas(server: &Sandbox) -> String {
    let mut client = server.connect().expect("a connection");
    let all = "SELECT GROUP_CONCAT(schema_name) FROM information_schema.schemata";
    client.query_value(all).expect("an answer").unwrap_or_default()
}

#[test]
fn consent_is_asked_for_and_a_schema_of_our_name_that_is_not_ours_is_left_alone() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let folder = place.path().join("run");
    let on_socket = || {
        let mut command = attach(&folder);
        command.arg("--socket").arg(socket(&server));
        command
    };
    let error = fail(&mut on_socket(), 1);
    assert!(error.contains("consent") && error.contains("--yes"), "{error}");
    assert!(!folder.exists() && !schemas(&server).contains("scaleprof_load"));

    let mut client = server.connect().expect("a connection");
    for statement in [
        "CREATE DATABASE scaleprof_load",
        "CREATE TABLE scaleprof_load.sbtest1 (theirs INT)",
        "INSERT INTO scaleprof_load.sbtest1 VALUES (42)",
    ] {
        client.execute(statement).expect(statement);
    }
    let error = fail(on_socket().args(["--yes", "--drop-schema"]), 1);
    assert!(
        error.contains("scaleprof did not make") && error.contains("left alone"),
        "{error}"
    );
    assert!(!folder.exists());
    let theirs = client
        .query_value("SELECT theirs FROM scaleprof_load.sbtest1")
        .expect("still there");
    assert_eq!(theirs.as_deref(), Some("42"));
}

#[test]
fn over_the_socket_the_servers_process_is_found_and_over_tcp_its_lack_is_said() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let folder = place.path().join("socket");
    succeed(attach(&folder).arg("--socket").arg(socket(&server)).arg("--yes"));
    let kept = bundle(&folder);
    assert!(kept.manifest.server.cpu_count.is_some_and(|cpus| cpus > 0));
    assert_eq!(kept.manifest.server.shares_cpus_with_client, Some(true));
    let rung = &kept.summary.as_ref().expect("a summary").rungs[0];
    let law = rung.iron_law.as_ref().expect("the iron law");
    assert!(law.cpu_seconds_per_txn > 0.0 && law.utilisation > 0.0, "{law:?}");
    assert!(schemas(&server).contains("scaleprof_load"), "kept for the next run");

    let folder = place.path().join("tcp");
    let dsn = format!("mysql://root@{}", server.tcp_endpoint().expect("TCP"));
    succeed(attach(&folder).args(["--dsn", &dsn, "--yes", "--drop-schema"]));
    let kept = bundle(&folder);
    assert_eq!(kept.manifest.server.cpu_count, None);
    assert_eq!(kept.manifest.server.shares_cpus_with_client, None);
    let summary = kept.summary.as_ref().expect("a summary");
    assert!(summary.rungs[0].throughput.value > 0.0 && summary.rungs[0].iron_law.is_none());
    for figure in ["server.cpu_count", "server.shares_cpus_with_client"] {
        let missing = summary.missing.iter().find(|missing| missing.figure == figure);
        assert!(missing.expect(figure).reason.contains("--socket"));
    }
    assert!(!schemas(&server).contains("scaleprof_load"), "dropped as asked");
}
