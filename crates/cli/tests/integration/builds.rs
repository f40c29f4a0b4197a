//! `scaleprof servers` with made-up servers: what it lists, and what is left when it is ended in the midst.

use crate::stage::{fail, place, scaleprof, succeed, texts};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testing::made_up::web::{File, Web};
use testing::made_up::{noise, tar_gz};

/// `scaleprof servers` on a folder of the test's.
pub fn servers(folder: &Path) -> Command {
    let mut command = scaleprof();
    command.env("SCALEPROF_SERVERS", folder.join("servers")).arg("servers");
    command
}

/// What `servers --json` lists under names.
pub fn listed(folder: &Path) -> Vec<serde_json::Value> {
    let (out, _) = succeed(servers(folder).arg("--json"));
    let listing: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let all = listing["servers"].as_array().expect("a list").clone();
    all.into_iter().filter(|server| !server["name"].is_null()).collect()
}

fn archive(folder: &Path, version: &str, ballast: usize) -> PathBuf {
    let path = folder.join(format!("mysql-{version}.tar.gz"));
    std::fs::write(&path, tar_gz(version, ballast)).expect("written");
    path
}

#[test]
fn builds_are_fetched_listed_named_to_other_commands_and_removed() {
    let place = place();
    assert!(listed(place.path()).is_empty());
    let source = archive(place.path(), "5.7.1", 5_000_000);
    let (out, err) = succeed(servers(place.path()).arg("fetch").arg(&source));
    assert!(
        out.contains("MySQL 5.7.1") && out.contains("run --server mysql-5.7.1"),
        "{out}"
    );
    assert!(err.contains("unpacking"), "{err}");
    let (out, _) = succeed(servers(place.path()).args(["fetch", "--quiet"]).arg(&source));
    let path = place.path().join("servers/mysql-5.7.1");
    assert_eq!(out.trim(), path.to_string_lossy());

    let servers_listed = listed(place.path());
    let [build] = servers_listed.as_slice() else {
        panic!("{servers_listed:?}")
    };
    assert_eq!(build["version"], "5.7.1");
    assert_eq!(build["flavour"], "MySQL");
    assert_eq!(build["path"], path.to_string_lossy().as_ref());
    assert!(build["bytes"].as_u64().expect("bytes") >= 5_000_000);
    assert!(
        build["build_id"].is_null() && build["symbols"].is_null(),
        "a script has neither"
    );
    let (table, _) = succeed(servers(place.path()).arg("list"));
    assert!(
        table.contains("mysql-5.7.1") && table.contains("MySQL 5.7.1"),
        "{table}"
    );

    let (out, _) = succeed(servers(place.path()).args(["path", "mysql-5.7.1"]));
    assert_eq!(out.trim(), path.to_string_lossy());
    let mut check = scaleprof();
    check.env("SCALEPROF_SERVERS", place.path().join("servers"));
    let output = check
        .args(["check", "--server", "mysql-5.7.1"])
        .output()
        .expect("it ran");
    assert!(texts(&output).0.contains("MySQL 5.7.1"), "{:?}", texts(&output));

    let error = fail(servers(place.path()).args(["remove", "mysql-5.7.1", "mysql-9"]), 1);
    assert!(
        error.contains("'mysql-9'") && error.contains("there are: mysql-5.7.1"),
        "{error}"
    );
    assert_eq!(listed(place.path()).len(), 1, "none was removed");
    succeed(servers(place.path()).args(["remove", "mysql-5.7.1"]));
    assert!(listed(place.path()).is_empty() && !path.exists());
}

#[test]
fn what_cannot_be_fetched_is_one_clear_error() {
    let place = place();
    for (arguments, word) in [
        (&["fetch", "/no/such/file"][..], "debian:SUITE/PACKAGE"),
        (&["fetch", "debian:trixie"], "debian:trixie/mariadb-server"),
        (&["fetch", "ftp://host/x"], "http"),
        (&["fetch", "maven:x"], "GROUP:ARTIFACT:VERSION"),
        (&["fetch", "/etc", "--name", "../x"], "'../x'"),
        (&["remove", "../x"], "'../x'"),
        (&["path", "mysql-0"], "fetch --help"),
    ] {
        let error = fail(servers(place.path()).args(arguments), 1);
        assert!(error.contains(word), "{arguments:?}: {error}");
        assert_eq!(error.trim().lines().count(), 1, "{error}");
    }
}

