//! Copies of data folders: shared blocks where the file system can, else as few bytes as will do.

use crate::error::Error;
use crate::user::ServerUser;
use rustix::fs::{SeekFrom, fallocate, ioctl_ficlone, seek, syncfs};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
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
    let mut bytes = 0;
    for entry in fs::read_dir(folder).map_err(Error::system("read", folder))? {
        let entry = entry.map_err(Error::system("read", folder))?;
        let meta = entry.metadata().map_err(Error::system("look at", entry.path()))?;
        bytes += if meta.is_dir() {
            disk_usage(&entry.path())?
        } else {
            meta.blocks() * 512
        };
    }
    Ok(bytes)
}

/// Copies a folder of plain files and folders to `to`, which must not exist, for `owner`, and waits until the disk
/// has it: what is still to be written would otherwise be written during the measurement.
pub fn copy_folder(from: &Path, to: &Path, owner: Option<&ServerUser>) -> Result<Copied, Error> {
    let mut copied = Copied::default();
    copy_level(from, to, owner, &mut copied)?;
    let folder = File::open(to).map_err(Error::system("open", to))?;
    syncfs(&folder).map_err(Error::errno("write out the copy", to))?;
    Ok(copied)
}

fn copy_level(from: &Path, to: &Path, owner: Option<&ServerUser>, copied: &mut Copied) -> Result<(), Error> {
    fs::DirBuilder::new()
        .mode(0o700)
        .create(to)
        .map_err(Error::system("make the folder", to))?;
    for entry in fs::read_dir(from).map_err(Error::system("read", from))? {
        let entry = entry.map_err(Error::system("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(Error::system("look at", &source))?;
        if kind.is_dir() {
            copy_level(&source, &target, owner, copied)?;
        } else if kind.is_file() {
            copy_file(&source, &target, copied)?;
            if let Some(owner) = owner {
                owner.own(&target)?;
            }
        }
        // Links are not followed: they would lead out of the folder. Sockets are not data.
    }
    match owner {
        Some(owner) => owner.own(to),
        None => Ok(()),
    }
}

fn copy_file(from: &Path, to: &Path, copied: &mut Copied) -> Result<(), Error> {
    let source = File::open(from).map_err(Error::system("open", from))?;
    let target = File::options()
        .write(true)
        .create_new(true)
        .mode(0o640)
        .open(to)
        .map_err(Error::system("make", to))?;
    copied.files += 1;
    // The redo log is overwritten in place and flushed at every commit. If its blocks were shared or missing, each
    // first write would have to allocate one, and the first minute would measure the file system.
    let written_in_place = is_redo_log(from);
    if !written_in_place && ioctl_ficlone(&target, &source).is_ok() {
        copied.reflinked += 1;
        return Ok(());
    }
    let written = if written_in_place {
        copy_all(&source, &target)
    } else {
        copy_data(&source, &target)
    };
    copied.bytes += written.map_err(Error::system("copy to", to))?;
    Ok(())
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
        let _ = fallocate(target, rustix::fs::FallocateFlags::empty(), 0, length);
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

    #[test]
    fn does_not_follow_links_out_of_the_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let from = folder.path().join("from");
        fs::create_dir(&from).expect("a folder");
        std::os::unix::fs::symlink("/etc/passwd", from.join("link")).expect("a link");
        copy_folder(&from, &folder.path().join("to"), None).expect("a copy");
        assert!(!folder.path().join("to/link").exists());
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
