//! Stopping a server in the middle of its work, and letting it go on.

use std::time::{Duration, Instant};

/// How long all threads of a server may take to stop. A thread in the middle of a write stops when the disk has answered.
const LONGEST: Duration = Duration::from_millis(100);
const LOOK: Duration = Duration::from_micros(100);

/// Stops a server under test and lets it go on (SIGSTOP and SIGCONT to its process group, which holds what its wrapper started too). It
/// knows nothing of it: its connections stay, and what it waits for comes in the meantime.
///
/// It must not be used after the server's end was looked for, when its number may be another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pauser {
    leader: i32,
}

impl Pauser {
    /// For a process that leads its group and is a child of this one.
    pub fn of(pid: u32) -> Option<Pauser> {
        // 0 and 1 would mean other groups to kill().
        let leader = i32::try_from(pid).ok().filter(|leader| *leader > 1)?;
        Some(Pauser { leader })
    }

    /// Stops it. Every thread does as soon as it is not in the middle of a system call's work: see [`Pauser::is_paused`].
    pub fn pause(self) {
        self.signal(libc::SIGSTOP);
    }

    /// Waits until all threads of the group's leader stand. False where one still does not, or there is no such process.
    pub fn is_paused(self) -> bool {
        let deadline = Instant::now() + LONGEST;
        loop {
            // SAFETY: all-zero bytes are a valid siginfo_t, which the call fills; nothing is reaped, as WEXITED is not asked for.
            let stopped = unsafe {
                let mut found: libc::siginfo_t = std::mem::zeroed();
                let flags = libc::WSTOPPED | libc::WNOHANG;
                let leader = self.leader as libc::id_t;
                (libc::waitid(libc::P_PID, leader, &mut found, flags) == 0).then(|| found.si_pid() == self.leader)
            };
            match stopped {
                Some(true) => return true,
                Some(false) if Instant::now() < deadline => std::thread::sleep(LOOK),
                _ => return false,
            }
        }
    }

    /// Lets it go on.
    pub fn go_on(self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(self, signal: i32) {
        // SAFETY: kill has no memory effects.
        unsafe {
            libc::kill(-self.leader, signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_paused_process_and_its_helpers_do_nothing_until_they_go_on() {
        let mut child = Command::new("sh")
            .args(["-c", "while :; do :; done & while :; do :; done"])
            .process_group(0)
            .spawn()
            .expect("a shell");
        let pauser = Pauser::of(child.id()).expect("a number");
        let ticks = || {
            let helpers =
                std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap_or_default();
            let all = helpers
                .split_whitespace()
                .map(str::to_owned)
                .chain([child.id().to_string()]);
            all.map(|pid| {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
                let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
                fields[11].parse::<u64>().expect("ticks")
            })
            .collect::<Vec<_>>()
        };
        let wait_until_they_work = |than: &[u64]| {
            let deadline = Instant::now() + Duration::from_secs(20);
            while ticks().len() < 2 || !ticks().iter().zip(than).all(|(now, then)| now > then) {
                assert!(Instant::now() < deadline, "they do nothing");
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        wait_until_they_work(&[0, 0]);
        pauser.pause();
        // Who waits for a CPU stops when he gets one.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !pauser.is_paused() {
            assert!(Instant::now() < deadline, "it does not stand still");
        }
        std::thread::sleep(Duration::from_millis(500));
        let before = ticks();
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(ticks(), before);
        pauser.go_on();
        wait_until_they_work(&before);
        // It can be killed while it stands.
        pauser.pause();
        pauser.signal(libc::SIGKILL);
        child.wait().expect("it ends");
        assert!(!pauser.is_paused());
        assert_eq!(Pauser::of(1), None);
    }
}
