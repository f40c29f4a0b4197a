//! The files of code that a recording names, where they are now, and what is read of them.

use super::file_search::{Found, Search, build_id_of};
use super::record::Mapped;
use super::symbols_ahead::{self, SymbolsAhead};
use crate::Frame;
use crate::import::{ReadOptions, RecordedFile};
use crate::names::{OWN_MAKING, of_own_making};
use crate::walk::UnwindRules;
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::loads::{self, Segment};
use scaleprof_binary::perf_map::PerfMap;
use scaleprof_binary::symbols::SymbolFile;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, OnceLock};

/// The kernel's code for user space.
const VDSO: &str = "[vdso]";
/// What the kernel puts behind the path of a file that is gone.
pub(super) const DELETED: &str = " (deleted)";
/// Files that one recording may name.
const MOST_FILES: usize = 1 << 20;

/// The number of a file in a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileId(pub(super) u32);

/// All files of a recording.
#[derive(Debug, Default)]
pub(super) struct Files {
    places: Search,
    /// Build-ids by path, from the recording's header.
    build_ids: HashMap<String, String>,
    files: Vec<CodeFile>,
    by_name: HashMap<(String, Option<String>), FileId>,
    /// A path may be written in many ways, and each file is kept in memory.
    by_place: HashMap<(PathBuf, String, Option<String>), FileId>,
    /// Code in anonymous memory by process and first address, and its names by process, or why there are none.
    by_start: HashMap<(u32, u64), FileId>,
    own_making: HashMap<u32, Arc<OwnMaking>>,
    /// Symbols that are read before anybody asked for them.
    ahead: SymbolsAhead,
}

/// A file of code.
#[derive(Debug)]
pub(super) struct CodeFile {
    /// As the recorded machine called it.
    path: String,
    /// In hexadecimal: as recorded, or else that of the file that was found.
    build_id: Option<String>,
    found: Result<Found, String>,
    segments: Vec<Segment>,
    rules: OnceLock<Option<Arc<UnwindRules>>>,
    /// Of code in anonymous memory the first address in the process, and its names.
    own_making: Option<(u64, Arc<OwnMaking>)>,
}

/// The names of a process's code in anonymous memory, read when the first is asked for: of most processes of a machine none is.
#[derive(Debug)]
struct OwnMaking {
    /// None where nothing is looked for.
    path: Option<PathBuf>,
    read: OnceLock<Result<PerfMap, String>>,
}

impl OwnMaking {
    fn at(path: Option<PathBuf>) -> OwnMaking {
        OwnMaking {
            path,
            read: OnceLock::new(),
        }
    }

    /// The names, or why there are none.
    fn names(&self) -> Result<&PerfMap, &str> {
        let read = || {
            let path = self.path.as_ref().ok_or("it was not looked for")?;
            let read = PerfMap::read(path, &[]);
            read.map(|(names, _)| names).map_err(|error| {
                format!(
                    "it is in anonymous memory, and {} does not name it ({error})",
                    path.display()
                )
            })
        };
        self.read.get_or_init(read).as_ref().map_err(String::as_str)
    }
}

impl Files {
    pub(super) fn new(options: &ReadOptions, build_ids: HashMap<String, String>) -> Files {
        Files {
            places: Search {
                symfs: options.symfs.clone(),
                build_id_caches: options.build_id_caches.clone(),
                symbols: options.symbol_search(),
                nowhere: false,
            },
            build_ids,
            ..Files::default()
        }
    }

    /// Reads the symbols of the program from now on, if it is one of those in which samples were taken, as the header tells, or of those that
    /// were mapped at first. `after` ends before that begins, so that no more threads run at once than there is work for.
    pub(super) fn read_ahead(&self, mapped_first: Vec<Mapped>, after: Receiver<()>) {
        let candidates = symbols_ahead::candidates(&self.build_ids, mapped_first);
        self.ahead.begin(candidates, &self.places, after);
    }

    /// The symbols of a file.
    pub(super) fn symbols(&self, id: FileId) -> Option<SymbolFile> {
        let found = self.get(id)?.found.as_ref().ok()?;
        let ahead = self.ahead.take(found);
        ahead.or_else(|| SymbolFile::open_called(&found.place, &found.own, &self.places.symbols).ok())
    }

    /// Further ones that were recorded.
    pub(super) fn add_build_ids(&mut self, build_ids: HashMap<String, String>) {
        self.build_ids.extend(build_ids);
    }

    /// Finds none of them.
    #[cfg(test)]
    pub(super) fn nowhere() -> Files {
        let mut files = Files::default();
        files.places.nowhere = true;
        files
    }

