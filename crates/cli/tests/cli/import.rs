//! `import`: what a recording of perf becomes, and what is said of files that are none.

use crate::stage::{bundle, fail, place, scaleprof, succeed};
use scaleprof_bundle::{Summary, WATCH};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording of a program that works for a moment; none where perf or a compiler is missing.
fn recording(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/recordings/programs/work.c");
    let program = folder.join("work");
    let path = folder.join("perf.data");
    let compiled = Command::new("cc")
        .args(["-O2", "-g", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "-q",
        "-e",
        "cpu-clock",
        "-F",
        "499",
        "--call-graph",
        "dwarf,4096",
        "-o",
    ]);
    let recorded = compiled.and_then(|_| perf.arg(&path).arg(&program).output());
    match recorded {
        Ok(output) if output.status.success() => Some(path),
        other => {
            assert!(std::env::var_os("CI").is_none(), "in CI nothing is skipped: {other:?}");
            eprintln!("\n*** SKIPPED: nothing to import: {other:?}\n");
            None
        }
    }
}

fn summary(json: &str) -> Summary {
    serde_json::from_str(json).expect("a summary")
}

#[test]
fn a_recording_becomes_a_bundle_in_which_only_what_it_tells_is_known() {
    let place = place();
    let Some(recording) = recording(place.path()) else {
        return;
    };
    let output = place.path().join("bundle");
    let mut command = scaleprof();
    command
        .args(["import", "--quiet", "--json", "--output"])
        .arg(&output)
        .arg(&recording);
    let watch = summary(&succeed(&mut command).0)
        .watch
        .expect("thread-seconds per second");
    let states = watch.connections.seconds_per_second;
    // One thread that computes; other tests run beside it and take its CPU at times.
    assert!(states.cpu.is_some_and(|cpu| (0.1..1.05).contains(&cpu)), "{states:?}");
    assert_eq!(
        (states.lock, states.net, states.runq),
        (None, None, None),
        "these were not recorded"
    );
    assert_eq!((watch.connections.lifetime_per_second, watch.cpu_residue), (None, None));
    let of_inner = |path: &scaleprof_bundle::WatchedPath| path.path.iter().any(|function| function == "inner");
    assert!(watch.paths.iter().any(of_inner), "{:?}", watch.paths);
    let written = bundle(&output);
    assert_eq!(written.manifest.workload.name, WATCH);
    assert_eq!(written.manifest.server.binary.as_deref(), Some("work"));
    let everything = format!("{:?}", written.manifest);
    assert!(
        !everything.contains(&place.path().display().to_string()),
        "no folder of this machine: {everything}"
    );
    // The page is there, and the code of what was hot.
    assert!(output.join("report.html").exists());
    let listed = succeed(scaleprof().args(["annotate", "inner", "--bundle"]).arg(&output)).0;
    assert!(listed.contains("work.c"), "{listed}");
}

#[test]
fn recordings_at_several_loads_become_a_ladder() {
    let place = place();
    let Some(recording) = recording(place.path()) else {
        return;
    };
    let output = place.path().join("bundle");
    let mut command = scaleprof();
    command.args([
        "import",
        "--quiet",
        "--json",
        "--connections",
        "1,4",
        "--throughput",
        "100,150.5",
    ]);
    command.arg("--output").arg(&output).args([&recording, &recording]);
    let found = summary(&succeed(&mut command).0);
    let rungs: Vec<(u32, i64, Option<f64>)> = found
        .rungs
        .iter()
        .map(|rung| {
            (
                rung.connections,
                rung.throughput.value.round() as i64,
                rung.throughput.low,
            )
        })
        .collect();
    let [(1, 100, None), (4, 150 | 151, None)] = rungs[..] else {
        panic!("throughput as it was told, without an interval: {rungs:?}")
    };
    let ledger = found.rungs[1].ledger.as_ref().expect("time per transaction");
    assert!(ledger.seconds_per_txn.cpu.is_some_and(|cpu| cpu > 0.0));
    assert_eq!(
        (ledger.seconds_per_txn.lock, ledger.residue),
        (None, None),
        "waits were not recorded"
    );
    assert!(found.missing.iter().any(|missing| missing.figure == "ledger.residue"));
}

