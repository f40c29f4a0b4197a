//! Programs that we run: they end when we do, and when the user says stop.

use crate::error::Error;
use crate::progress::Watcher;
use rustix::process::{Pid, Signal, kill_process_group};
use scaleprof_guard::{FOR_DOWNLOADS, with_clean_environment};
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How often a program is looked at.
const TURN: Duration = Duration::from_millis(100);

/// What a program said, and how it ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// What it complained of: its last lines on standard error, in one.
    pub(crate) fn complaint(&self) -> String {
        let lines: Vec<&str> = self
            .errors
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        match lines.as_slice() {
            [] => format!("it ended with {}", self.status),
            lines => lines.get(lines.len().saturating_sub(3)..).unwrap_or(lines).join("; "),
        }
    }
}

/// A program of this machine's, or of a tree that we unpacked, with no more of our environment than it needs.
pub(crate) fn program(path: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(path);
    with_clean_environment(&mut command, &FOR_DOWNLOADS);
    command
}

/// Lets a program end with us, however we end.
pub(crate) fn tied(command: &mut Command) -> &mut Command {
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            match libc::getppid() == parent {
                true => Ok(()),
                // We died before the signal was asked for, and nobody is left to be told.
                false => libc::_exit(1),
            }
        })
    }
}

/// Runs a program to its end, calling `turn` ten times a second with what it has printed since.
///
/// # Errors
/// It cannot be started: `program` is then missing, and `package` has it. The user said stop: it has been ended.
pub(crate) fn run(
    command: &mut Command,
    program: &'static str,
    package: &'static str,
    watcher: &mut Watcher<'_>,
    mut turn: impl FnMut(&str, &mut Watcher<'_>),
) -> Result<Ended, Error> {
    watcher.go_on()?;
    let command = tied(command)
        // With the programs that it starts, such as apt's, it is a group of its own, which is ended as one.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Error::Missing { program, package }),
        Err(error) => return Err(Error::system("start", program)(error)),
    };
    let output = gathered(child.stdout.take());
    let errors = gathered(child.stderr.take());
    let mut told = 0;
    let status = loop {
        if let Err(stopped) = watcher.go_on() {
            end(&mut child);
            return Err(stopped);
        }
        let ended = child.try_wait().map_err(Error::system("wait for", program))?;
        let all = output.text();
        turn(all.get(told..).unwrap_or_default(), watcher);
        told = all.len();
        match ended {
            Some(status) => break status,
            None => std::thread::sleep(TURN),
        }
    };
    // Who stops a service signals all its programs, and this one may end before our own flag is set.
    watcher.go_on()?;
    if matches!(status.signal(), Some(libc::SIGINT | libc::SIGTERM | libc::SIGHUP)) {
        return Err(Error::Stopped);
    }
    Ok(Ended {
        status,
        output: output.whole(),
        errors: errors.whole(),
    })
}

fn end(child: &mut Child) {
    // It may have ended by itself meanwhile; until it is waited for its group's number is nobody else's.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

/// What is read from a pipe in a thread of its own, so that the program never waits for us.
struct Gathered {
    text: std::sync::Arc<std::sync::Mutex<Vec<u8>>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

fn gathered<R: Read + Send + 'static>(pipe: Option<R>) -> Gathered {
    /// Nobody needs more of what a program prints.
    const MOST: usize = 4 << 20;
    let text = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = text.clone();
    let reader = pipe.map(|mut pipe| {
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                if kept.len() < MOST {
                    kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
                }
            }
        })
    });
    Gathered { text, reader }
}

impl Gathered {
    fn text(&self) -> String {
        let bytes = self.text.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn whole(mut self) -> String {
        if let Some(reader) = self.reader.take() {
            // It only reads; a panic in it leaves what was read.
            let _ = reader.join();
        }
        self.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_program_is_ended_when_the_user_says_stop() {
        let stop = AtomicBool::new(false);
        let mut watcher = Watcher {
            progress: &mut Silent,
            stop: &stop,
        };
        let began = std::time::Instant::now();
        let result = run(
            Command::new("sleep").arg("60"),
            "sleep",
            "coreutils",
            &mut watcher,
            |_, watcher| {
                watcher.stop.store(true, std::sync::atomic::Ordering::SeqCst);
            },
        );
        assert!(matches!(result, Err(Error::Stopped)));
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn what_a_program_started_itself_is_ended_with_it() {
        let stop = AtomicBool::new(false);
        let mut watcher = Watcher {
            progress: &mut Silent,
            stop: &stop,
        };
        let mut said = String::new();
        let mut shell = Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; wait"]);
        let result = run(&mut shell, "sh", "dash", &mut watcher, |text, watcher| {
            said.push_str(text);
            watcher
                .stop
                .store(said.ends_with('\n'), std::sync::atomic::Ordering::SeqCst);
        });
        assert!(matches!(result, Err(Error::Stopped)));
        let status = format!("/proc/{}/stat", said.trim());
        // Killed, it may be there for a moment until whoever inherited it has waited for it.
        let runs = || std::fs::read_to_string(&status).is_ok_and(|text| !text.contains(") Z "));
        let began = std::time::Instant::now();
        while runs() {
            assert!(began.elapsed() < Duration::from_secs(20), "{status} is still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_a_program_prints_comes_while_it_runs_and_whole_at_its_end() {
        let stop = AtomicBool::new(false);
        let mut watcher = Watcher {
            progress: &mut Silent,
            stop: &stop,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let flag = folder.path().join("heard");
        let mut heard = String::new();
        let mut shell = Command::new("sh");
        // It goes on once it was heard, or ten seconds later.
        let script = "echo one; for i in $(seq 1000); do [ -e \"$FLAG\" ] && break; sleep 0.01; done; \
                      [ -e \"$FLAG\" ] && echo two || echo late; echo woe >&2; exit 3";
        shell.env("FLAG", &flag).args(["-c", script]);
        let ended = run(&mut shell, "sh", "dash", &mut watcher, |text, _| {
            heard.push_str(text);
            std::fs::write(&flag, "").expect("written");
        })
        .expect("it ran");
        assert_eq!((ended.output.as_str(), ended.status.code()), ("one\ntwo\n", Some(3)));
        assert!(heard.starts_with("one\n"), "{heard}");
        assert_eq!(ended.complaint(), "woe");
        let missing = run(
            &mut Command::new("/no/such/program"),
            "nothing",
            "none",
            &mut watcher,
            |_, _| {},
        );
        assert!(matches!(missing, Err(Error::Missing { .. })));
    }
}
