//! The symbols of the program that was recorded, read before anybody asks for them: nobody needs them before all records were gone through, and
//! both take as long.

use super::file_search::{Found, Search, build_id_of};
use super::kernel::is_file_of_kernel;
use super::record::Mapped;
use scaleprof_binary::makers_cpu::MakersCpu;
use scaleprof_binary::symbols::SymbolFile;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;
use std::thread::{self, JoinHandle};

/// Files whose size is asked for.
const MOST_SIZED: usize = 1 << 12;
/// Files that are looked at for the largest: that of the first is mostly the program.
const MOST_LOOKED_AT: usize = 8;

/// A file that may be the program.
pub(super) struct Candidate {
    recorded_as: Mapped,
    /// Where the recording tells it.
    build_id: Option<String>,
    /// Whether samples may be in it only if it has no build-id: those with one and with samples are in the header.
    only_without: bool,
}

/// Symbols of at most one file.
#[derive(Debug, Default)]
pub(super) struct SymbolsAhead(Mutex<Option<Reading>>);

/// The symbols of a file that are being read.
#[derive(Debug)]
struct Reading {
    place: PathBuf,
    own: PathBuf,
    thread: JoinHandle<Option<SymbolFile>>,
}

/// The files in which samples were taken, as the header tells by their build-ids, and those that were mapped at first. Of a
/// recording of several processes the latter are left out: most of these files need not have a sample.
pub(super) fn candidates(build_ids: &HashMap<String, String>, mut mapped_first: Vec<Mapped>) -> Vec<Candidate> {
    let process = mapped_first.first().map(|mapped| mapped.process);
    if mapped_first.iter().any(|mapped| Some(mapped.process) != process) {
        mapped_first.clear();
    }
    let of_header = build_ids.iter().map(|(path, build_id)| Candidate {
        recorded_as: Mapped {
            path: path.clone(),
            ..Mapped::default()
        },
        build_id: Some(build_id.clone()),
        only_without: false,
    });
    let untold = mapped_first
        .into_iter()
        .filter(|mapped| !build_ids.contains_key(&mapped.path))
        .map(|recorded_as| Candidate {
            build_id: recorded_as.build_id.clone(),
            recorded_as,
            only_without: !build_ids.is_empty(),
        });
    let is_program = |path: &str| path.starts_with('/') && !is_file_of_kernel(path);
    let all = of_header.chain(untold);
    all.filter(|candidate| is_program(&candidate.recorded_as.path))
        .take(MOST_SIZED)
        .collect()
}

impl SymbolsAhead {
    /// Reads those of the largest candidate from now on, if it is certain to be what was recorded. `after` ends before that begins.
    pub(super) fn begin(&self, candidates: Vec<Candidate>, search: &Search, after: Receiver<()>) {
        let Some(found) = largest(candidates, search) else {
            return;
        };
        let (place, own) = (found.place.clone(), found.own.clone());
        let symbols = search.symbols.clone();
        let cpu = MakersCpu::here();
        let read = move || {
            // It fails when the other thread is done.
            let _ = after.recv();
            cpu.leave();
            SymbolFile::open_called(&found.place, &found.own, &symbols).ok()
        };
        // Where no thread can be had, whoever needs them reads them.
        if let (Ok(thread), Ok(mut reading)) = (thread::Builder::new().spawn(read), self.0.lock()) {
            *reading = Some(Reading { place, own, thread });
        }
    }

    /// Those of a file, as soon as they are read; none where it is another one.
    pub(super) fn take(&self, found: &Found) -> Option<SymbolFile> {
        let is_it = |reading: &mut Reading| (&reading.place, &reading.own) == (&found.place, &found.own);
        let reading = self.0.lock().ok()?.take_if(is_it)?;
        reading.thread.join().ok().flatten()
    }
}

