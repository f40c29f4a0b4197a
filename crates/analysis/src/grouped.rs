//! Thread-seconds by what they were spent in, each with the second in which.

/// The thread-seconds of samples, group by group, within each in the order of the samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grouped {
    /// Where each group begins among the parts, and at last where they end.
    starts: Vec<usize>,
    /// The place of the second, and the thread-seconds in it.
    parts: Vec<(u32, f64)>,
}

impl Grouped {
    /// Sorts samples by their group, a number below `groups`, and leaves those of one group in their order: sums of floating
    /// point numbers depend on it. `samples` gives each one's group, second and thread-seconds, twice the same.
    pub(crate) fn of<I: Iterator<Item = (u32, u32, f64)>>(groups: usize, samples: impl Fn() -> I) -> Grouped {
        let mut starts = vec![0_usize; groups + 1];
        for (group, ..) in samples() {
            if let Some(count) = starts.get_mut(group as usize + 1) {
                *count += 1;
            }
        }
        let mut all = 0;
        for start in &mut starts {
            all += *start;
            *start = all;
        }
        let mut parts = vec![(0, 0.0); all];
        // While they are laid down, the start of each group is where its next one goes.
        for (group, second, seconds) in samples() {
            if let Some(next) = starts.get_mut(group as usize).filter(|next| **next < all) {
                parts[*next] = (second, seconds);
                *next += 1;
            }
        }
        starts.rotate_right(1);
        if let Some(first) = starts.first_mut() {
            *first = 0;
        }
        Grouped { starts, parts }
    }

    /// The parts of a group, by the place of the second.
    pub(crate) fn get(&self, group: usize) -> &[(u32, f64)] {
        let bounds = self.starts.get(group).zip(self.starts.get(group + 1));
        bounds
            .and_then(|(start, end)| self.parts.get(*start..*end))
            .unwrap_or(&[])
    }

    /// All groups in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[(u32, f64)]> {
        (0..self.starts.len().saturating_sub(1)).map(|group| self.get(group))
    }

    /// The same with one part where several of a group stood one behind the other in one second.
    pub(crate) fn merged(mut self) -> Grouped {
        let mut kept = 0;
        let mut start = 0;
        for group in 0..self.starts.len().saturating_sub(1) {
            let end = self.starts[group + 1];
            let first = kept;
            for at in start..end {
                let (second, seconds) = self.parts[at];
                match self.parts[first..kept].last_mut().filter(|(last, _)| *last == second) {
                    Some((_, sum)) => *sum += seconds,
                    None => {
                        self.parts[kept] = (second, seconds);
                        kept += 1;
                    }
                }
            }
            start = end;
            self.starts[group + 1] = kept;
        }
        self.parts.truncate(kept);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn every_group_has_its_parts_in_their_order(samples in prop::collection::vec((0..6_u32, 0..3_u32, 0..99_u32), 0..60)) {
            let samples: Vec<(u32, u32, f64)> = samples.into_iter().map(|(g, at, n)| (g, at, f64::from(n))).collect();
            let grouped = Grouped::of(7, || samples.iter().copied());
            let mut whole: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
            let mut merged: BTreeMap<u32, Vec<(u32, f64)>> = BTreeMap::new();
            for (group, second, seconds) in &samples {
                whole.entry(*group).or_default().push((*second, *seconds));
                let parts = merged.entry(*group).or_default();
                match parts.last_mut().filter(|(last, _)| last == second) {
                    Some((_, sum)) => *sum += seconds,
                    None => parts.push((*second, *seconds)),
                }
            }
            let of = |expected: &BTreeMap<u32, Vec<(u32, f64)>>, group: u32| expected.get(&group).cloned().unwrap_or_default();
            prop_assert_eq!(grouped.iter().count(), 7);
            for group in 0..7 {
                prop_assert_eq!(grouped.get(group as usize), of(&whole, group));
            }
            let found = grouped.merged();
            for group in 0..7 {
                prop_assert_eq!(found.get(group as usize), of(&merged, group));
            }
        }
    }
}
