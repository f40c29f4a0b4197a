//! Events opened on every CPU: the exact software counts of the server's cgroup, and the hardware counters.
//!
//! Never one event per thread: in a virtual machine every switch between threads then traps to load the counters, which
//! cost 31 to 46 % of the throughput of a MariaDB with 64 connections, and 2000 threads would need 2000 descriptors an
//! event. Per-CPU events with a cgroup filter are only touched when a CPU passes from the server to someone else (idle
//! included): measured with the three software events, 1.3 µs of CPU a round trip between a client and a server that share a
//! CPU (7.4 against 6.1 µs), and nothing that can be told from noise for switches between threads of the server. The moment
//! of such a passage itself is outside of what the events see, some 1 to 3 µs each that the scheduler's clock does count:
//! divide hardware counts by `hw.task_clock_seconds`, not by `server.cpu_seconds_by_scheduler`.

use crate::error::ProbeError;
use crate::figure::Missing;
use crate::hardware::{self, HardwareCounts};
use crate::perf_event::{Event, EventGroup, RawGroup, Target};
use crate::rotation::{GroupReader, Rotation};

/// Exact counts of the server's cgroup since counting began; threads that ended are in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupCounts {
    /// CPU time in nanoseconds.
    pub cpu_nanoseconds: u64,
    /// Context switches, voluntary and involuntary.
    pub switches: u64,
    /// Moves of a thread to another CPU.
    pub migrations: u64,
}

/// The software events of the server's cgroup.
#[derive(Debug)]
pub(crate) struct CgroupCounters {
    groups: Vec<EventGroup>,
}

impl CgroupCounters {
    pub(crate) fn open<'a>(targets: impl Iterator<Item = Target<'a>>) -> Result<Self, String> {
        let events = [Event::CpuClock, Event::ContextSwitches, Event::Migrations];
        let mut groups = Vec::new();
        for target in targets {
            let group = EventGroup::open(&events, target, false)?;
            group.enable()?;
            groups.push(group);
        }
        Ok(Self { groups })
    }

    pub(crate) fn read(&self) -> Result<CgroupCounts, String> {
        let mut sum = CgroupCounts::default();
        for group in &self.groups {
            let values = group.read()?.values;
            sum.cpu_nanoseconds += values[0];
            sum.switches += values[1];
            sum.migrations += values[2];
        }
        Ok(sum)
    }
}

/// Which hardware events this machine really counts.
#[derive(Debug, Clone, PartialEq)]
pub struct UsableHardware {
    /// Events besides cycles and instructions.
    pub others: Vec<Event>,
    /// Figures that cannot be counted, with the reason.
    pub missing: Vec<Missing>,
}

const OTHERS: [Event; 3] = [Event::CacheReferences, Event::CacheMisses, Event::BranchMisses];

/// Counts a short loop of the calling thread with every event in turn. An error means that there are no hardware
/// counters at all, and says why.
pub fn probe_hardware() -> Result<UsableHardware, String> {
    count_loop(&[Event::Cycles, Event::Instructions])?;
    let mut usable = UsableHardware {
        others: Vec::new(),
        missing: Vec::new(),
    };
    for event in OTHERS {
        match count_loop(&[Event::Cycles, Event::Instructions, event]) {
            Ok(()) => usable.others.push(event),
            Err(reason) => usable.missing.push(Missing {
                figure: hardware::figure(event),
                reason,
            }),
        }
    }
    Ok(usable)
}

fn count_loop(events: &[Event]) -> Result<(), String> {
    let group = EventGroup::open(events, Target::ThisThread, true)?;
    let before = group.read()?;
    group.enable()?;
    let mut sum = 0u64;
    for i in 0..2_000_000u64 {
        sum = std::hint::black_box(sum.wrapping_add(i));
    }
    group.disable()?;
    let after = group.read()?;
    let layout = [events.to_vec()];
    let (_, missing) = hardware::hardware_figures(&layout, &vec![vec![before]], &vec![vec![after]], None);
    missing.into_iter().next().map_or(Ok(()), |fault| Err(fault.reason))
}

/// Hardware events on several CPUs.
#[derive(Debug)]
pub(crate) struct CpuGroups {
    /// By group, then by CPU.
    groups: Vec<Vec<EventGroup>>,
}

impl GroupReader for CpuGroups {
    fn groups(&self) -> usize {
        self.groups.len()
    }
    fn read(&mut self, group: usize) -> Result<Vec<RawGroup>, String> {
        self.groups[group].iter().map(EventGroup::read).collect()
    }
    fn enable(&mut self, group: usize) -> Result<(), String> {
        self.groups[group].iter().try_for_each(EventGroup::enable)
    }
    fn disable(&mut self, group: usize) -> Result<(), String> {
        self.groups[group].iter().try_for_each(EventGroup::disable)
    }
}

/// The hardware counters, with the groups that take turns.
#[derive(Debug)]
pub(crate) struct HardwareCounters {
    pub(crate) layout: Vec<Vec<Event>>,
    rotation: Rotation<CpuGroups>,
}

