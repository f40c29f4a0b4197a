//! Recordings of perf: real ones against perf's own account, broken ones, and some that no perf of this machine can make.

mod agrees_with_perf;
mod branches;
mod broken;
mod fuzzed;
mod known_waits;
mod made;
mod recorded;
