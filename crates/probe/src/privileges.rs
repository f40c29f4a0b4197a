//! What this process may ask of the kernel (capabilities(7)).

use std::io;

/// The user and the effective capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Privileges {
    pub(crate) is_root: bool,
    capabilities: u64,
}

const CAP_SYS_PTRACE: u64 = 1 << 19;
const CAP_SYS_NICE: u64 = 1 << 23;
const CAP_SYSLOG: u64 = 1 << 34;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

impl Privileges {
    pub(crate) fn of_this_process() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let users = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        let capabilities = effective_capabilities(&status).unwrap_or(0);
        Self {
            is_root: rustix::process::geteuid().is_root(),
            capabilities: if is_initial_user_namespace(&users) {
                capabilities
            } else {
                0
            },
        }
    }

    /// Whether we may look into processes of other users.
    pub(crate) fn may_look_into_processes(self) -> bool {
        self.capabilities & CAP_SYS_PTRACE != 0
    }

    /// Whether the kernel lets us load programs that watch it. Before Linux 5.8 only CAP_SYS_ADMIN did.
    pub(crate) fn may_load_bpf(self) -> bool {
        let all = CAP_BPF | CAP_PERFMON;
        self.capabilities & CAP_SYS_ADMIN != 0 || self.capabilities & all == all
    }

    /// Whether the kernel lets us count and sample the whole machine, whatever kernel.perf_event_paranoid says.
    pub(crate) fn may_count_machine(self) -> bool {
        self.capabilities & (CAP_PERFMON | CAP_SYS_ADMIN) != 0
    }

    /// How to get what is missing. Root is not advised to become root: a container took its capabilities.
    pub(crate) fn fix(self) -> &'static str {
        match self.is_root {
            true => "run scaleprof on the host, or give the container these capabilities",
            false => {
                "sudo scaleprof, or once: sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_sys_nice+ep \"$(command -v scaleprof)\""
            }
        }
    }
}

/// A capability that scaleprof uses, and what it cannot do without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    /// As setcap(8) and capabilities(7) write it.
    pub(crate) name: &'static str,
    mask: u64,
    /// What is missing then, in words that follow "without it".
    pub(crate) cost: &'static str,
}

/// All that [`Privileges::fix`] advises.
pub(crate) const USED: [Used; 5] = [
    Used {
        name: "CAP_BPF",
        mask: CAP_BPF,
        cost: "states of threads come from /proc, and waits have no call paths and no holders",
    },
    Used {
        name: "CAP_PERFMON",
        mask: CAP_PERFMON,
        cost: "states of threads come from /proc, and only processes of one's own are sampled, outside the kernel",
    },
    Used {
        name: "CAP_SYS_PTRACE",
        mask: CAP_SYS_PTRACE,
        cost: "of servers of other users neither program nor file reads and writes are known, and their functions may have no names",
    },
    Used {
        name: "CAP_SYSLOG",
        mask: CAP_SYSLOG,
        cost: "functions of the kernel have no names",
    },
    Used {
        name: "CAP_SYS_NICE",
        mask: CAP_SYS_NICE,
        cost: "a load cannot go first on CPUs that it shares, so the private server runs at nice 19",
    },
];

impl Privileges {
    /// Those of [`USED`] that this process has not. CAP_SYS_ADMIN stands for those that were split off from it (capabilities(7)).
    pub(crate) fn unavailable(self) -> Vec<Used> {
        let split_off = |used: &Used| used.mask & (CAP_BPF | CAP_PERFMON) != 0;
        let has = |used: &Used| {
            self.capabilities & used.mask != 0 || (split_off(used) && self.capabilities & CAP_SYS_ADMIN != 0)
        };
        USED.into_iter().filter(|used| !has(used)).collect()
    }
}

/// What helps where the kernel answered so; nothing where privileges are not what is missing.
pub(crate) fn remedy(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {}", how_to_get_privileges()),
        _ => String::new(),
    }
}

/// How to get what the kernel gives to root alone. Root is not advised to become root: a container took its capabilities.
pub fn how_to_get_privileges() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "run scaleprof on the host, or give the container the capability",
        false => "sudo scaleprof",
    }
}

/// Whether the text of `/proc/self/uid_map` is that of the initial user namespace: capabilities in another one load no programs.
fn is_initial_user_namespace(uid_map: &str) -> bool {
    let all: Vec<&str> = uid_map.split_ascii_whitespace().collect();
    all.is_empty() || all == ["0", "0", "4294967295"]
}

/// `CapEff` in the text of `/proc/PID/status`.
fn effective_capabilities(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
impl Privileges {
    pub(crate) fn root() -> Self {
        Self {
            is_root: true,
            capabilities: u64::MAX >> 23,
        }
    }

    /// As docker leaves it without --privileged.
    pub(crate) fn root_in_container() -> Self {
        Self {
            is_root: true,
            capabilities: 0xa804_25fb,
        }
    }

    pub(crate) fn user() -> Self {
        Self {
            is_root: false,
            capabilities: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_all_of_the_new_capabilities_or_the_old_one_load_programs() {
        let with = |capabilities| Privileges {
            is_root: false,
            capabilities,
        };
        assert!(Privileges::root().may_load_bpf());
        assert!(with(CAP_BPF | CAP_PERFMON).may_load_bpf());
        assert!(!with(CAP_BPF).may_load_bpf() && !with(CAP_PERFMON).may_load_bpf());
        assert!(!Privileges::root_in_container().may_load_bpf() && !Privileges::user().may_load_bpf());
    }

    #[test]
    fn each_capability_that_is_used_is_advised_and_missed_alone() {
        let advice = Privileges::user().fix();
        for used in USED {
            assert!(advice.contains(&used.name.to_ascii_lowercase()), "{}", used.name);
            let all_but_one = Privileges {
                is_root: false,
                capabilities: USED.iter().fold(0, |all, one| all | one.mask) & !used.mask,
            };
            let missed: Vec<&str> = all_but_one.unavailable().iter().map(|one| one.name).collect();
            assert_eq!(missed, [used.name]);
        }
        let administers = Privileges {
            is_root: false,
            capabilities: CAP_SYS_ADMIN,
        };
        assert_eq!(administers.unavailable().len(), 3);
        assert!(Privileges::root().unavailable().len() < 5 && Privileges::user().unavailable().len() == 5);
    }

    #[test]
    fn root_of_a_user_namespace_has_no_capabilities_that_count() {
        assert!(is_initial_user_namespace("         0          0 4294967295\n"));
        assert!(!is_initial_user_namespace("         0       1000          1\n"));
    }

    #[test]
    fn a_remedy_is_offered_only_for_missing_privileges() {
        const ENOENT: i32 = 2;
        const EACCES: i32 = 13;
        assert_eq!(remedy(&io::Error::from_raw_os_error(ENOENT)), "");
        assert!(remedy(&io::Error::from_raw_os_error(EACCES)).contains(how_to_get_privileges()));
    }

    #[test]
    fn effective_capabilities_are_those_of_the_fourth_line() {
        let status = "CapInh:\t0000000000000000\nCapPrm:\t000001ffffffffff\nCapEff:\t00000000a80425fb\n";
        assert_eq!(effective_capabilities(status), Some(0xa804_25fb));
        assert_eq!(effective_capabilities("Name:\tx\n"), None);
    }
}
