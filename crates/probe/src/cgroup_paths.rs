//! Where cgroups live: pure readers of `/proc/self/mountinfo`, `/proc/PID/cgroup` and of our own folder names.

use std::path::{Path, PathBuf};

/// A mounted cgroup hierarchy in which perf can filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Where it is mounted.
    pub mount: PathBuf,
    /// Which folder of the hierarchy the mount shows ("/" outside of containers).
    pub root: PathBuf,
    /// Version 2 (one hierarchy for all), or version 1 with the `perf_event` controller.
    pub version2: bool,
}

/// Finds the hierarchy that perf filters by: the version 1 mount of `perf_event` if there is one (the controller is bound
/// to it then), else version 2, where it is always on (Documentation/admin-guide/cgroup-v2.rst, "perf_event").
pub fn find_hierarchy(mountinfo: &str) -> Option<Hierarchy> {
    find_controller(mountinfo, "perf_event")
}

fn find_controller(mountinfo: &str, controller: &str) -> Option<Hierarchy> {
    let all: Vec<(Hierarchy, bool)> = mountinfo
        .lines()
        .filter_map(|line| hierarchy(line, controller))
        .collect();
    let first = all
        .iter()
        .find(|(_, wanted)| *wanted)
        .or_else(|| all.iter().find(|(h, _)| h.version2));
    first.map(|(hierarchy, _)| hierarchy.clone())
}

/// The mount of a controller and the folder in it of the process whose `/proc/PID/cgroup` is given.
pub(crate) fn folder_of_controller(mountinfo: &str, proc_cgroup: &str, controller: &str) -> Option<(PathBuf, PathBuf)> {
    let hierarchy = find_controller(mountinfo, controller)?;
    let folder = folder_in(&hierarchy, proc_cgroup, controller)?;
    Some((hierarchy.mount, folder))
}

fn hierarchy(line: &str, controller: &str) -> Option<(Hierarchy, bool)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, mount) = (place.next()?, place.next()?);
    let mut kind = kind.split(' ');
    let file_system = kind.next()?;
    let version2 = file_system == "cgroup2";
    if !version2 && file_system != "cgroup" {
        return None;
    }
    let bound = kind.nth(1)?.split(',').any(|option| option == controller);
    let hierarchy = Hierarchy {
        mount: unescape(mount).into(),
        root: unescape(root).into(),
        version2,
    };
    Some((hierarchy, !version2 && bound))
}

/// Blanks and the like stand as `\040` in mountinfo.
fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|_| byte == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &tail[3..];
            }
            None => {
                bytes.push(byte);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The folder of the cgroup a process is in, from its `/proc/PID/cgroup` (man 7 cgroups). `None` if the mount does not
/// show it.
pub fn folder_of(hierarchy: &Hierarchy, proc_cgroup: &str) -> Option<PathBuf> {
    folder_in(hierarchy, proc_cgroup, "perf_event")
}

fn folder_in(hierarchy: &Hierarchy, proc_cgroup: &str, controller: &str) -> Option<PathBuf> {
    let path = proc_cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = if hierarchy.version2 {
            number == "0" && controllers.is_empty()
        } else {
            controllers.split(',').any(|name| name == controller)
        };
        ours.then_some(path)
    })?;
    let below = Path::new(path).strip_prefix(&hierarchy.root).ok()?;
    // A process outside of our cgroup namespace shows as "/../..".
    if below
        .components()
        .any(|part| matches!(part, std::path::Component::ParentDir))
    {
        return None;
    }
    Some(hierarchy.mount.join(below))
}

/// The name of a cgroup that this program made: who made it, so that what a killed run left can be told from what a
/// living one uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnName {
    /// Process id of the scaleprof that made it.
    pub owner: u32,
    /// When that process started, in clock ticks since boot: process ids are used again.
    pub owner_start: u64,
    /// Counts the cgroups one process makes.
    pub number: u64,
}

