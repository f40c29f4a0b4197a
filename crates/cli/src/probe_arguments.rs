//! How the server's threads are watched.

use clap::Args;
use scaleprof_experiment::{WatchOptions, debuginfod_can_be_asked};

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Probe")]
pub(crate) struct ProbeArguments {
    /// Stack samples of running threads, per second and CPU
    #[arg(long, short = 'F', value_name = "HZ", default_value_t = 99, value_parser = clap::value_parser!(u32).range(1..=2000))]
    pub(crate) frequency: u32,
    /// Stack samples of threads that start to wait, per second, about
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(10..=20_000))]
    pub(crate) wait_stacks: u32,
    /// CPU budget of wait tracing, percent of the server's CPUs. Above it, tracing runs at a duty
    /// cycle; CPU and run-queue times stay exact. 100: no limit
    #[arg(long, value_name = "PERCENT", default_value_t = 0.4, value_parser = percent)]
    pub(crate) wait_budget: f64,
    /// Fetch debug files from the servers in DEBUGINFOD_URLS if the server's functions have no symbols here
    #[arg(long)]
    pub(crate) debuginfod: bool,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(format!("{text:?} is not a percentage; use a number from 0 to 100")),
    }
}

impl ProbeArguments {
    pub(crate) fn options(&self) -> anyhow::Result<WatchOptions> {
        if self.debuginfod {
            debuginfod_can_be_asked().map_err(|lack| anyhow::anyhow!("--debuginfod: {lack}"))?;
        }
        Ok(WatchOptions {
            frequency_hz: self.frequency,
            sleep_stacks_per_second: self.wait_stacks,
            ask_debuginfod: self.debuginfod,
            most_cost: self.wait_budget / 100.0,
            ..WatchOptions::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        probe: ProbeArguments,
    }

    /// Experiments, `check` and the benchmarks of the cost watch with the library's own.
    #[test]
    fn a_run_watches_as_everything_else_does() {
        let Alone { probe } = Alone::parse_from(["alone"]);
        let options = probe.options().expect("options");
        let usual = WatchOptions::default();
        assert_eq!(options.frequency_hz, usual.frequency_hz);
        assert_eq!(options.sleep_stacks_per_second, usual.sleep_stacks_per_second);
        assert!((options.most_cost - usual.most_cost).abs() < 1e-12);
    }
}
