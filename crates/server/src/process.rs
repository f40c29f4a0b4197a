//! The server's process: started with nothing inherited that matters, watched, and gone when we are.

use crate::before_exec::BeforeExec;
use crate::cpu_set::CpuSet;
use crate::death::Death;
use crate::error::Error;
use crate::error_log::{self, Reason};
use crate::surroundings::Surroundings;
use crate::user::ServerUser;
use scaleprof_guard::with_clean_environment;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How to start a server.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The executable.
    pub binary: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its working folder.
    pub folder: PathBuf,
    /// A file for its standard input; nothing if none.
    pub input: Option<PathBuf>,
    /// The file that its messages are appended to.
    pub error_log: PathBuf,
    /// Who it runs as, if not as we do.
    pub user: Option<ServerUser>,
    /// The CPUs it may use.
    pub cpus: Option<CpuSet>,
    /// The NUMA nodes its memory is bound to.
    pub memory_nodes: Option<Vec<u32>>,
    /// Its nice value, where it is not ours.
    pub nice: Option<i32>,
    /// What it is started with beside its arguments.
    pub surroundings: Surroundings,
}

impl Launch {
    /// The server's command line behind its wrapper's.
    fn command(&self) -> Command {
        let mut command = match self.surroundings.wrapper.split_first() {
            None => Command::new(&self.binary),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(&self.binary);
                command
            }
        };
        command.args(&self.arguments);
        command
    }
}

/// Lines of the log that an error quotes.
const LOG_LINES: usize = 12;

/// A server that was started. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    error_log: PathBuf,
    log_start: u64,
    oom_kills: u64,
    death: Option<Death>,
}

impl ServerProcess {
    /// Starts the server as a direct child, in a process group of its own so that a ^C on the terminal reaches
    /// only us, and bound to die with us.
    pub fn start(launch: &Launch) -> Result<Self, Error> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(&launch.error_log)
            .map_err(Error::system("open the error log", &launch.error_log))?;
        if let Some(user) = &launch.user {
            user.own(&launch.error_log)?; // the server opens it once more, as itself
        }
        let log_start = log
            .metadata()
            .map_err(Error::system("look at", &launch.error_log))?
            .len();
        let log_for_stdout = log.try_clone().map_err(Error::system("open", &launch.error_log))?;
        let input = match &launch.input {
            Some(path) => Stdio::from(File::open(path).map_err(Error::system("open", path))?),
            None => Stdio::null(),
        };
        let mut command = launch.command();
        // Root's passwords would stand in the variables of a process of another user's.
        with_clean_environment(&mut command, &[])
            .current_dir(&launch.folder)
            .process_group(0)
            .stdin(input)
            .stdout(log_for_stdout)
            .stderr(log)
            .envs(&launch.surroundings.environment);
        let mut before_exec = BeforeExec::new(
            open_files_limit(),
            launch.cpus.as_ref(),
            launch.memory_nodes.as_deref(),
            launch.nice,
            launch.user.as_ref(),
        );
        // SAFETY: `apply` only makes system calls on memory that was laid out before the fork.
        unsafe { command.pre_exec(move || before_exec.apply()) };
        let oom_kills = oom_kills();
        let started = PathBuf::from(command.get_program());
        let child = spawn_from_lasting_thread(command).map_err(Error::system("start", &started))?;
        Ok(ServerProcess {
            child,
            error_log: launch.error_log.clone(),
            log_start,
            oom_kills,
            death: None,
        })
    }

    /// Its process id, which is its process group's too.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Looks, without waiting, whether the server has died, and how.
    pub fn watch(&mut self) -> Option<&Death> {
        if self.death.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.death = Some(self.explain(status));
        }
        self.death.as_ref()
    }

    /// Waits until it has died, at most this long.
    pub fn wait(&mut self, longest: Duration) -> Option<&Death> {
        let deadline = Instant::now() + longest;
        let mut pause = Duration::from_millis(1);
        while self.watch().is_none() && Instant::now() < deadline {
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
        self.death.as_ref()
    }

    /// Waits until it has ended, at most this long, and kills it then, or as soon as it waits for room on the disk.
    pub fn wait_for_end(&mut self, longest: Duration) -> Death {
        let deadline = Instant::now() + longest;
        while Instant::now() < deadline {
            if let Some(death) = self.wait(Duration::from_secs(1)) {
                return death.clone();
            }
            if self.complains_of_full_disk() {
                break;
            }
        }
        self.stop_hard()
    }

    /// Asks it to shut down cleanly, and kills it after the deadline. Returns how it ended: an exit code of 0 is a
    /// clean end.
    pub fn stop(&mut self, longest: Duration) -> Death {
        self.signal(libc::SIGTERM);
        if let Some(death) = self.wait(longest) {
            return death.clone();
        }
        self.stop_hard()
    }

    /// Kills it, for data that is thrown away anyway.
    pub fn stop_hard(&mut self) -> Death {
        self.signal(libc::SIGKILL);
        loop {
            // A process in the middle of a write cannot be killed before the disk answers.
            if let Some(death) = self.wait(Duration::from_secs(60)) {
                return death.clone();
            }
        }
    }

    fn signal(&mut self, signal: i32) {
        if self.watch().is_none()
            && let Ok(pid) = i32::try_from(self.pid())
        {
            // The child is not reaped, so the number is still its own, and the group holds its helpers.
            // SAFETY: kill has no memory effects.
            unsafe {
                libc::kill(-pid, signal);
            }
        }
    }

    fn explain(&self, status: ExitStatus) -> Death {
        let end = error_log::read_end(&self.error_log, self.log_start, LOG_LINES);
        let killed_by_kernel = status.signal() == Some(libc::SIGKILL) && oom_kills() > self.oom_kills;
        let reason = if killed_by_kernel {
            Some((
                Reason::NoMemory,
                "nothing; the kernel's out-of-memory killer ended it".to_owned(),
            ))
        } else {
            match end.reason {
                // The log may be on the full disk itself, and what follows from a full disk has many names.
                None | Some((Reason::Crash, _)) if self.disk_is_full() => {
                    let said = end.reason.map_or_else(|| "nothing".to_owned(), |(_, line)| line);
                    Some((Reason::DiskFull, said))
                }
                other => other,
            }
        };
        Death {
            exit_code: status.code(),
            signal: status.signal(),
            reason,
            log: end.lines,
        }
    }

    /// Whether its error log complains of a full disk. A server may live on: for its system tables it then waits,
    /// for minutes and longer, "for someone to free space".
    pub fn complains_of_full_disk(&self) -> bool {
        let reason = error_log::read_end(&self.error_log, self.log_start, LOG_LINES).reason;
        matches!(reason, Some((Reason::DiskFull, _)))
    }

    fn disk_is_full(&self) -> bool {
        let folder = self.error_log.parent().unwrap_or(Path::new("/"));
        crate::work_folder::free_space(folder).is_ok_and(|free| free < 1 << 20)
    }

    /// The last lines of the error log of this start.
    pub fn log_end(&self) -> String {
        error_log::read_end(&self.error_log, self.log_start, LOG_LINES)
            .lines
            .join("\n")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if self.watch().is_none() {
            self.signal(libc::SIGKILL);
            self.wait(Duration::from_secs(30));
        }
    }
}

