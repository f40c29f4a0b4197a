//! The recorded kernel, and where its functions lay: the list that perf kept of it when it recorded, the kernel that runs here if it is
//! the same, or perf's list of another of its starts.

use super::files::{Files, KernelLists};
use super::record::Mapped;
use crate::import::RecordedMachine;
use foldhash::HashSet;
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::makers_cpu::MakersCpu;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

/// How the kernel's own mapping is called.
const KERNEL: &str = "[kernel.kallsyms]";
/// Modules that one recording may name.
const MOST_MODULES: usize = 1 << 16;

/// What a recording tells of its kernel.
#[derive(Debug, Default)]
pub(super) struct RecordedKernel {
    /// Where the symbol lay that its mapping is named after, `_text` or `_stext`: the kernel starts elsewhere at every boot.
    reference: Option<(String, u64)>,
    /// Where perf saw it end, which is another place in nearly every build.
    end: Option<u64>,
    /// Where its modules lay.
    modules: BTreeMap<String, Range<u64>>,
    /// The thread that reads the list that perf kept of the start that was recorded.
    kept: Mutex<Option<JoinHandle<Option<KernelSymbols>>>>,
    /// Whether only its place and its length say that it is the one that runs here.
    by_extent: AtomicBool,
}

/// Where the list of the recorded kernel may be that perf kept; none where the recording does not tell which kernel it was.
fn lists(files: &Files) -> Option<KernelLists> {
    Some(files.kernel_lists(files.build_ids().get(KERNEL)?))
}

impl RecordedKernel {
    /// Of which nothing is known yet. Where a sample may have been taken in it, the list that perf kept of it is read from now on.
    /// What is given too ends when that is done.
    pub(super) fn begin(files: &Files, is_sampled: bool) -> (RecordedKernel, Receiver<()>) {
        let (ends, ended) = channel();
        let lists = lists(files).filter(|_| is_sampled);
        // Where no thread can be had, it is read when it is asked for.
        let reading = lists.and_then(|lists| {
            let cpu = MakersCpu::here();
            let read = move || {
                cpu.leave();
                let _ends: Sender<()> = ends;
                lists.read()
            };
            let reading = thread::Builder::new().spawn(read).ok();
            MakersCpu::let_begin();
            reading
        });
        let kernel = RecordedKernel {
            kept: Mutex::new(reading),
            ..RecordedKernel::default()
        };
        (kernel, ended)
    }

    /// Whether its list is being read.
    pub(super) fn has_begun(&self) -> bool {
        self.kept.lock().is_ok_and(|kept| kept.is_some())
    }

    /// Takes in a mapping of the kernel. With `--buildid-mmap`, which newer perf means without being asked (7.2
    /// does), its build-id stands here, as that of every file, and not in the header.
    pub(super) fn map(&mut self, mapped: &Mapped, files: &mut Files) {
        if mapped.path.starts_with(KERNEL)
            && let Some(build_id) = &mapped.build_id
        {
            files.add_build_ids(HashMap::from([(KERNEL.to_owned(), build_id.clone())]));
        }
        match mapped.path.strip_prefix(KERNEL) {
            Some("") => {}
            // perf writes the symbol's address where the place in the file would stand.
            Some(symbol) => {
                self.reference = Some((symbol.to_owned(), mapped.file_offset));
                self.end = mapped.start.checked_add(mapped.length);
            }
            None if self.modules.len() < MOST_MODULES => {
                let range = mapped.start..mapped.start.saturating_add(mapped.length);
                self.modules.insert(name_of_module(&mapped.path), range);
            }
            None => {}
        }
    }

    /// Names for its functions, or why there are none.
    pub(super) fn symbols(&self, machine: &RecordedMachine, files: &Files) -> Result<KernelSymbols, String> {
        match self.kept_as_it_lay(files) {
            Some(kept) => Ok(kept),
            None => self.running_or_kept(machine, files),
        }
    }

