//! How much is tried: `./test` has minutes, `./test --deep` has hours.

/// Whether `./test --deep` runs this.
pub fn is_deep() -> bool {
    std::env::var_os("SCALEPROF_DEEP").is_some()
}

/// How many trials of a simulation: all where there is time, else a quarter of them.
pub fn trials(all: u64) -> u64 {
    if is_deep() { all } else { all / 4 }
}
