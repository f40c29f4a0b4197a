//! The code of the watched process: which files it has mapped where, and their unwind rules.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scaleprof_binary::loads::{self, Segment};
use scaleprof_binary::perf_map::{PerfMap, Version};
use scaleprof_binary::unwind::UnwindTable;
use scaleprof_profile::RawStack;
use scaleprof_profile::names::OWN_MAKING;

use super::layout::{MAX_MAPPINGS, Mapping, NO_OBJECT};
use super::mapped_file::{self, Identity};
use super::maps::{CodeMapping, Mapped, parse_maps};
use super::native::{self, StartRegisters};
use super::tables::CodeTables;

/// A file that the process runs code from.
#[derive(Debug, Clone)]
pub struct CodeFile {
    /// What it is called in `/proc/PID/maps`; `[vdso]` for the kernel's own.
    pub name: PathBuf,
    /// A path under which this program can open it, while the process lives.
    pub open_as: PathBuf,
    /// Beside which files with its symbols may lie: its path as this program sees it.
    pub(crate) look_beside: PathBuf,
    /// What tells it from another file of its name.
    pub(crate) identity: Identity,
    /// Its bytes where it is no file (the vDSO).
    pub bytes: Option<Vec<u8>>,
    /// Why its stacks cannot be walked, where that is so.
    pub problem: Option<String>,
    segments: Vec<Segment>,
    object: Option<u32>,
}

/// Where a file lies in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodePlace {
    /// First address.
    pub start: u64,
    /// One past the last.
    pub end: u64,
    /// Address in memory less address in the file.
    pub bias: u64,
    /// Position in [`ProcessCode::files`].
    pub file: usize,
}

/// Where the code of a process lies, to give names to addresses.
#[derive(Debug, Clone)]
pub struct CodeMap {
    /// Its files.
    pub files: Vec<CodeFile>,
    /// Where they are mapped, by rising address.
    pub places: Vec<CodePlace>,
    /// Where files were mapped before, the last ones last: samples of then still name them, where nothing else lies there now.
    pub former: Vec<CodePlace>,
    /// Names of the functions in anonymous memory.
    pub own_making: Arc<PerfMap>,
}

/// Places that are kept of what is mapped no more: a server that loads and unloads for ever must not fill our memory.
const MOST_FORMER: usize = 1024;

/// All code of one process. Files that were unmapped stay known: samples of before still name them.
#[derive(Debug)]
pub struct ProcessCode {
    pid: u32,
    files: Vec<CodeFile>,
    known: BTreeMap<Mapped, usize>,
    places: Vec<CodePlace>,
    former: Vec<CodePlace>,
    tables: CodeTables,
    /// Names of code in anonymous memory, and of which state of their file; none before some was met.
    own_making: Option<(Arc<PerfMap>, Option<Version>)>,
}

impl CodeFile {
    /// Whether it is no file: code in anonymous memory, which the process made or copied there.
    pub fn is_of_own_making(&self) -> bool {
        self.name.as_os_str() == OWN_MAKING
    }
}

/// A number in the text of `/proc/PID/status`.
fn field_of(
    status: &str,
    name: &str,
    which: impl FnOnce(std::str::SplitWhitespace<'_>) -> Option<&str>,
) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    which(line.split_whitespace())?.parse().ok()
}

impl ProcessCode {
    /// Reads the mappings of a process and the unwind rules of all its files.
    ///
    /// # Errors
    /// Where `/proc/PID/maps` cannot be read: it belongs to another user, or the server was started by root with `--user`
    /// and may not be looked into.
    pub fn of(pid: u32) -> io::Result<Self> {
        let mut code = Self {
            pid,
            files: Vec::new(),
            known: BTreeMap::new(),
            places: Vec::new(),
            former: Vec::new(),
            tables: CodeTables::default(),
            own_making: None,
        };
        code.refresh()?;
        Ok(code)
    }