    /// The file of a mapping and by how much it was moved; none where what is mapped is neither a file nor code in anonymous memory.
    pub(super) fn place(&mut self, mapped: &Mapped) -> Option<(FileId, u64)> {
        if mapped.is_anonymous() {
            return self.of_own_making(mapped);
        }
        if mapped.path != VDSO && !mapped.path.starts_with('/') {
            return None;
        }
        let recorded = mapped
            .build_id
            .clone()
            .or_else(|| self.build_ids.get(&mapped.path).cloned());
        let key = (mapped.path.clone(), recorded);
        let id = match self.by_name.get(&key) {
            Some(id) => *id,
            None if self.files.len() >= MOST_FILES => return None,
            None => {
                let id = self.add(CodeFile::find(mapped, key.1.as_deref(), &self.places));
                self.by_name.insert(key, id);
                id
            }
        };
        let segments = &self.files[id.0 as usize].segments;
        let bias = loads::bias(mapped.start, mapped.file_offset, segments);
        // Without the file the place in it stands for the address.
        Some((id, bias.unwrap_or(mapped.start.wrapping_sub(mapped.file_offset))))
    }

    /// Code in anonymous memory: for each process and place one, as the same address is something else in another.
    fn of_own_making(&mut self, mapped: &Mapped) -> Option<(FileId, u64)> {
        let key = (mapped.process, mapped.start);
        if let Some(id) = self.by_start.get(&key) {
            return Some((*id, mapped.start));
        }
        if self.files.len() >= MOST_FILES {
            return None;
        }
        let root = self.places.symfs.as_deref().unwrap_or(Path::new("/"));
        let path = (!self.places.nowhere).then(|| PerfMap::path(root, mapped.process));
        let names = self.own_making.entry(mapped.process);
        let names = names.or_insert_with(|| Arc::new(OwnMaking::at(path)));
        let id = FileId(self.files.len() as u32);
        self.files.push(CodeFile {
            path: OWN_MAKING.to_owned(),
            build_id: None,
            found: Err("it is no file".to_owned()),
            segments: Vec::new(),
            rules: OnceLock::new(),
            own_making: Some((mapped.start, Arc::clone(names))),
        });
        self.by_start.insert(key, id);
        Some((id, mapped.start))
    }

    fn add(&mut self, file: CodeFile) -> FileId {
        let next = FileId(self.files.len() as u32);
        let place = file
            .found
            .as_ref()
            .ok()
            .and_then(|found| std::fs::canonicalize(&found.place).ok());
        let known = place.map(|place| {
            let key = (place, file.name(), file.build_id.clone());
            *self.by_place.entry(key).or_insert(next)
        });
        let id = known.unwrap_or(next);
        if id == next {
            self.files.push(file);
        }
        id
    }

    pub(super) fn get(&self, id: FileId) -> Option<&CodeFile> {
        self.files.get(id.0 as usize)
    }

    pub(super) fn build_ids(&self) -> &HashMap<String, String> {
        &self.build_ids
    }

    /// Where perf's caches would have the functions of a kernel of that build as they lay when it recorded there.
    pub(super) fn kernel_lists(&self, build_id: &str) -> KernelLists {
        let entries = self.places.entries_of_caches(build_id);
        KernelLists(entries.map(|entry| entry.join("kallsyms")).collect())
    }

    #[cfg(test)]
    pub(super) fn path(&self, id: FileId) -> &str {
        &self.files[id.0 as usize].path
    }
}

/// Places in which the list of a kernel's functions may be.
#[derive(Debug)]
pub(super) struct KernelLists(Vec<PathBuf>);

impl KernelLists {
    /// The first one that can be read.
    pub(super) fn read(&self) -> Option<KernelSymbols> {
        // A recording may name anything; opening a device or a pipe does something.
        let files = self
            .0
            .iter()
            .filter(|place| std::fs::metadata(place).is_ok_and(|facts| facts.is_file()));
        files.into_iter().find_map(|place| KernelSymbols::of_file(place).ok())
    }
}

impl CodeFile {
    /// Whether one of its parts that hold no code is loaded over this address.
    pub(super) fn holds_data(&self, svma: u64) -> bool {
        let data = self.segments.iter().filter(|segment| !segment.executable);
        data.into_iter().any(|segment| segment.contains(svma))
    }

    fn find(mapped: &Mapped, build_id: Option<&str>, search: &Search) -> CodeFile {
        let found = match search.nowhere {
            true => Err("it was not looked for".to_owned()),
            false => search.find(mapped, build_id),
        };
        let segments = found
            .as_ref()
            .map(|found| loads::segments(&found.bytes))
            .unwrap_or_default();
        let own = || found.as_ref().ok().and_then(|found| build_id_of(&found.bytes));
        CodeFile {
            path: mapped.path.clone(),
            build_id: build_id.map(str::to_owned).or_else(own),
            segments,
            found,
            rules: OnceLock::new(),
            own_making: None,
        }
    }