impl std::fmt::Display for OwnName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "scaleprof-{}-{}-{}", self.owner, self.owner_start, self.number)
    }
}

/// Reads the name of a folder; `None` for one that is not ours.
pub fn parse_own_name(name: &str) -> Option<OwnName> {
    let mut fields = name.strip_prefix("scaleprof-")?.split('-');
    let own = OwnName {
        owner: fields.next()?.parse().ok()?,
        owner_start: fields.next()?.parse().ok()?,
        number: fields.next()?.parse().ok()?,
    };
    // Only a name that we would have written just so: `+1` and `01` are someone else's.
    (own.to_string() == name).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HYBRID: &str = "\
30 24 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
32 30 0:28 / /sys/fs/cgroup/unified rw,relatime shared:7 - cgroup2 cgroup2 rw
";

    #[test]
    fn version_2_is_used_unless_perf_event_is_bound_to_version_1() {
        let hierarchy = find_hierarchy(HYBRID).expect("found");
        assert_eq!(
            (hierarchy.mount.to_str(), hierarchy.version2),
            (Some("/sys/fs/cgroup/unified"), true)
        );
        let bound = format!("{HYBRID}33 30 0:29 / /sys/fs/cgroup/a\\040b rw - cgroup cgroup rw,perf_event\n");
        let hierarchy = find_hierarchy(&bound).expect("found");
        assert_eq!(
            (hierarchy.mount.to_str(), hierarchy.version2),
            (Some("/sys/fs/cgroup/a b"), false)
        );
        assert_eq!(find_hierarchy("31 30 0:27 / /c rw - cgroup cgroup rw,cpu\n"), None);
    }

    #[test]
    fn a_process_is_found_below_the_root_of_the_mount() {
        let mut hierarchy = find_hierarchy(HYBRID).expect("found");
        let text = "3:perf_event:/v1\n0::/user.slice/a:b\n";
        assert_eq!(
            folder_of(&hierarchy, text),
            Some("/sys/fs/cgroup/unified/user.slice/a:b".into())
        );
        hierarchy.root = "/user.slice".into();
        assert_eq!(folder_of(&hierarchy, text), Some("/sys/fs/cgroup/unified/a:b".into()));
        hierarchy.root = "/docker".into();
        assert_eq!(folder_of(&hierarchy, text), None);
        hierarchy.root = "/".into();
        assert_eq!(folder_of(&hierarchy, "0::/../other\n"), None);
        hierarchy.version2 = false;
        assert_eq!(folder_of(&hierarchy, text), Some("/sys/fs/cgroup/unified/v1".into()));
    }

    #[test]
    fn only_names_that_we_write_are_ours() {
        let name = OwnName {
            owner: 12,
            owner_start: 345,
            number: 0,
        };
        assert_eq!(parse_own_name("scaleprof-12-345-0"), Some(name));
        for other in [
            "scaleprof",
            "scaleprof-12-345",
            "scaleprof-12-345-0-1",
            "scaleprof-012-345-0",
            "scaleprof-x-1-2",
        ] {
            assert_eq!(parse_own_name(other), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[ -~\n\\\\]{0,200}", noise in ".{0,60}") {
            let _ = find_hierarchy(&text);
            let _ = hierarchy(&format!("1 2 0:1 {noise} {noise} rw - cgroup2 x {noise}"), "memory");
            let _ = unescape(&noise);
            let _ = parse_own_name(&noise);
            let h = Hierarchy { mount: "/m".into(), root: "/".into(), version2: true };
            let _ = folder_of(&h, &text);
            let _ = folder_of(&h, &format!("0::{noise}"));
        }

        #[test]
        fn every_name_reads_back(owner: u32, owner_start: u64, number: u64) {
            let name = OwnName { owner, owner_start, number };
            prop_assert_eq!(parse_own_name(&name.to_string()), Some(name));
        }
    }
}
