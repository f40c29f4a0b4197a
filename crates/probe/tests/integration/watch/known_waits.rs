//! Waits that are known, from places that are known.

use scaleprof_vocabulary::{ThreadState, UnwindStatus, WakerKind};
use std::time::Duration;

use scaleprof_probe::symbols::SymbolSearch;
use scaleprof_probe::{ProcessNames, Watch, WatchOptions, WatchReading};
use scaleprof_profile::{Namer as _, RawSample, RawStack};

use super::program::{Program, can_watch, kernel_tells_of_its_locks};

/// What was seen of a program, with names for its addresses.
pub struct Seen {
    pub samples: Vec<RawSample>,
    pub last: WatchReading,
    pub names: ProcessNames,
}

/// Watches a program for some seconds. Gives its own sums too.
pub fn watched(mode: &str, seconds: u64, options: WatchOptions) -> (Seen, [f64; 3]) {
    watched_program(Program::start(mode), seconds, options)
}

fn watched_program(mut program: Program, seconds: u64, options: WatchOptions) -> (Seen, [f64; 3]) {
    let mut watch = Watch::start(program.pid(), options).expect("it can be watched");
    std::thread::sleep(Duration::from_millis(300));
    // What was before does not count.
    watch.read().expect("readable");
    let mut names = ProcessNames::new(SymbolSearch::default());
    names.follow(watch.code().expect("readable"));
    names.read_all();
    program.begin();
    watch.read().expect("readable");
    std::thread::sleep(Duration::from_secs(seconds));
    let truth = program.end();
    let last = watch.read().expect("readable");
    let seen = Seen {
        samples: last.samples.clone(),
        last,
        names,
    };
    (seen, truth)
}

impl Seen {
    /// Functions of a stack, innermost first.
    pub fn functions(&mut self, stack: &RawStack) -> Vec<String> {
        let mut functions = Vec::new();
        for (position, address) in stack.user.iter().enumerate() {
            let exact = stack.interrupted.contains(&(position as u16));
            let address = address - u64::from(!exact);
            let frames = self.names.frames(address, false);
            let names = frames.into_iter().filter_map(|frame| frame.function);
            functions.extend(names.map(|name| name.to_string()));
        }
        functions
    }

    /// Thread-nanoseconds in one state below one function.
    pub fn nanoseconds(&mut self, state: ThreadState, function: &str) -> f64 {
        self.weights(state, function).sum()
    }

    /// The standard deviation of what is told of the sleeps below one function, which take so many nanoseconds each. Each was chosen with
    /// some p and told as its time / p: the variance of the sum is that of the coins, the sum of w (w - its time) over the chosen ones
    /// (Horvitz and Thompson 1952).
    pub fn spread_of_coins(&mut self, function: &str, sleep_ns: f64) -> f64 {
        let weights = self.weights(ThreadState::Sleep, function);
        let variance: f64 = weights.map(|weight| weight * (weight - sleep_ns).max(0.0)).sum();
        variance.sqrt()
    }

    /// What the samples in one state below one function stand for, nanoseconds.
    fn weights(&mut self, state: ThreadState, function: &str) -> impl Iterator<Item = f64> + use<> {
        let samples: Vec<RawSample> = self.samples.iter().filter(|s| s.state == state).cloned().collect();
        let weights: Vec<f64> = samples
            .iter()
            .filter(|sample| self.functions(&sample.stack).iter().any(|name| name == function))
            .map(|sample| sample.weight_ns)
            .collect();
        weights.into_iter()
    }
}

pub fn close(measured: f64, truth: f64, within: f64) {
    assert!(
        (measured / truth - 1.0).abs() <= within,
        "{measured:.0} is not within {within} of {truth:.0}"
    );
}

/// mmap(2) and munmap(2) write to the memory map, and the kernel has one lock for it a process.
#[test]
fn locks_of_the_kernel_are_named_by_who_takes_them() {
    if !can_watch() || !kernel_tells_of_its_locks() {
        return;
    }
    kernel_locks_are_named(3, WatchOptions::default());
}

pub fn kernel_locks_are_named(seconds: u64, options: WatchOptions) {
    let (mut seen, _) = watched("mmap", seconds, options);
    for sample in &mut seen.samples {
        seen.names.without_probe(&mut sample.stack);
    }
    let mut converter = scaleprof_profile::Converter::new();
    for sample in seen.samples.iter().filter(|sample| sample.lock.is_some()) {
        converter.add(sample, &mut seen.names);
    }
    let locks = converter.take().locks;
    let mut named: Vec<(String, String, f64)> = locks
        .into_iter()
        .map(|lock| {
            let name = lock.variable.map_or(String::new(), |variable| variable.name);
            (name, lock.operation, lock.wait_ns)
        })
        .collect();
    named.sort_by(|a, b| b.2.total_cmp(&a.2));
    // A stack that could not be walked now and then names nobody.
    let all: f64 = named.iter().map(|(.., nanoseconds)| nanoseconds).sum();
    let without_name = named.iter().filter(|(name, ..)| !name.starts_with("lock taken in "));
    let without_name: f64 = without_name.map(|(.., nanoseconds)| nanoseconds).sum();
    assert!(without_name <= 0.01 * all, "{named:?}");
    // Who writes to the map takes it as a writer, in a function of that system call.
    let of_writers: f64 = named
        .iter()
        .filter(|(name, operation, _)| name.contains("map") && operation == "kernel rw_semaphore, write")
        .map(|(.., nanoseconds)| nanoseconds)
        .sum();
    let in_state = seen.nanoseconds(ThreadState::Lock, "change_the_map");
    assert!(
        of_writers > 0.2 * in_state && in_state > 1e8,
        "{of_writers} of {in_state}: {named:?}"
    );
}

