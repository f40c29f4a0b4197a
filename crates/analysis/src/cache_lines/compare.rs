//! The same variables in another build: where the linker put them there.

use super::judged::{JudgedLine, PlaceRole};
use serde::{Deserialize, Serialize};

/// Pairs that are looked at of each line.
const MOST_PAIRS: usize = 4;

/// Two neighbours of one build in another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairElsewhere {
    /// What is read.
    pub read: String,
    /// What is written.
    pub written: String,
    /// Whether they share a line there too; none where one of them is not there (or has no name).
    pub together: Option<bool>,
    /// Bytes from the end of the first to the start of the second; none where that is not known.
    pub apart: Option<u64>,
}

/// Looks up the pairs of a judged line in another build. `find` gives address and size of a place there by its name.
pub fn pairs_elsewhere(line: &JudgedLine, find: impl Fn(&str) -> Option<(u64, u64)>) -> Vec<PairElsewhere> {
    let of = |roles: &'static [PlaceRole]| line.variables.iter().filter(move |place| roles.contains(&place.role));
    let mut read: Vec<_> = of(&[PlaceRole::ReadMostly]).collect();
    let mut written: Vec<_> = of(&[PlaceRole::Written, PlaceRole::Lock]).collect();
    read.sort_by(|a, b| b.read_weight.total_cmp(&a.read_weight));
    written.sort_by(|a, b| b.write_weight.total_cmp(&a.write_weight));
    let firsts = if read.is_empty() { &written } else { &read };
    let mut pairs = Vec::new();
    for first in firsts {
        for second in written.iter().filter(|second| second.name != first.name) {
            let known = pairs
                .iter()
                .any(|pair: &PairElsewhere| pair.read == second.name && pair.written == first.name);
            if pairs.len() < MOST_PAIRS && !known {
                pairs.push(pair(&first.name, &second.name, line.bytes, &find));
            }
        }
    }
    pairs
}

fn pair(read: &str, written: &str, bytes: u64, find: impl Fn(&str) -> Option<(u64, u64)>) -> PairElsewhere {
    let places = find(read).zip(find(written));
    let bytes = bytes.max(1);
    let last = |(address, size): (u64, u64)| address.saturating_add(size.max(1) - 1);
    PairElsewhere {
        read: read.to_owned(),
        written: written.to_owned(),
        together: places.map(|(a, b)| a.0 / bytes <= last(b) / bytes && b.0 / bytes <= last(a) / bytes),
        apart: places.map(|(a, b)| {
            let (first, second) = if a.0 <= b.0 { (a, b) } else { (b, a) };
            second.0.saturating_sub(last(first).saturating_add(1))
        }),
    }
}
