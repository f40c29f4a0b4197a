//! Whether the load keeps its connections at work on CPUs that it shares with the server, and whether
//! it is said where it does not.

use crate::stage::{place, run, succeed};
use scaleprof_bundle::{Bundle, RungSummary, Summary};
use scaleprof_vocabulary::LadderVerdict;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use testing::servers::{Server, distribution};

const CONNECTIONS: u32 = 128;

/// How the threads of a run's load were scheduled.
fn scheduling(folder: &Path) -> String {
    let bundle = Bundle::open(folder).expect("a bundle");
    bundle.load_scheduling().expect("it is said").to_owned()
}

/// Given to `setpriv`: root without the privilege to raise a priority.
const WITHOUT_PRIORITY: [&str; 4] = ["--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice"];

/// The same command as a user who may not raise a priority.
fn without_priority(command: &Command) -> Command {
    let mut unprivileged = Command::new("setpriv");
    unprivileged.args(WITHOUT_PRIORITY).arg(command.get_program());
    unprivileged.args(command.get_args());
    testing::default_signals(&mut unprivileged);
    unprivileged
}

/// A run with the server on CPU 0 and its load on another or the same.
fn on_cpus(load: &str, connections: &str, server: &Server, folder: &Path) -> Command {
    let mut command = run(Some(&server.installation), folder);
    command.args(["--workload", "oltp_read_write", "--tables", "1", "--rows", "2000"]);
    command.args(["--cpus-server", "0", "--cpus-client", load]);
    command.args(["--connections", connections, "--seconds", "4", "--json"]);
    command
}

/// What is said of a run, and its last rung.
fn result(command: &mut Command) -> (Summary, RungSummary) {
    let (out, _) = succeed(command);
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let last = summary.rungs.last().expect("a rung").clone();
    println!("{:?} of {CONNECTIONS} at work", last.effective_concurrency);
    (summary, last)
}

fn at_work(rung: &RungSummary) -> f64 {
    rung.effective_concurrency.expect("threads were watched") / f64::from(CONNECTIONS)
}

/// Scheduled as all threads, the load kept 0.22 of them at work.
#[test]
fn all_connections_are_at_work_on_a_cpu_that_server_and_load_share() {
    let Some(server) = distribution() else { return };
    if !rustix::process::geteuid().is_root() {
        testing::skip!("a load that goes first: it needs root or CAP_SYS_NICE");
        return;
    }
    let place = place();

    let connections = format!("4,16,{CONNECTIONS}");
    let folder = place.path().join("first");
    let (summary, rung) = result(&mut on_cpus("0", &connections, &server, &folder));
    assert_eq!(scheduling(&folder), "batch, nice -20");
    assert!(at_work(&rung) > 0.9 && !rung.too_few_at_work, "{}", at_work(&rung));
    assert!(summary.warnings.iter().all(|warning| !warning.contains("nice")));
    let sentence = summary.verdict.expect("a verdict").sentence;
    assert!(!sentence.contains("at work"), "{sentence}");

    let folder = place.path().join("yields");
    let command = on_cpus("0", &CONNECTIONS.to_string(), &server, &folder);
    let (summary, rung) = result(&mut without_priority(&command));
    assert_eq!(scheduling(&folder), "batch");
    assert!(at_work(&rung) > 0.9 && !rung.too_few_at_work, "{}", at_work(&rung));
    assert!(
        summary
            .warnings
            .iter()
            .any(|warning| warning.contains("the server runs at nice 19")),
        "{:?}",
        summary.warnings
    );
}

/// Programs that use all of one CPU, killed at the end.
struct Hogs(Vec<Child>);

impl Hogs {
    fn on(cpu: &str, count: usize) -> Hogs {
        let hog = |_| {
            let mut command = Command::new("taskset");
            command.args(["--cpu-list", cpu, "sh", "-c", "while :; do :; done"]);
            testing::default_signals(&mut command);
            command.spawn().expect("taskset of util-linux")
        };
        Hogs((0..count).map(hog).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// A load to which others leave a 25th of its CPU does not keep all at work, and the verdict says so.
#[test]
fn connections_that_wait_for_a_starved_load_do_not_count_as_at_work() {
    let Some(server) = distribution() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        testing::skip!("a load with a CPU of its own: there is one CPU");
        return;
    }
    let place = place();
    let connections = format!("4,16,{CONNECTIONS}");
    let hogs = Hogs::on("1", 24);
    let folder = place.path().join("starved");
    let (summary, rung) = result(&mut on_cpus("1", &connections, &server, &folder));
    drop(hogs);
    assert_eq!(scheduling(&folder), "usual", "no CPU is shared");
    assert!(at_work(&rung) < 0.6 && rung.too_few_at_work, "{}", at_work(&rung));
    let verdict = summary.verdict.expect("a verdict");
    assert!(
        verdict.sentence.contains("Of 128 connections only") && verdict.sentence.contains("waited for a CPU"),
        "{}",
        verdict.sentence
    );
    assert_eq!(
        verdict.class,
        LadderVerdict::Inconclusive,
        "what so many do is not known"
    );
}

/// A load that is stopped for 5 of 6 ms, whoever stops it.
#[test]
fn a_load_that_pauses_is_refused_and_named() {
    let Some(server) = distribution() else { return };
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        testing::skip!("a load with a CPU of its own: there is one CPU");
        return;
    }
    let place = place();
    let folder = place.path().join("pauses");
    let mut command = on_cpus("1", "16", &server, &folder);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().expect("built by cargo");
    let id = rustix::process::Pid::from_child(&child);
    let mut stdout = child.stdout.take().expect("piped");
    let out = std::thread::spawn(move || std::io::read_to_string(&mut stdout));
    while child.try_wait().expect("a child of ours").is_none() {
        // It may end between the two: it is not waited for yet, so that the number stays its own.
        let _ = rustix::process::kill_process(id, rustix::process::Signal::STOP);
        std::thread::sleep(Duration::from_millis(5));
        let _ = rustix::process::kill_process(id, rustix::process::Signal::CONT);
        std::thread::sleep(Duration::from_millis(1));
    }
    let out = out.join().expect("no panic").expect("JSON");
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let rung = &summary.rungs[0];
    let verdict = summary.verdict.expect("a verdict");
    let threads = rung.load_threads.expect("the kernel tells");
    println!(
        "{threads:?} {:?} {:?}",
        rung.effective_concurrency, rung.client_limited_reason
    );
    println!("{}", verdict.sentence);
    assert!(
        rung.too_few_at_work || rung.client_limited,
        "{:?}",
        rung.effective_concurrency
    );
    assert!(threads.cpu_share + threads.run_queue_share < 0.5, "{threads:?}");
    assert!(
        verdict.sentence.contains("neither ran nor waited for a CPU"),
        "{}",
        verdict.sentence
    );
}
