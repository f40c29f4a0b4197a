//! What this machine and this server allow, and the command that fixes what is missing.

use std::path::Path;
use std::time::Duration;

use crate::check_item::{CheckItem, Status};
use crate::check_limits::{self, Wanted};
use crate::error::ProbeError;
use crate::machine::{self, MOUNT_SYS, MachineFacts};
use crate::perf_event::{Event, EventGroup, Target};
use crate::privileges::{Privileges, how_to_get_privileges};
use crate::watch::{OLDEST_KERNEL, Watch, WatchOptions, how_to_get_types};
use crate::{check_patching, check_symbols, cpu_counters, cpu_facts, machine_counters};

/// Looks at everything. It takes a good second, in which it measures how much time the hypervisor steals.
///
/// `want_connections` is the largest number of connections of the run that is planned.
pub fn check(server_binary: Option<&Path>, want_connections: u32) -> Vec<CheckItem> {
    let facts = MachineFacts::read();
    // Ended before counters are tried: its timer takes one on each CPU.
    let bpf = bpf(Watch::start(std::process::id(), WatchOptions::default()));
    let loads = match bpf.status {
        Status::Ok => Loads::Yes,
        _ if Privileges::of_this_process().may_load_bpf() => Loads::No,
        _ => Loads::Unknown,
    };
    let mut items = vec![
        kernel(facts.kernel_release.as_deref(), loads),
        capabilities(Privileges::of_this_process()),
        perf_events(),
        hardware(&facts),
        bpf,
        types(),
        check_patching::patching_item(facts.cpu_model.as_deref()),
    ];
    if let Some(binary) = server_binary {
        let symbols = check_symbols::symbol_facts(binary);
        let package = check_symbols::package_of(binary);
        let distribution = facts.distribution_id.as_deref();
        items.extend(check_symbols::symbol_items(
            binary,
            &symbols,
            distribution,
            package.as_deref(),
        ));
    }
    let wanted = Wanted {
        connections: u64::from(want_connections),
        cpus: facts.cpus.unwrap_or(1) as u64,
    };
    items.extend(check_limits::limit_items(
        &facts,
        &check_limits::cgroup_limits(),
        wanted,
    ));
    items.extend(machine_items(&facts));
    items.push(steal());
    items
}

/// Whether the kernel takes the BPF programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loads {
    Yes,
    No,
    /// Nobody without privileges can try.
    Unknown,
}

/// A kernel is judged by what loads: vendors carry newer BPF to older numbers (RHEL 9's 5.14).
fn kernel(release: Option<&str>, loads: Loads) -> CheckItem {
    const TOPIC: &str = "kernel";
    let release = release.unwrap_or("unknown");
    match (cpu_facts::kernel_version(release), loads) {
        (Some(_), Loads::Yes) => CheckItem::ok(TOPIC, release),
        (Some(version), _) if version >= OLDEST_KERNEL => CheckItem::ok(TOPIC, release),
        (_, Loads::Unknown) => CheckItem::warn(
            TOPIC,
            format!("Linux {release} is older than 5.15; whether it takes the BPF programs shows only with privileges"),
            how_to_get_privileges(),
        ),
        _ => CheckItem::missing(
            TOPIC,
            format!("Linux {release}: the BPF programs need 5.15 or newer"),
            "install a newer kernel and reboot; on Debian 11: apt-get install -t bullseye-backports linux-image-amd64; \
             on Ubuntu 20.04: apt-get install linux-generic-hwe-20.04",
        ),
    }
}

/// What is missing of what scaleprof uses, and what is lost without it. Whether the kernel then
/// does what a capability allows is tried below.
fn capabilities(privileges: Privileges) -> CheckItem {
    const TOPIC: &str = "capabilities";
    let unavailable = privileges.unavailable();
    if unavailable.is_empty() {
        return CheckItem::ok(TOPIC, "all required ones are present");
    }
    let each: Vec<String> = unavailable
        .iter()
        .map(|used| format!("without {} {}", used.name, used.cost))
        .collect();
    CheckItem::warn(TOPIC, each.join("; "), privileges.fix())
}

/// By trying: a container's seccomp profile may refuse what the setting and the capabilities allow.
fn perf_events() -> CheckItem {
    perf_events_by(
        &crate::perf_event::paranoid(),
        Privileges::of_this_process(),
        EventGroup::open(&[Event::CpuClock], Target::ThisThread, false).map(drop),
    )
}