    /// Whether it is code in anonymous memory of which names are known.
    pub(super) fn is_named_by_its_process(&self) -> bool {
        self.own_making.as_ref().is_some_and(|(_, own)| own.names().is_ok())
    }

    /// Of code in anonymous memory the frame at a place in it.
    pub(super) fn frame_of_own_making(&self, svma: u64) -> Option<Frame> {
        let (start, own) = self.own_making.as_ref()?;
        let names = own.names().unwrap_or(const { &PerfMap::NONE });
        Some(of_own_making(names, start.wrapping_add(svma)))
    }

    /// Its name without the folder.
    pub(super) fn name(&self) -> String {
        let path = self.path.strip_suffix(DELETED).unwrap_or(&self.path);
        let name = Path::new(path).file_name();
        name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
    }

    pub(super) fn build_id(&self) -> Option<&str> {
        self.build_id.as_deref()
    }

    /// Why it is not to be had, where that is so.
    pub(super) fn problem(&self) -> Option<&str> {
        match &self.own_making {
            Some((_, own)) => own.names().err(),
            None => self.found.as_ref().err().map(String::as_str),
        }
    }

    /// Whether nobody knows if it is the file that was recorded.
    pub(super) fn is_doubtful(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| !found.certain)
    }

    /// Where it was found.
    pub(super) fn recorded(&self) -> Option<RecordedFile> {
        Some(RecordedFile {
            module: self.name(),
            build_id: self.build_id.clone(),
            place: self.found.as_ref().ok()?.place.clone(),
            own: self.found.as_ref().ok()?.own.clone(),
        })
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        self.found.as_ref().ok().map(|found| &**found.bytes)
    }

    /// Its unwind rules.
    pub(super) fn rules(&self) -> Option<Arc<UnwindRules>> {
        let read = || Some(Arc::new(UnwindRules::of_mapped(&self.found.as_ref().ok()?.bytes).ok()?));
        self.rules.get_or_init(read).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped_as(path: String) -> Mapped {
        Mapped {
            process: 1,
            start: 0x1000,
            length: 0x1000,
            file_offset: 0,
            path,
            build_id: None,
            inode: None,
        }
    }

    #[test]
    fn one_file_under_many_spellings_is_kept_once() {
        let own = std::env::current_exe().expect("a path");
        let (folder, name) = (own.parent().expect("a folder"), own.file_name().expect("a name"));
        let name = name.to_string_lossy();
        let mut files = Files::new(&ReadOptions::default(), HashMap::new());
        let dots = (0..40).map(|count| format!("{}{}/{name}", folder.display(), "/.".repeat(count)));
        let found: std::collections::BTreeSet<FileId> = dots
            .filter_map(|path| files.place(&mapped_as(path)))
            .map(|(file, _)| file)
            .collect();
        assert_eq!(found.len(), 1);
        let missing = ["/no/such", "/no/./such"].map(|path| files.place(&mapped_as(path.to_owned())));
        assert_ne!(missing[0].map(|(file, _)| file), missing[1].map(|(file, _)| file));
    }

    #[test]
    fn what_perfs_cache_has_is_called_as_it_was_recorded() {
        let cache = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("a path");
        let id = build_id_of(&std::fs::read(&own).expect("readable")).expect("a build-id");
        let entry = cache.path().join(".build-id").join(&id[..2]).join(&id[2..]);
        std::fs::create_dir_all(&entry).expect("made");
        std::os::unix::fs::symlink(&own, entry.join("elf")).expect("linked");
        let options = ReadOptions {
            build_id_caches: vec![cache.path().to_owned()],
            ..ReadOptions::default()
        };
        // What is there now has no build-id: a later build, for all that is known.
        let replaced = cache.path().join("gone (deleted)");
        std::fs::write(&replaced, "another build").expect("written");
        let recorded_as = [replaced.display().to_string(), "/usr/sbin/gone (deleted)".to_owned()];
        let [here, elsewhere] = recorded_as.map(|path| {
            let build_ids = [(path.clone(), id.clone())].into_iter().collect();
            let mut files = Files::new(&options, build_ids);
            let (file, _) = files.place(&mapped_as(path)).expect("a file");
            files.get(file).and_then(CodeFile::recorded).expect("found")
        });
        assert!(here.place.ends_with("elf"), "{here:?}");
        let recorded = elsewhere;
        assert_eq!(
            (recorded.module.as_str(), recorded.own.as_path()),
            ("gone", Path::new("/usr/sbin/gone"))
        );
        assert!(recorded.place.ends_with("elf"));
    }
}
