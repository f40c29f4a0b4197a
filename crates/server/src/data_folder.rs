//! Prepared data folders, kept so that a workload is loaded once and every run starts on the same bytes.

use crate::capabilities::Capabilities;
use crate::error::Error;
use crate::file_copy::{Copied, copy_folder, copy_size, dig_holes, disk_usage};
use crate::file_lock::FileLock;
use crate::identify::{Installation, hexadecimal};
use crate::settings::Settings;
use crate::size::parse_bytes;
use crate::user::ServerUser;
use crate::work_folder::{
    MARKER, WorkFolder, check_marked, check_space, lock_exclusive, lock_shared, make_marked, make_or_check_marked,
    remove_marked,
};
use rustix::fs::syncfs;
use scaleprof_guard::replace;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

mod room;

/// Bytes of prepared data that are kept unless somebody asks for more or less.
const CACHE_SIZE: u64 = 10 << 30;

/// Bytes of prepared data that are kept unless an option says otherwise: those of `SCALEPROF_CACHE_SIZE`, else 10 GiB.
///
/// # Errors
/// The variable holds no size.
pub fn cache_size() -> Result<u64, String> {
    const VARIABLE: &str = "SCALEPROF_CACHE_SIZE";
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => parse_bytes(&text).map_err(|problem| format!("{VARIABLE}: {problem}")),
        _ => Ok(CACHE_SIZE),
    }
}

/// What a prepared folder was made from. Folders of equal keys hold the same data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataKey {
    /// The server's build.
    pub server: String,
    /// What the caller loads: workload, tables, rows, seed, in its own words.
    pub workload: String,
    /// The settings that shape data files.
    pub settings: Vec<(String, String)>,
}

/// Raise it when what we do to a folder before storing it changes.
const LAYOUT: &str = "scaleprof data 4";

impl DataKey {
    /// The key of a workload on this server with these settings.
    pub fn new(installation: &Installation, settings: &Settings, workload: impl Into<String>) -> Result<Self, Error> {
        let capabilities = Capabilities::of(installation.product, installation.version);
        Ok(DataKey {
            server: format!(
                "{} {} {}",
                installation.product,
                installation.version_text,
                installation.fingerprint()?
            ),
            workload: workload.into(),
            settings: settings.shaping_files(&capabilities),
        })
    }

    /// The key's name on disk: the same on every machine and in every version of scaleprof.
    pub fn name(&self) -> String {
        let mut hash = Sha256::new();
        let mut field = |text: &str| {
            // Lengths keep apart what would read the same when put together.
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        field(LAYOUT);
        field(&self.server);
        field(&self.workload);
        for (name, value) in &self.settings {
            field(name);
            field(value);
        }
        hexadecimal(&hash.finalize()[..12])
    }
}

/// What is known of an entry of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What it was made from.
    pub key: DataKey,
    /// Bytes on disk.
    pub bytes: u64,
    /// Bytes that a copy takes, whose redo log has no holes.
    #[serde(default)]
    pub copy_bytes: u64,
    /// When, in seconds since 1970.
    pub created: u64,
}

impl Entry {
    /// What a copy takes of the disk.
    pub fn bytes_of_copy(&self) -> u64 {
        self.copy_bytes.max(self.bytes)
    }
}

/// A prepared data folder. As long as the value lives nobody removes it.
#[derive(Debug)]
pub struct PreparedData {
    folder: PathBuf,
    entry: Entry,
    _shared_lock: FileLock,
}

impl PreparedData {
    /// What is known of it.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// The data folder itself. It is the original: start servers on copies only.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// When it was last asked for: when its description was last touched.
    fn last_used(&self) -> SystemTime {
        let description = fs::metadata(self.folder.join(ENTRY));
        description.and_then(|meta| meta.modified()).unwrap_or(UNIX_EPOCH)
    }

