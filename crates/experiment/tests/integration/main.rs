//! Runs on real servers, and on programs with one planted disease each.

mod live_stacks;
mod planted;
