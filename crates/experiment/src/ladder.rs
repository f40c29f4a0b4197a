//! The ladder: which rungs, how often, in which order.

use scaleprof_workload::ConnectionRng;

/// Most connections of a rung: the largest ladder that the client is tested with.
pub const MOST_CONNECTIONS: u32 = 20_000;

/// Why a text is no ladder.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LadderError {
    /// A part that is no number or range.
    #[error("--connections: '{0}' is not a number of connections or a range such as 1..512")]
    NotANumber(String),
    /// A rung that cannot be.
    #[error("--connections: {0} is not possible: use 1 to {MOST_CONNECTIONS}")]
    OutOfRange(u64),
    /// A range that falls.
    #[error("--connections: the range {0}..{1} goes down")]
    Falling(u32, u32),
}

/// Reads a ladder such as `1,2,4..512`: numbers, and ranges that double from their start to their end.
///
/// In `1,2,4..512` the range goes on from 4: 4, 8, 16 and so on. The end belongs to it, also when doubling misses it.
///
/// # Errors
/// A part that is no number or range, or out of bounds.
pub fn parse_connections(text: &str) -> Result<Vec<u32>, LadderError> {
    let number = |part: &str| -> Result<u32, LadderError> {
        let value: u64 = part
            .trim()
            .parse()
            .map_err(|_| LadderError::NotANumber(part.trim().to_owned()))?;
        match u32::try_from(value) {
            Ok(n) if (1..=MOST_CONNECTIONS).contains(&n) => Ok(n),
            _ => Err(LadderError::OutOfRange(value)),
        }
    };
    let mut rungs = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => rungs.push(number(part)?),
            Some((from, to)) => {
                let (from, to) = (number(from)?, number(to.trim_start_matches(['.', '=']))?);
                if from > to {
                    return Err(LadderError::Falling(from, to));
                }
                let mut rung = from;
                while rung < to {
                    rungs.push(rung);
                    rung = rung.saturating_mul(2);
                }
                rungs.push(to);
            }
        }
    }
    rungs.sort_unstable();
    rungs.dedup();
    Ok(rungs)
}

/// The measurements of a ladder as (connections, repeat): every repeat climbs all rungs in an order
/// of its own, so that what drifts over time does not look like an effect of the connections.
pub fn shuffled_measurements(rungs: &[u32], repeats: u32, seed: u64) -> Vec<(u32, u32)> {
    let mut measurements = Vec::new();
    for repeat in 0..repeats {
        let mut order = rungs.to_vec();
        let mut rng = ConnectionRng::new(seed, u64::from(repeat));
        // Fisher and Yates.
        for i in (1..order.len()).rev() {
            order.swap(i, rng.uniform(0, i as u32) as usize);
        }
        measurements.extend(order.into_iter().map(|connections| (connections, repeat)));
    }
    measurements
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_double_and_keep_their_ends() {
        let ladder = |text| parse_connections(text).unwrap();
        assert_eq!(ladder("1,2,4..512"), [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]);
        assert_eq!(ladder("1..6"), [1, 2, 4, 6]);
        assert_eq!(ladder("8,8,3"), [3, 8]);
    }

    #[test]
    fn nonsense_is_refused_with_the_part_that_is_wrong() {
        let error = |text| parse_connections(text).unwrap_err().to_string();
        assert!(error("1,x").contains("'x'"));
        assert!(error("0").contains("1 to 20000"));
        assert!(error("9..2").contains("goes down"));
        assert!(error("").contains("''"));
    }

    /// Each rung once, from below, none without a connection or with too many.
    fn is_a_ladder(rungs: &[u32]) -> bool {
        let climbs = rungs.windows(2).all(|two| two[0] < two[1]);
        !rungs.is_empty() && climbs && rungs.iter().all(|rung| (1..=MOST_CONNECTIONS).contains(rung))
    }

    proptest! {
        #[test]
        fn every_rung_is_visited_once_a_repeat(rungs in prop::collection::btree_set(1_u32..2000, 1..15), repeats in 1_u32..5, seed in any::<u64>()) {
            let rungs: Vec<u32> = rungs.into_iter().collect();
            let measurements = shuffled_measurements(&rungs, repeats, seed);
            for repeat in 0..repeats {
                let mut seen: Vec<u32> = measurements.iter().filter(|v| v.1 == repeat).map(|v| v.0).collect();
                seen.sort_unstable();
                prop_assert_eq!(&seen, &rungs);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9.,= x-]{0,30}") {
            if let Ok(rungs) = parse_connections(&text) {
                prop_assert!(is_a_ladder(&rungs), "{rungs:?}");
            }
        }

        #[test]
        fn numbers_and_ranges_become_a_ladder_that_holds_their_ends(
            parts in prop::collection::vec((1..=MOST_CONNECTIONS, 1..=MOST_CONNECTIONS), 1..8)
        ) {
            let texts: Vec<String> = parts
                .iter()
                .map(|(one, other)| match one.cmp(other) {
                    std::cmp::Ordering::Less => format!("{one}..{other}"),
                    _ => format!("{one},{other}"),
                })
                .collect();
            let rungs = parse_connections(&texts.join(",")).expect("numbers and ranges");
            prop_assert!(is_a_ladder(&rungs), "{rungs:?}");
            prop_assert!(parts.iter().all(|(one, other)| rungs.contains(one) && rungs.contains(other)));
        }
    }
}
