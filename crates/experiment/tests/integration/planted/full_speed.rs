//! Whether all CPUs are as fast together as one is alone. The host of a virtual machine may put two of its CPUs on one core, or take
//! turns with them, without saying so as steal: then whatever threads do takes longer, whether they share anything or not.

use std::sync::Barrier;
use std::time::{Duration, Instant};

const ALONE: Duration = Duration::from_millis(100);

/// The speed of a thread with all CPUs busy as a part of its speed alone.
pub fn of_all_cpus() -> f64 {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    let alone = turns(&Barrier::new(1));
    let begin = Barrier::new(cpus);
    let together: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(|| turns(&begin))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it counts"))
            .sum()
    });
    together as f64 / (alone as f64 * cpus as f64)
}

/// The least that counts as full speed. Hyperthreads of one core are slower together, and say so.
pub fn least() -> f64 {
    let siblings = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list");
    match siblings.is_ok_and(|list| list.trim().contains([',', '-'])) {
        true => 0.5,
        false => 0.85,
    }
}

/// How often it has calculated after a while, with nothing in memory that others could want.
fn turns(begin: &Barrier) -> u64 {
    begin.wait();
    let end = Instant::now() + ALONE;
    let (mut count, mut value) = (0_u64, 1_u32);
    while Instant::now() < end {
        for _ in 0..1000 {
            value = std::hint::black_box(value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        }
        count += 1;
    }
    count
}
