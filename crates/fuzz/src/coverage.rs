//! libFuzzer over one target: it keeps what goes new ways, and changes that again. `scripts/fuzz` builds and calls it.

#![no_main]

use clap::ValueEnum;
use fuzz::Target;
use std::sync::LazyLock;

/// libFuzzer's own options fill the command line.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    Target::from_str(&name, false).unwrap_or_else(|_| panic!("FUZZ_TARGET is '{name}', which is no target"))
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| TARGET.attempt(bytes));
