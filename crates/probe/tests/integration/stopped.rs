//! Programs that somebody keeps from running: their threads wait for nothing of their own, whatever system call they were in.

use scaleprof_vocabulary::ThreadState;
use std::time::Duration;

use scaleprof_probe::plain::{PlainOptions, PlainWatch};
use scaleprof_probe::{Watch, WatchOptions};

use crate::own_cgroup::OwnCgroup;
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

/// As `docker pause` does it.
impl Stop for OwnCgroup {
    fn stop(&self) {
        self.freeze(true);
    }

    fn go_on(&self) {
        self.freeze(false);
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
    let Some(frozen) = OwnCgroup::of(program.pid()) else {
        return;
    };
    watched_plainly(&program, &frozen);
    if can_watch() {
        watched(&program, &frozen);
    }
}
