//! Watching a server's threads from the kernel: exact states, whole stacks.
//!
//! The BPF programs in `bpf/` do the watching; the files here load them, keep their tables and read what they found.

mod calls;
mod clock;
mod code;
#[cfg(test)]
mod control_flow_tests;
mod debuginfod;
mod features;
mod fights;
mod futex;
mod handle;
mod kernel_locks;
mod layout;
mod libbpf_log;
mod mapped_file;
mod maps;
mod names;
mod native;
mod options;
mod pace;
mod programs;
mod reading;
mod recorded;
mod records;
mod refusal;
mod rest;
mod shared;
mod skeleton;
mod sleepers;
mod sleeps;
mod slots;
mod tables;
mod threads;
mod turns;
mod watcher;

pub use code::{CodeFile, CodeMap, CodePlace, ProcessCode};
pub use debuginfod::debuginfod_can_be_asked;
pub use handle::Watch;
pub use maps::mapped_files;
pub use names::{ProcessNames, symbol_search};
pub use native::StartRegisters;
pub use options::WatchOptions;
pub use programs::TimerEvent;
pub use reading::{WatchCounts, WatchReading};
pub use recorded::{RecordedWalk, RecordedWalks};
pub use refusal::BpfRefusal;
pub(crate) use refusal::{OLDEST_KERNEL, how_to_get_types};
pub use tables::CodeTables;
pub use threads::ThreadTimes;
