//! `export`: what the tools that it writes for make of it.

use crate::diff::write;
use crate::import::recording;
use crate::stage::{fail, place, scaleprof, succeed, texts};
use scaleprof_bundle::Bundle;
use scaleprof_vocabulary::ThreadState;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use testing::planted::{Cost, Rung, USUAL, run, work};

/// A run whose latch takes longer at the second rung, with a line, an inlined function and one of the kernel; kept in a folder.
pub(crate) fn keep(folder: &Path) {
    let latch = ["start_thread", "do_command", "change", "latch"];
    let wait = ["start_thread", "do_command", "change", "latch", "futex_wait"];
    let work = work();
    let rungs: Vec<Rung<'_>> = [(16, 5.0), (256, 60.0)]
        .into_iter()
        .map(|(connections, micros)| {
            let mut costs: Vec<Cost<'_>> = work
                .iter()
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
                .collect();
            costs.push((ThreadState::Spin, &latch, micros));
            costs.push((ThreadState::Lock, &wait, micros * 3.0));
            (connections, 1.0e6 / (100.0 + micros), costs)
        })
        .collect();
    let mut bundle = run(&rungs, 2, 6, USUAL, 7);
    for frame in &mut bundle.frames {
        frame.address = 0x40_0000 + (frame.frame & 0xffff);
        match frame.function.as_deref() {
            Some("futex_wait") => frame.module = "[kernel]".into(),
            Some("latch") => {
                frame.inlined = true;
                frame.file = Some("storage/latch.h".into());
                frame.line = Some(12);
            }
            _ => {}
        }
    }
    write(folder, &bundle);
}

pub(crate) fn export(bundle: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = scaleprof();
    command.arg("export").arg(bundle).args(arguments).args(["-o", "-"]);
    let output = command.output().expect("scaleprof starts");
    assert!(output.status.success(), "{}", texts(&output).1);
    output.stdout
}

/// Microseconds of 1000 transactions by function, in it alone and with all that it calls, from folded stacks: what they say is
/// compared with the flame graph elsewhere. Functions of the kernel go by the names that other formats have.
pub(crate) fn by_function(folded: &[u8]) -> BTreeMap<String, (f64, f64)> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for line in std::str::from_utf8(folded).expect("text").lines() {
        let (path, number) = line.rsplit_once(' ').expect("a number");
        let number: f64 = number.parse().expect("a number");
        let path: Vec<String> = path.split(';').map(|name| name.replace("_[k]", " [k]")).collect();
        sums.entry(path.last().expect("a function").clone()).or_default().0 += number;
        let mut distinct = path.clone();
        distinct.sort();
        distinct.dedup();
        for name in distinct {
            sums.entry(name).or_default().1 += number;
        }
    }
    sums
}

/// Go's own reader, with which most of what reads these files is built: that of the distribution's
/// packages where it is installed, as newer versions of Go compile theirs first.
fn go_tool_pprof() -> Command {
    let installed = std::fs::read_dir("/usr/lib/go/pkg/tool").into_iter().flatten();
    let mut ready = installed
        .flatten()
        .map(|architecture| architecture.path().join("pprof"));
    ready.find(|pprof| pprof.exists()).map_or_else(
        || {
            let mut command = Command::new("go");
            command.args(["tool", "pprof"]);
            command
        },
        Command::new,
    )
}

/// What it prints; none where Go is not installed. In CI that is a failure.
fn pprof(arguments: &[&str], files: &[&Path]) -> Option<String> {
    match go_tool_pprof().args(arguments).args(files).output() {
        Ok(output) => {
            let (out, err) = texts(&output);
            assert!(output.status.success(), "{out}\n{err}");
            Some(out)
        }
        Err(problem) => {
            testing::skip!("go, whose pprof reads what is exported, is not here ({problem})");
            None
        }
    }
}

/// Microseconds by function as `pprof -top -unit=ns` lists them.
fn listed(top: &str) -> BTreeMap<String, (f64, f64)> {
    let rows = top.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let micros = |field: &str| field.trim_end_matches("ns").parse::<f64>().expect("nanoseconds") / 1e3;
    rows.map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        let name = fields[5..].join(" ");
        let name = name.trim_end_matches(" (inline)").trim_end_matches(" (partial-inline)");
        (name.to_owned(), (micros(fields[0]), micros(fields[3])))
    })
    .collect()
}

const EXACTLY: [&str; 4] = ["-top", "-unit=ns", "-nodefraction=0", "-nodecount=100000"];

