//! Each parser bears what is kept of its kind, and a number of changes of that. What panics or takes
//! too much memory is written to a file, by whose name it can be tried again:
//! `FUZZ_INPUT=FILE FUZZ_TARGET=NAME cargo test -p fuzz`.

mod changes;

use changes::Changer;
use clap::ValueEnum;
use fuzz::{Target, most_memory};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use testing::counted_memory::{Counting, most_taken_by};

#[global_allocator]
static COUNTING: Counting = Counting;

/// All memory of this program is counted: one target at a time, where the tests share a process.
static ALONE: Mutex<()> = Mutex::new(());

/// An input that failed, where it can be found.
fn keep(target: Target, input: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{}", target.name()));
    fs::write(&path, input).expect("written");
    path
}

fn bears(target: Target, input: &[u8], what: &str) {
    let mut outcome = Ok(());
    let taken = most_taken_by(|| outcome = catch_unwind(AssertUnwindSafe(|| target.attempt(input))));
    if outcome.is_err() {
        panic!("{} panics by {what}: {}", target.name(), keep(target, input).display());
    }
    assert!(
        taken <= most_memory(input.len()),
        "{} takes {} MB for {} bytes, {what}: {}",
        target.name(),
        taken >> 20,
        input.len(),
        keep(target, input).display()
    );
}

fn is_borne_by(target: Target, changes: u32) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut kept: Vec<PathBuf> = fs::read_dir(target.corpus())
        .unwrap_or_else(|error| panic!("{}: {error}", target.corpus().display()))
        .map(|entry| entry.expect("a file").path())
        .collect();
    kept.sort();
    let mut inputs = Vec::new();
    for path in &kept {
        let input = fs::read(path).expect("readable");
        bears(target, &input, &path.display().to_string());
        inputs.push(input);
    }
    assert!(!inputs.is_empty(), "nothing is kept of {}", target.name());
    let mut changer = Changer::new(0);
    for change in 1..=changes {
        let input = changer.changed(&inputs);
        bears(target, &input, &format!("change {change}"));
    }
}

macro_rules! targets {
    ($($name:ident: $target:ident, $changes:literal;)*) => {
        $(#[test]
        fn $name() {
            is_borne_by(Target::$target, $changes);
        })*

        #[test]
        fn no_target_is_left_out() {
            let tried = [$(Target::$target),*];
            assert_eq!(tried.as_slice(), Target::value_variants());
        }
    };
}

// So many that a target takes one or two seconds.
targets! {
    a_file_of_perf_record_is_borne: PerfData, 100;
    a_text_of_perf_script_is_borne: PerfScript, 3_000;
    folded_stacks_are_borne: Folded, 6_000;
    a_profile_of_pprof_is_borne: Pprof, 6_000;
    a_text_of_perf_stat_is_borne: PerfStat, 12_000;
    an_elf_file_is_borne: Elf, 20_000;
    a_list_of_the_kernels_functions_is_borne: KernelSymbols, 50_000;
    a_map_of_names_for_perf_is_borne: PerfMap, 50_000;
    replies_of_a_server_are_borne: Replies, 50_000;
    a_script_of_statements_is_borne: SqlScript, 20_000;
    a_bundle_with_a_strange_table_is_borne: Bundle, 1_000;
}

/// One input of somebody's: `FUZZ_INPUT=FILE FUZZ_TARGET=NAME`.
#[test]
fn an_input_that_is_named_is_borne() {
    let Some(path) = std::env::var_os("FUZZ_INPUT") else {
        return;
    };
    let name = std::env::var("FUZZ_TARGET").expect("FUZZ_TARGET says of which parser");
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Target::from_str(&name, false).expect("a target's name");
    bears(target, &fs::read(&path).expect("readable"), "the named input");
}
