//! CPUs that a process may use: its affinity says which, and the quotas of its cgroups for how much of the time.

use crate::cgroup_paths::folder_of_controller;
use std::fs;
use std::path::Path;

/// How many CPUs' time a process may use, by its affinity and by the quotas of its cgroup and of those that hold it (cgroup-v2.rst,
/// "cpu.max"; sched-bwc.rst). One where neither is told.
pub(crate) fn cpus_of(pid: u32) -> f64 {
    let by_affinity = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok())
        .map_or(1.0, |set| f64::from(set.count()));
    match quota_of(pid) {
        Some(quota) => quota.min(by_affinity),
        None => by_affinity,
    }
}

/// The least of the quotas that hold for a process, in CPUs; none where there is none.
fn quota_of(pid: u32) -> Option<f64> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let (mount, folder) = folder_of_controller(&mounts, &groups, "cpu")?;
    let folders = folder.ancestors().take_while(|folder| folder.starts_with(&mount));
    folders.filter_map(quota_in).reduce(f64::min)
}

fn quota_in(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    read("cpu.max")
        .and_then(|text| of_words(text.split_whitespace()))
        .or_else(|| {
            let (quota, period) = (read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?);
            of_words([quota.trim(), period.trim()].into_iter())
        })
}

/// `400000 100000` is 4 CPUs; `max` and -1 are no quota.
fn of_words<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<f64> {
    let (quota, period): (f64, f64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_parts_of_a_period() {
        assert_eq!(of_words("400000 100000".split(' ')), Some(4.0));
        assert_eq!(of_words("50000 100000".split(' ')), Some(0.5));
        assert_eq!(of_words("max 100000".split(' ')), None);
        assert_eq!(of_words(["-1", "100000"].into_iter()), None);
    }

    #[test]
    fn this_process_may_use_some_cpus() {
        let cpus = cpus_of(std::process::id());
        let online = std::thread::available_parallelism().expect("told").get() as f64;
        assert!(cpus > 0.0 && cpus <= online.max(1.0) + 1.0, "{cpus} of {online}");
    }
}
