//! Recordings of perf and other profilers, whole and broken.

mod cases;
mod exchange;
mod hostile_files;
mod recordings;
