//! What a recording's functions weigh here and in `perf report --no-inline`, for recordings that are made on the spot.

use super::recorded::{Compared, Recorded, compiled};
use scaleprof_profile::import::ReadOptions;

/// Without functions that were built into others, as perf's `--no-inline`.
fn plain() -> ReadOptions {
    ReadOptions::default()
}

/// Optimised, a function that calls none makes no frame, and its caller is missing.
const FRAME_POINTERS: [&str; 4] = ["-O0", "-fno-omit-frame-pointer", "-g", "-no-pie"];
const NO_FRAME_POINTERS: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-g"];
const CLOCK: [&str; 4] = ["-e", "cpu-clock:u", "-F", "999"];

#[test]
fn stacks_by_frame_pointers_weigh_what_perf_says() {
    let Some(program) = compiled("work.c", &FRAME_POINTERS) else {
        return;
    };
    let Some(recorded) = Recorded::of(&program, &[], &[&CLOCK[..], &["-g"]].concat()) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    compared.assert_agree(0.02);
    compared.assert_seen(&["inner", "first_caller", "second_caller", "recursive", "main"]);
}

#[test]
fn copied_stacks_that_were_walked_weigh_what_perf_says() {
    let Some(program) = compiled("work.c", &NO_FRAME_POINTERS) else {
        return;
    };
    let Some(recorded) = Recorded::of(&program, &[], &[&CLOCK[..], &["--call-graph", "dwarf,8192"]].concat()) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    compared.assert_agree(0.02);
    compared.assert_seen(&["inner", "recursive", "second_caller", "main"]);
    let complete = compared
        .recording
        .profile
        .samples
        .iter()
        .filter(|sample| sample.ending.name() == "complete");
    let share = complete.count() as f64 / compared.recording.profile.samples.len() as f64;
    assert!(share > 0.95, "only {share} of the stacks are complete");
}

#[test]
fn a_caller_is_found_from_a_register_that_functions_below_use_for_themselves() {
    let Some(program) = compiled("other_register.c", &NO_FRAME_POINTERS) else {
        return;
    };
    let Some(recorded) = Recorded::of(&program, &[], &[&CLOCK[..], &["--call-graph", "dwarf,8192"]].concat()) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    compared.assert_agree(0.02);
    compared.assert_seen(&["inner", "busy", "anchored", "caller", "main"]);
    let callers = compared.ours["caller"].children;
    assert!(callers.is_some_and(|share| share > 99.0), "{callers:?}");
}

#[test]
fn of_several_events_the_one_that_tells_cpu_time_is_taken() {
    let Some(program) = compiled("work.c", &FRAME_POINTERS) else {
        return;
    };
    let events = ["-e", "page-faults", "-e", "cpu-clock:u", "-F", "999", "-g"];
    let Some(recorded) = Recorded::of(&program, &[], &events) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    assert_eq!(compared.recording.event.as_deref(), Some("cpu-clock:u"));
    compared.assert_agree(0.02);
    let faults = ReadOptions {
        event: Some("page-faults".to_owned()),
        ..plain()
    };
    let compared = Compared::of(&recorded, &faults);
    assert_eq!(compared.recording.event.as_deref(), Some("page-faults"));
    // Few, and most of them in the loader: no function is worth comparing.
    assert!(!compared.recording.profile.samples.is_empty());
}

