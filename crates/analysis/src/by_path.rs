//! The samples of a rung by state and call path.

use crate::call_paths::PathId;
use crate::grouped::Grouped;
use crate::sampled::SampledPaths;
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::ThreadState;

/// The thread-seconds of a rung's samples by state and call path.
pub(crate) struct ByPath<'a> {
    pub samples: &'a SampledPaths<'a>,
    /// State and path, in this order.
    pub state_paths: Vec<(ThreadState, PathId)>,
    /// The samples of each of them.
    pub rows: Grouped,
}

/// A path of those that take most time.
pub(crate) struct Heavy {
    pub state: ThreadState,
    pub path: PathId,
    pub seconds_per_txn: Estimate,
    pub samples: u64,
}

impl<'a> ByPath<'a> {
    pub(crate) fn of(samples: &'a SampledPaths<'a>) -> ByPath<'a> {
        let pairs = samples.sampled.pairs().iter().zip(samples.paths_of_pairs());
        let keys: Vec<(ThreadState, PathId)> = pairs.map(|(pair, path)| (pair.state, *path)).collect();
        let mut order: Vec<u32> = (0..keys.len() as u32).collect();
        order.sort_unstable_by_key(|pair| keys[*pair as usize]);
        let mut state_paths: Vec<(ThreadState, PathId)> = Vec::new();
        let mut state_path_of = vec![0_u32; keys.len()];
        for pair in order {
            let key = keys[pair as usize];
            if state_paths.last() != Some(&key) {
                state_paths.push(key);
            }
            state_path_of[pair as usize] = (state_paths.len() - 1) as u32;
        }
        let rows = samples.sampled.rows();
        let rows = Grouped::of(state_paths.len(), || {
            rows.iter()
                .map(|row| (state_path_of[row.pair as usize], row.second, row.seconds))
        });
        ByPath {
            samples,
            state_paths,
            rows,
        }
    }

    /// The `most` heaviest of the paths whose state is wanted.
    pub(crate) fn heaviest(&self, most: usize, is_wanted: impl Fn(ThreadState) -> bool) -> Vec<Heavy> {
        let sampled = &self.samples.sampled;
        // Among equals the state comes first that was seen first.
        let mut seen: Vec<ThreadState> = Vec::new();
        for pair in sampled.pairs() {
            if !seen.contains(&pair.state) {
                seen.push(pair.state);
            }
        }
        let turn = |state: ThreadState| seen.iter().position(|seen| *seen == state);
        let wanted = (0..self.state_paths.len()).filter(|place| is_wanted(self.state_paths[*place].0));
        let mut order: Vec<(usize, f64)> = wanted
            .map(|place| {
                let sum = self.rows.get(place).iter().fold(0.0, |sum, (_, seconds)| sum + seconds);
                (place, sum)
            })
            .collect();
        let heavier = |(a, of_a): &(usize, f64), (b, of_b): &(usize, f64)| {
            let key = |place: usize| {
                let (state, path) = self.state_paths[place];
                (turn(state), path)
            };
            of_b.total_cmp(of_a).then_with(|| key(*a).cmp(&key(*b)))
        };
        if order.len() > most {
            order.select_nth_unstable_by(most, heavier);
        }
        order.truncate(most);
        order.sort_unstable_by(heavier);
        let found = order.into_iter().filter_map(|(place, _)| {
            let rows = self.rows.get(place);
            let (state, path) = self.state_paths[place];
            Some(Heavy {
                state,
                path,
                seconds_per_txn: sampled.per_transaction(rows.iter().copied())?,
                samples: rows.len() as u64,
            })
        });
        found.collect()
    }
}
