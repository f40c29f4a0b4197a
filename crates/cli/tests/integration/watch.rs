//! `attach --pid`: a server under a load that is not ours, only watched.

use crate::stage::{Running, bundle, fail, place, run, running_server, scaleprof, socket, succeed, texts};
use scaleprof_bundle::Summary;
use scaleprof_server::Sandbox;
use scaleprof_vocabulary::{RunState, ThreadState};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use testing::servers::distribution;
use testing::soon;

fn attach(pid: u32, folder: &Path) -> Command {
    let mut command = scaleprof();
    command.args(["attach", "--quiet", "--pid", &pid.to_string(), "--output"]);
    command.arg(folder);
    command
}

/// A load of somebody's: eight connections for that number of seconds. Of point selects, as it
/// runs for as long as its test does.
pub(crate) fn load(server: &Sandbox, folder: &Path, seconds: &str) -> Running {
    let mut command = scaleprof();
    command.args([
        "run",
        "--user",
        "root",
        "--yes",
        "--repeats",
        "1",
        "--no-refine",
        "--quiet",
    ]);
    command.args(["--no-probe", "--tables", "1", "--rows", "500", "--connections", "8"]);
    command.args(["--workload", "oltp_point_select", "--rate", "500"]);
    command.args(["--seconds", seconds, "--output"]).arg(folder);
    let running = Running::start(command.arg("--socket").arg(socket(server)));
    let mut client = server.connect().expect("a connection");
    let busy = "SELECT COUNT(*) >= 8 FROM information_schema.processlist WHERE db = 'scaleprof_load'";
    soon("the load is under way", || {
        client.query_value(busy).expect("an answer").as_deref() == Some("1")
    });
    running
}

fn tables(server: &Sandbox) -> Option<String> {
    let mut client = server.connect().expect("a connection");
    let all = "SELECT GROUP_CONCAT(table_schema, '.', table_name ORDER BY 1) FROM information_schema.tables";
    client.query_value(all).expect("an answer")
}

#[test]
fn threads_are_called_what_the_performance_schema_calls_them() {
    let Some(found) = distribution() else { return };
    let place = place();
    let folder = place.path().join("run");
    let mut command = run(Some(&found.installation), &folder);
    command.args(["--performance-schema", "--tables", "1", "--rows", "500"]);
    succeed(command.args(["--connections", "2", "--seconds", "3", "--rate", "100"]));
    let kept = bundle(&folder);
    let names: BTreeSet<&str> = kept.states.iter().filter_map(|row| row.name.as_deref()).collect();
    assert!(names.iter().any(|name| name.starts_with("sql/")), "{names:?}");
    assert!(names.iter().any(|name| name.starts_with("innodb/")), "{names:?}");
}

/// Files of BPF that a process holds open.
fn bpf_files(pid: u32) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let names = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    names.filter(|name| name.to_string_lossy().contains("bpf")).count()
}

/// The nice value of a process's first thread (proc_pid_stat(5), field 19).
fn nice(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(16)?.parse().ok()
}