    fn mark_as_used(&self) {
        // In vain on a disk that is only read: then nothing can be removed either.
        let description = File::options().write(true).open(self.folder.join(ENTRY));
        let _ = description.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Makes a copy at `to`, which must not exist, for the server's user.
    pub fn fresh_copy(&self, to: &Path, owner: Option<&ServerUser>) -> Result<Copied, Error> {
        if let Some(parent) = to.parent() {
            check_space(parent, self.entry.bytes_of_copy(), "a copy of the prepared data")?;
        }
        copy_folder(&self.data(), to, owner)
    }
}

/// The prepared data folders of a work folder.
#[derive(Debug, Clone)]
pub struct Cache {
    root: PathBuf,
}

const MAKING: &str = "making-";

impl Cache {
    /// The folder of all of it.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Opens the cache and removes what was half made when its maker was killed.
    pub fn open(work: &WorkFolder) -> Result<Self, Error> {
        let root = work.cache_path();
        make_or_check_marked(&root)?;
        let cache = Cache { root };
        for folder in cache.folders()? {
            let name = folder
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default();
            let half_made = name.starts_with(MAKING) || !folder.join(ENTRY).is_file();
            // A living maker holds the lock from before the first byte on, and takes it as soon as the folder is marked.
            if half_made
                && !is_young(&folder)
                && let Ok(Some(_lock)) = lock_exclusive(&folder)
            {
                remove_marked(&folder)?;
            }
        }
        Ok(cache)
    }

    /// The cache as it is; none where there is none yet.
    pub(crate) fn existing(work: &WorkFolder) -> Option<Self> {
        let root = work.cache_path();
        check_marked(&root).is_ok().then_some(Cache { root })
    }

    /// The prepared data of this key, if there is any.
    pub fn get(&self, key: &DataKey) -> Result<Option<PreparedData>, Error> {
        let prepared = self.read(&self.root.join(key.name()))?;
        let prepared = prepared.filter(|prepared| prepared.entry.key == *key);
        if let Some(prepared) = &prepared {
            prepared.mark_as_used();
        }
        Ok(prepared)
    }

    /// Stores the data folder of a server that was stopped cleanly. It is moved where that is possible, and must not
    /// be used afterwards. If another scaleprof stored the same meanwhile, that is returned.
    pub fn store(&self, key: &DataKey, stopped: &Path) -> Result<PreparedData, Error> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let making = self
            .root
            .join(format!("{MAKING}{}-{}-{serial}", key.name(), std::process::id()));
        make_marked(&making)?;
        let lock = lock_exclusive(&making)?.ok_or_else(|| Error::Locked { path: making.clone() })?;
        let made = self.fill(key, stopped, &making);
        let stored = made.and_then(|()| {
            let whole = self.root.join(key.name());
            match fs::rename(&making, &whole) {
                Ok(()) => Ok(()),
                // Someone was quicker (a folder that is not empty is not replaced).
                Err(_) if whole.join(ENTRY).is_file() => Ok(()),
                Err(error) => Err(Error::system("move into the cache", &whole)(error)),
            }
        });
        if making.exists() {
            remove_marked(&making)?;
        }
        drop(lock);
        stored?;
        self.get(key)?.ok_or_else(|| Error::NotOurs {
            path: self.root.join(key.name()),
            reason: "it holds other data than its name says".to_owned(),
        })
    }

