//! `import`: times that cannot be are said, and work goes by the number of samples.

use crate::stage::{place, scaleprof, succeed};
use scaleprof_bundle::{Bundle, Summary};
use std::path::{Path, PathBuf};

fn hostile(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration/hostile");
    folder.join(format!("{name}.perf-script.txt"))
}

/// What is said of a text, its bundle, and its folded stacks.
fn imported(text: &Path, options: &[&str]) -> (Summary, Bundle, String) {
    let place = place();
    let output = place.path().join("bundle");
    let mut command = scaleprof();
    command
        .args(["import", "--quiet", "--json", "--no-report"])
        .args(options)
        .arg(text);
    let summary = serde_json::from_str(&succeed(command.arg("--output").arg(&output)).0).expect("JSON");
    let bundle = Bundle::open(&output).expect("a bundle");
    let mut export = scaleprof();
    export
        .arg("export")
        .arg(&output)
        .args(["--format", "folded", "--output", "-"]);
    (summary, bundle, succeed(&mut export).0)
}

fn cpus_used(summary: &Summary) -> f64 {
    let watch = summary.watch.as_ref().expect("a watch");
    watch.cpus_by_states.expect("by its samples")
}

fn warns(summary: &Summary, words: &str) -> bool {
    summary.warnings.iter().any(|warning| warning.contains(words))
}

#[test]
fn samples_of_one_moment_are_exported_and_their_length_is_said_to_be_unknown() {
    let (summary, _, folded) = imported(&hostile("same-time"), &[]);
    assert!(
        warns(&summary, "all of its 2 samples are of one moment"),
        "{:?}",
        summary.warnings
    );
    // Each of two threads ran for the millisecond that it is taken to have lasted.
    assert!((cpus_used(&summary) - 2.0).abs() < 0.01, "{}", cpus_used(&summary));
    assert_eq!(folded.lines().count(), 2, "{folded}");
}

#[test]
fn one_sample_is_a_sample() {
    let place = place();
    let text = place.path().join("one.txt");
    let sample = "mysqld 7/8 [003] 1.5: 10101010 cpu-clock: \n\t 55d0 main+0x1 (/usr/sbin/mysqld)\n\n";
    std::fs::write(&text, sample).expect("written");
    let (summary, bundle, folded) = imported(&text, &[]);
    assert!(warns(&summary, "it has one sample"), "{:?}", summary.warnings);
    assert!(folded.contains("main"), "{folded}");
    assert_eq!(bundle.samples.len(), 1);
}

/// As `perf script --deltatime` prints them: times since the sample before.
#[test]
fn a_thread_that_ran_longer_than_the_recording_lasted_is_said_to_be_impossible() {
    let place = place();
    let text = place.path().join("delta.txt");
    let sample = |time: &str| format!("mysqld 7/8 [000] {time}: 10101010 cpu-clock: \n\t 55d0 main+0x1 (/x)\n\n");
    let all: String = (0..100)
        .map(|number| sample(&format!("0.0000{:02}", number % 70)))
        .collect();
    std::fs::write(&text, all).expect("written");
    let (summary, ..) = imported(&text, &[]);
    assert!(
        warns(&summary, "impossible: its busiest thread"),
        "{:?}",
        summary.warnings
    );
    assert!((cpus_used(&summary) - 1.0).abs() < 0.02, "{}", cpus_used(&summary));
}

#[test]
fn a_clock_that_jumps_is_said_and_makes_no_row_a_second() {
    let load = ["--connections", "1", "--throughput", "10"];
    for options in [&[][..], &load[..]] {
        let (summary, bundle, folded) = imported(&hostile("clock-jump"), options);
        assert!(
            warns(&summary, "its clock jumped, or nothing ran"),
            "{:?}",
            summary.warnings
        );
        let rows = bundle.states.len() + bundle.counters.len() + bundle.seconds.len();
        assert!(rows < 100, "{rows} rows of two samples");
        // Of a second of it no microsecond is left; of a transaction two nanoseconds, per thousand.
        assert_eq!(folded.contains("main"), !options.is_empty(), "{folded}");
    }
}
