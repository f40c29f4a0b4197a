//! Writes what an archive holds below one folder, and nowhere else.
//!
//! Symbolic links are made last, after every file: no file can be written through one, whatever the order of the archive. Then
//! each of them is followed in thought and must end in the tree. Owners, times, devices and bits beyond "executable" are dropped.

use crate::error::Error;
use crate::links::{Links, leads_out, rerooted};
use crate::progress::Watcher;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// PATH_MAX of Linux.
const LONGEST_PATH: usize = 4096;

/// How much an archive may become.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of all files.
    pub(crate) bytes: u64,
    /// Files, folders and links.
    pub(crate) entries: u64,
}

impl Limits {
    /// What no build has: the largest with debug information have 5 GiB and 20 000 files. By how much an archive shrank says nothing:
    /// files with holes shrink to next to nothing.
    pub(crate) fn of_builds() -> Self {
        Limits {
            bytes: 16 << 30,
            entries: 300_000,
        }
    }
}

/// What to make of symbolic links with absolute texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AbsoluteLinks {
    /// The archive is refused.
    Refused,
    /// The tree is their root, as it is that of the packages of a distribution. Links that lead out are left out.
    OfTheTree,
}

/// A tree that is being written.
pub(crate) struct Tree {
    root: PathBuf,
    archive: String,
    limits: Limits,
    absolute: AbsoluteLinks,
    bytes: u64,
    entries: u64,
    links: Links,
}

impl Tree {
    /// Into `root`, which is an empty folder of ours. `archive` is what errors call it.
    pub(crate) fn new(root: &Path, archive: &str, limits: Limits, absolute: AbsoluteLinks) -> Self {
        Tree {
            root: root.to_owned(),
            archive: archive.to_owned(),
            limits,
            absolute,
            bytes: 0,
            entries: 0,
            links: Links::new(),
        }
    }

    /// Bytes written so far, with those that were read and left out.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The archive is hostile.
    pub(crate) fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, Error> {
        Err(Error::Hostile {
            archive: self.archive.clone(),
            reason: reason.into(),
        })
    }

    /// The archive is broken, or of a kind that is not known.
    pub(crate) fn broken<T>(&self, reason: impl Into<String>) -> Result<T, Error> {
        Err(Error::Archive {
            archive: self.archive.clone(),
            reason: reason.into(),
        })
    }

