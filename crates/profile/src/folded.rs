//! Folded stacks, as flamegraph.pl, inferno and most viewers of flame graphs read them: a line for each call path, its functions
//! from the outermost on with a `;` between them, and a number behind, or two for a difference.
//!
//! Functions of the kernel end in `_[k]`, for which the viewers have a colour.

mod read;
mod write;

pub use read::read;
pub(crate) use read::{columns_of, looks_like_it};
pub use write::{write, write_difference};
