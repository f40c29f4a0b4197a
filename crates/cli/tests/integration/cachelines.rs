//! `cachelines` on a program of the compiler's, on a server with a known pair of neighbours, and on what is no program.

use crate::diff::write;
use crate::stage::{fail, place, scaleprof, succeed};
use scaleprof_bundle::{BundleWriter, SettingRow};
use scaleprof_server::identify::content_hash;
use scaleprof_vocabulary::ThreadState;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::planted::{USUAL, run};
use testing::servers::fetched;
use testing::servers_cache;

/// `enabled` and `counter` lie side by side in a section of their own; `alone` in another.
const SOURCE: &str = r#"
#define IN(name, bytes) __attribute__((section(name), aligned(bytes)))
volatile long counter IN(".pair", 64) = 1;
volatile char enabled IN(".pair", 8) = 1;
volatile long alone IN(".apart", 64) = 1;
__thread volatile long mine;
__attribute__((noinline)) long reads_it(void) { return enabled; }
__attribute__((noinline)) long reads_it_too(void) { return enabled + 1; }
__attribute__((noinline)) void counts(void) { __sync_fetch_and_add(&counter, 1); mine++; }
__attribute__((noinline)) long reads_alone(void) { return alone; }
void *serves(void *argument)
{
	for (;;) { counts(); if (reads_it() && reads_it_too() && reads_alone()) return argument; }
}
"#;

fn compile(folder: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let (text, library) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&text, source).expect("written");
    let compiled = Command::new("cc")
        .args([
            "-shared",
            "-fPIC",
            "-O2",
            "-g",
            "-Wl,-Bsymbolic",
            "-fno-toplevel-reorder",
        ])
        .args(options)
        .arg("-o")
        .args([&library, &text])
        .status();
    assert!(compiled.expect("cc runs").success());
    library
}

fn listing(arguments: &mut Command) -> serde_json::Value {
    serde_json::from_str(&succeed(arguments.arg("--json")).0).expect("JSON")
}

#[test]
fn neighbours_are_listed_with_who_touches_them_and_what_to_do() {
    let place = place();
    let library = compile(place.path(), "pair.so", SOURCE, &[]);
    let (text, _) = succeed(scaleprof().arg("cachelines").arg(&library));
    assert!(text.starts_with("pair.so: "), "{text}");
    for words in [
        "5 variables that threads share; 1 line of 64 bytes in which one may take another",
        "false sharing",
        "each write to counter invalidates enabled",
        "written (locked) by 1 function (counts)",
        "only read, by 2 functions (reads_it",
        "name a run of this binary with --bundle",
        "try alignas(64) for counter",
    ] {
        assert!(text.contains(words), "no '{words}' in {text}");
    }
    assert!(!text.contains('\x1b'), "colours go to terminals only");
    assert!(!text.contains("mine") && !text.contains("alone"), "{text}");

    let json = listing(scaleprof().arg("cachelines").arg(&library));
    assert_eq!((&json["judged"], &json["members"]), (&1.into(), &true.into()));
    let line = &json["lines"][0];
    assert_eq!(line["kind"], "false_sharing");
    assert_eq!(line["variables"][1]["name"], "enabled");
    assert_eq!(line["variables"][1]["role"], "read_mostly");
    assert_eq!(line["evidence"][1]["holds"], serde_json::Value::Null);
}

#[test]
fn another_build_is_compared_and_longer_lines_are_predicted() {
    let place = place();
    let library = compile(place.path(), "pair.so", SOURCE, &[]);
    // At the start of 128 bytes, and 64 behind that.
    let mended = SOURCE.replace("IN(\".pair\", 64)", "IN(\".pair\", 128)");
    let mended = mended.replace(
        "volatile char enabled",
        "__attribute__((aligned(64))) volatile char enabled",
    );
    let other = compile(place.path(), "mended.so", &mended, &[]);
    let compared = |first: &Path, second: &Path| {
        let (text, _) = succeed(scaleprof().arg("cachelines").arg(first).arg("--compare").arg(second));
        text
    };
    assert!(compared(&library, &library).contains("other build: enabled and counter are in one line there too"));
    let text = compared(&library, &other);
    assert!(
        text.contains("other build: enabled and counter are in different lines (56 bytes between them)"),
        "{text}"
    );
    let json = listing(scaleprof().arg("cachelines").arg(&other));
    assert_eq!(json["judged"], 0);
    let predicted = listing(scaleprof().arg("cachelines").arg(&other).args(["--line-size", "128"]));
    let lines = predicted["lines"].as_array().expect("lines");
    assert_eq!(
        (lines.len(), &lines[0]["kind"]),
        (1, &"longer_lines_only".into()),
        "{predicted:#}"
    );
}