    /// Another list than `symbols`, which names more of the addresses that were met: perf's may be older than a module of the kernel, and
    /// programs of BPF have no place that a recording tells of. Some addresses no list names: jumps also lead where nothing has a name.
    pub(super) fn better_than(
        &self,
        symbols: &KernelSymbols,
        met: &HashSet<u64>,
        (machine, files): (&RecordedMachine, &Files),
    ) -> Option<KernelSymbols> {
        let named = |symbols: &KernelSymbols| {
            met.iter()
                .filter(|address| symbols.function(**address).is_some())
                .count()
        };
        let other = self.running_or_kept(machine, files).ok()?;
        (named(&other) > named(symbols)).then_some(other)
    }

    /// The list that perf kept of the start that was recorded: a file, where the kernel that runs makes its own anew for every reader.
    fn kept_as_it_lay(&self, files: &Files) -> Option<KernelSymbols> {
        let kept = self.kept(files)?;
        (self.distance(&kept) == Some(0)).then(|| self.after_another_start(kept, 0))
    }

    /// The list that perf kept, read anew where it was taken before.
    fn kept(&self, files: &Files) -> Option<KernelSymbols> {
        let reading = self.kept.lock().ok().and_then(|mut kept| kept.take());
        let read = reading.and_then(|reading| reading.join().ok().flatten());
        read.or_else(|| lists(files)?.read())
    }

    /// What to say where nothing but its place and its length says which kernel it is.
    pub(super) fn doubt(&self) -> Option<String> {
        let by_extent = self.by_extent.load(Ordering::Relaxed);
        by_extent.then(|| {
            "the kernel of the recording is unknown: kernel functions are named after this machine's, which has the same addresses"
                .to_owned()
        })
    }

    fn running_or_kept(&self, machine: &RecordedMachine, files: &Files) -> Result<KernelSymbols, String> {
        let recorded = files.build_ids().get(KERNEL).map(String::as_str);
        let read = |build: Build| {
            let symbols = KernelSymbols::of_this_kernel().map_err(|error| error.to_string())?;
            match (self.distance(&symbols), build) {
                (distance, Build::NotTold) => {
                    match self.end.filter(|end| distance == Some(0) && symbols.ends_at(*end)) {
                        Some(_) => {
                            self.by_extent.store(true, Ordering::Relaxed);
                            Ok(symbols)
                        }
                        None => Err(NOT_TOLD.to_owned()),
                    }
                }
                // The same start, or a recording that does not say where it lay.
                (Some(0) | None, _) => Ok(symbols),
                (Some(distance), Build::Same) => Ok(self.after_another_start(symbols, distance)),
                (Some(_), Build::OfSameRelease) => {
                    Err("it lay elsewhere than this machine's, and may be another build of the same release".to_owned())
                }
            }
        };
        running(machine, recorded).and_then(read).or_else(|why| {
            // Nobody knows of which start it is.
            let kept = self.kept(files).ok_or_else(|| why.clone())?;
            let distance = self.distance(&kept).ok_or(why)?;
            Ok(self.after_another_start(kept, distance))
        })
    }

    /// How much further up than in this list it lay when it was recorded; none where one of them does not tell.
    fn distance(&self, symbols: &KernelSymbols) -> Option<u64> {
        let (symbol, then) = self.reference.as_ref()?;
        Some(then.wrapping_sub(symbols.begin(symbol)?))
    }

    fn after_another_start(&self, symbols: KernelSymbols, distance: u64) -> KernelSymbols {
        /// Its first function may stand behind what has no name.
        const PAGE: u64 = 4096;
        symbols.after_another_start(distance, |module, begin| {
            let recorded = self.modules.get(module);
            recorded.is_some_and(|range| range.contains(&begin) && begin - range.start < PAGE)
        })
    }
}

/// Whether a kernel is the recorded one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Build {
    /// By its build-id.
    Same,
    OfSameRelease,
    /// The recording says neither.
    NotTold,
}

/// Why a kernel that is not told of has no names.
const NOT_TOLD: &str = "the kernel of the recording is unknown";

