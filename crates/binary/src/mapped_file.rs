//! Files of machine code as bytes, without reading them whole.

use crate::truncated::Guard;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

/// The bytes of a file; those that are looked at are read. Where the file is truncated meanwhile, what is gone reads as zeros.
#[derive(Debug)]
pub struct MappedFile {
    // Dropped before the mapping, whose addresses may be another's from then on.
    guard: Guard,
    bytes: memmap2::Mmap,
}

impl MappedFile {
    /// Whether the file was truncated while it was read: what it says from then on is not its content.
    pub fn is_truncated(&self) -> bool {
        self.guard.is_truncated()
    }
}

impl Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Bytes of which a part can be let go of for now.
pub trait Bytes: Deref<Target = [u8]> + Send + Sync {
    /// Says that a part will hardly be looked at again soon. It stays readable. Bytes that lie in memory alone are kept.
    fn let_go(&self, _part: &[u8]) {}

    /// The file that they are of, from its first byte on, where there is one: parts may be read from it, too.
    fn file(&self) -> Option<&File> {
        None
    }

    /// What belongs to them and lies elsewhere, in its order.
    fn further(&self) -> Vec<&[u8]> {
        Vec::new()
    }
}

impl Bytes for MappedFile {
    fn let_go(&self, part: &[u8]) {
        /// A multiple of every page size that there is.
        const PAGES: usize = 1 << 16;
        let Some(start) = (part.as_ptr() as usize).checked_sub(self.bytes.as_ptr() as usize) else {
            return;
        };
        let first = start.next_multiple_of(PAGES);
        let last = (start + part.len()).min(self.bytes.len()) / PAGES * PAGES;
        if first < last {
            // SAFETY: the mapping is of a file and only read, so its pages come back from there with the same bytes. Where the kernel
            // refuses, they merely stay.
            let _ = unsafe {
                self.bytes
                    .unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, first, last - first)
            };
        }
    }
}

/// Says that these bytes will be looked at soon. Memory takes a hundred times as long to answer as the processor to ask, so who walks through
/// it from place to place asks for the next ones before.
pub fn prefetch(bytes: &[u8]) {
    /// Bytes that come at once.
    const CACHE_LINE: usize = 64;
    for line in bytes.chunks(CACHE_LINE) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: nothing is read or written by it, wherever it points.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = line;
    }
}

/// A part of a file that is mapped, kept as long as anybody has it.
#[derive(Debug, Clone)]
pub struct FilePart {
    file: Arc<MappedFile>,
    range: Range<usize>,
}

impl FilePart {
    /// What of the range is beyond the end of the file is left out.
    #[must_use]
    pub fn of(file: &Arc<MappedFile>, range: Range<usize>) -> FilePart {
        FilePart {
            file: Arc::clone(file),
            range: range.start.min(file.len())..range.end.min(file.len()).max(range.start.min(file.len())),
        }
    }
}

impl Deref for FilePart {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.file.get(self.range.clone()).unwrap_or_default()
    }
}

impl Bytes for Vec<u8> {}
impl Bytes for &[u8] {}

/// Maps a file into memory.
///
/// # Errors
/// It cannot be opened or mapped.
pub fn mapped(path: &Path) -> std::io::Result<MappedFile> {
    mapped_from(&File::open(path)?, path)
}

/// The same of a file that is open; `path` is what it is called where it is truncated.
///
/// # Errors
/// It cannot be mapped.
pub fn mapped_from(file: &File, path: &Path) -> std::io::Result<MappedFile> {
    // SAFETY: a mapping is only wrong if someone else writes the file meanwhile. Servers, libraries and debug files are
    // replaced (a new file under the old name); whoever writes one in its place changes what we read, which is taken for
    // hostile wherever it comes from, and `Guard` stands for one that is cut.
    let bytes = unsafe { memmap2::Mmap::map(file) }?;
    let guard = Guard::of(bytes.as_ptr(), bytes.len(), path)?;
    Ok(MappedFile { guard, bytes })
}
