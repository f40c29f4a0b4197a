//! Is there room for the connections that are wanted? Files, threads, mappings and memory against their limits.
//!
//! A connection is one socket in the client, one file and (with the default scheduler) one thread in the server.

use std::path::{Path, PathBuf};

use crate::cgroup_paths;
use crate::check_item::CheckItem;
use crate::machine::{self, Limit, MachineFacts};

/// What the run will need.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub connections: u64,
    pub cpus: u64,
}

/// Limits of the cgroups this process is in; `None` means none is set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CgroupLimits {
    pub memory_bytes: Option<u64>,
    pub threads: Option<u64>,
    /// Whether a cgroup file system is mounted, so that limits can be seen.
    pub can_be_seen: bool,
}

/// What is known of a limit.
#[derive(Debug, Clone, Copy)]
enum CgroupLimit {
    None,
    Is(u64),
    Unknown,
}

impl CgroupLimits {
    fn limit(&self, value: Option<u64>) -> CgroupLimit {
        match value {
            Some(value) => CgroupLimit::Is(value),
            None if self.can_be_seen => CgroupLimit::None,
            None => CgroupLimit::Unknown,
        }
    }
}

/// Files of the server besides its connections (tables, logs) and of the client (counters of each CPU).
const OTHER_FILES: u64 = 1024;
const COUNTERS_PER_CPU: u64 = 11;
/// Threads besides those of the connections.
const OTHER_THREADS: u64 = 200;
/// A thread maps a stack and its guard, and may get an arena of malloc.
const MAPPINGS_PER_THREAD: u64 = 4;
const OTHER_MAPPINGS: u64 = 2000;
/// Touched stack, network and sort buffers of one connection in the server: an estimate on the safe side.
const BYTES_PER_CONNECTION: u64 = 1 << 20;
/// A small server with a small buffer pool.
const OTHER_BYTES: u64 = 512 << 20;

/// All limits as items.
pub(crate) fn limit_items(facts: &MachineFacts, cgroup: &CgroupLimits, wanted: Wanted) -> Vec<CheckItem> {
    let Wanted { connections, cpus } = wanted;
    let files = connections + OTHER_FILES + COUNTERS_PER_CPU * cpus;
    let threads = connections + OTHER_THREADS;
    let mappings = connections * MAPPINGS_PER_THREAD + OTHER_MAPPINGS;
    let memory = connections * BYTES_PER_CONNECTION + OTHER_BYTES;
    let sysctl = |name: &str, value: u64| format!("sudo sysctl -w {name}={value}");
    vec![
        resource("open files (RLIMIT_NOFILE)", facts.open_files, files, 'n'),
        resource("threads of a user (RLIMIT_NPROC)", facts.processes, threads, 'u'),
        at_least(
            "mappings of a process (vm.max_map_count)",
            facts.max_map_count,
            mappings,
            sysctl("vm.max_map_count", mappings),
        ),
        at_least(
            "process ids (kernel.pid_max)",
            facts.pid_max,
            threads + 4096,
            sysctl("kernel.pid_max", 4_194_304),
        ),
        at_least(
            "threads of the machine (kernel.threads-max)",
            facts.threads_max,
            threads + 4096,
            sysctl("kernel.threads-max", threads + 4096),
        ),
        at_least_or_unlimited(
            "threads of the cgroup (pids.max)",
            cgroup.limit(cgroup.threads),
            threads,
            "TasksMax=infinity",
        ),
        at_least_or_unlimited(
            "memory of the cgroup",
            cgroup.limit(cgroup.memory_bytes),
            memory,
            "MemoryMax=infinity",
        ),
        at_least(
            "memory available",
            facts.memory_available_bytes,
            memory,
            format!(
                "lower --connections, or free memory: about {} MiB required",
                memory >> 20
            ),
        ),
    ]
}

fn resource(topic: &'static str, limit: Limit, needed: u64, letter: char) -> CheckItem {
    let shown = |value: Option<u64>| value.map_or("unlimited".to_owned(), |v| v.to_string());
    let enough = |value: Option<u64>| value.is_none_or(|value| value >= needed);
    let what = format!(
        "{} of at most {}; {needed} required",
        shown(limit.soft),
        shown(limit.hard)
    );
    let raise = format!("ulimit -{letter} {needed}");
    match (enough(limit.soft), enough(limit.hard)) {
        (true, _) => CheckItem::ok(topic, what),
        (false, true) => CheckItem::warn(topic, what, raise),
        (false, false) => CheckItem::required(
            topic,
            what,
            format!("with CAP_SYS_RESOURCE: {raise}; for good: /etc/security/limits.conf"),
        ),
    }
}

fn at_least(topic: &'static str, value: Option<u64>, needed: u64, fix: String) -> CheckItem {
    // Memory is read in MiB; everything else is counted.
    let words = |n: u64| match topic.contains("memory") {
        true => format!("{} MiB", n >> 20),
        false => n.to_string(),
    };
    let wanted = words(needed);
    match value {
        Some(value) if value >= needed => CheckItem::ok(topic, format!("{}; {wanted} required", words(value))),
        Some(value) => CheckItem::required(topic, format!("{}; {wanted} required", words(value)), fix),
        // What would be set might be less than what is there.
        None => CheckItem::warn(
            topic,
            format!("unreadable here; {wanted} required"),
            "look at it on the host",
        ),
    }
}

