//! `import`: what decides between CPU time that grew and CPUs that stood idle, where a recording
//! does not tell how many CPUs there are.
//!
//! The stacks are those of a mailing list's report: two thirds of the time in the kernel's lock of
//! a futex, behind InnoDB's mutexes.

use crate::stage::{place, scaleprof, succeed};
use scaleprof_bundle::Summary;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const RATE: [&str; 2] = ["--frequency", "99"];
const LENGTH: [&str; 2] = ["--seconds", "20"];

fn folded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/integration/accounts")
        .join(name)
}

/// The same samples as perf script prints them, of 64 threads on eight CPUs.
fn script(place: &Path, name: &str) -> PathBuf {
    let text = std::fs::read_to_string(folded(name)).expect("a case");
    let all: u64 = text
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum();
    let mut script = String::new();
    let mut number = 0;
    for line in text.lines() {
        let (path, count) = line.rsplit_once(' ').expect("a count");
        for _ in 0..count.parse::<u64>().expect("a number") {
            // Each path spread over the 20 s: 7919 is a prime that divides none of the numbers.
            let nanoseconds = number * 7919 % all * 20_000_000_000 / all;
            let (seconds, rest) = (nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000);
            let (thread, cpu) = (100 + number % 64, number % 8);
            writeln!(
                script,
                "mysqld 7/{thread} [{cpu:03}] {seconds}.{rest:09}: 10101010 cpu-clock:"
            )
            .expect("text");
            for frame in path.split(';').rev() {
                match frame.strip_suffix("_[k]") {
                    Some(function) => writeln!(script, "\tffffffff81 {function}+0x1 ([kernel.kallsyms])"),
                    None => writeln!(script, "\t    55d0 {frame}+0x1 (/usr/sbin/mysqld)"),
                }
                .expect("text");
            }
            script.push('\n');
            number += 1;
        }
    }
    let path = place.join(format!("{name}.txt"));
    std::fs::write(&path, script).expect("written");
    path
}

fn imported(place: &Path, files: [PathBuf; 2], options: &[&str]) -> Summary {
    let mut command = scaleprof();
    command.args(["import", "--quiet", "--json", "--no-report", "--connections", "64,512"]);
    command.args(["--throughput", "13000,2600"]).args(options).args(files);
    let output = tempfile::tempdir_in(place).expect("a folder");
    command.arg("--output").arg(output.path().join("bundle"));
    serde_json::from_str(&succeed(&mut command).0).expect("JSON")
}

/// The first finding is the kernel's lock, with the server's function behind it and the setting
/// that divides it.
fn names_the_kernel_s_futex_lock(summary: &Summary) {
    let first = summary.findings.first().expect("a finding");
    let text = format!(
        "{} {:?} {:?} {:?}",
        first.title, first.path, first.evidence, first.suggestions
    );
    assert!(text.contains("futex"), "{text}");
    assert!(
        text.contains("mutex_spin_wait") || text.contains("sync_array"),
        "{text}"
    );
    assert!(text.contains("innodb_sync_array_size"), "{text}");
}

#[test]
fn cpu_time_that_grew_is_named_though_nobody_tells_how_many_cpus_there_are() {
    let place = place();
    let files = || ["at64.folded", "at512.folded"].map(folded);
    let options = [RATE, LENGTH].concat();
    let summary = imported(place.path(), files(), &options);
    names_the_kernel_s_futex_lock(&summary);
    assert_eq!(summary.machine.cpus, None);
    let with_cpus = imported(place.path(), files(), &[&options[..], &["--cpus", "8"]].concat());
    names_the_kernel_s_futex_lock(&with_cpus);
    let law = with_cpus.rungs[1].iron_law.as_ref().expect("with CPUs there is a law");
    assert!((law.cpu_seconds_per_txn * 1e6 - 2923.0).abs() < 30.0, "{law:?}");
    assert!((0.9..1.0).contains(&law.utilisation), "{law:?}");
}

#[test]
fn the_text_of_perf_script_tells_its_cpus() {
    let place = place();
    let files = ["at64.folded", "at512.folded"].map(|name| script(place.path(), name));
    let summary = imported(place.path(), files, &[]);
    assert_eq!(summary.machine.cpus, Some(8));
    names_the_kernel_s_futex_lock(&summary);
}
