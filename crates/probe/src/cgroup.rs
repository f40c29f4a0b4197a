//! A cgroup of our own that holds the server and nothing else, so that per-CPU events can be filtered by it.
//!
//! It is made below the cgroup the server is in, so every limit set there goes on to hold, and no controller is
//! switched on in it. On drop the processes go back to where they were and the folder is removed.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::cgroup_paths::{self, OwnName};
use crate::error::ProbeError;
use crate::privileges::how_to_get_privileges;
use crate::process;

/// The server's cgroup; removed on drop.
#[derive(Debug)]
pub struct ServerCgroup {
    folder: PathBuf,
    parent: PathBuf,
    descriptor: OwnedFd,
}

static MADE: AtomicU64 = AtomicU64::new(0);

impl ServerCgroup {
    /// Makes the cgroup and moves the process with all its threads into it. Do this before the load begins. What
    /// killed runs left in the same place is removed first.
    pub fn hold(pid: u32) -> Result<Self, ProbeError> {
        let parent = parent_folder(pid)?;
        remove_stale(&parent);
        let owner = std::process::id();
        let owner_start = start_ticks(owner).ok_or_else(|| ProbeError::Form {
            what: "/proc/self/stat".into(),
        })?;
        let name = OwnName {
            owner,
            owner_start,
            number: MADE.fetch_add(1, Ordering::Relaxed),
        };
        let folder = parent.join(name.to_string());
        fs::create_dir(&folder).map_err(|error| ProbeError::Cgroup {
            why: format!("{} cannot be made: {error}", folder.display()),
            fix: what_helps(&error),
        })?;
        let opened = fs::File::open(&folder).and_then(|file| {
            fs::write(folder.join("cgroup.procs"), pid.to_string())?;
            Ok(OwnedFd::from(file))
        });
        match opened {
            Ok(descriptor) => {
                // Empty now, if the server was still in what a killed run left.
                remove_stale(&parent);
                Ok(Self {
                    folder,
                    parent,
                    descriptor,
                })
            }
            Err(error) => {
                let _ = fs::remove_dir(&folder);
                Err(ProbeError::Cgroup {
                    why: format!("process {pid} cannot be moved into {}: {error}", folder.display()),
                    fix: what_helps(&error),
                })
            }
        }
    }

    /// The folder of the cgroup.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The descriptor `perf_event_open` takes.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Drop for ServerCgroup {
    fn drop(&mut self) {
        // A process that forks or ends while it is moved makes one attempt fail; what is left after these is removed
        // by the next run.
        for _ in 0..20 {
            move_back(&self.folder, &self.parent);
            match fs::remove_dir(&self.folder) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

fn move_back(folder: &Path, parent: &Path) {
    let processes = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    for pid in processes.lines() {
        let _ = fs::write(parent.join("cgroup.procs"), pid);
    }
}

/// What helps where the kernel refuses a cgroup, or a process in it.
fn what_helps(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => how_to_get_privileges().to_owned(),
        std::io::ErrorKind::ReadOnlyFilesystem => "in a container, mount the cgroup file system writable".to_owned(),
        _ => "see cgroup.type and cgroup.max.descendants in the folder above it".to_owned(),
    }
}

/// Where the server's cgroup is to be made.
fn parent_folder(pid: u32) -> Result<PathBuf, ProbeError> {
    let no = |why: &str, fix: &str| ProbeError::Cgroup {
        why: why.to_owned(),
        fix: fix.to_owned(),
    };
    let read = |path: String| {
        fs::read_to_string(&path).map_err(|source| ProbeError::Read {
            path: path.into(),
            source,
        })
    };
    let hierarchy = cgroup_paths::find_hierarchy(&read("/proc/self/mountinfo".to_owned())?).ok_or_else(|| {
        no(
            "no cgroup file system is mounted that perf can filter by",
            "mount -t cgroup2 none /sys/fs/cgroup",
        )
    })?;
    let folder = cgroup_paths::folder_of(&hierarchy, &read(format!("/proc/{pid}/cgroup"))?).ok_or_else(|| {
        no(
            "the server's cgroup is outside of this container",
            "run scaleprof in the server's own container or on the host",
        )
    })?;
    let held_by = folder
        .file_name()
        .and_then(|name| cgroup_paths::parse_own_name(name.to_str()?));
    match held_by {
        None => Ok(folder),
        Some(name) if is_alive(name) => Err(no(
            &format!("scaleprof (process {}) already counts this server", name.owner),
            &format!("wait for it, or: kill {}", name.owner),
        )),
        // A killed scaleprof left a server behind in its cgroup: make ours beside it.
        Some(_) => folder.parent().map(Path::to_path_buf).ok_or_else(|| {
            no(
                "the server's cgroup has no parent",
                "watch it without hardware counters, or move it to another cgroup",
            )
        }),
    }
}

/// Removes the empty cgroups of runs that are no more. One that still holds a process stays: the kernel refuses.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        if let Some(name) = entry.file_name().to_str().and_then(cgroup_paths::parse_own_name)
            && !is_alive(name)
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn is_alive(name: OwnName) -> bool {
    start_ticks(name.owner) == Some(name.owner_start)
}

fn start_ticks(pid: u32) -> Option<u64> {
    let bytes = fs::read(format!("/proc/{pid}/stat")).ok()?;
    Some(process::parse_stat(&String::from_utf8_lossy(&bytes))?.start_ticks)
}
