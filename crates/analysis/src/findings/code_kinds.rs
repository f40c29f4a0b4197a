//! What kind of code a transaction's time goes into: all that two products have in common, whose functions have other names.

use super::kind::{Marks, kind_of_cpu_path};
use super::knowledge::{Knowledge, is_of_the_c_library};
use super::row_locks::RowLocks;
use crate::call_paths::CallPaths;
use crate::path_costs::PathCosts;
use scaleprof_vocabulary::{FindingKind, ThreadState};
use std::collections::BTreeMap;

/// The kinds, in the order in which they are told: on a CPU first.
pub(crate) const CODE_KINDS: [&str; 11] = [
    "the server's own code",
    "the C library",
    "memory allocation",
    "loops that wait (spin)",
    "the kernel's scheduler and futexes",
    "spinlocks of the kernel",
    "page faults",
    "the kernel otherwise",
    "waiting for rows",
    "waiting for other locks",
    "waiting for the disk",
];

/// Seconds per transaction of each kind, by its place in [`CODE_KINDS`].
pub(crate) fn code_kinds(costs: &PathCosts, call_paths: &CallPaths<'_>, product: &str) -> BTreeMap<usize, f64> {
    let names = call_paths.function_names();
    let marks: Vec<Marks> = names.iter().map(|name| Marks::of(name)).collect();
    let row_locks = RowLocks::of(&Knowledge::of(product), call_paths);
    let mut kinds: BTreeMap<usize, f64> = BTreeMap::new();
    for state in [ThreadState::Cpu, ThreadState::Spin, ThreadState::Lock, ThreadState::Io] {
        for (state_path, seconds) in costs.with_seconds(state) {
            let functions = call_paths.outwards(state_path.path);
            let kind = match state {
                ThreadState::Spin => 3,
                ThreadState::Io => 10,
                ThreadState::Lock if row_locks.ends_at_a_row(functions.clone()) => 8,
                ThreadState::Lock => 9,
                _ => on_a_cpu(
                    kind_of_cpu_path(functions.map(|function| marks[function])),
                    call_paths.innermost(state_path.path),
                ),
            };
            *kinds.entry(kind).or_default() += seconds;
        }
    }
    kinds
}

fn on_a_cpu(kind: Option<FindingKind>, innermost: &str) -> usize {
    match kind {
        Some(FindingKind::AllocatorContention) => 2,
        Some(FindingKind::SchedulerOverhead) => 4,
        Some(FindingKind::KernelSpinlock) => 5,
        Some(FindingKind::PageFaults) => 6,
        _ if innermost.ends_with(" [k]") => 7,
        _ if is_of_the_c_library(innermost) => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_words() {
        let told = |kind, innermost| CODE_KINDS[on_a_cpu(kind, innermost)];
        assert_eq!(told(None, "row_search_mvcc"), "the server's own code");
        assert_eq!(told(None, "__memcpy_avx"), "the C library");
        assert_eq!(told(None, "ext4_write [k]"), "the kernel otherwise");
        assert_eq!(told(Some(FindingKind::PageFaults), "clear_page [k]"), "page faults");
        assert_eq!(
            told(Some(FindingKind::AllocatorContention), "malloc"),
            "memory allocation"
        );
        assert_eq!(
            told(Some(FindingKind::SchedulerOverhead), "schedule [k]"),
            "the kernel's scheduler and futexes"
        );
        assert_eq!(
            told(Some(FindingKind::KernelSpinlock), "x [k]"),
            "spinlocks of the kernel"
        );
    }
}
