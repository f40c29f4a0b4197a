//! Copies of data folders: shared blocks where the file system can, else as few bytes as will do.

use crate::error::Error;
use crate::user::ServerUser;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, ioctl_ficlone, seek, syncfs};
use scaleprof_guard::{Folder, Found};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, fchown};
use std::path::Path;

/// What a copy took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Copied {
    /// Files copied.
    pub files: u64,
    /// Those whose blocks are shared with the original.
    pub reflinked: u64,
    /// Bytes that were written.
    pub bytes: u64,
}

/// Bytes of disk that a folder takes. Holes take none.
pub fn disk_usage(folder: &Path) -> Result<u64, Error> {
    usage(&Folder::open(folder).map_err(Error::system("open", folder))?)
}

fn usage(folder: &Folder) -> Result<u64, Error> {
    sum(folder, &|_, meta| meta.blocks() * 512)
}

/// Bytes of disk that a copy of a folder takes ([`copy_folder`]): a redo log has no holes in it.
pub(crate) fn copy_size(folder: &Path) -> Result<u64, Error> {
    let open = Folder::open(folder).map_err(Error::system("open", folder))?;
    sum(&open, &|path, meta| {
        let usage = meta.blocks() * 512;
        if is_redo_log(path) {
            usage.max(meta.len())
        } else {
            usage
        }
    })
}

fn sum(folder: &Folder, of: &dyn Fn(&Path, &fs::Metadata) -> u64) -> Result<u64, Error> {
    let mut bytes = 0;
    for name in names(folder)? {
        bytes += match found(folder, &name)? {
            Found::Folder(inner) => sum(&inner, of)?,
            Found::File(file) => {
                let path = folder.path().join(&name);
                let meta = file.metadata().map_err(Error::system("look at", &path))?;
                of(&path, &meta)
            }
            Found::Other => 0,
        };
    }
    Ok(bytes)
}

/// Gives back the disk's blocks of redo logs that hold nothing but zeros: a server makes its log of a gigabyte at once, and a few rows fill
/// little of it. What is read from the files stays the same. In vain on file systems without holes.
pub(crate) fn dig_holes(folder: &Path) -> Result<(), Error> {
    let open = Folder::open(folder).map_err(Error::system("open", folder))?;
    dig_in(&open)
}

fn dig_in(folder: &Folder) -> Result<(), Error> {
    for name in names(folder)? {
        let path = folder.path().join(&name);
        match found(folder, &name)? {
            Found::Folder(inner) => dig_in(&inner)?,
            Found::File(_) if is_redo_log(&path) => {
                let file = folder.file_to_change(&name).map_err(Error::system("open", &path))?;
                dig(&file).map_err(Error::system("look through", &path))?;
            }
            Found::File(_) | Found::Other => {}
        }
    }
    Ok(())
}

/// Gives back what is zero in a file, by pieces of which blocks of file systems are parts.
fn dig(file: &File) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    const PIECE: u64 = 64 << 10;
    const ZEROS: &[u8] = &[0; PIECE as usize];
    let length = file.metadata()?.len();
    let mut buffer = vec![0; PIECE as usize];
    // All from here to what is looked at is zero.
    let mut zero_from = 0;
    let mut at = 0;
    while at < length {
        // Room that was only asked for is no data, and takes the disk's blocks all the same.
        at = match seek(file, SeekFrom::Data(at)) {
            Ok(data) => data / PIECE * PIECE,
            Err(rustix::io::Errno::NXIO) => break,
            Err(_) => at,
        };
        let read = file.read_at(&mut buffer, at)?;
        if buffer[..read] != ZEROS[..read] {
            punch(file, zero_from, at);
            zero_from = at + PIECE;
        }
        at += PIECE;
    }
    punch(file, zero_from, length);
    Ok(())
}

fn punch(file: &File, from: u64, to: u64) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if from < to {
        let _ = fallocate(file, flags, from, to - from);
    }
}

