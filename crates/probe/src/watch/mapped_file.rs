//! The file that a process has mapped, and none that only has its name.
//!
//! A server goes on running the file that it was started from when an update puts another one in its place, and in a container the
//! same path leads elsewhere. Unwind rules and names of another file are wrong without anything looking wrong.

use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use object::read::elf::ElfFile64;
use object::{Endianness, Object as _, ObjectSection as _};
use scaleprof_binary::loads;

use super::maps::{CodeMapping, Mapped};
use crate::plain::NOT_FOUND;

/// What tells a mapped file from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Identity {
    /// As `/proc/PID/maps` writes it: `fe:00`.
    device: String,
    inode: u64,
    build_id: Option<Vec<u8>>,
}

impl Identity {
    /// That of a file whose bytes are known to be those that are mapped.
    pub(crate) fn of(what: &Mapped, bytes: &[u8]) -> Self {
        let (device, inode) = match what {
            Mapped::File { device, inode, .. } => (device.clone(), *inode),
            Mapped::Vdso | Mapped::Anonymous => Default::default(),
        };
        Self {
            device,
            inode,
            build_id: build_id(bytes),
        }
    }

    /// Reads the file at one of these paths that is the same one. For when its process may have ended: the number of its inode may
    /// be another file's by then, its build-id is not.
    pub(crate) fn read(&self, paths: &[&Path]) -> io::Result<Vec<u8>> {
        let mut failed = io::Error::from(io::ErrorKind::NotFound);
        for path in paths {
            match read(path) {
                Ok((facts, bytes)) => {
                    let same = match &self.build_id {
                        Some(known) => build_id(&bytes).as_ref() == Some(known),
                        None => has_number(&facts, &self.device, self.inode),
                    };
                    if same {
                        return Ok(bytes);
                    }
                    failed = io::Error::other("another file has its name now");
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }
}

/// Where the file of a mapping can be opened, and its bytes. `exact` is the mapping itself, which only the privileged may open;
/// else it is the first of `paths` that is the same file. `memory` fills a piece of the process's memory, or says that it cannot.
///
/// # Errors
/// In words: it was replaced, or cannot be read.
pub(crate) fn find(
    mapping: &CodeMapping,
    exact: &Path,
    paths: &[&Path],
    memory: &mut dyn FnMut(u64, &mut [u8]) -> bool,
) -> Result<(PathBuf, Vec<u8>), String> {
    if let Ok((_, bytes)) = read(exact) {
        return Ok((exact.to_owned(), bytes));
    }
    let Mapped::File { device, inode, .. } = &mapping.what else {
        return Err("it is no file".to_owned());
    };
    let mut why = NOT_FOUND.to_owned();
    for path in paths {
        match read(path) {
            Ok((facts, bytes)) => {
                // Some file systems give a file another device in the memory map than anywhere else: then its content must do, or,
                // where the memory is barred, its number alone.
                let is_same = has_number(&facts, device, *inode)
                    || is_in_memory(mapping, &bytes, memory).unwrap_or(facts.ino() == *inode);
                if is_same {
                    return Ok((path.to_path_buf(), bytes));
                }
                why = NOT_FOUND.to_owned();
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => why = format!("it cannot be read: {error}"),
        }
    }
    Err(why)
}

fn read(path: &Path) -> io::Result<(Metadata, Vec<u8>)> {
    let mut file = File::open(path)?;
    let facts = file.metadata()?;
    let mut bytes = Vec::with_capacity(usize::try_from(facts.len()).unwrap_or_default());
    file.read_to_end(&mut bytes)?;
    Ok((facts, bytes))
}

fn has_number(facts: &Metadata, device: &str, inode: u64) -> bool {
    let (major, minor) = (rustix::fs::major(facts.dev()), rustix::fs::minor(facts.dev()));
    facts.ino() == inode && format!("{major:02x}:{minor:02x}") == device
}

fn build_id(bytes: &[u8]) -> Option<Vec<u8>> {
    let elf = ElfFile64::<Endianness>::parse(bytes).ok()?;
    Some(elf.build_id().ok().flatten()?.to_vec())
}

/// Whether a file is the one that is mapped, by the note of its build-id, or by the code itself where it has none. Nothing where the
/// memory cannot be read.
fn is_in_memory(mapping: &CodeMapping, bytes: &[u8], memory: &mut dyn FnMut(u64, &mut [u8]) -> bool) -> Option<bool> {
    let Some(bias) = loads::bias(mapping.start, mapping.offset, &loads::segments(bytes)) else {
        return Some(false);
    };
    let note = ElfFile64::<Endianness>::parse(bytes).ok().and_then(|elf| {
        let section = elf.section_by_name(".note.gnu.build-id")?;
        Some((section.address().wrapping_add(bias), section.data().ok()?))
    });
    let (address, expected) = match note {
        Some(note) => note,
        None => {
            let length = (mapping.end - mapping.start).min(MOST_CODE);
            let start = usize::try_from(mapping.offset).unwrap_or(usize::MAX);
            let code = bytes.get(start..).unwrap_or_default();
            (mapping.start, &code[..code.len().min(length as usize)])
        }
    };
    let mut first = [0];
    if !memory(mapping.start, &mut first) {
        return None;
    }
    let mut found = vec![0; expected.len()];
    Some(!expected.is_empty() && memory(address, &mut found) && found == expected)
}

/// Bytes of code that are compared.
const MOST_CODE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A library with one function, and what a process has in memory that mapped its code at 0x7000_0000_0000.
    struct Library {
        path: PathBuf,
        bytes: Vec<u8>,
        mapping: CodeMapping,
    }

    const BIAS: u64 = 0x7000_0000_0000;

    fn library(folder: &Path, name: &str, function: &str, build_id: &str) -> Library {
        let path = folder.join(name);
        let source = folder.join("source.c");
        std::fs::write(
            &source,
            format!("int {function}(void) {{ return {}; }}", function.len()),
        )
        .expect("written");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", build_id, "-o"])
            .args([&path, &source])
            .status();
        assert!(built.expect("cc runs").success());
        let bytes = std::fs::read(&path).expect("readable");
        let facts = std::fs::metadata(&path).expect("there");
        let code = loads::segments(&bytes)
            .into_iter()
            .find(|segment| segment.executable)
            .expect("code");
        let dev = facts.dev();
        let mapping = CodeMapping {
            start: BIAS + code.svma,
            end: BIAS + code.svma + 0x1000,
            offset: code.file_offset,
            what: Mapped::File {
                path: path.clone(),
                device: format!("{:02x}:{:02x}", rustix::fs::major(dev), rustix::fs::minor(dev)),
                inode: facts.ino(),
            },
        };
        Library { path, bytes, mapping }
    }

    impl Library {
        fn memory(&self) -> impl FnMut(u64, &mut [u8]) -> bool + use<'_> {
            move |address: u64, into: &mut [u8]| {
                let segments = loads::segments(&self.bytes);
                let found = segments.iter().find(|one| one.contains(address.wrapping_sub(BIAS)));
                let Some(segment) = found else { return false };
                let place = (address - BIAS - segment.svma + segment.file_offset) as usize;
                let Some(bytes) = self.bytes.get(place..place + into.len()) else {
                    return false;
                };
                into.copy_from_slice(bytes);
                true
            }
        }

        fn found(&self) -> Result<Vec<u8>, String> {
            let nowhere = self.path.with_extension("exact");
            find(&self.mapping, &nowhere, &[&self.path], &mut self.memory()).map(|(_, bytes)| bytes)
        }
    }

    #[test]
    fn a_file_that_took_the_place_of_the_mapped_one_is_not_taken_for_it() {
        for build_id in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
            let folder = tempfile::tempdir().expect("a folder");
            let mapped = library(folder.path(), "plugin.so", "one", build_id);
            assert_eq!(mapped.found().as_ref(), Ok(&mapped.bytes), "it is still there");
            let other = library(folder.path(), "other.so", "another", build_id);
            std::fs::rename(&other.path, &mapped.path).expect("replaced");
            let refused = mapped.found().expect_err("it is another file");
            assert!(refused.contains("replaced"), "{refused}");
            // A copy of the mapped one, under another number.
            let copy = folder.path().join("copy.so");
            std::fs::write(&copy, &mapped.bytes).expect("written");
            std::fs::rename(&copy, &mapped.path).expect("replaced");
            assert_eq!(mapped.found().as_ref(), Ok(&mapped.bytes), "{build_id}");
            std::fs::remove_file(&mapped.path).expect("removed");
            let refused = mapped.found().expect_err("it is gone");
            assert!(refused.contains("removed"), "{refused}");
        }
    }

    /// Where nobody may look into the process, the number of the file is all that there is, on whatever device.
    #[test]
    fn a_file_of_a_process_whose_memory_is_barred_is_told_by_its_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut mapped = library(folder.path(), "plugin.so", "one", "-Wl,--build-id=sha1");
        if let Mapped::File { device, .. } = &mut mapped.mapping.what {
            *device = "00:2f".to_owned();
        }
        let found = |library: &Library| {
            let nowhere = folder.path().join("exact");
            find(&library.mapping, &nowhere, &[&library.path], &mut |_, _| false).map(|(_, bytes)| bytes)
        };
        assert_eq!(found(&mapped).as_ref(), Ok(&mapped.bytes));
        if let Mapped::File { inode, .. } = &mut mapped.mapping.what {
            *inode += 1;
        }
        assert!(found(&mapped).is_err());
    }

    #[test]
    fn once_the_process_is_gone_only_the_same_file_is_read_by_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let mapped = library(folder.path(), "plugin.so", "one", "-Wl,--build-id=sha1");
        let identity = Identity::of(&mapped.mapping.what, &mapped.bytes);
        let gone = folder.path().join("gone");
        let read = || identity.read(&[&gone, &mapped.path]).map_err(|error| error.to_string());
        assert_eq!(read().as_ref(), Ok(&mapped.bytes));
        let other = library(folder.path(), "other.so", "another", "-Wl,--build-id=sha1");
        std::fs::write(&mapped.path, &other.bytes).expect("written in its place, under the same number");
        assert!(read().expect_err("another file").contains("another file"));
    }
}
