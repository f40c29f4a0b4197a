//! Zstandard data of several frames, as `pzstd` and some packagers write it: RFC 8878, 3.1.

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, Read};

/// Reads frame after frame.
pub(crate) struct ZstdFrames<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    pub(crate) fn new(source: R) -> Self {
        ZstdFrames {
            source,
            decoder: FrameDecoder::new(),
            in_frame: false,
        }
    }

    /// Goes to the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut (&mut self.source).take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(broken(&error)),
            }
        }
        Ok(false)
    }
}

fn broken(error: &FrameDecoderError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame && !self.begin()? {
                return Ok(0);
            }
            self.in_frame = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(|error| broken(&error))?;
            }
            match self.decoder.read(buffer)? {
                0 if self.decoder.is_finished() && self.decoder.can_collect() == 0 => self.in_frame = false,
                count => return Ok(count),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of one raw block: magic, a header with one byte for the size, block header, bytes.
    fn frame(content: &[u8]) -> Vec<u8> {
        let size = u8::try_from(content.len()).expect("a short content");
        let block = (u32::from(size) << 3 | 1).to_le_bytes();
        [&[0x28, 0xb5, 0x2f, 0xfd, 0x20, size][..], &block[..3], content].concat()
    }

    #[test]
    fn frames_follow_each_other_and_those_to_skip_are_skipped() {
        let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"xyz"].concat();
        let all = [frame(b"one "), skipped, frame(b"two")].concat();
        let mut text = String::new();
        ZstdFrames::new(all.as_slice())
            .read_to_string(&mut text)
            .expect("readable");
        assert_eq!(text, "one two");
        let mut cut = ZstdFrames::new(all.get(..all.len() - 1).expect("a part"));
        assert!(cut.read_to_end(&mut Vec::new()).is_err(), "a frame without its end");
    }
}
