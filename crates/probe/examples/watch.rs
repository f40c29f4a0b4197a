//! Samples a process once a second and prints the figures: `cargo run -p scaleprof-probe --example watch -- PID SECONDS
//! [leave-cgroup|count-cgroup]`.

use std::error::Error;
use std::time::Duration;

use scaleprof_probe::{Sampler, SamplerOptions, delta, missing};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments.next().ok_or("which process?")?.parse()?;
    let seconds: u32 = arguments.next().ok_or("how many seconds?")?.parse()?;
    let mode = arguments.next();
    let mut sampler = Sampler::start(
        pid,
        SamplerOptions {
            leave_cgroup: mode.as_deref() == Some("leave-cgroup"),
            always_count_cgroup: mode.as_deref() == Some("count-cgroup"),
            ..SamplerOptions::default()
        },
    )?;
    let first = sampler.sample_at_end_of_measurement();
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        sampler.sample();
    }
    let last = sampler.sample_at_end_of_measurement();
    for counter in delta(&first, &last) {
        println!("{:34} {:18.3} {:?}", counter.name, counter.value, counter.running_share);
    }
    for missing in missing(&first, &last) {
        println!("{:34} missing: {}", missing.figure, missing.reason);
    }
    println!("{:?} threads {:?}", sampler.cost(), last.server_threads());
    Ok(())
}
