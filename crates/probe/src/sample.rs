//! One reading of everything, and the figures between two of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::cpu_counters::CgroupCounts;
use crate::disks::DiskCounts;
use crate::figure::{Counter, Missing};
use crate::hardware::{HardwareCounts, hardware_figures};
use crate::machine_counters::{MachineTimes, NetworkBytes};
use crate::perf_event::Event;
use crate::process::{self, ProcessIo, ProcessStat};
use crate::taskstats::Switches;
use crate::thread_walk::{ThreadUses, thread_delta};

/// CPU times and memory of the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientUse {
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub resident_bytes: f64,
}

/// Context switches of the server, from the source that there was.
#[derive(Debug, Clone)]
pub(crate) enum SwitchCounts {
    /// Of all threads, ended ones included.
    Whole(Switches),
    /// Thread by thread.
    ByThread(ThreadUses),
}

/// Everything that was read at one moment, or why it could not be read.
#[derive(Debug, Clone)]
pub struct Sample {
    pub(crate) taken: Instant,
    pub(crate) cost: Duration,
    /// Counting through perf began anew when this changes.
    pub(crate) epoch: u64,
    pub(crate) server: Result<ProcessStat, String>,
    pub(crate) server_clock: Result<Duration, String>,
    pub(crate) server_io: Result<ProcessIo, String>,
    pub(crate) switches: Result<SwitchCounts, String>,
    pub(crate) client: Result<ClientUse, String>,
    pub(crate) machine: Result<MachineTimes, String>,
    pub(crate) network: Result<NetworkBytes, String>,
    pub(crate) disk: Result<DiskCounts, String>,
    pub(crate) cgroup: Result<CgroupCounts, String>,
    pub(crate) hardware: Result<HardwareCounts, String>,
    pub(crate) layout: Vec<Vec<Event>>,
    /// Events that this machine does not count.
    pub(crate) hardware_missing: Vec<Missing>,
    /// Hardware counters count the server's cgroup, not whole CPUs.
    pub(crate) hardware_is_filtered: bool,
}

impl Sample {
    /// When it was taken.
    pub fn taken(&self) -> Instant {
        self.taken
    }

    /// CPU time that taking it cost the calling thread.
    pub fn cost(&self) -> Duration {
        self.cost
    }

    /// Threads of the server at that moment.
    pub fn server_threads(&self) -> Option<u64> {
        self.server.as_ref().ok().map(|server| server.threads)
    }
}

/// The figures of the time between two samples; those that could not be measured are in [`missing`].
pub fn delta(before: &Sample, after: &Sample) -> Vec<Counter> {
    Comparison::of(before, after).counters
}

/// The figures that could not be measured between two samples, each with its reason.
pub fn missing(before: &Sample, after: &Sample) -> Vec<Missing> {
    Comparison::of(before, after).missing
}

const CYCLE_FIGURES: [&str; 2] = ["hw.instructions", "hw.cycles"];
const OTHER_HARDWARE: [&str; 3] = ["hw.cache_references", "hw.cache_misses", "hw.branch_misses"];
/// Counts of switches from two sources may differ by this much: they are not read at the same instant.
const SWITCHES_AGREE_WITHIN: f64 = 0.02;
/// Below this many switches the two sources are not compared.
const COMPARED_FROM_SWITCHES: f64 = 1000.0;

#[derive(Default)]
struct Comparison {
    counters: Vec<Counter>,
    missing: Vec<Missing>,
}

impl Comparison {
    fn of(before: &Sample, after: &Sample) -> Self {
        let mut this = Self::default();
        this.processes(before, after);
        this.machine(before, after);
        this.disk(before, after);
        let total = this.cgroup(before, after);
        this.switches(before, after, total);
        this.hardware(before, after);
        this
    }

    fn have(&mut self, name: &'static str, value: f64) {
        self.counters.push(Counter {
            name,
            value,
            running_share: None,
        });
    }

    fn lack(&mut self, figure: &'static str, reason: impl Into<String>) {
        self.missing.push(Missing {
            figure,
            reason: reason.into(),
        });
    }