/// Whether the kernel that runs here is the recorded one, or why nobody can say so.
fn running(machine: &RecordedMachine, recorded: Option<&str>) -> Result<Build, String> {
    let here = rustix::system::uname();
    let release = here.release().to_string_lossy();
    if let Some(recorded) = machine.kernel.as_deref().filter(|recorded| *recorded != release) {
        return Err(format!(
            "recorded on Linux {recorded}, while this machine runs {release}: take perf's symbol list in ~/.debug \
             along (`perf archive`)"
        ));
    }
    let own = std::fs::read("/sys/kernel/notes").ok();
    let own = own.and_then(|notes| build_id_of_notes(&notes));
    match (recorded, &own) {
        (Some(recorded), Some(own)) if recorded == own => Ok(Build::Same),
        (Some(_), Some(_)) => Err("it was recorded on another build of the kernel".to_owned()),
        (None, _) if machine.kernel.is_none() => Ok(Build::NotTold),
        (Some(_), None) if machine.kernel.is_none() => Err(NOT_TOLD.to_owned()),
        _ => Ok(Build::OfSameRelease),
    }
}

/// Whether a path, as perf writes it, is that of a kernel or of a module of one.
pub(super) fn is_file_of_kernel(path: &str) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("vmlinux") || name.ends_with(".ko") || name.contains(".ko.") || path == "/proc/kcore"
}

/// As the kernel's list has it: `/lib/modules/6.1.0/kernel/fs/ext4/ext4.ko.xz`, or `[ext4]` where perf found no file, is `ext4`.
fn name_of_module(path: &str) -> String {
    let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
    let name = name.split(".ko").next().unwrap_or_default();
    name.trim_matches(['[', ']']).replace('-', "_")
}