    /// Looks again: libraries may have been loaded. True where anything changed.
    pub fn refresh(&mut self) -> io::Result<bool> {
        let text = std::fs::read(format!("/proc/{}/maps", self.pid))?;
        let mappings = parse_maps(&String::from_utf8_lossy(&text));
        if mappings.is_empty() {
            // It is about to end: what it had still names the samples of before.
            return Ok(false);
        }
        let mut places = Vec::new();
        for mapping in &mappings {
            let Some(file) = self.file_of(mapping) else { continue };
            let bias = match mapping.what {
                // No file: its addresses are those of the process.
                Mapped::Anonymous => Some(0),
                _ => loads::bias(mapping.start, mapping.offset, &self.files[file].segments),
            };
            let Some(bias) = bias else { continue };
            let place = CodePlace {
                start: mapping.start,
                end: mapping.end,
                bias,
                file,
            };
            match places.last_mut() {
                // Pieces that were made one after the other.
                Some(CodePlace {
                    end,
                    bias: 0,
                    file: before,
                    ..
                }) if *end == place.start && *before == file && bias == 0 => {
                    *end = place.end;
                }
                _ => places.push(place),
            }
        }
        let changed = places != self.places;
        let before = std::mem::replace(&mut self.places, places);
        if changed {
            self.former.retain(|place| !self.places.contains(place));
            // Anonymous memory is called the same wherever it lies.
            let files = before
                .into_iter()
                .filter(|place| !self.files[place.file].is_of_own_making());
            let gone = files.filter(|place| !self.places.contains(place));
            self.former.extend(gone);
            let too_many = self.former.len().saturating_sub(MOST_FORMER);
            self.former.drain(..too_many);
            let mapped = |place: &CodePlace| Mapping {
                start: place.start,
                end: place.end,
                bias: place.bias,
                object: self.files[place.file].object.unwrap_or(NO_OBJECT),
                reserved: 0,
            };
            let own_making = |place: &&CodePlace| self.files[place.file].is_of_own_making();
            // A program that compiles for days has thousands of pieces. Those that find no room must not be the libraries'.
            let room = MAX_MAPPINGS.saturating_sub(self.places.iter().filter(|place| !own_making(place)).count());
            let (made, files): (Vec<&CodePlace>, Vec<&CodePlace>) = self.places.iter().partition(own_making);
            let kept = files.into_iter().chain(made.into_iter().take(room));
            let mapped = kept.map(mapped).collect();
            self.tables.set_mappings(mapped);
        }
        Ok(changed)
    }

    /// Whether it has code in anonymous memory.
    pub(crate) fn has_own_making(&self) -> bool {
        self.known.contains_key(&Mapped::Anonymous)
    }

    /// Reads the names that the process gives code in anonymous memory, where it has some and they are others by now.
    fn read_names_of_own_making(&mut self) {
        let Some(file) = self.known.get(&Mapped::Anonymous).copied() else {
            return;
        };
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        // Its number in its own namespace, and its effective user: /proc/PID itself may be root's.
        let number = field_of(&status, "NSpid:", |mut numbers| numbers.next_back()).unwrap_or(self.pid);
        let owner = field_of(&status, "Uid:", |mut users| users.nth(1));
        let path = PerfMap::path(&root, number);
        let version = PerfMap::version(&path);
        if self.own_making.as_ref().is_some_and(|(_, known)| *known == version) {
            return;
        }
        let read = PerfMap::read(&path, owner.as_slice());
        let files = &mut self.files;
        files[file].problem = read.as_ref().err().map(|error| {
            format!(
                "code in anonymous memory, generated or copied by the server: no symbols, because of {}: {error}",
                path.display()
            )
        });
        self.own_making = Some((Arc::new(read.map(|(map, _)| map).unwrap_or_default()), version));
    }

    /// The files, in the order in which they were seen.
    pub fn files(&self) -> &[CodeFile] {
        &self.files
    }

    /// Where they lie now, by rising address.
    pub fn places(&self) -> &[CodePlace] {
        &self.places
    }

    /// The files and where they lie, apart from the tables.
    pub fn map(&mut self) -> CodeMap {
        self.read_names_of_own_making();
        CodeMap {
            files: self.files.clone(),
            places: self.places.clone(),
            former: self.former.clone(),
            own_making: self
                .own_making
                .as_ref()
                .map(|(names, _)| Arc::clone(names))
                .unwrap_or_default(),
        }
    }

    pub(crate) fn tables(&self) -> &CodeTables {
        &self.tables
    }

    /// Walks a stack with the same code that runs in the kernel; `read` gives words of the thread's memory.
    pub fn unwind(&self, start: StartRegisters, read: &mut dyn FnMut(u64) -> Option<u64>) -> RawStack {
        native::unwind(&self.tables, start, read)
    }

