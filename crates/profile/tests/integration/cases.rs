//! Files of other people's kind that went wrong once (`tests/cases`), with the right value of each.

use scaleprof_profile::import::{ReadOptions, Recording, read_recordings};
use scaleprof_vocabulary::ThreadState;
use std::path::PathBuf;

fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(name: &str) -> Recording {
    let read = read_recordings(bytes(name), &ReadOptions::default());
    let mut recordings = read.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(recordings.len(), 1, "{name}");
    recordings.remove(0)
}

fn refused(name: &str) -> String {
    let read = read_recordings(bytes(name), &ReadOptions::default());
    read.expect_err(name).to_string()
}

/// The call path of a sample, outermost first.
fn path(recording: &Recording, sample: usize) -> Vec<String> {
    let profile = &recording.profile;
    let frames = profile.stacks.frames(profile.samples[sample].stack).into_iter();
    frames
        .map(|frame| profile.frames.get(frame).expect("a frame").function_name())
        .collect()
}

/// Seconds that are spent in a function itself, as `go tool pprof -top` has them (flat).
fn flat(recording: &Recording, function: &str) -> f64 {
    let samples = 0..recording.profile.samples.len();
    let of_function = samples.filter(|sample| path(recording, *sample).last().is_some_and(|last| last == function));
    let weights = of_function.map(|sample| recording.profile.samples[sample].weight_ns);
    weights.sum::<f64>() / 1e9
}

fn all(recording: &Recording) -> f64 {
    recording
        .profile
        .samples
        .iter()
        .map(|sample| sample.weight_ns)
        .sum::<f64>()
        / 1e9
}

/// The figures are those of `go tool pprof -top` of the same files.
#[test]
fn go_s_profiles_of_time_are_read_as_go_reads_them() {
    for (name, state, total, function, of_function) in [
        ("cpu", ThreadState::Cpu, 0.59, "runtime.nanotime", 0.56),
        ("mutex", ThreadState::Lock, 0.252_59, "sync.(*Mutex).Unlock", 0.252_59),
        ("block", ThreadState::Lock, 0.339_65, "sync.(*Mutex).Lock", 0.252_12),
    ] {
        let recording = read(&format!("pprof/go-{name}.pprof"));
        // Go drops nodes of less than half a per cent from its table.
        assert!(
            (all(&recording) / total - 1.0).abs() < 0.005,
            "{name}: {}",
            all(&recording)
        );
        let found = flat(&recording, function);
        assert!((found / of_function - 1.0).abs() < 0.001, "{name}: {found}");
        assert!(
            recording.profile.samples.iter().all(|sample| sample.state == state),
            "{name}"
        );
    }
}

#[test]
fn go_s_profiles_of_memory_and_goroutines_are_named_and_refused() {
    let heap = refused("pprof/go-heap.pprof");
    assert!(heap.contains("of the heap") && heap.contains("CPU time"), "{heap}");
    let goroutines = refused("pprof/go-goroutine.pprof");
    assert!(goroutines.contains("of goroutines"), "{goroutines}");
    let asked = ReadOptions {
        event: Some("inuse_space".to_owned()),
        ..ReadOptions::default()
    };
    read_recordings(bytes("pprof/go-heap.pprof"), &asked).expect("asked for");
}

#[test]
fn what_is_not_read_is_named_with_the_command_that_gives_what_can_be() {
    for (name, what, command) in [
        ("perf-report", "perf report", "perf script -i perf.data"),
        ("perf-report-flat", "perf report", "perf script -i perf.data"),
        ("opreport", "opreport", "perf record"),
        ("opreport-symbols", "opreport", "perf record"),
        ("pt-pmp", "pt-pmp", "stackcollapse-pmp.pl"),
        ("gdb-bt", "gdb", "stackcollapse-gdb.pl"),
        ("bpftrace", "bpftrace", "stackcollapse-bpftrace.pl"),
        ("bcc-unfolded", "bcc", "-f"),
        ("dtrace", "DTrace", "stackcollapse.pl"),
    ] {
        let said = refused(&format!("reports/{name}.txt"));
        assert!(said.contains(what) && said.contains(command), "{name}: {said}");
    }
    let utf16 = refused("texts/utf16le.folded");
    assert!(utf16.contains("UTF-16") && utf16.contains("iconv"), "{utf16}");
}

#[test]
fn stacks_of_offcputime_are_off_cpu() {
    let recording = read("reports/bcc-folded-offcpu.txt");
    let states: Vec<ThreadState> = recording.profile.samples.iter().map(|sample| sample.state).collect();
    assert_eq!(states, [ThreadState::Lock, ThreadState::Lock, ThreadState::Other]);
    assert_eq!(
        recording.warnings.len(),
        1,
        "of the line that is no stack: {:?}",
        recording.warnings
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let recording = read("texts/byte-order-mark.folded");
    let roots: Vec<String> = (0..2).map(|sample| path(&recording, sample)[0].clone()).collect();
    assert_eq!(roots, ["main", "main"]);
    let weights: Vec<f64> = recording
        .profile
        .samples
        .iter()
        .map(|sample| sample.weight_ns / 1000.0)
        .collect();
    assert_eq!(weights, [3.0, 4.0]);
    let script = [b"\xef\xbb\xbf".as_slice(), &bytes("perf-script/operators.txt")].concat();
    let script = read_recordings(script, &ReadOptions::default()).expect("a text");
    assert_eq!(script[0].profile.samples.len(), 4);
}

#[test]
fn functions_are_not_replaced_by_the_places_of_their_source() {
    let recording = read("perf-script/srcline.txt");
    assert_eq!(recording.profile.samples.len(), 4);
    assert_eq!(
        path(&recording, 0),
        [
            "handler::ha_index_read_map",
            "ha_innobase::index_read",
            "row_search_mvcc",
            "_dl_relocate_object"
        ]
    );
}

#[test]
fn names_are_demangled_and_operators_stay_whole() {
    let recording = read("perf-script/operators.txt");
    assert_eq!(
        path(&recording, 0),
        [
            "cafe",
            "deadbeef",
            "[unnamed in mysqld]",
            "(anonymous namespace)::walk(char (&) [16])",
            // Its mangled name says that it has 12 letters.
            "buf_page_get",
            "foo(bool (*)(char const*))::{lambda(int)#1}::operator()(int) const",
            "std::function<void (int)>::operator()(int) const",
            "operator<<",
        ]
    );
}

#[test]
fn images_modules_and_programs_of_the_kernel_are_its_own() {
    let recording = read("perf-script/vmlinux.txt");
    let path = path(&recording, 0);
    let of_kernel: Vec<&String> = path.iter().filter(|name| name.ends_with(" [k]")).collect();
    assert_eq!(of_kernel.len(), 8, "{path:?}");
    assert_eq!(
        (path[0].as_str(), path[1].as_str()),
        ("do_command", "__vdso_clock_gettime")
    );
}

#[test]
fn threads_whose_names_have_spaces_and_texts_without_times_are_read() {
    let recording = read("perf-script/names-with-spaces.txt");
    let names: Vec<&str> = recording.threads.values().map(|thread| thread.name.as_str()).collect();
    assert_eq!(names, ["con (idle) 7", "ib page cleaner", ":12345", "DOM Worker 2"]);
    assert_eq!(recording.profile.samples.len(), 4);
    let recording = read("perf-script/no-time-no-indent.txt");
    assert_eq!(recording.profile.samples.len(), 2);
    assert_eq!(path(&recording, 1).len(), 3);
    let recording = read("perf-script/failed-to-open-first.txt");
    assert_eq!(recording.profile.samples.len(), 4);
}