fn perf_events_by(setting: &str, privileges: Privileges, tried: Result<(), String>) -> CheckItem {
    const TOPIC: &str = "perf events";
    let level = setting.parse::<i32>().ok();
    let told = level.map_or("kernel.perf_event_paranoid cannot be read".to_owned(), |level| {
        format!("kernel.perf_event_paranoid is {level}")
    });
    let is_privileged = privileges.may_count_machine();
    match (level, tried) {
        (_, Err(_)) if is_privileged => CheckItem::missing(
            TOPIC,
            "events cannot be opened although the capabilities for it are there",
            "a security module or a seccomp profile forbids perf_event_open: ausearch -m avc, and the container's profile, say which",
        ),
        (Some(level), Ok(())) if level <= 0 => CheckItem::ok(TOPIC, told),
        (_, Ok(())) if is_privileged => CheckItem::ok(TOPIC, format!("{told}; CAP_PERFMON overrides it")),
        _ => CheckItem::missing(
            TOPIC,
            format!("{told}: nothing of the whole machine can be counted"),
            match privileges.is_root {
                true => privileges.fix(),
                false => "sudo sysctl -w kernel.perf_event_paranoid=-1",
            },
        ),
    }
}

fn hardware(facts: &MachineFacts) -> CheckItem {
    const TOPIC: &str = "hardware counters";
    match cpu_counters::probe_hardware() {
        Ok(usable) if usable.missing.is_empty() => CheckItem::ok(
            TOPIC,
            "cycles, instructions, cache references and misses, branch misses count",
        ),
        Ok(usable) => {
            let lacking: Vec<&str> = usable.missing.iter().map(|missing| missing.figure).collect();
            let what = format!("cycles and instructions count; these do not: {}", lacking.join(", "));
            CheckItem::warn(
                TOPIC,
                what,
                "perf stat -e cache-references,cache-misses,branch-misses true",
            )
        }
        Err(reason) => {
            let privileges = Privileges::of_this_process();
            let fix = match &facts.hypervisor {
                _ if !privileges.may_count_machine() => {
                    format!("to see whether there are any: {}", privileges.fix())
                }
                Some(name) => {
                    format!("give the virtual machine ({name}) a PMU (QEMU: -cpu host,pmu=on), or use bare metal")
                }
                None => "sudo sysctl -w kernel.perf_event_paranoid=-1, then: perf stat -e cycles true".to_owned(),
            };
            CheckItem::missing(TOPIC, reason, fix)
        }
    }
}

/// The programs themselves, on this very process: loaded, verified, attached, and taken out again.
fn bpf(tried: Result<Watch, ProbeError>) -> CheckItem {
    const TOPIC: &str = "BPF";
    const LOADED: &str = "the programs that watch threads can be loaded into the kernel";
    match tried.map(|watch| watch.missing()) {
        Ok(missing) if missing.is_empty() => CheckItem::ok(TOPIC, LOADED),
        Ok(missing) => {
            let named: Vec<String> = missing
                .iter()
                .map(|missing| format!("{} ({})", missing.what, missing.why))
                .collect();
            CheckItem::ok(TOPIC, format!("{LOADED}; not measured: {}", named.join("; ")))
        }
        Err(error) => {
            const WITHOUT: &str = "without BPF the states of threads come from /proc, and waits have no call paths";
            let (what, fix, log) = match error {
                ProbeError::BpfRefused(refusal) => (
                    format!("{} failed ({}); {WITHOUT}", refusal.doing, refusal.answer),
                    refusal.explanation,
                    refusal.log,
                ),
                other => (
                    format!("the programs that watch threads cannot be loaded; {WITHOUT}"),
                    other.to_string(),
                    Vec::new(),
                ),
            };
            CheckItem::missing(TOPIC, what, fix).with_log(log)
        }
    }
}

fn types() -> CheckItem {
    const TOPIC: &str = "kernel types (BTF)";
    if Path::new("/sys/kernel/btf/vmlinux").exists() {
        return CheckItem::ok(TOPIC, "/sys/kernel/btf/vmlinux is there");
    }
    let what = "they cannot be read (no /sys/kernel/btf/vmlinux): portable BPF programs cannot be loaded";
    CheckItem::missing(
        TOPIC,
        what,
        how_to_get_types(machine::has_sys(), &machine::kernel_release()),
    )
}

