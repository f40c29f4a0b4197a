//! The watch against programs of which is known what their threads do. Ratios only: nothing depends on how fast the machine
//! is.

mod futexes;
mod known_waits;
mod lifecycle;
pub mod program;
mod rests;
