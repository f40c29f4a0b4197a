//! Compiling, starting and ending a planted program.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use testing::RunningProgram;

/// As in stage.h.
const MOST_WORKERS: usize = 64;
const STRIDE: usize = 128;

/// A running program; killed when dropped.
pub struct Program {
    running: RunningProgram,
    counters: File,
}

impl Program {
    /// Compiles `NAME.c` in that folder and starts it. It waits for its first workers.
    pub fn start(name: &str, folder: &Path) -> Program {
        let binary = folder.join(name);
        let source = format!("{}/tests/integration/planted/{name}.c", env!("CARGO_MANIFEST_DIR"));
        let compiled = Command::new("cc")
            .args([
                "-O2",
                "-g",
                "-pthread",
                "-fomit-frame-pointer",
                "-Wall",
                "-Wextra",
                "-Werror",
            ])
            // Variables lie as they are written.
            .arg("-fno-toplevel-reorder")
            .arg("-o")
            .arg(&binary)
            .arg(source)
            .status();
        assert!(compiled.expect("cc runs").success(), "{name} compiles");
        let counters = folder.join("counters");
        Program {
            running: RunningProgram::start(Command::new(&binary).args([&counters, folder])),
            counters: File::open(counters).expect("it has made it"),
        }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Starts that many workers and gives their thread numbers.
    pub fn workers(&mut self, count: u32) -> BTreeSet<u32> {
        let answer = self.running.ask(&format!("start {count}"));
        let numbers = answer.strip_prefix("workers ").expect("its workers");
        numbers.split(' ').map(|word| word.parse().expect("a number")).collect()
    }

    /// Ends them, and gives the part of their time that they lost by their own measure; none where they cannot tell.
    pub fn stop(&mut self) -> Option<f64> {
        let answer = self.running.ask("stop");
        let mut words = answer.strip_prefix("truth ").expect("what they lost").split(' ');
        let mut nanoseconds = || {
            words
                .next()
                .and_then(|word| word.parse::<f64>().ok())
                .expect("nanoseconds")
        };
        let (lost, lived) = (nanoseconds(), nanoseconds());
        (lived > 0.0).then(|| lost / lived)
    }

    /// Transactions of all workers so far.
    pub fn transactions(&self) -> u64 {
        let mut bytes = [0; MOST_WORKERS * STRIDE];
        self.counters.read_exact_at(&mut bytes, 0).expect("readable");
        let counts = bytes.chunks_exact(STRIDE).map(|worker| {
            let count = worker.first_chunk().expect("eight bytes");
            u64::from_ne_bytes(*count)
        });
        counts.sum()
    }
}

/// Whether BPF programs can be loaded here; says so aloud where not, and fails in CI, where nothing may be skipped.
pub fn can_watch() -> bool {
    match scaleprof_probe::Watch::start(std::process::id(), scaleprof_probe::WatchOptions::default()) {
        Ok(_) => true,
        Err(error) => {
            testing::skip!("{error}");
            false
        }
    }
}
