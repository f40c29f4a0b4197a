//! Files of machine code as bytes, without reading them whole.

use std::ops::Deref;
use std::path::Path;

/// The bytes of a file; those that are looked at are read.
#[derive(Debug)]
pub struct MappedFile(memmap2::Mmap);

impl Deref for MappedFile {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps a file into memory.
///
/// # Errors
/// It cannot be opened or mapped.
pub fn mapped(path: &Path) -> std::io::Result<MappedFile> {
    let file = std::fs::File::open(path)?;
    // SAFETY: a mapping is only wrong if someone else writes the file meanwhile. Servers, libraries and debug files are
    // replaced (a new file under the old name), never written in place: the kernel refuses that while they run.
    unsafe { memmap2::Mmap::map(&file) }.map(MappedFile)
}
