//! Fetches of made-up servers: from files, folders and a web server of this process.

use testing::made_up;

use made_up::web::{File, Web};
use made_up::{everything, fetched, noise, request, server, shelf, tar, tar_gz};
use scaleprof_builds::{Build, Error, Fetched, Request, Shelf};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn new(shelf: &Shelf, request: &Request) -> PathBuf {
    match fetched(shelf, request).0.expect("fetched") {
        Fetched::New(there) => there.path,
        Fetched::WasThere(there) => panic!("{} was there", there.name),
    }
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> String {
    let path = folder.join(name);
    fs::write(&path, bytes).expect("written");
    path.to_string_lossy().into_owned()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_whole(path: &Path, ballast: usize) {
    assert!(path.join("bin/mysqld").is_file());
    assert_eq!(fs::read(path.join("lib/ballast")).expect("it"), noise(ballast));
    assert!(!path.join("mysql-test").exists() && !path.join("data").exists());
}

#[test]
fn archives_of_each_packing_and_folders_become_builds() {
    let (folder, shelf) = shelf();
    let plain = tar("5.7.1", 100_000);
    let packed_by = |program: &str, arguments: &[&str], name: &str| {
        let from = written(folder.path(), "plain", &plain);
        let packed = Command::new(program)
            .args(arguments)
            .arg("-c")
            .arg(&from)
            .output()
            .expect(program);
        assert!(packed.status.success());
        written(folder.path(), name, &packed.stdout)
    };
    let mut sources = vec![
        written(folder.path(), "mysql-1-linux-x.tar", &plain),
        written(folder.path(), "mysql-2.tar.gz", &tar_gz("5.7.1", 100_000)),
        packed_by("xz", &["-T2"], "mysql-3.tar.xz"),
    ];
    let zstd = ruzstd::encoding::compress_to_vec(plain.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    sources.push(written(folder.path(), "mysql-4.tar.zst", &zstd));
    let unpacked = folder.path().join("mysql-5");
    fs::create_dir(&unpacked).expect("made");
    let status = Command::new("tar")
        .args(["--strip-components=1", "-xf", &sources[0], "-C"])
        .arg(&unpacked)
        .status();
    assert!(status.expect("tar").success());
    sources.push(unpacked.to_string_lossy().into_owned());
    for (at, source) in sources.iter().enumerate() {
        let path = new(&shelf, &request(source));
        assert_eq!(path, shelf.path().join(format!("mysql-{}", at + 1)));
        is_whole(&path, 100_000);
    }
    let names: Vec<_> = shelf
        .list()
        .expect("a list")
        .into_iter()
        .map(|build| build.name)
        .collect();
    assert_eq!(names, ["mysql-1", "mysql-2", "mysql-3", "mysql-4", "mysql-5"]);
    let build = Build::of_shelf(&shelf.find("mysql-2").expect("it"), &Default::default());
    assert_eq!(build.version.as_deref(), Some("5.7.1"));
    assert_eq!(build.source.as_deref(), Some(sources[1].as_str()));
    assert!(build.bytes.expect("its size") >= 100_000 && build.problem.is_none());
}

#[test]
fn a_zip_without_modes_deep_in_javas_folders_becomes_a_build() {
    let (folder, shelf) = shelf();
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().unix_permissions(0o644);
    zip.start_file("org/made/up/linux/bin/mysqld", options).expect("begun");
    std::io::Write::write_all(&mut zip, &server("5.5.5")).expect("packed");
    let bytes = zip.finish().expect("packed").into_inner();
    let path = new(&shelf, &request(&written(folder.path(), "made-up.jar", &bytes)));
    assert!(path.join("bin/mysqld").is_file());
}

#[test]
fn what_is_there_is_left_alone_unless_it_is_forced() {
    let (folder, shelf) = shelf();
    let first = written(folder.path(), "mysql-5.tar.gz", &tar_gz("5.7.1", 10));
    let path = new(&shelf, &request(&first));
    assert!(matches!(fetched(&shelf, &request(&first)).0, Ok(Fetched::WasThere(_))));
    let other = Request {
        name: Some("mysql-5".to_owned()),
        ..request(&written(folder.path(), "other.tar.gz", &tar_gz("5.7.2", 20)))
    };
    let error = fetched(&shelf, &other).0.expect_err("another source").to_string();
    assert!(
        error.contains("--replace") && error.contains("mysql-5.tar.gz"),
        "{error}"
    );
    is_whole(&path, 10);
    let forced = Request { force: true, ..other };
    is_whole(&new(&shelf, &forced), 20);
    assert_eq!(everything(&shelf), [".lock", "mysql-5"]);
    shelf.remove("mysql-5").expect("removed");
    assert_eq!(everything(&shelf), [".lock"]);
    assert!(matches!(shelf.remove("mysql-5"), Err(Error::Unknown { .. })));
}

#[test]
fn a_folder_that_is_not_ours_is_neither_replaced_nor_removed() {
    let (folder, shelf) = shelf();
    fs::create_dir_all(shelf.path().join("mine")).expect("made");
    fs::write(shelf.path().join("mine/precious"), "x").expect("written");
    let request = Request {
        name: Some("mine".to_owned()),
        force: true,
        ..request(&written(folder.path(), "mysql-5.tar.gz", &tar_gz("5.7.1", 10)))
    };
    assert!(matches!(fetched(&shelf, &request).0, Err(Error::NotOurs { .. })));
    assert!(shelf.remove("mine").is_err());
    assert!(shelf.path().join("mine/precious").exists() && shelf.list().expect("a list").is_empty());
}

#[test]
fn a_build_that_does_not_run_never_takes_the_place_of_one_that_does() {
    let (folder, shelf) = shelf();
    let path = new(
        &shelf,
        &request(&written(folder.path(), "mysql-5.tar.gz", &tar_gz("5.7.1", 10))),
    );
    let broken = folder.path().join("broken");
    fs::create_dir_all(broken.join("bin")).expect("made");
    fs::write(
        broken.join("bin/mysqld"),
        "#!/bin/sh\necho libaio.so.1: not found >&2; exit 127\n",
    )
    .expect("written");
    let request = Request {
        name: Some("mysql-5".to_owned()),
        force: true,
        ..request(&broken.to_string_lossy())
    };
    let error = fetched(&shelf, &request).0.expect_err("it does not run").to_string();
    assert!(error.contains("libaio.so.1"), "{error}");
    is_whole(&path, 10);
    assert_eq!(everything(&shelf), [".lock", "mysql-5"]);
}

#[test]
fn archives_without_a_server_leave_nothing() {
    let (folder, shelf) = shelf();
    for (name, bytes) in [("text.tar.gz", b"no archive".to_vec()), ("empty.tar", vec![0; 10_240])] {
        let error = fetched(&shelf, &request(&written(folder.path(), name, &bytes))).0;
        assert!(
            matches!(error, Err(Error::Archive { .. } | Error::NoServer { .. })),
            "{name}: {error:?}"
        );
    }
    assert_eq!(everything(&shelf), [".lock"]);
}

#[test]
fn a_download_that_breaks_off_goes_on_where_it_stopped() {
    let (_folder, shelf) = shelf();
    let web = Web::start();
    let bytes = tar_gz("5.7.1", 3_000_000);
    web.put(
        "/d/mysql-5.7.1.tar.gz",
        File {
            bytes: bytes.clone(),
            breaks_after: Some(1_200_000),
            ..File::default()
        },
    );
    web.put_bytes("/d/mysql-5.7.1.tar.gz.sha256", sha256(&bytes).as_bytes());
    let (result, heard) = fetched(&shelf, &request(&web.url("/d/mysql-5.7.1.tar.gz")));
    assert!(matches!(result, Ok(Fetched::New(_))), "{result:?}");
    is_whole(&shelf.path().join("mysql-5.7.1"), 3_000_000);
    let asked = web.asked();
    assert!(
        asked.contains(&"/d/mysql-5.7.1.tar.gz bytes=1200000-".to_owned())
            && asked.contains(&"/d/mysql-5.7.1.tar.gz bytes=2400000-".to_owned()),
        "{asked:?}"
    );
    assert!(heard.notes.iter().any(|note| note.contains("trying again")));
    assert_eq!(heard.most.1, Some(bytes.len() as u64));
    let checked = shelf.find("mysql-5.7.1").expect("it").provenance.checked.expect("how");
    assert!(checked.contains("SHA-256") && checked.contains(".sha256"), "{checked}");
    assert_eq!(fs::read_dir(shelf.path().join(".downloads")).expect("it").count(), 0);
}

#[test]
fn a_server_that_knows_no_parts_sends_the_whole_again() {
    let (_folder, shelf) = shelf();
    let web = Web::start();
    let bytes = tar_gz("5.7.1", 500_000);
    let path = "/mysql-5.7.1.tar.gz";
    let broken = File {
        bytes: bytes.clone(),
        breaks_after: Some(100_000),
        has_no_parts: true,
        ..File::default()
    };
    web.put(path, broken.clone());
    let error = fetched(&shelf, &request(&web.url(path)))
        .0
        .expect_err("it breaks off each time");
    assert!(matches!(error, Error::Download { .. }), "{error}");
    assert!(shelf.list().expect("a list").is_empty());
    web.put(
        path,
        File {
            breaks_after: None,
            ..broken
        },
    );
    let (result, heard) = fetched(&shelf, &request(&web.url(path)));
    assert!(matches!(result, Ok(Fetched::New(_))), "{result:?}");
    assert!(
        heard.notes.iter().any(|note| note.contains("--sha256")),
        "nobody vouches for it"
    );
}

#[test]
fn bytes_that_are_not_those_that_were_published_are_refused_and_removed() {
    let (_folder, shelf) = shelf();
    let web = Web::start();
    let bytes = tar_gz("5.7.1", 1000);
    let path = "/org/made/up/1/up-1.jar";
    web.put_bytes(path, &bytes);
    web.put_bytes(&format!("{path}.sha1"), "0".repeat(40).as_bytes());
    let artifact = Request {
        repository: Some(web.url("/")),
        ..request("maven:org.made:up:1")
    };
    let error = fetched(&shelf, &artifact).0.expect_err("it is another file");
    assert!(matches!(error, Error::Checksum { .. }), "{error}");
    assert_eq!(fs::read_dir(shelf.path().join(".downloads")).expect("it").count(), 0);
    let given = |digits: String| Request {
        sha256: Some(digits),
        ..artifact.clone()
    };
    assert!(matches!(
        fetched(&shelf, &given("a".repeat(64))).0,
        Err(Error::Checksum { .. })
    ));
    assert!(matches!(
        fetched(&shelf, &given("x".to_owned())).0,
        Err(Error::Source { .. })
    ));
    assert!(shelf.list().expect("a list").is_empty());
    new(&shelf, &given(sha256(&bytes).to_uppercase()));
}

#[test]
fn a_file_of_the_same_name_from_elsewhere_is_another_file_and_force_fetches_again() {
    let (_folder, shelf) = shelf();
    let web = Web::start();
    let named = |path: &str, force: bool| Request {
        name: Some("it".to_owned()),
        force,
        ..request(&web.url(path))
    };
    // Whole and of no use: it is not kept for the next try.
    web.put_bytes("/a/server.tar.gz", b"no archive");
    let error = fetched(&shelf, &named("/a/server.tar.gz", false)).0;
    assert!(matches!(error, Err(Error::Archive { .. })), "{error:?}");
    web.put_bytes("/a/server.tar.gz", &tar_gz("5.7.1", 1000));
    is_whole(&new(&shelf, &named("/a/server.tar.gz", false)), 1000);
    web.put_bytes("/b/server.tar.gz", &tar_gz("5.7.1", 2000));
    is_whole(&new(&shelf, &named("/b/server.tar.gz", true)), 2000);
    web.put_bytes("/b/server.tar.gz", &tar_gz("5.7.1", 3000));
    is_whole(&new(&shelf, &named("/b/server.tar.gz", true)), 3000);
}

#[test]
fn an_artifact_that_is_not_there_is_told_so() {
    let (_folder, shelf) = shelf();
    let web = Web::start();
    let artifact = Request {
        repository: Some(web.url("/m")),
        ..request("maven:org.made:up:1:zip:linux")
    };
    let error = fetched(&shelf, &artifact).0.expect_err("it is not there").to_string();
    assert!(
        error.contains("/m/org/made/up/1/up-1-linux.zip") && error.contains("coordinates"),
        "{error}"
    );
    let error = fetched(&shelf, &request(&web.url("/x.tar.gz")))
        .0
        .expect_err("neither")
        .to_string();
    assert!(error.contains("404"), "{error}");
}

#[test]
fn a_fetch_that_is_stopped_leaves_no_build_and_goes_on_the_next_time() {
    let (_folder, shelf) = shelf();
    let web = Web::start();
    let bytes = tar_gz("5.7.1", 4_000_000);
    let path = "/mysql-5.7.1.tar.gz";
    let slow = File {
        bytes,
        pause: Duration::from_millis(40),
        ..File::default()
    };
    web.put(path, slow.clone());
    let stop = AtomicBool::new(false);
    let result = std::thread::scope(|scope| {
        scope.spawn(|| {
            // In the midst: what is needed to go on is kept, and more is to come for two seconds.
            testing::soon("a part is there", || {
                let entries = fs::read_dir(shelf.path().join(".downloads"));
                let paths: Vec<PathBuf> = entries
                    .into_iter()
                    .flatten()
                    .flatten()
                    .map(|entry| entry.path())
                    .collect();
                let is = |path: &&PathBuf, ending: &str| path.to_string_lossy().ends_with(ending);
                let part = paths.iter().find(|path| is(path, ".part"));
                let has_bytes = part.is_some_and(|part| part.metadata().is_ok_and(|facts| facts.len() > 0));
                has_bytes && paths.iter().any(|path| is(&path, ".part.json"))
            });
            stop.store(true, Ordering::SeqCst);
        });
        let mut heard = made_up::Heard::default();
        scaleprof_builds::fetch(&shelf, &request(&web.url(path)), &mut heard, &stop)
    });
    assert!(matches!(result, Err(Error::Stopped)), "{result:?}");
    assert_eq!(everything(&shelf), [".downloads", ".lock"]);
    web.put(
        path,
        File {
            pause: Duration::ZERO,
            ..slow
        },
    );
    is_whole(&new(&shelf, &request(&web.url(path))), 4_000_000);
    assert!(
        web.asked().iter().any(|asked| asked.contains("bytes=")),
        "{:?}",
        web.asked()
    );
}

#[test]
fn one_fetches_at_a_time() {
    let (folder, shelf) = shelf();
    fs::create_dir_all(shelf.path()).expect("made");
    let lock = fs::File::create(shelf.path().join(".lock")).expect("the lock");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("held");
    let source = written(folder.path(), "mysql-5.tar.gz", &tar_gz("5.7.1", 10));
    assert!(matches!(
        fetched(&shelf, &request(&source)).0,
        Err(Error::Locked { .. })
    ));
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::Unlock).expect("free");
    new(&shelf, &request(&source));
}

#[test]
fn builds_of_earlier_versions_are_known_and_what_is_half_made_is_swept_away() {
    let (folder, shelf) = shelf();
    let old = shelf.path().join("mysql-9.7");
    fs::create_dir_all(&old).expect("made");
    fs::write(old.join(".scaleprof-server"), "2026-11-21T11:57:06Z\n").expect("written");
    fs::create_dir_all(shelf.path().join(".stage-x.1/tree/bin")).expect("made");
    fs::create_dir_all(shelf.path().join("unmarked/bin")).expect("made");
    let names = |shelf: &Shelf| -> Vec<String> { shelf.list().expect("a list").into_iter().map(|b| b.name).collect() };
    assert_eq!(names(&shelf), ["mysql-9.7"]);
    let again = Request {
        name: Some("mysql-9.7".to_owned()),
        ..request("debian:sid/mysql-server")
    };
    assert!(
        matches!(fetched(&shelf, &again).0, Ok(Fetched::WasThere(_))),
        "nothing is known of its source"
    );
    new(
        &shelf,
        &request(&written(folder.path(), "mysql-5.tar.gz", &tar_gz("5.7.1", 10))),
    );
    assert_eq!(everything(&shelf), [".lock", "mysql-5", "mysql-9.7", "unmarked"]);
}
