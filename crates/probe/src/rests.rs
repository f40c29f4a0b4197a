//! What the machine did while a server rested.

use crate::disks::{self, DiskCounts};
use crate::kernel_file::KernelFile;
use crate::machine_counters::{self, MachineTimes, NetworkBytes};
use crate::process;
use crate::sample::Sample;
use crate::sampler::network_bytes;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a server shares with all else on the machine, without what happened while it rested.
///
/// Servers that take turns are stopped while it is another's turn. Their own counts (CPU time, faults, switches) stand still then, but those of
/// the machine, its disks and its network go on, and so does the CPU time of a client that drives them all. What these counted in rests is
/// taken off every [`Sample`]. CPU time of the machine comes in ticks of 10 ms; that the kernel gives a tick to whom it finds running
/// at its end makes a single turn inexact and not the sum of many.
#[derive(Debug)]
pub struct MachineRests(Mutex<Account>);

#[derive(Debug)]
struct Account {
    sources: Sources,
    /// In all rests that are over.
    rested: Reading,
    /// At the start of the rest that is not over.
    since: Option<Reading>,
}

#[derive(Debug)]
struct Sources {
    stat: Option<KernelFile>,
    network: Option<KernelFile>,
    diskstats: Option<KernelFile>,
    disks: Vec<String>,
}

/// What is counted on without regard for turns, as counts that only grow; none where it cannot be read.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    /// User and system time of the client, microseconds.
    client: Option<[i64; 2]>,
    /// The fields of [`MachineTimes`].
    machine: Option<[i64; 6]>,
    /// Those of [`NetworkBytes`].
    network: Option<[i64; 2]>,
    /// Those of [`DiskCounts`] but for the last.
    disk: Option<[i64; 4]>,
    flushes: Option<[i64; 1]>,
}

impl MachineRests {
    /// For a server whose data lie there. It does not rest.
    pub fn new(data_directory: Option<&Path>) -> MachineRests {
        MachineRests(Mutex::new(Account {
            sources: Sources {
                stat: KernelFile::open("/proc/stat").ok(),
                network: KernelFile::open("/proc/net/dev").ok(),
                diskstats: KernelFile::open("/proc/diskstats").ok(),
                disks: disks::choose_disks(data_directory),
            },
            rested: Reading::ZERO,
            since: None,
        }))
    }

    /// The server was stopped.
    pub fn begin(&self) {
        let mut account = self.account();
        if account.since.is_none() {
            account.since = Some(account.sources.read());
        }
    }

    /// The server goes on now.
    pub fn end(&self) {
        let mut account = self.account();
        if let Some(since) = account.since.take() {
            let now = account.sources.read();
            account.rested = account.rested.with(&now, 1).with(&since, -1);
        }
    }