#[test]
fn go_pprof_finds_what_functions_cost_a_transaction_and_what_they_became_dearer() {
    let place = place();
    let bundle = place.path().join("run");
    keep(&bundle);
    let files = ["16", "256"].map(|connections| {
        let file = place.path().join(format!("{connections}.pb.gz"));
        std::fs::write(&file, export(&bundle, &["--rung", connections])).expect("written");
        file
    });
    let expected =
        ["16", "256"].map(|connections| by_function(&export(&bundle, &["--format", "folded", "--rung", connections])));
    let Some(top) = pprof(&EXACTLY, &[&files[1]]) else {
        return;
    };
    assert!(
        top.contains("Type: time_per_1000_transactions") && top.contains("256 connections"),
        "{top}"
    );
    let found = listed(&top);
    assert_eq!(found.len(), expected[1].len(), "{top}");
    for (name, (alone, with_all)) in &found {
        let (expected_alone, expected_with_all) = expected[1][name];
        // Folded stacks have whole microseconds, each call path rounded by less than one.
        assert!(
            (alone - expected_alone).abs() <= 8.0 && (with_all - expected_with_all).abs() <= 8.0,
            "{name}"
        );
    }

    let base = format!("-diff_base={}", files[0].display());
    let difference = pprof(&[&EXACTLY[..], &[base.as_str()]].concat(), &[&files[1]]).expect("it ran a moment ago");
    let found = listed(&difference);
    for name in ["latch", "futex_wait [k]", "change"] {
        let grown = expected[1][name].1 - expected[0][name].1;
        assert!(
            (found[name].1 - grown).abs() <= 16.0 && grown > 10_000.0,
            "{name}: {grown}\n{difference}"
        );
    }

    let raw = pprof(&["-raw"], &[&files[1]]).expect("it ran a moment ago");
    for words in [
        "state:[spin]",
        "state:[lock]",
        "role:[connection]",
        "latch storage/latch.h:12",
        "[kernel]",
    ] {
        assert!(raw.contains(words), "no {words} in\n{raw}");
    }
    let spinning = pprof(&[&EXACTLY[..], &["-tagfocus=state=spin"]].concat(), &[&files[1]]).expect("it ran");
    assert_eq!(listed(&spinning)["latch"].0, listed(&spinning)["start_thread"].1);
}

/// What inferno writes of each frame: the name, and how much it is.
fn titles(svg: &str) -> Vec<(String, f64)> {
    let titles = svg
        .split("<title>")
        .skip(1)
        .filter_map(|rest| rest.split_once("</title>"));
    titles
        .filter_map(|(title, _)| {
            let (name, number) = title.rsplit_once(" (")?;
            let number = number.split_once(' ')?.0.replace(',', "");
            Some((name.to_owned(), number.parse().ok()?))
        })
        .collect()
}

#[test]
fn inferno_draws_folded_stacks_and_what_became_of_them() {
    let place = place();
    let bundle = place.path().join("run");
    keep(&bundle);
    let draw = |folded: &[u8]| {
        let mut options = inferno::flamegraph::Options::default();
        options.min_width = 0.0;
        let mut svg = Vec::new();
        inferno::flamegraph::from_reader(&mut options, folded, &mut svg).expect("a flame graph");
        String::from_utf8(svg).expect("text")
    };
    let folded = export(&bundle, &["--format", "folded"]);
    let expected = by_function(&folded);
    let mut found: BTreeMap<String, f64> = BTreeMap::new();
    for (name, number) in titles(&draw(&folded)) {
        *found.entry(name).or_default() += number;
    }
    assert_eq!(found.remove("all"), Some(expected["start_thread"].1));
    // inferno understands the mark of the kernel's functions, and does not show it.
    let shown = |(name, (_, all)): (String, (f64, f64))| (name.trim_end_matches(" [k]").to_owned(), all);
    let expected: BTreeMap<String, f64> = expected.into_iter().map(shown).collect();
    assert_eq!(found, expected);

    let both = export(&bundle, &["--format", "folded-diff"]);
    let line = "start_thread;do_command;change;latch;futex_wait_[k] ";
    let text = String::from_utf8(both.clone()).expect("text");
    let numbers = text
        .lines()
        .find_map(|found| found.strip_prefix(line))
        .expect("the wait");
    let numbers: Vec<f64> = numbers
        .split(' ')
        .map(|number| number.parse().expect("a number"))
        .collect();
    assert!((numbers[1] / numbers[0] / 12.0 - 1.0).abs() < 0.2, "{numbers:?}");
    let svg = draw(&both);
    assert!(
        svg.contains("futex_wait (") && svg.contains("; +"),
        "no difference was drawn"
    );
}

#[test]
fn what_cannot_be_exported_is_refused_with_the_way_out() {
    let place = place();
    let bundle = place.path().join("run");
    keep(&bundle);
    let said = |arguments: &[&str], code| fail(scaleprof().arg("export").arg(&bundle).args(arguments), code);
    assert!(said(&["--rung", "7"], 1).contains("it has 16, 256"));
    assert!(said(&["--states", "cpu,io2"], 2).contains("runq"));
    assert!(said(&["--states", "sleep"], 1).contains("--states"));
    assert!(said(&["--base-rung", "16"], 1).contains("-diff_base"));
    assert!(said(&["--format", "firefox", "--repeat", "9"], 1).contains("--repeat"));
    fail(scaleprof().arg("export").arg(place.path().join("nothing")), 1);
}

