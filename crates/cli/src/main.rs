//! The command line of scaleprof.
fn main() {}