    /// Takes what rests held off what was just read.
    pub(crate) fn take_off(&self, sample: &mut Sample) {
        let account = self.account();
        let own = Reading::of(sample).with(&account.rested, -1);
        // What is read in a rest stands for its start.
        let own = account.since.map_or(own, |since| since.with(&account.rested, -1));
        own.put_into(sample);
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sources {
    fn read(&mut self) -> Reading {
        let (user, system) = process::own_cpu_times();
        let microseconds = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        let whole = |file: &mut Option<KernelFile>| file.as_mut()?.whole().ok().map(str::to_owned);
        let stat = self.stat.as_mut().and_then(|file| file.head().ok());
        let disks = whole(&mut self.diskstats).and_then(|text| {
            disks::disk_counts(&disks::parse_diskstats(&text), |name| {
                self.disks.iter().any(|disk| disk == name)
            })
        });
        Reading {
            client: Some([microseconds(user), microseconds(system)]),
            machine: stat.and_then(machine_counters::parse_proc_stat).map(of_machine),
            network: whole(&mut self.network)
                .and_then(|text| network_bytes(&text))
                .map(of_network),
            disk: disks.map(of_disk),
            flushes: disks.and_then(|counts| counts.flushes).map(|flushes| [flushes as i64]),
        }
    }
}

impl Reading {
    const ZERO: Reading = Reading {
        client: Some([0; 2]),
        machine: Some([0; 6]),
        network: Some([0; 2]),
        disk: Some([0; 4]),
        flushes: Some([0; 1]),
    };

    fn of(sample: &Sample) -> Reading {
        let disk = sample.disk.as_ref().ok();
        let microseconds = |seconds: f64| (seconds * 1e6).round() as i64;
        Reading {
            client: sample
                .client
                .as_ref()
                .ok()
                .map(|client| [client.user_seconds, client.system_seconds].map(microseconds)),
            machine: sample.machine.as_ref().ok().copied().map(of_machine),
            network: sample.network.as_ref().ok().copied().map(of_network),
            disk: disk.copied().map(of_disk),
            flushes: disk.and_then(|counts| counts.flushes).map(|flushes| [flushes as i64]),
        }
    }

    /// Itself and `times` another.
    fn with(&self, other: &Reading, times: i64) -> Reading {
        fn both<const N: usize>(one: Option<[i64; N]>, other: Option<[i64; N]>, times: i64) -> Option<[i64; N]> {
            let (one, other) = (one?, other?);
            Some(std::array::from_fn(|at| one[at] + times * other[at]))
        }
        Reading {
            client: both(self.client, other.client, times),
            machine: both(self.machine, other.machine, times),
            network: both(self.network, other.network, times),
            disk: both(self.disk, other.disk, times),
            flushes: both(self.flushes, other.flushes, times),
        }
    }

    /// Puts it where a sample has what was read. What could not be read there stays as it is said there.
    fn put_into(&self, sample: &mut Sample) {
        let unknown = || "it could not be read at every end of a turn".to_owned();
        // Idle time may fall a little between two reads.
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        if let Ok(client) = &mut sample.client {
            match self.client {
                Some(times) => {
                    [client.user_seconds, client.system_seconds] = times.map(|microseconds| microseconds as f64 / 1e6);
                }
                None => sample.client = Err(unknown()),
            }
        }
        if sample.machine.is_ok() {
            let times = self.machine.map(|times| times.map(count));
            sample.machine = times.map(machine_times).ok_or_else(unknown);
        }
        if sample.network.is_ok() {
            let bytes = self.network.map(|bytes| bytes.map(count));
            sample.network = bytes
                .map(|[received, transmitted]| NetworkBytes { received, transmitted })
                .ok_or_else(unknown);
        }
        if sample.disk.is_ok() {
            let flushes = self.flushes.map(|[flushes]| count(flushes));
            let counts = self.disk.map(|counts| counts.map(count));
            sample.disk = counts
                .map(|[reads, writes, read_bytes, write_bytes]| DiskCounts {
                    reads,
                    writes,
                    read_bytes,
                    write_bytes,
                    flushes,
                })
                .ok_or_else(unknown);
        }
    }
}

fn of_machine(times: MachineTimes) -> [i64; 6] {
    let MachineTimes {
        user,
        system,
        idle,
        iowait,
        irq,
        steal,
    } = times;
    [user, system, idle, iowait, irq, steal].map(|ticks| ticks as i64)
}

fn machine_times([user, system, idle, iowait, irq, steal]: [u64; 6]) -> MachineTimes {
    MachineTimes {
        user,
        system,
        idle,
        iowait,
        irq,
        steal,
    }
}

fn of_network(bytes: NetworkBytes) -> [i64; 2] {
    [bytes.received as i64, bytes.transmitted as i64]
}

fn of_disk(counts: DiskCounts) -> [i64; 4] {
    let DiskCounts {
        reads,
        writes,
        read_bytes,
        write_bytes,
        ..
    } = counts;
    [reads, writes, read_bytes, write_bytes].map(|count| count as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sampler, SamplerOptions, delta};
    use std::sync::Arc;
    use std::time::Instant;

    fn burn(milliseconds: u64) {
        let (user, system) = process::own_cpu_times();
        let until = user + system + Duration::from_millis(milliseconds);
        loop {
            let (user, system) = process::own_cpu_times();
            if user + system >= until {
                return;
            }
        }
    }

    #[test]
    fn what_is_done_in_rests_is_not_counted_and_the_rest_is() {
        let rests = Arc::new(MachineRests::new(None));
        let mut sampler = Sampler::start(
            std::process::id(),
            SamplerOptions {
                leave_cgroup: true,
                no_hardware: true,
                rests: Some(rests.clone()),
                ..SamplerOptions::default()
            },
        )
        .expect("of this process");
        let (first, began) = (sampler.sample(), Instant::now());
        let mut worked = Duration::ZERO;
        for _ in 0..4 {
            rests.begin();
            burn(100);
            rests.end();
            let began = Instant::now();
            burn(50);
            worked += began.elapsed();
        }
        rests.begin();
        burn(100);
        let in_a_rest = sampler.sample();
        let all = began.elapsed();
        let of = |name: &str| {
            let counters = delta(&first, &in_a_rest);
            let named = counters.iter().filter(|counter| counter.name.starts_with(name));
            named.map(|counter| counter.value).sum::<f64>()
        };
        // It worked for 0.2 s and burnt 0.5 s in rests. Between them is what a reading takes: a fifth of one rest at the most.
        let client = of("client.cpu_");
        assert!((0.199..0.22).contains(&client), "{client}");
        let machine = of("machine.cpu_");
        let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
        let (worked, all) = (worked.as_secs_f64() * cpus, all.as_secs_f64() * cpus);
        assert!(
            (machine - worked).abs() < 0.3 * worked + 0.1 * cpus,
            "{machine} of {worked}"
        );
        assert!(machine < 0.75 * all, "{machine} of {all}");
    }

    #[test]
    fn what_cannot_be_read_at_an_end_of_a_rest_is_not_known() {
        let mut reading = Reading::ZERO;
        reading.disk = None;
        let sum = Reading::ZERO.with(&reading, 1);
        assert_eq!((sum.disk, sum.machine), (None, Some([0; 6])));
    }
}
