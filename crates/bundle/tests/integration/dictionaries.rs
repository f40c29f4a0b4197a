//! Stacks and frames are kept once, whichever measurement had them first.

#[allow(dead_code)]
use crate::sample;

use scaleprof_bundle::*;
use std::fs;

#[test]
fn a_later_measurement_writes_only_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let writer = sample::write_two_measurements(folder.path());
    let bundle = Bundle::open(folder.path()).unwrap();
    let numbers = |rows: &[StackRow]| rows.iter().map(|row| row.stack).collect::<Vec<_>>();
    assert_eq!(numbers(&bundle.stacks), [1, 100, 101]);
    assert_eq!(bundle.frames.len(), 3);
    fs::remove_file(folder.path().join("stacks/measurement-00000.parquet")).unwrap();
    assert_eq!(numbers(&Bundle::open(folder.path()).unwrap().stacks), [101]);

    let again = MeasurementRows {
        samples: vec![],
        states: vec![],
        locks: vec![],
        ..sample::profiled(0)
    };
    writer.write_measurement(&sample::rung(2), &again).unwrap();
    assert_eq!(numbers(&Bundle::open(folder.path()).unwrap().stacks), [101]);
}

#[test]
fn an_entry_that_two_measurements_wrote_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    let other = tempfile::tempdir().unwrap();
    sample::write_two_measurements(other.path());
    let part = "frames/measurement-00000.parquet";
    fs::copy(
        other.path().join(part),
        folder.path().join("frames/measurement-00009.parquet"),
    )
    .unwrap();
    assert_eq!(Bundle::open(folder.path()).unwrap().frames.len(), 3);
}

#[test]
fn one_number_with_two_meanings_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let writer = sample::write_two_measurements(folder.path());
    let mut rows = sample::profiled(2);
    rows.frames[0].function = Some("another".into());
    let refused = writer
        .write_measurement(&sample::rung(2), &rows)
        .unwrap_err()
        .to_string();
    assert!(refused.contains("its number 1 stands for two different"), "{refused}");
    let other = tempfile::tempdir().unwrap();
    let elsewhere = BundleWriter::create(other.path()).unwrap();
    elsewhere.write_measurement(&sample::rung(2), &rows).unwrap();
    let part = "frames/measurement-00002.parquet";
    fs::copy(other.path().join(part), writer.path().join(part)).unwrap();
    let said = Bundle::open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("the number 1 stands for two different entries"), "{said}");
}

#[test]
fn dictionaries_of_a_measurement_that_was_not_finished_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    fs::remove_file(folder.path().join("measurements/measurement-00001.parquet")).unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.samples.rows().all(|row| row.measurement == 0) && bundle.samples.len() == 1);
    assert_eq!(bundle.frames.len(), 3);
}

#[test]
fn a_bundle_of_an_older_version_has_no_profile() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    for table in ["states", "samples", "locks", "stacks", "frames"] {
        fs::remove_dir_all(folder.path().join(table)).unwrap();
    }
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.states.is_empty() && bundle.samples.is_empty() && bundle.frames.is_empty());
    assert_eq!(bundle.measurements.len(), 2);
}