#[test]
fn names_are_looked_up_when_nothing_is_in_the_kernel_any_more_and_at_a_lower_priority() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let _load = load(&server, &place.path().join("load"), "600");
    let folder = place.path().join("watch");
    let mut watching = attach(server.pid(), &folder)
        .args(["--seconds", "2", "--json"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    let (mut was_attached, mut looks_after) = (false, 0);
    let ours = nice(std::process::id());
    let mut looks_that_give_way = 0;
    let began = std::time::Instant::now();
    let ended = loop {
        if began.elapsed() > testing::LIMIT {
            let _ = watching.kill();
            panic!("a watch of 2 s is not over after {:?}", testing::LIMIT);
        }
        // First, as it may give way once the last of these files is closed.
        let gives_way = nice(watching.id()) > ours;
        match bpf_files(watching.id()) {
            0 if was_attached => looks_after += 1,
            0 => {}
            _ => (was_attached, looks_after) = (true, 0),
        }
        assert!(
            !gives_way || !was_attached || looks_after > 0,
            "it gives way while it watches"
        );
        looks_that_give_way += u32::from(gives_way);
        if let Some(ended) = watching.try_wait().expect("a child") {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert!(ended.success());
    if !was_attached {
        testing::skip!("no BPF here");
        return;
    }
    assert!(
        looks_that_give_way > 10 || ours >= Some(5),
        "it was detached for {looks_after} looks before it ended, and gave way in {looks_that_give_way} of them"
    );
}

#[test]
fn the_threads_of_a_loaded_server_are_told_by_state_and_nothing_is_written_to_it() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let load = load(&server, &place.path().join("load"), "600");
    let before = tables(&server);
    let folder = place.path().join("watch");
    let (out, _) = succeed(attach(server.pid(), &folder).args(["--seconds", "4", "--json"]));
    assert_eq!(tables(&server), before);

    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let kept = bundle(&folder);
    assert_eq!(kept.summary.as_ref(), Some(&summary));
    assert_eq!((kept.manifest.state, kept.measurements.len()), (RunState::Complete, 1));
    assert!(kept.measurements[0].connections >= 8);
    let watch = summary.watch.as_ref().expect("what was watched");
    assert!((watch.seconds - 4.0).abs() < 0.5, "{}", watch.seconds);
    assert!(watch.connections.threads >= Some(8), "{:?}", watch.connections.threads);
    for threads in [&watch.connections, &watch.others] {
        let residual = threads.states_residual.expect("a lifetime");
        // Without BPF the states are looked at now and then.
        assert!(residual.abs() < 0.05, "{threads:?}");
    }
    assert!(watch.connections.seconds_per_second[ThreadState::Cpu].is_some_and(|cpu| cpu > 0.0));
    assert!(!watch.background.is_empty() && !watch.paths.is_empty());

    // The machine code of what ran is there, with what it cost a second; what it cost a transaction nobody can tell.
    assert!(!kept.instructions().expect("readable").is_empty());
    assert!(kept.data_accesses().expect("readable").is_some());
    let (list, _) = succeed(scaleprof().arg("annotate").arg(&folder));
    assert!(
        list.contains("CPU time of a second") && list.contains("watched"),
        "{list}"
    );
    let (json, _) = succeed(scaleprof().arg("annotate").arg(&folder).arg("--json"));
    let listed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(
        (&listed["per"], &listed["connections"]),
        (&"second".into(), &serde_json::Value::Null)
    );
    let all = listed["seconds_per_txn"].as_f64().expect("measured");
    let of_states = watch.connections.seconds_per_second;
    let on_cpu = of_states[ThreadState::Cpu].unwrap_or(0.0) + of_states[ThreadState::Spin].unwrap_or(0.0);
    assert!((all / on_cpu - 1.0).abs() < 1e-6, "{all} {on_cpu}");
    let error = fail(scaleprof().arg("annotate").arg(&folder).args(["--rung", "4"]), 1);
    assert!(error.contains("only watched"), "{error}");

    // Nothing of it is per transaction, and it says why.
    assert!(summary.rungs.is_empty() && summary.verdict.is_none() && summary.usl.is_none());
    assert!(kept.seconds.is_empty() && kept.latency.is_empty());
    let reason = |figure: &str| {
        let missing = summary.missing.iter().find(|missing| missing.figure == figure);
        missing.expect(figure).reason.clone()
    };
    assert_eq!(
        reason("throughput"),
        "attach sends no load: transactions are not counted"
    );
    assert!(reason("server.version").contains("connection"));
    assert!(!kept.counters.is_empty());
    assert!(kept.counters.iter().all(|row| !row.counter.starts_with("client.")));

    // From the bundle alone.
    let show = |format: &str| {
        scaleprof()
            .arg("report")
            .arg(&folder)
            .args(["--format", format])
            .output()
    };
    assert_eq!(texts(&show("json").expect("starts")).0, out);
    let text = texts(&show("text").expect("starts")).0;
    assert!(text.contains("connections") && text.contains("CPUs used"), "{text}");
    let page = folder.join("report.html");
    // With --json the watch itself writes none.
    assert!(!page.exists());
    let (shown, error) = texts(&show("html").expect("starts"));
    assert!(shown.trim_end().ends_with("report.html"), "{shown}{error}");
    assert!(std::fs::read_to_string(&page).expect("readable").contains("<html"));
    // It went on all the while, and ends when it is told to.
    load.signal(libc::SIGINT);
    let output = load.end_and_leave_nothing(&[]);
    assert_eq!(output.status.code(), Some(130), "the load was not disturbed");
    let of_load = bundle(&place.path().join("load"));
    assert_eq!(of_load.manifest.state, RunState::Interrupted);
}

#[test]
fn an_early_end_keeps_what_was_seen() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let place = place();
    let folder = place.path().join("watch");
    let running = Running::start(attach(server.pid(), &folder).args(["--seconds", "600"]));
    soon("it watches", || folder.join("manifest.json").exists());
    std::thread::sleep(std::time::Duration::from_millis(2500));
    running.signal(libc::SIGINT);
    let output = running.end_and_leave_nothing(&[]);
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{out}\n{err}");
    let kept = bundle(&folder);
    assert_eq!(kept.manifest.state, RunState::Interrupted);
    let watch = kept.summary.expect("a summary").watch.expect("what was watched");
    assert!(watch.seconds > 1.0 && watch.seconds < 60.0, "{}", watch.seconds);
    // Nobody was connected: that is no zero. The server keeps the thread of a connection that closed; it serves nobody.
    assert_eq!(
        (
            watch.connections.threads,
            watch.connections.seconds_per_second[ThreadState::Cpu]
        ),
        (Some(0), None)
    );
    assert!(watch.others.seconds_per_second.sum() > 0.0);
}

#[test]
fn what_cannot_be_watched_is_refused_with_what_to_do() {
    let place = place();
    let folder = place.path().join("watch");
    let ours = std::process::id();
    let error = fail(&mut attach(ours, &folder), 1);
    assert!(
        error.contains("not a mysqld or mariadbd") && error.contains("--any-process"),
        "{error}"
    );
    let error = fail(&mut attach(i32::MAX as u32, &folder), 1);
    assert!(error.contains("no process") && error.contains("pgrep"), "{error}");
    let error = fail(attach(ours, &folder).args(["--workload", "oltp_insert"]), 2);
    assert!(error.contains("--workload"), "a watch has no load: {error}");
    let mut loading = scaleprof();
    let error = fail(
        loading
            .args(["attach", "--socket", "/nonexistent", "--output"])
            .arg(&folder),
        1,
    );
    assert!(
        error.contains("scaleprof run") && error.contains("only watches"),
        "{error}"
    );
    assert!(!folder.exists());
}