#[test]
fn the_first_interrupt_ends_a_fetch_in_order() {
    let place = place();
    let web = Web::start();
    let slow = File {
        bytes: tar_gz("5.7.1", 8_000_000),
        pause: Duration::from_millis(100),
        ..File::default()
    };
    web.put("/mysql-5.7.1.tar.gz", slow);
    let mut fetch = servers(place.path());
    fetch.args(["fetch", &web.url("/mysql-5.7.1.tar.gz")]);
    let child = fetch
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let is_part = |entry: std::fs::DirEntry| entry.path().extension().is_some_and(|ending| ending == "part");
    let part = || {
        let entries = std::fs::read_dir(place.path().join("servers/.downloads"));
        entries.into_iter().flatten().flatten().any(is_part)
    };
    wait_for(part);
    let pid = rustix::process::Pid::from_raw(child.id() as i32).expect("a pid");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let output = child.wait_with_output().expect("its end");
    assert_eq!(output.status.code(), Some(130), "{:?}", texts(&output));
    assert!(texts(&output).1.contains("goes on from there"), "{:?}", texts(&output));
    assert!(listed(place.path()).is_empty() && part());
}

fn wait_for(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not within 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn killed_at_any_moment_it_leaves_a_whole_build_or_none() {
    const BALLAST: usize = 30_000_000;
    let place = place();
    let web = Web::start();
    web.put_bytes("/mysql-5.7.1.tar.gz", &tar_gz("5.7.1", BALLAST));
    let said = place.path().join("said");
    let fetch = || {
        let mut fetch = servers(place.path());
        fetch.args(["fetch", "--quiet", &web.url("/mysql-5.7.1.tar.gz")]);
        let said = std::fs::File::create(&said).expect("made");
        fetch.stdout(Stdio::null()).stderr(said);
        fetch
    };
    // How long one takes, from begin to end: the last one that came there.
    let began = Instant::now();
    succeed(&mut fetch());
    let mut whole = began.elapsed();
    succeed(servers(place.path()).args(["remove", "mysql-5.7.1"]));
    let (mut killed, mut round) = (0, 0);
    while killed < 16 {
        round += 1;
        assert!(round <= 64, "only {killed} of {round} were killed before their end");
        // Parts of somewhat more than the whole that lie apart wherever the sequence ends: multiples of the golden ratio.
        let moment = whole.mul_f64((f64::from(round) * 0.618_034).fract() * 1.1);
        let began = Instant::now();
        let mut child = fetch().spawn().expect("it starts");
        while began.elapsed() < moment && child.try_wait().expect("its state").is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("killed, or waited for");
        let status = child.wait().expect("its end");
        match status.signal() {
            Some(9) => killed += 1,
            _ => {
                let said = std::fs::read_to_string(&said).expect("it");
                assert!(status.success(), "round {round}: {status}: {said}");
                whole = began.elapsed();
            }
        }
        for build in listed(place.path()) {
            let path = PathBuf::from(build["path"].as_str().expect("a path"));
            assert_eq!(build["version"], "5.7.1", "round {round}: {build}");
            assert!(
                std::fs::read(path.join("lib/ballast")).expect("it") == noise(BALLAST),
                "round {round}"
            );
            succeed(servers(place.path()).args(["remove", "mysql-5.7.1"]));
        }
    }
    succeed(&mut fetch());
    assert_eq!(listed(place.path()).len(), 1);
    let mut left: Vec<_> = std::fs::read_dir(place.path().join("servers"))
        .expect("it")
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    left.sort();
    assert_eq!(left, [".downloads", ".lock", "mysql-5.7.1"]);
}
