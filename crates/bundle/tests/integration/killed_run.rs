//! A run may be killed at any time; what it had measured stays readable.

use crate::sample;
#[allow(dead_code)]
use scaleprof_bundle::*;
use scaleprof_vocabulary::RunState;
use std::fs;

#[test]
fn a_bundle_reads_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let writer = sample::write_two_measurements(folder.path());
    assert_eq!(writer.path(), folder.path());
    let bundle = Bundle::open(folder.path()).unwrap();
    assert_eq!(bundle.manifest, sample::manifest());
    assert_eq!(bundle.measurements, vec![sample::rung(0), sample::rung(1)]);
    assert_eq!(bundle.seconds.len(), 10);
    assert_eq!(bundle.settings[0].value, "1");
    assert!(bundle.partial_measurements.is_empty() && bundle.unfinished_files.is_empty());
}

#[test]
fn a_measurement_without_its_own_row_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    fs::remove_file(folder.path().join("measurements/measurement-00001.parquet")).unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert_eq!(bundle.partial_measurements, vec![1]);
    assert_eq!(bundle.measurements.len(), 1);
    assert!(!bundle.seconds.is_empty() && bundle.seconds.iter().all(|row| row.measurement == 0));
    assert!(!bundle.latency.is_empty() && bundle.latency.iter().all(|row| row.measurement == 0));
}

#[test]
fn a_file_that_was_being_written_is_named_and_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    fs::write(
        folder.path().join("seconds/.measurement-00002.parquet.partial"),
        b"PAR1 and then the power went",
    )
    .unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert_eq!(
        bundle.unfinished_files,
        vec!["seconds/.measurement-00002.parquet.partial"]
    );
    assert_eq!(bundle.measurements.len(), 2);
}

#[test]
fn a_file_of_a_table_that_is_read_apart_is_named_too() {
    for table in ["branches", "instructions", "data_accesses"] {
        let folder = tempfile::tempdir().unwrap();
        sample::write_two_measurements(folder.path());
        let unfinished = format!("{table}/.measurement-00002.parquet.partial");
        fs::create_dir_all(folder.path().join(table)).unwrap();
        fs::write(folder.path().join(&unfinished), b"PAR1 and then it was killed").unwrap();
        let bundle = Bundle::open(folder.path()).unwrap();
        assert_eq!(bundle.unfinished_files, vec![unfinished]);
        assert_eq!(bundle.measurements.len(), 2);
    }
}

#[test]
fn a_run_killed_before_its_first_measurement_is_an_empty_bundle() {
    let folder = tempfile::tempdir().unwrap();
    BundleWriter::create(folder.path())
        .unwrap()
        .write_manifest(&sample::manifest())
        .unwrap();
    let bundle = Bundle::open(folder.path()).unwrap();
    assert!(bundle.measurements.is_empty() && bundle.summary.is_none());
}

#[test]
fn a_bundle_whose_writer_is_stopped_says_so_unless_it_was_done() {
    let folder = tempfile::tempdir().unwrap();
    let writer = sample::write_two_measurements(folder.path());
    let now = "2026-11-27T01:02:03Z".to_owned();
    for state in [RunState::Running, RunState::Complete, RunState::Failed] {
        let manifest = Manifest {
            state,
            ..sample::manifest()
        };
        writer.write_manifest(&manifest).unwrap();
        drop(tell_interrupted(folder.path(), now.clone()).unwrap());
        let bundle = Bundle::open(folder.path()).unwrap();
        let told = match state {
            RunState::Running => Manifest {
                state: RunState::Interrupted,
                ended_at: Some(now.clone()),
                problem: Some("stopped by the user".to_owned()),
                ..manifest
            },
            _ => manifest,
        };
        assert_eq!(bundle.manifest, told);
        assert!(bundle.unfinished_files.is_empty());
        let kept = fs::read_dir(folder.path()).unwrap().flatten();
        assert!(
            !kept
                .map(|entry| entry.file_name())
                .any(|name| name.to_string_lossy().starts_with('.'))
        );
    }
    assert!(
        tell_interrupted(&folder.path().join("measurements"), now).is_err(),
        "no bundle"
    );
}

