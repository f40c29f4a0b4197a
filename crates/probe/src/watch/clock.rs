//! The clock of the BPF programs.

/// Nanoseconds of CLOCK_MONOTONIC, which `bpf_ktime_get_ns` tells as well.
pub(super) fn monotonic_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
