//! What a process lets others see of itself, why not more, and the command that would give it.

use std::os::unix::fs::MetadataExt as _;

use super::lack::Lack;
use crate::perf_event::paranoid;

/// Something that the kernel refused, with what it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No events of the process.
    Events(String),
    /// No events of so many of its threads.
    SomeThreads(usize, String),
    /// No time in the kernel.
    Kernel,
    /// Not which files it has mapped.
    Maps(String),
    /// Not in which system call a thread is blocked.
    SystemCalls,
}

/// Why a process may keep things to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Owner {
    /// It is ours.
    Us,
    /// It belongs to another user.
    Other(String),
    /// It was started as root and changed its user then: the kernel shows its inside to root alone.
    ClosedByUserChange,
}

/// Puts refusals into words; what this way never shows comes last.
pub(super) fn explain(process: u32, refusals: &[Refusal]) -> Vec<Lack> {
    let owner = owner_of(process);
    let mut missing: Vec<Lack> = refusals.iter().map(|refusal| explain_one(refusal, &owner)).collect();
    missing.push(Lack {
        what: "call paths of threads that wait, the locks that they wait for and who wakes them".to_owned(),
        why: "only a program inside the kernel sees a thread at the moment at which it blocks, and root alone may load one"
            .to_owned(),
        command: Some(AS_ROOT.to_owned()),
    });
    missing
}

const AS_ROOT: &str = "sudo scaleprof";

fn explain_one(refusal: &Refusal, owner: &Owner) -> Lack {
    let (what, why) = match refusal {
        Refusal::Events(answer) => ("call paths of threads on CPU".to_owned(), answer.clone()),
        Refusal::SomeThreads(threads, answer) => (format!("call paths of {threads} threads on CPU"), answer.clone()),
        Refusal::Kernel => ("call paths inside the kernel".to_owned(), String::new()),
        Refusal::Maps(answer) => ("call paths of threads on CPU".to_owned(), answer.clone()),
        Refusal::SystemCalls => {
            let what = "what threads wait for (told from the kernel's function alone)";
            (what.to_owned(), "its system calls may not be read".to_owned())
        }
    };
    let setting = |setting: &str, value: &str| Some(format!("sudo sysctl -w {setting}={value}"));
    let (why, command) = match (refusal, owner) {
        (Refusal::SomeThreads(..), _) => (why, Some("ulimit -n 1048576".to_owned())),
        (Refusal::Kernel, _) => {
            let why = format!(
                "kernel.perf_event_paranoid is {}, which leaves the kernel to root",
                paranoid()
            );
            (why, setting("kernel.perf_event_paranoid", "1"))
        }
        (_, Owner::ClosedByUserChange) => {
            let why = format!(
                "{why}: the server was started as root and changed its user (--user), so the kernel shows its inside to \
                 root alone"
            );
            (why, Some(AS_ROOT.to_owned()))
        }
        (_, Owner::Other(user)) => {
            let why = format!("{why}: the server belongs to the user {user}");
            (why, Some(format!("sudo -u {user} scaleprof")))
        }
        (Refusal::Events(_), Owner::Us) => {
            let why = format!("{why} (kernel.perf_event_paranoid is {})", paranoid());
            (why, setting("kernel.perf_event_paranoid", "2"))
        }
        (Refusal::SystemCalls, Owner::Us) => {
            let why = format!("{why}: kernel.yama.ptrace_scope bars it");
            (why, setting("kernel.yama.ptrace_scope", "0"))
        }
        (Refusal::Maps(_), Owner::Us) => (why, Some(AS_ROOT.to_owned())),
    };
    Lack { what, why, command }
}

fn owner_of(process: u32) -> Owner {
    let own = rustix::process::geteuid().as_raw();
    let file = std::fs::metadata(format!("/proc/{process}/maps")).map_or(own, |about| about.uid());
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    whose(own, file, effective_user(&status).unwrap_or(file))
}

/// `file` is the owner of the files in `/proc/PID`: the process's user, or root where the kernel keeps it closed (but not
/// of the folder itself; fs/proc/base.c, `task_dump_owner`).
fn whose(own: u32, file: u32, user: u32) -> Owner {
    match (own == user, file == user) {
        (true, true) => Owner::Us,
        (_, false) => Owner::ClosedByUserChange,
        (false, true) => Owner::Other(user_name(user)),
    }
}

/// The effective user in the text of `/proc/PID/status`.
fn effective_user(status: &str) -> Option<u32> {
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn user_name(user: u32) -> String {
    let file = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let named = file.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(user)).then(|| name.to_owned())
    });
    named.unwrap_or_else(|| format!("#{user}"))
}

/// The CPUs on which any of these threads may run.
pub(super) fn cpus_of(threads: &[u32]) -> Vec<u32> {
    let mut cpus: Vec<u32> = threads.iter().flat_map(|thread| cpus_of_thread(*thread)).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

fn cpus_of_thread(thread: u32) -> Vec<u32> {
    let Some(pid) = rustix::process::Pid::from_raw(thread as i32) else {
        return Vec::new();
    };
    let Ok(set) = rustix::thread::sched_getaffinity(Some(pid)) else {
        return Vec::new();
    };
    (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .map(|cpu| cpu as u32)
        .collect()
}

/// Raises the number of files that we may open as far as we may: each thread of the server takes one for each CPU.
pub(super) fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where it stays as it was the threads that find no room are reported.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_changed_its_user_is_told_from_one_of_another_user() {
        assert_eq!(whose(1000, 1000, 1000), Owner::Us);
        assert_eq!(whose(1000, 0, 1000), Owner::ClosedByUserChange);
        assert_eq!(whose(1000, 0, 27), Owner::ClosedByUserChange);
        assert!(matches!(whose(1000, 4_000_000, 4_000_000), Owner::Other(name) if name == "#4000000"));
    }

    #[test]
    fn every_refusal_says_what_why_and_how() {
        let owners = [Owner::Us, Owner::Other("mysql".to_owned()), Owner::ClosedByUserChange];
        let refusals = [
            Refusal::Events("Permission denied".to_owned()),
            Refusal::SomeThreads(3, "Too many open files".to_owned()),
            Refusal::Kernel,
            Refusal::Maps("Permission denied".to_owned()),
            Refusal::SystemCalls,
        ];
        for owner in &owners {
            for refusal in &refusals {
                let lack = explain_one(refusal, owner);
                assert!(
                    lack.command.is_some() && !lack.why.is_empty() && !lack.what.is_empty(),
                    "{lack:?}"
                );
            }
        }
    }

    #[test]
    fn the_effective_user_is_the_second() {
        assert_eq!(effective_user("Name:\tx\nUid:\t1\t2\t3\t4\n"), Some(2));
        assert_eq!(effective_user("Name:\tx\n"), None);
    }

    #[test]
    fn we_may_run_somewhere() {
        assert!(!cpus_of(&[std::process::id()]).is_empty());
    }
}
