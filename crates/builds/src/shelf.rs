//! The cache folder: one folder for each build, named by the user, whole or not there.
//!
//! Whatever is being made lies in a hidden folder beside the builds and is renamed when it is done; what a killed scaleprof left
//! is removed by the next one that holds the lock.

use crate::error::Error;
use crate::provenance::Provenance;
use crate::source::checked_name;
use rustix::fs::RenameFlags;
use scaleprof_guard::check_owner;
use scaleprof_server::FileLock;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is being made.
const STAGE: &str = ".stage-";
/// What is being removed.
const REMOVED: &str = ".removed-";
const LOCK: &str = ".lock";
const DOWNLOADS: &str = ".downloads";
/// After so long nobody comes back for a broken download.
const FORGET_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// The folder that holds the builds.
#[derive(Debug, Clone)]
pub struct Shelf {
    root: PathBuf,
}

/// A build in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shelved {
    /// Its name.
    pub name: String,
    /// Its folder: what `--server` takes.
    pub path: PathBuf,
    /// Where it came from.
    pub provenance: Provenance,
}

impl Shelf {
    /// `$SCALEPROF_SERVERS`, else for root `/var/cache/scaleprof/servers` (a server that root starts runs as another user, who
    /// cannot read root's home), else `scaleprof/servers` in the user's cache.
    pub fn default_path() -> PathBuf {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let own = || {
            variable("XDG_CACHE_HOME")
                .or_else(|| Some(variable("HOME")?.join(".cache")))
                .unwrap_or_else(|| PathBuf::from("/var/tmp"))
                .join("scaleprof/servers")
        };
        variable("SCALEPROF_SERVERS").unwrap_or_else(|| match rustix::process::geteuid().is_root() {
            true => PathBuf::from("/var/cache/scaleprof/servers"),
            false => own(),
        })
    }

    /// The shelf at a path, which need not exist before something is fetched.
    ///
    /// # Errors
    /// The working directory is gone; others than we could change what is in the folder.
    pub fn at(root: &Path) -> Result<Self, Error> {
        let root = std::path::absolute(root).map_err(Error::system("resolve", root))?;
        // Packages are told where they are going to lie, once and for all.
        let root = fs::canonicalize(&root).unwrap_or(root);
        if let Ok(found) = fs::symlink_metadata(&root) {
            check_owner(&found).map_err(|source| Error::Exposed {
                path: root.clone(),
                source,
            })?;
        }
        Ok(Shelf { root })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The builds, by name.
    ///
    /// # Errors
    /// The folder cannot be read; that there is none is no error.
    pub fn list(&self) -> Result<Vec<Shelved>, Error> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::system("read", &self.root)(error)),
        };
        let mut builds: Vec<Shelved> = entries
            .flatten()
            .filter_map(|entry| self.shelved(entry.file_name().to_str()?))
            .collect();
        builds.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(builds)
    }

    /// The build of this name, if it is there and whole.
    pub fn shelved(&self, name: &str) -> Option<Shelved> {
        checked_name(name).ok()?;
        let path = self.root.join(name);
        Some(Shelved {
            provenance: Provenance::of(&path)?,
            name: name.to_owned(),
            path,
        })
    }

    /// The folder of a build.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn find(&self, name: &str) -> Result<Shelved, Error> {
        checked_name(name)?;
        let unknown = || -> Result<Error, Error> {
            Ok(Error::Unknown {
                name: name.to_owned(),
                folder: self.root.clone(),
                known: self.list()?.into_iter().map(|build| build.name).collect(),
            })
        };
        match self.shelved(name) {
            Some(build) => Ok(build),
            None => Err(unknown()?),
        }
    }

    /// Removes a build.
    ///
    /// # Errors
    /// There is none of this name, or the folder is not ours; another scaleprof fetches.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        self.find(name)?;
        let _lock = self.lock()?;
        let from = self.root.join(name);
        // In one step, so that it is never there in part.
        let aside = self.root.join(format!("{REMOVED}{name}"));
        fs::rename(&from, &aside).map_err(Error::system("remove", &from))?;
        remove_all(&aside)
    }

    /// Holds the shelf for itself, and removes what a killed scaleprof left.
    pub(crate) fn lock(&self) -> Result<FileLock, Error> {
        make_open_folder(&self.root)?;
        let path = self.root.join(LOCK);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(Error::system("open", &path))?;
        let lock = FileLock::exclusive(file)
            .map_err(Error::system("lock", &path))?
            .ok_or_else(|| Error::Locked {
                folder: self.root.clone(),
            })?;
        self.sweep()?;
        Ok(lock)
    }

    fn sweep(&self) -> Result<(), Error> {
        let entries = fs::read_dir(&self.root).map_err(Error::system("read", &self.root))?;
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(STAGE) || name.starts_with(REMOVED) {
                remove_all(&entry.path())?;
            }
        }
        let downloads = fs::read_dir(self.root.join(DOWNLOADS)).into_iter().flatten().flatten();
        for entry in downloads {
            let age = entry
                .metadata()
                .and_then(|facts| facts.modified())
                .ok()
                .and_then(|time| time.elapsed().ok());
            if age.is_some_and(|age| age > FORGET_AFTER) {
                remove_all(&entry.path())?;
            }
        }
        Ok(())
    }

    /// A place for a download that outlives a broken try.
    pub(crate) fn downloads(&self) -> Result<PathBuf, Error> {
        let path = self.root.join(DOWNLOADS);
        make_open_folder(&path)?;
        Ok(path)
    }

    /// A folder in which a build is made.
    pub(crate) fn stage(&self, _lock: &FileLock, name: &str) -> Result<Stage, Error> {
        let path = self.root.join(format!("{STAGE}{name}.{}", std::process::id()));
        make_open_folder(&path)?;
        let stage = Stage {
            tree: path.join("tree"),
            last: self.root.join(name),
            path,
        };
        make_open_folder(&stage.tree)?;
        Ok(stage)
    }
}