#[test]
fn a_thread_with_long_and_short_sleeps_is_charged_for_each_as_long_as_it_lasted() {
    if !can_watch() {
        return;
    }
    // A small budget, so that most waits are not chosen. And no rests, which one CPU would need for these switches and two do not: then
    // how many stacks there are does not depend on the CPUs. Rests have their own tests.
    let options = WatchOptions {
        sleep_stacks_per_second: 300,
        most_cost: 1.0,
        ..WatchOptions::default()
    };
    let (mut seen, [_, long, short]) = watched("uneven", 10, options);
    let whole = |seen: &mut Seen, function: &str| {
        seen.nanoseconds(ThreadState::Sleep, function) + seen.nanoseconds(ThreadState::RunQueue, function)
    };
    let told_long = whole(&mut seen, "long_nap");
    let told_short = whole(&mut seen, "short_nap");
    let spread = seen.spread_of_coins("long_nap", 40e6);
    assert!(
        spread < 0.1 * long,
        "{spread:.0} of {long:.0}: too few stacks to tell anything"
    );
    let off = (told_long - long).abs();
    assert!(
        off < 0.02 * long + 4.0 * spread,
        "{told_long:.0} is {off:.0} from {long:.0}, with a spread of {spread:.0}"
    );
    // Nearly all of some 200 short ones are chosen: the spread was 2 % of them.
    let spread = seen.spread_of_coins("short_nap", 0.4e6);
    eprintln!("short {told_short:.0} of {short:.0}, with a spread of {spread:.0}");
    assert!(
        spread < 0.1 * short && (told_short - short).abs() < 0.1 * short + 4.0 * spread,
        "{told_short:.0} of {short:.0}, with a spread of {spread:.0}"
    );
    // The others nap thousands of times a second. What was chosen of it stands for all of it.
    let exact: u64 = seen
        .last
        .threads
        .iter()
        .map(|thread| thread.nanoseconds[ThreadState::Sleep as usize])
        .sum();
    let asleep = seen.samples.iter().filter(|sample| sample.state == ThreadState::Sleep);
    let weights: Vec<f64> = asleep.map(|sample| sample.weight_ns).collect();
    // The coins' spread, as above: each wait is short beside what it stands for. It was 3 % in five runs, and they were up to 6 % off; one of
    // many, with other tests beside it, 13.5 %.
    let spread = weights.iter().map(|weight| weight.powi(2)).sum::<f64>().sqrt() / exact as f64;
    assert!(spread < 0.05, "{spread}: too few stacks to tell anything");
    close(weights.iter().sum(), exact as f64, 0.04 + 4.0 * spread);
}

/// With a budget for all of them every short sleep is chosen, and nothing is left to coins.
#[test]
fn short_sleeps_between_long_ones_are_charged_as_long_as_they_lasted() {
    if !can_watch() {
        return;
    }
    let options = WatchOptions {
        sleep_stacks_per_second: 1_000_000,
        most_cost: 1.0,
        ..WatchOptions::default()
    };
    let (mut seen, [_, long, short]) = watched("uneven", 5, options);
    let mut told_of = |function: &str| {
        seen.nanoseconds(ThreadState::Sleep, function) + seen.nanoseconds(ThreadState::RunQueue, function)
    };
    let (told_long, told_short) = (told_of("long_nap"), told_of("short_nap"));
    eprintln!("long {told_long:.0} of {long:.0}, short {told_short:.0} of {short:.0}");
    close(told_long, long, 0.02);
    close(told_short, short, 0.1);
}

#[test]
fn walks_go_through_signal_frames() {
    if !can_watch() {
        return;
    }
    let options = WatchOptions {
        frequency_hz: 999,
        ..WatchOptions::default()
    };
    let (mut seen, _) = watched("signal", 2, options);
    let running: Vec<RawSample> = seen
        .samples
        .iter()
        .filter(|s| s.state == ThreadState::Cpu)
        .cloned()
        .collect();
    let mut through = 0;
    for sample in &running {
        let functions = seen.functions(&sample.stack);
        if functions.contains(&"in_the_handler".to_owned()) && sample.stack.ending == UnwindStatus::Complete {
            let place = |name: &str| functions.iter().position(|function| function == name);
            assert!(place("in_the_handler") < place("interrupted_work"), "{functions:?}");
            assert!(
                sample.stack.interrupted.len() > 1,
                "the interrupted frame is no return address"
            );
            through += 1;
        }
    }
    assert!(
        through > 10,
        "{through} of {} samples lie in the handler",
        running.len()
    );
}

