//! Files that were compressed by gzip.

use super::ImportError;
use flate2::read::MultiGzDecoder;
use std::io::Read as _;

/// Into how many times its size a file may unfold, and what a small one may have besides. Profiles and stacks unfold into three to
/// ten times as much; gzip itself could make a thousand times as much of zeros.
const MOST_TIMES: u64 = 32;
const MOST_BESIDES: u64 = 1 << 20;

/// What a compressed file holds.
#[derive(Debug)]
pub(super) struct Unfolded {
    /// What could be had of it.
    pub bytes: Vec<u8>,
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
/// [`ImportError::Broken`] where there is nothing, or far more than such files hold.
pub(super) fn unfold(bytes: &[u8]) -> Result<Unfolded, ImportError> {
    let most = (bytes.len() as u64).saturating_mul(MOST_TIMES) + MOST_BESIDES;
    let mut found = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(most + 1).read_to_end(&mut found);
    if found.len() as u64 > most {
        return Err(ImportError::Broken {
            what: format!(
                "its {} bytes unfold into more than {MOST_TIMES} times as many, as no profile does; if it is a good file, unfold it \
                 with gunzip first",
                bytes.len()
            ),
        });
    }
    let problem = read
        .err()
        .map(|error| format!("the compressed file is cut off or damaged ({error})"));
    match problem {
        Some(what) if found.is_empty() => Err(ImportError::Broken { what }),
        problem => Ok(Unfolded { bytes: found, problem }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;

    fn folded_up(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_bomb_is_refused_before_it_goes_off() {
        let bomb = folded_up(&vec![0; 64 << 20]);
        assert!(bomb.len() < 100_000);
        let said = unfold(&bomb).unwrap_err().to_string();
        assert!(said.contains("gunzip"), "{said}");
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