/// How often the kernel has killed a process for lack of memory since it started.
fn oom_kills() -> u64 {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// The most files that a server started by us may open.
pub fn open_files_limit() -> u64 {
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .maximum
        .unwrap_or(u64::MAX);
    // 1048576 (fs.nr_open) is as high as it goes on most machines; old servers allocate memory for each.
    let most = if may_raise_limits() { 1 << 20 } else { hard };
    let kernel = fs::read_to_string("/proc/sys/fs/nr_open")
        .ok()
        .and_then(|text| text.trim().parse().ok());
    most.min(kernel.unwrap_or(1 << 20)).min(1 << 20)
}

/// Whether we have CAP_SYS_RESOURCE, which root of a container often has not.
fn may_raise_limits() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & (1 << CAP_SYS_RESOURCE) != 0)
}

type Job = (Command, Sender<io::Result<Child>>);

/// The kernel sends PR_SET_PDEATHSIG when the *thread* that forked ends. So all servers are forked by one thread
/// that lasts as long as this process, whichever thread asks.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Option<Sender<Job>>>> = OnceLock::new();
    let ended = || io::Error::other("the thread that starts servers has ended");
    let jobs = SPAWNER
        .get_or_init(|| {
            let (sender, jobs) = channel::<Job>();
            let thread = std::thread::Builder::new()
                .name("server-spawner".to_owned())
                .spawn(move || {
                    for (mut command, answer) in jobs {
                        let _ = answer.send(command.spawn());
                    }
                });
            Mutex::new(thread.is_ok().then_some(sender))
        })
        .lock()
        .map_err(|_| ended())?
        .clone()
        .ok_or_else(ended)?;
    let (sender, answer) = channel();
    jobs.send((command, sender)).map_err(|_| ended())?;
    answer.recv().map_err(|_| ended())?
}

