//! What happens on a full disk. The disk is a small one in memory, for which root is needed.

use testing::servers;

use scaleprof_server::*;
use servers::{distribution, runs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A small file system of our own. It is unmounted with the value.
struct SmallDisk {
    _folder: tempfile::TempDir,
    mount: PathBuf,
}

impl SmallDisk {
    fn of_mib(size: u32) -> Option<SmallDisk> {
        let folder = tempfile::Builder::new()
            .prefix("scaleprof-disk-")
            .tempdir_in("/var/tmp")
            .expect("a folder");
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("chmod");
        let mount = folder.path().join("m");
        fs::create_dir(&mount).expect("a folder");
        let size = format!("size={size}m,mode=755");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(&mount)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk { _folder: folder, mount }),
            other => {
                testing::skip!("cannot mount a small disk, which needs root: {other:?}");
                None
            }
        }
    }

    fn work(&self) -> WorkFolder {
        WorkFolder::open(&self.mount.join("w")).expect("a work folder")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A process that another test is just starting holds our files open until its exec; then "busy" passes.
        for _ in 0..100 {
            if Command::new("umount")
                .arg(&self.mount)
                .output()
                .is_ok_and(|output| output.status.success())
            {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = Command::new("umount").arg("--lazy").arg(&self.mount).status();
    }
}

fn settings(redo_mib: u64, set: &[&str]) -> Settings {
    let asked = ServerSettings {
        connections: 8,
        buffer_pool: Some(128 << 20),
        redo_log: redo_mib << 20,
        // The server puts its native asynchronous I/O aside on such a disk, with a warning.
        set: [&["innodb_use_native_aio=0"], set]
            .concat()
            .iter()
            .map(|text| (*text).to_owned())
            .collect(),
        ..ServerSettings::default()
    };
    Settings::new(asked).expect("settings")
}

/// Takes all room but `leave` bytes. The server takes room at the same time.
fn fill(path: &Path, leave: u64) -> fs::File {
    let file = fs::File::create(path).expect("a file");
    loop {
        let free = work_folder::free_space(path.parent().expect("its folder")).expect("free space");
        let filler = free.saturating_sub(leave).max(4096);
        match rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, filler) {
            Ok(()) => return file,
            Err(errno) => assert_eq!(errno, rustix::io::Errno::NOSPC),
        }
    }
}

#[test]
fn says_how_much_room_a_start_needs_before_it_starts() {
    let (Some(server), Some(disk)) = (distribution(), SmallDisk::of_mib(256)) else {
        return;
    };
    for (set, mebibytes) in [(&[][..], 1536), (&["innodb_log_file_size=16M"], 528)] {
        let builder = SandboxBuilder::new(server.installation.clone(), settings(1024, set), disk.work());
        let error = builder.start_fresh().map(|_| ()).expect_err("no room");
        println!("{error}");
        assert!(
            matches!(error, Error::NoSpace { needed_mib, .. } if needed_mib == mebibytes),
            "{error}"
        );
    }
    assert!(runs(&disk.work()).is_empty());
}

#[test]
fn a_disk_that_fills_up_while_a_server_is_made_is_named_as_the_reason() {
    let (Some(server), Some(disk)) = (distribution(), SmallDisk::of_mib(640)) else {
        return;
    };
    let work = disk.work();
    // What is asked for passes the check, but the server itself then wants more.
    let settings = settings(96, &["innodb_data_file_path=ibdata1:1G:autoextend"]);
    let result = SandboxBuilder::new(server.installation, settings, work.clone()).start_fresh();
    let error = result.map(|_| ()).expect_err("no room");
    println!("{error}");
    assert!(error.to_string().contains("the disk is full"), "{error}");
    assert!(runs(&work).is_empty(), "its folder is left");
}

#[test]
fn a_server_whose_disk_fills_up_is_told_from_one_that_is_slow_and_goes_without_trace() {
    let (Some(server), Some(disk)) = (distribution(), SmallDisk::of_mib(1024)) else {
        return;
    };
    let work = disk.work();
    let builder = SandboxBuilder::new(server.installation, settings(96, &[]), work.clone());
    let mut sandbox = builder.start_fresh().expect("a server");
    let mut client = sandbox.connect().expect("a connection");
    client.execute("create database bench").expect("a schema");
    client
        .execute("create table bench.t (id int auto_increment primary key, a longtext)")
        .expect("a table");
    let cache = Cache::open(&work).expect("a cache");
    assert!(matches!(
        sandbox.make_room_for(&cache, 1 << 40),
        Err(Error::NoSpace { .. })
    ));
    let _filler = fill(&disk.mount.join("filler"), 8 << 20);
    let mut failed = None;
    for _ in 0..100 {
        if let Err(error) = client.execute("insert into bench.t (a) values (repeat('x', 1000000))") {
            failed = Some(error);
            break;
        }
    }
    let error = failed.expect("the disk holds no 100 MB");
    // Some versions refuse the row, some crash.
    if error.number() != Some(1114) {
        let death = sandbox
            .wait_for_death(Duration::from_secs(20))
            .expect("the connection was lost");
        println!("the load met: {error}; the server: {death}");
        assert_eq!(death.reason.map(|(reason, _)| reason), Some(Reason::DiskFull));
    }
    assert!(sandbox.free_space().expect("free space") < 64 << 20);
    sandbox.stop_hard();
    assert!(runs(&work).is_empty(), "its folder is left");
}
