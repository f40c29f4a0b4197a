//! What the kernel sees: CPU time, hardware counters, disk, network and memory
