//! What compressed bytes unfold into, whatever the length of that.
//!
//! How much that may be is not told by the file's own length: a recording of one loop with copied stacks shrinks to a thousandth. So
//! it is kept in memory while it is little and in a file without a name from then on, and ends where the disk does.

use crate::mapped_file::{Bytes, MappedFile, mapped_from};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// Most that is kept in memory.
pub(crate) const IN_MEMORY: usize = 32 << 20;
/// What is left free on the disk, at least: a server may keep its data there.
const LEFT_FREE: u64 = 1 << 30;
/// And at least this part of what was free: one in so many.
const LEFT_PART: u64 = 2;
/// How often that is looked at, bytes.
const LOOKS_EVERY: u64 = 64 << 20;

/// Bytes that were unfolded.
#[derive(Debug)]
pub enum UnfoldedBytes {
    /// As long as there are few.
    InMemory(Vec<u8>),
    /// In a file without a name.
    InFile(MappedFile),
}

impl Deref for UnfoldedBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            UnfoldedBytes::InMemory(bytes) => bytes,
            UnfoldedBytes::InFile(file) => file,
        }
    }
}

impl Bytes for UnfoldedBytes {
    fn let_go(&self, part: &[u8]) {
        match self {
            UnfoldedBytes::InMemory(_) => {}
            UnfoldedBytes::InFile(file) => file.let_go(part),
        }
    }
}

/// Bytes that are being unfolded.
#[derive(Debug)]
pub struct Unfolding {
    in_memory: Vec<u8>,
    most_in_memory: usize,
    file: Option<File>,
    length: u64,
    looked_at: u64,
    /// What has to stay free, once that was looked at.
    leave: Option<u64>,
}

impl Default for Unfolding {
    fn default() -> Self {
        Unfolding::with(IN_MEMORY)
    }
}

impl Unfolding {
    fn with(most_in_memory: usize) -> Self {
        Unfolding {
            in_memory: Vec::new(),
            most_in_memory,
            file: None,
            length: 0,
            looked_at: 0,
            leave: None,
        }
    }

    /// How many there are.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// What was unfolded.
    ///
    /// # Errors
    /// The file cannot be written or mapped.
    pub fn finish(mut self) -> io::Result<UnfoldedBytes> {
        match self.file.take() {
            None => Ok(UnfoldedBytes::InMemory(std::mem::take(&mut self.in_memory))),
            Some(mut file) => {
                file.write_all(&self.in_memory)?;
                let name = Path::new("what was unfolded");
                Ok(UnfoldedBytes::InFile(mapped_from(&file, name)?))
            }
        }
    }

    fn make_room(&mut self) -> io::Result<()> {
        let folder = folder();
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&folder)?,
        };
        if self.length - self.looked_at >= LOOKS_EVERY || self.looked_at == 0 {
            self.looked_at = self.length.max(1);
            let disk = rustix::fs::fstatvfs(&file)?;
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let leave = *self.leave.get_or_insert(LEFT_FREE.max(free / LEFT_PART));
            if free < leave {
                return Err(io::Error::new(
                    io::ErrorKind::StorageFull,
                    format!(
                        "it unfolds into more than {} MB, and {} has {} MB free, of which {} stay so; the variable TMPDIR names another folder",
                        self.length / 1_000_000,
                        folder.display(),
                        free / 1_000_000,
                        leave / 1_000_000
                    ),
                ));
            }
        }
        file.write_all(&self.in_memory)?;
        self.in_memory.clear();
        self.file = Some(file);
        Ok(())
    }
}

impl Write for Unfolding {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.in_memory.len() + bytes.len() > self.most_in_memory {
            self.make_room()?;
        }
        self.in_memory.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where large temporary files belong (file-hierarchy(7)): `/tmp` may be memory.
fn folder() -> PathBuf {
    let told = std::env::var_os("TMPDIR").map(PathBuf::from);
    let large = || Path::new("/var/tmp").is_dir().then(|| PathBuf::from("/var/tmp"));
    told.filter(|folder| folder.is_absolute())
        .or_else(large)
        .unwrap_or_else(std::env::temp_dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_the_same_in_memory_and_in_a_file() {
        let bytes: Vec<u8> = (0..10_000_u32).flat_map(u32::to_le_bytes).collect();
        for most in [1, 1000, bytes.len(), 10 * bytes.len()] {
            let mut unfolding = Unfolding::with(most);
            for part in bytes.chunks(700) {
                unfolding.write_all(part).unwrap();
            }
            assert_eq!(unfolding.length(), bytes.len() as u64);
            let found = unfolding.finish().unwrap();
            assert_eq!(
                matches!(found, UnfoldedBytes::InMemory(_)),
                most >= bytes.len(),
                "{most}"
            );
            assert!(*found == *bytes, "{most}");
        }
        assert!(Unfolding::with(1).finish().unwrap().is_empty());
    }
}