#[test]
fn a_truncated_part_gives_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    let part = folder.path().join("seconds/measurement-00001.parquet");
    let bytes = fs::read(&part).unwrap();
    for length in (0..bytes.len()).step_by(61).chain([bytes.len() - 1]) {
        fs::write(&part, &bytes[..length]).unwrap();
        let said = Bundle::open(folder.path()).unwrap_err().to_string();
        assert!(said.contains("seconds/measurement-00001.parquet is damaged"), "{said}");
        assert!(said.contains("copy the bundle again"), "{said}");
    }
}

#[test]
fn a_part_of_another_table_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    let errors = folder.path().join("errors/measurement-00001.parquet");
    fs::copy(&errors, folder.path().join("seconds/measurement-00001.parquet")).unwrap();
    let said = Bundle::open(folder.path()).unwrap_err().to_string();
    assert!(said.contains("the column second is missing"), "{said}");
}

#[test]
fn a_folder_that_holds_something_else_is_never_written_to() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.txt"), "do not lose me").unwrap();
    let error = BundleWriter::create(folder.path()).unwrap_err();
    assert!(matches!(error, BundleError::NotEmpty { .. }));
    assert!(error.to_string().contains("--output"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(matches!(
        BundleWriter::reopen(folder.path()),
        Err(BundleError::NotABundle { .. })
    ));
    assert!(matches!(
        Bundle::open(folder.path()),
        Err(BundleError::NotABundle { .. })
    ));
}

#[test]
fn an_earlier_run_is_not_overwritten_but_its_summary_may_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    assert!(matches!(
        BundleWriter::create(folder.path()),
        Err(BundleError::AlreadyABundle { .. })
    ));
    let writer = BundleWriter::reopen(folder.path()).unwrap();
    let mut ended = sample::manifest();
    ended.state = RunState::Complete;
    writer.write_manifest(&ended).unwrap();
    assert_eq!(Bundle::open(folder.path()).unwrap().manifest.state, RunState::Complete);
}

#[test]
fn another_schema_is_refused_before_its_shape_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    let manifest = folder.path().join("manifest.json");
    for schema in [1, 3] {
        fs::write(&manifest, format!(r#"{{"schema": {schema}, "another": "shape"}}"#)).unwrap();
        let error = Bundle::open(folder.path()).unwrap_err().to_string();
        let expected = format!(
            "{} has schema {schema}; this scaleprof reads 2\nfix: run the scaleprof that wrote it, or measure again",
            manifest.display()
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn a_manifest_that_was_cut_short_is_named() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    fs::write(folder.path().join("manifest.json"), r#"{"schema": 2"#).unwrap();
    assert!(
        Bundle::open(folder.path())
            .unwrap_err()
            .to_string()
            .contains("manifest.json")
    );
}

#[test]
fn a_measurement_is_written_once_and_with_its_own_rows() {
    let folder = tempfile::tempdir().unwrap();
    let writer = sample::write_two_measurements(folder.path());
    let twice = writer
        .write_measurement(&sample::rung(1), &MeasurementRows::default())
        .unwrap_err();
    assert!(twice.to_string().contains("measurement 1"), "{twice}");
    let seconds = MeasurementRows {
        seconds: vec![sample::second(1, 0)],
        ..MeasurementRows::default()
    };
    let states = MeasurementRows {
        states: sample::profiled(1).states,
        ..MeasurementRows::default()
    };
    let locks = MeasurementRows {
        locks: sample::profiled(1).locks,
        ..MeasurementRows::default()
    };
    for foreign in [seconds, states, locks, sample::profiled(0)] {
        let error = writer.write_measurement(&sample::rung(2), &foreign).unwrap_err();
        assert!(
            matches!(error, BundleError::Measurement { measurement: 2, .. }),
            "{error}"
        );
    }
}

/// Bytes that make the parquet crate itself panic (found by changing every byte of a part, each to five values).
#[test]
fn a_part_with_changed_bytes_is_at_worst_an_error() {
    let folder = tempfile::tempdir().unwrap();
    sample::write_two_measurements(folder.path());
    let part = folder.path().join("counters/measurement-00001.parquet");
    let bytes = fs::read(&part).unwrap();
    for at in (0..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        fs::write(&part, changed).unwrap();
        let _ = Bundle::open(folder.path());
    }
}
