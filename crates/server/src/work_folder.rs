//! The private folder that everything of ours lives in, and the marker that tells our folders from others'.
//!
//! Nothing without the marker is used or removed, whatever a variable, an option or a symbolic link says.

use crate::error::Error;
use crate::file_lock::FileLock;
use scaleprof_guard::check_owner;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The marker's file name.
pub const MARKER: &str = ".scaleprof-folder";
const MARKER_TEXT: &str = "Made by scaleprof, and removed by it without asking. Do not put anything of yours here.\n";

/// Longest path of a Unix socket: `sun_path` has 108 bytes, one of them the final zero.
pub const LONGEST_SOCKET_PATH: usize = 107;

/// The private working area. Runs and prepared data lie in it.
#[derive(Debug, Clone)]
pub struct WorkFolder {
    root: PathBuf,
}

impl WorkFolder {
    /// The folder that `SCALEPROF_WORK_DIR` names, else `/var/tmp/scaleprof-UID`: on a disk (unlike /tmp, which is memory on many machines), short enough for a
    /// socket's path, and open to the server's user (unlike root's home).
    pub fn default_path() -> PathBuf {
        if let Some(named) = std::env::var_os("SCALEPROF_WORK_DIR").filter(|named| !named.is_empty()) {
            return PathBuf::from(named);
        }
        let uid = rustix::process::geteuid().as_raw();
        let parent = [Path::new("/var/tmp"), Path::new("/tmp")]
            .into_iter()
            .find(|folder| folder.is_dir())
            .map(Path::to_owned)
            .unwrap_or_else(std::env::temp_dir);
        parent.join(format!("scaleprof-{uid}"))
    }

    /// Opens the working area at `root`, making it if need be, and removes what a killed scaleprof left in it.
    pub fn open(root: &Path) -> Result<Self, Error> {
        let root = std::path::absolute(root).map_err(Error::system("resolve", root))?;
        if !root.is_dir()
            && let Some(parent) = root.parent()
        {
            fs::create_dir_all(parent).map_err(Error::system("make", parent))?;
        }
        make_or_check_marked(&root)?;
        let folder = WorkFolder { root };
        folder.sweep()?;
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Where prepared data is kept.
    pub fn cache_path(&self) -> PathBuf {
        Self::cache_in(&self.root)
    }

    /// Where a work folder that need not be there would keep it.
    pub fn cache_in(root: &Path) -> PathBuf {
        root.join("cache")
    }

    /// A new folder for one server. It is removed when the value is dropped.
    pub fn new_run(&self) -> Result<RunFolder, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("run-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = self.root.join(name);
        make_marked(&path)?;
        let lock = lock_exclusive(&path)?.ok_or_else(|| Error::Locked { path: path.clone() })?;
        Ok(RunFolder { path, _lock: lock })
    }

    /// Removes the folders of runs whose scaleprof is gone: nobody holds their lock.
    fn sweep(&self) -> Result<(), Error> {
        for entry in fs::read_dir(&self.root)
            .map_err(Error::system("read", &self.root))?
            .flatten()
        {
            let path = entry.path();
            if !entry.file_name().to_string_lossy().starts_with("run-") || check_marked(&path).is_err() {
                continue;
            }
            // A run that is just being made has a marker before it has the lock; its owner is alive.
            if owner_is_alive(&path) {
                continue;
            }
            if let Ok(Some(_lock)) = lock_exclusive(&path) {
                remove_marked(&path)?;
            }
        }
        Ok(())
    }
}

fn owner_is_alive(run: &Path) -> bool {
    let name = run
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let pid = name.split('-').nth(1).unwrap_or_default();
    // Young is alive too: a process in another PID namespace is not to be seen, only its lock is.
    let young = fs::metadata(run.join(MARKER))
        .and_then(|meta| meta.modified())
        .is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() < 2));
    young && Path::new("/proc").join(pid).exists()
}

/// The folder of one server, locked as long as it is in use. Dropping it removes it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: FileLock,
}

