//! Watching for a part of the time only, as where switches come too often: what is said of the rest must be true all the same.

use scaleprof_vocabulary::ThreadState;
use std::time::Duration;

use scaleprof_probe::{Watch, WatchOptions, WatchReading};

use super::known_waits::{close, kernel_locks_are_named, watched};
use super::program::{Program, can_watch, kernel_tells_of_its_locks};

/// As much rest as there may be: about six sevenths of the time.
fn resting() -> WatchOptions {
    WatchOptions {
        most_cost: 0.0,
        ..WatchOptions::default()
    }
}

fn watched_share(reading: &WatchReading) -> f64 {
    reading.watched_ns as f64 / (reading.taken_ns - reading.since_ns) as f64
}

fn in_state(reading: &WatchReading, state: ThreadState) -> f64 {
    let threads = reading.threads.iter();
    threads.map(|thread| thread.nanoseconds[state as usize] as f64).sum()
}

#[test]
fn waits_for_a_mutex_are_told_as_long_as_they_lasted_though_few_were_seen() {
    if !can_watch() {
        return;
    }
    let (mut seen, [waited, ..]) = watched("mutex", 20, resting());
    let share = watched_share(&seen.last);
    assert!(share < 0.5, "it rested for {share} of the time only");
    let by_stacks = seen.nanoseconds(ThreadState::Lock, "want_it") + seen.nanoseconds(ThreadState::RunQueue, "want_it");
    let by_states = in_state(&seen.last, ThreadState::Lock) + in_state(&seen.last, ThreadState::RunQueue);
    eprintln!("watched {share:.3}, waited {waited:.0}, by stacks {by_stacks:.0}, by states {by_states:.0}");
    // Some 28 stints of two rounds of the program each.
    close(by_stacks, waited, 0.15);
    close(by_states, waited, 0.15);
}

#[test]
fn locks_of_the_kernel_are_named_though_few_fights_were_seen() {
    if !can_watch() || !kernel_tells_of_its_locks() {
        return;
    }
    kernel_locks_are_named(8, resting());
}

/// The kernel tells of a fight when it begins. Of those that begin in a rest some are taken for what their system call is (ADR 9).
#[test]
fn waits_for_a_lock_of_the_kernel_are_nearly_all_told_as_such_with_rests() {
    if !can_watch() || !kernel_tells_of_its_locks() {
        return;
    }
    let program = Program::start("write");
    let all = WatchOptions {
        most_cost: 1.0,
        ..WatchOptions::default()
    };
    let mut watches = [all, resting()].map(|options| Watch::start(program.pid(), options).expect("it can be watched"));
    for watch in &mut watches {
        watch.read().expect("readable");
    }
    let mut sums = [[0.0; 2]; 2];
    for _ in 0..8 {
        std::thread::sleep(Duration::from_secs(1));
        for (watch, sums) in watches.iter_mut().zip(&mut sums) {
            let reading = watch.read().expect("readable");
            for (sum, state) in sums.iter_mut().zip([ThreadState::Lock, ThreadState::Io]) {
                *sum += in_state(&reading, state);
            }
        }
    }
    let [seen, rested] = sums.map(|[lock, io]| lock / (lock + io));
    eprintln!("part of the waits that is for the lock: {seen:.3} seen all the time, {rested:.3} with rests");
    assert!(seen > 0.95 && rested > 0.8, "{seen} {rested}");
}

#[test]
fn long_waits_are_found_where_they_began_in_a_rest() {
    if !can_watch() {
        return;
    }
    let (mut seen, [_, long, short]) = watched("uneven", 12, resting());
    // By its own clock a nap lasts until the thread has a CPU again.
    let mut told_of = |function: &str| {
        seen.nanoseconds(ThreadState::Sleep, function) + seen.nanoseconds(ThreadState::RunQueue, function)
    };
    let (told, told_short) = (told_of("long_nap"), told_of("short_nap"));
    eprintln!("long {told:.0} of {long:.0}, short {told_short:.0} of {short:.0}");
    close(told, long, 0.15);
    // One of seven is seen, and of those some are chosen.
    let spread = seen.spread_of_coins("short_nap", 0.4e6);
    eprintln!("spread of the short ones {spread:.0}");
    assert!(
        told_short > 0.0 && (told_short - short).abs() < 0.1 * short + 4.0 * spread,
        "{told_short:.0} of {short:.0}, with a spread of {spread:.0}"
    );
}