fn machine_items(facts: &MachineFacts) -> Vec<CheckItem> {
    if !machine::has_sys() {
        let hidden = CheckItem::warn(
            "settings of the machine",
            "CPU frequency, clock source, huge pages and NUMA nodes are unknown: /sys is not mounted here",
            MOUNT_SYS,
        );
        return vec![hidden, swap(facts)];
    }
    vec![
        governor(facts.governor.as_deref()),
        clock_source(facts.clock_source.as_deref()),
        huge_pages(facts.transparent_huge_pages.as_deref()),
        numa(facts.numa_nodes, machine::number("/proc/sys/kernel/numa_balancing")),
        swap(facts),
    ]
}

fn governor(governor: Option<&str>) -> CheckItem {
    const TOPIC: &str = "CPU frequency";
    match governor {
        Some("performance") => CheckItem::ok(TOPIC, "governor performance"),
        Some(other) => CheckItem::warn(
            TOPIC,
            format!("governor {other}: the clock changes with the load, and CPU seconds with it"),
            "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        ),
        None => CheckItem::ok(TOPIC, "the machine sets its clock itself; no governor to set"),
    }
}

fn clock_source(source: Option<&str>) -> CheckItem {
    const TOPIC: &str = "clock source";
    const FAST: [&str; 6] = [
        "tsc",
        "kvm-clock",
        "arch_sys_counter",
        "hyperv_clocksource_tsc_page",
        "timebase",
        "tod",
    ];
    match source {
        Some(name) if FAST.contains(&name) => CheckItem::ok(TOPIC, name),
        Some(name) => CheckItem::warn(
            TOPIC,
            format!("{name}: every reading of the time is a system call or slower, in server and client"),
            "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        None => CheckItem::warn(
            TOPIC,
            "unknown",
            "cat /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
    }
}

fn huge_pages(setting: Option<&str>) -> CheckItem {
    const TOPIC: &str = "transparent huge pages";
    match setting {
        Some("always") => CheckItem::warn(
            TOPIC,
            "always: memory grows by 2 MiB steps, and the kernel moves pages while it measures",
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(other) => CheckItem::ok(TOPIC, other),
        None => CheckItem::ok(TOPIC, "not in this kernel"),
    }
}

fn numa(nodes: Option<usize>, balancing: Option<u64>) -> CheckItem {
    const TOPIC: &str = "NUMA";
    match (nodes, balancing) {
        (Some(nodes), Some(1..)) if nodes > 1 => CheckItem::warn(
            TOPIC,
            format!("{nodes} nodes, and the kernel moves memory between them while it measures"),
            "sudo sysctl -w kernel.numa_balancing=0",
        ),
        (Some(nodes), _) => CheckItem::ok(TOPIC, format!("{nodes} node{}", if nodes == 1 { "" } else { "s" })),
        (None, _) => CheckItem::ok(TOPIC, "one node"),
    }
}

fn swap(facts: &MachineFacts) -> CheckItem {
    const TOPIC: &str = "swap";
    match (facts.swap_bytes, facts.swap_used_bytes) {
        (Some(0) | None, _) => CheckItem::ok(TOPIC, "none"),
        (_, Some(used)) if used > 0 => CheckItem::warn(
            TOPIC,
            format!("{} MiB are swapped out: memory was short", used >> 20),
            "sudo swapoff -a && sudo swapon -a",
        ),
        (Some(all), _) => CheckItem::ok(TOPIC, format!("{} MiB, unused", all >> 20)),
    }
}

fn steal() -> CheckItem {
    let read = || machine_counters::parse_proc_stat(&machine::whole("/proc/stat")?);
    let before = read();
    std::thread::sleep(Duration::from_secs(1));
    steal_item(before.zip(read()))
}

fn steal_item(readings: Option<(machine_counters::MachineTimes, machine_counters::MachineTimes)>) -> CheckItem {
    const TOPIC: &str = "steal";
    let Some((then, now)) = readings else {
        return CheckItem::warn(TOPIC, "/proc/stat cannot be read", "head -1 /proc/stat");
    };
    let stolen = now.steal.saturating_sub(then.steal) as f64;
    let all = [
        (then.user, now.user),
        (then.system, now.system),
        (then.idle, now.idle),
        (then.iowait, now.iowait),
        (then.irq, now.irq),
        (then.steal, now.steal),
    ];
    let all: f64 = all.iter().map(|(then, now)| now.saturating_sub(*then) as f64).sum();
    let share = if all > 0.0 { stolen / all } else { 0.0 };
    let what = format!("{:.1} % of the last second", share * 100.0);
    if share > 0.01 {
        CheckItem::warn(
            TOPIC,
            what,
            "move to a machine with CPUs of its own, or repeat when the host is quiet: vmstat 1",
        )
    } else {
        CheckItem::ok(TOPIC, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_counters::MachineTimes;

    /// As Docker leaves root, a container's profile refuses perf_event_open, and as root with all capabilities a profile may.
    #[test]
    fn perf_events_are_ok_only_where_they_can_be_opened() {
        let refused = || Err("refused".to_owned());
        let status = |level: &str, privileges, tried| perf_events_by(level, privileges, tried).status;
        assert_eq!(status("2", Privileges::root(), Ok(())), Status::Ok);
        assert_eq!(status("2", Privileges::root(), refused()), Status::Missing);
        assert_eq!(status("-1", Privileges::user(), Ok(())), Status::Ok);
        assert_eq!(status("2", Privileges::user(), refused()), Status::Missing);
        assert_eq!(status("", Privileges::root(), Ok(())), Status::Ok);
        let in_container = perf_events_by("2", Privileges::root_in_container(), refused());
        assert!(
            in_container
                .fix
                .is_some_and(|fix| !fix.contains("sudo") && fix.contains("container"))
        );
        let by_profile = perf_events_by("2", Privileges::root(), refused());
        assert!(by_profile.fix.is_some_and(|fix| fix.contains("seccomp")));
    }

    #[test]
    fn kernels_types_are_missing_for_the_reason_that_holds() {
        assert!(how_to_get_types(false, "6.18.0").contains(MOUNT_SYS));
        assert!(!how_to_get_types(true, "6.18.0").contains("use Linux"));
        assert!(how_to_get_types(true, "5.4.0").contains("use Linux 5.15"));
    }

    #[test]
    fn what_is_missing_and_every_warning_says_how_to_fix_it() {
        let server = std::env::current_exe().expect("a path");
        for item in check(Some(&server), 100_000_000) {
            assert!(!item.message.is_empty(), "{}", item.topic);
            assert_eq!(item.fix.is_none(), item.status == Status::Ok, "{item:?}");
        }
    }

    #[test]
    fn a_kernel_is_too_old_by_its_number_only_where_the_programs_do_not_load() {
        assert_eq!(kernel(Some("5.14.0-503.el9"), Loads::Yes).status, Status::Ok);
        assert_eq!(kernel(Some("5.14.0-503.el9"), Loads::Unknown).status, Status::Warn);
        assert_eq!(kernel(Some("5.10.0-32-amd64"), Loads::No).status, Status::Missing);
        assert_eq!(kernel(Some("5.15.0-1-amd64"), Loads::No).status, Status::Ok);
        assert_eq!(kernel(None, Loads::No).status, Status::Missing);
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let zero = MachineTimes {
            user: 0,
            system: 0,
            idle: 0,
            iowait: 0,
            irq: 0,
            steal: 0,
        };
        let quiet = MachineTimes { idle: 200, ..zero };
        let stolen = MachineTimes {
            user: 90,
            steal: 10,
            ..zero
        };
        assert_eq!(steal_item(Some((zero, quiet))).status, Status::Ok);
        assert_eq!(steal_item(Some((zero, stolen))).status, Status::Warn);
        assert!(steal_item(Some((zero, stolen))).message.starts_with("10.0 %"));
    }

    #[test]
    fn settings_that_disturb_are_warned_of() {
        assert_eq!(governor(Some("powersave")).status, Status::Warn);
        assert_eq!(clock_source(Some("acpi_pm")).status, Status::Warn);
        assert_eq!(huge_pages(Some("always")).status, Status::Warn);
        assert_eq!(numa(Some(2), Some(1)).status, Status::Warn);
        assert_eq!(numa(Some(1), Some(1)).status, Status::Ok);
    }
}
