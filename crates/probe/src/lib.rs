//! What the kernel sees of a database server and its machine while it is under load.
//!
//! [`Sampler`] reads CPU time, context switches, page faults, disk, network, memory and hardware counters about once a
//! second; [`delta`] gives the figures between two [`Sample`]s and [`missing`] those that could not be had, with the
//! reason. [`MachineFacts`] says what machine it is, [`check`](check::check) what it lacks. Nothing here prints, and a
//! figure that was not measured is never a zero.

mod cgroup;
mod cgroup_paths;
pub mod check;
mod check_item;
mod check_limits;
mod check_patching;
mod check_symbols;
mod cost;
mod cpu_counters;
mod cpu_facts;
mod cpu_quota;
mod disks;
mod error;
mod figure;
mod hardware;
mod kernel_file;
mod machine;
mod machine_counters;
mod perf_event;
pub mod plain;
mod privileges;
mod process;
mod relax_cost;
mod rests;
mod rotation;
mod sample;
mod sampler;
mod switch_watch;
mod taskstats;
mod thread_walk;
mod watch;
mod write_watch;

pub use cgroup::ServerCgroup;
pub use check::check;
pub use check_item::{CheckItem, Status};
pub use check_symbols::{SymbolFacts, command_for_names, symbol_facts};
pub use cost::{CounterCost, CountingLoss, counting_loss};
pub use cpu_counters::{UsableHardware, probe_hardware};
pub use error::ProbeError;
pub use figure::{Counter, Missing};
pub use machine::MachineFacts;
pub use perf_event::Event;
pub use privileges::how_to_get_privileges;
pub use process::{ProcessStat, parse_stat, pid_namespaces, process_cpu_clock};
pub use relax_cost::relax_nanoseconds;
pub use rests::MachineRests;
pub use sample::{Sample, delta, missing};
pub use sampler::{Sampler, SamplerCost, SamplerOptions};
pub use scaleprof_binary::truncated::truncated_files;
pub use scaleprof_binary::{data_access, data_layout, disassembly, readable, spin, symbols};
pub use watch::{
    BpfRefusal, CodeFile, CodeMap, CodePlace, CodeTables, ProcessCode, ProcessNames, RecordedWalk, RecordedWalks,
    StartRegisters, ThreadTimes, TimerEvent, Watch, WatchCounts, WatchOptions, WatchReading, debuginfod_can_be_asked,
    mapped_files, symbol_search,
};
pub use write_watch::{ProcessData, WriteCount};
