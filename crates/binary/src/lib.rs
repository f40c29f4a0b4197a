//! What a machine-code file says: unwind rules, symbols, functions, variables and who touches them, loops that wait,
//! instructions.
//!
//! Everything here speaks of one ELF file in the file's own virtual addresses (`svma`, "stated virtual memory
//! address"): what `nm`, `readelf` and `objdump` print. [`loads`] tells by how much a running process has moved them.

mod call_frames;
pub mod data_access;
pub mod data_layout;
mod deep_stack;
pub mod disassembly;
pub mod kernel_symbols;
pub mod loads;
mod long_names;
pub mod makers_cpu;
pub mod mapped_file;
pub mod parallel;
pub mod perf_map;
pub mod readable;
mod section;
pub mod spin;
pub mod symbols;
pub mod truncated;
pub mod unfolded;
pub mod unwind;
mod unwind_error;
mod x86;
