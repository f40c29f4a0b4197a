//! Disks that are full: the server's, and the bundle's.

use crate::stage::{Running, bundle, fail, is_root, place, run, scaleprof, texts, work_folder};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::servers::distribution;
use testing::soon;

/// A small disk in memory.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, size: &str) -> SmallDisk {
        std::fs::create_dir_all(at).expect("a folder");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=755"), "scaleprof-test"])
            .arg(at);
        assert!(mount.status().expect("mount").success());
        SmallDisk(at.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process that another test is just starting holds our files open until its exec.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// The arguments of a usual run, with another work folder.
fn in_work_folder(usual: &Command, folder: &Path) -> Command {
    let mut command = scaleprof();
    command.args(usual.get_args().map(|argument| match argument == work_folder() {
        true => folder.as_os_str(),
        false => argument,
    }));
    command
}

#[test]
fn a_disk_too_small_for_the_server_is_said_before_anything_starts() {
    let Some(server) = distribution() else { return };
    if !is_root("mounting a small disk") {
        return;
    }
    let place = place();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).expect("chmod");
    let disk = SmallDisk::mount(&place.path().join("disk"), "100m");
    let folder = place.path().join("run");
    let usual = run(Some(&server.installation), &folder);
    let error = fail(&mut in_work_folder(&usual, &disk.0.join("w")), 1);
    assert!(error.contains("MiB") && error.contains("free"), "{error}");
    assert!(!folder.exists());
    let left = std::fs::read_dir(disk.0.join("w")).expect("the work folder").flatten();
    let runs = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("run-"));
    assert_eq!(runs.count(), 0);
}

#[test]
fn a_full_disk_under_the_bundle_is_a_clear_error() {
    let Some(server) = distribution() else { return };
    if !is_root("mounting a small disk") {
        return;
    }
    let place = place();
    let disk = SmallDisk::mount(&place.path().join("disk"), "48k");
    let error = fail(
        run(Some(&server.installation), &disk.0.join("run")).args([
            "--tables",
            "2",
            "--rows",
            "500",
            "--connections",
            "1,2",
            "--seconds",
            "2",
            "--rate",
            "100",
        ]),
        1,
    );
    assert!(
        error.contains("could not") && error.contains("No space left"),
        "{error}"
    );
}

#[test]
fn a_disk_that_fills_up_under_the_load_is_said() {
    let Some(server) = distribution() else { return };
    if !is_root("mounting a small disk") {
        return;
    }
    let place = place();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).expect("chmod");
    let disk = SmallDisk::mount(&place.path().join("disk"), "3g");
    let folder = place.path().join("run");
    let mut usual = run(Some(&server.installation), &folder);
    usual.args(["--workload", "oltp_insert", "--tables", "1", "--rows", "300"]);
    usual.args(["--connections", "8", "--seconds", "600"]);
    let mut running = Running::start(&mut in_work_folder(&usual, &disk.0.join("w")));
    soon("the load begins", || {
        let begins = folder.join("manifest.json").exists();
        assert!(begins || !running.is_over(), "{}", running.last_words());
        begins
    });
    // The file belongs to the test, not to the server: it goes with the disk.
    let mut filler = std::fs::File::create(disk.0.join("filler")).expect("a file");
    while filler.write_all(&[0; 1 << 20]).is_ok() {}
    let (_, error) = texts(&running.end_and_leave_nothing(&[]));
    assert!(
        error.contains("disk is full") && error.contains("--work-dir"),
        "{error}"
    );
    let left = std::fs::read_dir(disk.0.join("w")).expect("the work folder").flatten();
    let runs = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("run-"));
    assert_eq!(runs.count(), 0);
    let kept = bundle(&folder);
    assert_eq!(kept.manifest.problem.as_deref(), Some("the server's disk is full"));
}
