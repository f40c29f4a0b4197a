//! The files of code that a recording names, where they are now, and what is read of them.

use super::kernel::is_file_of_kernel;
use super::record::Mapped;
use crate::import::{ReadOptions, RecordedFile};
use crate::walk::UnwindRules;
use object::Object as _;
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::loads::{self, Segment};
use scaleprof_binary::mapped_file::{MappedFile, mapped};
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;

/// The kernel's code for user space.
const VDSO: &str = "[vdso]";
/// What the kernel puts behind the path of a file that is gone.
const DELETED: &str = " (deleted)";
/// Files that one recording may name.
const MOST_FILES: usize = 1 << 20;
/// Files whose size is asked for.
const MOST_SIZED: usize = 1 << 12;
/// Files that are looked at for the largest: that of the first is mostly the program.
const MOST_LOOKED_AT: usize = 8;

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
    /// Symbols that are read before anybody asked for them.
    ahead: Mutex<Option<Ahead>>,
}

/// The symbols of a file that are being read.
#[derive(Debug)]
struct Ahead {
    place: PathBuf,
    own: PathBuf,
    reading: JoinHandle<Option<SymbolFile>>,
}

/// Where files are looked for.
#[derive(Debug, Default)]
struct Search {
    symfs: Option<PathBuf>,
    build_id_caches: Vec<PathBuf>,
    symbols: SymbolSearch,
    nowhere: bool,
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
}

/// A file that is there.
#[derive(Debug)]
struct Found {
    place: PathBuf,
    /// Where files that belong to it are looked for: a cache has it under a name that says nothing.
    own: PathBuf,
    bytes: Arc<MappedFile>,
    /// Whether its build-id is the recorded one; else nobody knows whether it was replaced.
    certain: bool,
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

    /// Reads the symbols of the largest file of those in which samples were taken, as the header tells, from now on: it is the program
    /// mostly, and nobody needs them before all records were gone through. `after` ends before that begins, so that no more threads
    /// run at once than there is work for.
    pub(super) fn read_ahead(&self, after: Receiver<()>) {
        let Some(found) = self.largest() else { return };
        let (place, own) = (found.place.clone(), found.own.clone());
        let search = self.places.symbols.clone();
        let reading = std::thread::spawn(move || {
            // It fails when the other thread is done.
            let _ = after.recv();
            SymbolFile::open_called(&found.place, &found.own, &search).ok()
        });
        if let Ok(mut ahead) = self.ahead.lock() {
            *ahead = Some(Ahead { place, own, reading });
        }
    }

    /// The largest file of those that the header tells of, kernels left out, and that are certain to be what was recorded.
    fn largest(&self) -> Option<Found> {
        let of_programs = self
            .build_ids
            .iter()
            .filter(|(path, _)| path.starts_with('/') && !is_file_of_kernel(path))
            .take(MOST_SIZED);
        // The size of a file is had for less than the file: only those are looked at that may be the largest.
        let mut likely: Vec<(u64, &String, &String)> = of_programs
            .map(|(path, build_id)| (self.places.most_bytes(path, build_id), path, build_id))
            .collect();
        likely.sort_unstable_by(|a, b| b.cmp(a));
        let length = |found: &Option<Found>| found.as_ref().map_or(0, |found| found.bytes.len() as u64);
        let mut largest: Option<Found> = None;
        for (most, path, build_id) in likely.into_iter().take(MOST_LOOKED_AT) {
            if length(&largest) >= most {
                break;
            }
            let recorded_as = Mapped {
                path: path.clone(),
                ..Mapped::default()
            };
            let found = self.places.find(&recorded_as, Some(build_id)).ok();
            let found = found.filter(|found| found.certain);
            if length(&found) > length(&largest) {
                largest = found;
            }
        }
        largest
    }