/// Copies a folder of plain files and folders to `to`, which must not exist, for `owner`, and waits until the disk
/// has it: what is still to be written would otherwise be written during the measurement.
///
/// The source may be a folder of the server's user, who could exchange its files while root copies them. So it is
/// walked by descriptor, no link is followed, and a file of somebody else than its folder is an error.
pub fn copy_folder(from: &Path, to: &Path, owner: Option<&ServerUser>) -> Result<Copied, Error> {
    let mut copied = Copied::default();
    let source = Folder::open(from).map_err(Error::system("open", from))?;
    let source_owner = source.metadata().map_err(Error::system("look at", from))?.uid();
    fs::DirBuilder::new()
        .mode(0o700)
        .create(to)
        .map_err(Error::system("make the folder", to))?;
    let target = Folder::open(to).map_err(Error::system("open", to))?;
    Copy {
        source_owner,
        owner,
        copied: &mut copied,
    }
    .level(&source, &target)?;
    syncfs(&target).map_err(Error::errno("write out the copy", to))?;
    Ok(copied)
}

struct Copy<'a> {
    /// Who owns the source. A file of another user's in it was put there by a hard link.
    source_owner: u32,
    owner: Option<&'a ServerUser>,
    copied: &'a mut Copied,
}

impl Copy<'_> {
    fn level(&mut self, from: &Folder, to: &Folder) -> Result<(), Error> {
        for name in names(from)? {
            match found(from, &name)? {
                Found::Folder(inner) => {
                    let made = to.new_folder(&name, 0o700);
                    let made = made.map_err(Error::system("make the folder", to.path().join(&name)))?;
                    self.level(&inner, &made)?;
                }
                Found::File(source) => self.file((&source, from), to, &name)?,
                // Links are not followed: they would lead out of the folder. Sockets are not data.
                Found::Other => {}
            }
        }
        match self.owner {
            Some(user) => to.give_to(user.uid, user.gid).map_err(given(to.path())),
            None => Ok(()),
        }
    }

    fn file(&mut self, (source, from): (&File, &Folder), to: &Folder, name: &OsStr) -> Result<(), Error> {
        let (from, path) = (from.path().join(name), to.path().join(name));
        let owner = source.metadata().map_err(Error::system("look at", &from))?.uid();
        if owner != self.source_owner {
            return Err(Error::NotOurs {
                path: from,
                reason: format!(
                    "it belongs to user {owner}, and its folder to user {}",
                    self.source_owner
                ),
            });
        }
        let target = to.new_file(name, 0o640).map_err(Error::system("make", &path))?;
        self.copied.files += 1;
        // The redo log is overwritten in place and flushed at every commit. If its blocks were shared or missing, each
        // first write would have to allocate one, and the first minute would measure the file system.
        let written_in_place = is_redo_log(&from);
        if !written_in_place && ioctl_ficlone(&target, source).is_ok() {
            self.copied.reflinked += 1;
        } else {
            let written = if written_in_place {
                copy_all(source, &target)
            } else {
                copy_data(source, &target)
            };
            self.copied.bytes += written.map_err(Error::system("copy to", &path))?;
        }
        match self.owner {
            Some(user) => fchown(&target, Some(user.uid), Some(user.gid)).map_err(given(&path)),
            None => Ok(()),
        }
    }
}

fn given(path: &Path) -> impl FnOnce(io::Error) -> Error {
    Error::system("give to the server's user", path)
}

fn names(folder: &Folder) -> Result<Vec<OsString>, Error> {
    folder.names().map_err(Error::system("read", folder.path()))
}

fn found(folder: &Folder, name: &OsStr) -> Result<Found, Error> {
    folder
        .find(name)
        .map_err(Error::system("open", folder.path().join(name)))
}

/// `ib_logfile0` of all but MySQL 8.0.30 and later, which have `#innodb_redo/#ib_redo7`.
fn is_redo_log(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.starts_with("ib_logfile") || name.starts_with("#ib_redo")
}

