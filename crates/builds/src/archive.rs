//! Reads archives into a [`Tree`]: tar, plain or compressed by gzip, xz or zstd, and zip; and folders, as if they were one.

use crate::error::Error;
use crate::progress::Watcher;
use crate::tree::Tree;
use crate::zstd_frames::ZstdFrames;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Whether an entry is kept.
pub(crate) type Keep<'a> = &'a dyn Fn(&Path) -> bool;

/// How an archive is packed, by its first bytes: names lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Tar,
    Gzip,
    Xz,
    Zstd,
    Zip,
}

/// Where the magic number of a tar header lies (POSIX ustar).
const USTAR: std::ops::Range<usize> = 257..262;
/// Kibibytes that a reader of xz may take. `xz -9` asks for 65 MiB.
const XZ_MEMORY: u32 = 512 << 10;
/// Bytes of headers before one file: names longer than the header's field, and the times that pax keeps.
const HEADERS: u64 = 1 << 20;
/// A symbolic link's text is a path (PATH_MAX).
const LONGEST_TEXT: u64 = 4096;

/// Unpacks an archive.
pub(crate) fn unpack(path: &Path, tree: &mut Tree, keep: Keep<'_>, watcher: &mut Watcher<'_>) -> Result<(), Error> {
    let mut file = File::open(path).map_err(Error::system("open", path))?;
    let length = file.metadata().map_err(Error::system("look at", path))?.len();
    let packing = packing(&mut file).map_err(Error::system("read", path))?;
    let Some(packing) = packing else {
        return tree.broken("it is no tar, tar.gz, tar.xz, tar.zst or zip");
    };
    let done = Rc::new(Cell::new(0));
    let counted = BufReader::with_capacity(
        1 << 17,
        Counted {
            inner: file,
            done: done.clone(),
        },
    );
    let mut show = |watcher: &mut Watcher<'_>| watcher.progress.bytes(done.get().min(length), Some(length));
    match packing {
        Packing::Zip => zip(counted, tree, keep, watcher),
        Packing::Tar => tar(counted, tree, keep, watcher, &mut show),
        Packing::Gzip => tar(
            flate2::bufread::MultiGzDecoder::new(counted),
            tree,
            keep,
            watcher,
            &mut show,
        ),
        Packing::Xz => {
            let reader = lzma_rust2::XzReader::new_mem_limit(counted, true, XZ_MEMORY);
            tar(reader, tree, keep, watcher, &mut show)
        }
        Packing::Zstd => tar(ZstdFrames::new(counted), tree, keep, watcher, &mut show),
    }
}

fn packing(file: &mut File) -> io::Result<Option<Packing>> {
    let mut start = Vec::new();
    file.take(512).read_to_end(&mut start)?;
    file.rewind()?;
    Ok(match start.as_slice() {
        [0x1f, 0x8b, ..] => Some(Packing::Gzip),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Packing::Xz),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
        [b'P', b'K', 3, 4, ..] => Some(Packing::Zip),
        start if start.get(USTAR) == Some(b"ustar") => Some(Packing::Tar),
        _ => None,
    })
}

/// Counts the bytes that were read.
struct Counted {
    inner: File,
    done: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.done.set(self.done.get() + count as u64);
        Ok(count)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// Ends with an error when more was read than allowed: the reader of tar keeps headers in memory whatever their length.
struct Allowed<R> {
    inner: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Allowed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.left.get();
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("its headers have no end"));
        }
        let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let count = self.inner.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left.set(left - count as u64);
        Ok(count)
    }
}

/// Unpacks a tar that is read from start to end.
pub(crate) fn tar(
    reader: impl Read,
    tree: &mut Tree,
    keep: Keep<'_>,
    watcher: &mut Watcher<'_>,
    show: &mut dyn FnMut(&mut Watcher<'_>),
) -> Result<(), Error> {
    let left = Rc::new(Cell::new(HEADERS));
    let mut archive = tar::Archive::new(Allowed {
        inner: reader,
        left: left.clone(),
    });
    let mut entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => return tree.broken(error.to_string()),
    };
    loop {
        watcher.go_on()?;
        left.set(HEADERS);
        let mut entry = match entries.next() {
            None => return Ok(()),
            Some(Ok(entry)) => entry,
            Some(Err(error)) => return tree.broken(told(&error)),
        };
        left.set(u64::MAX);
        let name = PathBuf::from(OsStr::from_bytes(&entry.path_bytes()));
        let place = tree.place(&name)?;
        let kind = entry.header().entry_type();
        let is_kept = keep(&place);
        let target = entry
            .link_name_bytes()
            .map(|text| PathBuf::from(OsStr::from_bytes(&text)));
        let executable = entry.header().mode().is_ok_and(|mode| mode & 0o111 != 0);
        match (kind, target) {
            (tar::EntryType::XGlobalHeader, _) => {}
            (tar::EntryType::Directory, _) => {
                if is_kept {
                    tree.folder(&place)?;
                }
            }
            (tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse, _) => {
                if is_kept {
                    tree.file(&place, executable, &mut entry, watcher)?;
                }
            }
            (tar::EntryType::Symlink, Some(text)) => {
                if is_kept {
                    tree.link(&place, &text)?;
                }
            }
            (tar::EntryType::Link, Some(target)) => {
                let normal: PathBuf = target.components().filter(|part| part.as_os_str() != ".").collect();
                if is_kept && keep(&normal) {
                    tree.hard_link(&place, &target)?;
                }
            }
            _ => {
                return tree.refuse(format!(
                    "its entry '{}' is a device, a pipe or of no kind that is known",
                    name.display()
                ));
            }
        }
        // Whatever was not kept is read here, where it is counted, and not as a way to the next header.
        tree.skip(&mut entry, watcher)?;
        show(watcher);
    }
}

