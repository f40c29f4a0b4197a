//! Recordings of all formats: which one it is shows in the bytes.

use scaleprof_profile::import::{ReadOptions, read_recordings, recordings_in};

/// Reads it as `import` does, and as `import --process` would.
pub(crate) fn attempt(bytes: &[u8]) {
    assert!(recordings_in(bytes) >= 1);
    for process in [None, Some("34".to_owned())] {
        let options = ReadOptions {
            process,
            // Files of this machine are no part of the input.
            symfs: Some("/nonexistent".into()),
            inlines: true,
            ..ReadOptions::default()
        };
        match read_recordings(bytes, &options) {
            Ok(recordings) => {
                for recording in &recordings {
                    let profile = &recording.profile;
                    for sample in &profile.samples {
                        assert!(sample.weight_ns.is_finite() && sample.weight_ns >= 0.0);
                        assert!(profile.stacks.get(sample.stack).is_some());
                    }
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
