//! Telling formats apart by how a file begins.

use super::ImportError;

/// A format of recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingFormat {
    /// What `perf record` writes, into a file or into a pipe.
    PerfData,
}

impl RecordingFormat {
    /// All of them.
    pub const ALL: [RecordingFormat; 1] = [RecordingFormat::PerfData];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RecordingFormat::PerfData => "perf.data",
        }
    }

    /// The format of a file that begins so.
    ///
    /// # Errors
    /// [`ImportError::UnknownFormat`]; [`ImportError::Unsupported`] where it is known and cannot be read.
    pub fn of(bytes: &[u8]) -> Result<RecordingFormat, ImportError> {
        match bytes {
            [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => Ok(RecordingFormat::PerfData),
            [b'2', b'E', b'L', b'I', b'F', b'R', b'E', b'P', ..] => Err(ImportError::Unsupported {
                what: "it was recorded on a big-endian machine: scaleprof reads recordings of x86-64 and aarch64"
                    .into(),
            }),
            [] => Err(ImportError::Broken {
                what: "the file is empty".into(),
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
    }
}