#[test]
fn what_is_no_program_or_has_no_names_is_refused_with_what_would_help() {
    let place = place();
    let source = place.path().join("pair.so.c");
    let library = compile(place.path(), "pair.so", SOURCE, &["-fvisibility=hidden"]);
    let error = fail(scaleprof().arg("cachelines").arg(&source), 1);
    assert!(error.contains("not a 64-bit ELF file"), "{error}");
    let stripped = Command::new("strip").arg(&library).status();
    assert!(stripped.expect("strip runs").success());
    let error = fail(scaleprof().arg("cachelines").arg(&library), 1);
    assert!(error.contains("is stripped") && error.contains("-dbgsym"), "{error}");
    let error = fail(
        scaleprof().arg("cachelines").arg(&library).args(["--line-size", "100"]),
        2,
    );
    assert!(error.contains("64, 128, 256"), "{error}");
    let error = fail(
        scaleprof().args(["cachelines", "/proc/self/exe", "--count-writes", "0"]),
        2,
    );
    assert!(error.contains("--count-writes"), "{error}");
    let error = fail(scaleprof().args(["cachelines", "/proc/self/exe", "--seconds", "1"]), 2);
    assert!(error.contains("--count-writes"), "{error}");
    let whole = compile(place.path(), "whole.so", SOURCE, &[]);
    let error = fail(
        scaleprof()
            .arg("cachelines")
            .arg(&whole)
            .args(["--bundle", "/nonexistent"]),
        1,
    );
    assert!(error.contains("is not a bundle"), "{error}");
    let pid = std::process::id().to_string();
    let error = fail(
        scaleprof().arg("cachelines").arg(&whole).args(["--count-writes", &pid]),
        1,
    );
    assert!(error.contains("does not run") && error.contains("whole.so"), "{error}");
}

/// A bundle whose server is called so and had no build-id, but bytes with this hash.
fn bundle_of(folder: &Path, binary: &str, hash: &str) {
    let mut bundle = run(
        &[(16, 1000.0, vec![(ThreadState::Cpu, &["main", "serves"], 900.0)])],
        1,
        6,
        USUAL,
        1,
    );
    bundle.manifest.server.binary = Some(binary.into());
    bundle.manifest.server.build_id = None;
    write(folder, &bundle);
    let writer = BundleWriter::reopen(folder).expect("a bundle");
    let hash = SettingRow::new("scaleprof.server_fingerprint", hash);
    writer.write_settings(&[hash]).expect("written");
}

#[test]
fn another_build_of_the_same_name_than_the_one_that_ran_is_refused() {
    let place = place();
    let library = compile(place.path(), "pair.so", SOURCE, &["-Wl,--build-id=none"]);
    let (own, other) = (place.path().join("own"), place.path().join("other"));
    bundle_of(&own, "pair.so", &content_hash(&library).expect("a hash"));
    bundle_of(&other, "pair.so", "sha256:0000");
    const LACKING: &str = "two are required to see growth";
    for command in ["cachelines", "annotate"] {
        let with = |bundle: &Path| {
            let mut arguments = scaleprof();
            arguments.arg(command);
            match command {
                "cachelines" => arguments.arg(&library).arg("--bundle").arg(bundle),
                _ => arguments.arg(bundle).arg("counts").arg("--binary").arg(&library),
            };
            arguments
        };
        let error = fail(&mut with(&other), 1);
        assert!(error.contains("is another build of pair.so"), "{error}");
        assert!(
            error.contains("sha256:0000") && error.contains("name the file that ran"),
            "{error}"
        );
        // The right file is read, though the made-up bundle has no samples of it.
        let output = with(&own).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("another build"), "{said}");
        match command {
            "cachelines" => assert!(!output.status.success() && said.contains(LACKING), "{said}"),
            // It lists the function without a figure.
            _ => assert!(output.status.success(), "{said}"),
        }
    }
}

/// MySQL's bug 97777 (MDEV-21145), as MySQL 5.6.14 was linked.
#[test]
fn the_random_counter_beside_the_adaptive_hash_setting_is_the_gravest_in_mysql_5_6() {
    if fetched("mysql-5.6.14").is_none() {
        return;
    }
    let binary = servers_cache().join("mysql-5.6.14/bin/mysqld");
    let json = listing(scaleprof().arg("cachelines").arg(&binary));
    let lines = json["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 10);
    assert!(
        json["judged"].as_u64().is_some_and(|judged| judged > 100),
        "{}",
        json["judged"]
    );
    let line = &lines[0];
    assert_eq!(
        (&line["address"], &line["kind"]),
        (&0x126_1340.into(), &"false_sharing".into()),
        "{line:#}"
    );
    let role = |name: &str| {
        let places = line["variables"].as_array().expect("places");
        let place = places.iter().find(|place| place["name"] == name).expect(name);
        place["role"].as_str().map(str::to_owned)
    };
    assert_eq!(role("ut_rnd_ulint_counter").as_deref(), Some("written"));
    assert_eq!(role("btr_search_enabled").as_deref(), Some("read_mostly"));
}
