//! Sets of CPUs as the kernel writes them.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// A set of CPUs by number, written as the kernel writes it: `0-3,8`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct CpuSet(pub(crate) BTreeSet<u32>);

/// The kernel's own bound on CPU numbers (NR_CPUS of distributions' kernels).
pub(crate) const MOST_CPUS: u32 = 8192;

impl CpuSet {
    /// How many CPUs.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the CPU is one of them.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Those that are not in `other`.
    pub fn without(&self, other: &CpuSet) -> CpuSet {
        CpuSet(&self.0 - &other.0)
    }

    /// Those that are in `other` too.
    pub fn within(&self, other: &CpuSet) -> CpuSet {
        CpuSet(&self.0 & &other.0)
    }

    /// The CPUs this process may run on.
    pub fn allowed() -> Result<CpuSet, Error> {
        let mask = rustix::thread::sched_getaffinity(None)
            .map_err(Error::errno("ask for the CPU affinity of", "/proc/self"))?;
        Ok((0..rustix::thread::CpuSet::MAX_CPU as u32)
            .filter(|cpu| mask.is_set(*cpu as usize))
            .collect())
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        CpuSet(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut comma = "";
        while let Some(first) = cpus.next() {
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

impl FromStr for CpuSet {
    type Err = Error;

    fn from_str(list: &str) -> Result<Self, Error> {
        let bad = |reason: String| Error::CpuList {
            list: list.to_owned(),
            reason,
        };
        let number = |text: &str| match text.trim().parse::<u32>() {
            Ok(cpu) if cpu < MOST_CPUS => Ok(cpu),
            Ok(cpu) => Err(bad(format!("no machine has a CPU {cpu}"))),
            Err(_) => Err(bad(format!(
                "'{}' is not a CPU number; a list looks like 0-3,8",
                text.trim()
            ))),
        };
        let mut cpus = BTreeSet::new();
        for part in list.trim().split(',').filter(|part| !part.trim().is_empty()) {
            match part.split_once('-') {
                None => {
                    cpus.insert(number(part)?);
                }
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(bad(format!("{first}-{last} runs backwards")));
                    }
                    cpus.extend(first..=last);
                }
            }
        }
        Ok(CpuSet(cpus))
    }
}

impl From<CpuSet> for String {
    fn from(set: CpuSet) -> String {
        set.to_string()
    }
}

impl TryFrom<String> for CpuSet {
    type Error = Error;

    fn try_from(list: String) -> Result<Self, Error> {
        list.parse()
    }
}
