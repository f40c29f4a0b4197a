//! What every parser of foreign bytes must bear: any bytes at all, without a panic, within a bound of memory.
//!
//! A [`Target`] is one parser. It takes bytes and does with them all that the product would do. What belongs here: targets, and the two
//! ways to feed them. The inputs that are kept for each are in `corpus/TARGET`; `scripts/fuzz-corpus` makes them.
//!
//! - `./test` gives each its kept inputs, and three seconds of changed ones by a fixed seed (`tests/integration`).
//! - `./test --deep coverage-fuzz` lets libFuzzer look for inputs that go new ways (`coverage.rs`).

mod bundle;
mod elf;
mod lists;
mod recording;
mod replies;
mod target;

pub use target::{Target, most_memory};
