//! Beginning, ending, and what is left behind.

use std::time::Duration;

use scaleprof_probe::{Watch, WatchOptions};
use scaleprof_profile::ThreadState;

use crate::program::{Program, can_watch};

#[test]
fn the_states_of_every_thread_add_up_to_its_life() {
    if !can_watch() {
        return;
    }
    let program = Program::start("uneven");
    let mut watch = Watch::start(program.pid(), WatchOptions::default()).expect("it can be watched");
    let mut cpu = 0;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_secs(1));
        let reading = watch.read().expect("readable");
        assert_eq!(reading.threads.len(), 6);
        for thread in &reading.threads {
            let states: u64 = thread.nanoseconds.iter().sum();
            let off = states.abs_diff(thread.lifetime_ns) as f64 / thread.lifetime_ns as f64;
            assert!(off < 0.01, "{thread:?}");
            cpu += thread.nanoseconds[ThreadState::Cpu as usize];
        }
    }
    assert!(cpu > 0);
}

#[test]
fn time_on_the_cpu_is_what_proc_says() {
    if !can_watch() {
        return;
    }
    let program = Program::start("signal");
    let mut watch = Watch::start(program.pid(), WatchOptions::default()).expect("it can be watched");
    let clock = || {
        scaleprof_probe::process_cpu_clock(program.pid())
            .expect("readable")
            .as_nanos() as f64
    };
    watch.read().expect("readable");
    let before = clock();
    std::thread::sleep(Duration::from_secs(3));
    let reading = watch.read().expect("readable");
    let by_proc = clock() - before;
    let by_watch: u64 = reading
        .threads
        .iter()
        .map(|thread| thread.nanoseconds[ThreadState::Cpu as usize])
        .sum();
    let off = by_watch as f64 / by_proc - 1.0;
    assert!(off.abs() < 0.02, "watch {by_watch}, /proc {by_proc:.0}");
}

#[test]
fn new_and_ended_threads_are_caught() {
    if !can_watch() {
        return;
    }
    // This very process is watched.
    let mut watch = Watch::start(std::process::id(), WatchOptions::default()).expect("it can be watched");
    watch.read().expect("readable");
    let (tell, told) = std::sync::mpsc::channel();
    let short = std::thread::Builder::new()
        .name("short-lived".to_owned())
        .spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32)
                .expect("sent");
            std::thread::sleep(Duration::from_millis(200));
        })
        .expect("starts");
    let number = told.recv().expect("its number");
    short.join().expect("ends");
    std::thread::sleep(Duration::from_millis(50));
    let reading = watch.read().expect("readable");
    let thread = reading
        .threads
        .iter()
        .find(|thread| thread.thread == number)
        .expect("seen");
    assert!(thread.ended);
    assert_eq!(thread.name, "short-lived");
    let asleep = thread.nanoseconds[ThreadState::Sleep as usize];
    assert!((200_000_000..thread.lifetime_ns).contains(&asleep), "{thread:?}");
    let again = watch.read().expect("readable");
    assert!(again.threads.iter().all(|thread| thread.thread != number), "it is gone");
}

#[test]
fn the_programs_for_older_kernels_load_and_walk_too() {
    if !can_watch() {
        return;
    }
    let program = Program::start("uneven");
    let options = WatchOptions {
        without_previous_state: true,
        ..WatchOptions::default()
    };
    let mut watch = Watch::start(program.pid(), options).expect("the verifier takes them");
    std::thread::sleep(Duration::from_millis(1500));
    let reading = watch.read().expect("readable");
    assert_eq!(reading.counts.complete_share(), Some(1.0), "{:?}", reading.counts);
}

#[test]
fn a_process_that_does_not_exist_is_named() {
    if !can_watch() {
        return;
    }
    let error = Watch::start(u32::MAX / 2, WatchOptions::default()).expect_err("there is none");
    assert!(error.to_string().contains("2147483647"), "{error}");
}
