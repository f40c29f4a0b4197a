//! Running a program that nobody vouches for, to hear what it says of itself.
//!
//! A server that was named or fetched is asked for its version before anything is known of it, by root on a
//! database host. So it runs as the user that servers run as, cannot talk to anybody, start programs or write
//! files, and is ended after some time or output.

use crate::user::ServerUser;
use rustix::process::{Pid, Signal, kill_process_group};
use scaleprof_guard::with_clean_environment;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The most that a program may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Time.
    pub(crate) longest: Duration,
    /// Bytes on each of its outputs.
    pub(crate) most_output: usize,
}

/// A server says its version in some hundredths of a second, on an emulated CPU in two, and in a hundred bytes.
pub(crate) const OF_A_SERVER: Limits = Limits {
    longest: Duration::from_secs(30),
    most_output: 16 << 10,
};
/// The most address space: several times the largest server's.
const MOST_MEMORY: u64 = 4 << 30;

/// What it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// Why it did not say anything.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unheard {
    #[error("asked for its --version it printed more than {} KiB", .0 >> 10)]
    TooMuch(usize),
    #[error("asked for its --version it did not end within {} s", .0.as_secs())]
    TooLong(Duration),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Runs a program to its end and returns what it printed.
pub(crate) fn hear(mut command: Command, limits: Limits) -> Result<Said, Unheard> {
    let mut confined = Confined::new(limits.longest);
    with_clean_environment(&mut command, &[])
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: `apply` only makes system calls on memory that was laid out before the fork.
    unsafe { command.pre_exec(move || confined.apply()) };
    let mut child = Running(command.spawn()?);
    let (told, parts) = channel();
    // Their threads end with the pipes, which nobody holds open when the whole group has been killed.
    read_apart(child.0.stdout.take(), Part::Output, told.clone());
    read_apart(child.0.stderr.take(), Part::Errors, told);
    let deadline = Instant::now() + limits.longest;
    let too_long = || Unheard::TooLong(limits.longest);
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    loop {
        match parts.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok((part, bytes)) => {
                let all = match part {
                    Part::Output => &mut output,
                    Part::Errors => &mut errors,
                };
                all.extend_from_slice(&bytes);
                if all.len() > limits.most_output {
                    return Err(Unheard::TooMuch(limits.most_output));
                }
            }
            Err(RecvTimeoutError::Timeout) => return Err(too_long()),
            // Both outputs are closed.
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    while child.0.try_wait()?.is_none() {
        if Instant::now() >= deadline {
            return Err(too_long());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said {
        output: text(&output),
        errors: text(&errors),
    })
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Output,
    Errors,
}

fn read_apart(pipe: Option<impl Read + Send + 'static>, part: Part, told: Sender<(Part, Vec<u8>)>) {
    let Some(mut pipe) = pipe else { return };
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            // Nobody listens any more when it has said too much.
            if told.send((part, buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
}

/// Killed with its group and waited for when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Until it is waited for, the group's number is nobody else's.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// What is done in the child between fork and exec.
struct Confined {
    parent: libc::pid_t,
    cpu_seconds: u64,
    user: Option<(libc::uid_t, libc::gid_t)>,
    filter: [libc::sock_filter; 9],
}

impl Confined {
    fn new(longest: Duration) -> Confined {
        Confined {
            cpu_seconds: longest.as_secs() + 1,
            parent: std::process::id() as libc::pid_t,
            user: ServerUser::for_this_process().map(|user| (user.uid, user.gid)),
            filter: no_sockets(),
        }
    }

    fn apply(&mut self) -> io::Result<()> {
        let check = |result: libc::c_int| match result {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        };
        let limit = |what, most: u64| {
            let limit = libc::rlimit {
                rlim_cur: most,
                rlim_max: most,
            };
            // SAFETY: the kernel reads `limit`.
            check(unsafe { libc::setrlimit(what, &raw const limit) })
        };
        // SAFETY: plain system calls on memory owned by `self` or on this stack.
        unsafe {
            if let Some((uid, gid)) = self.user {
                check(libc::setgroups(0, std::ptr::null()))?;
                check(libc::setgid(gid))?;
                check(libc::setuid(uid))?;
            }
            // After the change of user, which clears the signal and counts the user's processes.
            check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
            if libc::getppid() != self.parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH)); // we died before it was set
            }
            limit(libc::RLIMIT_NPROC, 0)?;
            limit(libc::RLIMIT_FSIZE, 0)?;
            limit(libc::RLIMIT_CORE, 0)?;
            limit(libc::RLIMIT_NOFILE, 256)?;
            limit(libc::RLIMIT_AS, MOST_MEMORY)?;
            limit(libc::RLIMIT_CPU, self.cpu_seconds)?;
            check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
            let program = libc::sock_fprog {
                len: self.filter.len() as libc::c_ushort,
                filter: self.filter.as_mut_ptr(),
            };
            check(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ))
        }
    }
}