    /// A reader of the process's memory, for [`unwind`](Self::unwind).
    pub fn memory(&self) -> io::Result<impl FnMut(u64) -> Option<u64> + use<>> {
        let memory = File::open(format!("/proc/{}/mem", self.pid))?;
        Ok(move |address| {
            let mut word = [0; 8];
            memory.read_exact_at(&mut word, address).ok()?;
            Some(u64::from_ne_bytes(word))
        })
    }

    fn file_of(&mut self, mapping: &CodeMapping) -> Option<usize> {
        if let Some(file) = self.known.get(&mapping.what) {
            return Some(*file);
        }
        if mapping.what == Mapped::Anonymous {
            return Some(self.add_own_making());
        }
        let (name, look_beside, found) = match &mapping.what {
            Mapped::File { path, .. } => {
                let inside = self.inside(path);
                let look_beside = match is_same_file(&inside, path) {
                    true => path.clone(),
                    false => inside.clone(),
                };
                (path.clone(), look_beside, self.find(mapping, &inside, path))
            }
            _ => {
                let bytes = self
                    .vdso(mapping)
                    .map_err(|error| format!("it cannot be read: {error}"));
                (
                    PathBuf::from("[vdso]"),
                    PathBuf::new(),
                    bytes.map(|bytes| (PathBuf::new(), bytes)),
                )
            }
        };
        let (open_as, bytes) = match found {
            Ok((open_as, bytes)) => (open_as, Ok(bytes)),
            Err(why) => (PathBuf::new(), Err(why)),
        };
        let mut file = CodeFile {
            name,
            open_as,
            look_beside,
            identity: Identity::of(&mapping.what, bytes.as_deref().unwrap_or_default()),
            bytes: None,
            problem: None,
            segments: Vec::new(),
            object: None,
        };
        match bytes {
            Ok(bytes) => {
                file.segments = loads::segments(&bytes);
                match UnwindTable::from_elf(&bytes) {
                    Ok(table) => {
                        file.object = self.tables.add_object(&table);
                        if file.object.is_none() {
                            file.problem = Some("the process maps more files than there is room for".to_owned());
                        }
                    }
                    Err(error) => file.problem = Some(error.to_string()),
                }
                file.bytes = (mapping.what == Mapped::Vdso).then_some(bytes);
            }
            Err(why) => file.problem = Some(why),
        }
        let index = self.files.len();
        self.files.push(file);
        self.known.insert(mapping.what.clone(), index);
        Some(index)
    }

    /// All code in anonymous memory, as one file without rules: its frames are left by their frame pointers.
    fn add_own_making(&mut self) -> usize {
        let index = self.files.len();
        self.files.push(CodeFile {
            name: OWN_MAKING.into(),
            open_as: PathBuf::new(),
            look_beside: PathBuf::new(),
            identity: Identity::of(&Mapped::Anonymous, &[]),
            bytes: None,
            problem: None,
            segments: Vec::new(),
            object: None,
        });
        self.known.insert(Mapped::Anonymous, index);
        index
    }

    /// A path of the process as this program sees it.
    fn inside(&self, path: &Path) -> PathBuf {
        let mut inside = std::ffi::OsString::from(format!("/proc/{}/root", self.pid));
        inside.push(path);
        inside.into()
    }

    /// The file of a mapping: the mapping itself where the kernel lets us open it (also when the file was replaced or deleted
    /// since), else the path as the process sees it, or as this program does, if that is the same file.
    fn find(&self, mapping: &CodeMapping, inside: &Path, path: &Path) -> Result<(PathBuf, Vec<u8>), String> {
        let pid = self.pid;
        let exact = PathBuf::from(format!("/proc/{pid}/map_files/{:x}-{:x}", mapping.start, mapping.end));
        let memory = File::open(format!("/proc/{pid}/mem")).ok();
        let mut read = |address: u64, into: &mut [u8]| {
            let memory = memory.as_ref();
            memory.is_some_and(|memory| memory.read_exact_at(into, address).is_ok())
        };
        mapped_file::find(mapping, &exact, &[inside, path], &mut read)
    }

    fn vdso(&self, mapping: &CodeMapping) -> io::Result<Vec<u8>> {
        let memory = File::open(format!("/proc/{}/mem", self.pid))?;
        let length = usize::try_from(mapping.end - mapping.start).unwrap_or_default();
        let mut bytes = vec![0; length];
        memory.read_exact_at(&mut bytes, mapping.start)?;
        Ok(bytes)
    }
}

/// Whether two paths lead to one file, or to none.
fn is_same_file(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| std::fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()));
    number(one) == number(other)
}
