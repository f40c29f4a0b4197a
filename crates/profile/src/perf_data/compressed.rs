//! Records that `perf record -z` compressed: one Zstandard stream (RFC 8878) in pieces, which perf flushes and never ends.

use ruzstd::decoding::StreamingDecoder;
use scaleprof_binary::unfolded::{UnfoldedBytes, Unfolding};
use std::io::{self, Read, Write};

/// An empty block that is the last of its frame (RFC 8878, 3.1.1.2): without it a decoder would wait for more.
const LAST_BLOCK: &[u8] = &[1, 0, 0];

/// What came out.
#[derive(Debug)]
pub(super) struct Expanded {
    pub(super) bytes: UnfoldedBytes,
    /// Why it is not all, in words.
    pub(super) problem: Option<String>,
}

/// Expands the pieces of a recording.
pub(super) fn expand(pieces: &[&[u8]]) -> Expanded {
    let mut source = Pieces::new(pieces);
    let mut records = Records::new();
    let mut problem = None;
    while !source.is_at_end() {
        let error = match read_frame(&mut source, &mut records) {
            Frame::Read => continue,
            // Nothing but the block that we put there was left.
            Frame::NotBegun(_) if source.is_at_end() => break,
            Frame::NotBegun(error) | Frame::Broken(error) => error,
        };
        let length = records.unfolding.length();
        problem = Some(format!("its compressed part ends after {length} bytes: {error}"));
        break;
    }
    match records.unfolding.finish() {
        Ok(bytes) => Expanded { bytes, problem },
        Err(error) => Expanded {
            bytes: UnfoldedBytes::InMemory(Vec::new()),
            problem: Some(format!("what its compressed part unfolds into cannot be kept: {error}")),
        },
    }
}

/// How reading a frame ended.
enum Frame {
    Read,
    NotBegun(String),
    Broken(String),
}

fn read_frame(source: &mut Pieces<'_>, into: &mut Records) -> Frame {
    let mut decoder = match StreamingDecoder::new(source) {
        Ok(decoder) => decoder,
        Err(error) => return Frame::NotBegun(error.to_string()),
    };
    match io::copy(&mut decoder, into) {
        Ok(_) => Frame::Read,
        Err(error) => Frame::Broken(error.to_string()),
    }
}

/// Length of a record's header: its kind, flags and length (perf_event_header of perf_event.h).
const HEADER: usize = 8;

/// Takes records as long as they are some: a few bytes that unfold into a disk full of one byte are none.
struct Records {
    unfolding: Unfolding,
    /// Of a header that is cut by the end of a part.
    header: Vec<u8>,
    /// Bytes of a record that are still to come.
    to_come: usize,
}

impl Records {
    fn new() -> Self {
        Records {
            unfolding: Unfolding::default(),
            header: Vec::with_capacity(HEADER),
            to_come: 0,
        }
    }

    /// Goes through the records of a part; gives how many of its bytes are some.
    fn pass(&mut self, part: &[u8]) -> usize {
        let mut bytes = part;
        while !bytes.is_empty() {
            let passed = self.to_come.min(bytes.len());
            self.to_come -= passed;
            bytes = &bytes[passed..];
            let (more, rest) = bytes.split_at((HEADER - self.header.len()).min(bytes.len()));
            self.header.extend_from_slice(more);
            bytes = rest;
            if let [_, _, _, _, _, _, low, high] = self.header[..] {
                let length = usize::from(u16::from_le_bytes([low, high]));
                let Some(to_come) = length.checked_sub(HEADER) else {
                    return (part.len() - bytes.len()).saturating_sub(HEADER);
                };
                self.to_come = to_come;
                self.header.clear();
            }
        }
        part.len()
    }
}

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let good = self.pass(bytes);
        self.unfolding.write_all(&bytes[..good])?;
        match good == bytes.len() {
            true => Ok(good),
            false => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what comes out are no records of perf",
            )),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
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

    /// A record of 12 bytes as a frame of one raw block that is not its last (RFC 8878, 3.1.1).
    const UNENDED: [u8; 21] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x60, 0, 0, 9, 0, 0, 0, 0, 0, 12, 0, b'p', b'e', b'r', b'f',
    ];

    #[test]
    fn a_stream_that_was_never_ended_comes_out_whole() {
        for cut in 0..UNENDED.len() {
            let (first, second) = UNENDED.split_at(cut);
            let found = expand(&[first, second]);
            assert_eq!(found.problem, None, "cut at {cut}");
            assert_eq!(*found.bytes, UNENDED[9..], "cut at {cut}");
        }
    }

    #[test]
    fn what_is_broken_ends_with_a_reason() {
        let broken = [&UNENDED[..], &[0xff; 40]].concat();
        let found = expand(&[&broken]);
        assert!(
            found.problem.is_some_and(|problem| problem.contains("after")),
            "no reason"
        );
        assert!(expand(&[b"nonsense"]).problem.is_some());
        assert!(expand(&[]).bytes.is_empty());
    }

    /// A frame of blocks of one byte that is repeated 128 KiB times (RFC 8878, 3.1.1.2.2).
    fn repeated(byte: u8, blocks: usize) -> Vec<u8> {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
        for _ in 0..blocks {
            frame.extend([0x02, 0x00, 0x10, byte]);
        }
        frame
    }

    #[test]
    fn a_bomb_of_what_is_no_record_is_stopped() {
        let found = expand(&[&repeated(0, 1_000_000)]);
        assert!(found.bytes.is_empty());
        assert!(found.problem.is_some_and(|problem| problem.contains("no records")));
    }

    #[test]
    fn records_may_unfold_into_many_thousand_times_their_length() {
        // Of a kind that nobody knows, 0x0808 bytes each.
        let small = repeated(8, 1000);
        let found = expand(&[&small]);
        assert_eq!((found.bytes.len(), found.problem), (1000 << 17, None));
        assert!(matches!(found.bytes, UnfoldedBytes::InFile(_)), "not in memory");
    }
}
