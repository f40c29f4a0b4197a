//! What kind of trouble a call path shows.

use super::knowledge::is_of_the_c_library;
use crate::condition::waits_at_condition_variable;
use scaleprof_vocabulary::{FindingKind, ShareOf};

/// What its share is a part of, as in `summary.json`, where the account that found it does not say otherwise.
pub(super) fn share_of(kind: FindingKind) -> ShareOf {
    match kind {
        FindingKind::RowLockWaits => ShareOf::ConnectionTime,
        FindingKind::Retries => ShareOf::Transactions,
        FindingKind::ClientLimited => ShareOf::Rungs,
        FindingKind::NotWarmedUp | FindingKind::Drifting => ShareOf::Throughput,
        _ => ShareOf::CpuTime,
    }
}

/// In plain words; `what` is the thing that it is about, where that is known, and `place` the function.
pub(super) fn title(kind: FindingKind, what: Option<&str>, place: Option<&str>) -> String {
    let place = place.unwrap_or("the server");
    let what = what.unwrap_or(place);
    match kind {
        FindingKind::SpinWaiting => format!("Threads burn CPU while they wait for {what}"),
        FindingKind::RowLockWaits => "Transactions wait for rows that other transactions have locked".to_owned(),
        FindingKind::LockConvoy => format!("Threads queue for {what}"),
        FindingKind::KernelSpinlock => format!("Threads contend for a kernel spinlock, under {what}"),
        FindingKind::SchedulerOverhead => {
            format!("The kernel is busy putting threads to sleep and waking them, under {what}")
        }
        FindingKind::AllocatorContention => format!("Memory allocation takes more CPU time, under {what}"),
        FindingKind::PageFaults => format!("Page faults take more CPU time, under {what}"),
        FindingKind::LogStall => format!("Threads wait until the log is on disk, in {what}"),
        FindingKind::DiskBound => format!("Threads wait for the disk, in {what}"),
        FindingKind::Blocked => format!("Threads are blocked, in {what}"),
        FindingKind::Retries => "Transactions fail because of other transactions and are retried".to_owned(),
        FindingKind::CacheLineSharing => {
            format!("One instruction of {what} waits for a cache line that other threads write")
        }
        FindingKind::CostGrowth => format!("Each transaction spends more CPU time in {what}"),
        FindingKind::SlowerEverywhere => {
            "The same instructions take longer everywhere: caches, memory, SMT or the clock".to_owned()
        }
        FindingKind::ClientLimited => "The client, not the server, was the limit".to_owned(),
        FindingKind::NotWarmedUp => "The server was still warming up while it was measured".to_owned(),
        FindingKind::Drifting => "Throughput drifted while it was measured".to_owned(),
    }
}

/// What there is to do about the kind, wherever it is.
pub(super) fn remedy(kind: FindingKind) -> Option<&'static str> {
    Some(match kind {
        FindingKind::SchedulerOverhead => {
            "fewer runnable threads: a thread pool, or a connection pool in front of the server"
        }
        FindingKind::AllocatorContention => {
            "another allocator: LD_PRELOAD=libjemalloc.so.2 or libtcmalloc_minimal.so.4"
        }
        FindingKind::PageFaults => {
            "fewer returns of memory to the kernel: a larger MALLOC_TOP_PAD_, jemalloc, or transparent huge pages off"
        }
        FindingKind::CacheLineSharing => {
            "run scaleprof annotate and cachelines; in the source: separate written from read-only variables (alignas(64)), \
             or use per-thread counters"
        }
        FindingKind::ClientLimited => {
            "more CPUs or threads for the client (--client-threads, --cpus-client), or fewer connections"
        }
        FindingKind::NotWarmedUp => {
            "longer measurements (--seconds), so that caches and the buffer pool fill in the first half"
        }
        FindingKind::Drifting => {
            "longer and more measurements (--seconds, --repeats); common causes: a growing table, checkpoints, another process"
        }
        FindingKind::DiskBound => "a larger buffer pool, or a faster disk",
        FindingKind::Retries => "shorter transactions, rows locked in one order, READ COMMITTED",
        _ => return None,
    })
}

/// The kind that the innermost functions of a path on a CPU give away; `marks` of its functions, innermost first.
pub(super) fn kind_of_cpu_path(marks: impl Iterator<Item = Marks> + Clone) -> Option<FindingKind> {
    /// As deep as the kernel is looked into.
    const INNER: usize = 12;
    let in_kernel = || marks.clone().take(INNER).take_while(|function| function.of_kernel);
    if in_kernel().any(|function| function.faults) {
        return Some(FindingKind::PageFaults);
    }
    // Whatever the kernel has to do for an allocator's lock belongs to the allocator.
    if ends_in_allocator(marks.clone()) {
        return Some(FindingKind::AllocatorContention);
    }
    // `_raw_spin_lock` itself only as the innermost, where its line is waited for.
    let waits_for_line = in_kernel().next().is_some_and(|function| function.takes_lock);
    if waits_for_line || in_kernel().any(|function| function.fights_for_lock) {
        return Some(FindingKind::KernelSpinlock);
    }
    in_kernel()
        .any(|function| function.schedules)
        .then_some(FindingKind::SchedulerOverhead)
}

