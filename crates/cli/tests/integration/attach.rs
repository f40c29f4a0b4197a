//! `attach`: a server that scaleprof did not start.

use crate::stage::{Running, bundle, fail, place, running_server, running_server_with, scaleprof, socket, succeed};
use scaleprof_server::Sandbox;
use std::path::Path;
use std::process::Command;
use testing::servers::distribution;
use testing::soon;

fn attach(folder: &Path) -> Command {
    attach_with(folder, "2", "3")
}

fn attach_with(folder: &Path, connections: &str, seconds: &str) -> Command {
    let mut command = scaleprof();
    command.args(["run", "--user", "root", "--repeats", "1", "--no-refine", "--quiet"]);
    command.args([
        "--tables",
        "1",
        "--rows",
        "300",
        "--connections",
        connections,
        "--seconds",
        seconds,
    ]);
    // What is asked of it takes no strong load.
    command.args(["--rate", "100"]);
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
    let error = fail(&mut on_socket(), 2);
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
        error.contains("was not created by scaleprof") && error.contains("not touched"),
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
    let mut client = server.connect().expect("a connection");
    client
        .execute("GRANT ALL ON *.* TO root@'127.0.0.1' IDENTIFIED BY ''")
        .expect("an account");
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

#[test]
fn a_load_that_would_take_the_connections_of_the_server_s_users_is_refused() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let mut client = server.connect().expect("a connection");
    let place = place();
    let folder = place.path().join("run");
    let mut on_socket = |limit: &str, connections: &str| {
        client.execute(&format!("SET GLOBAL {limit}")).expect(limit);
        let mut command = attach_with(&folder, connections, "2");
        command.arg("--socket").arg(socket(&server)).arg("--yes");
        command
    };
    let error = fail(&mut on_socket("max_connections = 20", "1,19"), 1);
    assert!(
        error.contains("max_connections") && error.contains("fewer --connections"),
        "{error}"
    );
    let error = fail(
        on_socket("max_connections = 100", "2").args(["--idle-connections", "95"]),
        1,
    );
    assert!(
        error.contains("needs 97") && error.contains("max_connections"),
        "{error}"
    );
    let error = fail(&mut on_socket("max_prepared_stmt_count = 5", "1"), 1);
    assert!(
        error.contains("max_prepared_stmt_count") && error.contains("--protocol text"),
        "{error}"
    );
    assert!(!folder.exists() && !schemas(&server).contains("scaleprof_load"));
    succeed(&mut on_socket("max_prepared_stmt_count = 1000", "1"));
}

#[test]
fn two_loads_at_once_on_one_server_are_refused() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let on_socket = |name: &str, seconds: &str| {
        let mut command = attach_with(&place.path().join(name), "2", seconds);
        command.arg("--socket").arg(socket(&server)).arg("--yes");
        command
    };
    let first = Running::start(&mut on_socket("first", "15"));
    soon("the first is under way", || schemas(&server).contains("scaleprof_load"));
    let error = fail(&mut on_socket("second", "1"), 1);
    assert!(error.contains("another scaleprof loads this server"), "{error}");
    assert!(!place.path().join("second").exists());
    let output = first.end_and_leave_nothing(&[]);
    assert!(output.status.success(), "the first was not disturbed");
    succeed(&mut on_socket("third", "1"));
}

#[test]
fn replicas_that_would_follow_the_load_are_warned_of() {
    let Some(found) = distribution() else { return };
    let warned = |set: Vec<String>| {
        let server = running_server_with(found.installation.clone(), set);
        let place = place();
        let folder = place.path().join("run");
        succeed(attach(&folder).arg("--socket").arg(socket(&server)).arg("--yes"));
        let warnings = bundle(&folder).manifest.warnings;
        warnings.iter().any(|text| text.contains("binary log"))
    };
    assert!(warned(vec!["log_bin=changes".to_owned()]));
    assert!(!warned(Vec::new()));
}

/// As cloud providers and clusters set their servers.
#[test]
fn a_server_that_asks_for_primary_keys_and_commits_nothing_by_itself_bears_tpcc_and_scripts() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let mut client = server.connect().expect("a connection");
    // MariaDB's name for it, and MySQL's.
    let keys = ["innodb_force_primary_key", "sql_require_primary_key"];
    let asked = keys.map(|name| client.execute(&format!("SET GLOBAL {name} = ON")).is_ok());
    assert!(asked.contains(&true), "one of {keys:?}");
    client.execute("SET GLOBAL autocommit = 0").expect("set");
    let place = place();
    let on_server = |name: &str, workload: &str| {
        let mut command = scaleprof();
        command.args([
            "run",
            "--user",
            "root",
            "--repeats",
            "1",
            "--no-refine",
            "--quiet",
            "--no-probe",
        ]);
        command.args(["--connections", "2", "--seconds", "3", "--yes", "--workload", workload]);
        command.arg("--socket").arg(socket(&server));
        command.arg("--output").arg(place.path().join(name));
        command
    };
    succeed(&mut on_server("tpcc", "tpcc"));
    let throughput = |name| {
        bundle(&place.path().join(name)).summary.expect("a summary").rungs[0]
            .throughput
            .value
    };
    assert!(throughput("tpcc") > 0.0);

    // What a setup writes is there for the connections of the load.
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let setup = file(
        "setup.sql",
        "DROP TABLE IF EXISTS own; CREATE TABLE own (id INT PRIMARY KEY, n INT); INSERT INTO own VALUES (1, 0);",
    );
    let script = file("load.sql", "UPDATE own SET n = n + 1 WHERE id = 1; COMMIT;");
    let script = script.to_str().expect("a path");
    succeed(on_server("script", script).arg("--setup").arg(setup));
    assert!(throughput("script") > 0.0);
    let counted = client
        .query_value("SELECT n FROM scaleprof_load.own")
        .expect("an answer");
    assert!(counted.is_some_and(|n| n.parse::<u64>().is_ok_and(|n| n > 0)));
}
