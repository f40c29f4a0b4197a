//! The ring through which the kernel hands over the records of one CPU (man 2 perf_event_open, "MMAP layout").

use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Positions of `data_head` and `data_tail` in `struct perf_event_mmap_page`.
const HEAD_AT: usize = 1024;
const TAIL_AT: usize = 1032;

/// A mapped ring. It must be dropped before the event that it belongs to is of no more use; the kernel keeps the memory
/// until both are gone.
#[derive(Debug)]
pub(super) struct Ring {
    memory: NonNull<u8>,
    page: usize,
    data: usize,
    /// A record that lies across the ring's end is put together here.
    whole: Vec<u8>,
}

// SAFETY: the ring owns its mapping and nothing else points into it but the kernel, which keeps to head and tail.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of an event with so many bytes for records, a power of two and not less than a page.
    pub(super) fn map(event: BorrowedFd<'_>, data: usize) -> std::io::Result<Self> {
        let page = rustix::param::page_size();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                page + data,
                protection,
                libc::MAP_SHARED,
                event.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            memory,
            page,
            data,
            whole: Vec::new(),
        })
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both positions lie in the first page, aligned to eight bytes, and are only used as atomics.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(at).cast()) }
    }

    /// Hands every record that has come since to `take`, and makes room.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&[u8])) {
        // Everything before the head was written before the head was (the barrier that perf's rules ask for).
        let head = self.position(HEAD_AT).load(Ordering::Acquire);
        let mut tail = self.position(TAIL_AT).load(Ordering::Relaxed);
        while tail < head {
            let mut header = [0; 8];
            self.copy(tail, &mut header);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < header.len() || size as u64 > head - tail {
                // Never seen; nothing behind it could be believed.
                tail = head;
                break;
            }
            let mut whole = std::mem::take(&mut self.whole);
            whole.resize(size, 0);
            self.copy(tail, &mut whole);
            take(&whole);
            self.whole = whole;
            tail += size as u64;
            // Room is given back record by record: unwinding takes its time, and the kernel goes on writing.
            self.position(TAIL_AT).store(tail, Ordering::Release);
        }
        self.position(TAIL_AT).store(tail, Ordering::Release);
    }

    fn copy(&self, from: u64, into: &mut [u8]) {
        let start = (from % self.data as u64) as usize;
        let first = into.len().min(self.data - start);
        // SAFETY: `start + first` and `into.len() - first` are at most the length of the data, which follows the first
        // page; between tail and head the kernel does not write.
        unsafe {
            let data = self.memory.as_ptr().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(start), into.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, into.as_mut_ptr().add(first), into.len() - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length and unmapped once.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.page + self.data) };
    }
}
