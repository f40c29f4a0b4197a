//! Running a program that nobody vouches for, to hear what it says of itself.
//!
//! A server that was named or fetched is asked for its version before anything is known of it, by
//! root on a database host. So it runs as nobody, without privileges, processes of its own,
//! sockets, signals to others and bytes in files, and is ended after some time or output.

use crate::user::ServerUser;
use scaleprof_guard::with_clean_environment;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
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

/// A server says its version in some hundredths of a second, on an emulated CPU in two, and in a
/// hundred bytes.
pub(crate) const OF_A_SERVER: Limits = Limits {
    longest: Duration::from_secs(30),
    most_output: 16 << 10,
};
/// What it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) status: ExitStatus,
}

impl Said {
    /// Its last words, for an error.
    pub(crate) fn last_words(&self) -> String {
        let last = self.errors.lines().last().or(self.output.lines().last());
        last.map_or_else(|| format!("nothing, and ended with {}", self.status), str::to_owned)
    }
}

/// What a server answers that is started by this command and asked for its version.
///
/// # Errors
/// Why it says no version, in words.
pub fn version_said_by(mut command: Command) -> Result<String, String> {
    command.args(VERSION);
    let said = hear(command, OF_A_SERVER).map_err(|unheard| unheard.to_string())?;
    match said.output.contains("Ver ") {
        true => Ok(said.output),
        false => Err(said.last_words()),
    }
}

/// Without the first word the server would read /etc/my.cnf, and complain of what stands there.
pub(crate) const VERSION: [&str; 2] = ["--no-defaults", "--version"];

/// Why it did not say anything.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unheard {
    #[error("its --version printed more than {} KiB", .0 >> 10)]
    TooMuch(usize),
    #[error("its --version did not end within {} s", .0.as_secs())]
    TooLong(Duration),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Runs a program to its end and returns what it printed.
pub(crate) fn hear(mut command: Command, limits: Limits) -> Result<Said, Unheard> {
    let mut confined = Confined::new(limits.longest, asked_as(Path::new(command.get_program())));
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
    // Their threads end with the pipes, which nobody holds open when the whole group has been
    // killed.
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
    let status = loop {
        if let Some(status) = child.0.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            return Err(too_long());
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Said {
        output: text(&output),
        errors: text(&errors),
        status,
    })
}

