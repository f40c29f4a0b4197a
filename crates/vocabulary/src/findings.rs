//! What a run is found to suffer from.

use crate::word::words;

words! {
    /// The kinds of findings.
    FindingKind {
        /// Threads run in loops that only wait.
        SpinWaiting: "spin_waiting" ("spin waiting"),
        /// Transactions wait for rows that others have locked.
        RowLockWaits: "row_lock_waits" ("row lock waits"),
        /// Threads queue for a lock of the server.
        LockConvoy: "lock_convoy" ("lock convoy"),
        /// Threads fight for a spinlock of the kernel.
        KernelSpinlock: "kernel_spinlock" ("spinlock of the kernel"),
        /// The kernel puts threads to sleep and wakes them.
        SchedulerOverhead: "scheduler_overhead" ("scheduler overhead"),
        /// Threads fight for the memory allocator.
        AllocatorContention: "allocator_contention" ("allocator contention"),
        /// Pages have to be made or found.
        PageFaults: "page_faults" ("page faults"),
        /// Threads wait until the log is on disk.
        LogStall: "log_stall" ("log stall"),
        /// Threads wait for the disk.
        DiskBound: "disk_bound" ("disk bound"),
        /// Threads are blocked by something else.
        Blocked: "blocked",
        /// Transactions fail because of others and are retried.
        Retries: "retries",
        /// One instruction waits for a cache line that others write.
        CacheLineSharing: "cache_line_sharing" ("cache line sharing"),
        /// A path costs a transaction more CPU time.
        CostGrowth: "cost_growth" ("cost growth"),
        /// All functions take longer for the same work.
        SlowerEverywhere: "slower_everywhere" ("slower everywhere"),
        /// The client set the limit.
        ClientLimited: "client_limited" ("limited by the client"),
        /// The server was still warming up.
        NotWarmedUp: "not_warmed_up" ("not warmed up"),
        /// Throughput drifted while it was measured.
        Drifting: "drifting",
    }
}

words! {
    /// A whole that the share of a finding is a part of.
    ShareOf {
        /// CPU time of a transaction on the threads that serve the load.
        CpuTime: "cpu_time" ("a transaction\u{2019}s CPU time"),
        /// Time of the connections for a transaction, N/X.
        ConnectionTime: "connection_time" ("the connections\u{2019} time"),
        /// The transactions.
        Transactions: "transactions" ("the transactions"),
        /// The rungs.
        Rungs: "rungs" ("the rungs"),
        /// Throughput.
        Throughput: "throughput" ("the throughput"),
    }
}

words! {
    /// How a path's time per transaction grows with the connections. A label, not a law: read no mechanism from it.
    GrowthShape {
        /// No more than chance tells from the same at every rung.
        Constant: "constant" ("the same at every rung"),
        /// In proportion to the connections: as a queue in front of something that is always busy.
        Linear: "linear" ("in proportion to the connections"),
        /// Faster than that.
        Worse: "worse" ("faster than the connections"),
    }
}
