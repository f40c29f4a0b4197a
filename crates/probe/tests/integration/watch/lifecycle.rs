//! Beginning, ending, and what is left behind.

use scaleprof_vocabulary::{ThreadState, UnwindStatus};
use std::time::Duration;

use scaleprof_probe::{Watch, WatchOptions};

use crate::own_cgroup::OwnCgroup;

use super::program::{Program, can_watch};

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
            assert!(off < 0.001, "{thread:?}");
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
    let clock = || {
        scaleprof_probe::process_cpu_clock(program.pid())
            .expect("readable")
            .as_nanos() as f64
    };
    time_on_the_cpu_is_as_counted(&program, WatchOptions::default(), clock);
}

/// Thousands that live for some microseconds each, a good part of them after they have told their end.
#[test]
fn time_on_the_cpu_of_threads_that_live_for_a_moment_is_what_their_cgroup_says() {
    if !can_watch() {
        return;
    }
    let program = Program::start("short_lived");
    let Some(cgroup) = OwnCgroup::of(program.pid()) else {
        return;
    };
    for most_cost in [1.0, WatchOptions::default().most_cost] {
        let options = WatchOptions {
            most_cost,
            ..WatchOptions::default()
        };
        time_on_the_cpu_is_as_counted(&program, options, || cgroup.cpu_ns());
    }
}

fn time_on_the_cpu_is_as_counted(program: &Program, options: WatchOptions, counted: impl Fn() -> f64) {
    let mut watch = Watch::start(program.pid(), options).expect("it can be watched");
    // This thread may have to wait for a CPU between any two of these.
    let before = counted();
    let lost = watch.read().expect("readable").counts.lost_without_slot;
    let begin = counted();
    std::thread::sleep(Duration::from_secs(3));
    let end = counted();
    let reading = watch.read().expect("readable");
    let after = counted();
    assert_eq!(
        reading.counts.lost_without_slot,
        lost,
        "{} threads",
        reading.threads.len()
    );
    let by_watch: u64 = reading.threads.iter().map(charged).sum();
    let (least, most) = (end - begin, after - before);
    assert!(
        (least * 0.99..most * 1.01).contains(&(by_watch as f64)),
        "{options:?}: watch {by_watch}, counted {least:.0} to {most:.0}"
    );
}

/// What the scheduler charges a thread with: time that the host of a virtual machine took is not in it.
fn charged(thread: &scaleprof_probe::ThreadTimes) -> u64 {
    thread.nanoseconds[ThreadState::Cpu as usize] - thread.not_its_own_ns
}

/// CPU time and time in run queues of a thread of this process, nanoseconds, and how often it got a CPU
/// (Documentation/scheduler/sched-stats.rst).
fn schedstat(thread: u32) -> (u64, u64, u64) {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).expect("readable");
    let mut words = text.split_whitespace().map(|word| word.parse().expect("a number"));
    let mut next = || words.next().expect("three numbers");
    (next(), next(), next())
}

/// Keeps the calling thread to two of the CPUs that it may use, so that threads queue however many there are.
fn on_two_cpus() {
    let mine = rustix::thread::sched_getaffinity(None).expect("readable");
    let mut two = rustix::thread::CpuSet::new();
    let usable = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| mine.is_set(*cpu));
    for cpu in usable.take(2) {
        two.set(cpu);
    }
    rustix::thread::sched_setaffinity(None, &two).expect("they are mine");
}

