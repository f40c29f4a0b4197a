//! Watches a process for some seconds and prints where its threads' time went: `threads PID [SECONDS]`.

use scaleprof_vocabulary::ThreadState;
use std::time::Duration;

use scaleprof_probe::{Watch, WatchOptions, process_cpu_clock};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("threads PID [SECONDS]")?.parse()?;
    let seconds = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let began = std::time::Instant::now();
    let mut watch = Watch::start(pid, WatchOptions::default())?;
    println!("started in {:?}, timer {:?}", began.elapsed(), watch.timer());
    let mut clock = process_cpu_clock(pid)?;
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        let reading = watch.read()?;
        let mut exact = [0.0; 8];
        let now = process_cpu_clock(pid)?;
        let by_scheduler = (now - clock).as_secs_f64();
        clock = now;
        let (mut lifetime, mut sampled) = (0.0, [0.0; 8]);
        for thread in &reading.threads {
            lifetime += thread.lifetime_ns as f64 / 1e9;
            for (sum, ns) in exact.iter_mut().zip(thread.nanoseconds) {
                *sum += ns as f64 / 1e9;
            }
        }
        for sample in &reading.samples {
            sampled[sample.state as usize] += sample.weight_ns / 1e9;
        }
        println!(
            "{} threads, {lifetime:.3} thread-seconds, states {:.3}, {} samples",
            reading.threads.len(),
            exact.iter().sum::<f64>(),
            reading.samples.len()
        );
        for state in ThreadState::in_kernel() {
            println!(
                "  {:6} exact {:8.3} sampled {:8.3}",
                state.name(),
                exact[state as usize],
                sampled[state as usize]
            );
        }
        let not_own: u64 = reading.threads.iter().map(|thread| thread.not_its_own_ns).sum();
        let not_own = not_own as f64 / 1e9;
        println!(
            "  cpu over the scheduler's account: {:+.2} %, and {not_own:.4} s of interrupts and stolen time",
            ((exact[0] - not_own) / by_scheduler - 1.0) * 100.0
        );
        println!("  {:?} complete {:?}", reading.counts, reading.counts.complete_share());
    }
    Ok(())
}