impl RunFolder {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the server's socket will be, or why its path would not do.
    pub fn socket(&self) -> Result<PathBuf, Error> {
        let path = self.path.join("socket").join("s");
        let length = path.as_os_str().len();
        if length > LONGEST_SOCKET_PATH {
            return Err(Error::SocketPathTooLong { path, length });
        }
        Ok(path)
    }
}

impl Drop for RunFolder {
    fn drop(&mut self) {
        // What stays is swept at the next start.
        let _ = remove_marked(&self.path);
    }
}

/// Makes a folder with our marker, open to be passed but not written by others.
pub fn make_marked(path: &Path) -> Result<(), Error> {
    fs::DirBuilder::new()
        .mode(0o755)
        .create(path)
        .map_err(Error::system("make the folder", path))?;
    // The umask may be stricter than the server's user can stand.
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .map_err(Error::system("open to the server's user", path))?;
    let marker = path.join(MARKER);
    write_marker(&marker)
}

fn write_marker(marker: &Path) -> Result<(), Error> {
    File::options()
        .write(true)
        .create_new(true)
        .open(marker)
        .and_then(|mut file| file.write_all(MARKER_TEXT.as_bytes()))
        .map_err(Error::system("mark", marker))
}

/// Makes a marked folder, or checks that the one that is there is ours.
pub fn make_or_check_marked(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match make_marked(path) {
            // Another scaleprof was quicker. Give it the moment between its folder and its marker.
            Err(Error::System { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                std::thread::sleep(std::time::Duration::from_millis(50));
                check_marked(path)
            }
            other => other,
        },
        Err(error) => Err(Error::system("look at", path)(error)),
        Ok(_) => match check_marked(path) {
            // An empty folder holds nothing that could be lost: mark and use it (a mount point, say).
            Err(Error::NotOurs { .. }) if is_empty_and_own(path) => {
                let marker = path.join(MARKER);
                write_marker(&marker)
            }
            // Another scaleprof may have marked it between the two looks.
            Err(Error::NotOurs { .. }) => check_marked(path),
            other => other,
        },
    }
}

fn is_empty_and_own(path: &Path) -> bool {
    let us = rustix::process::geteuid().as_raw();
    let own = |meta: fs::Metadata| meta.is_dir() && meta.uid() == us && check_owner(&meta).is_ok();
    fs::symlink_metadata(path).is_ok_and(own) && fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Checks that a folder is ours: a real folder of our user that only we write to, with our marker in it. /var/tmp
/// is everyone's, so another user could have made one of that name before us.
pub fn check_marked(path: &Path) -> Result<(), Error> {
    let not_ours = |reason: &str| {
        Err(Error::NotOurs {
            path: path.to_owned(),
            reason: reason.to_owned(),
        })
    };
    let us = rustix::process::geteuid().as_raw();
    let meta = fs::symlink_metadata(path).map_err(Error::system("look at", path))?;
    if !meta.is_dir() {
        return not_ours("it is not a folder");
    }
    if meta.uid() != us {
        return not_ours("it belongs to another user");
    }
    if let Err(exposed) = check_owner(&meta) {
        return not_ours(&exposed.to_string());
    }
    match fs::symlink_metadata(path.join(MARKER)) {
        Ok(marker) if marker.is_file() && marker.uid() == us => Ok(()),
        _ => not_ours(&format!("it has no {MARKER} of scaleprof")),
    }
}

/// Removes a marked folder with all that is in it; the marker goes last, so that a removal that was cut short can
/// be taken up again. A folder that is gone already is no error.
pub fn remove_marked(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        _ => check_marked(path)?,
    }
    let entries = fs::read_dir(path).map_err(Error::system("read", path))?;
    for entry in entries.flatten().filter(|entry| entry.file_name() != MARKER) {
        let inner = entry.path();
        let removed = match entry.file_type() {
            Ok(kind) if kind.is_dir() => fs::remove_dir_all(&inner),
            _ => fs::remove_file(&inner),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::system("remove", &inner)(error));
            }
            _ => {}
        }
    }
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::system("remove", path)(error)),
        _ => Ok(()),
    };
    gone(fs::remove_file(path.join(MARKER)))?;
    gone(fs::remove_dir(path))
}

