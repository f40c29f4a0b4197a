//! Everything that watches the server from outside: the counters and its threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use scaleprof_probe::{CounterCost, MachineRests, Sampler, SamplerOptions, WatchOptions};

use crate::target::Target;
use crate::threads::ThreadWatch;

/// Samples from which the cost of one is taken, and the share of a CPU from which it is worth a word.
const COST_SAMPLES: u32 = 5;
const DEAR: f64 = 0.01;

/// What watches one server.
#[derive(Default)]
pub(crate) struct Probes {
    sampler: Option<Sampler>,
    threads: Option<ThreadWatch>,
}

/// What there is to say when the probes were started.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) warnings: Vec<String>,
    /// Figures that cannot be had, with the reasons.
    pub(crate) missing: BTreeMap<String, String>,
}

impl Probes {
    /// Starts what can be had for this server. Gives the CPU time of one sample of the counters too where it is asked for,
    /// nanoseconds. A server that `rests` is stopped at times.
    pub(crate) fn start(
        target: &Target,
        watch: Option<WatchOptions>,
        (measure_cost, rests): (bool, bool),
        said: &mut Said,
    ) -> (Self, Option<f64>) {
        let Some(pid) = target.pid() else {
            for figure in [
                "server.*",
                "server.cpu_count",
                "server.shares_cpus_with_client",
                "ledger",
            ] {
                said.missing.insert(figure.to_owned(), target.why_no_pid().to_owned());
            }
            return (Self::default(), None);
        };
        let mut probes = Self {
            sampler: sampler(target, pid, rests, said),
            threads: threads(pid, watch, said),
        };
        let cost = match &mut probes.sampler {
            Some(sampler) if measure_cost => Some(cost(sampler, said)),
            _ => None,
        };
        (probes, cost)
    }

    /// Both, for a measurement.
    pub(crate) fn both(&mut self) -> (Option<&mut Sampler>, Option<&mut ThreadWatch>) {
        (self.sampler.as_mut(), self.threads.as_mut())
    }

    /// What watches the threads, where they are watched.
    pub(crate) fn threads(&mut self) -> Option<&mut ThreadWatch> {
        self.threads.as_mut()
    }
}

fn sampler(target: &Target, pid: u32, rests: bool, said: &mut Said) -> Option<Sampler> {
    let data_directory = match target {
        Target::Private(sandbox) => Some(sandbox.data()),
        Target::Attached(_) => None,
    };
    let options = SamplerOptions {
        rests: rests.then(|| Arc::new(MachineRests::new(data_directory.as_deref()))),
        data_directory,
        // A server that is not ours stays in the cgroup that its owner put it into.
        leave_cgroup: matches!(target, Target::Attached(_)),
        ..SamplerOptions::default()
    };
    match Sampler::start(pid, options) {
        Ok(sampler) => {
            if let (Target::Private(sandbox), Some(folder)) = (target, sampler.cgroup_folder()) {
                // Without a janitor the next run removes what a killed one leaves.
                let _ = sandbox.janitor().remove_empty_at_end(folder);
            }
            said.warnings.extend(sampler.notes().iter().cloned());
            Some(sampler)
        }
        Err(error) => {
            said.warnings
                .push(format!("nothing of the server's CPU time can be measured: {error}"));
            said.missing.insert("server.*".to_owned(), error.to_string());
            None
        }
    }
}

fn threads(pid: u32, watch: Option<WatchOptions>, said: &mut Said) -> Option<ThreadWatch> {
    let Some(options) = watch else {
        let reason = "the server's threads were not watched, as asked (--no-probe)";
        said.missing.insert("ledger".to_owned(), reason.to_owned());
        return None;
    };
    match ThreadWatch::start(pid, options) {
        Ok((watch, lacks)) => {
            said.missing.extend(lacks);
            Some(watch)
        }
        Err(error) => {
            said.warnings
                .push(format!("the server's threads cannot be watched: {error}"));
            said.missing.insert("ledger".to_owned(), error.to_string());
            None
        }
    }
}

fn cost(sampler: &mut Sampler, said: &mut Said) -> f64 {
    let cost = CounterCost::measure(sampler, COST_SAMPLES);
    if cost.share_of_one_cpu > DEAR {
        said.warnings.push(format!(
            "reading the counters once a second takes {:.1} % of a CPU",
            cost.share_of_one_cpu * 100.0
        ));
    }
    cost.nanoseconds_per_sample
}