/// A timer wakes in the name of whatever thread it finds on its CPU, and here that one is mostly in a system call.
#[test]
fn nobody_is_told_to_have_ended_a_nap_but_the_timer() {
    if !can_watch() {
        return;
    }
    let options = WatchOptions {
        most_cost: 1.0,
        ..WatchOptions::default()
    };
    let (mut seen, _) = watched("calls", 3, options);
    let woken: Vec<RawSample> = seen
        .samples
        .iter()
        .filter(|sample| sample.waker.is_some())
        .cloned()
        .collect();
    let mut naps = 0;
    for sample in woken {
        if seen.functions(&sample.stack).contains(&"brief_nap".to_owned()) {
            let waker = sample.waker.expect("filtered").kind;
            assert_eq!(waker, WakerKind::Kernel);
            naps += 1;
        }
    }
    assert!(naps > 50, "{naps} naps");
}

/// An update replaces a server's file while it runs. What it runs is in memory still, and so are its functions' bounds.
#[test]
fn a_program_that_was_replaced_while_it_runs_keeps_its_rules_and_its_name() {
    if !can_watch() {
        return;
    }
    let (mut seen, _) = watched_program(Program::start_and_replace("uneven"), 1, WatchOptions::default());
    assert_eq!(seen.last.counts.complete_share(), Some(1.0), "{:?}", seen.last.counts);
    let stacks: Vec<RawStack> = seen.samples.iter().map(|sample| sample.stack.clone()).collect();
    let mut functions = std::collections::BTreeSet::new();
    for address in stacks.iter().flat_map(|stack| &stack.user) {
        let frames = seen.names.frames(address - 1, false);
        let own = frames.into_iter().filter(|frame| &*frame.module == "waits");
        functions.extend(own.filter_map(|frame| frame.function));
    }
    assert!(functions.len() >= 3, "{functions:?}");
    assert!(
        functions.iter().all(|name| name.starts_with("waits!fun_")),
        "{functions:?}"
    );
}

#[test]
fn walks_go_by_the_frame_pointer_where_no_rule_is_and_say_so() {
    if !can_watch() {
        return;
    }
    let (mut seen, _) = watched("without_rows", 2, WatchOptions::default());
    let asleep: Vec<RawStack> = seen
        .samples
        .iter()
        .filter(|sample| sample.state == ThreadState::Sleep)
        .map(|sample| sample.stack.clone())
        .collect();
    assert!(asleep.len() > 100, "{} naps", asleep.len());
    for stack in asleep {
        let functions = seen.functions(&stack);
        let expected = ["brief_nap", "without_rows", "above_it", "rowless"].map(str::to_owned);
        assert!(
            functions.windows(expected.len()).any(|some| some == expected),
            "{functions:?}"
        );
        assert_eq!(stack.ending, UnwindStatus::FramePointer);
    }
}

/// What a program writes of code that it makes, until this is dropped.
struct PerfMapOf(u32);

impl Drop for PerfMapOf {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", self.0));
    }
}

#[test]
fn code_in_anonymous_memory_is_walked_through_and_called_as_its_program_says() {
    if !can_watch() {
        return;
    }
    for (mode, name, why) in [
        ("own_making", "made by hand", None),
        ("copied", "[code in anonymous memory]", Some("in anonymous memory")),
    ] {
        let program = Program::start(mode);
        let _map = PerfMapOf(program.pid());
        let (mut seen, _) = watched_program(program, 1, WatchOptions::default());
        let asleep = seen.samples.iter().filter(|sample| sample.state == ThreadState::Sleep);
        let asleep: Vec<RawStack> = asleep.map(|sample| sample.stack.clone()).collect();
        assert!(asleep.len() > 50, "{mode}: {} naps", asleep.len());
        for stack in asleep {
            let functions = seen.functions(&stack);
            let expected = ["brief_nap", name, "above_made", "maker"].map(str::to_owned);
            assert!(
                functions.windows(expected.len()).any(|some| some == expected),
                "{mode}: {functions:?}"
            );
            assert_eq!(stack.ending, UnwindStatus::FramePointer, "{mode}");
        }
        let problems: Vec<String> = seen.names.problems().map(|(_, why)| why.to_owned()).collect();
        assert_eq!(!problems.is_empty(), why.is_some(), "{problems:?}");
        assert!(
            problems.iter().all(|problem| problem.contains(why.unwrap_or_default())),
            "{problems:?}"
        );
    }
}