    fn fill(&self, key: &DataKey, stopped: &Path, making: &Path) -> Result<(), Error> {
        let data = making.join("data");
        match fs::rename(stopped, &data) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                check_space(making, disk_usage(stopped)?, "the prepared data")?;
                copy_folder(stopped, &data, None)?;
            }
            Err(error) => return Err(Error::system("move into the cache", stopped)(error)),
        }
        forget_identity(&data)?;
        dig_holes(&data)?;
        let entry = Entry {
            key: key.clone(),
            bytes: disk_usage(&data)?,
            copy_bytes: copy_size(&data)?,
            created: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| time.as_secs()),
        };
        let file = making.join(ENTRY);
        let text = serde_json::to_vec_pretty(&entry).map_err(|error| Error::system("describe", &file)(error.into()))?;
        replace(&file, |file| file.write_all(&text)).map_err(Error::system("write", &file))?;
        // The name that makes it whole must not reach the disk before the data does.
        let folder = File::open(making).map_err(Error::system("open", making))?;
        syncfs(&folder).map_err(Error::errno("write out", making))
    }

    /// All entries, the oldest first.
    pub fn list(&self) -> Result<Vec<PreparedData>, Error> {
        let mut all = Vec::new();
        for folder in self.folders()? {
            all.extend(self.read(&folder)?);
        }
        all.sort_by_key(|prepared| prepared.entry.created);
        Ok(all)
    }

    /// Removes one entry. That it is not there is no error; that another scaleprof uses it is.
    pub fn remove(&self, key: &DataKey) -> Result<(), Error> {
        self.remove_folder(&self.root.join(key.name()))
    }

    /// Removes all entries; returns how many. Stops at the first that is in use.
    pub fn remove_all(&self) -> Result<usize, Error> {
        let folders = self.folders()?;
        for folder in &folders {
            self.remove_folder(folder)?;
        }
        Ok(folders.len())
    }

    fn remove_folder(&self, folder: &Path) -> Result<(), Error> {
        if !folder.exists() {
            return Ok(());
        }
        check_marked(folder)?;
        match lock_exclusive(folder)? {
            Some(_lock) => {
                // First of all it must cease to look whole.
                let _ = fs::remove_file(folder.join(ENTRY));
                remove_marked(folder)
            }
            None => Err(Error::Locked {
                path: folder.to_owned(),
            }),
        }
    }

    /// The marked folders of the cache.
    fn folders(&self) -> Result<Vec<PathBuf>, Error> {
        let entries = fs::read_dir(&self.root).map_err(Error::system("read", &self.root))?;
        let paths = entries.flatten().map(|entry| entry.path());
        Ok(paths.filter(|path| check_marked(path).is_ok()).collect())
    }

    fn read(&self, folder: &Path) -> Result<Option<PreparedData>, Error> {
        if check_marked(folder).is_err() {
            return Ok(None);
        }
        let Ok(Some(lock)) = lock_shared(folder) else {
            return Ok(None); // it is being made or removed
        };
        let text = fs::read(folder.join(ENTRY)).unwrap_or_default();
        let Ok(entry) = serde_json::from_slice(&text) else {
            return Ok(None);
        };
        Ok(Some(PreparedData {
            folder: folder.to_owned(),
            entry,
            _shared_lock: lock,
        }))
    }
}

const ENTRY: &str = "entry.json";

/// Whether a folder was marked a moment ago.
fn is_young(folder: &Path) -> bool {
    let marked = fs::metadata(folder.join(MARKER)).and_then(|meta| meta.modified());
    marked.is_ok_and(|time| time.elapsed().is_ok_and(|age| age.as_secs() < 2))
}

/// The list of the pages that a stopped server had in memory.
const HOT_PAGES: &str = "ib_buffer_pool";
/// The same where no server finds it: most would read these pages when they start, in the background of what is measured.
const HOT_PAGES_KEPT: &str = "ib_buffer_pool.kept";

/// Lets the server that is started on this copy of prepared data find the pages that were in memory when they were made.
pub(crate) fn bring_back_hot_pages(data: &Path) -> Result<(), Error> {
    let kept = data.join(HOT_PAGES_KEPT);
    match kept.exists() {
        true => fs::rename(&kept, data.join(HOT_PAGES)).map_err(Error::system("rename", &kept)),
        false => Ok(()),
    }
}

