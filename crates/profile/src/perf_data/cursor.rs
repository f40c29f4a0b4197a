//! Reading little-endian numbers from bytes that may end at any place.

/// A place in bytes. Whatever would lie behind the end is none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    pub(super) fn rest(self) -> &'a [u8] {
        self.rest
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// So many numbers of 8 bytes, as bytes.
    pub(super) fn words(&mut self, count: u64) -> Option<Words<'a>> {
        let length = usize::try_from(count).ok()?.checked_mul(8)?;
        self.take(length).map(Words)
    }

    /// A string as perf's header keeps it: its length in 4 bytes, padded with zeros.
    pub(super) fn string(&mut self) -> Option<String> {
        let length = self.u32()?;
        Some(until_zero(self.take(length as usize)?))
    }

    /// The section of the file that two numbers, place and length, name; cut where the file ends.
    pub(super) fn section(&mut self, file: &'a [u8]) -> Option<Section<'a>> {
        let (offset, size) = (self.u64()?, self.u64()?);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.len());
        let wanted = usize::try_from(size).unwrap_or(usize::MAX);
        let bytes = &file[from..from.saturating_add(wanted).min(file.len())];
        Some(Section {
            offset: from,
            bytes,
            missing: size.saturating_sub(bytes.len() as u64),
        })
    }
}

/// A part of the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Section<'a> {
    pub(super) offset: usize,
    pub(super) bytes: &'a [u8],
    /// Bytes of it that lie behind the end of the file.
    pub(super) missing: u64,
}

/// Numbers of 8 bytes that need not be aligned.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Words<'a>(&'a [u8]);

impl Words<'_> {
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        let (words, _) = self.0.as_chunks::<8>();
        words.iter().map(|word| u64::from_le_bytes(*word))
    }

    pub(super) fn get(&self, index: usize) -> Option<u64> {
        let (words, _) = self.0.as_chunks::<8>();
        words.get(index).map(|word| u64::from_le_bytes(*word))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len() / 8
    }
}

/// Text up to the first zero byte.
pub(super) fn until_zero(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
