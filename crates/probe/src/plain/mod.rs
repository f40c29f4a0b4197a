//! Watching one's own server with what the kernel gives to everybody: no BPF, no root.

mod expression;
mod lack;
mod memory_map;
mod stack_unwinder;
mod unwind_rules;
mod vdso;

pub use lack::Lack;
pub use memory_map::{Mapping, parse_maps};
pub use stack_unwinder::{MOST_FRAMES, Registers, StackUnwinder};
