//! How much memory there is for the server, and how much it will want.

use crate::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// Smallest buffer pool that we choose, bytes.
pub const SMALLEST_BUFFER_POOL: u64 = 128 << 20;

/// Resident bytes that one connection costs the server at least: stack, network buffer, THD, and what a sort or a
/// prepared statement takes. Between 250 and 500 KiB on the servers we know.
const PER_CONNECTION: u64 = 400 << 10;

/// Resident bytes of a server without connections or data: 200 MB for MariaDB, 400 to 450 MB for MySQL.
const SERVER_ITSELF: u64 = 400 << 20;

/// Bytes of memory that can be had without swapping: what the machine has available, or less where a control group
/// limits us.
pub fn available() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| mem_available(&text))
        .unwrap_or(1 << 30);
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    limits(&groups)
        .into_iter()
        .filter_map(|(limit, usage)| {
            let read = |path: &Path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
            Some(read(&limit)?.saturating_sub(read(&usage).unwrap_or(0)))
        })
        .fold(machine, u64::min)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib << 10)
}

/// The files that may hold the limit and the usage of our control group and those above it.
fn limits(proc_self_cgroup: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut files = Vec::new();
    for line in proc_self_cgroup.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (mount, limit, usage) = if controllers.is_empty() {
            ("/sys/fs/cgroup", "memory.max", "memory.current")
        } else if controllers.split(',').any(|name| name == "memory") {
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
            )
        } else {
            continue;
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = Path::new(mount).join(group);
            files.push((folder.join(limit), folder.join(usage)));
        }
    }
    files
}

/// Bytes of the buffer pool for this memory and dataset: twice the data and 1 GiB for what writing adds (undo logs that
/// purge has not reached, split pages), so that the load measures the server and not the disk, but at most half of the
/// memory. With 128 MiB for 49 MiB of data, MySQL 5.6.14 read 11 000 pages from disk in one rung of updates. With the
/// dataset unknown, 40 % of the memory.
pub fn buffer_pool(available: u64, dataset: Option<u64>) -> u64 {
    const STEP: u64 = 128 << 20; // the server's own chunk size: it rounds up to it
    let wanted = match dataset {
        Some(bytes) => (bytes.saturating_mul(2).saturating_add(1 << 30)).min(available / 2),
        None => available / 5 * 2,
    };
    (wanted / STEP * STEP
        + if wanted % STEP == 0 || dataset.is_none() {
            0
        } else {
            STEP
        })
    .max(SMALLEST_BUFFER_POOL)
}

/// Bytes that a server will want with so many connections and so much of its buffer pool filled.
pub fn wanted(connections: u32, filled: u64) -> u64 {
    SERVER_ITSELF + u64::from(connections) * PER_CONNECTION + filled
}

/// An error when this many connections and the part of the buffer pool that will fill do not fit into the memory.
/// The kernel would otherwise kill the server in the middle of a rung.
pub fn check(connections: u32, buffer_pool: u64, dataset: Option<u64>) -> Result<(), Error> {
    check_all(1, connections, buffer_pool, dataset)
}

/// The same for so many servers, each with as many connections.
pub fn check_all(servers: u32, connections: u32, buffer_pool: u64, dataset: Option<u64>) -> Result<(), Error> {
    let available = available();
    let filled = dataset.map_or(0, |bytes| bytes.min(buffer_pool));
    let needed = u64::from(servers) * wanted(connections, filled);
    if needed > available {
        return Err(Error::NoMemory {
            servers,
            connections,
            needed_mib: needed >> 20,
            available_mib: available >> 20,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_the_kernels_estimate() {
        let text = "MemTotal:       24684000 kB\nMemFree:  1 kB\nMemAvailable:   24000000 kB\n";
        assert_eq!(mem_available(text), Some(24_000_000 << 10));
        assert!(available() > 0);
    }

    #[test]
    fn looks_at_the_control_group_and_those_above() {
        let files = limits("12:cpu,cpuacct:/a\n4:memory:/docker/abc\n0::/user.slice/x.scope\n");
        let names: Vec<String> = files.iter().map(|(limit, _)| limit.display().to_string()).collect();
        assert_eq!(
            names,
            [
                "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/user.slice/x.scope/memory.max",
                "/sys/fs/cgroup/user.slice/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
    }

    #[test]
    fn an_absurd_number_of_connections_is_refused_before_the_kernel_kills() {
        let error = check(u32::MAX, 1 << 30, None).expect_err("no machine has this");
        assert!(error.to_string().contains("fewer connections"), "{error}");
    }

    proptest! {
        #[test]
        fn the_pool_holds_the_data_or_fills_half_of_the_memory(
            available in (1u64 << 30)..(1 << 45), dataset in 0u64..(1 << 45)
        ) {
            let pool = buffer_pool(available, Some(dataset));
            prop_assert!(pool >= SMALLEST_BUFFER_POOL);
            prop_assert_eq!(pool % (128 << 20), 0);
            prop_assert!(pool > dataset || pool >= available / 2);
            prop_assert!(pool <= available / 2 + (128 << 20));
        }
    }
}
