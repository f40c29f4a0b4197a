//! What other users of the machine could put in our way: links, folders, option files and programs
//! of theirs, files that they cut.

use crate::stage::{Running, fail, place, run, scaleprof, succeed, texts};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use testing::servers::distribution;
use testing::soon;

/// The user `nobody` of every distribution.
const NOBODY: u32 = 65534;

fn is_root(what: &str) -> bool {
    crate::stage::is_root(what)
}

/// A command that makes a bundle without a server.
fn import_into(place: &Path, output: &Path) -> std::process::Command {
    let folded = place.join("stacks.folded");
    fs::write(&folded, "main;work;here 30\nmain;work;there 20\n").expect("written");
    let mut command = scaleprof();
    command.arg("import").arg(folded).arg("--output").arg(output);
    command
}

#[test]
fn a_server_sees_no_password_of_ours_and_its_log_is_written_through_no_link() {
    let Some(server) = distribution() else { return };
    let place = place();
    let output = place.path().join("out");
    let victim = place.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let log = place.path().join("out-server.log");
    symlink(&victim, &log).expect("a link");
    let mut command = run(Some(&server.installation), &output);
    command.args(["--workload", "oltp_point_select", "--tables", "1", "--rows", "300"]);
    command.args(["--connections", "1", "--seconds", "2", "--rate", "100"]);
    let secrets = ["SCALEPROF_PASSWORD", "MYSQL_PWD", "AWS_SECRET_ACCESS_KEY"];
    secrets.iter().for_each(|name| {
        command.env(name, "Hunter2-geheim");
    });
    let running = Running::start(&mut command);
    let pid = running.server();
    let environment = fs::read(format!("/proc/{pid}/environ")).expect("ours to see");
    let environment = String::from_utf8_lossy(&environment).replace('\0', "\n");
    assert!(environment.contains("PATH="), "{environment}");
    assert!(
        !environment.contains("geheim") && !environment.contains("CARGO_"),
        "{environment}"
    );
    let (out, err) = texts(&running.end_and_leave_nothing(&[]));
    assert_eq!(fs::read_to_string(&victim).expect("there"), "precious", "{out}{err}");
    let found = fs::symlink_metadata(&log).expect("a log");
    assert!(found.is_file(), "{found:?}");
}

#[test]
fn the_page_of_a_bundle_is_written_through_no_link() {
    let place = place();
    let bundle = place.path().join("bundle");
    succeed(&mut import_into(place.path(), &bundle));
    let victim = place.path().join("victim");
    fs::write(&victim, "precious").expect("written");
    let path = bundle.join("report.html");
    fs::remove_file(&path).expect("there");
    symlink(&victim, path).expect("a link");
    succeed(scaleprof().arg("report").arg(&bundle));
    assert_eq!(fs::read_to_string(&victim).expect("there"), "precious");
    let page = fs::symlink_metadata(bundle.join("report.html")).expect("a page");
    assert!(page.is_file() && page.len() > 10_000);
}

#[test]
fn an_output_folder_of_another_user_is_refused_also_behind_a_link() {
    if !is_root("a folder of another user") {
        return;
    }
    let place = place();
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).expect("made");
    chown(&theirs, Some(NOBODY), Some(NOBODY)).expect("root may");
    let link = place.path().join("link");
    symlink(&theirs, &link).expect("a link");
    for output in [&theirs, &link] {
        let error = fail(&mut import_into(place.path(), output), 1);
        assert!(error.contains("it belongs to user 65534"), "{error}");
        assert_eq!(fs::read_dir(&theirs).expect("there").count(), 0);
    }
    let open = place.path().join("open");
    fs::create_dir(&open).expect("made");
    fs::set_permissions(&open, Permissions::from_mode(0o777)).expect("chmod");
    let error = fail(&mut import_into(place.path(), &open), 1);
    assert!(error.contains("all users may write to it"), "{error}");
}