#[test]
fn files_are_named_after_the_bundle_and_the_rung() {
    let place = place();
    keep(&place.path().join("run"));
    for (format, name) in [
        ("pprof", "run-256.pb.gz"),
        ("folded", "run-256.folded"),
        ("folded-diff", "run-16-256.folded"),
        ("firefox", "run-256.firefox.json"),
        ("speedscope", "run-rungs.speedscope.json"),
    ] {
        let mut command = scaleprof();
        command
            .current_dir(place.path())
            .args(["export", "run", "--format", format]);
        assert_eq!(succeed(&mut command).0.trim(), name);
        assert!(
            place.path().join(name).metadata().is_ok_and(|file| file.len() > 500),
            "{name}"
        );
    }
    // What is no file is written to; it is not replaced.
    let mut command = scaleprof();
    command
        .arg("export")
        .arg(place.path().join("run"))
        .args(["-o", "/dev/null"]);
    succeed(&mut command);
    assert!(!Path::new("/dev/null").metadata().expect("it").is_file());
}

#[test]
fn a_recording_is_exported_as_its_bundle_is_and_nothing_of_it_is_kept() {
    let place = place();
    let Some(recording) = recording(place.path()) else {
        return;
    };
    let bundle = place.path().join("bundle");
    let mut import = scaleprof();
    import.args(["import", "--quiet", "--no-report", "--no-code", "--output"]);
    succeed(import.arg(&bundle).arg(&recording));
    let before = names_in(place.path());
    for arguments in [
        &["--format", "folded"][..],
        &["--format", "folded", "--unit", "total", "--threads", "all"],
    ] {
        same_costs(&export(&recording, arguments), &export(&bundle, arguments));
    }
    let piped = std::fs::File::open(&recording).expect("readable");
    let mut command = scaleprof();
    command
        .args(["export", "-", "--format", "folded", "-o", "-"])
        .stdin(piped);
    let (out, _) = succeed(command.current_dir(place.path()));
    same_costs(out.as_bytes(), &export(&bundle, &["--format", "folded"]));
    let (named, _) = succeed(scaleprof().arg("export").arg(&recording).current_dir(place.path()));
    assert_eq!(named.trim(), "perf.data-watched.pb.gz");
    let added: Vec<String> = names_in(place.path())
        .into_iter()
        .filter(|name| !before.contains(name))
        .collect();
    assert_eq!(added, ["perf.data-watched.pb.gz"]);
}

/// But for what rounding to whole microseconds may do.
fn same_costs(one: &[u8], other: &[u8]) {
    let (one, other) = (by_function(one), by_function(other));
    assert!(!one.is_empty() && one.keys().eq(other.keys()), "{one:?}\n{other:?}");
    for (name, (own, all)) in &one {
        let (other_own, other_all) = other[name];
        assert!(
            (own - other_own).abs() <= 1.0 && (all - other_all).abs() <= 1.0,
            "{name}"
        );
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn what_is_exported_is_not_written_over() {
    let place = place();
    let stacks = place.path().join("stacks.txt");
    std::fs::write(&stacks, "main;alpha 10\nmain;beta 30\n").expect("written");
    let export = |input: &Path, output: &Path| {
        let mut command = scaleprof();
        command
            .arg("export")
            .arg(input)
            .args(["--format", "folded", "-o"])
            .arg(output);
        command
    };
    let error = fail(&mut export(&stacks, &stacks), 1);
    assert!(
        error.contains("not overwritten\n  fix: name another file with -o FILE"),
        "{error}"
    );
    assert!(
        std::fs::read_to_string(&stacks)
            .expect("there")
            .starts_with("main;alpha")
    );
    let bundle = place.path().join("bundle");
    succeed(
        scaleprof()
            .args(["import", "--quiet", "--output"])
            .arg(&bundle)
            .arg(&stacks),
    );
    let manifest = bundle.join("manifest.json");
    fail(&mut export(&bundle, &manifest), 1);
    assert!(Bundle::open(&bundle).is_ok());
    // An export may lie anywhere, and be made anew.
    let inside = bundle.join("bundle-watched.folded");
    for _ in 0..2 {
        succeed(&mut export(&bundle, &inside));
    }
}

#[test]
fn how_a_recording_is_read_is_no_question_of_a_bundle() {
    let place = place();
    let bundle = place.path().join("run");
    keep(&bundle);
    let mut command = scaleprof();
    let said = fail(command.arg("export").arg(&bundle).args(["--symfs", "/srv"]), 1);
    assert!(
        said.contains("--symfs is for recordings") && said.contains("run is none"),
        "{said}"
    );
    let text = place.path().join("notes.txt");
    std::fs::write(&text, "no recording\n").expect("written");
    let said = fail(scaleprof().arg("export").arg(&text), 1);
    assert!(said.contains("notes.txt"), "{said}");
    let said = fail(scaleprof().arg("export").arg(place.path().join("nothing")), 1);
    assert!(said.contains("nothing: No such file"), "{said}");
    let said = fail(scaleprof().arg("export").arg(place.path()), 1);
    assert!(said.contains("is not a bundle"), "{said}");
}
