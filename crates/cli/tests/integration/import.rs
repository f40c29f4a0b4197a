//! `import`: what a recording of perf becomes, and what is said of files that are none.

use crate::stage::{bundle, fail, place, scaleprof, succeed};
use scaleprof_bundle::{Bundle, Summary};
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording of a program that works for a moment; none where perf or a compiler is missing.
pub fn recording(folder: &Path) -> Option<PathBuf> {
    recorded(folder, "perf.data", "dwarf,4096")
}

/// The same under a name, with callers that are found as `perf record --call-graph` has it.
pub fn recorded(folder: &Path, name: &str, callers: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../profile/tests/integration/recordings/programs/work.c");
    let program = folder.join("work");
    let path = folder.join(name);
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
        callers,
        "-o",
    ]);
    let recorded = compiled.and_then(|_| perf.arg(&path).arg(&program).output());
    match recorded {
        Ok(output) if output.status.success() => Some(path),
        other => {
            testing::skip!("nothing to import: {other:?}");
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
    // One thread that computes.
    assert!(
        states[ThreadState::Cpu].is_some_and(|cpu| (0.1..1.05).contains(&cpu)),
        "{states:?}"
    );
    assert_eq!(
        (
            states[ThreadState::Lock],
            states[ThreadState::Net],
            states[ThreadState::RunQueue]
        ),
        (None, None, None),
        "these were not recorded"
    );
    assert_eq!(
        (watch.connections.lifetime_per_second, watch.cpu_residual),
        (None, None)
    );
    let of_inner = |path: &scaleprof_bundle::WatchedPath| path.path.iter().any(|function| function == "inner");
    assert!(watch.paths.iter().any(of_inner), "{:?}", watch.paths);
    let written = bundle(&output);
    assert_eq!(
        written.manifest.workload.name,
        scaleprof_vocabulary::WorkloadName::Watch
    );
    assert_eq!(written.manifest.server.binary.as_deref(), Some("work"));
    let everything = format!("{:?}", written.manifest);
    assert!(
        !everything.contains(&place.path().display().to_string()),
        "no folder of this machine: {everything}"
    );
    // The page is there, and the code of what was hot.
    assert!(output.join("report.html").exists());
    let listed = succeed(scaleprof().arg("annotate").arg(&output).arg("inner")).0;
    assert!(listed.contains("work.c"), "{listed}");
}

#[test]
fn recordings_at_several_loads_become_a_ladder() {
    let place = place();
    let Some(recording) = recording(place.path()) else {
        return;
    };
    let output = place.path().join("bundle");
    let other = place.path().join("other.data");
    std::fs::copy(&recording, &other).expect("copied");
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
    command.arg("--output").arg(&output).args([&recording, &other]);
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
    assert!(ledger.seconds_per_txn[ThreadState::Cpu].is_some_and(|cpu| cpu > 0.0));
    assert_eq!(
        (ledger.seconds_per_txn[ThreadState::Lock], ledger.residual),
        (None, None),
        "waits were not recorded"
    );
    assert!(found.missing.iter().any(|missing| missing.figure == "ledger.residual"));
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
        (file("text", b"hello there"), "unknown format of a recording"),
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

/// A pipe can be read once.
#[test]
fn a_recording_that_comes_through_a_pipe_is_not_read_where_the_output_is_taken_or_cannot_be_made() {
    let place = place();
    let folded = place.path().join("stacks.folded");
    std::fs::write(&folded, "main;work;here 30\n").expect("written");
    let taken = place.path().join("taken");
    std::fs::create_dir(&taken).expect("made");
    std::fs::write(taken.join("something"), "of mine").expect("written");
    let below_a_file = folded.join("bundle");
    for (output, code) in [(&taken, 1), (&below_a_file, 1), (&place.path().join("bundle"), 0)] {
        let mut input = std::fs::File::open(&folded).expect("there");
        let mut command = scaleprof();
        command
            .args(["import", "--quiet", "--no-report", "--output"])
            .arg(output)
            .arg("-");
        let told = command
            .stdin(input.try_clone().expect("a second one"))
            .output()
            .expect("run");
        assert_eq!(told.status.code(), Some(code), "{told:?}");
        // Both have one place at which it is read next.
        let read = std::io::Seek::stream_position(&mut input).expect("a place");
        assert_eq!(read > 0, code == 0, "{read} bytes were read");
    }
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

fn is_called_fair(imported: &Bundle) -> bool {
    let options = &imported.manifest.workload.options;
    options.iter().any(|(name, _)| name == "fairness_of_recording_1")
}

fn is_called_distorted(imported: &Bundle, because: &str) -> bool {
    let told = &mut imported.manifest.warnings.iter();
    told.any(|warning| warning.contains("no fair sample") && warning.contains(because))
}

/// By how many hundredths of the samples the share of a function differs most between two recordings, by `perf report`.
fn most_that_a_share_differs(one: &Path, other: &Path) -> f64 {
    let [one, other] = [one, other].map(|recording| {
        let mut perf = Command::new("perf");
        perf.args([
            "report",
            "--stdio",
            "-q",
            "--no-children",
            "-g",
            "none",
            "--sort",
            "symbol",
        ]);
        perf.args(["-F", "overhead,symbol", "-t", ";", "-i"]).arg(recording);
        let told = String::from_utf8(perf.output().expect("perf").stdout).expect("text");
        let of_line = |line: &str| {
            let mut fields = line.split(';');
            let share = fields.next()?.trim().trim_end_matches('%').parse().ok()?;
            Some((fields.next()?.trim().to_owned(), share))
        };
        let shares: BTreeMap<String, f64> = told.lines().filter_map(of_line).collect();
        assert!(!shares.is_empty(), "{told}");
        shares
    });
    let share = |of: &BTreeMap<String, f64>, symbol: &str| of.get(symbol).copied().unwrap_or(0.0);
    let differences = one
        .keys()
        .chain(other.keys())
        .map(|symbol| share(&one, symbol) - share(&other, symbol));
    differences.fold(0.0, |most, difference| most.max(difference.abs()))
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
    // Of a machine that is slow to take stacks, the two do differ: which of the two is told, is told once.
    let (is_fair, is_distorted) = (is_called_fair(&fair), is_called_distorted(&fair, ""));
    assert!(
        is_fair != is_distorted,
        "{:?} {:?}",
        fair.manifest.workload.options,
        fair.manifest.warnings
    );
    let differs = most_that_a_share_differs(&graph, &flat);
    assert!(
        if is_distorted { differs > 0.9 } else { differs < 20.0 },
        "by perf up to {differs} points: {:?}",
        fair.manifest.warnings
    );
    let same = import(&graph, "same");
    assert!(
        is_called_fair(&same) && !is_called_distorted(&same, ""),
        "{:?}",
        same.manifest.warnings
    );

    let other = place.path().join("other.folded");
    let stacks: String = (0..200)
        .map(|caller| format!("main;calls_{caller};idles 50\n"))
        .collect();
    std::fs::write(&other, stacks).expect("written");
    let unfair = import(&other, "unfair");
    assert!(
        is_called_distorted(&unfair, "idles has 0.0 %") && !is_called_fair(&unfair),
        "{:?}",
        unfair.manifest.warnings
    );

    let mut command = scaleprof();
    command.args(["import", "--stat"]).arg(&other).arg(&graph);
    let words = fail(&mut command, 1);
    assert!(words.contains("other.folded") && words.contains("perf stat"), "{words}");
}

/// What `perf script` prints of one thread that runs all the time: so many samples of `grows`, of a hundred a second.
pub fn script_of(seconds: u64, grows: u64) -> String {
    let mut text = String::new();
    for sample in 0..seconds * 100 {
        // Not always the same number in a second, as samples are.
        let more = sample / 100 % 3;
        let function = if sample % 100 < grows + more { "grows" } else { "stays" };
        let (second, part) = (1000 + sample / 100, sample % 100 * 10_000);
        text.push_str(&format!(
            "mysqld 7/7 [000] {second}.{part:06}: 10000000 cpu-clock:\n\t 1000 {function} (/usr/sbin/mysqld)\n\t 2000 main \
             (/usr/sbin/mysqld)\n\n"
        ));
    }
    text
}

#[test]
fn recordings_without_a_load_are_compared_by_the_second() {
    let place = place();
    let imported = |name: &str, grows: [u64; 3], load: &[&str]| {
        let files = grows.map(|grows| {
            let path = place.path().join(format!("{name}-{grows}.txt"));
            std::fs::write(&path, script_of(10, grows)).expect("written");
            path
        });
        let output = place.path().join(name);
        let mut command = scaleprof();
        command.args(["import", "--quiet", "--no-code", "--no-report"]);
        succeed(command.args(load).arg("--output").arg(&output).args(files));
        output
    };
    let (before, after) = (
        imported("before", [20, 21, 22], &[]),
        imported("after", [50, 51, 52], &[]),
    );
    let (out, _) = succeed(scaleprof().arg("diff").args([&before, &after]).arg("--json"));
    let told: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(told["per"], "second", "{told}");
    assert_eq!(told["rungs"][0]["throughput"]["a"], serde_json::Value::Null, "{told}");
    let path = &told["paths"][0];
    let change = path["change"]["value"].as_f64().expect("a number");
    assert!((change.abs() - 0.3).abs() < 0.01, "{told}");
    assert!(path["p"].as_f64().is_some_and(|p| p < 0.05), "{told}");
    let (out, _) = succeed(scaleprof().arg("diff").args([&before, &after]));
    for words in [
        "\u{b5}s per second",
        "of its threads\u{2019} time",
        "transactions were not counted",
    ] {
        assert!(out.contains(words), "{words} in {out}");
    }
    assert!(!out.contains("tx/s") && !out.contains("per transaction"), "{out}");
    let page = place.path().join("diff.html");
    succeed(scaleprof().arg("diff").args([&before, &after]).arg("--html").arg(&page));
    assert!(
        std::fs::read_to_string(&page)
            .expect("a page")
            .contains("\"per\":\"second\"")
    );

    let with_load = imported(
        "loaded",
        [20, 21, 22],
        &["--connections", "1,1,1", "--throughput", "9,9,9"],
    );
    let refused = fail(scaleprof().arg("diff").args([&before, &with_load]), 1);
    assert!(refused.contains("--connections and --throughput"), "{refused}");
    let no_rungs = fail(scaleprof().arg("diff").args([&before, &after]).args(["--rung", "1"]), 1);
    assert!(no_rungs.contains("bundles of attach have no rungs"), "{no_rungs}");
}

#[test]
fn a_program_of_which_only_perfs_cache_has_a_copy_keeps_its_name() {
    let place = place();
    let Some(_) = recording(place.path()) else { return };
    let program = place.path().join("work");
    assert!(Command::new("strip").arg(&program).status().expect("strip").success());
    let path = place.path().join("stripped.data");
    let mut perf = Command::new("perf");
    perf.env("HOME", place.path());
    perf.args(["record", "-q", "-e", "cpu-clock", "-F", "499", "-o"]);
    let recorded = perf.arg(&path).arg(&program).output().expect("perf");
    assert!(recorded.status.success(), "{recorded:?}");
    std::fs::remove_file(&program).expect("there until now");
    let output = place.path().join("bundle");
    let mut import = scaleprof();
    import.env("HOME", place.path());
    succeed(
        import
            .args(["import", "--quiet", "--no-report", "--output"])
            .arg(&output)
            .arg(&path),
    );
    let functions: Vec<String> = bundle(&output)
        .frames
        .into_iter()
        .filter_map(|frame| frame.function)
        .map(|name| name.to_string())
        .collect();
    assert!(
        functions.iter().any(|function| function.starts_with("work!fun_")),
        "{functions:?}"
    );
    assert!(
        !functions.iter().any(|function| function.starts_with("elf!")),
        "{functions:?}"
    );
}