#[test]
fn servers_are_not_taken_from_a_folder_that_others_may_write() {
    let place = place();
    let shelf = place.path().join("servers");
    fs::create_dir_all(shelf.join("theirs/bin")).expect("made");
    fs::set_permissions(&shelf, Permissions::from_mode(0o777)).expect("chmod");
    let ran = place.path().join("ran");
    let program = shelf.join("theirs/bin/mysqld");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("chmod");
    let with_shelf = |arguments: &[&str]| {
        let mut command = scaleprof();
        command.env("SCALEPROF_SERVERS", &shelf).args(arguments);
        fail(&mut command, 1)
    };
    let output = place.path().join("out");
    let output = output.to_str().expect("a name");
    for arguments in [
        &["servers", "list"][..],
        &["servers", "path", "theirs"],
        &["check", "--server", "theirs"],
        &["run", "--server", "theirs", "--output", output],
    ] {
        let error = with_shelf(arguments);
        assert!(error.contains("all users may write to it"), "{arguments:?}: {error}");
        assert!(error.contains("SCALEPROF_SERVERS"), "{error}");
    }
    assert!(!ran.exists(), "a program of theirs ran");
}

#[test]
fn an_option_file_that_all_may_write_is_refused() {
    let place = place();
    let options = place.path().join("my.cnf");
    fs::write(&options, "[client]\nuser=lena\n[mysqld]\nport=3310\n").expect("written");
    fs::set_permissions(&options, Permissions::from_mode(0o666)).expect("chmod");
    let output = place.path().join("out");
    let of_running = ["--defaults-file", "--yes", "--socket", "/nonexistent"];
    for option in [&["--server-defaults-file"][..], &of_running] {
        let mut command = scaleprof();
        command.args(["run", option[0]]).arg(&options).args(&option[1..]);
        let error = fail(command.arg("--output").arg(&output), 1);
        assert!(
            error.contains("my.cnf") && error.contains("all users may write to it"),
            "{error}"
        );
    }
    assert!(!output.exists());
}

/// It tells its user in the place of a version.
#[test]
fn a_server_that_is_asked_for_its_version_is_no_program_of_roots() {
    if !is_root("a program that root starts") {
        return;
    }
    let place = place();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("chmod");
    let program = place.path().join("mysqld");
    let script = "#!/bin/sh\nwhile read -r name user rest; do [ $name = Uid: ] && break; done </proc/self/status\n\
                  echo \"mysqld  Ver 9.9.$user for Linux on x86_64 (Source)\"\n";
    fs::write(&program, script).expect("written");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("chmod");
    // It ends with an error where anything else is missing, such as hardware counters.
    let (out, _) = texts(
        &scaleprof()
            .args(["check", "--server"])
            .arg(&program)
            .output()
            .expect("starts"),
    );
    assert!(out.contains("9.9.") && !out.contains("9.9.0"), "{out}");
}

#[test]
fn a_recording_that_is_cut_while_it_is_read_is_an_error_that_names_it() {
    let place = place();
    let recording = place.path().join("stacks.folded");
    let lines: String = (0..400_000)
        .map(|number| format!("main;work_{number};inner_function_{number} {number}\n"))
        .collect();
    fs::write(&recording, lines.repeat(3)).expect("written");
    let mut command = scaleprof();
    command
        .arg("import")
        .arg(&recording)
        .arg("--output")
        .arg(place.path().join("out"));
    let running = Running::start(&mut command);
    let maps = format!("/proc/{}/maps", running.pid());
    soon("it has mapped the recording", || {
        fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("stacks.folded"))
    });
    let file = fs::File::options().write(true).open(&recording).expect("ours");
    file.set_len(4096).expect("cut");
    let output = running.end();
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{}\n{out}\n{err}", output.status);
    assert!(err.contains("stacks.folded") && err.contains("truncated"), "{err}");
}