    fn lack_all(&mut self, figures: &[&'static str], reason: &str) {
        figures.iter().for_each(|figure| self.lack(figure, reason));
    }

    /// A count that only grows, in units of `unit`.
    fn grown(&mut self, name: &'static str, before: u64, after: u64, unit: f64) {
        match after.checked_sub(before) {
            Some(grown) => self.have(name, grown as f64 * unit),
            None => self.lack(
                name,
                "the kernel's count went backwards: a device or process was replaced",
            ),
        }
    }

    fn processes(&mut self, before: &Sample, after: &Sample) {
        let tick = 1.0 / process::ticks_per_second();
        match (&before.server, &after.server) {
            (Ok(then), Ok(now)) => {
                self.grown("server.cpu_user_seconds", then.user_ticks, now.user_ticks, tick);
                self.grown("server.cpu_system_seconds", then.system_ticks, now.system_ticks, tick);
                self.grown("server.minor_faults", then.minor_faults, now.minor_faults, 1.0);
                self.grown("server.major_faults", then.major_faults, now.major_faults, 1.0);
                self.have("server.resident_bytes_level", now.resident_pages as f64 * page_bytes());
            }
            (Err(reason), _) | (_, Err(reason)) => self.lack_all(
                &[
                    "server.cpu_user_seconds",
                    "server.cpu_system_seconds",
                    "server.minor_faults",
                    "server.major_faults",
                    "server.resident_bytes_level",
                ],
                reason,
            ),
        }
        match (&before.server_clock, &after.server_clock) {
            (Ok(then), Ok(now)) => {
                self.have(
                    "server.cpu_seconds_by_scheduler",
                    now.saturating_sub(*then).as_secs_f64(),
                );
            }
            (Err(reason), _) | (_, Err(reason)) => self.lack("server.cpu_seconds_by_scheduler", reason),
        }
        match (&before.server_io, &after.server_io) {
            (Ok(then), Ok(now)) => {
                self.grown("server.read_bytes", then.read_bytes, now.read_bytes, 1.0);
                self.grown("server.write_bytes", then.write_bytes, now.write_bytes, 1.0);
            }
            (Err(reason), _) | (_, Err(reason)) => {
                self.lack_all(&["server.read_bytes", "server.write_bytes"], reason);
            }
        }
        match (&before.client, &after.client) {
            (Ok(then), Ok(now)) => {
                self.have(
                    "client.cpu_user_seconds",
                    (now.user_seconds - then.user_seconds).max(0.0),
                );
                self.have(
                    "client.cpu_system_seconds",
                    (now.system_seconds - then.system_seconds).max(0.0),
                );
                self.have("client.resident_bytes_level", now.resident_bytes);
            }
            (Err(reason), _) | (_, Err(reason)) => self.lack_all(
                &[
                    "client.cpu_user_seconds",
                    "client.cpu_system_seconds",
                    "client.resident_bytes_level",
                ],
                reason,
            ),
        }
    }

    fn machine(&mut self, before: &Sample, after: &Sample) {
        let tick = 1.0 / process::ticks_per_second();
        match (&before.machine, &after.machine) {
            (Ok(then), Ok(now)) => {
                self.grown("machine.cpu_user_seconds", then.user, now.user, tick);
                self.grown("machine.cpu_system_seconds", then.system, now.system, tick);
                self.grown("machine.cpu_steal_seconds", then.steal, now.steal, tick);
                self.grown("machine.cpu_irq_seconds", then.irq, now.irq, tick);
                // These two the kernel itself lets fall now and then.
                self.have(
                    "machine.cpu_iowait_seconds",
                    now.iowait.saturating_sub(then.iowait) as f64 * tick,
                );
                self.have(
                    "machine.cpu_idle_seconds",
                    now.idle.saturating_sub(then.idle) as f64 * tick,
                );
            }
            (Err(reason), _) | (_, Err(reason)) => self.lack_all(
                &[
                    "machine.cpu_user_seconds",
                    "machine.cpu_system_seconds",
                    "machine.cpu_steal_seconds",
                    "machine.cpu_irq_seconds",
                    "machine.cpu_iowait_seconds",
                    "machine.cpu_idle_seconds",
                ],
                reason,
            ),
        }
        match (&before.network, &after.network) {
            (Ok(then), Ok(now)) => {
                self.grown("machine.network_receive_bytes", then.received, now.received, 1.0);
                self.grown("machine.network_transmit_bytes", then.transmitted, now.transmitted, 1.0);
            }
            (Err(reason), _) | (_, Err(reason)) => {
                self.lack_all(
                    &["machine.network_receive_bytes", "machine.network_transmit_bytes"],
                    reason,
                );
            }
        }
    }

    fn disk(&mut self, before: &Sample, after: &Sample) {
        match (&before.disk, &after.disk) {
            (Ok(then), Ok(now)) => {
                self.grown("disk.reads", then.reads, now.reads, 1.0);
                self.grown("disk.writes", then.writes, now.writes, 1.0);
                self.grown("disk.read_bytes", then.read_bytes, now.read_bytes, 1.0);
                self.grown("disk.write_bytes", then.write_bytes, now.write_bytes, 1.0);
                match then.flushes.zip(now.flushes) {
                    Some((then, now)) => self.grown("disk.flushes", then, now, 1.0),
                    None => self.lack(
                        "disk.flushes",
                        "this kernel counts no flushes; it needs Linux 5.5: uname -r",
                    ),
                }
            }
            (Err(reason), _) | (_, Err(reason)) => self.lack_all(
                &[
                    "disk.reads",
                    "disk.writes",
                    "disk.read_bytes",
                    "disk.write_bytes",
                    "disk.flushes",
                ],
                reason,
            ),
        }
    }

    /// Figures of the cgroup; gives the number of all context switches.
    fn cgroup(&mut self, before: &Sample, after: &Sample) -> Option<f64> {
        let figures = ["server.context_switches", "server.migrations", "hw.task_clock_seconds"];
        match (&before.cgroup, &after.cgroup) {
            _ if before.epoch != after.epoch => self.lack_all(&figures, COUNTING_WAS_OFF),
            (Ok(then), Ok(now)) => {
                self.grown("server.context_switches", then.switches, now.switches, 1.0);
                self.grown("server.migrations", then.migrations, now.migrations, 1.0);
                self.grown("hw.task_clock_seconds", then.cpu_nanoseconds, now.cpu_nanoseconds, 1e-9);
                return Some(now.switches.saturating_sub(then.switches) as f64);
            }
            (Err(reason), _) | (_, Err(reason)) => self.lack_all(&figures, reason),
        }
        None
    }

    fn switches(&mut self, before: &Sample, after: &Sample, total: Option<f64>) {
        const FIGURES: [&str; 2] = ["server.voluntary_switches", "server.involuntary_switches"];
        let (counted, share_of_cpu) = match (&before.switches, &after.switches) {
            (Ok(SwitchCounts::Whole(then)), Ok(SwitchCounts::Whole(now))) => {
                let grown = now
                    .voluntary
                    .checked_sub(then.voluntary)
                    .zip(now.involuntary.checked_sub(then.involuntary));
                let Some((voluntary, involuntary)) = grown else {
                    return self.lack_all(&FIGURES, "threads ended and the kernel sent no message about them");
                };
                (Switches { voluntary, involuntary }, None)
            }
            (Ok(SwitchCounts::ByThread(then)), Ok(SwitchCounts::ByThread(now))) => {
                let walked = thread_delta(then, now);
                (walked.switches, share_of_cpu(walked.cpu_nanoseconds, before, after))
            }
            (Err(reason), _) | (_, Err(reason)) => return self.lack_all(&FIGURES, reason),
            _ => return self.lack_all(&FIGURES, "the two samples come from different samplers"),
        };
        // With the exact total of the cgroup the share that was seen is known, and what ended threads took with them is
        // shared out in the same proportion. Without it, the CPU time that the threads cannot explain tells how much is
        // lacking, which is good enough to confess and not to scale by.
        let exact = total
            .filter(|total| *total >= COMPARED_FROM_SWITCHES)
            .map(|total| counted.total() as f64 / total);
        let share = exact.or(share_of_cpu).unwrap_or(1.0);
        if !(0.5..=1.0 + 2.0 * SWITCHES_AGREE_WITHIN).contains(&share) {
            let reason = format!(
                "threads that began or ended meanwhile took their counts away: the others tell of {:.0} % of what was done; \
                 sample before connections are closed",
                share * 100.0
            );
            return self.lack_all(&FIGURES, &reason);
        }
        let scale = exact
            .filter(|share| *share < 1.0 - SWITCHES_AGREE_WITHIN)
            .map_or(1.0, |share| 1.0 / share);
        let running_share = (total.is_some() || share_of_cpu.is_some()).then_some(share.min(1.0));
        for (name, value) in FIGURES.into_iter().zip([counted.voluntary, counted.involuntary]) {
            self.counters.push(Counter {
                name,
                value: value as f64 * scale,
                running_share,
            });
        }
    }

    fn hardware(&mut self, before: &Sample, after: &Sample) {
        let (then, now) = match (&before.hardware, &after.hardware) {
            _ if before.epoch != after.epoch => {
                self.lack_all(&CYCLE_FIGURES, COUNTING_WAS_OFF);
                return self.lack_all(&OTHER_HARDWARE, COUNTING_WAS_OFF);
            }
            (Ok(then), Ok(now)) => (then, now),
            (Err(reason), _) | (_, Err(reason)) => {
                self.lack_all(&CYCLE_FIGURES, reason);
                return self.lack_all(&OTHER_HARDWARE, reason);
            }
        };
        // The clock is that of the server's cgroup: it checks counters of that cgroup only, not those of whole CPUs.
        let clock = self
            .counters
            .iter()
            .find(|c| c.name == "hw.task_clock_seconds")
            .map(|c| c.value);
        let clock = clock.filter(|_| after.hardware_is_filtered);
        let (counters, missing) = hardware_figures(&after.layout, then, now, clock);
        self.counters.extend(counters);
        self.missing.extend(missing);
        let known: BTreeSet<&str> = self.missing.iter().map(|m| m.figure).collect();
        let more: Vec<Missing> = after
            .hardware_missing
            .iter()
            .filter(|m| !known.contains(m.figure))
            .cloned()
            .collect();
        self.missing.extend(more);
    }
}

/// Which share of the server's CPU time the threads that were seen explain; `None` where there is too little to tell.
fn share_of_cpu(seen_nanoseconds: u64, before: &Sample, after: &Sample) -> Option<f64> {
    const LEAST: Duration = Duration::from_millis(1);
    let (Ok(then), Ok(now)) = (&before.server_clock, &after.server_clock) else {
        return None;
    };
    let all = now.saturating_sub(*then);
    // The walk comes a little after the clock, so it may see more.
    (all >= LEAST).then(|| (seen_nanoseconds as f64 / all.as_nanos() as f64).min(1.0))
}

const COUNTING_WAS_OFF: &str = "counting was switched off between the two samples";

fn page_bytes() -> f64 {
    rustix::param::page_size() as f64
}

#[cfg(test)]
mod tests;
