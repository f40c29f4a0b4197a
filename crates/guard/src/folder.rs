//! A folder that is held open, so that its name may change its meaning.

use crate::owner::{Exposed, check_owner};
use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, Uid, fchown, fstat, mkdirat, openat, statat};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A folder that was opened once. What lies in it is found by name alone, and no link is followed.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
    path: PathBuf,
}

/// What a name in a folder stands for.
#[derive(Debug)]
pub enum Found {
    /// A folder, opened.
    Folder(Folder),
    /// A file, opened for reading.
    File(File),
    /// A link, socket, pipe or device: not opened.
    Other,
}

/// Why a folder is not taken for output.
#[derive(Debug, thiserror::Error)]
pub enum NoOutput {
    /// Others may change what is in it.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// It cannot be made or opened.
    #[error(transparent)]
    System(#[from] io::Error),
}

impl Folder {
    /// Opens a folder. Links above it are followed, as the user named it so; it must not be one
    /// itself.
    ///
    /// # Errors
    /// `ENOTDIR` (or `ELOOP`) where it is a link; what the system says else.
    pub fn open(path: &Path) -> io::Result<Folder> {
        Ok(Folder {
            descriptor: openat(rustix::fs::CWD, path, OF_FOLDERS, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Opens a folder whose name may be a link: for paths that the user gave.
    ///
    /// # Errors
    /// What the system says.
    pub fn open_linked(path: &Path) -> io::Result<Folder> {
        let flags = OF_FOLDERS.difference(OFlags::NOFOLLOW);
        Ok(Folder {
            descriptor: openat(rustix::fs::CWD, path, flags, Mode::empty())?,
            path: path.to_owned(),
        })
    }

    /// Makes a folder for output with those above it, or opens the one that is there, and checks
    /// that nobody else may change what is in it. One that was just made is ours, whatever its file
    /// system says of it.
    ///
    /// # Errors
    /// What the system says, or who else may.
    pub fn for_output(path: &Path) -> Result<Folder, NoOutput> {
        if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
            std::fs::create_dir_all(above)?;
        }
        // Not for the group to write to, as a umask of 002 would have it.
        match std::fs::DirBuilder::new().mode(0o755).create(path) {
            Ok(()) => Ok(Folder::open(path)?),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let folder = Folder::open_linked(path)?;
                check_owner(&folder.metadata()?)?;
                Ok(folder)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Where it was when it was opened. For messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its owner, permissions and so on.
    ///
    /// # Errors
    /// What the system says.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.as_file()?.metadata()
    }

    /// Waits until the disk has its names.
    ///
    /// # Errors
    /// What the system says.
    pub fn flush(&self) -> io::Result<()> {
        self.as_file()?.sync_all()
    }

    fn as_file(&self) -> io::Result<File> {
        Ok(File::from(self.descriptor.try_clone()?))
    }

    /// The names in it, in no order.
    ///
    /// # Errors
    /// What the system says.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens what has this name.
    ///
    /// # Errors
    /// What the system says; `ELOOP` where it became a link just now.
    pub fn find(&self, name: &OsStr) -> io::Result<Found> {
        let seen = statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Directory => self.folder(name).map(Found::Folder),
            FileType::RegularFile => Ok(self.file(name, OFlags::RDONLY)?.map_or(Found::Other, Found::File)),
            _ => Ok(Found::Other),
        }
    }

    /// Opens a file to read it and to write over it.
    ///
    /// # Errors
    /// What the system says; `ELOOP` where it is a link, `EINVAL` where it is no file.
    pub fn file_to_change(&self, name: &OsStr) -> io::Result<File> {
        let file = self.file(name, OFlags::RDWR)?;
        file.ok_or_else(|| io::Error::from(rustix::io::Errno::INVAL))
    }

    /// None where what was opened is no file.
    fn file(&self, name: &OsStr, access: OFlags) -> io::Result<Option<File>> {
        // Without waiting: it may have become a pipe that nobody writes to since it was looked at.
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&self.descriptor, name, flags, Mode::empty())?;
        let is_file = FileType::from_raw_mode(fstat(&opened)?.st_mode) == FileType::RegularFile;
        Ok(is_file.then(|| File::from(opened)))
    }

    /// Opens a folder in it.
    ///
    /// # Errors
    /// What the system says; `ENOTDIR` (or `ELOOP`) where it is a link.
    pub fn folder(&self, name: &OsStr) -> io::Result<Folder> {
        Ok(Folder {
            descriptor: openat(&self.descriptor, name, OF_FOLDERS, Mode::empty())?,
            path: self.path.join(name),
        })
    }

    /// Makes a folder in it, which must not be there yet.
    ///
    /// # Errors
    /// What the system says.
    pub fn new_folder(&self, name: &OsStr, mode: u32) -> io::Result<Folder> {
        mkdirat(&self.descriptor, name, Mode::from_raw_mode(mode))?;
        self.folder(name)
    }

    /// Makes a file in it, which must not be there yet, not even as a link.
    ///
    /// # Errors
    /// What the system says.
    pub fn new_file(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&self.descriptor, name, flags, Mode::from_raw_mode(mode))?;
        Ok(File::from(made))
    }

    /// Gives the folder itself to a user and group.
    ///
    /// # Errors
    /// What the system says.
    pub fn give_to(&self, user: u32, group: u32) -> io::Result<()> {
        let owner = (Uid::from_raw(user), Gid::from_raw(group));
        Ok(fchown(&self.descriptor, Some(owner.0), Some(owner.1))?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

const OF_FOLDERS: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn name(text: &str) -> &OsStr {
        OsStr::new(text)
    }

    #[test]
    fn what_it_holds_is_found_and_no_link_is_followed() {
        let place = tempfile::tempdir().expect("a folder");
        fs::write(place.path().join("file"), "text").expect("written");
        fs::create_dir(place.path().join("inner")).expect("made");
        symlink("/etc", place.path().join("away")).expect("a link");
        symlink("/etc/passwd", place.path().join("link")).expect("a link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            place.path().join("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        let folder = Folder::open(place.path()).expect("a folder");
        let mut names = folder.names().expect("read");
        names.sort();
        assert_eq!(names, ["away", "file", "inner", "link", "pipe"]);
        let Found::File(mut file) = folder.find(name("file")).expect("there") else {
            panic!("a file");
        };
        let mut text = String::new();
        file.read_to_string(&mut text).expect("read");
        assert_eq!(text, "text");
        assert!(matches!(folder.find(name("inner")), Ok(Found::Folder(_))));
        for other in ["away", "link", "pipe"] {
            assert!(matches!(folder.find(name(other)), Ok(Found::Other)), "{other}");
        }
        assert!(folder.folder(name("away")).is_err() && folder.file_to_change(name("link")).is_err());
        assert!(Folder::open(&place.path().join("away")).is_err());
    }

    #[test]
    fn what_is_made_is_new() {
        let place = tempfile::tempdir().expect("a folder");
        let victim = place.path().join("victim");
        fs::write(&victim, "precious").expect("written");
        symlink(&victim, place.path().join("planted")).expect("a link");
        let folder = Folder::open(place.path()).expect("a folder");
        assert!(folder.new_file(name("planted"), 0o600).is_err());
        assert!(folder.new_folder(name("planted"), 0o700).is_err());
        assert_eq!(fs::read_to_string(victim).expect("read"), "precious");
        folder.new_file(name("new"), 0o600).expect("made");
        assert!(place.path().join("new").is_file());
    }

    #[test]
    fn a_folder_that_is_open_stays_the_same_when_its_name_does_not() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("data")).expect("made");
        fs::write(at("data/mine"), "").expect("written");
        let folder = Folder::open(&at("data")).expect("a folder");
        fs::rename(at("data"), at("aside")).expect("renamed");
        symlink("/etc", at("data")).expect("a link");
        assert_eq!(folder.names().expect("read"), ["mine"]);
    }
}