/// Whether one of the innermost functions, but for the kernel's, allocates or frees memory. What it calls, or had built in, is
/// part of it: an allocator calls nobody but its own kind and the C library's locks.
pub(super) fn is_in_allocator(path: &[String]) -> bool {
    ends_in_allocator(Marks::of_path(path))
}

fn ends_in_allocator(marks: impl Iterator<Item = Marks>) -> bool {
    /// As deep as an allocator goes.
    const INNER: usize = 5;
    let mut user = marks.filter(|function| !function.of_kernel).take(INNER);
    user.any(|function| function.allocates)
}

/// A wait for the log is more than one for a disk or a lock. `place` is the server's own function that waits: what called
/// it says little, since every commit comes from the binary log's group commit. Before MariaDB 10.6 and later answer, they
/// wait there, at a condition variable, for the log of the commit.
pub(super) fn kind_of_wait(plain: FindingKind, place: Option<&str>, path: &[String]) -> FindingKind {
    let answers = ["net_real_write", "wait_for_pending_ops"];
    let is_answer = place.is_some_and(|place| answers.iter().any(|part| place.contains(part)));
    if is_answer && waits_at_condition_variable(path) {
        return FindingKind::LogStall;
    }
    let parts = [
        "log_write_up_to",
        "log_write_flush",
        "log_wait_for_write",
        "log_wait_for_flush",
        "log_buffer_flush",
        "log_t::",
        "trx_flush_log",
        "group_commit_lock",
        "sync_binlog_file",
        "flush_cache_to_file",
    ];
    match place.is_some_and(|place| parts.iter().any(|part| place.contains(part))) {
        true => FindingKind::LogStall,
        false => plain,
    }
}

/// What the name of a function tells of its part in a path. Names of the kernel's functions as of Linux 5.15 to 6.18, of the
/// allocators' as of glibc 2.31 to 2.41, jemalloc 5 and tcmalloc.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marks {
    of_kernel: bool,
    /// Handles page faults.
    faults: bool,
    /// Takes a lock of the kernel.
    takes_lock: bool,
    /// Behind such names a lock of the kernel is fought for.
    fights_for_lock: bool,
    /// Puts threads to sleep or wakes them.
    schedules: bool,
    /// Allocates or frees memory.
    allocates: bool,
}

impl Marks {
    pub(super) fn of(function: &str) -> Marks {
        let of_kernel = function.ends_with(" [k]");
        let begins = |names: &[&str]| of_kernel && names.iter().any(|name| function.starts_with(name));
        Marks {
            of_kernel,
            faults: begins(&[
                "asm_exc_page_fault",
                "exc_page_fault",
                "do_page_fault",
                "handle_mm_fault",
            ]),
            takes_lock: begins(&["_raw_spin_lock", "_raw_read_lock", "_raw_write_lock"]),
            fights_for_lock: begins(&[
                "native_queued_spin_lock_slowpath",
                "__pv_queued_spin_lock_slowpath",
                "queued_spin_lock_slowpath",
                "queued_write_lock_slowpath",
                "queued_read_lock_slowpath",
                "osq_lock",
                "rwsem_spin_on_owner",
                "mutex_spin_on_owner",
            ]),
            schedules: begins(&[
                "schedule",
                "__schedule",
                "try_to_wake_up",
                "wake_up_q",
                "futex_wake",
                "futex_wait",
                "finish_task_switch",
            ]),
            allocates: !of_kernel && allocates(function),
        }
    }

    /// Of a path's functions, innermost first; the path begins with its outermost one.
    pub(super) fn of_path(path: &[String]) -> impl Iterator<Item = Marks> + Clone {
        path.iter().rev().map(|function| Marks::of(function))
    }
}

