//! Names of code that a program makes itself, as it writes them to `/tmp/perf-PID.map`: a line for each function with its address and
//! size in hexadecimal and its name (tools/perf/Documentation/jit-interface.txt of the kernel).

use rustix::fs::{Mode, OFlags, open};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Most bytes that are read of one; a program that compiles for weeks has some megabytes.
const MOST_BYTES: u64 = 64 << 20;

/// Whether a mapping shows memory of the process and no file, by the name that the kernel or perf gives it (is_anon_memory() and
/// is_no_dso_memory() of tools/perf/util/map.c). Memory that is shared under no name, or under one of memfd_create(2), is of this kind.
#[must_use]
pub fn is_anonymous(name: &str) -> bool {
    const NAMES: [&str; 7] = [
        "//anon",
        "[anon",
        "[heap]",
        "/anon_hugepage",
        "/dev/zero",
        "/memfd:",
        "/SYSV",
    ];
    NAMES.iter().any(|start| name.starts_with(start))
}

/// The functions of a program's own making, by address in its memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PerfMap {
    /// By first address: one past the last, and the name. They do not overlap.
    functions: BTreeMap<u64, (u64, Arc<str>)>,
}

/// What tells one state of the file from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    length: u64,
    written: Option<SystemTime>,
}

impl PerfMap {
    /// One that names nothing.
    pub const NONE: PerfMap = PerfMap {
        functions: BTreeMap::new(),
    };

    /// Where a process writes it, in a root folder.
    #[must_use]
    pub fn path(root: &Path, process: u32) -> PathBuf {
        root.join(format!("tmp/perf-{process}.map"))
    }

    /// Reads one that root, we, or one of these users wrote: in a folder that all may write to, anybody can give a process names.
    ///
    /// # Errors
    /// It is not there, is no file, or is somebody else's.
    pub fn read(path: &Path, owners: &[u32]) -> io::Result<(PerfMap, Version)> {
        // A pipe under that name would be waited for, and a link leads anywhere.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(open(path, flags, Mode::empty())?);
        let facts = file.metadata()?;
        if !facts.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        let own = rustix::process::geteuid().as_raw();
        if facts.uid() != 0 && facts.uid() != own && !owners.contains(&facts.uid()) {
            return Err(io::Error::other(format!("it is user {}'s", facts.uid())));
        }
        let version = Version {
            length: facts.len(),
            written: facts.modified().ok(),
        };
        let mut text = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut text)?;
        Ok((PerfMap::parse(&String::from_utf8_lossy(&text)), version))
    }

    /// The state of the file now.
    #[must_use]
    pub fn version(path: &Path) -> Option<Version> {
        let facts = std::fs::symlink_metadata(path).ok()?;
        Some(Version {
            length: facts.len(),
            written: facts.modified().ok(),
        })
    }

    /// Takes its lines in; a later one stands where an earlier one stood. Others are passed over, as is one that is being written.
    #[must_use]
    pub fn parse(text: &str) -> PerfMap {
        let mut map = PerfMap::default();
        let written = text.rfind('\n').map_or("", |end| &text[..end]);
        for line in written.lines() {
            let mut fields = line.trim_start().splitn(3, ' ');
            let mut number = || {
                let field = fields.next()?;
                u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
            };
            let (Some(start), Some(size)) = (number(), number()) else {
                continue;
            };
            let (Some(end), Some(name)) = (start.checked_add(size), fields.next().map(str::trim)) else {
                continue;
            };
            if size > 0 && !name.is_empty() {
                map.add(start, end, name.into());
            }
        }
        map
    }

    fn add(&mut self, start: u64, end: u64, name: Arc<str>) {
        let before = self.functions.range(..start).next_back();
        if let Some((&first, (reach, known))) = before
            && *reach > start
        {
            let (reach, known) = (*reach, Arc::clone(known));
            self.functions.insert(first, (start, Arc::clone(&known)));
            if reach > end {
                self.functions.insert(end, (reach, known));
            }
        }
        let covered: Vec<u64> = self.functions.range(start..end).map(|(first, _)| *first).collect();
        for first in covered {
            if let Some((reach, known)) = self.functions.remove(&first)
                && reach > end
            {
                self.functions.insert(end, (reach, known));
            }
        }
        self.functions.insert(start, (end, name));
    }

    /// The function at an address of the process, and how far into it that is.
    #[must_use]
    pub fn function(&self, address: u64) -> Option<(&Arc<str>, u64)> {
        let (start, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then(|| (name, address - start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_with_blanks_are_read_and_other_lines_passed_over() {
        let map = PerfMap::parse(
            "7f00 100 LazyCompile:~add /srv/a.js:1\n0x8000 0x10 stub\nnonsense\n9000 0 empty\n9000 10\nffffffffffffffff 2 f\n8010 1 hal",
        );
        let at = |address| map.function(address).map(|(name, offset)| (&**name, offset));
        assert_eq!(at(0x7f10), Some(("LazyCompile:~add /srv/a.js:1", 0x10)));
        assert_eq!(at(0x800f), Some(("stub", 0xf)));
        assert_eq!([0x7eff, 0x8010, 0x9000].map(at), [None; 3]);
    }

    proptest! {
        #[test]
        fn the_last_name_of_an_address_holds(lines in prop::collection::vec((0_u64..60, 1_u64..30), 0..40)) {
            let text: Vec<String> = lines
                .iter()
                .enumerate()
                .map(|(number, (start, size))| format!("{start:x} {size:x} f{number}"))
                .collect();
            let map = PerfMap::parse(&(text.join("\n") + "\n"));
            for address in 0..100 {
                let last = lines.iter().rposition(|(start, size)| (*start..start + size).contains(&address));
                let found = map.function(address).map(|(name, _)| name.to_string());
                prop_assert_eq!(found, last.map(|number| format!("f{number}")));
            }
        }
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("perf-1.map");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
        assert!(PerfMap::read(&path, &[]).is_err());
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(folder.path().join("target"), "1000 10 f\n").expect("written");
        std::os::unix::fs::symlink("target", &path).expect("linked");
        assert!(PerfMap::read(&path, &[]).is_err(), "a link");
        let (map, version) = PerfMap::read(&folder.path().join("target"), &[]).expect("ours");
        assert!(map.function(0x1000).is_some());
        assert_eq!(PerfMap::version(&folder.path().join("target")), Some(version));
    }
}
