//! Files that are truncated while they are mapped.
//!
//! Whoever may write a file may cut it while we read it: the kernel then answers each look beyond
//! its new end with SIGBUS (mmap(2)), which ends a process. Here it maps zeros in place of what is
//! gone and marks the file, so that a command ends with an error that names it instead of a crash,
//! and a watch goes on without that file.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// Mappings at one time. A handler of signals can take no lock, so their number has a limit; the
/// largest servers map some hundred files.
const MOST: usize = 8192;

/// A mapping. Its place is free where it starts at 0.
struct Slot {
    start: AtomicUsize,
    length: AtomicUsize,
    truncated: AtomicBool,
}

static SLOTS: [Slot; MOST] = [const {
    Slot {
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        truncated: AtomicBool::new(false),
    }
}; MOST];

/// Whether a file was cut that another library of ours has mapped.
static UNKNOWN: AtomicBool = AtomicBool::new(false);

/// Files that were cut, of mappings that are gone.
static GONE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Files of the mappings that there are, by the place of their slot.
static PATHS: Mutex<Vec<(usize, PathBuf)>> = Mutex::new(Vec::new());

/// A mapping that is guarded as long as this lives. It goes before the mapping does.
#[derive(Debug)]
pub(crate) struct Guard(usize);

impl Guard {
    /// Of a mapping of so many bytes of a file.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn of(start: *const u8, length: usize, path: &Path) -> std::io::Result<Guard> {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(install);
        let address = start as usize;
        for (index, slot) in SLOTS.iter().enumerate() {
            // Its length is written when the place is ours; until then nothing of the mapping is
            // looked at.
            if slot
                .start
                .compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                slot.truncated.store(false, Ordering::Relaxed);
                slot.length.store(length, Ordering::Release);
                locked(&PATHS).push((index, path.to_owned()));
                return Ok(Guard(index));
            }
        }
        Err(std::io::Error::other(format!("more than {MOST} files are mapped")))
    }

    /// Whether its file was cut while it was read.
    pub(crate) fn is_truncated(&self) -> bool {
        SLOTS[self.0].truncated.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let slot = &SLOTS[self.0];
        let mut paths = locked(&PATHS);
        if let Some(at) = paths.iter().position(|(index, _)| *index == self.0) {
            let (_, path) = paths.swap_remove(at);
            let mut gone = locked(&GONE);
            if self.is_truncated() && !gone.contains(&path) {
                gone.push(path);
            }
        }
        slot.length.store(0, Ordering::Relaxed);
        slot.start.store(0, Ordering::Release);
    }
}

/// The files that were truncated while this program read them. What was made of them is wrong.
pub fn truncated_files() -> Vec<PathBuf> {
    let paths = locked(&PATHS);
    let mapped = paths
        .iter()
        .filter(|(index, _)| SLOTS[*index].truncated.load(Ordering::Relaxed));
    let mut files: Vec<PathBuf> = mapped.map(|(_, path)| path.clone()).collect();
    files.extend(locked(&GONE).iter().cloned());
    if UNKNOWN.load(Ordering::Relaxed) {
        files.push("a file of split debug information".into());
    }
    files.sort();
    files.dedup();
    files
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn install() {
    // SAFETY: `handler` is one for SA_SIGINFO and only does what signal-safety(7) allows; the
    // action is laid out by the zeros of `zeroed` and the fields set here.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

/// The kernel could not read the page of a mapping at an address.
extern "C" fn handler(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel gives a valid siginfo; `errno` and what else is called is safe in a
    // handler (signal-safety(7)).
    unsafe {
        let before = *libc::__errno_location();
        let address = (*info).si_addr() as usize;
        // Bad memory, or a signal that somebody sent, is none of this: it ends the process as it
        // would have without us.
        if (*info).si_code != BUS_ADRERR || !zeros_from(address) {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
        *libc::__errno_location() = before;
    }
}

/// "Nonexistent physical address" (sigaction(2)): the page lies beyond the end of its file.
const BUS_ADRERR: libc::c_int = 2;

/// Maps zeros from the page of an address to the end of its mapping, and marks the file. Of a
/// mapping that is not known, for its page.
fn zeros_from(address: usize) -> bool {
    // SAFETY: sysconf is safe in a handler in every C library that there is, though POSIX does not
    // list it.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let first = address / page * page;
    // Its mapping lives, as a thread reads it just now: of its slot nothing changes.
    let holds = |slot: &'static Slot| {
        let start = slot.start.load(Ordering::Acquire);
        let length = slot.length.load(Ordering::Acquire);
        let is_there =
            start != 0 && address.wrapping_sub(start) < length && slot.start.load(Ordering::Acquire) == start;
        is_there.then(|| ((start + length).next_multiple_of(page), &slot.truncated))
    };
    let (end, mark) = SLOTS.iter().find_map(holds).unwrap_or((first + page, &UNKNOWN));
    mark.store(true, Ordering::Relaxed);
    // SAFETY: the range is of one mapping of a file, which is only read; its pages are gone.
    let mapped = unsafe {
        libc::mmap(
            first as *mut c_void,
            end - first,
            libc::PROT_READ,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    mapped != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::truncated_files;
    use crate::mapped_file::mapped;
    use std::fs::File;

    #[test]
    fn a_file_that_is_cut_while_it_is_read_reads_as_zeros_and_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("library.so");
        std::fs::write(&path, vec![7; 1 << 20]).expect("written");
        let other = folder.path().join("other.so");
        std::fs::write(&other, vec![5; 1 << 20]).expect("written");
        let (file, whole) = (mapped(&path).expect("mapped"), mapped(&other).expect("mapped"));
        assert_eq!((file[0], file[1 << 19]), (7, 7));
        assert!(!file.is_truncated());
        File::options()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_len(4096))
            .expect("cut");
        assert_eq!((file[0], file[1 << 19], file[(1 << 20) - 1]), (7, 0, 0));
        assert!(file.is_truncated() && !whole.is_truncated());
        assert_eq!(whole[1 << 19], 5);
        assert!(truncated_files().contains(&path));
        drop(file);
        assert!(truncated_files().contains(&path), "also when it is no longer mapped");
        assert!(!truncated_files().contains(&other));
    }
}