/// Locks a marked folder by its marker for ourselves alone. `None` when someone else holds it.
pub(crate) fn lock_exclusive(folder: &Path) -> Result<Option<FileLock>, Error> {
    lock(folder, FileLock::exclusive_at_once)
}

/// Locks a marked folder together with others who only read. `None` when someone holds it exclusively.
pub(crate) fn lock_shared(folder: &Path) -> Result<Option<FileLock>, Error> {
    lock(folder, FileLock::shared_at_once)
}

fn lock(folder: &Path, take: fn(File) -> io::Result<Option<FileLock>>) -> Result<Option<FileLock>, Error> {
    let marker = folder.join(MARKER);
    let file = File::open(&marker).map_err(Error::system("open", &marker))?;
    take(file).map_err(Error::system("lock", &marker))
}

/// Bytes that we may still write to the file system of `path`.
pub fn free_space(path: &Path) -> Result<u64, Error> {
    let stat = rustix::fs::statvfs(path).map_err(Error::errno("ask for the free space of", path))?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// An error when fewer than `needed` bytes are free at `path`; `what` names what they are for.
pub fn check_space(path: &Path, needed: u64, what: &str) -> Result<(), Error> {
    let free = free_space(path)?;
    if free < needed {
        return Err(Error::NoSpace {
            path: path.to_owned(),
            what: what.to_owned(),
            free_mib: free >> 20,
            needed_mib: needed.div_ceil(1 << 20),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_a_folder_without_our_marker() {
        let folder = tempfile::tempdir().expect("a folder");
        let theirs = folder.path().join("theirs");
        fs::create_dir(&theirs).expect("a folder");
        fs::write(theirs.join("thesis.tex"), "years of work").expect("a file");
        assert!(matches!(WorkFolder::open(&theirs), Err(Error::NotOurs { .. })));
        assert!(matches!(remove_marked(&theirs), Err(Error::NotOurs { .. })));
        assert!(theirs.join("thesis.tex").exists());
    }

    #[test]
    fn refuses_a_symbolic_link_to_a_marked_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        make_marked(&folder.path().join("ours")).expect("a marked folder");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("ours"), &link).expect("a link");
        assert!(matches!(remove_marked(&link), Err(Error::NotOurs { .. })));
    }

    #[test]
    fn removes_what_a_dead_run_left_and_nothing_that_lives() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("work");
        let work = WorkFolder::open(&root).expect("a work folder");
        let living = work.new_run().expect("a run");
        let dead = root.join("run-999999999-0");
        make_marked(&dead).expect("a marked folder");
        fs::create_dir(dead.join("data")).expect("a folder");
        fs::create_dir(root.join("run-unmarked")).expect("a folder");
        WorkFolder::open(&root).expect("again");
        assert!(living.path().exists());
        assert!(!dead.exists());
        assert!(root.join("run-unmarked").exists());
        let path = living.path().to_owned();
        drop(living);
        assert!(!path.exists());
    }

    #[test]
    fn says_when_a_sockets_path_would_be_too_long() {
        let folder = tempfile::tempdir().expect("a folder");
        let work = WorkFolder::open(&folder.path().join("w".repeat(100))).expect("a work folder");
        let run = work.new_run().expect("a run");
        assert!(matches!(run.socket(), Err(Error::SocketPathTooLong { .. })));
    }

    #[test]
    fn says_how_much_room_is_missing() {
        let folder = tempfile::tempdir().expect("a folder");
        check_space(folder.path(), 1, "nothing").expect("room for a byte");
        let error = check_space(folder.path(), u64::MAX, "loading").expect_err("no such disk");
        assert!(error.to_string().contains("loading needs"), "{error}");
    }
}
