//! Records that `perf record -z` compressed: one Zstandard stream (RFC 8878) in pieces, which perf flushes and never ends.

use ruzstd::decoding::StreamingDecoder;
use std::io::Read;

/// No recording shrinks to less than a hundredth; what claims to is made to fill the memory.
const MOST_GROWTH: u64 = 100;
/// An empty block that is the last of its frame (RFC 8878, 3.1.1.2): without it a decoder would wait for more.
const LAST_BLOCK: &[u8] = &[1, 0, 0];

/// What came out.
#[derive(Debug, Default)]
pub(super) struct Expanded {
    pub(super) bytes: Vec<u8>,
    /// Why it is not all, in words.
    pub(super) problem: Option<String>,
}

/// Expands the pieces of a recording of that length.
pub(super) fn expand(pieces: &[&[u8]], file_length: usize) -> Expanded {
    let limit = (file_length as u64).saturating_mul(MOST_GROWTH);
    let mut source = Pieces::new(pieces);
    let mut expanded = Expanded::default();
    while !source.is_at_end() {
        let left = limit.saturating_sub(expanded.bytes.len() as u64);
        let found = read_frame(&mut source, left, &mut expanded.bytes);
        let problem = match found {
            Frame::Read => continue,
            // Nothing but the block that we put there was left.
            Frame::NotBegun(_) if source.is_at_end() => break,
            Frame::NotBegun(error) | Frame::Broken(error) => error,
        };
        let length = expanded.bytes.len();
        expanded.problem = Some(format!("its compressed part ends after {length} bytes: {problem}"));
        break;
    }
    expanded
}

/// How reading a frame ended.
enum Frame {
    Read,
    NotBegun(String),
    Broken(String),
}

fn read_frame(source: &mut Pieces<'_>, most: u64, into: &mut Vec<u8>) -> Frame {
    let decoder = match StreamingDecoder::new(source) {
        Ok(decoder) => decoder,
        Err(error) => return Frame::NotBegun(error.to_string()),
    };
    match decoder.take(most).read_to_end(into) {
        Ok(length) if length as u64 >= most => {
            Frame::Broken("it claims to be more than a hundred times as long".to_owned())
        }
        Ok(_) => Frame::Read,
        Err(error) => Frame::Broken(error.to_string()),
    }
}

/// Pieces one behind the other, and the last block.
struct Pieces<'a> {
    pieces: &'a [&'a [u8]],
    /// Place of the piece that is read.
    at: usize,
    /// What is left of it; of the block behind all pieces at last.
    rest: &'a [u8],
}

impl<'a> Pieces<'a> {
    fn new(pieces: &'a [&'a [u8]]) -> Pieces<'a> {
        Pieces {
            pieces,
            at: 0,
            rest: pieces.first().copied().unwrap_or_default(),
        }
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.pieces.len()
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.rest.is_empty() && !self.is_at_end() {
            self.at += 1;
            self.rest = self.pieces.get(self.at).copied().unwrap_or(LAST_BLOCK);
        }
        let length = buffer.len().min(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        buffer[..length].copy_from_slice(taken);
        self.rest = rest;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "perf" as a frame of one raw block that is not its last (RFC 8878, 3.1.1).
    const UNENDED: [u8; 13] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x20, 0, 0, b'p', b'e', b'r', b'f'];

    #[test]
    fn a_stream_that_was_never_ended_comes_out_whole() {
        for cut in 0..UNENDED.len() {
            let (first, second) = UNENDED.split_at(cut);
            let found = expand(&[first, second], UNENDED.len());
            assert_eq!(
                (found.bytes.as_slice(), found.problem),
                (&b"perf"[..], None),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn what_is_broken_ends_with_a_reason() {
        let broken = [&UNENDED[..], &[0xff; 40]].concat();
        let found = expand(&[&broken], broken.len());
        assert!(
            found.problem.is_some_and(|problem| problem.contains("after")),
            "no reason"
        );
        assert!(expand(&[b"nonsense"], 8).problem.is_some());
        assert_eq!(expand(&[], 0).bytes, b"");
    }

    #[test]
    fn a_bomb_is_stopped() {
        // A block of one byte repeated 128 KiB times, often.
        let mut bomb = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
        for _ in 0..1000 {
            bomb.extend([0x02, 0x00, 0x10, b'x']);
        }
        let found = expand(&[&bomb], bomb.len());
        assert!(found.bytes.len() as u64 <= bomb.len() as u64 * MOST_GROWTH);
        assert!(found.problem.is_some());
    }
}
