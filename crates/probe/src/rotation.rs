//! Groups of counters that take turns, one second each, behind a trait so that the turns are tested without counters.

use crate::hardware::HardwareCounts;
use crate::perf_event::RawGroup;

/// A set of groups of which one counts at a time; each is read for all CPUs.
pub(crate) trait GroupReader {
    fn groups(&self) -> usize;
    fn read(&mut self, group: usize) -> Result<Vec<RawGroup>, String>;
    fn enable(&mut self, group: usize) -> Result<(), String>;
    fn disable(&mut self, group: usize) -> Result<(), String>;
}

/// Whose turn it is, and the last counts of all groups.
#[derive(Debug)]
pub(crate) struct Rotation<R> {
    reader: R,
    current: usize,
    last: HardwareCounts,
}

impl<R: GroupReader> Rotation<R> {
    /// Begins with the first group.
    pub(crate) fn start(mut reader: R) -> Result<Self, String> {
        let last = (0..reader.groups())
            .map(|group| reader.read(group))
            .collect::<Result<_, _>>()?;
        reader.enable(0)?;
        Ok(Self {
            reader,
            current: 0,
            last,
        })
    }

    /// Reads the group whose turn it was and gives the next its turn. The group is stopped before it is read, so that
    /// nothing falls between the two.
    pub(crate) fn sample(&mut self) -> Result<HardwareCounts, String> {
        if self.reader.groups() == 1 {
            self.last[0] = self.reader.read(0)?;
            return Ok(self.last.clone());
        }
        self.reader.disable(self.current)?;
        let counts = self.reader.read(self.current);
        self.current_counts(counts)
    }

    fn current_counts(&mut self, counts: Result<Vec<RawGroup>, String>) -> Result<HardwareCounts, String> {
        let was = self.current;
        self.current = (was + 1) % self.reader.groups();
        // A group that lost its counters loses this turn; the others go on.
        self.reader.enable(self.current)?;
        self.last[was] = counts?;
        Ok(self.last.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts one for every turn it is on; fails to read when told.
    struct Fake {
        on: Vec<bool>,
        counts: Vec<u64>,
        lost: Option<usize>,
    }

    impl GroupReader for Fake {
        fn groups(&self) -> usize {
            self.on.len()
        }
        fn read(&mut self, group: usize) -> Result<Vec<RawGroup>, String> {
            if self.lost == Some(group) {
                return Err("lost".to_owned());
            }
            Ok(vec![RawGroup {
                time_enabled: 1,
                time_running: 1,
                values: vec![self.counts[group]],
            }])
        }
        fn enable(&mut self, group: usize) -> Result<(), String> {
            assert!(!self.on.contains(&true), "two groups at once");
            self.on[group] = true;
            self.counts[group] += 1;
            Ok(())
        }
        fn disable(&mut self, group: usize) -> Result<(), String> {
            self.on[group] = false;
            Ok(())
        }
    }

    fn fake(groups: usize) -> Fake {
        Fake {
            on: vec![false; groups],
            counts: vec![0; groups],
            lost: None,
        }
    }

    fn values(counts: &HardwareCounts) -> Vec<u64> {
        counts.iter().map(|cpus| cpus[0].values[0]).collect()
    }

    #[test]
    fn groups_take_turns_and_never_count_at_once() {
        let mut rotation = Rotation::start(fake(2)).expect("starts");
        assert_eq!(values(&rotation.sample().expect("reads")), [1, 0]);
        assert_eq!(values(&rotation.sample().expect("reads")), [1, 1]);
        assert_eq!(values(&rotation.sample().expect("reads")), [2, 1]);
    }

    #[test]
    fn a_group_that_loses_its_counters_does_not_stop_the_others() {
        let mut rotation = Rotation::start(fake(2)).expect("starts");
        rotation.reader.lost = Some(0);
        assert!(rotation.sample().is_err());
        assert_eq!(values(&rotation.sample().expect("reads")), [0, 1]);
    }

    #[test]
    fn one_group_is_never_stopped() {
        let mut rotation = Rotation::start(fake(1)).expect("starts");
        for _ in 0..3 {
            assert_eq!(values(&rotation.sample().expect("reads")), [1]);
        }
        assert!(rotation.reader.on[0]);
    }
}
