//! What a process lets others see of itself, why not more, and the command that would give it.

use std::os::unix::fs::MetadataExt as _;

use super::lack::Lack;
use crate::error::ProbeError;
use crate::perf_event::paranoid;
use crate::privileges::Privileges;

/// Something that the kernel refused, with what it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No events of the process.
    Events(Answer),
    /// No events of so many of its threads.
    SomeThreads(usize, String),
    /// No time in the kernel.
    Kernel,
    /// Not which files it has mapped.
    Maps(Answer),
    /// Not in which system call a thread is blocked.
    SystemCalls,
}

/// What the kernel answered. Only EACCES and EPERM are about who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    text: String,
    code: Option<i32>,
    is_forbidden: bool,
}

impl From<std::io::Error> for Answer {
    fn from(error: std::io::Error) -> Self {
        Self {
            is_forbidden: error.kind() == std::io::ErrorKind::PermissionDenied,
            code: error.raw_os_error(),
            text: error.to_string(),
        }
    }
}

impl From<ProbeError> for Answer {
    fn from(error: ProbeError) -> Self {
        match error {
            ProbeError::Read { source, .. } | ProbeError::NoProcess { source, .. } => source.into(),
            other => Self {
                text: other.to_string(),
                code: None,
                is_forbidden: false,
            },
        }
    }
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

/// Puts refusals into words.
pub(super) fn explain(process: u32, refusals: &[Refusal]) -> Vec<Lack> {
    let owner = owner_of(process);
    let privileges = Privileges::of_this_process();
    refusals
        .iter()
        .map(|refusal| explain_one(refusal, &owner, privileges))
        .collect()
}

fn explain_one(refusal: &Refusal, owner: &Owner, privileges: Privileges) -> Lack {
    let setting = |setting: &str, value: &str| Some(format!("sudo sysctl -w {setting}={value}"));
    let stacks = "call paths of threads on CPU".to_owned();
    let (what, why, command) = match refusal {
        Refusal::SomeThreads(threads, answer) => (
            format!("call paths of {threads} threads on CPU"),
            answer.clone(),
            Some("ulimit -n 1048576".to_owned()),
        ),
        Refusal::Kernel => (
            "call paths inside the kernel".to_owned(),
            format!(
                "kernel.perf_event_paranoid is {}, which leaves the kernel to root",
                paranoid()
            ),
            setting("kernel.perf_event_paranoid", "1"),
        ),
        Refusal::Events(answer) | Refusal::Maps(answer) if !answer.is_forbidden => {
            let (why, command) = unexpected(answer);
            (stacks, why, command)
        }
        Refusal::Events(answer) => {
            let (why, command) = closed(&answer.text, owner, privileges).unwrap_or_else(|| {
                let why = format!("{} (kernel.perf_event_paranoid is {})", answer.text, paranoid());
                // With 2 everybody may sample what is theirs: something else forbids it.
                let bars = paranoid().parse::<i32>().is_ok_and(|level| level > 2);
                (why, setting("kernel.perf_event_paranoid", "2").filter(|_| bars))
            });
            (stacks, why, command)
        }
        Refusal::Maps(answer) => {
            let (why, command) = closed(&answer.text, owner, privileges).unwrap_or_else(|| (answer.text.clone(), None));
            (stacks, why, command)
        }
        Refusal::SystemCalls => {
            let what = "what threads wait for (only the kernel's function is known)".to_owned();
            let answer = "its system calls may not be read";
            let (why, command) = closed(answer, owner, privileges).unwrap_or_else(|| {
                let why = format!("{answer}: kernel.yama.ptrace_scope bars it");
                (why, setting("kernel.yama.ptrace_scope", "0"))
            });
            (what, why, command)
        }
    };
    Lack { what, why, command }
}

/// The kernel keeps a process closed to us: why, and what opens it. Nothing where it is our own.
fn closed(answer: &str, owner: &Owner, privileges: Privileges) -> Option<(String, Option<String>)> {
    match owner {
        Owner::Us => None,
        _ if privileges.is_root => {
            let why = match privileges.may_look_into_processes() {
                true => "a security module, a seccomp profile or lockdown forbids it",
                false => "root has no CAP_SYS_PTRACE here, as in a container",
            };
            Some((format!("{answer}: {why}"), None))
        }
        Owner::ClosedByUserChange => Some((
            format!(
                "{answer}: the server was started as root and changed its user (--user), so only root may read its \
                 memory"
            ),
            Some("sudo scaleprof".to_owned()),
        )),
        Owner::Other(user) if user == "root" => Some((
            format!("{answer}: the server belongs to root"),
            Some("sudo scaleprof".to_owned()),
        )),
        Owner::Other(user) => Some((
            format!("{answer}: the server belongs to the user {user}"),
            // A number without a name begins with what is a comment to the shell.
            Some(match user.starts_with('#') {
                true => format!("sudo -u '{user}' scaleprof"),
                false => format!("sudo -u {user} scaleprof"),
            }),
        )),
    }
}

/// An answer that has nothing to do with who asks.
fn unexpected(answer: &Answer) -> (String, Option<String>) {
    let text = &answer.text;
    match answer.code {
        Some(libc::EMFILE | libc::ENFILE) => (text.clone(), Some("ulimit -n 1048576".to_owned())),
        Some(libc::ESRCH | libc::ENOENT) => (format!("{text}: the process has ended"), None),
        Some(libc::ENOSYS) => (
            format!("{text}: the kernel has no perf events, or a seccomp profile hides them"),
            None,
        ),
        _ => {
            let release = crate::machine::kernel_release();
            (
                format!("{text}; Linux {release} should allow it: please report this"),
                None,
            )
        }
    }
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

    const EPERM: i32 = 1;
    const EINVAL: i32 = 22;

    fn answer(code: i32) -> Answer {
        std::io::Error::from_raw_os_error(code).into()
    }

    fn owners() -> [Owner; 3] {
        [Owner::Us, Owner::Other("mysql".to_owned()), Owner::ClosedByUserChange]
    }

    #[test]
    fn every_refusal_says_what_and_why_and_to_users_how() {
        let refusals = [
            Refusal::Events(answer(EPERM)),
            Refusal::SomeThreads(3, "Too many open files".to_owned()),
            Refusal::Kernel,
            Refusal::SystemCalls,
        ];
        for owner in &owners() {
            for refusal in &refusals {
                let missing = explain_one(refusal, owner, Privileges::user());
                assert!(!missing.why.is_empty() && !missing.what.is_empty(), "{missing:?}");
                // Of one's own server the command depends on this machine's setting.
                let depends = *owner == Owner::Us && matches!(refusal, Refusal::Events(_));
                assert!(missing.command.is_some() || depends, "{missing:?}");
            }
        }
    }

    #[test]
    fn root_is_not_advised_to_become_root_or_another_user() {
        for owner in &owners() {
            for refusal in [
                Refusal::Events(answer(EPERM)),
                Refusal::Maps(answer(EPERM)),
                Refusal::SystemCalls,
            ] {
                let missing = explain_one(&refusal, owner, Privileges::root());
                let text = format!("{} {}", missing.why, missing.command.unwrap_or_default());
                assert!(!text.contains("sudo -u") && !text.contains("sudo scaleprof"), "{text}");
                assert!(!text.contains("only root") && !text.contains("belongs to"), "{text}");
            }
        }
    }

    /// Linux 5.4 to 5.12 said EINVAL to a flag that they do not know, and the server's user was blamed.
    #[test]
    fn nobody_is_blamed_for_what_is_not_about_users() {
        for owner in &owners() {
            for privileges in [Privileges::user(), Privileges::root()] {
                let missing = explain_one(&Refusal::Events(answer(EINVAL)), owner, privileges);
                assert!(
                    missing.why.contains("report") && missing.command.is_none(),
                    "{missing:?}"
                );
                assert!(!missing.why.contains("user"), "{missing:?}");
                let full = explain_one(&Refusal::Events(answer(libc::EMFILE)), owner, privileges);
                assert!(full.command.is_some_and(|command| command.contains("ulimit")));
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