/// Removes what belongs to the server that was stopped and not to its data: its UUID, which no other may have, its
/// process id and its socket; and hides the list of its hot pages.
fn forget_identity(data: &Path) -> Result<(), Error> {
    let pages = data.join(HOT_PAGES);
    if pages.exists() {
        fs::rename(&pages, data.join(HOT_PAGES_KEPT)).map_err(Error::system("rename", &pages))?;
    }
    for entry in fs::read_dir(data).map_err(Error::system("read", data))?.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let own = name == "auto.cnf" || name == "mysqld-auto.cnf";
        if own || [".pid", ".err", ".sock", ".lock"].iter().any(|end| name.ends_with(end)) {
            fs::remove_file(entry.path()).map_err(Error::system("remove", entry.path()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn key(workload: &str) -> DataKey {
        DataKey {
            server: "MariaDB 10.11.6 build-id:00".into(),
            workload: workload.into(),
            settings: vec![("innodb_page_size".into(), "16384".into())],
        }
    }

    pub(super) fn cache() -> (tempfile::TempDir, Cache, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let work = WorkFolder::open(&folder.path().join("work")).expect("a work folder");
        let data = folder.path().join("work").join("stopped");
        fs::create_dir_all(data.join("sbtest")).expect("folders");
        fs::write(data.join("sbtest/t.ibd"), "rows").expect("a table");
        fs::write(data.join("auto.cnf"), "uuid").expect("an identity");
        (folder, Cache::open(&work).expect("a cache"), data)
    }

    #[test]
    fn a_key_has_the_same_name_for_ever() {
        // A change of this value makes every user load again: raise LAYOUT only with a reason.
        assert_eq!(key("oltp").name(), "af3358beb90956bd482ada4e");
        assert_ne!(key("oltp").name(), key("oltp2").name());
    }

    #[test]
    fn what_was_stored_is_found_and_copied_without_its_identity() {
        let (folder, cache, data) = cache();
        assert!(cache.get(&key("a")).expect("a look").is_none());
        let prepared = cache.store(&key("a"), &data).expect("stored");
        assert!(!data.exists());
        let copy = folder.path().join("copy");
        prepared.fresh_copy(&copy, None).expect("a copy");
        assert_eq!(fs::read_to_string(copy.join("sbtest/t.ibd")).expect("rows"), "rows");
        assert!(!copy.join("auto.cnf").exists());
        assert!(cache.get(&key("a")).expect("a look").is_some());
        assert!(cache.get(&key("b")).expect("a look").is_none());
    }

    #[test]
    fn hot_pages_are_found_by_the_server_that_is_to_read_them_only() {
        let (folder, cache, data) = cache();
        fs::write(data.join(HOT_PAGES), "5,3").expect("a list");
        let prepared = cache.store(&key("a"), &data).expect("stored");
        let copy = folder.path().join("copy");
        prepared.fresh_copy(&copy, None).expect("a copy");
        assert!(!copy.join(HOT_PAGES).exists());
        bring_back_hot_pages(&copy).expect("renamed");
        assert_eq!(fs::read_to_string(copy.join(HOT_PAGES)).expect("a list"), "5,3");
        // Once more there is nothing to bring back, as with data that have no list.
        bring_back_hot_pages(&copy).expect("nothing to do");
    }

    #[test]
    fn what_is_in_use_is_not_removed() {
        let (_folder, cache, data) = cache();
        let prepared = cache.store(&key("a"), &data).expect("stored");
        assert!(matches!(cache.remove_all(), Err(Error::Locked { .. })));
        drop(prepared);
        assert_eq!(cache.remove_all().expect("removed"), 1);
        assert!(cache.list().expect("a list").is_empty());
    }

    #[test]
    fn the_second_maker_of_the_same_gets_the_firsts() {
        let (folder, cache, data) = cache();
        let second = folder.path().join("work/second");
        fs::create_dir(&second).expect("a folder");
        let first = cache.store(&key("a"), &data).expect("stored").data();
        assert_eq!(cache.store(&key("a"), &second).expect("stored").data(), first);
        assert_eq!(cache.list().expect("a list").len(), 1);
    }

    #[test]
    fn half_made_entries_go_at_the_next_start_unless_their_maker_lives() {
        let (folder, cache, _data) = cache();
        let dead = cache.root.join("making-dead-1-0");
        let alive = cache.root.join("making-alive-1-0");
        make_marked(&dead).expect("a folder");
        make_marked(&alive).expect("a folder");
        let _lock = lock_exclusive(&alive).expect("a lock").expect("free");
        let foreign = cache.root.join("making-foreign");
        fs::create_dir(&foreign).expect("a folder");
        let young = cache.root.join("making-young-1-0");
        make_marked(&young).expect("a folder");
        let marker = File::options().write(true).open(dead.join(MARKER)).expect("a marker");
        let then = SystemTime::now() - std::time::Duration::from_secs(60);
        marker.set_modified(then).expect("a time");
        let work = WorkFolder::open(&folder.path().join("work")).expect("a work folder");
        Cache::open(&work).expect("a cache");
        assert!(!dead.exists() && alive.exists() && foreign.exists() && young.exists());
    }
}
