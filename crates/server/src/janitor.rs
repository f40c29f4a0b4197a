//! A helper process that cleans up when scaleprof itself is killed with no chance to do so.
//!
//! The janitor reads orders from a pipe whose other end only we hold. When we end, however that comes, the kernel
//! closes our end; the janitor then kills what is registered, waits until it is gone, and removes the folders. It
//! is this same program, started again with [`ARGUMENT`]; the command line hands over to [`main_loop`].

use crate::error::Error;
use crate::process::{start_time, state_and_start_time};
use crate::work_folder::remove_marked;
use scaleprof_guard::with_clean_environment;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The hidden subcommand that makes a program the janitor: `scaleprof __janitor`, orders on standard input.
pub const ARGUMENT: &str = "__janitor";

/// A handle on the janitor. Clones share it; when the last is gone the janitor does its work and ends.
#[derive(Debug, Clone)]
pub struct Janitor(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    orders: Mutex<Option<File>>,
    child: Mutex<Child>,
}

impl Janitor {
    /// Starts the janitor: this very executable with [`ARGUMENT`].
    pub fn spawn() -> Result<Self, Error> {
        let program = Path::new("/proc/self/exe");
        let mut command = Command::new(program);
        with_clean_environment(&mut command, &[])
            .arg0("scaleprof-janitor")
            .arg(ARGUMENT)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        // SAFETY: setsid is a plain system call.
        unsafe {
            command.pre_exec(|| {
                // Signals of the terminal and of a killed process group are not for it.
                libc::setsid();
                Ok(())
            });
        }
        let mut child = command
            .spawn()
            .map_err(Error::system("start the janitor from", program))?;
        let orders = child.stdin.take().map(|stdin| File::from(OwnedFd::from(stdin)));
        Ok(Janitor(Some(Arc::new(Shared {
            orders: Mutex::new(orders),
            child: Mutex::new(child),
        }))))
    }

    /// No janitor: what a SIGKILL leaves is swept at the next start only. For tests.
    pub fn none() -> Self {
        Janitor(None)
    }

    /// From now on the process is killed when we end.
    pub fn kill_at_end(&self, pid: u32) -> Result<(), Error> {
        match start_time(pid) {
            Some(start) => self.order(format!("kill {pid} {start}").as_bytes()),
            None => Ok(()),
        }
    }

    /// The process is gone.
    pub fn forget_process(&self, pid: u32) -> Result<(), Error> {
        self.order(format!("forget-kill {pid}").as_bytes())
    }

    /// From now on the folder, which must have our marker, is removed when we end.
    pub fn remove_at_end(&self, folder: &Path) -> Result<(), Error> {
        self.order(&[b"remove ", folder.as_os_str().as_bytes()].concat())
    }

    /// The folder is gone or is to be kept.
    pub fn forget_folder(&self, folder: &Path) -> Result<(), Error> {
        self.order(&[b"forget-remove ", folder.as_os_str().as_bytes()].concat())
    }

    /// From now on the folder is removed when we end, once the processes are gone and if it is empty then: such as a cgroup, which has
    /// nothing that one could put a marker into.
    pub fn remove_empty_at_end(&self, folder: &Path) -> Result<(), Error> {
        self.order(&[b"remove-empty ", folder.as_os_str().as_bytes()].concat())
    }

    fn order(&self, line: &[u8]) -> Result<(), Error> {
        let Some(shared) = &self.0 else { return Ok(()) };
        let failed = Error::system("tell the janitor to clean up after", "this run");
        if line.contains(&b'\n') {
            return Err(failed(std::io::Error::other("the folder's name holds a line break")));
        }
        let Ok(mut orders) = shared.orders.lock() else {
            return Ok(());
        };
        match orders.as_mut() {
            // One write, so that a kill cannot leave half an order (pipes keep up to 4096 bytes together).
            Some(pipe) => pipe.write_all(&[line, b"\n"].concat()).map_err(failed),
            None => Ok(()),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Ok(orders) = self.orders.get_mut() {
            orders.take();
        }
        if let Ok(child) = self.child.get_mut() {
            let _ = child.wait();
        }
    }
}

/// What is to be done at the end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Orders {
    processes: BTreeMap<u32, u64>,
    folders: BTreeSet<PathBuf>,
    empty_folders: BTreeSet<PathBuf>,
}

