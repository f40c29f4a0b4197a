//! Waits of which a program knows itself how long they are.

use super::recorded::{Recorded, compiled};
use scaleprof_profile::import::{ReadOptions, read_recording};
use scaleprof_vocabulary::ThreadState;

#[test]
fn a_lock_of_which_calls_of_futex_were_recorded_is_named_with_the_time_that_was_waited_for_it() {
    let Some(program) = compiled("convoy.c", &["-O0", "-fno-omit-frame-pointer", "-g", "-pthread"]) else {
        return;
    };
    let events = [
        "sched:sched_switch",
        "syscalls:sys_enter_futex",
        "syscalls:sys_exit_futex",
    ];
    let Some((recorded, printed)) = Recorded::of_whole_machine(&program, &events) else {
        return;
    };
    let options = ReadOptions {
        process: Some("convoy".to_owned()),
        ..ReadOptions::default()
    };
    let found = read_recording(recorded.file(), &options).expect("read");
    let variable = |name: &str| {
        let locks = found.profile.locks.iter();
        let named = locks.filter(|lock| lock.variable.as_ref().is_some_and(|variable| variable.name == name));
        named.map(|lock| lock.wait_ns).sum::<f64>()
    };
    let mut clocks = printed
        .split_whitespace()
        .map(|word| word.parse::<f64>().expect("nanoseconds"));
    let (waited, asleep_by_its_clock) = clocks.next().zip(clocks.next()).expect("two clocks");
    let told = variable("the_convoy");
    assert!(waited > 0.1e9, "nobody had to wait: {waited} ns");
    // Each of the 300 turns sleeps for 2 ms and until it has a CPU again; the kernel may not tell when an idle CPU gets work.
    let samples = found.profile.samples.iter();
    let asleep = samples.filter(|sample| sample.state == ThreadState::Sleep);
    let slept: f64 = asleep.map(|sample| sample.weight_ns).sum();
    assert!(
        slept > 0.6e9 && slept < 1.05 * asleep_by_its_clock,
        "{slept} of {asleep_by_its_clock} ns: {:?}",
        found.warnings
    );
    assert!(
        (told / waited - 1.0).abs() < 0.05,
        "{told} of {waited} ns: {:?}, {:?}",
        found.profile.locks,
        found.warnings
    );
}
