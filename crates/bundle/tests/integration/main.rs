//! Bundles written, read back, and left by a run that was killed.

mod dictionaries;
mod docs;
mod killed_run;
mod profile;
mod round_trip;
mod sample;
