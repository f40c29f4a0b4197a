//! Telling formats apart by how a file begins.

use super::{ImportError, other_formats, without_mark};
use crate::{folded, perf_script, pprof};

/// A format of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingFormat {
    /// What `perf record` writes, into a file or into a pipe.
    PerfData,
    /// What `perf script` prints.
    PerfScript,
    /// Folded stacks, of which flame graphs are drawn.
    Folded,
    /// pprof's.
    Pprof,
}

/// How much of a file is looked at to tell a text, and how much if its first line is that long.
const BEGINNING: usize = 4096;
const LONGEST_LINE: usize = 1 << 20;

impl RecordingFormat {
    /// All of them.
    pub const ALL: [RecordingFormat; 4] = [
        RecordingFormat::PerfData,
        RecordingFormat::PerfScript,
        RecordingFormat::Folded,
        RecordingFormat::Pprof,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RecordingFormat::PerfData => "perf.data",
            RecordingFormat::PerfScript => "the text of perf script",
            RecordingFormat::Folded => "folded stacks",
            RecordingFormat::Pprof => "pprof",
        }
    }

    /// The format of a file that begins so.
    ///
    /// # Errors
    /// [`ImportError::UnknownFormat`]; [`ImportError::Unsupported`] where it is known and cannot be read.
    pub fn of(bytes: &[u8]) -> Result<RecordingFormat, ImportError> {
        if let Some(what) = other_formats::refusal(bytes) {
            return Err(ImportError::Unsupported { what: what.to_owned() });
        }
        match without_mark(bytes) {
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => Ok(RecordingFormat::PerfData),
            [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Err(ImportError::Unsupported {
                what: "recorded on a big-endian machine: scaleprof reads recordings of x86-64 and aarch64".into(),
            }),
            [] => Err(ImportError::Broken {
                what: "the file is empty".into(),
            }),
            bytes if is_text(bytes, perf_script::looks_like_it) => Ok(RecordingFormat::PerfScript),
            bytes if is_text(bytes, folded::looks_like_it) => Ok(RecordingFormat::Folded),
            _ if !is_text(bytes, |_| true) && pprof::looks_like_it(bytes) => Ok(RecordingFormat::Pprof),
            _ if is_text(bytes, perf_script::has_stacks) => Err(ImportError::Unsupported {
                what: "stacks of perf script without lines of thread and event: print it with `perf script`, without \
                       -F"
                .into(),
            }),
            _ => Err(ImportError::UnknownFormat {
                found: format!(
                    "it begins with {:?}",
                    String::from_utf8_lossy(&bytes[..bytes.len().min(16)])
                ),
                known: RecordingFormat::ALL.map(RecordingFormat::name).join(", "),
            }),
        }
    }
}

/// Whether a file begins with lines that look so, comments left out. A line is looked at to its end, as call paths may be long.
fn is_text(bytes: &[u8], looks_like_it: impl Fn(&str) -> bool) -> bool {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let is_comment = |line: &&[u8]| line.starts_with(b"#") || line.trim_ascii().is_empty();
    let comments = lines.by_ref().take_while(is_comment).map(<[u8]>::len).sum::<usize>();
    let content = &bytes[comments..];
    let first = content.iter().position(|byte| *byte == b'\n').unwrap_or(content.len());
    let beginning = &content[..first.clamp(BEGINNING, LONGEST_LINE).min(content.len())];
    let is_plain = beginning.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace());
    is_plain && looks_like_it(&String::from_utf8_lossy(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perf_recording_is_known_by_its_first_bytes() {
        assert_eq!(
            RecordingFormat::of(b"PERFILE2\x68\0").ok(),
            Some(RecordingFormat::PerfData)
        );
        let complaint = |bytes| {
            RecordingFormat::of(bytes)
                .map_err(|error| error.to_string())
                .unwrap_err()
        };
        assert!(complaint(b"").contains("empty"));
        assert!(complaint(b"2ELIFREP").contains("big-endian"));
        assert!(complaint(b"\x7fELF").contains("begins with"));
        let bare = complaint(b"\t    55d0 main+0x1 (/usr/sbin/mysqld)\n\t    55d1 start (/usr/sbin/mysqld)\n\n");
        assert!(bare.contains("`perf script`, without -F"), "{bare}");
    }

    #[test]
    fn texts_and_profiles_are_told_apart_by_their_beginnings() {
        let deep = format!("{} 12\n", "some_function;".repeat(1000));
        let script = "# comment\n\nmysqld 7/8 [000] 1.5: 1 cycles: \n\t 55 main (/x)\n";
        for (content, format) in [
            (script.as_bytes(), RecordingFormat::PerfScript),
            (b"# comment\nmain;f 12\nmain;g 1.5\n", RecordingFormat::Folded),
            (deep.as_bytes(), RecordingFormat::Folded),
            (b"main;f 1 2", RecordingFormat::Folded),
            (&[0x0a, 0x04, 0x08, 0x01, 0x10, 0x02], RecordingFormat::Pprof),
        ] {
            assert_eq!(RecordingFormat::of(content).ok(), Some(format), "{content:?}");
        }
        for content in [
            &b"A page of text\nin which one line ends in 5\nand the others do not\n"[..],
            b"# only\n# comments\n",
            b"2 or *\n",
        ] {
            assert!(RecordingFormat::of(content).is_err());
        }
    }
}