/// Whom a program is asked as: root's choice is nobody, who has no server that it could harm; the
/// user of servers where nobody cannot reach it.
fn asked_as(program: &Path) -> Option<ServerUser> {
    let user_of_servers = ServerUser::for_this_process()?;
    let nobody = ServerUser::named("nobody").filter(|nobody| nobody.check_reach(program).is_ok());
    Some(nobody.unwrap_or(user_of_servers))
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
        // It may have left its group; it can have started nothing.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// What is done in the child between fork and exec.
struct Confined {
    parent: libc::pid_t,
    cpu_seconds: u64,
    user: Option<(libc::uid_t, libc::gid_t)>,
    filter: [libc::sock_filter; FILTER],
}

impl Confined {
    fn new(longest: Duration, user: Option<ServerUser>) -> Confined {
        Confined {
            cpu_seconds: longest.as_secs() + 1,
            parent: std::process::id() as libc::pid_t,
            user: user.map(|user| (user.uid, user.gid)),
            filter: filter(),
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
            // Capabilities of an ordinary user's that would pass to it (capabilities(7)); an old
            // kernel has none.
            let _ = libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
            limit(libc::RLIMIT_NPROC, 0)?;
            limit(libc::RLIMIT_FSIZE, 0)?;
            limit(libc::RLIMIT_CORE, 0)?;
            limit(libc::RLIMIT_NOFILE, 256)?;
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

/// Calls that are refused: sockets, by themselves or by io_uring, and what reaches other processes
/// of the same user.
const REFUSED: [libc::c_long; 10] = [
    libc::SYS_socket,
    libc::SYS_io_uring_setup,
    libc::SYS_kill,
    libc::SYS_tkill,
    libc::SYS_tgkill,
    libc::SYS_pidfd_send_signal,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_setpgid,
];

/// A filter of system calls (seccomp(2)) that refuses these and ends what makes calls of another
/// architecture.
fn filter() -> [libc::sock_filter; FILTER] {
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
    let refused = REFUSED.len() as u8;
    let mut filter = [give(libc::SECCOMP_RET_ALLOW); FILTER];
    // struct seccomp_data: nr at 0, arch at 4. The three ends stand last: allowed, refused, killed.
    filter[0] = load(4);
    filter[1] = jump(libc::BPF_JEQ, NATIVE, (0, refused + 4));
    filter[2] = load(0);
    filter[3] = jump(libc::BPF_JGE, X32, (refused + 2, 0));
    for (place, call) in REFUSED.into_iter().enumerate() {
        let to_refused = refused - place as u8;
        filter[4 + place] = jump(libc::BPF_JEQ, call as u32, (to_refused, 0));
    }
    filter[FILTER - 2] = give(libc::SECCOMP_RET_ERRNO | libc::EACCES as u32);
    filter[FILTER - 1] = give(libc::SECCOMP_RET_KILL_PROCESS);
    filter
}

const FILTER: usize = 4 + REFUSED.len() + 3;

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
        ..OF_A_SERVER
    };

    /// What a script of the shell says when it is asked, where root's user for servers can reach
    /// it.
    fn said(shell: &str, script: &str) -> Result<Said, Unheard> {
        said_within(shell, script, OF_A_SERVER)
    }

    fn said_within(shell: &str, script: &str, limits: Limits) -> Result<Said, Unheard> {
        let folder = tempfile::tempdir().expect("a folder");
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open.clone()).expect("chmod");
        let path = folder.path().join("program");
        std::fs::write(&path, format!("#!{shell}\n{script}\n")).expect("written");
        std::fs::set_permissions(&path, open).expect("chmod");
        hear(Command::new(path), limits)
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
    fn it_writes_nothing_into_files() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).expect("chmod");
        let file = folder.path().join("file");
        let tries = format!("trap '' XFSZ; echo x >{} && echo wrote; echo end", file.display());
        let said = said("/bin/sh", &tries).expect("said");
        assert!(
            said.output.contains("end") && !said.output.contains("wrote"),
            "{said:?}"
        );
        assert!(std::fs::metadata(&file).map_or(0, |file| file.len()) == 0);
    }

    #[test]
    fn it_starts_no_program() {
        let said = said("/bin/sh", "echo begin; /bin/true && echo started").expect("said");
        assert!(
            said.output.contains("begin") && !said.output.contains("started"),
            "{said:?}"
        );
    }

    #[test]
    fn it_talks_to_nobody_and_signals_nobody() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let tries =
            format!("{{ : ; }} 3<>/dev/tcp/127.0.0.1/{port} && echo talked\nkill -0 $$ && echo signalled\necho end");
        let said = said("/bin/bash", &tries).expect("said");
        assert!(said.output.contains("end"), "{said:?}");
        assert!(
            !said.output.contains("talked") && !said.output.contains("signalled"),
            "{said:?}"
        );
    }

    #[test]
    fn it_is_ended_when_it_takes_too_long_or_says_too_much() {
        let began = Instant::now();
        let endless = said_within("/bin/sh", "while :; do :; done", SHORT);
        assert!(matches!(endless, Err(Unheard::TooLong(_))), "{endless:?}");
        let talks = said("/bin/sh", "while :; do echo mysqld; done");
        assert!(matches!(talks, Err(Unheard::TooMuch(_))), "{talks:?}");
        let silent = said_within("/bin/sh", "exec >&- 2>&-; while :; do :; done", SHORT);
        assert!(matches!(silent, Err(Unheard::TooLong(_))), "{silent:?}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
