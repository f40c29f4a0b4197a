//! Stacks with weights: the one data structure that live recordings and imported ones share.
//!
//! A collector gives [`RawSample`]s: addresses of one thread at one moment, with the state that the thread was in and the
//! time that the sample stands for. Everything from there on is the same whether the kernel was asked just now or a
//! recording is read again: a [`Converter`] gives the addresses their names and makes a [`Profile`], in which every frame
//! and every call path is kept once, under a number that follows from its content.

mod content_hash;
mod convert;
mod costs;
mod dictionary;
mod event_name;
pub mod fairness;
pub mod firefox;
pub mod folded;
mod frame;
mod function_name;
mod function_paths;
pub mod import;
mod legible;
mod lines_left_out;
mod locks;
mod named_stacks;
pub mod names;
pub mod perf_data;
pub mod perf_script;
pub mod perf_stat;
pub mod pprof;
mod profile;
mod protobuf;
mod raw;
mod running_total;
pub mod speedscope;
mod stack_tree;
mod thread_times;
mod timeline;
pub mod walk;

pub use content_hash::ContentHash;
pub use convert::{Converter, Namer};
pub use costs::{About, Amount, Cost, CostProfile, Unit};
pub use dictionary::{Content, Dictionary};
pub use frame::{Frame, FrameId, Frames, FramesAsTheyCame, KERNEL, SCALEPROF};
pub use function_name::{KERNEL_SUFFIX, function_name, without_clone_suffix};
pub use locks::FUTEX2_WAITV;
pub use named_stacks::MOST_NAMED_FRAMES;
pub use scaleprof_binary::parallel::{beside, both, in_parallel, in_parallel_from_to, in_parallel_with};

pub use profile::{Lock, LockId, Profile, Sample, Variable, Wait};
pub use raw::{LockWait, RawSample, RawStack, Waker};
pub use stack_tree::{StackId, StackNode, StackTree};
pub use thread_times::ThreadTimes;
pub use timeline::{Moment, ThreadLine, Timeline};