fn allocates(function: &str) -> bool {
    const ALLOCATORS: [&str; 16] = [
        "malloc",
        "_int_malloc",
        "_int_free",
        "free",
        "cfree",
        "calloc",
        "realloc",
        "__libc_malloc",
        "__libc_free",
        "operator new",
        "operator delete",
        "malloc_consolidate",
        "sysmalloc",
        "unlink_chunk",
        "systrim",
        "arena_get2",
    ];
    // Not all of `tc_`: MariaDB's table cache has functions that begin so.
    const FAMILIES: [&str; 10] = [
        "je_",
        "arena_",
        "tcmalloc::",
        "tc_malloc",
        "tc_calloc",
        "tc_realloc",
        "tc_memalign",
        "tc_free",
        "tc_new",
        "tc_delete",
    ];
    let bare = function.split(['(', '@']).next().unwrap_or(function);
    ALLOCATORS.contains(&bare) || FAMILIES.iter().any(|family| function.starts_with(family))
}

/// Whether a thread waits until the disk has what was written to a file: of its own functions the C library's for that is the innermost,
/// but for what the C library does within (three functions in glibc 2.41).
pub(super) fn syncs_a_file(path: &[String]) -> bool {
    const NAMES: [&str; 5] = ["fsync", "fdatasync", "sync_file_range", "msync", "syncfs"];
    let syncs = |function: &String| {
        let bare = function.split('@').next().unwrap_or(function);
        NAMES.contains(&bare.trim_start_matches('_').trim_start_matches("libc_"))
    };
    let mut user = path.iter().rev().filter(|function| !function.ends_with(" [k]"));
    user.find(|function| syncs(function) || !is_of_the_c_library(function))
        .is_some_and(syncs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(path: &[&str]) -> Vec<String> {
        path.iter().map(|function| (*function).to_owned()).collect()
    }

    #[test]
    fn a_file_is_synced_however_the_c_library_does_it() {
        let syncs = |path: &[&str]| syncs_a_file(&owned(path));
        let glibc_2_41 = [
            "log_write_up_to",
            "fdatasync",
            "libc.so.6!fun_8f3c0",
            "libc.so.6!fun_8f340",
            "libc.so.6!fun_9a700",
            "do_syscall_64 [k]",
        ];
        assert!(syncs(&glibc_2_41));
        assert!(syncs(&["log_write_up_to", "fdatasync", "do_syscall_64 [k]"]));
        assert!(syncs(&["fil_flush", "__libc_fsync", "do_syscall_64 [k]"]));
        assert!(syncs(&["os_file_fsync", "__libc_fsync", "schedule [k]"]));
        assert!(!syncs(&["log_write_up_to", "__libc_pwrite64"]));
        assert!(!syncs(&["fsync", "a", "b", "pwrite64"]));
    }

    fn of(path: &[&str]) -> Option<FindingKind> {
        kind_of_cpu_path(Marks::of_path(&owned(path)))
    }

    #[test]
    fn what_the_kernel_does_for_an_allocators_lock_belongs_to_the_allocator() {
        let wake = ["__lll_lock_wake_private", "futex_wake [k]", "try_to_wake_up [k]"];
        let under = |outer: &[&'static str]| of(&[outer, &wake[..]].concat());
        assert_eq!(
            under(&["main", "free", "_int_free"]),
            Some(FindingKind::AllocatorContention)
        );
        assert_eq!(
            under(&["main", "je_free_default"]),
            Some(FindingKind::AllocatorContention)
        );
        assert_eq!(under(&["main", "row_search"]), Some(FindingKind::SchedulerOverhead));
        assert_eq!(
            of(&["main", "operator new(unsigned long)"]),
            Some(FindingKind::AllocatorContention)
        );
        assert_eq!(of(&["main", "free_list_add"]), None);
        assert_eq!(of(&["main", "tc_deletearray"]), Some(FindingKind::AllocatorContention));
        assert_eq!(of(&["close_thread_tables", "tc_release_table"]), None);
        assert_eq!(
            of(&["main", "malloc", "checked_request2size"]),
            Some(FindingKind::AllocatorContention)
        );
    }

    #[test]
    fn a_lock_of_the_kernel_is_told_by_its_slow_path_and_by_where_its_line_is_waited_for() {
        for inner in [
            "native_queued_spin_lock_slowpath [k]",
            "__pv_queued_spin_lock_slowpath [k]",
            "_raw_spin_lock_irqsave [k]",
        ] {
            let path = ["main", "sync_array_wait_event", "futex_wait [k]", inner];
            assert_eq!(of(&path), Some(FindingKind::KernelSpinlock), "{inner}");
        }
        // Interrupts are let in there, and the sampling timer's is one of them.
        let unlock = ["main", "futex_wake [k]", "_raw_spin_unlock_irqrestore [k]"];
        assert_eq!(of(&unlock), Some(FindingKind::SchedulerOverhead));
        assert_eq!(
            of(&["main", "malloc", "asm_exc_page_fault [k]", "_raw_spin_lock [k]"]),
            Some(FindingKind::PageFaults)
        );
    }
}