#[test]
fn what_cannot_be_imported_is_said_in_one_sentence_and_leaves_nothing() {
    let place = place();
    let file = |name: &str, bytes: &[u8]| {
        let path = place.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    for (path, words) in [
        (file("text", b"hello there"), "no recording that scaleprof knows"),
        (
            file("short", b"PERFILE2\x68\0\0\0\0\0\0\0"),
            "ends inside of its header",
        ),
        (file("empty", b""), "empty"),
        (place.path().join("missing"), "No such file"),
        (place.path().to_owned(), "--threads"),
    ] {
        let output = place.path().join("bundle");
        let complaint = fail(
            scaleprof()
                .args(["import", "--quiet", "--output"])
                .arg(&output)
                .arg(&path),
            1,
        );
        assert!(complaint.contains(words), "{complaint}");
        assert!(!output.exists(), "nothing is left");
    }
    let two = [file("a", b"PERFILE2"), file("b", b"PERFILE2")];
    let one_number = ["import", "--connections", "4", "--throughput", "10"];
    let complaint = fail(scaleprof().args(one_number).args(two), 1);
    assert!(complaint.contains("1 numbers for"), "{complaint}");
}

#[test]
fn of_a_machine_that_nobody_described_nothing_is_told_as_0() {
    let place = place();
    let folded = place.path().join("stacks.folded");
    std::fs::write(&folded, "main;work;here 30\nmain;work;there 20\n").expect("written");
    let output = place.path().join("bundle");
    let mut command = scaleprof();
    command
        .args(["import", "--quiet", "--json", "--output"])
        .arg(&output)
        .arg(&folded);
    let told = summary(&succeed(&mut command).0);
    let machine = &told.machine;
    assert_eq!(
        (machine.cpus, machine.numa_nodes, machine.memory_bytes),
        (None, None, None)
    );
    for figure in [
        "machine.cpus",
        "machine.numa_nodes",
        "machine.memory_bytes",
        "server.product",
    ] {
        assert!(told.missing.iter().any(|missing| missing.figure == figure), "{figure}");
    }
    let report = |format: &str| {
        let mut command = scaleprof();
        succeed(command.arg("report").arg(&output).args(["--format", format])).0
    };
    let bug = report("bug");
    assert!(
        bug.contains("number of CPUs not known") && bug.contains("memory not known"),
        "{bug}"
    );
    assert!(
        !bug.contains("unknown on unknown") && !bug.contains("unknown unknown"),
        "{bug}"
    );
    let text = report("text");
    assert!(!text.contains("Watched"), "{text}");
}

#[test]
fn a_recording_is_held_against_a_flat_one_and_joined_with_counts() {
    let place = place();
    let Some(graph) = recording(place.path()) else { return };
    let (flat, stat) = (place.path().join("flat.data"), place.path().join("stat.csv"));
    let program = place.path().join("work");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "499", "-o"])
        .arg(&flat);
    assert!(perf.arg(&program).output().expect("perf").status.success());
    let mut perf = Command::new("perf");
    perf.args([
        "stat",
        "-x",
        ";",
        "-e",
        "task-clock,context-switches,duration_time",
        "-o",
    ])
    .arg(&stat);
    assert!(perf.arg(&program).output().expect("perf").status.success());
    let import = |flat: &Path, name: &str| {
        let output = place.path().join(name);
        let mut command = scaleprof();
        command.args(["import", "--quiet", "--connections", "1", "--throughput", "100"]);
        command.arg("--stat").arg(&stat).arg("--flat").arg(flat);
        succeed(command.arg("--output").arg(&output).arg(&graph));
        bundle(&output)
    };
    let fair = import(&flat, "fair");
    let clock = fair.counters.iter().find(|row| row.counter == "hw.task_clock_seconds");
    let by_samples: f64 = fair
        .counters
        .iter()
        .filter(|row| row.counter.starts_with("server.cpu_"))
        .map(|row| row.value)
        .sum();
    let clock = clock.expect("counted").value;
    assert!(
        (0.5..2.0).contains(&(clock / by_samples)),
        "{clock} against {by_samples} by the samples"
    );
    let options = &fair.manifest.workload.options;
    assert!(
        options.iter().any(|(name, _)| name == "fairness_of_recording_1"),
        "{options:?}"
    );

    let other = place.path().join("other.folded");
    let stacks: String = (0..200)
        .map(|caller| format!("main;calls_{caller};idles 50\n"))
        .collect();
    std::fs::write(&other, stacks).expect("written");
    let unfair = import(&other, "unfair");
    let is_told = |warning: &String| warning.contains("no fair sample") && warning.contains("idles has 0.0 %");
    assert!(
        unfair.manifest.warnings.iter().any(is_told),
        "{:?}",
        unfair.manifest.warnings
    );

    let mut command = scaleprof();
    command.args(["import", "--stat"]).arg(&other).arg(&graph);
    let words = fail(&mut command, 1);
    assert!(words.contains("other.folded") && words.contains("perf stat"), "{words}");
}
