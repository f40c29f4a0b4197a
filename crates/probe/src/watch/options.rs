//! How to watch.

/// How the threads are watched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WatchOptions {
    /// Stacks of running threads a second and CPU. At the default a function that takes 0.1 % of two CPUs is seen some
    /// twelve times a minute.
    pub frequency_hz: u32,
    /// Stacks of threads that leave their CPU, a second, about; however often they do.
    pub sleep_stacks_per_second: u32,
    /// The most threads at a time.
    pub most_threads: u32,
    /// The most samples that are kept for the next reading, some 600 bytes each; more are lost, and counted.
    pub most_unread_samples: u32,
    /// The share of the server's CPUs that seeing its switches may cost, 0 to 1. Where they come so often that it would cost
    /// more, they are seen for a part of the time only. Time on CPU and in run queues stays exact; what a thread is blocked by
    /// is concluded then from the part that was seen. 1: see them all whatever it costs.
    pub most_cost: f64,
    /// Fetch debug files of the server from debuginfod where nothing here names its functions.
    pub ask_debuginfod: bool,
    /// Do as on kernels before Linux 5.18, whose `sched_switch` does not tell the state that a thread leaves with.
    pub without_previous_state: bool,
    /// Do as on kernels that keep no account of the time in run queues (CONFIG_SCHED_INFO).
    pub without_run_delay: bool,
    /// Do as on kernels before Linux 5.19, which do not tell of their own locks.
    pub without_contention: bool,
}

impl Default for WatchOptions {
    fn default() -> Self {
        Self {
            frequency_hz: 99,
            sleep_stacks_per_second: 1000,
            most_threads: 8192,
            most_unread_samples: 1 << 17,
            most_cost: 0.004,
            ask_debuginfod: false,
            without_previous_state: false,
            without_run_delay: false,
            without_contention: false,
        }
    }
}