impl HardwareCounters {
    pub(crate) fn start(others: &[Event], targets: &[Target<'_>]) -> Result<Self, String> {
        let layout = hardware::layout(others);
        let groups = layout
            .iter()
            .map(|events| {
                targets
                    .iter()
                    .map(|target| EventGroup::open(events, *target, true))
                    .collect()
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            layout,
            rotation: Rotation::start(CpuGroups { groups })?,
        })
    }

    pub(crate) fn sample(&mut self) -> Result<HardwareCounts, String> {
        self.rotation.sample()
    }
}

/// The CPUs that are online, from the lowest number to the highest. Where /sys is not mounted, those of /proc/stat, which has a line
/// for each CPU that is online (proc(5)).
///
/// # Errors
/// Neither can be read, or the form of the kernel's list is not known.
pub(crate) fn online_cpus() -> Result<Vec<u32>, ProbeError> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    match std::fs::read_to_string(ONLINE) {
        Ok(text) => parse_cpu_list(&text).ok_or(ProbeError::Form {
            what: ONLINE.to_owned(),
        }),
        Err(source) => std::fs::read_to_string("/proc/stat")
            .ok()
            .map(|text| cpus_with_a_line(&text))
            .filter(|cpus| !cpus.is_empty())
            .ok_or(ProbeError::Read {
                path: ONLINE.into(),
                source,
            }),
    }
}

/// The CPUs that have a line of their own in /proc/stat.
fn cpus_with_a_line(stat: &str) -> Vec<u32> {
    let number = |line: &str| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok();
    stat.lines().filter_map(number).collect()
}

/// Reads a list of CPUs such as "0-3,5" (Documentation/core-api/cpu_hotplug.rst, format of `online`). A list that is not
/// of that form, or that names more than 65,536 CPUs, gives `None`.
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    const MOST: u32 = 1 << 16;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        if first > last || last >= MOST {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty() && cpus.len() <= MOST as usize).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_single_cpus_are_read() {
        assert_eq!(parse_cpu_list("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        for bad in ["", "3-1", "0-", "x", "0-4294967295", "1,,x"] {
            assert_eq!(parse_cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_online_cpus_are_those_with_a_line_of_their_own() {
        let stat = "cpu  10 0 3 4\ncpu0 5 0 1 2\ncpu3 5 0 2 2\nintr 7 0\nctxt 9\n";
        assert_eq!(cpus_with_a_line(stat), [0, 3]);
        let here = std::fs::read_to_string("/proc/stat").expect("/proc is mounted");
        assert_eq!(cpus_with_a_line(&here), online_cpus().expect("/sys is mounted"));
    }

    #[test]
    fn hardware_counters_count_or_say_why_not() {
        if let Err(reason) = probe_hardware() {
            // A virtual machine may have none.
            return assert!(reason.contains("hardware"), "{reason}");
        }
        let group = EventGroup::open(&[Event::Cycles, Event::Instructions], Target::ThisThread, true);
        let group = group.expect("they could be opened just now");
        group.enable().expect("it counts");
        let until = std::time::Instant::now() + std::time::Duration::from_millis(20);
        while std::time::Instant::now() < until {}
        let counted = group.read().expect("it had a counter");
        // 20 ms are 20 million cycles of the slowest CPU that there is, of which the host may have taken most.
        assert!(counted.values.iter().all(|count| *count > 1_000_000), "{counted:?}");
    }

    /// The turns on real events: software ones, which every machine has.
    #[test]
    fn real_groups_count_in_their_turn_only() {
        let open = |events: &[Event]| EventGroup::open(events, Target::ThisThread, true);
        let layout = [
            [Event::CpuClock, Event::ContextSwitches],
            [Event::CpuClock, Event::Migrations],
        ];
        // Without the right to count the kernel's part there is nothing to test.
        let groups = match layout
            .iter()
            .map(|events| Ok(vec![open(events)?]))
            .collect::<Result<Vec<_>, String>>()
        {
            Ok(groups) => groups,
            Err(error) => return testing::skip!("events of the kernel's part: {error}"),
        };
        let mut rotation = Rotation::start(CpuGroups { groups }).expect("starts");
        let mut turns = Vec::new();
        for _ in 0..4 {
            (0..20).for_each(|_| std::thread::sleep(std::time::Duration::from_micros(100)));
            turns.push(rotation.sample().expect("reads"));
        }
        let clock = |turn: usize, group: usize| turns[turn][group][0].values[0];
        assert!(clock(0, 0) > 0 && clock(0, 1) == 0, "only the first has counted");
        assert!(clock(1, 0) == clock(0, 0) && clock(1, 1) > 0, "then only the second");
        assert!(
            clock(2, 0) > clock(1, 0) && clock(2, 1) == clock(1, 1),
            "then the first again"
        );
        assert!(
            turns[3].iter().all(|cpus| cpus[0].time_enabled == cpus[0].time_running),
            "pinned ones count all along"
        );
        let switches = turns[3][0][0].values[1];
        assert!(switches >= 30, "{switches} switches in two turns of 20 sleeps");
    }

    proptest! {
        #[test]
        fn any_list_is_read_without_panic(text in "[0-9,\\- a]{0,30}") {
            let _ = parse_cpu_list(&text);
        }
    }
}
