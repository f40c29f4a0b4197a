//! Mutexes and bare futexes: named, with their operation, their owner, and where that one is.

use scaleprof_vocabulary::ThreadState;
use std::time::Duration;

use scaleprof_probe::symbols::SymbolSearch;
use scaleprof_probe::{ProcessNames, Watch, WatchOptions};
use scaleprof_profile::{Converter, Namer as _, RawSample};

use super::known_waits::{Seen, close, watched};
use super::program::{Program, can_watch, threads_run_side_by_side};

/// What became known of the waits for one lock, thread-nanoseconds.
#[derive(Debug, Default)]
struct Holders {
    all: f64,
    /// The holder's stack is known and holds that function,
    held: f64,
    /// and it was asleep there,
    asleep: f64,
    /// or ran.
    running: f64,
}

/// Waits for futexes. The calls that wait for one take locks of the kernel, and may have to wait
/// for those for a moment.
fn waits_below(seen: &mut Seen, function: &str) -> Vec<RawSample> {
    let is_of_a_futex = |sample: &&RawSample| sample.lock.as_ref().is_some_and(|lock| !lock.kernel);
    let waits: Vec<RawSample> = seen.samples.iter().filter(is_of_a_futex).cloned().collect();
    let is_below = |sample: &RawSample| seen.functions(&sample.stack).iter().any(|name| name == function);
    waits.into_iter().filter(is_below).collect()
}

fn holders(seen: &mut Seen, waits: &[RawSample], function: &str) -> Holders {
    let mut found = Holders::default();
    for sample in waits {
        let lock = sample.lock.as_ref().expect("a wait for a lock");
        let Some(name) = seen.names.variable(lock.address) else {
            panic!("no variable is at {lock:x?}, below {:?}", seen.functions(&sample.stack));
        };
        assert_eq!((name.module.as_str(), name.name.as_str()), ("waits", "planted.mutex"));
        found.all += sample.weight_ns;
        let Some(owner) = &lock.holder_stack else { continue };
        if !seen.functions(owner).iter().any(|name| name == function) {
            continue;
        }
        assert_ne!(lock.owner, Some(sample.thread));
        found.held += sample.weight_ns;
        match lock.holder_state {
            Some(ThreadState::Sleep) => found.asleep += sample.weight_ns,
            Some(ThreadState::Cpu) => found.running += sample.weight_ns,
            _ => {}
        }
    }
    found
}

/// The operations that a profile tells of a variable of the program.
fn operations_on(seen: &mut Seen, waits: &[RawSample], variable: &str) -> Vec<String> {
    let mut converter = Converter::new();
    for sample in waits {
        converter.add(sample, &mut seen.names);
    }
    let locks = converter.take().locks.into_iter();
    let of_variable = locks.filter(|lock| lock.variable.as_ref().is_some_and(|found| found.name == variable));
    of_variable.map(|lock| lock.operation).collect()
}

/// Two threads want a mutex that a third one sleeps with.
fn finds_holder_and_waker(mode: &str, operation: &str) {
    let (mut seen, [waited, ..]) = watched(mode, 5, WatchOptions::default());
    // From being blocked to having a CPU again: what the program measures holds both.
    let blocked = seen.nanoseconds(ThreadState::Lock, "want_it");
    let queued = seen.nanoseconds(ThreadState::RunQueue, "want_it");
    close(blocked + queued, waited, 0.05);

    let waits = waits_below(&mut seen, "want_it");
    let found = holders(&mut seen, &waits, "hold_it");
    assert!(
        found.all > 0.95 * blocked && found.all < 1.001 * blocked,
        "{mode}: {found:?} of {blocked} ns blocked"
    );
    // A waiter may hold it for a moment too.
    assert!(found.held > 0.9 * found.all, "{mode}: {found:?}");
    // It has just taken the mutex at times, and has not gone to sleep yet.
    assert!(found.asleep > 0.9 * found.held, "{mode}: {found:?}");

    let woken_by_holder = waits.iter().filter(|sample| {
        let stack = sample.waker.as_ref().and_then(|waker| waker.stack.clone());
        stack.is_some_and(|stack| seen.functions(&stack).contains(&"hold_it".to_owned()))
    });
    // Two want it and each of them wakes the other at times: every second one at least is woken by the holder. Half as many for stacks
    // that were not taken.
    let woken_by_holder = woken_by_holder.count();
    eprintln!("{mode}: {woken_by_holder} of {} were woken by the holder", waits.len());
    assert!(
        woken_by_holder >= waits.len() / 4,
        "{mode}: who unlocks it is seen as the waker of {woken_by_holder} of {}",
        waits.len()
    );
    assert_eq!(operations_on(&mut seen, &waits, "planted.mutex"), [operation], "{mode}");
}

