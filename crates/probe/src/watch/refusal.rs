//! Why the kernel did not take the programs, and what helps.

use std::fmt;
use std::path::Path;

use libbpf_rs::ErrorKind;

use crate::cpu_facts::{chosen, kernel_version};
use crate::machine::{self, MOUNT_SYS};
use crate::privileges::Privileges;

/// The oldest kernel of which all programs load, by trying (docs/kernels.md). Vendors carry the same to older numbers.
pub(crate) const OLDEST_KERNEL: (u32, u32) = (5, 15);

/// A step that the kernel refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BpfRefusal {
    /// What was tried.
    pub doing: &'static str,
    /// What the kernel answered, in one line.
    pub answer: String,
    /// Why it did so, and what helps.
    pub explanation: String,
    /// What libbpf printed, the verifier's log included; the last lines where there are many.
    pub log: Vec<String>,
}

impl fmt::Display for BpfRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed ({}): {}", self.doing, self.answer, self.explanation)
    }
}

/// What decides whether a kernel takes programs.
#[derive(Debug, Clone)]
pub(crate) struct KernelFacts {
    pub(crate) release: String,
    pub(crate) privileges: Privileges,
    /// Whether /sys, where it describes its types, is there: a container may hide it.
    pub(crate) has_sys: bool,
    /// Whether it describes its types (BTF).
    pub(crate) has_types: bool,
    /// Whether it knows the system call at all: a container's filter may answer that it does not.
    pub(crate) has_call: bool,
    /// `none`, `integrity` or `confidentiality`; nothing where the kernel has no lockdown.
    pub(crate) lockdown: Option<String>,
}

impl KernelFacts {
    pub(crate) fn of_this_machine() -> Self {
        Self {
            release: machine::kernel_release(),
            privileges: Privileges::of_this_process(),
            has_sys: machine::has_sys(),
            has_types: Path::new("/sys/kernel/btf/vmlinux").exists(),
            has_call: knows_bpf(),
            lockdown: machine::line("/sys/kernel/security/lockdown").and_then(|text| chosen(&text).map(str::to_owned)),
        }
    }

    /// Why the kernel refused, the first reason that applies. `is_forbidden`: it said so before it looked at any program.
    pub(crate) fn explain(&self, is_forbidden: bool) -> String {
        let release = &self.release;
        let is_old = kernel_version(release).is_some_and(|version| version < OLDEST_KERNEL);
        if !self.privileges.may_load_bpf() {
            let also = match is_old {
                true => format!("; Linux {release} may be too old besides, as the programs need 5.15"),
                false => String::new(),
            };
            return format!("this needs CAP_BPF and CAP_PERFMON; {}{also}", self.privileges.fix());
        }
        if self.lockdown.as_deref() == Some("confidentiality") {
            return "the kernel is locked down against programs that read its memory; boot with lockdown=integrity or \
                    without lockdown"
                .to_owned();
        }
        if !self.has_types {
            let how = how_to_get_types(self.has_sys, release);
            return format!("the kernel's types cannot be read (no /sys/kernel/btf/vmlinux); {how}");
        }
        if is_old {
            return format!("Linux {release} does not have what the programs need; use Linux 5.15 or newer");
        }
        if !self.has_call {
            return format!(
                "no system call bpf, though Linux {release} has it: a seccomp profile of a container. Allow bpf in \
                 it, or run scaleprof on the host"
            );
        }
        if is_forbidden {
            return "a security module or a seccomp profile forbids it although the capabilities are there; \
                    ausearch -m avc, dmesg and the container's profile say which"
                .to_owned();
        }
        format!(
            "Linux {release} should load them: a bug of scaleprof. Please report it with the output of: scaleprof \
             check --verbose"
        )
    }
}

/// Asks for a command that no kernel has: one that knows the call says that it is invalid or forbidden.
fn knows_bpf() -> bool {
    const NO_COMMAND: libc::c_long = 0xffff;
    // SAFETY: no memory is given to the kernel.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, NO_COMMAND, std::ptr::null::<u8>(), 0_usize) };
    answer != -1 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOSYS)
}

/// What helps where there is no /sys/kernel/btf/vmlinux.
pub(crate) fn how_to_get_types(has_sys: bool, release: &str) -> String {
    match kernel_version(release) {
        _ if !has_sys => format!("/sys is not mounted here: {MOUNT_SYS}"),
        Some(version) if version >= OLDEST_KERNEL => format!(
            "Linux {release} has no CONFIG_DEBUG_INFO_BTF, or a container hides the file. Run scaleprof on the host"
        ),
        _ => "use Linux 5.15 or newer with CONFIG_DEBUG_INFO_BTF=y".to_owned(),
    }
}

impl BpfRefusal {
    pub(crate) fn new(doing: &'static str, error: &libbpf_rs::Error, log: Vec<String>, facts: &KernelFacts) -> Self {
        // Without privileges or types libbpf's lines only lead astray: it blames a limit, for instance.
        let is_about_programs = facts.privileges.may_load_bpf() && facts.has_types;
        Self {
            doing,
            answer: match decisive_line(&log).filter(|_| is_about_programs) {
                Some(line) => format!("{error}: {line}"),
                None => error.to_string(),
            },
            // The verifier says EACCES too, of what a program does.
            explanation: facts.explain(error.kind() == ErrorKind::PermissionDenied && !verifier_spoke(&log)),
            log,
        }
    }
}

