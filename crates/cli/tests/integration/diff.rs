//! `diff`: two kept runs side by side.

use crate::stage::{fail, place, scaleprof, succeed};
use scaleprof_bundle::{Bundle, BundleWriter, MeasurementRows};
use scaleprof_vocabulary::ThreadState;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use testing::planted::{Cost, Rung, USUAL, run, work};

/// A run whose latch costs so much at the second rung, kept in a folder.
fn keep(folder: &Path, latch_micros: f64, seed: u64) {
    let latch = ["start_thread", "do_command", "change", "latch"];
    let work = work();
    let rungs: Vec<Rung<'_>> = [(16, 4.0), (256, latch_micros)]
        .into_iter()
        .map(|(connections, latch_micros)| {
            let usual = work.iter().filter(|(path, _)| *path != latch);
            let mut costs: Vec<Cost<'_>> = usual
                .map(|(path, micros)| (ThreadState::Cpu, path.as_slice(), *micros))
                .collect();
            costs.push((ThreadState::Spin, &latch, latch_micros));
            let all: f64 = costs.iter().map(|(_, _, micros)| micros).sum();
            (connections, 1.96e6 / all, costs)
        })
        .collect();
    write(folder, &run(&rungs, 3, 10, USUAL, seed));
}

/// The bundle as a run would have written it.
pub(crate) fn write(folder: &Path, bundle: &Bundle) {
    let writer = BundleWriter::create(folder).expect("a folder");
    writer.write_manifest(&bundle.manifest).expect("written");
    for rung in &bundle.measurements {
        let measurement = rung.measurement;
        let rows = MeasurementRows {
            seconds: bundle
                .seconds
                .iter()
                .filter(|row| row.measurement == measurement)
                .cloned()
                .collect(),
            counters: bundle
                .counters
                .iter()
                .filter(|row| row.measurement == measurement)
                .cloned()
                .collect(),
            states: bundle
                .states
                .iter()
                .filter(|row| row.measurement == measurement)
                .cloned()
                .collect(),
            samples: bundle
                .samples
                .rows()
                .filter(|row| row.measurement == measurement)
                .collect(),
            stacks: bundle.stacks.clone(),
            frames: bundle.frames.clone(),
            ..MeasurementRows::default()
        };
        writer.write_measurement(rung, &rows).expect("written");
    }
}

/// The text in one line, as it breaks where the width says.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn diff(a: &Path, b: &Path) -> Command {
    let mut command = scaleprof();
    command.arg("diff").arg(a).arg(b);
    command
}

#[test]
fn a_planted_difference_is_named_and_none_is_seen_where_there_is_none() {
    let place = place();
    let [before, after, again] = ["before", "after", "again"].map(|name| place.path().join(name));
    keep(&before, 10.0, 1);
    keep(&after, 40.0, 2);
    keep(&again, 10.0, 3);
    let (out, _) = succeed(&mut diff(&before, &after));
    assert!(out.contains("scales worse") && out.contains("spin in latch"), "{out}");
    let (out, _) = succeed(&mut diff(&before, &again));
    let out = joined(&out);
    assert!(out.contains("no call path changed significantly"), "{out}");

    let (out, _) = succeed(&mut diff(&before, &before));
    assert!(joined(&out).contains("A and B are the same run"), "{out}");

    let (out, _) = succeed(diff(&before, &after).arg("--json"));
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&found["schema"], &found["base_rung"]), (&3.into(), &16.into()));
    let path = &found["paths"][0];
    assert_eq!(
        (&path["connections"], &path["course"]),
        (&256.into(), &"scales_worse".into())
    );
    let limits = ["low", "high"].map(|limit| path["change"][limit].as_f64().expect("a limit"));
    assert!(limits[0] <= 30e-6 && 30e-6 <= limits[1], "{limits:?}");
    let (out, _) = succeed(diff(&before, &after).args(["--json", "--rung", "16"]));
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["paths"], Value::Array(Vec::new()));
}

#[test]
fn a_page_is_one_file_that_names_no_folder_but_the_bundles() {
    let place = place();
    let [before, after] = ["before", "after"].map(|name| place.path().join(name));
    keep(&before, 10.0, 1);
    keep(&after, 40.0, 2);
    let file = place.path().join("diff.html");
    let (out, _) = succeed(diff(&before, &after).arg("--html").arg(&file));
    let last = out.lines().last().unwrap_or_default();
    assert_eq!(last, format!("Report: {}", file.display()), "behind the table");
    let page = std::fs::read_to_string(&file).expect("the page");
    assert!(page.contains("\"name\":\"before\"") && page.contains("scales worse"));
    assert!(!page.contains(&place.path().display().to_string()));
    // A folder that is given as `.` has a name all the same.
    let mut here = scaleprof();
    here.current_dir(&before)
        .args(["diff", ".", "../after", "--html"])
        .arg(&file);
    succeed(&mut here);
    assert!(
        std::fs::read_to_string(&file)
            .expect("the page")
            .contains("\"name\":\"before\"")
    );
    std::fs::remove_file(&file).expect("it was there");
    let (out, _) = succeed(diff(&before, &after).arg("--json").arg("--html").arg(&file));
    assert!(serde_json::from_str::<Value>(&out).is_ok() && file.is_file(), "both");
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_way_out() {
    let place = place();
    let [one, other, empty] = ["one", "other", "empty"].map(|name| place.path().join(name));
    keep(&one, 10.0, 1);
    keep(&other, 10.0, 2);
    let said = fail(diff(&one, &other).args(["--rung", "7"]), 1);
    assert!(said.contains("both runs have 16, 256"), "{said}");
    let mut manifest = Bundle::open(&other).expect("a bundle").manifest;
    manifest.workload.name = scaleprof_vocabulary::WorkloadName::OltpReadOnly;
    let writer = BundleWriter::reopen(&other).expect("a bundle");
    writer.write_manifest(&manifest).expect("written");
    let said = fail(&mut diff(&one, &other), 1);
    assert!(
        said.contains("workload (oltp_update_index and oltp_read_only)") && said.contains("--any-workload"),
        "{said}"
    );
    let (out, _) = succeed(diff(&one, &other).arg("--any-workload"));
    assert!(
        out.contains("Warning: figures per transaction cannot be compared"),
        "{out}"
    );
    fail(&mut diff(&one, &empty), 1);
}