impl Orders {
    /// Takes orders until the pipe is closed.
    fn read(mut pipe: impl BufRead) -> Orders {
        let mut orders = Orders::default();
        let mut line = Vec::new();
        loop {
            line.clear();
            match pipe.read_until(b'\n', &mut line) {
                // A line without its end was cut off by a kill: half a path must not be acted on.
                Ok(_) if line.last() == Some(&b'\n') => orders.take(&line[..line.len() - 1]),
                _ => return orders,
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        let (order, rest) = match line.iter().position(|byte| *byte == b' ') {
            Some(space) => (&line[..space], &line[space + 1..]),
            None => return,
        };
        let text = String::from_utf8_lossy(rest);
        let mut numbers = text.split(' ').map_while(|number| number.parse::<u64>().ok());
        let path = || PathBuf::from(OsStr::from_bytes(rest));
        match order {
            b"kill" => {
                if let (Some(pid), Some(start)) = (numbers.next(), numbers.next())
                    && let Ok(pid) = u32::try_from(pid)
                {
                    self.processes.insert(pid, start);
                }
            }
            b"forget-kill" => {
                if let Some(pid) = numbers.next().and_then(|pid| u32::try_from(pid).ok()) {
                    self.processes.remove(&pid);
                }
            }
            b"remove" => {
                self.folders.insert(path());
            }
            b"remove-empty" => {
                self.empty_folders.insert(path());
            }
            b"forget-remove" => {
                self.folders.remove(&path());
            }
            _ => {}
        }
    }

    fn carry_out(&self) {
        for (pid, start) in &self.processes {
            kill(*pid, *start);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.processes.iter().any(|(pid, start)| is_alive(*pid, *start)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        for folder in &self.empty_folders {
            // A cgroup is busy for a moment after its last process has ended.
            while std::fs::remove_dir(folder).is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
                && Instant::now() < deadline
            {
                std::thread::sleep(Duration::from_millis(10));
            }
        }
        // The deeper first, should one lie in another.
        for folder in self.folders.iter().rev() {
            let _ = remove_marked(folder);
        }
    }
}

/// Whether the process of this id is still the one that was started then. A zombie is dead.
fn is_alive(pid: u32, start: u64) -> bool {
    state_and_start_time(pid).is_some_and(|(state, started)| started == start && state != 'Z' && state != 'X')
}

fn kill(pid: u32, start: u64) {
    // The kernel ends a server at our death, maybe before we are here; what a wrapper left in its process group lives on. As long as
    // it does no other process gets the group's number, so a number without a process is still that group's.
    let is_ours = state_and_start_time(pid).is_none_or(|(_, started)| started == start);
    if let Ok(number) = i32::try_from(pid)
        && number > 1
        && is_ours
    {
        // Servers lead a process group of their own; where one does not, the second call still ends it.
        // SAFETY: kill has no memory effects.
        unsafe {
            libc::kill(-number, libc::SIGKILL);
            if is_alive(pid, start) {
                libc::kill(number, libc::SIGKILL);
            }
        }
    }
}

/// The janitor's life: takes orders from `orders` until the other end is closed, carries them out, and returns.
/// The command line calls it with standard input, before anything else, and exits afterwards.
pub fn main_loop(orders: OwnedFd) {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: ignoring a signal installs no handler.
        unsafe {
            libc::signal(signal, libc::SIG_IGN);
        }
    }
    Orders::read(BufReader::new(File::from(orders))).carry_out();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn takes_orders_and_forgets_them() {
        let mut orders = Orders::default();
        for line in [
            &b"kill 12 34"[..],
            b"remove /var/tmp/a b",
            b"remove-empty /sys/fs/cgroup/c",
            b"kill 56 78",
            b"forget-kill 12",
            b"",
            b"kill x y",
        ] {
            orders.take(line);
        }
        assert_eq!(orders.processes, BTreeMap::from([(56, 78)]));
        assert_eq!(orders.folders, BTreeSet::from([PathBuf::from("/var/tmp/a b")]));
        assert_eq!(
            orders.empty_folders,
            BTreeSet::from([PathBuf::from("/sys/fs/cgroup/c")])
        );
        orders.take(b"forget-remove /var/tmp/a b");
        assert!(orders.folders.is_empty());
    }

    #[test]
    fn spares_a_process_that_got_a_dead_ones_number() {
        let mut child = Command::new("sleep")
            .arg("60")
            .process_group(0)
            .spawn()
            .expect("a process");
        let start = start_time(child.id()).expect("it runs");
        kill(child.id(), start + 1);
        std::thread::sleep(Duration::from_millis(50));
        assert!(child.try_wait().expect("its state").is_none());
        kill(child.id(), start);
        let ended = child.wait().expect("its end");
        assert_eq!(ended.signal(), Some(libc::SIGKILL), "{ended:?}");
    }

    #[test]
    fn what_a_dead_server_left_in_its_group_goes_too() {
        let mut server = Command::new("sh")
            .args(["-c", "sleep 600 >/dev/null & echo $!"])
            .process_group(0)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("a process");
        let (pid, start) = (server.id(), start_time(server.id()).expect("its start"));
        let mut left = String::new();
        std::io::Read::read_to_string(&mut server.stdout.take().expect("a pipe"), &mut left).expect("a number");
        let left: u32 = left.trim().parse().expect("a number");
        server.wait().expect("its end");
        assert!(start_time(left).is_some());
        kill(pid, start);
        let deadline = Instant::now() + Duration::from_secs(10);
        while state_and_start_time(left).is_some_and(|(state, _)| state != 'Z') {
            assert!(Instant::now() < deadline, "it lives on");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn cleans_up_when_the_pipe_closes_and_not_on_half_an_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let marked = folder.path().join("marked");
        let kept = folder.path().join("kept");
        crate::work_folder::make_marked(&marked).expect("a marked folder");
        crate::work_folder::make_marked(&kept).expect("a marked folder");
        let (empty, full) = (folder.path().join("empty"), folder.path().join("full"));
        std::fs::create_dir_all(&empty).expect("a folder");
        std::fs::create_dir_all(full.join("inside")).expect("a folder");
        let text = format!(
            "remove-empty {}\nremove-empty {}\nremove {}\nremove {}",
            empty.display(),
            full.display(),
            marked.display(),
            kept.display()
        );
        Orders::read(text.as_bytes()).carry_out();
        assert!(!marked.exists() && kept.exists());
        assert!(!empty.exists() && full.exists());
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            Orders::default().take(&line);
        }
    }
}