/// Whether the kernel looked at a program.
fn verifier_spoke(log: &[String]) -> bool {
    log.iter().any(|line| line.starts_with("processed "))
}

/// The line of a log that gives the reason: the verifier's last one before its statistics, else libbpf's first.
fn decisive_line(log: &[String]) -> Option<&str> {
    let statistics = log.iter().position(|line| line.starts_with("processed "));
    let of_verifier = statistics.and_then(|at| log[..at].iter().rev().find(|line| !line.is_empty()));
    let of_libbpf = || {
        let lines = log.iter().filter_map(|line| line.strip_prefix("libbpf: "));
        // It blames the limit of locked memory, whatever the reason.
        lines
            .into_iter()
            .find(|line| !line.contains("Retrying") && !line.contains("RLIMIT_MEMLOCK"))
    };
    of_verifier.map(String::as_str).or_else(of_libbpf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(release: &str, privileges: Privileges) -> KernelFacts {
        KernelFacts {
            release: release.to_owned(),
            privileges,
            has_sys: true,
            has_types: true,
            has_call: true,
            lockdown: None,
        }
    }

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    /// What 5.15 to 6.1 said of the programs of 0.1's first months (docs/kernels.md).
    const BACK_EDGE: &str = "libbpf: prog 'on_exit': BPF program load failed: -EINVAL
libbpf: prog 'on_exit': -- BEGIN PROG LOAD LOG --
51: for (int i = 0; i < MOST_TRIES && !held; i++)
back-edge from insn 51 to 52
processed 0 insns (limit 1000000) max_states_per_insn 0 total_states 0 peak_states 0 mark_read 0
-- END PROG LOAD LOG --
libbpf: prog 'on_exit': failed to load: -EINVAL";

    #[test]
    fn the_reason_is_the_verifiers_line_before_its_statistics() {
        assert_eq!(decisive_line(&lines(BACK_EDGE)), Some("back-edge from insn 51 to 52"));
        let map = "libbpf: map 'rows': failed to create: -EINVAL\nlibbpf: failed to load object 'watch_bpf'";
        assert_eq!(
            decisive_line(&lines(map)),
            Some("map 'rows': failed to create: -EINVAL")
        );
        // Of Linux 5.4.
        let retried = "libbpf: Error in bpf_create_map_xattr(rows): -EINVAL. Retrying without BTF.\nlibbpf: map 'rows': failed to create: -EINVAL";
        assert_eq!(
            decisive_line(&lines(retried)),
            Some("map 'rows': failed to create: -EINVAL")
        );
        assert_eq!(decisive_line(&[]), None);
        let limit = "libbpf: Failed to bump RLIMIT_MEMLOCK (err = -EPERM), you might need to do it explicitly!";
        assert_eq!(decisive_line(&lines(limit)), None);
    }

    #[test]
    fn what_the_verifier_forbids_is_no_matter_of_privileges() {
        let log = "R1 unbounded memory access\nprocessed 12 insns (limit 1000000)";
        assert!(verifier_spoke(&lines(log)) && !verifier_spoke(&lines("libbpf: failed to load")));
        // What `new` makes of EACCES with such a log.
        let explanation = facts("6.1.0-50-amd64", Privileges::root()).explain(false);
        assert!(explanation.contains("report"), "{explanation}");
    }

    #[test]
    fn root_on_a_kernel_that_should_do_is_asked_for_a_report_and_not_to_become_root() {
        let explanation = facts("5.15.0-139-generic", Privileges::root()).explain(false);
        assert!(
            explanation.contains("5.15.0-139-generic") && explanation.contains("report"),
            "{explanation}"
        );
        assert!(
            !explanation.contains("sudo") && !explanation.contains("root"),
            "{explanation}"
        );
    }

    #[test]
    fn each_kernel_and_setting_gives_its_own_reason() {
        let root = || facts("6.1.0-50-amd64", Privileges::root());
        assert!(
            facts("5.10.0-32-amd64", Privileges::root())
                .explain(false)
                .contains("5.15 or newer")
        );
        assert!(
            facts("5.10.0-32-amd64", Privileges::user())
                .explain(true)
                .contains("sudo scaleprof")
        );
        let locked = KernelFacts {
            lockdown: Some("confidentiality".to_owned()),
            ..root()
        };
        assert!(locked.explain(true).contains("lockdown"));
        let without_types = KernelFacts {
            has_types: false,
            ..root()
        };
        assert!(without_types.explain(false).contains("CONFIG_DEBUG_INFO_BTF"));
        let hidden = KernelFacts {
            has_sys: false,
            has_types: false,
            ..root()
        };
        assert!(hidden.explain(false).contains(MOUNT_SYS));
        assert!(root().explain(true).contains("seccomp"));
        assert!(knows_bpf() && !root().explain(false).contains("seccomp"));
        let hidden_call = KernelFacts {
            has_call: false,
            ..root()
        };
        let hidden_call = hidden_call.explain(false);
        assert!(
            hidden_call.contains("seccomp") && !hidden_call.contains("fault"),
            "{hidden_call}"
        );
        let in_container = facts("6.1.0-50-amd64", Privileges::root_in_container()).explain(true);
        assert!(
            in_container.contains("container") && !in_container.contains("sudo"),
            "{in_container}"
        );
    }
}
