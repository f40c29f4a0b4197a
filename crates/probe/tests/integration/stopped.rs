//! Programs that somebody keeps from running: their threads wait for nothing of their own, whatever system call they were in.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scaleprof_probe::plain::{PlainOptions, PlainWatch};
use scaleprof_probe::{Watch, WatchOptions};
use scaleprof_profile::ThreadState;

use crate::watch::program::{Program, can_watch};

/// How a program is stopped.
trait Stop {
    fn stop(&self);
    fn go_on(&self);
}

struct Signal(u32);

impl Stop for Signal {
    fn stop(&self) {
        send(self.0, libc::SIGSTOP);
    }

    fn go_on(&self) {
        send(self.0, libc::SIGCONT);
    }
}

fn send(process: u32, signal: i32) {
    // SAFETY: kill has no memory effects; the program is our own child.
    assert_eq!(unsafe { libc::kill(process as i32, signal) }, 0);
}

/// A cgroup (version 2) of its own, as `docker pause` freezes one.
struct Frozen(PathBuf);

impl Frozen {
    /// None, aloud, where no such cgroup can be made.
    fn of(process: u32) -> Option<Frozen> {
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
        let root = roots
            .map(Path::new)
            .into_iter()
            .find(|root| root.join("cgroup.procs").exists());
        let made = root.map(|root| root.join(format!("scaleprof-test-{process}")));
        let made = made.filter(|folder| std::fs::create_dir(folder).is_ok());
        let Some(folder) = made else {
            testing::skip!("no cgroup of version 2 can be made");
            return None;
        };
        std::fs::write(folder.join("cgroup.procs"), process.to_string()).expect("it moves there");
        Some(Frozen(folder))
    }

    fn freeze(&self, frozen: bool) {
        std::fs::write(self.0.join("cgroup.freeze"), if frozen { "1" } else { "0" }).expect("writable");
    }
}

impl Stop for Frozen {
    fn stop(&self) {
        self.freeze(true);
    }

    fn go_on(&self) {
        self.freeze(false);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.freeze(false);
        let processes = std::fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for process in processes.lines() {
            // Only an empty one can be removed. It may have ended meanwhile.
            let _ = std::fs::write(self.0.join("../cgroup.procs"), process);
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// What the states of all threads sum up to.
fn sums(threads: impl Iterator<Item = [u64; 8]>) -> [f64; 8] {
    let mut sums = [0.0; 8];
    for nanoseconds in threads {
        for (sum, one) in sums.iter_mut().zip(nanoseconds) {
            *sum += one as f64;
        }
    }
    sums
}

/// Stops a program for a second amid a reading whose states `read` gives: two threads wait for a mutex, whose holder naps, and the main
/// thread reads a pipe.
fn is_told_apart(stop: &dyn Stop, mut read: impl FnMut() -> [f64; 8]) {
    let before = read();
    assert!(before[ThreadState::Lock as usize] > 0.0, "{before:?}");
    stop.stop();
    std::thread::sleep(Duration::from_millis(200));
    read();
    std::thread::sleep(Duration::from_secs(1));
    let stopped = read();
    stop.go_on();
    let all: f64 = stopped.iter().sum();
    assert!(stopped[ThreadState::Other as usize] > 0.99 * all, "{stopped:?}");
    std::thread::sleep(Duration::from_millis(200));
    read();
    std::thread::sleep(Duration::from_millis(500));
    let after = read();
    let all: f64 = after.iter().sum();
    assert!(
        after[ThreadState::Lock as usize] > 0.45 * all,
        "half of them wait for the mutex again: {after:?}"
    );
}

fn watched(program: &Program, stop: &dyn Stop) {
    let mut watch = Watch::start(program.pid(), WatchOptions::default()).expect("it can be watched");
    std::thread::sleep(Duration::from_millis(300));
    is_told_apart(stop, || {
        sums(
            watch
                .read()
                .expect("readable")
                .threads
                .iter()
                .map(|thread| thread.nanoseconds),
        )
    });
}

fn watched_plainly(program: &Program, stop: &dyn Stop) {
    let mut watch = PlainWatch::start(program.pid(), PlainOptions::default()).expect("it can be watched");
    std::thread::sleep(Duration::from_millis(300));
    is_told_apart(stop, || {
        sums(watch.read().threads.iter().map(|thread| thread.nanoseconds))
    });
}

#[test]
fn threads_of_a_stopped_program_wait_for_nothing_of_their_own() {
    let program = Program::start("hung");
    watched_plainly(&program, &Signal(program.pid()));
    if can_watch() {
        watched(&program, &Signal(program.pid()));
    }
}

#[test]
fn nor_do_those_of_a_frozen_cgroup() {
    let program = Program::start("hung");
    let Some(frozen) = Frozen::of(program.pid()) else {
        return;
    };
    watched_plainly(&program, &frozen);
    if can_watch() {
        watched(&program, &frozen);
    }
}
