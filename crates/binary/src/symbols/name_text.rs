//! Texts in which names stand one after the other, each with a zero behind it, as in the string table of an ELF file.

use std::sync::Arc;

use crate::mapped_file::FilePart;

/// Such a text.
#[derive(Debug, Clone)]
pub(crate) enum NameText {
    /// A part of a file that stays mapped.
    Mapped(FilePart),
    /// A copy.
    Copied(Arc<[u8]>),
}

impl NameText {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            NameText::Mapped(part) => part,
            NameText::Copied(bytes) => bytes,
        }
    }
}

/// A name without the version of a library's symbol, which stands behind `@@`.
pub(crate) fn cut_version(name: &str) -> &str {
    match memchr::memchr(b'@', name.as_bytes()) {
        Some(_) => name.split("@@").next().unwrap_or_default(),
        None => name,
    }
}