/// A filter of system calls (seccomp(2)) that refuses to make sockets, by itself or by io_uring, and ends what makes calls of
/// another architecture.
fn no_sockets() -> [libc::sock_filter; 9] {
    const NATIVE: u32 = if cfg!(target_arch = "aarch64") {
        0xc000_00b7 // AUDIT_ARCH_AARCH64
    } else {
        0xc000_003e // AUDIT_ARCH_X86_64
    };
    /// Calls of x32, which have the architecture of x86-64.
    const X32: u32 = 0x4000_0000;
    let load = |offset: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset, (0, 0));
    let jump = |how: u32, value: u32, to: (u8, u8)| step(libc::BPF_JMP | how | libc::BPF_K, value, to);
    let give = |what: u32| step(libc::BPF_RET | libc::BPF_K, what, (0, 0));
    // struct seccomp_data: nr at 0, arch at 4.
    [
        load(4),
        jump(libc::BPF_JEQ, NATIVE, (0, 6)),
        load(0),
        jump(libc::BPF_JGE, X32, (4, 0)),
        jump(libc::BPF_JEQ, libc::SYS_socket as u32, (2, 0)),
        jump(libc::BPF_JEQ, libc::SYS_io_uring_setup as u32, (1, 0)),
        give(libc::SECCOMP_RET_ALLOW),
        give(libc::SECCOMP_RET_ERRNO | libc::EACCES as u32),
        give(libc::SECCOMP_RET_KILL_PROCESS),
    ]
}

fn step(code: u32, value: u32, (if_true, if_false): (u8, u8)) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: if_true,
        jf: if_false,
        k: value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SHORT: Limits = Limits {
        longest: Duration::from_secs(2),
        most_output: 16 << 10,
    };

    /// What a script of the shell says when it is asked, where root's user for servers can reach it.
    fn said(shell: &str, script: &str) -> Result<Said, Unheard> {
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open.clone()).expect("chmod");
        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!{shell}\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, open).expect("chmod");
        hear(Command::new(path), SHORT)
    }

    #[test]
    fn it_runs_as_another_user_than_root_and_can_gain_no_privilege() {
        let said = said(
            "/bin/sh",
            "while read -r line; do echo \"$line\"; done </proc/self/status",
        )
        .expect("said");
        let field = |name: &str| {
            let line = said
                .output
                .lines()
                .find(|line| line.starts_with(name))
                .expect("in status");
            line[name.len()..]
                .split_whitespace()
                .next()
                .expect("a value")
                .to_owned()
        };
        assert_ne!(field("Uid:"), "0", "{}", said.output);
        assert_eq!(field("NoNewPrivs:"), "1");
        assert_eq!(field("Seccomp:"), "2");
    }

    #[test]
    fn it_sees_no_secret_of_ours() {
        assert!(
            std::env::vars().any(|(name, _)| name.starts_with("CARGO_")),
            "cargo's stand for them"
        );
        let said = said("/bin/sh", "set").expect("said");
        assert!(
            said.output.contains("PATH=") && !said.output.contains("CARGO_"),
            "{}",
            said.output
        );
    }

    #[test]
    fn it_writes_no_file_starts_no_program_and_talks_to_nobody() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let file = std::env::temp_dir().join(format!("scaleprof-confined-{port}"));
        let tries = format!(
            "echo x 2>/dev/null >{} && echo wrote\n/bin/true && echo started\nexec 3<>/dev/tcp/127.0.0.1/{port} && echo talked\necho end",
            file.display()
        );
        let said = said("/bin/bash", &tries).expect("said");
        let _ = std::fs::remove_file(file);
        assert!(
            !said.output.contains("started") && !said.output.contains("talked"),
            "{said:?}"
        );
        assert!(!said.output.contains("wrote"), "{said:?}");
    }

    #[test]
    fn it_is_ended_when_it_takes_too_long_or_says_too_much() {
        let began = Instant::now();
        let endless = said("/bin/sh", "while :; do :; done");
        assert!(matches!(endless, Err(Unheard::TooLong(_))), "{endless:?}");
        let talks = said("/bin/sh", "while :; do echo mysqld; done");
        assert!(matches!(talks, Err(Unheard::TooMuch(_))), "{talks:?}");
        let silent = said("/bin/sh", "exec >&- 2>&-; while :; do :; done");
        assert!(matches!(silent, Err(Unheard::TooLong(_))), "{silent:?}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
