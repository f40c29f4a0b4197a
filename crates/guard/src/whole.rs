//! Writing a file so that it is there whole or not at all, and never through a link.

use crate::folder::Folder;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes the file at `path` anew: into a new file beside it, which then takes its name. What was
/// there stays until then, and for good where `write` fails. Where `path` is a link, the link is
/// replaced.
///
/// # Errors
/// Those of the file system and of `write`.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let above = path.parent().filter(|above| !above.as_os_str().is_empty());
    // It need not be readable, as a drop box is not.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The user's own path: links in it are meant.
    let folder = openat(rustix::fs::CWD, above.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    replace_at(folder, (name, &part_of(name)), write, || {})
}

/// What [`replace`] calls a file while it is written: no other writer calls his so.
pub fn part_of(name: &OsStr) -> OsString {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut part = OsString::from(".");
    part.push(name);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    part.push(format!(".{}-{number}{UNFINISHED}", std::process::id()));
    part
}

/// As [`replace`], in a folder that is open and with a name for the file while it is written.
/// `before_rename` is called when all is written; what it returns is dropped when the file has its
/// name.
///
/// # Errors
/// Those of the file system and of `write`.
pub fn replace_in<T>(
    folder: &Folder,
    (name, part): (&OsStr, &OsStr),
    write: impl FnOnce(&mut File) -> io::Result<()>,
    before_rename: impl FnOnce() -> T,
) -> io::Result<()> {
    replace_at(folder, (name, part), write, before_rename)
}

fn replace_at<T>(
    folder: impl AsFd,
    (name, part): (&OsStr, &OsStr),
    write: impl FnOnce(&mut File) -> io::Result<()>,
    before_rename: impl FnOnce() -> T,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let made = openat(&folder, part, flags, mode).or_else(|error| match error {
        // What a killed writer left, or somebody planted. Its name is removed, not what it leads
        // to.
        rustix::io::Errno::EXIST => {
            unlinkat(&folder, part, AtFlags::empty())?;
            openat(&folder, part, flags, mode)
        }
        error => Err(error),
    })?;
    let mut file = File::from(made);
    let written = write(&mut file).and_then(|()| {
        let _until_renamed = before_rename();
        Ok(renameat(&folder, part, &folder, name)?)
    });
    if written.is_err() {
        // A full disk should not keep the half that did not fit; what failed first is what the user
        // must read.
        let _ = unlinkat(&folder, part, AtFlags::empty());
    }
    written
}

/// The end of the name of a file that is not whole.
pub const UNFINISHED: &str = ".partial";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    fn put(path: &Path, text: &str) -> io::Result<()> {
        replace(path, |file| file.write_all(text.as_bytes()))
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        fs::write(at("victim"), "precious").expect("written");
        symlink(at("victim"), at("out")).expect("a link");
        put(&at("out"), "ours").expect("written");
        assert_eq!(fs::read_to_string(at("victim")).expect("read"), "precious");
        assert_eq!(fs::read_to_string(at("out")).expect("read"), "ours");
        assert!(!fs::symlink_metadata(at("out")).expect("there").is_symlink());
        // Nor where somebody has guessed the name of the part.
        let folder = Folder::open(place.path()).expect("a folder");
        symlink(at("victim"), at("part")).expect("a link");
        let names = (OsStr::new("out"), OsStr::new("part"));
        replace_in(&folder, names, |file| file.write_all(b"again"), || {}).expect("written");
        assert_eq!(fs::read_to_string(at("victim")).expect("read"), "precious");
        assert_eq!(fs::read_to_string(at("out")).expect("read"), "again");
    }

    #[test]
    fn what_was_there_stays_where_writing_fails() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("out");
        put(&path, "before").expect("written");
        let failed = replace(&path, |file| {
            file.write_all(b"hal")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.expect_err("it failed").kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&path).expect("read"), "before");
        assert_eq!(fs::read_dir(place.path()).expect("read").count(), 1, "nothing is left");
    }
}
