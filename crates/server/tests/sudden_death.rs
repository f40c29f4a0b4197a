//! What is left when scaleprof is killed with no chance to clean up: nothing.
//!
//! This test has a main of its own, for the program plays three parts: the test, the victim that runs a server, and
//! the janitor, which is the victim's executable started again.

use testing::servers;

use scaleprof_server::*;
use servers::{TestFolder, distribution, runs, work_folder};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

type Test = (&'static str, fn());

const TESTS: [Test; 5] = [
    (
        "leaves_nothing_after_kill_minus_nine",
        leaves_nothing_after_kill_minus_nine,
    ),
    (
        "leaves_nothing_when_killed_while_initialising",
        leaves_nothing_when_killed_while_initialising,
    ),
    (
        "leaves_no_server_even_when_the_janitor_is_killed_too",
        leaves_no_server_even_when_the_janitor_is_killed_too,
    ),
    (
        "the_janitor_outlives_signals_of_the_terminal",
        the_janitor_outlives_signals_of_the_terminal,
    ),
    ("leaves_nothing_after_a_panic", leaves_nothing_after_a_panic),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(janitor::ARGUMENT) => {
            let orders = std::io::stdin().as_fd().try_clone_to_owned().expect("standard input");
            return janitor::main_loop(orders);
        }
        Some("victim") => return victim(Path::new(&arguments[1]), &arguments[2]),
        _ => {}
    }
    // What the harness of Rust understands, as runners of tests call it: `--list --format terse [--ignored]`, `NAME --exact`.
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    if has("--ignored") {
        return;
    }
    let values = ["--format", "--color", "--test-threads"];
    let follows_option = |at: usize| at > 0 && values.contains(&arguments[at - 1].as_str());
    let filters: Vec<&String> = (0..arguments.len())
        .filter(|at| !arguments[*at].starts_with('-') && !follows_option(*at))
        .map(|at| &arguments[at])
        .collect();
    let wanted = |name: &str| {
        let meets = |filter: &&String| {
            if has("--exact") {
                *filter == name
            } else {
                name.contains(filter.as_str())
            }
        };
        filters.is_empty() || filters.iter().any(meets)
    };
    let chosen: Vec<_> = TESTS.into_iter().filter(|(name, _)| wanted(name)).collect();
    // Who asks for one test wants it run. A part of a name may be meant for another program.
    assert!(
        has("--list") || !has("--exact") || !chosen.is_empty(),
        "no test is called {filters:?}"
    );
    for (name, test) in chosen {
        if has("--list") {
            println!("{name}: test");
        } else if distribution().is_some() {
            test(); // a panic ends the program with a failure
            println!("test {name} ... ok");
        }
    }
}

/// Starts a server, says what it started, and waits for its death.
fn victim(work: &Path, mode: &str) {
    let work = WorkFolder::open(work).expect("the work folder");
    let janitor = Janitor::spawn().expect("a janitor");
    let asked = ServerSettings {
        buffer_pool: Some(128 << 20),
        redo_log: 96 << 20,
        ..ServerSettings::default()
    };
    let settings = Settings::new(asked).expect("settings");
    let installation = Installation::distribution().expect("the distribution's server");
    println!("starting");
    std::io::stdout().flush().expect("a reader");
    let sandbox = SandboxBuilder::new(installation, settings, work)
        .janitor(janitor)
        .start_fresh()
        .expect("a server");
    println!("{}", sandbox.pid());
    std::io::stdout().flush().expect("a reader");
    if mode == "panic" {
        panic!("on purpose");
    }
    std::thread::sleep(Duration::from_secs(120));
}

struct Victim {
    child: Child,
    lines: BufReader<Box<dyn Read>>,
    work: TestFolder,
}

impl Victim {
    fn start(mode: &str) -> Victim {
        let work = work_folder();
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args([Path::new("victim"), work.path(), Path::new(mode)])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a victim");
        let stdout = child.stdout.take().expect("its output");
        let lines = BufReader::new(Box::new(stdout) as Box<dyn Read>);
        let mut victim = Victim { child, lines, work };
        assert_eq!(victim.line(), "starting");
        victim
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn server(&mut self) -> u32 {
        self.line().parse().expect("the server's process id")
    }

    fn janitor(&self) -> u32 {
        let children = children_of(self.child.id());
        let is_janitor = |pid: &u32| command_line(*pid).contains(janitor::ARGUMENT);
        children.into_iter().find(is_janitor).expect("a janitor")
    }

    fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("its end");
    }
}

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

fn children_of(parent: u32) -> Vec<u32> {
    let of_task = |task: PathBuf| std::fs::read_to_string(task.join("children")).unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).expect("its threads");
    let texts: Vec<String> = tasks.flatten().map(|task| of_task(task.path())).collect();
    texts
        .iter()
        .flat_map(|text| text.split_whitespace())
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

fn signal(pid: u32, signal: i32) {
    // SAFETY: kill has no memory effects. The process was started by this test.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// Waits until something is so, at most 20 s.
fn soon(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < deadline, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
}

fn leaves_nothing_after_kill_minus_nine() {
    let mut victim = Victim::start("wait");
    let server = victim.server();
    let janitor = victim.janitor();
    assert!(!gone(server) && runs(&victim.work).len() == 1);
    victim.kill();
    soon("the server is gone", || gone(server));
    soon("its folder is gone", || runs(&victim.work).is_empty());
    soon("the janitor is gone", || gone(janitor));
}

fn leaves_nothing_when_killed_while_initialising() {
    let mut victim = Victim::start("wait");
    let folder = |victim: &Victim| runs(&victim.work).into_iter().next();
    soon("system tables are made", || {
        folder(&victim).is_some_and(|run| run.join("data/ibdata1").exists())
    });
    victim.kill();
    soon("the folder is gone", || runs(&victim.work).is_empty());
}

fn leaves_no_server_even_when_the_janitor_is_killed_too() {
    let mut victim = Victim::start("wait");
    let server = victim.server();
    signal(victim.janitor(), libc::SIGKILL);
    victim.kill();
    soon("the server is gone", || gone(server));
    assert_eq!(runs(&victim.work).len(), 1, "nobody could remove it");
    soon("the next start removes the folder", || {
        WorkFolder::open(victim.work.path()).expect("the work folder");
        runs(&victim.work).is_empty()
    });
}

fn the_janitor_outlives_signals_of_the_terminal() {
    let mut victim = Victim::start("wait");
    let server = victim.server();
    let janitor = victim.janitor();
    for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        signal(janitor, number);
    }
    std::thread::sleep(Duration::from_millis(100));
    assert!(!gone(janitor) && !gone(server));
    victim.kill();
    soon("its folder is gone", || runs(&victim.work).is_empty());
}

fn leaves_nothing_after_a_panic() {
    let mut victim = Victim::start("panic");
    let server = victim.server();
    victim.child.wait().expect("its end");
    soon("the server is gone", || gone(server));
    soon("its folder is gone", || runs(&victim.work).is_empty());
}