/// Six threads want two CPUs' worth and more: they queue, run, and sleep between.
#[test]
fn time_in_run_queues_is_what_proc_says_whoever_keeps_it() {
    if !can_watch() {
        return;
    }
    // Marked by ourselves a wait in the queue begins with the call that wakes, before the scheduler has queued the thread: 4 us
    // a wake-up on one virtual machine, which is a sixth of so short waits. So those threads are to queue longer and wake less often.
    // Where the programs rest most of the time the scheduler's sums are all that there is of it, and they are exact.
    let always = WatchOptions::default().most_cost;
    for (without_run_delay, most_cost, tolerance, turns) in [
        (false, always, 0.01, 200_000u64),
        (false, 0.0, 0.01, 200_000),
        (true, always, 0.1, 2_000_000),
    ] {
        let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let mut workers = Vec::new();
        for _ in 0..6 {
            let (over, tell) = (over.clone(), tell.clone());
            workers.push(std::thread::spawn(move || {
                on_two_cpus();
                tell.send(rustix::thread::gettid().as_raw_nonzero().get() as u32)
                    .expect("sent");
                let mut sum = 0u64;
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    for turn in 0..turns {
                        sum = std::hint::black_box(sum.wrapping_add(turn));
                    }
                    std::thread::sleep(Duration::from_micros(100));
                }
            }));
        }
        let numbers: Vec<u32> = (0..6).map(|_| told.recv().expect("its number")).collect();
        let options = WatchOptions {
            without_run_delay,
            most_cost,
            ..WatchOptions::default()
        };
        let mut watch = Watch::start(std::process::id(), options).expect("it can be watched");
        let sums = || {
            numbers
                .iter()
                .map(|thread| schedstat(*thread))
                .fold((0, 0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2))
        };
        let before = sums();
        watch.read().expect("readable");
        let begin = sums();
        std::thread::sleep(Duration::from_secs(4));
        let end = sums();
        let reading = watch.read().expect("readable");
        let after = sums();
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        for worker in workers {
            worker.join().expect("ends");
        }
        let ours: Vec<_> = reading
            .threads
            .iter()
            .filter(|thread| numbers.contains(&thread.thread))
            .collect();
        assert_eq!(ours.len(), 6);
        let queued: u64 = ours
            .iter()
            .map(|thread| thread.nanoseconds[ThreadState::RunQueue as usize])
            .sum();
        let cpu: u64 = ours.iter().map(|thread| charged(thread)).sum();
        let least = (end.0 - begin.0, end.1 - begin.1);
        let most = (after.0 - before.0, after.1 - before.1);
        // /proc adds a wait in the queue when it is over, and time on the CPU at each tick; beside other tests these are long. What each thread
        // has not been charged with yet is no more than a few usual waits.
        let usual_wait = most.1 as f64 / (after.2 - before.2) as f64;
        let edge = 6.0 * f64::max(15e6, 4.0 * usual_wait);
        for (what, ours, least, most) in [("CPU", cpu, least.0, most.0), ("queued", queued, least.1, most.1)] {
            let range = least as f64 * (1.0 - tolerance) - edge..most as f64 * (1.0 + tolerance) + edge;
            assert!(
                range.contains(&(ours as f64)),
                "{what}: watch {ours}, /proc {least} to {most}, without run delay {without_run_delay}, at most {most_cost}"
            );
        }
        assert!(queued > 1_000_000_000, "they hardly queued: {queued}");
    }
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
    // The kernel may tell of its end after it told whoever joined it.
    let (mut asleep, mut lived) = (0, 0);
    let last = (0..100).find_map(|_| {
        std::thread::sleep(Duration::from_millis(50));
        let reading = watch.read().expect("readable");
        let thread = reading.threads.into_iter().find(|thread| thread.thread == number)?;
        asleep += thread.nanoseconds[ThreadState::Sleep as usize];
        lived += thread.lifetime_ns;
        thread.ended.then_some(thread)
    });
    let thread = last.expect("seen to end");
    assert_eq!(thread.name, "short-lived");
    assert!(
        (200_000_000..lived).contains(&asleep),
        "{asleep} of {lived}: {thread:?}"
    );
    let again = watch.read().expect("readable");
    assert!(again.threads.iter().all(|thread| thread.thread != number), "it is gone");
}

/// A thread that ends gives its memory back before the kernel says that it ends, and may be met in between.
#[test]
fn threads_that_gave_their_memory_back_to_end_are_not_walked() {
    if !can_watch() {
        return;
    }
    let program = Program::start("short_lived");
    let options = WatchOptions {
        frequency_hz: 999,
        most_cost: 1.0,
        ..WatchOptions::default()
    };
    let mut watch = Watch::start(program.pid(), options).expect("it can be watched");
    std::thread::sleep(Duration::from_secs(3));
    let reading = watch.read().expect("readable");
    assert!(reading.threads.len() > 100, "{} threads", reading.threads.len());
    let ended = |ending: UnwindStatus| reading.counts.endings[ending as usize];
    assert_eq!(ended(UnwindStatus::UnreadableMemory), 0, "{:?}", reading.counts);
    let all: u64 = reading.counts.endings.iter().sum();
    assert_eq!(reading.counts.walks(), all - ended(UnwindStatus::NoUserStack));
}

/// Each of them is another program to the verifier: it follows only the branches that the settings leave.
#[test]
fn the_programs_load_and_walk_with_whatever_a_kernel_offers() {
    if !can_watch() {
        return;
    }
    let program = Program::start("uneven");
    for lacks in 0..8 {
        let options = WatchOptions {
            without_previous_state: lacks & 1 != 0,
            without_run_delay: lacks & 2 != 0,
            without_contention: lacks & 4 != 0,
            ..WatchOptions::default()
        };
        let mut watch = Watch::start(program.pid(), options).expect("the verifier takes them");
        std::thread::sleep(Duration::from_millis(600));
        let reading = watch.read().expect("readable");
        assert_eq!(
            reading.counts.complete_share(),
            Some(1.0),
            "{options:?}: {:?}",
            reading.counts
        );
        // Five of its threads sleep whenever they are blocked; how long they wait for a CPU is the machine's affair.
        let asleep = reading.threads.iter().filter(|thread| {
            let of = |state: ThreadState| thread.nanoseconds[state as usize];
            let ready = of(ThreadState::Cpu) + of(ThreadState::RunQueue);
            of(ThreadState::Sleep) as f64 > 0.9 * thread.lifetime_ns.saturating_sub(ready) as f64
        });
        assert_eq!(asleep.count(), 5, "{options:?}: {:?}", reading.threads);
    }
}

#[test]
fn what_nobody_reads_takes_no_more_than_its_room_and_is_counted() {
    if !can_watch() {
        return;
    }
    let program = Program::start("uneven");
    let options = WatchOptions {
        most_unread_samples: 50,
        ..WatchOptions::default()
    };
    let mut watch = Watch::start(program.pid(), options).expect("it can be watched");
    std::thread::sleep(Duration::from_millis(1500));
    let reading = watch.read().expect("readable");
    assert_eq!(reading.samples.len(), 50);
    assert!(reading.counts.lost_unread > 0, "{:?}", reading.counts);
}

#[test]
fn a_process_that_does_not_exist_is_named() {
    if !can_watch() {
        return;
    }
    let error = Watch::start(u32::MAX / 2, WatchOptions::default()).expect_err("there is none");
    assert!(error.to_string().contains("2147483647"), "{error}");
}
