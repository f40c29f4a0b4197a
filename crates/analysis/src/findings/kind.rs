//! What kind of trouble a call path shows.

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    SpinWaiting,
    LockConvoy,
    KernelSpinlock,
    SchedulerOverhead,
    AllocatorContention,
    PageFaults,
    LogStall,
    DiskBound,
    Blocked,
    Retries,
    CostGrowth,
    SlowerEverywhere,
}

impl Kind {
    /// As in `summary.json`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::SpinWaiting => "spin_waiting",
            Kind::LockConvoy => "lock_convoy",
            Kind::KernelSpinlock => "kernel_spinlock",
            Kind::SchedulerOverhead => "scheduler_overhead",
            Kind::AllocatorContention => "allocator_contention",
            Kind::PageFaults => "page_faults",
            Kind::LogStall => "log_stall",
            Kind::DiskBound => "disk_bound",
            Kind::Blocked => "blocked",
            Kind::Retries => "retries",
            Kind::CostGrowth => "cost_growth",
            Kind::SlowerEverywhere => "slower_everywhere",
        }
    }

    /// In plain words; `what` is the thing that it is about, where that is known, and `place` the function.
    pub(super) fn title(self, what: Option<&str>, place: Option<&str>) -> String {
        let place = place.unwrap_or("the server");
        let what = what.unwrap_or(place);
        match self {
            Kind::SpinWaiting => format!("Threads burn CPU while they wait for {what}"),
            Kind::LockConvoy => format!("Threads queue for {what}"),
            Kind::KernelSpinlock => format!("Threads fight for a spinlock of the kernel, under {what}"),
            Kind::SchedulerOverhead => {
                format!("The kernel is busy putting threads to sleep and waking them, under {what}")
            }
            Kind::AllocatorContention => format!("Memory allocation gets dearer, under {what}"),
            Kind::PageFaults => format!("Page faults get dearer, under {what}"),
            Kind::LogStall => format!("Threads wait until the log is on disk, in {what}"),
            Kind::DiskBound => format!("Threads wait for the disk, in {what}"),
            Kind::Blocked => format!("Threads are blocked, in {what}"),
            Kind::Retries => "Transactions fail with deadlocks or lock wait time-outs".to_owned(),
            Kind::CostGrowth => format!("Each transaction spends more CPU time in {what}"),
            Kind::SlowerEverywhere => {
                "The same instructions take longer everywhere: caches, memory, SMT or the clock".to_owned()
            }
        }
    }

    /// What there is to do about the kind, wherever it is.
    pub(super) fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Kind::SchedulerOverhead => {
                "fewer threads that run at a time: a thread pool, or a connection pool before the server"
            }
            Kind::AllocatorContention => "another allocator: LD_PRELOAD=libjemalloc.so.2 or libtcmalloc_minimal.so.4",
            Kind::PageFaults => {
                "more memory that is kept: a larger MALLOC_TOP_PAD_, jemalloc, or transparent huge pages off"
            }
            Kind::DiskBound => "a larger buffer pool, or a faster disk",
            Kind::Retries => "shorter transactions, rows locked in one order, READ COMMITTED",
            _ => return None,
        })
    }

    /// The kind that the innermost functions of a path on a CPU give away. Names of the kernel's functions as of Linux 5.15 to
    /// 6.18, of the allocators' as of glibc 2.31 to 2.41, jemalloc 5 and tcmalloc.
    pub(super) fn of_cpu_path(path: &[String]) -> Option<Kind> {
        let inner = || path.iter().rev().take(12);
        let kernel = |names: &[&str]| {
            let in_kernel = inner().take_while(|function| function.ends_with(" [k]"));
            in_kernel
                .into_iter()
                .any(|function| names.iter().any(|name| function.starts_with(name)))
        };
        let spinlocks = [
            "native_queued_spin_lock_slowpath",
            "queued_spin_lock_slowpath",
            "queued_write_lock_slowpath",
            "queued_read_lock_slowpath",
            "osq_lock",
            "rwsem_spin_on_owner",
            "mutex_spin_on_owner",
        ];
        if kernel(&spinlocks) {
            return Some(Kind::KernelSpinlock);
        }
        if kernel(&[
            "asm_exc_page_fault",
            "exc_page_fault",
            "do_page_fault",
            "handle_mm_fault",
        ]) {
            return Some(Kind::PageFaults);
        }
        if kernel(&[
            "schedule",
            "__schedule",
            "try_to_wake_up",
            "wake_up_q",
            "futex_wake",
            "futex_wait",
            "finish_task_switch",
        ]) {
            return Some(Kind::SchedulerOverhead);
        }
        let allocators = [
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
            "je_",
            "arena_",
            "tc_",
        ];
        let user = path.iter().rev().find(|function| !function.ends_with(" [k]"));
        let allocates = user.is_some_and(|function| {
            allocators.iter().any(|name| match name.ends_with('_') {
                true => function.starts_with(name),
                false => function == name || function.starts_with(&format!("{name}(")),
            })
        });
        allocates.then_some(Kind::AllocatorContention)
    }

    /// A wait for the log is more than one for a disk or a lock. `place` is the server's own function that waits: what called
    /// it says little, since every commit comes from the binary log's group commit.
    pub(super) fn of_wait(plain: Kind, place: Option<&str>) -> Kind {
        let parts = [
            "log_write_up_to",
            "log_write_flush",
            "log_buffer_flush",
            "log_t::",
            "trx_flush_log",
            "group_commit_lock",
            "sync_binlog_file",
            "flush_cache_to_file",
        ];
        match place.is_some_and(|place| parts.iter().any(|part| place.contains(part))) {
            true => Kind::LogStall,
            false => plain,
        }
    }
}