fn copy_all(mut source: &File, mut target: &File) -> io::Result<u64> {
    let length = source.metadata()?.len();
    if length > 0 {
        // One extent, as the server itself would have made it. Not every file system can.
        let _ = fallocate(target, FallocateFlags::empty(), 0, length);
    }
    let mut buffer = vec![0; 1 << 20];
    let mut written = 0;
    loop {
        match source.read(&mut buffer)? {
            0 => return Ok(written),
            n => {
                target.write_all(&buffer[..n])?;
                written += n as u64;
            }
        }
    }
}

/// Copies what is not a hole, inside the kernel.
fn copy_data(source: &File, target: &File) -> io::Result<u64> {
    let length = source.metadata()?.len();
    target.set_len(length)?;
    let mut written = 0;
    let mut at = 0;
    while at < length {
        let (start, end) = match seek(source, SeekFrom::Data(at)) {
            Ok(start) => (start, seek(source, SeekFrom::Hole(start))?),
            Err(rustix::io::Errno::NXIO) => break, // nothing but a hole is left
            Err(_) => (at, length),                // the file system does not tell
        };
        let (mut from, mut to) = (start, start);
        while from < end {
            let most = usize::try_from(end - from).unwrap_or(usize::MAX).min(1 << 30);
            match rustix::fs::copy_file_range(source, Some(&mut from), target, Some(&mut to), most) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()), // the source shrank
                Ok(n) => written += n as u64,
                // Between file systems, or one that lacks it.
                Err(
                    rustix::io::Errno::XDEV
                    | rustix::io::Errno::NOSYS
                    | rustix::io::Errno::OPNOTSUPP
                    | rustix::io::Errno::INVAL,
                ) => {
                    written += copy_range(source, target, from, end)?;
                    from = end;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        at = end;
    }
    Ok(written)
}

fn copy_range(source: &File, target: &File, start: u64, end: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut buffer = vec![0; 1 << 20];
    let mut at = start;
    while at < end {
        let most = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        match source.read_at(&mut buffer[..most], at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                target.write_all_at(&buffer[..n], at)?;
                at += n as u64;
            }
        }
    }
    Ok(end - start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;
    use std::path::PathBuf;

    #[test]
    fn does_not_follow_links_out_of_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("from");
        fs::create_dir(&from).expect("a folder");
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).expect("a link");
        copy_folder(&from, &folder.path().join("to"), None).expect("a copy");
        assert!(!folder.path().join("to/link").exists());
    }

    /// The user of a data folder exchanges its files for links to a file of root's, as long as it takes.
    #[test]
    fn no_file_outside_is_copied_whatever_is_exchanged_meanwhile() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: String| place.path().join(name);
        fs::write(at("secret".into()), "TOP SECRET").expect("written");
        fs::create_dir_all(at("secrets".into())).expect("made");
        fs::write(at("secrets/t.ibd".into()), "TOP SECRET").expect("written");
        fs::create_dir(at("data".into())).expect("made");
        let names: Vec<[PathBuf; 2]> = (0..40)
            .map(|number| ["t", "link"].map(|name| at(format!("data/{name}{number}"))))
            .collect();
        for (number, [file, link]) in names.iter().enumerate() {
            match number % 2 {
                0 => fs::write(file, "rows").expect("written"),
                _ => fs::create_dir(file).expect("made"),
            }
            let leads_to = at(["secret", "secrets"][number % 2].into());
            std::os::unix::fs::symlink(leads_to, link).expect("a link");
        }
        let stop = AtomicBool::new(false);
        let (leaks, copied) = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    for [file, link] in &names {
                        renameat_with(CWD, file, CWD, link, RenameFlags::EXCHANGE).expect("exchanged");
                    }
                }
            });
            let (mut leaks, mut copied) = (0, 0);
            for round in 0..100 {
                let to = at(format!("copy{round}"));
                // One that became a link between two looks is an error.
                let _ = copy_folder(&at("data".into()), &to, None);
                let contents = contents(&to);
                copied += contents.iter().filter(|text| *text == "rows").count();
                leaks += contents.iter().filter(|text| text.contains("SECRET")).count();
                let _ = fs::remove_dir_all(to);
            }
            stop.store(true, Ordering::Relaxed);
            (leaks, copied)
        });
        assert!(copied > 0, "nothing was copied at all");
        assert_eq!(leaks, 0);
    }

    /// The texts of all files of a folder and those in it.
    fn contents(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .flat_map(|entry| match entry.path().is_dir() {
                true => contents(&entry.path()),
                false => vec![fs::read_to_string(entry.path()).unwrap_or_default()],
            })
            .collect()
    }

    /// As by a hard link, where the kernel lets anybody make those.
    #[test]
    fn a_file_of_another_user_in_the_folder_is_an_error() {
        if !rustix::process::geteuid().is_root() {
            testing::skip!("a file of another user: it needs root");
            return;
        }
        let place = tempfile::tempdir().expect("a folder");
        let from = place.path().join("from");
        fs::create_dir(&from).expect("made");
        fs::write(from.join("shadow"), "root's").expect("written");
        std::os::unix::fs::chown(&from, Some(65534), Some(65534)).expect("root may");
        let error = copy_folder(&from, &place.path().join("to"), None).expect_err("root's file");
        assert!(error.to_string().contains("belongs to user 0"), "{error}");
    }

    #[test]
    fn a_redo_log_that_was_never_filled_takes_no_room_and_its_copy_all_of_it() {
        const LENGTH: u64 = 8 << 20;
        let place = tempfile::tempdir().expect("a folder");
        let from = place.path().join("from");
        fs::create_dir_all(from.join("#innodb_redo")).expect("made");
        for name in ["ib_logfile0", "#innodb_redo/#ib_redo7"] {
            let file = File::create(from.join(name)).expect("a file");
            fallocate(&file, FallocateFlags::empty(), 0, LENGTH).expect("room");
            file.write_all_at(&[7; 5000], 1 << 20).expect("written");
            file.write_all_at(&vec![0; 1 << 20], 4 << 20)
                .expect("zeros are written");
            file.sync_all().expect("written out");
        }
        let table = File::create(from.join("t.ibd")).expect("a file");
        table.write_all_at(&vec![0; 1 << 20], 0).expect("written");
        let before = fs::read(from.join("ib_logfile0")).expect("read");
        dig_holes(&from).expect("dug");
        let usage = disk_usage(&from).expect("known");
        assert!((1 << 20..3 << 20).contains(&usage), "{usage}: the table is no redo log");
        assert!(fs::read(from.join("ib_logfile0")).expect("read") == before);
        assert!(copy_size(&from).expect("known") >= 2 * LENGTH);
        let to = place.path().join("to");
        copy_folder(&from, &to, None).expect("copied");
        assert!(fs::read(to.join("ib_logfile0")).expect("read") == before);
        assert!(disk_usage(&to).expect("known") >= 2 * LENGTH);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_copy_has_the_same_bytes_holes_or_not(
            pieces in proptest::collection::vec((0u64..4 << 20, 1usize..9000, any::<u8>()), 0..6),
            tail in 0u64..100_000, redo in any::<bool>()
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let from = folder.path().join("from");
            fs::create_dir_all(from.join("schema")).expect("folders");
            let name = if redo { "ib_logfile0" } else { "schema/t.ibd" };
            let file = File::create(from.join(name)).expect("a file");
            for (at, length, byte) in pieces {
                file.write_all_at(&vec![byte; length], at).expect("a write");
            }
            let length = file.metadata().expect("its length").len() + tail;
            file.set_len(length).expect("a hole at the end");
            let to = folder.path().join("to");
            let copied = copy_folder(&from, &to, None).expect("a copy");
            prop_assert_eq!(copied.files, 1);
            prop_assert!(fs::read(from.join(name)).expect("one") == fs::read(to.join(name)).expect("other"));
            if redo && length > 0 {
                prop_assert!(disk_usage(&to).expect("usage") >= length);
            }
        }
    }
}