/// tar's errors with their causes.
fn told(error: &io::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        cause = error.source();
    }
    words
}

fn zip(reader: impl Read + Seek, tree: &mut Tree, keep: Keep<'_>, watcher: &mut Watcher<'_>) -> Result<(), Error> {
    /// Type bits of a Unix mode, and what they say of links, folders and files.
    const TYPE: u32 = 0o170_000;
    const KNOWN: [u32; 4] = [0, 0o120_000, 0o040_000, 0o100_000];
    let mut archive = match zip::ZipArchive::new(reader) {
        Ok(archive) => archive,
        Err(error) => return tree.broken(error.to_string()),
    };
    let sum = archive.decompressed_size().and_then(|bytes| u64::try_from(bytes).ok());
    for index in 0..archive.len() {
        watcher.go_on()?;
        let mut entry = match archive.by_index(index) {
            Ok(entry) => entry,
            Err(error) => return tree.broken(error.to_string()),
        };
        let name = PathBuf::from(OsStr::from_bytes(entry.name_raw()));
        let place = tree.place(&name)?;
        if !keep(&place) {
            continue;
        }
        let mode = entry.unix_mode().unwrap_or(0);
        if entry.is_dir() {
            tree.folder(&place)?;
        } else if !KNOWN.contains(&(mode & TYPE)) {
            return tree.refuse(format!("its entry '{}' is a device or a pipe", name.display()));
        } else if entry.is_symlink() {
            let mut text = Vec::new();
            match (&mut entry).take(LONGEST_TEXT).read_to_end(&mut text) {
                Ok(_) => tree.link(&place, Path::new(OsStr::from_bytes(&text)))?,
                Err(error) => return tree.broken(error.to_string()),
            }
        } else {
            tree.file(&place, mode & 0o111 != 0, &mut entry, watcher)?;
        }
        watcher.progress.bytes(tree.bytes(), sum);
    }
    Ok(())
}

/// Copies a folder as if it were an archive. Sockets and pipes are left out; so is what the server that it holds has as `data`, and
/// what not everybody may read: the copy is for everybody.
pub(crate) fn copy(folder: &Path, tree: &mut Tree, keep: Keep<'_>, watcher: &mut Watcher<'_>) -> Result<(), Error> {
    let mut ahead = vec![PathBuf::new()];
    let mut left_out: Vec<PathBuf> = Vec::new();
    while let Some(level) = ahead.pop() {
        let path = folder.join(&level);
        let entries = fs::read_dir(&path).map_err(Error::system("read", &path))?;
        for entry in entries {
            watcher.go_on()?;
            let entry = entry.map_err(Error::system("read", &path))?;
            let place = tree.place(&level.join(entry.file_name()))?;
            if !keep(&place) || place == Path::new("data") {
                continue;
            }
            let from = entry.path();
            let facts = fs::symlink_metadata(&from).map_err(Error::system("look at", &from))?;
            let mode = facts.permissions().mode();
            let is_private = (facts.is_dir() && mode & 0o005 != 0o005) || (facts.is_file() && mode & 0o004 == 0);
            if is_private {
                left_out.push(place);
                continue;
            }
            if facts.is_dir() {
                tree.folder(&place)?;
                ahead.push(place);
            } else if facts.is_symlink() {
                let text = fs::read_link(&from).map_err(Error::system("read", &from))?;
                tree.link(&place, &text)?;
            } else if facts.is_file() {
                let mut file = File::open(&from).map_err(Error::system("open", &from))?;
                let executable = mode & 0o111 != 0;
                tree.file(&place, executable, &mut file, watcher)?;
            }
            watcher.progress.bytes(tree.bytes(), None);
        }
    }
    if let Some(first) = left_out.first() {
        watcher.progress.note(&format!(
            "left out, as not everybody may read it: {}{} (chmod -R o+rX makes it readable)",
            folder.join(first).display(),
            match left_out.len() {
                1 => String::new(),
                count => format!(" and {} more", count - 1),
            }
        ));
    }
    Ok(())
}
