//! Stacks with weights: the one data structure that live recordings and imported ones share.
//!
//! A collector gives [`RawSample`]s: addresses of one thread at one moment, with the state that the thread was in and the
//! time that the sample stands for. Everything from there on is the same whether the kernel was asked just now or a
//! recording is read again.

mod raw;
mod state;

pub use raw::{Ending, LockWait, RawSample, RawStack, Waker, WakerKind};
pub use state::ThreadState;
