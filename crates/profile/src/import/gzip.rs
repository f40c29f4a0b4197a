//! Files that were compressed by gzip.

use super::ImportError;
use flate2::read::MultiGzDecoder;
use scaleprof_binary::unfolded::{UnfoldedBytes, Unfolding};
use std::io::{self, Read, Write};

/// What a compressed file holds.
#[derive(Debug)]
pub(super) struct Unfolded {
    /// What could be had of it.
    pub bytes: UnfoldedBytes,
    /// Why that is not all.
    pub problem: Option<String>,
}

/// Whether a file begins as gzip does (RFC 1952).
pub(super) fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The content of a compressed file, as far as it goes.
///
/// # Errors
/// [`ImportError::Broken`] where there is nothing, or more than there is room for.
pub(super) fn unfold(bytes: &[u8]) -> Result<Unfolded, ImportError> {
    let broken = |what| ImportError::Broken { what };
    let no_room = |error: io::Error| broken(format!("what it unfolds into cannot be kept: {error}"));
    let mut source = MultiGzDecoder::new(bytes);
    let mut unfolding = Unfolding::default();
    let mut part = vec![0; 1 << 16];
    let problem = loop {
        match source.read(&mut part) {
            Ok(0) => break None,
            Ok(length) => unfolding.write_all(&part[..length]).map_err(no_room)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break Some(format!("the compressed file is cut off or damaged ({error})")),
        }
    };
    match problem {
        Some(what) if unfolding.length() == 0 => Err(broken(what)),
        problem => Ok(Unfolded {
            bytes: unfolding.finish().map_err(no_room)?,
            problem,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};

    fn folded_up(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_file_may_unfold_into_a_thousand_times_its_length() {
        let zeros = vec![0; 64 << 20];
        let small = folded_up(&zeros);
        assert!(small.len() < 100_000);
        let unfolded = unfold(&small).unwrap();
        assert!(matches!(unfolded.bytes, UnfoldedBytes::InFile(_)), "not in memory");
        assert!(*unfolded.bytes == *zeros && unfolded.problem.is_none());
    }

    #[test]
    fn what_is_before_the_damage_is_had() {
        let text: String = (0..20_000)
            .map(|n| format!("main;f{} {n}\n", n * 7919 % 1000))
            .collect();
        let whole = folded_up(text.as_bytes());
        assert!(is_gzip(&whole) && unfold(&whole).unwrap().problem.is_none());
        let cut = unfold(&whole[..whole.len() / 2]).unwrap();
        assert!(cut.problem.is_some() && text.as_bytes().starts_with(&cut.bytes) && cut.bytes.len() > 1000);
        assert!(unfold(&whole[..5]).is_err());
    }
}
