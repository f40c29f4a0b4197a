//! Files of other writers, and files made to do harm.

use super::*;
use crate::protobuf::Message;

/// A profile of the texts, samples, locations and functions that are given; a location is its number, its mapping and its lines.
fn profile(texts: &[&str], samples: &[Message], locations: &[(u64, u64, &[u64])], functions: &[(u64, u64)]) -> Vec<u8> {
    let mut all = Message::default();
    let mut cpu = Message::default();
    cpu.number(1, 1);
    cpu.number(2, 2);
    all.message(field::SAMPLE_TYPE, &cpu);
    for sample in samples {
        all.message(field::SAMPLE, sample);
    }
    for (number, mapping, lines) in locations {
        let mut location = Message::default();
        location.number(1, *number);
        location.number(2, *mapping);
        for function in *lines {
            let mut line = Message::default();
            line.number(1, *function);
            location.message(4, &line);
        }
        all.message(field::LOCATION, &location);
    }
    for (number, name) in functions {
        let mut function = Message::default();
        function.number(1, *number);
        function.number(2, *name);
        all.message(field::FUNCTION, &function);
    }
    for text in ["", "cpu", "milliseconds"].iter().chain(texts) {
        all.text(field::STRING_TABLE, text);
    }
    all.into_bytes()
}

fn sample(locations: &[u64], value: i64) -> Message {
    let mut sample = Message::default();
    sample.numbers(1, locations.iter().copied());
    sample.numbers(2, [value as u64]);
    sample
}

fn complaint(bytes: &[u8]) -> String {
    read(bytes, &ReadOptions::default()).unwrap_err().to_string()
}

#[test]
fn units_inlined_functions_and_negative_values_are_understood() {
    let samples = [sample(&[2, 1], 5), sample(&[1], -3), sample(&[1], 0), sample(&[], 7)];
    let bytes = profile(
        &["main", "inner", "outer"],
        &samples,
        &[(1, 0, &[1]), (2, 0, &[2, 3])],
        &[(1, 3), (2, 4), (3, 5)],
    );
    let found = read(&bytes, &ReadOptions::default()).unwrap();
    let profile = &found.profile;
    assert_eq!(profile.samples.len(), 1);
    assert_eq!(profile.samples[0].weight_ns, 5e6);
    let frames = profile.stacks.frames(profile.samples[0].stack).into_iter();
    let frames: Vec<(String, bool)> = frames
        .map(|frame| profile.frames.get(frame).unwrap())
        .map(|frame| (frame.function_name(), frame.inlined))
        .collect();
    let expected = [("main", false), ("outer", false), ("inner", true)];
    assert_eq!(frames, expected.map(|(name, inlined)| (name.to_owned(), inlined)));
    assert!(
        found.warnings[0].contains("1 samples have no stack"),
        "{:?}",
        found.warnings
    );
}

#[test]
fn what_does_not_fit_together_is_one_clear_error() {
    let good = |locations: &[(u64, u64, &[u64])], functions: &[(u64, u64)]| {
        profile(&["f"], &[sample(&[1], 1)], locations, functions)
    };
    assert!(complaint(&good(&[], &[])).contains("location 1"));
    assert!(complaint(&good(&[(1, 0, &[9])], &[])).contains("function 9"));
    assert!(complaint(&good(&[(1, 0, &[9])], &[(9, 77)])).contains("text 77"));
    let bytes = good(&[(1, 0, &[9])], &[(9, 3)]);
    assert!(read(&bytes, &ReadOptions::default()).is_ok());
    let said = complaint(&bytes[..bytes.len() - 1]);
    assert!(said.contains(&format!("of {}", bytes.len() - 1)), "{said}");
    assert!(complaint(&profile(&[], &[], &[], &[])).contains("no sample"));
}

#[test]
fn a_small_file_cannot_describe_millions_of_frames() {
    // A location with a thousand functions built in, inside of ever other callers.
    let lines = vec![1; 1000];
    let callers: Vec<u64> = (2..5000).collect();
    let mut locations: Vec<(u64, u64, &[u64])> = callers.iter().map(|number| (*number, 0, &[][..])).collect();
    locations.push((1, 0, &lines));
    let samples: Vec<Message> = callers
        .iter()
        .map(|caller| sample(&[1, *caller, *caller, *caller], 1))
        .collect();
    let mut mapped = profile(&["f"], &samples, &locations, &[(1, 3)]);
    // The callers have no names, so their addresses must differ.
    for (number, caller) in (1..).zip(&callers) {
        let mut location = Message::default();
        location.number(1, *caller);
        location.number(3, number);
        let mut all = Message::default();
        all.message(field::LOCATION, &location);
        mapped.extend(all.into_bytes());
    }
    let said = complaint(&mapped);
    assert!(said.contains("more call paths"), "{said}");
}

#[test]
fn deep_recursion_is_cut_and_told() {
    let deep = vec![1; 5000];
    let bytes = profile(&["f"], &[sample(&deep, 1)], &[(1, 0, &[1])], &[(1, 3)]);
    let found = read(&bytes, &ReadOptions::default()).unwrap();
    let profile = &found.profile;
    assert!(
        profile
            .stacks
            .depth(profile.samples[0].stack)
            .is_some_and(|depth| depth <= MOST_NAMED_FRAMES)
    );
    assert!(found.warnings[0].contains("1024"), "{:?}", found.warnings);
}
