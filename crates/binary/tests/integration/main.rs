//! Symbols, unwinding, machine code and data of real files, against other tools.

mod data_of_programs;
mod deep_inlines;
mod disassembly;
mod disassembly_aarch64;
mod files;
mod inlines_oracle;
mod own_stack;
mod separate_debug_files;
mod spin_loops;
mod symbols_of_servers;
mod unwind_cases;
mod unwind_oracle;