/// When a process was started, in clock ticks since boot: with its id, it names a process for good.
pub fn start_time(pid: u32) -> Option<u64> {
    let (_, start) = state_and_start_time(pid)?;
    Some(start)
}

/// A process's state letter and start time.
pub(crate) fn state_and_start_time(pid: u32) -> Option<(char, u64)> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    // The command's name may hold spaces and brackets; the last bracket ends it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some((state, start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(folder: &Path, script: &str) -> Launch {
        Launch {
            binary: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            folder: PathBuf::from("/"),
            input: None,
            error_log: folder.join("error.log"),
            user: None,
            cpus: None,
            memory_nodes: None,
            nice: None,
            surroundings: Surroundings::default(),
        }
    }

    #[test]
    fn a_wrapper_stands_in_front_and_variables_reach_the_server() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut start = launch(folder.path(), "echo \"$FLAVOUR $0\" >&2; exit 3");
        start.surroundings = Surroundings {
            wrapper: ["env", "FLAVOUR=sour"].map(str::to_owned).to_vec(),
            environment: [("FLAVOUR".to_owned(), "sweet".to_owned())].into(),
            statements: Vec::new(),
        };
        let mut process = ServerProcess::start(&start).expect("a process");
        assert_eq!(
            process.wait(Duration::from_secs(10)).expect("it ends").log,
            ["sour /bin/sh"]
        );
        start.surroundings.wrapper.clear();
        let mut process = ServerProcess::start(&start).expect("a process");
        assert_eq!(
            process.wait(Duration::from_secs(10)).expect("it ends").log,
            ["sweet /bin/sh"]
        );
        start.surroundings.wrapper = vec!["no-such-wrapper".to_owned()];
        let error = ServerProcess::start(&start).expect_err("there is none").to_string();
        assert!(error.contains("no-such-wrapper"), "{error}");
    }

    #[test]
    fn tells_how_a_server_ended_and_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "echo '[ERROR] mysqld: Disk is full writing (Errcode: 28)' >&2; exit 3";
        let mut process = ServerProcess::start(&launch(folder.path(), script)).expect("a process");
        let death = process.wait(Duration::from_secs(10)).expect("it ends").clone();
        assert_eq!((death.exit_code, death.signal), (Some(3), None));
        assert_eq!(death.reason.as_ref().map(|(reason, _)| *reason), Some(Reason::DiskFull));
        assert!(death.to_string().contains("Errcode: 28"), "{death}");
    }

    #[test]
    fn a_server_that_waits_for_room_on_the_disk_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "echo '[ERROR] Disk is full writing (Errcode: 28). Waiting for someone to free space' >&2
                      exec sleep 60";
        let mut process = ServerProcess::start(&launch(folder.path(), script)).expect("a process");
        let began = Instant::now();
        let death = process.wait_for_end(Duration::from_secs(60));
        // Its log is looked at once a second.
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        assert_eq!(death.reason.map(|(reason, _)| reason), Some(Reason::DiskFull));
    }

    #[test]
    fn a_server_that_ignores_the_request_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "trap '' TERM; sleep 60 & echo $! >&2; wait; wait";
        let mut process = ServerProcess::start(&launch(folder.path(), script)).expect("a process");
        testing::soon("it says its child's number", || !process.log_end().is_empty());
        let child: u32 = process.log_end().trim().parse().expect("a process id");
        let death = process.stop(Duration::from_millis(50));
        assert_eq!(death.signal, Some(libc::SIGKILL));
        let deadline = Instant::now() + Duration::from_secs(10);
        while state_and_start_time(child).is_some_and(|(state, _)| state != 'Z') {
            assert!(Instant::now() < deadline, "the child lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn dropping_kills_and_starting_from_a_short_lived_thread_does_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let start = launch(folder.path(), "exec sleep 600");
        let mut process = std::thread::spawn(move || ServerProcess::start(&start))
            .join()
            .expect("a thread")
            .expect("a process");
        std::thread::sleep(Duration::from_millis(100));
        assert!(process.watch().is_none());
        let pid = process.pid();
        drop(process);
        assert_eq!(start_time(pid), None);
    }

    #[test]
    fn cpus_become_the_kernels_mask() {
        assert_eq!(&*crate::before_exec::mask([0, 1, 3].into_iter()), [0b1011]);
        assert_eq!(&*crate::before_exec::mask([64, 129].into_iter()), [0, 1, 2]);
    }
}
