//! Programs of which is known what their threads do.

use std::process::Command;

use testing::RunningProgram;

/// A running program; killed when dropped.
pub struct Program {
    running: RunningProgram,
    folder: tempfile::TempDir,
}

impl Program {
    /// Compiles `waits.c` and starts it; its threads run when this returns.
    pub fn start(mode: &str) -> Self {
        Self::compiled(mode, &["-g"])
    }

    /// The same, with no names in it, and with another program at its place since it runs.
    pub fn start_and_replace(mode: &str) -> Self {
        let program = Self::compiled(mode, &["-s"]);
        let other = program.folder.path().join("other");
        std::fs::copy("/bin/true", &other).expect("copied");
        std::fs::rename(&other, program.folder.path().join("waits")).expect("replaced");
        program
    }

    fn compiled(mode: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/watch/waits.c");
        let binary = folder.path().join("waits");
        let without_rows = folder.path().join("without_rows.o");
        let compiled = Command::new("cc")
            .args([
                "-c",
                "-O1",
                "-fno-omit-frame-pointer",
                "-fno-asynchronous-unwind-tables",
                "-o",
            ])
            .arg(&without_rows)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/integration/watch/without_rows.c"
            ))
            .status();
        assert!(
            compiled.expect("cc runs").success(),
            "the part without unwind rules compiles"
        );
        let compiled = Command::new("cc")
            // Bound at its start: the loader's resolver keeps its frame in %rbx, which no walk of ours follows, and a thread may be met in it
            // where a function of the C library is called for the first time.
            .args([
                "-O2",
                "-pthread",
                "-fomit-frame-pointer",
                "-Wall",
                "-Werror",
                "-Wl,-z,now",
                "-o",
            ])
            .arg(&binary)
            .args(options)
            .arg(source)
            .arg(&without_rows)
            .status();
        assert!(compiled.expect("cc runs").success(), "the program compiles");
        let running = RunningProgram::start(Command::new(&binary).arg(mode));
        Self { running, folder }
    }

    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sets its own sums to zero.
    pub fn begin(&mut self) {
        assert_eq!(self.running.ask(""), "begun");
    }

    /// Its own sums since [`begin`](Self::begin): nanoseconds waited for the mutex, slept long, slept briefly.
    pub fn end(&mut self) -> [f64; 3] {
        let line = self.running.ask("");
        let sums: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        sums.try_into().expect("three sums")
    }
}

/// Whether the owner of a lock can run when another thread begins to wait for it. With one CPU it cannot: the waiter has that CPU.
pub fn threads_run_side_by_side() -> bool {
    let cpus = std::thread::available_parallelism().expect("known").get();
    if cpus == 1 {
        testing::skip!("that an owner runs while others wait; with one CPU it is in the run queue when a wait begins");
    }
    cpus > 1
}

/// Whether the kernel says who waits for its own locks; says so aloud where not, and fails in CI, where nothing may be skipped.
/// Since Linux 5.19 (`trace_contention_begin`).
pub fn kernel_tells_of_its_locks() -> bool {
    let functions = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let tells = functions.contains("__traceiter_contention_begin");
    if !tells {
        testing::skip!("this kernel does not tell of its own locks; Linux 5.19 and later do");
    }
    tells
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
