//! The sampler: all sources of one server and its machine, read together.
//!
//! Which source for which figure, and why:
//!
//! | figures | source | ended threads | cost at 2000 threads |
//! |---|---|---|---|
//! | CPU user, system, page faults, resident | `/proc/PID/stat` (10 ms ticks) | counted | 0.15 ms |
//! | `server.cpu_seconds_by_scheduler` | process CPU clock (ns) | counted | 0.08 ms |
//! | bytes from and to disk | `/proc/PID/io` | counted | 0.08 ms |
//! | voluntary, involuntary switches | taskstats: sum of the threads, message for each that ends | counted | 0.18 ms |
//! | the same without root | `/proc/PID/task/*/status`, at the ends of a measurement only | **lost**, and said | 45 ms |
//! | all switches, migrations, CPU clock | perf software events per CPU, filtered by a cgroup of our own, where there are hardware counters | counted | a read per CPU |
//! | hardware counters | the same with hardware events, four at once, groups by turns | counted | a read per CPU |
//!
//! Nothing is opened per thread. perf events on existing threads with `inherit` would count ended threads too, but need a
//! descriptor for each thread and event, make every read walk all of them, and for hardware events cost a third of the
//! throughput in a virtual machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cgroup::ServerCgroup;
use crate::cpu_counters::{self, CgroupCounters, HardwareCounters, UsableHardware};
use crate::disks;
use crate::error::ProbeError;
use crate::figure::Missing;
use crate::kernel_file::KernelFile;
use crate::machine_counters;
use crate::perf_event::Target;
use crate::process::{self, ProcessFiles};
use crate::rests::MachineRests;
use crate::sample::{ClientUse, Sample, SwitchCounts};
use crate::switch_watch::SwitchWatch;
use crate::thread_walk;

/// What to sample and how.
#[derive(Debug, Clone, Default)]
pub struct SamplerOptions {
    /// Process of the client; `None` is the calling process (whose CPU time is known to the microsecond).
    pub client_pid: Option<u32>,
    /// Do not move the server into a cgroup of its own: no migrations, no exact total of switches, and no hardware
    /// counters unless `server_only_cpus` is given.
    pub leave_cgroup: bool,
    /// Do not count with hardware counters.
    pub no_hardware: bool,
    /// Count the cgroup's switches, migrations and CPU clock where there are no hardware counters too. They cost as much as
    /// those, and their only use is to be compared with them.
    pub always_count_cgroup: bool,
    /// CPUs on which nothing but the server runs, if there are such.
    pub server_only_cpus: Option<Vec<u32>>,
    /// The server's data folder: its disk is the one that is counted.
    pub data_directory: Option<PathBuf>,
    /// What is not to be counted, for a server that is stopped at times.
    pub rests: Option<Arc<MachineRests>>,
}

/// What sampling itself has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SamplerCost {
    /// Samples taken.
    pub samples: u64,
    /// CPU time of the sampling thread in all of them.
    pub total: Duration,
    /// The dearest of them.
    pub most: Duration,
}

impl SamplerCost {
    /// CPU time of one sample on average; `None` before the first.
    pub fn mean(&self) -> Option<Duration> {
        Some(self.total / u32::try_from(self.samples).ok().filter(|n| *n > 0)?)
    }
}

/// Counting through perf, which can be switched off to measure what it costs.
#[derive(Debug)]
struct Counting {
    software: Result<CgroupCounters, String>,
    hardware: Result<HardwareCounters, String>,
    hardware_missing: Vec<Missing>,
    hardware_is_filtered: bool,
}

/// Reads all sources of one server. See the module's table for what costs how much.
#[derive(Debug)]
pub struct Sampler {
    server_pid: u32,
    client_pid: Option<u32>,
    server: ProcessFiles,
    client: ProcessFiles,
    switches: Result<SwitchWatch, String>,
    stat: Result<KernelFile, String>,
    network: Result<KernelFile, String>,
    diskstats: Result<KernelFile, String>,
    disks: Vec<String>,
    // The events must be closed before the cgroup is removed: fields drop in this order.
    counting: Counting,
    cgroup: Result<ServerCgroup, String>,
    options: SamplerOptions,
    cpus: Vec<u32>,
    epoch: u64,
    cost: SamplerCost,
    notes: Vec<String>,
}

