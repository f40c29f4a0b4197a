//! What machine a run was made on: plain facts, read once.

use std::fs;
use std::path::Path;

use crate::cpu_facts;

/// A limit of the kernel with its soft and hard value; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limit {
    /// In force now.
    pub soft: Option<u64>,
    /// How far the process may raise it itself.
    pub hard: Option<u64>,
}

/// Facts about the machine; whatever could not be read is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MachineFacts {
    /// Instruction set this program runs on, such as `x86_64`.
    pub architecture: String,
    /// Model of the CPU.
    pub cpu_model: Option<String>,
    /// CPUs that are online (threads of cores).
    pub cpus: Option<usize>,
    /// CPUs this process may run on (cpusets, taskset).
    pub cpus_allowed: Option<usize>,
    /// Cores.
    pub cores: Option<usize>,
    /// Sockets.
    pub sockets: Option<usize>,
    /// NUMA nodes that hold memory.
    pub numa_nodes: Option<usize>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory that programs can still get without swapping, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap in bytes.
    pub swap_bytes: Option<u64>,
    /// Swap in use, in bytes.
    pub swap_used_bytes: Option<u64>,
    /// Release of the kernel, such as `6.1.0-28-amd64`.
    pub kernel_release: Option<String>,
    /// Name of the distribution.
    pub distribution: Option<String>,
    /// Its short name, such as `debian`.
    pub distribution_id: Option<String>,
    /// Name of the hypervisor, or `unknown` when the CPU says that there is one and nothing says which. `None` on bare metal.
    pub hypervisor: Option<String>,
    /// Frequency governor of the first CPU. `None` where the machine sets its clock itself (most virtual ones).
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// Open files (RLIMIT_NOFILE).
    pub open_files: Limit,
    /// Processes and threads of this user (RLIMIT_NPROC).
    pub processes: Limit,
    /// Mappings of a process (vm.max_map_count).
    pub max_map_count: Option<u64>,
    /// Largest process id (kernel.pid_max).
    pub pid_max: Option<u64>,
    /// Threads of the whole machine (kernel.threads-max).
    pub threads_max: Option<u64>,
}

impl MachineFacts {
    /// Reads all facts. It never fails.
    pub fn read() -> Self {
        let cpuinfo = cpu_facts::parse_cpuinfo(&whole("/proc/cpuinfo").unwrap_or_default());
        let meminfo = whole("/proc/meminfo").unwrap_or_default();
        let os_release = whole("/etc/os-release")
            .or_else(|| whole("/usr/lib/os-release"))
            .unwrap_or_default();
        let memory = |key| cpu_facts::meminfo_bytes(&meminfo, key);
        let count = |path| crate::cpu_counters::parse_cpu_list(&whole(path)?).map(|list| list.len());
        let swap_bytes = memory("SwapTotal");
        Self {
            architecture: std::env::consts::ARCH.to_owned(),
            cpus: crate::cpu_counters::online_cpus().ok().map(|cpus| cpus.len()),
            cpus_allowed: std::thread::available_parallelism().ok().map(usize::from),
            cores: cpuinfo.cores,
            sockets: cpuinfo.sockets,
            numa_nodes: count("/sys/devices/system/node/has_memory"),
            memory_bytes: memory("MemTotal"),
            memory_available_bytes: memory("MemAvailable"),
            swap_bytes,
            swap_used_bytes: swap_bytes
                .zip(memory("SwapFree"))
                .map(|(all, free)| all.saturating_sub(free)),
            kernel_release: Some(kernel_release()),
            distribution: cpu_facts::os_release(&os_release, "PRETTY_NAME"),
            distribution_id: cpu_facts::os_release(&os_release, "ID"),
            hypervisor: hypervisor(cpuinfo.hypervisor_flag),
            cpu_model: cpuinfo.model,
            governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            clock_source: line("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            transparent_huge_pages: whole("/sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| cpu_facts::chosen(&text).map(str::to_owned)),
            open_files: limit(rustix::process::Resource::Nofile),
            processes: limit(rustix::process::Resource::Nproc),
            max_map_count: number("/proc/sys/vm/max_map_count"),
            pid_max: number("/proc/sys/kernel/pid_max"),
            threads_max: number("/proc/sys/kernel/threads-max"),
        }
    }
}

fn limit(resource: rustix::process::Resource) -> Limit {
    let limit = rustix::process::getrlimit(resource);
    Limit {
        soft: limit.current,
        hard: limit.maximum,
    }
}

/// Who virtualises this machine, from the plainest source that speaks.
fn hypervisor(flag: bool) -> Option<String> {
    if let Some(name) = line("/sys/hypervisor/type") {
        return Some(name);
    }
    let board = [
        line("/sys/class/dmi/id/sys_vendor"),
        line("/sys/class/dmi/id/product_name"),
    ];
    let board: Vec<String> = board.into_iter().flatten().collect();
    let clocks = whole("/sys/devices/system/clocksource/clocksource0/available_clocksource").unwrap_or_default();
    let tree = Path::new("/proc/device-tree/hypervisor").exists();
    let known = ["QEMU", "KVM", "VMware", "VirtualBox", "Xen", "Bochs", "Parallels"];
    let told = flag || tree || known.iter().any(|name| board.iter().any(|text| text.contains(name)));
    told.then(|| match () {
        () if !board.is_empty() => board.join(" "),
        () if clocks.contains("kvm-clock") => "KVM".to_owned(),
        () if clocks.contains("hyperv") => "Hyper-V".to_owned(),
        () => "unknown".to_owned(),
    })
}

/// The command that makes /sys visible.
pub(crate) const MOUNT_SYS: &str = "mount -t sysfs sysfs /sys";

/// Whether sysfs is where it belongs.
pub(crate) fn has_sys() -> bool {
    Path::new("/sys/devices").exists()
}

/// The release of the running kernel, as `uname -r` prints it: asked of the kernel, as containers may hide /proc/sys.
pub(crate) fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

pub(crate) fn whole(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

pub(crate) fn line(path: &str) -> Option<String> {
    let text = whole(path)?;
    let first = text.lines().next()?.trim_matches(['\0', ' ']);
    (!first.is_empty()).then(|| first.to_owned())
}

pub(crate) fn number(path: &str) -> Option<u64> {
    line(path)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_tells_what_every_linux_tells() {
        let facts = MachineFacts::read();
        assert!(facts.cpus.is_some_and(|cpus| cpus > 0));
        assert!(facts.memory_bytes > facts.memory_available_bytes);
        assert!(facts.kernel_release.is_some());
        assert!(facts.max_map_count.is_some());
    }
}