/// A build that is being made. Dropping it removes what is left of it.
#[derive(Debug)]
pub(crate) struct Stage {
    path: PathBuf,
    /// The folder that becomes the build.
    pub(crate) tree: PathBuf,
    /// Where the build is going to be.
    pub(crate) last: PathBuf,
}

impl Stage {
    /// A folder for what is needed only meanwhile.
    pub(crate) fn aside(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        make_open_folder(&path)?;
        Ok(path)
    }

    /// Puts `tree` in its place in one step; the build that was there, if any, is then where `tree` was.
    pub(crate) fn publish(&self, tree: &Path) -> Result<(), Error> {
        let failed = Error::system("put the build into its place", &self.last);
        if fs::symlink_metadata(&self.last).is_err() {
            return fs::rename(tree, &self.last).map_err(failed);
        }
        if Provenance::of(&self.last).is_none() {
            return Err(Error::NotOurs {
                path: self.last.clone(),
            });
        }
        match rustix::fs::renameat_with(
            rustix::fs::CWD,
            tree,
            rustix::fs::CWD,
            &self.last,
            RenameFlags::EXCHANGE,
        ) {
            Ok(()) => Ok(()),
            // A file system that cannot exchange: for a moment there is none.
            Err(_) => {
                let before = self.path.join("before");
                fs::rename(&self.last, &before).map_err(Error::system("replace", &self.last))?;
                if let Err(error) = fs::rename(tree, &self.last) {
                    // The build that was there is worth more than the reason.
                    let _ = fs::rename(&before, &self.last);
                    return Err(failed(error));
                }
                fs::rename(&before, tree).map_err(Error::system("keep", &before))
            }
        }
    }

    /// Takes a published build back: what was there before comes again, or nothing.
    pub(crate) fn withdraw(&self, tree: &Path) -> Result<(), Error> {
        match tree.exists() {
            true => self.publish(tree),
            false => fs::rename(&self.last, tree).map_err(Error::system("take back", &self.last)),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What cannot be removed now the next one tries to remove.
        let _ = remove_all(&self.path);
    }
}

/// Makes a folder that others can read, and those above it.
fn make_open_folder(path: &Path) -> Result<(), Error> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_open_folder(above)?;
    }
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
        .map_err(Error::system("make", path))
}

fn remove_all(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::system("remove", path)(error)),
        _ => Ok(()),
    }
}

/// What `--server` means: a path that exists; else the build of this name, where there is one; else the path all the same.
///
/// # Errors
/// Others than we could change the folder of the builds.
pub fn server_path(given: &Path) -> Result<PathBuf, Error> {
    server_path_in(Path::new(""), given)
}

/// As [`server_path`], for paths that are relative to a folder.
///
/// # Errors
/// Those of [`server_path`].
pub fn server_path_in(folder: &Path, given: &Path) -> Result<PathBuf, Error> {
    let path = folder.join(given);
    if given.components().count() != 1 || path.exists() {
        return Ok(path);
    }
    let shelf = Shelf::at(&Shelf::default_path())?;
    let build = given.to_str().and_then(|name| shelf.shelved(name));
    Ok(build.map_or(path, |build| build.path))
}