impl Sampler {
    /// Opens all sources. It fails only if the server or the client does not exist (or the kernel hides it); any other
    /// lack shows in [`missing`](crate::missing). Call it when the server is up and before the load begins.
    pub fn start(server_pid: u32, options: SamplerOptions) -> Result<Self, ProbeError> {
        let server = ProcessFiles::open(server_pid)?;
        let client = ProcessFiles::open(options.client_pid.unwrap_or_else(std::process::id))?;
        let client_pid = options.client_pid.filter(|pid| *pid != std::process::id());
        let cpus = cpu_counters::online_cpus()?;
        let text = |error: ProbeError| error.to_string();
        let switches = SwitchWatch::start(server_pid, &cpus).map_err(text);
        let cgroup = if options.leave_cgroup {
            Err("counted only in a cgroup of scaleprof, and this server stays in its own".to_owned())
        } else {
            ServerCgroup::hold(server_pid).map_err(text)
        };
        let mut sampler = Self {
            server_pid,
            client_pid,
            server,
            client,
            switches,
            stat: KernelFile::open("/proc/stat").map_err(text),
            network: KernelFile::open("/proc/net/dev").map_err(text),
            diskstats: KernelFile::open("/proc/diskstats").map_err(text),
            disks: disks::choose_disks(options.data_directory.as_deref()),
            counting: Counting {
                software: Err(COUNTING_IS_OFF.to_owned()),
                hardware: Err(COUNTING_IS_OFF.to_owned()),
                hardware_missing: Vec::new(),
                hardware_is_filtered: false,
            },
            cgroup,
            options,
            cpus,
            epoch: 0,
            cost: SamplerCost::default(),
            notes: Vec::new(),
        };
        sampler.resume_counting();
        Ok(sampler)
    }

    /// Reads everything that is cheap enough for once a second. Hardware groups take turns at each call.
    pub fn sample(&mut self) -> Sample {
        self.take(false)
    }

    /// Like [`sample`](Self::sample), for the two ends of a measurement: where taskstats is not to
    /// be had, it walks all threads for their context switches (20 µs a thread). Take the closing
    /// one before connections are closed.
    pub fn sample_at_end_of_measurement(&mut self) -> Sample {
        self.take(true)
    }

    /// What sampling has cost so far.
    pub fn cost(&self) -> SamplerCost {
        self.cost
    }

    /// The cgroup that was made for the server; none where it was left in its own.
    pub fn cgroup_folder(&self) -> Option<&Path> {
        self.cgroup.as_ref().ok().map(ServerCgroup::folder)
    }

    /// What is not counted, of a server that is stopped at times.
    pub fn rests(&self) -> Option<Arc<MachineRests>> {
        self.options.rests.clone()
    }

    /// What the user should know about how figures were counted.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Closes all perf events, so that the kernel does nothing for them: for a window that shows what counting costs.
    /// Figures between samples of different sides of this are missing.
    pub fn suspend_counting(&mut self) {
        self.epoch += 1;
        self.counting.software = Err(COUNTING_IS_OFF.to_owned());
        self.counting.hardware = Err(COUNTING_IS_OFF.to_owned());
    }

    /// Opens the perf events (again).
    pub fn resume_counting(&mut self) {
        self.epoch += 1;
        self.notes.clear();
        self.counting.hardware = self.open_hardware();
        let needed = self.counting.hardware.is_ok() && self.counting.hardware_is_filtered;
        self.counting.software = match &self.cgroup {
            Ok(_) if !needed && !self.options.always_count_cgroup => Err(ONLY_BESIDE_HARDWARE.to_owned()),
            Ok(cgroup) => CgroupCounters::open(
                self.cpus
                    .iter()
                    .map(|cpu| Target::CgroupOnCpu(cgroup.descriptor(), *cpu)),
            ),
            Err(reason) => Err(reason.clone()),
        };
    }