    /// The name of an entry as a path from the tree's top; empty for the top itself.
    ///
    /// # Errors
    /// It is absolute or goes up; or there are too many entries.
    pub(crate) fn place(&mut self, name: &Path) -> Result<PathBuf, Error> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return self.refuse(format!("it holds more than {} files", self.limits.entries));
        }
        self.inside(name)
    }

    fn inside(&self, name: &Path) -> Result<PathBuf, Error> {
        if name.as_os_str().len() > LONGEST_PATH {
            return self.refuse(format!("it has a name of more than {LONGEST_PATH} bytes"));
        }
        let mut place = PathBuf::new();
        for part in name.components() {
            match part {
                Component::Normal(part) => place.push(part),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return self.refuse(format!("its entry '{}' would lie outside", name.display()));
                }
            }
        }
        Ok(place)
    }

    /// Makes a folder, and those above it.
    pub(crate) fn folder(&mut self, place: &Path) -> Result<(), Error> {
        if place.as_os_str().is_empty() {
            return Ok(());
        }
        if let Some(above) = place.parent() {
            self.folder(above)?;
        }
        let path = self.root.join(place);
        match fs::create_dir(&path) {
            // Whatever the umask says: the server's user has to read it.
            Ok(()) => fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
                .map_err(Error::system("open to others", &path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.refuse(format!("its entry '{}' is a file and a folder", place.display()))
            }
            Err(error) => Err(Error::system("make", &path)(error)),
        }
    }

    /// Writes a file. One that came earlier in its place is replaced.
    pub(crate) fn file(
        &mut self,
        place: &Path,
        executable: bool,
        content: &mut dyn Read,
        watcher: &mut Watcher<'_>,
    ) -> Result<(), Error> {
        let path = self.vacant(place)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(Error::system("make", &path))?;
        self.copy(content, Some((&mut file, &path)), watcher)?;
        let mode = if executable { 0o755 } else { 0o644 };
        file.set_permissions(fs::Permissions::from_mode(mode))
            .map_err(Error::system("open to others", &path))
    }

    /// Reads the content of an entry that is left out. It counts: reading takes time too.
    pub(crate) fn skip(&mut self, content: &mut dyn Read, watcher: &mut Watcher<'_>) -> Result<(), Error> {
        self.copy(content, None, watcher)
    }

    fn copy(
        &mut self,
        content: &mut dyn Read,
        mut to: Option<(&mut fs::File, &Path)>,
        watcher: &mut Watcher<'_>,
    ) -> Result<(), Error> {
        let mut buffer = vec![0; 1 << 17];
        loop {
            watcher.go_on()?;
            let count = match content.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.broken(error.to_string()),
            };
            self.bytes += count as u64;
            if self.bytes > self.limits.bytes {
                return self.refuse(format!("it unpacks to more than {} MiB", self.limits.bytes >> 20));
            }
            if let (Some((file, path)), Some(part)) = (&mut to, buffer.get(..count)) {
                file.write_all(part).map_err(Error::system("write", *path))?;
            }
        }
    }

    /// Keeps a symbolic link for the end.
    pub(crate) fn link(&mut self, place: &Path, text: &Path) -> Result<(), Error> {
        if text.as_os_str().len() > LONGEST_PATH {
            return self.refuse(format!("it has a link of more than {LONGEST_PATH} bytes"));
        }
        if text.is_absolute() && self.absolute == AbsoluteLinks::Refused {
            return self.refuse(format!(
                "its link '{}' leads to {}, outside",
                place.display(),
                text.display()
            ));
        }
        self.vacant(place)?;
        self.links.insert(place.to_owned(), rerooted(place, text));
        Ok(())
    }

    /// Makes a second name of a file that came earlier.
    pub(crate) fn hard_link(&mut self, place: &Path, target: &Path) -> Result<(), Error> {
        let target = self.inside(target)?;
        let from = self.root.join(&target);
        // Nothing but files and folders of ours is there yet, so that this follows no link.
        if !fs::symlink_metadata(&from).is_ok_and(|facts| facts.is_file()) {
            return self.broken(format!(
                "'{}' is another name of '{}', which it does not hold",
                place.display(),
                target.display()
            ));
        }
        if place == target {
            return Ok(());
        }
        let path = self.vacant(place)?;
        fs::hard_link(&from, &path).map_err(Error::system("link", &path))
    }

    /// The path of a new entry, its folder made, nothing in its place.
    fn vacant(&mut self, place: &Path) -> Result<PathBuf, Error> {
        let (Some(above), Some(_)) = (place.parent(), place.file_name()) else {
            return self.refuse("an entry that is no folder takes the place of the top folder");
        };
        self.folder(above)?;
        self.links.remove(place);
        let path = self.root.join(place);
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_dir() => {
                self.refuse(format!("its entry '{}' is a file and a folder", place.display()))
            }
            Ok(_) => fs::remove_file(&path)
                .map(|()| path.clone())
                .map_err(Error::system("replace", &path)),
            Err(_) => Ok(path),
        }
    }

    /// Makes the symbolic links.
    ///
    /// # Errors
    /// One of them leads out of the tree.
    pub(crate) fn finish(self) -> Result<(), Error> {
        for (place, text) in &self.links {
            if leads_out(&self.links, place) {
                match self.absolute {
                    AbsoluteLinks::OfTheTree => continue,
                    AbsoluteLinks::Refused => {
                        return self.refuse(format!(
                            "its link '{}' leads to {}, outside",
                            place.display(),
                            text.display()
                        ));
                    }
                }
            }
            let path = self.root.join(place);
            match std::os::unix::fs::symlink(text, &path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return self.refuse(format!("its entry '{}' is a link and a folder", place.display()));
                }
                result => result.map_err(Error::system("make", &path))?,
            }
        }
        Ok(())
    }
}
