//! Watching one's own server with what the kernel gives to everybody: no BPF, no root.
//!
//! [`PlainWatch`] samples where its threads are on CPU and accounts for every thread's time by state; what it cannot see
//! stands in [`PlainWatch::missing`] with the command that would give it. [`StackUnwinder`] serves on its own wherever
//! registers and a stack are at hand.

mod access;
mod account;
mod bursts;
mod dumps;
mod followed_late;
mod lack;
mod memory_map;
mod record;
mod recorder;
mod ring;
mod sampling_event;
mod stack_unwinder;
mod thread_files;
mod thread_table;
mod vdso;
mod wait;
mod watch;

pub use dumps::sampled_stacks;
pub use lack::Lack;
pub use memory_map::{Mapping, parse_maps};
pub use scaleprof_profile::walk::{MOST_FRAMES, Registers};
pub(crate) use stack_unwinder::NOT_FOUND;
pub use stack_unwinder::StackUnwinder;
pub use watch::{PlainOptions, PlainReading, PlainThread, PlainWatch};