    fn open_hardware(&mut self) -> Result<HardwareCounters, String> {
        if self.options.no_hardware {
            return Err("hardware counters were switched off as asked".to_owned());
        }
        let UsableHardware { others, missing } = cpu_counters::probe_hardware()?;
        self.counting.hardware_missing = missing;
        let filtered: Result<Vec<Target<'_>>, String> = match &self.cgroup {
            Ok(cgroup) => Ok(self
                .cpus
                .iter()
                .map(|cpu| Target::CgroupOnCpu(cgroup.descriptor(), *cpu))
                .collect()),
            Err(reason) => Err(reason.clone()),
        };
        let opened = filtered.and_then(|targets| HardwareCounters::start(&others, &targets));
        let (reason, own) = match (opened, &self.options.server_only_cpus) {
            (Ok(counters), _) => {
                self.counting.hardware_is_filtered = true;
                return Ok(counters);
            }
            (Err(reason), Some(own)) if !own.is_empty() => (reason, own),
            (Err(reason), _) => return Err(reason),
        };
        let targets: Vec<_> = own.iter().map(|cpu| Target::Cpu(*cpu)).collect();
        let counters = HardwareCounters::start(&others, &targets)?;
        self.counting.hardware_is_filtered = false;
        self.notes.push(format!(
            "hardware counters count all that runs on the server's own CPUs, interrupts and kernel threads included ({reason})"
        ));
        Ok(counters)
    }

    fn take(&mut self, walk_threads: bool) -> Sample {
        let begin = process::own_thread_clock();
        let client = self.client_use();
        let mut sample = Sample {
            taken: Instant::now(),
            cost: Duration::ZERO,
            epoch: self.epoch,
            // The figures that are divided by each other are read next to each other.
            server_clock: process::process_cpu_clock(self.server_pid).map_err(|error| error.to_string()),
            cgroup: self
                .counting
                .software
                .as_ref()
                .map_err(Clone::clone)
                .and_then(CgroupCounters::read),
            hardware: self
                .counting
                .hardware
                .as_mut()
                .map_err(|e| e.clone())
                .and_then(HardwareCounters::sample),
            server: self.server.stat(),
            machine: read(&mut self.stat, KernelFile::head, machine_counters::parse_proc_stat),
            client,
            switches: Err(String::new()),
            server_io: self.server.io(),
            network: read(&mut self.network, KernelFile::whole, network_bytes),
            disk: read(&mut self.diskstats, KernelFile::whole, |text| {
                disks::disk_counts(&disks::parse_diskstats(text), |name| {
                    self.disks.iter().any(|disk| disk == name)
                })
            }),
            layout: self
                .counting
                .hardware
                .as_ref()
                .map(|h| h.layout.clone())
                .unwrap_or_default(),
            hardware_missing: self.counting.hardware_missing.clone(),
            hardware_is_filtered: self.counting.hardware_is_filtered,
        };
        if let Some(rests) = &self.options.rests {
            rests.take_off(&mut sample);
        }
        sample.switches = self.read_switches(walk_threads);
        if sample.server.is_ok() && sample.server.as_ref().is_ok_and(|server| server.threads == 0) {
            sample.server = Err(format!("process {} has ended", self.server_pid));
        }
        sample.cost = process::own_thread_clock().saturating_sub(begin);
        self.cost.samples += 1;
        self.cost.total += sample.cost;
        self.cost.most = self.cost.most.max(sample.cost);
        sample
    }

    fn read_switches(&mut self, walk_threads: bool) -> Result<SwitchCounts, String> {
        match &mut self.switches {
            Ok(watch) => watch.read().map(SwitchCounts::Whole),
            Err(_) if walk_threads => thread_walk::walk(self.server_pid).map(SwitchCounts::ByThread),
            Err(reason) => Err(format!("read at the ends of a measurement only, as {reason}")),
        }
    }

    fn client_use(&mut self) -> Result<ClientUse, String> {
        let stat = self.client.stat()?;
        let tick = 1.0 / process::ticks_per_second();
        let (user_seconds, system_seconds) = if self.client_pid.is_none() {
            let (user, system) = process::own_cpu_times();
            (user.as_secs_f64(), system.as_secs_f64())
        } else {
            (stat.user_ticks as f64 * tick, stat.system_ticks as f64 * tick)
        };
        let resident_bytes = stat.resident_pages as f64 * rustix::param::page_size() as f64;
        Ok(ClientUse {
            user_seconds,
            system_seconds,
            resident_bytes,
        })
    }
}

const ONLY_BESIDE_HARDWARE: &str = "counting by cgroup costs some percent of the throughput and is done only where there are hardware counters to compare with";
const COUNTING_IS_OFF: &str = "counting is switched off";

pub(crate) fn network_bytes(text: &str) -> Option<machine_counters::NetworkBytes> {
    machine_counters::network_bytes(&machine_counters::parse_net_dev(text), |name| {
        std::path::Path::new("/sys/class/net")
            .join(name)
            .join("device")
            .exists()
    })
}

/// Reads one kept file and takes it apart.
fn read<T>(
    file: &mut Result<KernelFile, String>,
    how: impl FnOnce(&mut KernelFile) -> Result<&str, ProbeError>,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, String> {
    let file = file.as_mut().map_err(|reason| reason.clone())?;
    let path = file.path().display().to_string();
    let text = how(file).map_err(|error| error.to_string())?;
    parse(text).ok_or_else(|| format!("{path} names nothing to count on this machine"))
}