fn largest(candidates: Vec<Candidate>, search: &Search) -> Option<Found> {
    // The size of a file is had for less than the file: only those are looked at that may be the largest.
    let most_bytes = |of: &Candidate| search.most_bytes(&of.recorded_as.path, of.build_id.as_deref());
    let mut likely: Vec<(u64, Candidate)> = candidates.into_iter().map(|one| (most_bytes(&one), one)).collect();
    likely.sort_unstable_by(|(a, one), (b, other)| {
        b.cmp(a).then_with(|| one.recorded_as.path.cmp(&other.recorded_as.path))
    });
    let length = |found: &Option<Found>| found.as_ref().map_or(0, |found| found.bytes.len() as u64);
    let mut largest: Option<Found> = None;
    for (most, candidate) in likely.into_iter().take(MOST_LOOKED_AT) {
        if length(&largest) >= most {
            break;
        }
        let found = search.find(&candidate.recorded_as, candidate.build_id.as_deref()).ok();
        let found =
            found.filter(|found| found.certain && !(candidate.only_without && build_id_of(&found.bytes).is_some()));
        if length(&found) > length(&largest) {
            largest = found;
        }
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;
    use std::path::Path;
    use std::sync::mpsc::channel;

    fn mapped(path: &Path, process: u32) -> Mapped {
        let facts = std::fs::metadata(path).expect("facts");
        let device = facts.dev();
        Mapped {
            process,
            path: path.display().to_string(),
            inode: Some((rustix::fs::major(device), rustix::fs::minor(device), facts.ino())),
            ..Mapped::default()
        }
    }

    fn begun(candidates: Vec<Candidate>, search: &Search) -> Option<Reading> {
        let ahead = SymbolsAhead::default();
        ahead.begin(candidates, search, channel().1);
        ahead.0.into_inner().expect("no thread failed")
    }

    #[test]
    fn it_is_the_largest_where_it_was_found_and_no_kernel() {
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
        let search = Search {
            symfs: Some(symfs.path().to_owned()),
            ..Search::default()
        };
        let paths = [
            another.display().to_string(),
            kernel.to_owned(),
            "/srv/server".to_owned(),
        ];
        let build_ids = paths.into_iter().map(|path| (path, id.clone())).collect();
        let reading = begun(candidates(&build_ids, Vec::new()), &search).expect("a file");
        assert_eq!(reading.place, symfs.path().join("srv/server"));
        assert!(reading.thread.join().expect("read").is_some());
    }

    /// A copy of this program without its build-id: that note has another name.
    fn without_build_id(folder: &Path) -> PathBuf {
        use object::{Object as _, ObjectSection as _};
        let mut bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        let elf = object::File::parse(&*bytes).expect("ELF");
        let note = elf.section_by_name(".note.gnu.build-id").expect("a build-id");
        let (start, length) = note.file_range().expect("in the file");
        bytes[start as usize + 12..(start + length) as usize].fill(0);
        let path = std::fs::canonicalize(folder).expect("a path").join("server");
        std::fs::write(&path, bytes).expect("written");
        path
    }

    #[test]
    fn a_program_without_a_build_id_is_known_by_what_was_mapped_first() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = without_build_id(folder.path());
        let own = std::env::current_exe().expect("a path");
        let shell = std::fs::canonicalize("/bin/sh").expect("a path");
        let id = build_id_of(&std::fs::read(&shell).expect("readable")).expect("a build-id");
        let of_header: HashMap<String, String> = [(shell.display().to_string(), id)].into();
        let read = |mapped_first| {
            let reading = begun(candidates(&of_header, mapped_first), &Search::default());
            reading.expect("a file").place
        };
        assert_eq!(read(vec![mapped(&shell, 7), mapped(&program, 7)]), program);
        assert_eq!(read(Vec::new()), shell);
        // That one has a build-id, and no sample: it would be in the header.
        assert_eq!(read(vec![mapped(&own, 7), mapped(&shell, 7)]), shell);
        // Of which of several processes samples were taken is not known yet.
        assert_eq!(read(vec![mapped(&program, 7), mapped(&shell, 8)]), shell);
        let mut replaced = mapped(&program, 7);
        replaced.inode = Some((0, 0, 1));
        assert_eq!(read(vec![replaced]), shell, "nobody knows whether it is the same");
    }
}