fn at_least_or_unlimited(topic: &'static str, limit: CgroupLimit, needed: u64, property: &str) -> CheckItem {
    let raise = format!("systemd-run --scope -p {property} scaleprof (in a container: raise its limit)");
    match limit {
        CgroupLimit::None => CheckItem::ok(topic, "no limit"),
        CgroupLimit::Is(value) => at_least(topic, Some(value), needed, raise),
        CgroupLimit::Unknown => at_least(topic, None, needed, raise),
    }
}

/// The narrowest limits on the way from this process's cgroups to their roots.
pub(crate) fn cgroup_limits() -> CgroupLimits {
    let mountinfo = machine::whole("/proc/self/mountinfo").unwrap_or_default();
    let cgroups = machine::whole("/proc/self/cgroup").unwrap_or_default();
    let narrowest = |controller: &str, names: [&str; 2]| {
        let (mount, folder) = cgroup_paths::folder_of_controller(&mountinfo, &cgroups, controller)?;
        ancestors(&mount, &folder)
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .filter_map(|path| limit_value(&machine::line(path.to_str()?)?))
            .min()
    };
    CgroupLimits {
        memory_bytes: narrowest("memory", ["memory.max", "memory.limit_in_bytes"]),
        threads: narrowest("pids", ["pids.max", "pids.max"]),
        can_be_seen: ["memory", "pids"]
            .iter()
            .any(|controller| cgroup_paths::folder_of_controller(&mountinfo, &cgroups, controller).is_some()),
    }
}

fn ancestors<'a>(mount: &'a Path, folder: &'a Path) -> impl Iterator<Item = PathBuf> + 'a {
    folder
        .ancestors()
        .take_while(move |path| path.starts_with(mount))
        .map(Path::to_path_buf)
}

/// A limit of a cgroup; `max` and version 1's near-infinite number mean none.
fn limit_value(text: &str) -> Option<u64> {
    text.parse::<u64>().ok().filter(|value| *value < (1 << 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check_item::Status;

    const MANY: Wanted = Wanted {
        connections: 2000,
        cpus: 2,
    };

    fn status(facts: &MachineFacts, cgroup: &CgroupLimits, topic: &str) -> Status {
        let items = limit_items(facts, cgroup, MANY);
        items
            .iter()
            .find(|item| item.topic.contains(topic))
            .expect("an item")
            .status
    }

    #[test]
    fn a_limit_that_may_be_raised_is_a_warning_and_one_that_may_not_is_a_lack() {
        let facts = |soft, hard| MachineFacts {
            open_files: Limit { soft, hard },
            ..MachineFacts::default()
        };
        let none = CgroupLimits::default();
        assert_eq!(status(&facts(Some(1024), Some(1 << 20)), &none, "NOFILE"), Status::Warn);
        assert_eq!(
            status(&facts(Some(1024), Some(2048)), &none, "NOFILE"),
            Status::Required
        );
        assert_eq!(status(&facts(None, None), &none, "NOFILE"), Status::Ok);
    }

    #[test]
    fn a_container_too_small_for_the_connections_is_a_lack() {
        let facts = MachineFacts::default();
        let small = CgroupLimits {
            memory_bytes: Some(1 << 30),
            threads: Some(512),
            can_be_seen: true,
        };
        assert_eq!(status(&facts, &small, "pids.max"), Status::Required);
        assert_eq!(status(&facts, &small, "memory of the cgroup"), Status::Required);
        let unlimited = CgroupLimits {
            can_be_seen: true,
            ..CgroupLimits::default()
        };
        assert_eq!(status(&facts, &unlimited, "pids.max"), Status::Ok);
    }

    #[test]
    fn no_limit_is_not_a_number() {
        assert_eq!(limit_value("max"), None);
        assert_eq!(limit_value("9223372036854771712"), None);
        assert_eq!(limit_value("1048576"), Some(1048576));
    }

    /// With /sys/fs/cgroup hidden a limit was told to be none, and what could not be read was advised to be set to less than it is.
    #[test]
    fn what_cannot_be_read_is_neither_unlimited_nor_advised_to_be_set() {
        let items = limit_items(&MachineFacts::default(), &CgroupLimits::default(), MANY);
        for topic in [
            "pids.max",
            "memory of the cgroup",
            "vm.max_map_count",
            "kernel.threads-max",
        ] {
            let item = items.iter().find(|item| item.topic.contains(topic)).expect("looked at");
            assert_eq!(item.status, Status::Warn, "{item:?}");
            assert!(item.message.contains("unreadable"), "{item:?}");
            assert!(!item.fix.as_deref().unwrap_or_default().contains("sysctl"), "{item:?}");
        }
    }
}