#[test]
fn processes_have_their_own_files_at_their_own_places() {
    let Some(program) = compiled("work.c", &NO_FRAME_POINTERS) else {
        return;
    };
    let options = [&CLOCK[..], &["--call-graph", "dwarf,8192"]].concat();
    let Some(recorded) = Recorded::of(&program, &["children", &program.copied("other_program")], &options) else {
        return;
    };
    let of = |name: &str| ReadOptions {
        process: Some(name.to_owned()),
        ..plain()
    };
    let first = Compared::of(&recorded, &of("work"));
    first.assert_agree(0.02);
    first.assert_seen(&["first_caller", "recursive"]);
    // The parent and the child that stayed; the other one too if it was met before it became another program.
    let threads = first.recording.threads.len();
    assert!((2..=3).contains(&threads), "{threads}");
    // perf looks up what the child had mapped before it became another program, so its callers are lost there.
    let other = Compared::of(&recorded, &of("other_program")).without_children();
    other.assert_agree(0.02);
    assert_eq!(other.recording.threads.len(), 1);
    let callers = other.ours["only_in_other_program"].children;
    assert!(callers.is_some_and(|share| share > 99.0), "{callers:?}");
}

#[test]
fn functions_that_were_built_in_are_told_apart_and_change_nothing_around_them() {
    let Some(program) = compiled("inlines.cc", &NO_FRAME_POINTERS) else {
        return;
    };
    let options = [&CLOCK[..], &["--call-graph", "dwarf,4096"]].concat();
    let Some(recorded) = Recorded::of(&program, &[], &options) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    compared.assert_agree(0.02);
    compared.assert_seen(&["storage::twice", "storage::Page::read"]);
    let inlines = ReadOptions {
        inlines: true,
        ..plain()
    };
    let with_inlines = Compared::of(&recorded, &inlines);
    for outer in ["storage::twice", "storage::Page::read", "main"] {
        let children = |compared: &Compared| compared.ours.get(outer).map(|weight| weight.children);
        assert_eq!(children(&compared), children(&with_inlines), "{outer}");
    }
    let inner = with_inlines
        .ours
        .iter()
        .find(|(name, _)| name.starts_with("storage::mix"));
    let (_, weight) = inner.expect("the template is told apart");
    assert!(weight.own > 90.0, "it does all of the work, not {} %", weight.own);
}

#[test]
fn a_pipe_and_a_compressed_file_say_the_same() {
    let Some(program) = compiled("work.c", &FRAME_POINTERS) else {
        return;
    };
    for options in [&["-g", "-o", "-"][..], &["-g", "-z"]] {
        let Some(recorded) = Recorded::of(&program, &[], &[&CLOCK[..], options].concat()) else {
            return;
        };
        let compared = Compared::of(&recorded, &plain());
        compared.assert_agree(0.02);
        compared.assert_seen(&["inner"]);
    }
}

/// Each thread of perf writes a file of its own, and compresses it by itself.
#[test]
fn the_folder_of_a_perf_with_several_threads_says_the_same() {
    let Some(program) = compiled("work.c", &FRAME_POINTERS) else {
        return;
    };
    for options in [&["--threads", "-g"][..], &["--threads=cpu", "-g", "-z"]] {
        let Some(recorded) = Recorded::of(&program, &[], &[&CLOCK[..], options].concat()) else {
            return;
        };
        let compared = Compared::of(&recorded, &plain());
        compared.assert_agree(0.02);
        compared.assert_seen(&["inner", "recursive", "main"]);
    }
}

#[test]
fn functions_of_the_kernel_and_of_the_c_library_weigh_what_perf_says() {
    let Some(program) = compiled("system.c", &NO_FRAME_POINTERS) else {
        return;
    };
    let with_kernel = ["-e", "cpu-clock", "-F", "2999", "--call-graph", "dwarf,8192"];
    let Some(recorded) = Recorded::of(&program, &[], &with_kernel) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    compared.assert_seen(&["vfs_read", "ksys_read", "by_value"]);
    compared.assert_all_agree(0.3, 0.02, 0.4);
}

#[test]
fn a_flat_recording_says_where_threads_were() {
    let Some(program) = compiled("work.c", &NO_FRAME_POINTERS) else {
        return;
    };
    let Some(recorded) = Recorded::of(&program, &[], &CLOCK) else {
        return;
    };
    let compared = Compared::of(&recorded, &plain());
    compared.assert_agree(0.02);
}