    /// The symbols of a file.
    pub(super) fn symbols(&self, id: FileId) -> Option<SymbolFile> {
        let found = self.get(id)?.found.as_ref().ok()?;
        let is_it = |ahead: &mut Ahead| (&ahead.place, &ahead.own) == (&found.place, &found.own);
        let ahead = self.ahead.lock().ok().and_then(|mut ahead| ahead.take_if(is_it));
        let read = ahead.and_then(|ahead| ahead.reading.join().ok().flatten());
        read.or_else(|| SymbolFile::open_called(&found.place, &found.own, &self.places.symbols).ok())
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

    /// The file of a mapping and by how much it was moved; none where what is mapped is no file.
    pub(super) fn place(&mut self, mapped: &Mapped) -> Option<(FileId, u64)> {
        let is_file = mapped.path == VDSO || (mapped.path.starts_with('/') && !mapped.path.starts_with("//anon"));
        if !is_file {
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
        }
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
        self.found.as_ref().err().map(String::as_str)
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

impl Search {
    /// The file that was recorded, or why it is not to be had.
    fn find(&self, recorded_as: &Mapped, build_id: Option<&str>) -> Result<Found, String> {
        let (mut why, mut doubtful) = (None, None);
        for (place, own) in self.candidates(&recorded_as.path, build_id) {
            // A recording may name anything; opening a device or a pipe does something.
            if !std::fs::metadata(&place).is_ok_and(|facts| facts.is_file()) {
                continue;
            }
            let Ok(bytes) = mapped(&place).map(Arc::new) else {
                continue;
            };
            match (build_id, build_id_of(&bytes)) {
                (Some(recorded), Some(own)) if !same_build(recorded, &own) => {
                    why.get_or_insert_with(|| {
                        format!("the file that is there now is another build ({own}; recorded was {recorded})")
                    });
                }
                (recorded, its) => {
                    let certain = (recorded.is_some() && its.is_some()) || is_inode(&place, recorded_as.inode);
                    let found = Found {
                        own: match own == place {
                            true => std::fs::canonicalize(&own).unwrap_or(own),
                            // Where links of this machine lead says nothing of what a cache has.
                            false => own,
                        },
                        place,
                        bytes,
                        certain,
                    };
                    if certain || recorded.is_none() {
                        return Ok(found);
                    }
                    // It may be a later build, and a cache may have the very file.
                    doubtful.get_or_insert(found);
                }
            }
        }
        if let Some(found) = doubtful {
            return Ok(found);
        }
        Err(why.unwrap_or_else(|| "it is not on this machine".to_owned()))
    }

    /// The size of the largest file in any of the places where that one may be.
    fn most_bytes(&self, path: &str, build_id: &str) -> u64 {
        let places = self.candidates(path, Some(build_id)).into_iter();
        let facts = places.filter_map(|(place, _)| std::fs::metadata(place).ok());
        let lengths = facts.filter(std::fs::Metadata::is_file).map(|facts| facts.len());
        lengths.max().unwrap_or(0)
    }

    /// Where perf's caches have what belongs to a build-id.
    fn entries_of_caches(&self, build_id: &str) -> impl Iterator<Item = PathBuf> {
        let parts = build_id.split_at_checked(2);
        let caches = parts
            .into_iter()
            .flat_map(|parts| self.build_id_caches.iter().map(move |cache| (cache, parts)));
        caches.map(|(cache, (first, rest))| cache.join(".build-id").join(first).join(rest))
    }

    /// Places of a file, each with the path that is its own.
    fn candidates(&self, path: &str, build_id: Option<&str>) -> Vec<(PathBuf, PathBuf)> {
        let below_root = Path::new(path.trim_start_matches('/'));
        let mut places = Vec::new();
        let mut itself = |place: PathBuf| places.push((place.clone(), place));
        if let Some(symfs) = &self.symfs {
            itself(symfs.join(below_root));
            below_root
                .file_name()
                .into_iter()
                .for_each(|name| itself(symfs.join(name)));
        }
        if path.starts_with('/') && (self.symfs.is_none() || build_id.is_some()) {
            itself(PathBuf::from(path));
        }
        for entry in build_id.into_iter().flat_map(|id| self.entries_of_caches(id)) {
            // A link to a folder since perf 4.x, to the file itself before.
            let kept = [entry.join("elf"), entry.join("vdso"), entry];
            let own = path.strip_suffix(DELETED).unwrap_or(path);
            places.extend(kept.map(|place| (place, PathBuf::from(own))));
        }
        places
    }
}

/// Whether a file is the very one that was mapped. A machine that gives the same number to another file of that path has not been seen.
fn is_inode(place: &Path, recorded: Option<(u32, u32, u64)>) -> bool {
    let Ok(facts) = std::fs::metadata(place) else {
        return false;
    };
    let device = facts.dev();
    recorded == Some((rustix::fs::major(device), rustix::fs::minor(device), facts.ino()))
}

/// The recorded one may be padded with zeros to 20 bytes.
fn same_build(recorded: &str, own: &str) -> bool {
    recorded == own
        || (recorded.strip_prefix(own)).is_some_and(|rest| !own.is_empty() && rest.bytes().all(|b| b == b'0'))
}

fn build_id_of(bytes: &[u8]) -> Option<String> {
    let elf = object::File::parse(bytes).ok()?;
    let id = elf.build_id().ok()??;
    Some(super::features::hexadecimal(id))
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

    #[test]
    fn the_file_that_is_read_ahead_is_the_largest_where_it_was_found_and_no_kernel() {
        let symfs = tempfile::tempdir().expect("a folder");
        let own = std::env::current_exe().expect("a path");
        let id = build_id_of(&std::fs::read(&own).expect("readable")).expect("a build-id");
        // At the server's path there is nothing on this machine, and a larger file that is not the recorded one at another.
        let another = symfs.path().join("another");
        let longer = std::fs::metadata(&own).expect("facts").len() + 1;
        let made = std::fs::File::create(&another).expect("made");
        made.set_len(longer).expect("long");
        let kernel = "/usr/lib/debug/boot/vmlinux-5.4.0";
        for path in ["srv/server", &kernel[1..]] {
            let place = symfs.path().join(path);
            std::fs::create_dir_all(place.parent().expect("a folder")).expect("made");
            std::os::unix::fs::symlink(&own, place).expect("linked");
        }
        let options = ReadOptions {
            symfs: Some(symfs.path().to_owned()),
            ..ReadOptions::default()
        };
        let paths = [
            another.display().to_string(),
            kernel.to_owned(),
            "/srv/server".to_owned(),
        ];
        let build_ids = paths.into_iter().map(|path| (path, id.clone()));
        let files = Files::new(&options, build_ids.collect());
        files.read_ahead(std::sync::mpsc::channel().1);
        let ahead = files.ahead.lock().expect("no thread failed").take().expect("a file");
        assert_eq!(ahead.place, symfs.path().join("srv/server"));
        assert!(ahead.reading.join().expect("read").is_some());
    }
}