#[test]
fn the_states_add_up_and_the_conclusions_are_counted() {
    if !can_watch() {
        return;
    }
    let program = Program::start("uneven");
    let mut watch = Watch::start(program.pid(), resting()).expect("it can be watched");
    let (mut read, mut lived, mut concluded, mut lost) = (0.0, 0.0, 0.0, 0);
    for _ in 0..4 {
        std::thread::sleep(Duration::from_secs(1));
        let reading = watch.read().expect("readable");
        assert_eq!(reading.threads.len(), 6);
        for thread in &reading.threads {
            let states: u64 = thread.nanoseconds.iter().sum();
            let off = states.abs_diff(thread.lifetime_ns) as f64 / thread.lifetime_ns as f64;
            assert!(off < 0.01, "{thread:?}");
            lived += thread.lifetime_ns as f64;
            concluded += thread.concluded_ns as f64;
        }
        read += in_state(&reading, ThreadState::Other);
        lost = reading.counts.unmatched;
    }
    // Five threads nap, the sixth waits for its input all the time.
    close(read, lived / 6.0, 0.02);
    assert!(
        (0.3 * lived..0.95 * lived).contains(&concluded),
        "{concluded} of {lived}"
    );
    assert_eq!(lost, 0);
}

#[test]
fn a_paused_watch_takes_no_stacks_and_goes_on_telling_the_time_on_the_cpu() {
    if !can_watch() {
        return;
    }
    let program = Program::start("signal");
    let clock = || {
        scaleprof_probe::process_cpu_clock(program.pid())
            .expect("readable")
            .as_nanos() as f64
    };
    for options in [WatchOptions::default(), resting()] {
        let mut watch = Watch::start(program.pid(), options).expect("it can be watched");
        let half_a_second = || std::thread::sleep(Duration::from_millis(500));
        let before = clock();
        watch.read().expect("readable");
        let begin = clock();
        half_a_second();
        watch.pause().expect("it can be paused");
        watch.pause().expect("twice is as good as once");
        let first = watch.read().expect("readable");
        half_a_second();
        half_a_second();
        let paused = watch.read().expect("readable");
        watch.resume().expect("it goes on");
        half_a_second();
        let end = clock();
        let last = watch.read().expect("readable");
        let after = clock();
        let stacks = |reading: &WatchReading| reading.counts.cpu_stacks + reading.counts.sleep_stacks;
        assert_eq!(stacks(&first), stacks(&paused), "in the pause");
        assert_eq!(paused.watched_ns, 0, "in the pause");
        assert!(
            stacks(&first) > 0 && last.counts.cpu_stacks > paused.counts.cpu_stacks,
            "{last:?}"
        );
        let mut charged = 0.0;
        for thread in [&first, &paused, &last].iter().flat_map(|reading| &reading.threads) {
            let states: u64 = thread.nanoseconds.iter().sum();
            let off = states.abs_diff(thread.lifetime_ns) as f64 / thread.lifetime_ns as f64;
            assert!(off < 0.01, "{thread:?}");
            charged += (thread.nanoseconds[ThreadState::Cpu as usize] - thread.not_its_own_ns) as f64;
        }
        let (least, most) = (end - begin, after - before);
        assert!(
            (least * 0.98..most * 1.02).contains(&charged),
            "watch {charged:.0}, /proc {least:.0} to {most:.0}"
        );
    }
}

/// When the programs come back, whoever goes through the threads and the CPU that one of them gets may both find it behind.
#[test]
fn what_nobody_saw_is_counted_once_however_often_the_programs_leave() {
    const PAUSE: Duration = Duration::from_millis(5);
    if !can_watch() {
        return;
    }
    let program = Program::start("uneven");
    let all = WatchOptions {
        most_cost: 1.0,
        ..WatchOptions::default()
    };
    let mut watch = Watch::start(program.pid(), all).expect("it can be watched");
    watch.read().expect("readable");
    for _ in 0..200 {
        watch.pause().expect("nothing forbids it");
        std::thread::sleep(PAUSE);
        watch.resume().expect("nothing forbids it");
    }
    let reading = watch.read().expect("readable");
    assert_eq!(reading.threads.len(), 6);
    for thread in &reading.threads {
        let states: u64 = thread.nanoseconds.iter().sum();
        let off = Duration::from_nanos(states.abs_diff(thread.lifetime_ns));
        eprintln!("{off:?} of {:?}", Duration::from_nanos(thread.lifetime_ns));
        assert!(off < PAUSE / 2, "{off:?}: {thread:?}");
    }
}
