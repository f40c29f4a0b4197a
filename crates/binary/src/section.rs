//! The content of a section of an ELF file, which may be compressed (SHF_COMPRESSED, and GNU's older `.zdebug`).

use crate::unfolded::{IN_MEMORY, UnfoldedBytes, Unfolding};
use flate2::read::ZlibDecoder;
use object::{CompressionFormat, ObjectSection};
use ruzstd::decoding::StreamingDecoder;
use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Read};
use std::ops::Deref;

/// What a section holds.
#[derive(Debug)]
pub(crate) enum Content<'a> {
    InFile(&'a [u8]),
    Unfolded(UnfoldedBytes),
}

impl Deref for Content<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Content::InFile(bytes) => bytes,
            Content::Unfolded(bytes) => bytes,
        }
    }
}

impl Default for Content<'_> {
    fn default() -> Self {
        Content::InFile(&[])
    }
}

impl<'a> Content<'a> {
    /// The bytes, of small sections: what was unfolded is copied.
    pub(crate) fn into_cow(self) -> Cow<'a, [u8]> {
        match self {
            Content::InFile(bytes) => Cow::Borrowed(bytes),
            Content::Unfolded(bytes) => Cow::Owned(bytes.to_vec()),
        }
    }
}

/// How much the sections of one file may unfold into, all together. What a header says of it is anybody's word: a file of 70 KB can claim
/// 2 GiB, and hold them.
#[derive(Debug)]
pub(crate) struct Room(Cell<u64>);

impl Room {
    /// Of a file of so many bytes, which linkers and `objcopy --compress-debug-sections` shrink by far less than twenty times.
    pub(crate) fn of_file(bytes: usize) -> Room {
        const BESIDES: u64 = 64 << 20;
        Room(Cell::new((bytes as u64).saturating_mul(20).saturating_add(BESIDES)))
    }

    /// What a section holds; none where it cannot be read, or there is no room for it.
    pub(crate) fn content<'a>(&self, section: &impl ObjectSection<'a>) -> Option<Content<'a>> {
        let found = section.compressed_data().ok()?;
        let unfolded = match found.format {
            CompressionFormat::None => return Some(Content::InFile(found.data)),
            CompressionFormat::Zlib => self.unfold(ZlibDecoder::new(found.data), found.uncompressed_size),
            CompressionFormat::Zstandard => {
                let decoder = StreamingDecoder::new(found.data).ok()?;
                self.unfold(decoder, found.uncompressed_size)
            }
            _ => return None,
        };
        unfolded.ok().map(Content::Unfolded)
    }

    /// What a section unfolds into, which says how much that is.
    fn unfold(&self, source: impl Read, claimed: u64) -> io::Result<UnfoldedBytes> {
        let left = self.0.get();
        if claimed > left {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut source = source.take(claimed);
        let (length, unfolded) = if claimed <= IN_MEMORY as u64 {
            let mut bytes = Vec::with_capacity(claimed as usize);
            source.read_to_end(&mut bytes)?;
            (bytes.len() as u64, UnfoldedBytes::InMemory(bytes))
        } else {
            let mut unfolding = Unfolding::default();
            io::copy(&mut source, &mut unfolding)?;
            (unfolding.length(), unfolding.finish()?)
        };
        self.0.set(left - length);
        match length == claimed {
            true => Ok(unfolded),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn sections_share_the_room_of_their_file() {
        let room = Room(Cell::new(1000));
        let packed = zlib(&[7; 600]);
        let unfold = |claimed| room.unfold(ZlibDecoder::new(packed.as_slice()), claimed);
        assert_eq!(&*unfold(600).unwrap(), [7; 600]);
        assert!(unfold(600).is_err(), "400 are left");
    }

    #[test]
    fn a_claim_is_neither_believed_nor_exceeded() {
        let room = Room::of_file(70_000);
        let packed = zlib(&[7; 600]);
        let unfold = |claimed| room.unfold(ZlibDecoder::new(packed.as_slice()), claimed);
        assert_eq!(unfold(2 << 30).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(unfold(601).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(unfold(599).unwrap().len(), 599);
    }
}