/// The build-id in ELF notes: name and content are padded to 4 bytes.
fn build_id_of_notes(notes: &[u8]) -> Option<String> {
    const BUILD_ID: u32 = 3;
    let mut rest = notes;
    loop {
        let mut cursor = super::cursor::Cursor::new(rest);
        let (name, content, kind) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let name = cursor.take((name as usize).next_multiple_of(4))?;
        let bytes = cursor.take((content as usize).checked_next_multiple_of(4)?)?;
        if kind == BUILD_ID && name.starts_with(b"GNU") {
            return bytes.get(..content as usize).map(super::features::hexadecimal);
        }
        rest = cursor.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::KERNEL_PROCESS;
    use super::*;

    fn mapped(path: &str, range: Range<u64>, file_offset: u64) -> Mapped {
        Mapped {
            process: KERNEL_PROCESS,
            start: range.start,
            length: range.end - range.start,
            file_offset,
            path: path.to_owned(),
            build_id: None,
            inode: None,
        }
    }

    /// Where a symbol of the kernel that runs here lies; none where it is not told.
    fn place_of(symbol: &str) -> Option<u64> {
        let list = std::fs::read_to_string("/proc/kallsyms").ok()?;
        let line = list.lines().find(|line| line.split(' ').nth(2) == Some(symbol))?;
        let address = u64::from_str_radix(line.split(' ').next()?, 16).ok()?;
        (address != 0).then_some(address)
    }

    #[test]
    fn a_kernel_that_nothing_tells_of_is_the_one_that_runs_here_if_it_begins_and_ends_there() {
        let places = place_of("_text").zip(place_of("_etext"));
        let Some((begin, end)) = places else {
            testing::skip!("the kernel tells its addresses to nobody but root");
            return;
        };
        let mut files = Files::nowhere();
        let machine = RecordedMachine::default();
        let mut symbols_of = |range: Range<u64>| {
            let mut kernel = RecordedKernel::default();
            kernel.map(
                &mapped("[kernel.kallsyms]_text", range.clone(), range.start),
                &mut files,
            );
            (kernel.symbols(&machine, &files), kernel.doubt())
        };
        let (found, doubt) = symbols_of(begin..end);
        assert!(found.is_ok(), "{:?}", found.err());
        assert!(doubt.is_some_and(|doubt| doubt.contains("this machine's")));
        let other_symbol = place_of("schedule").expect("every kernel has it");
        for other in [begin..end - 1, begin..other_symbol, begin + 4096..end] {
            let (found, doubt) = symbols_of(other);
            assert_eq!(found.err().as_deref(), Some(NOT_TOLD));
            assert_eq!(doubt, None);
        }
    }

    #[test]
    fn the_build_id_of_the_kernel_may_stand_with_its_mapping() {
        let mut files = Files::nowhere();
        let mut kernel = RecordedKernel::default();
        let named = Mapped {
            build_id: Some("abcdef01".to_owned()),
            ..mapped("[kernel.kallsyms]_text", 4096..8192, 4096)
        };
        kernel.map(&named, &mut files);
        let known = files.build_ids().get(KERNEL);
        assert_eq!(known.map(String::as_str), Some("abcdef01"));
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let mut notes = Vec::new();
        for (name, kind, content) in [
            ("Xen\0", 3_u32, &[9_u8, 9, 9][..]),
            ("GNU\0", 3, &[0xab, 0xcd, 0xef, 1]),
        ] {
            notes.extend((name.len() as u32).to_le_bytes());
            notes.extend((content.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(name.as_bytes());
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id_of_notes(&notes).as_deref(), Some("abcdef01"));
        assert_eq!(build_id_of_notes(&notes[..20]), None);
    }

    #[test]
    fn another_kernel_gives_no_names_and_says_why() {
        let machine = RecordedMachine {
            kernel: Some("5.4.0-made-up".into()),
            ..RecordedMachine::default()
        };
        let found = RecordedKernel::default().symbols(&machine, &Files::nowhere());
        assert!(found.err().is_some_and(|why| why.contains("5.4.0-made-up")));
    }

    #[test]
    fn another_kernel_has_the_names_that_perf_kept_of_it_where_it_lay_then() {
        let cache = tempfile::tempdir().expect("a folder");
        let entry = cache.path().join(".build-id/ab/cdef01");
        std::fs::create_dir_all(&entry).expect("folders");
        let list = "ffffffff81000000 T startup_64\nffffffff81000000 T _text\nffffffff81000040 T schedule\nffffffffc0000000 t ext4_sync_file\t[ext4]\n\
                    ffffffffc0001000 t nfs_file_read\t[nfs_v4]\n";
        std::fs::write(entry.join("kallsyms"), list).expect("a list");
        let options = crate::import::ReadOptions {
            build_id_caches: vec![cache.path().to_owned()],
            ..Default::default()
        };
        let build_ids = [(KERNEL.to_owned(), "abcdef01".to_owned())];
        let mut files = Files::new(&options, build_ids.into_iter().collect());
        let machine = RecordedMachine {
            kernel: Some("5.4.0-made-up".into()),
            ..RecordedMachine::default()
        };
        let (mut kernel, _) = RecordedKernel::begin(&files, true);
        for (path, start, file_offset) in [
            ("[kernel.kallsyms]_text", 0xffff_ffff_9300_0000, 0xffff_ffff_9300_0000),
            (
                "/lib/modules/5.4.0-made-up/kernel/fs/nfs/nfs-v4.ko.xz",
                0xffff_ffff_c000_1000,
                0,
            ),
            ("[ext4]", 0xffff_ffff_c123_0000, 0),
        ] {
            kernel.map(&mapped(path, start..start + 0x800, file_offset), &mut files);
        }
        let symbols = kernel.symbols(&machine, &files).expect("kept");
        let name = |address| symbols.function(address).map(|(name, ..)| name.to_owned());
        assert_eq!(name(0xffff_ffff_9300_0041).as_deref(), Some("schedule"));
        assert_eq!(name(0xffff_ffff_c000_1000).as_deref(), Some("nfs_file_read"));
        // That module lay elsewhere then, and nobody knows which of its functions was where.
        assert_eq!(name(0xffff_ffff_c123_0000), None);
        assert_eq!(name(0xffff_ffff_8100_0041), None);
        // One that does not say where it lay.
        let silent = RecordedKernel::default().symbols(&machine, &files);
        assert!(silent.err().is_some_and(|why| why.contains("5.4.0-made-up")));
    }
}
