//! Records by time, where they come nearly so.
//!
//! perf empties the buffers of all CPUs in turns, so that a file is made of runs that are in order, each of which reaches back no further than into
//! those of the other CPUs just before it. Merging each into the end of what is in order moves every record twice or so; a sort that
//! does not know this takes several times as long.

/// Records may be moved so many times as there are before a common sort takes over: a file in another order was not written by perf.
const MOST_MOVES: usize = 16;

/// Sorts by the first; those of one time stay in their order.
pub(super) fn sort_by_time<T: Copy>(records: &mut [(u64, T)]) {
    let mut moves_left = records.len().saturating_mul(MOST_MOVES);
    let mut before: Vec<(u64, T)> = Vec::new();
    let mut sorted = run_from(records, 0);
    while let Some((first, _)) = records.get(sorted).copied() {
        let end = run_from(records, sorted);
        let from = records[..sorted].partition_point(|(time, _)| *time <= first);
        let Some(left) = moves_left.checked_sub(end - from) else {
            records.sort_by_key(|(time, _)| *time);
            return;
        };
        moves_left = left;
        before.clear();
        before.extend_from_slice(&records[from..sorted]);
        merge(&before, &mut records[from..end]);
        sorted = end;
    }
}

/// Where the run ends that begins at `start`.
fn run_from<T>(records: &[(u64, T)], start: usize) -> usize {
    let rest = records.get(start..).unwrap_or_default();
    let length = rest.windows(2).position(|pair| pair[1].0 < pair[0].0);
    length.map_or(records.len(), |length| start + length + 1)
}

/// Merges `before` with what stands in `records` behind as many places as it has.
fn merge<T: Copy>(before: &[(u64, T)], records: &mut [(u64, T)]) {
    let (mut of_before, mut of_run) = (0, before.len());
    for place in 0..records.len() {
        let Some(earlier) = before.get(of_before).copied() else {
            // The rest of the run is where it belongs.
            return;
        };
        match records.get(of_run).copied() {
            Some(later) if later.0 < earlier.0 => {
                records[place] = later;
                of_run += 1;
            }
            _ => {
                records[place] = earlier;
                of_before += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn is_sorted_as_usual(times: &[u64]) -> Result<(), TestCaseError> {
        let mut records: Vec<(u64, usize)> = times.iter().copied().zip(0..).collect();
        let mut usual = records.clone();
        usual.sort_by_key(|(time, _)| *time);
        sort_by_time(&mut records);
        prop_assert_eq!(records, usual);
        Ok(())
    }

    proptest! {
        #[test]
        fn it_is_the_order_of_a_stable_sort(times in vec(0_u64..40, 0..200)) {
            is_sorted_as_usual(&times)?;
        }

        #[test]
        fn runs_of_cpus_that_overlap_are_merged(lengths in vec(1_usize..30, 1..20)) {
            let mut times = Vec::new();
            for (round, length) in (0_u64..).zip(lengths) {
                for cpu in 0..3 {
                    times.extend((0..length as u64).map(|at| round * 20 + at + cpu));
                }
            }
            is_sorted_as_usual(&times)?;
        }
    }

    #[test]
    fn what_stands_the_other_way_round_is_sorted_too() {
        let mut records: Vec<(u64, u64)> = (0..20_000).rev().map(|time| (time, time)).collect();
        sort_by_time(&mut records);
        assert!(records.iter().zip(0..).all(|((time, _), place)| *time == place));
    }
}
