//! Reading one small file of the kernel again and again without opening it anew.
//!
//! An open file of `/proc/PID` stays bound to that process: after its end reads give `ESRCH`, and a new process
//! that gets the same number is never taken for it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::ProbeError;

/// A file of `/proc` or `/sys` that is kept open.
#[derive(Debug)]
pub(crate) struct KernelFile {
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
}

impl KernelFile {
    /// Opens the file.
    pub(crate) fn open(path: impl AsRef<Path>) -> Result<Self, ProbeError> {
        let path = path.as_ref().to_path_buf();
        let file = File::open(&path).map_err(|source| ProbeError::Read {
            path: path.clone(),
            source,
        })?;
        Ok(Self {
            path,
            file,
            buffer: vec![0; 4096],
        })
    }

    /// The first 4 KiB, in one system call: enough for a file that is one record, or whose first line is all
    /// that is wanted.
    pub(crate) fn head(&mut self) -> Result<&str, ProbeError> {
        let length = self
            .file
            .read_at(&mut self.buffer, 0)
            .map_err(|source| self.failed(source))?;
        Ok(text(&self.buffer[..length]))
    }

    /// The whole file. The kernel hands out such files in pieces of a page, so it is read until it ends.
    pub(crate) fn whole(&mut self) -> Result<&str, ProbeError> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                self.buffer.resize(length * 2, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => return Ok(text(&self.buffer[..length])),
                Ok(more) => length += more,
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, source: std::io::Error) -> ProbeError {
        ProbeError::Read {
            path: self.path.clone(),
            source,
        }
    }
}

/// The bytes up to the first that is not UTF-8: all fields that are read stand before any name of a program.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}