#[test]
fn finds_the_owner_of_a_contended_mutex() {
    if can_watch() {
        finds_holder_and_waker("mutex", "wait");
    }
}

/// Its word names the thread that owns it, and the kernel hands it over.
#[test]
fn finds_the_owner_of_a_mutex_with_priority_inheritance() {
    if can_watch() {
        finds_holder_and_waker("inherit", "lock_pi");
    }
}

#[test]
fn finds_the_owner_of_a_robust_mutex() {
    if can_watch() {
        finds_holder_and_waker("robust", "wait");
    }
}

/// Nobody can walk the stack of a thread that runs. It is seen at its next sample, or when it leaves its CPU, and has the mutex still.
#[test]
fn finds_the_place_of_an_owner_that_runs() {
    if !can_watch() {
        return;
    }
    let (mut seen, _) = watched("busy", 5, WatchOptions::default());
    let waits = waits_below(&mut seen, "want_it");
    let found = holders(&mut seen, &waits, "hold_and_compute");
    assert!(found.held > 0.9 * found.all, "{found:?}");
    // It never sleeps with it, but may have to wait for a CPU. A kernel that does not tell of every switch shows it asleep at times.
    assert!(found.asleep < 0.1 * found.held, "{found:?}");
    if threads_run_side_by_side() {
        assert!(found.running > 0.0, "{found:?}");
    }
}

/// Whether the kernel has a system call: called with nothing it complains of something else than that.
fn has_call(number: libc::c_long) -> bool {
    // SAFETY: null pointers and zeroes, which the kernel refuses.
    let refused = unsafe { libc::syscall(number, 0, 0, 0, 0, 0, 0) } == -1;
    let has = !refused || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS);
    if !has {
        testing::skip!("this kernel has no system call {number}");
    }
    has
}

/// The newer calls have their arguments in other places, futex_waitv(2) (Linux 5.16) even a list of futexes; futex_wait(2) is of
/// Linux 6.7.
#[test]
fn names_what_the_calls_of_futex2_wait_for() {
    for (mode, number, operation) in [("futex_waitv", 449, "waitv"), ("futex_wait", 455, "wait_bitset")] {
        if !can_watch() || !has_call(number) {
            continue;
        }
        let (mut seen, [waited, ..]) = watched(mode, 3, WatchOptions::default());
        let waits = waits_below(&mut seen, "want_the_word");
        // By its own clock a wait lasts until the thread has a CPU again.
        let told: f64 = waits.iter().map(|sample| sample.weight_ns).sum();
        let told = told + seen.nanoseconds(ThreadState::RunQueue, "want_the_word");
        close(told, waited, 0.2);
        assert_eq!(operations_on(&mut seen, &waits, "planted.word"), [operation], "{mode}");
    }
}

/// As on a server that hangs: all who wait did so before anybody looked, and nobody moves.
#[test]
fn finds_the_owner_of_a_mutex_that_was_waited_for_before_the_watch_began() {
    if !can_watch() {
        return;
    }
    let program = Program::start("hung");
    let mut watch = Watch::start(program.pid(), WatchOptions::default()).expect("it can be watched");
    let mut names = ProcessNames::new(SymbolSearch::default());
    names.follow(watch.code().expect("readable"));
    std::thread::sleep(Duration::from_millis(500));
    let last = watch.read().expect("readable");
    let mut seen = Seen {
        samples: last.samples.clone(),
        last,
        names,
    };
    let waits = waits_below(&mut seen, "want_it");
    let found = holders(&mut seen, &waits, "hold_to_the_end");
    // Two threads, all the time but the last 20 ms, which come with the next reading.
    let watched = 2.0 * (seen.last.taken_ns - seen.last.since_ns) as f64;
    assert!((0.85..1.0).contains(&(found.all / watched)), "{watched} ns: {found:?}");
    assert!(found.asleep > 0.99 * found.all, "{found:?}");
}
