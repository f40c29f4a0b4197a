//! A recording of the last branches (`perf record -b`), from the import to the listing of a function. No virtual machine records these: the
//! recording is written byte by byte, of a program that is really there.

use testing::perf_recording;

use crate::stage::{bundle, place, scaleprof, succeed};
use perf_recording::{Event, Written, chain, field};
use scaleprof_bundle::BranchRow;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop with a condition, and a call of a function that only its running tells.
const SOURCE: &str = "
typedef long (*step)(long);
long odd(long number) { return number * 3 + 1; }
long even(long number) { return number / 2; }
step steps[2] = { even, odd };
__attribute__((noinline)) long walk(long number)
{
	long count = 0;
	while (number != 1) {
		number = steps[number & 1](number);
		count++;
	}
	return count;
}
int main(int argc, char **argv) { (void)argv; return (int)walk(argc + 26); }
";

const USER: u64 = -512_i64 as u64;
/// Where the program lay in its process.
const START: u64 = 0x5555_0000_0000;
const MISPREDICTED: u64 = 1;
const PREDICTED: u64 = 1 << 1;
const ANY: u64 = 1 << 3;

fn program(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("walk.c"), folder.join("walk"));
    std::fs::write(&source, SOURCE).expect("written");
    let compiled = Command::new("cc")
        .args(["-g", "-O1", "-fno-inline", "-fPIE", "-pie", "-o"])
        .args([&program, &source])
        .status();
    assert!(compiled.expect("cc runs").success());
    program
}

/// A function of the program as its file has it.
fn listed(program: &Path, function: &str) -> Vec<Value> {
    let mut command = scaleprof();
    command.arg("annotate").arg(program).args([function, "--json"]);
    let listing: Value = serde_json::from_str(&succeed(&mut command).0).expect("JSON");
    listing["instructions"].as_array().expect("a list").clone()
}

fn address(instruction: &Value) -> u64 {
    instruction["address"].as_u64().expect("an address")
}

fn one<'a>(instructions: &'a [Value], branch: &str) -> &'a Value {
    let found = instructions.iter().rfind(|one| one["branch"] == branch);
    found.unwrap_or_else(|| panic!("no {branch} in {instructions:#?}"))
}

/// A recording in which `walk` was seen at its call, after these jumps.
fn recording(path: &Path, program: &Path, at: u64, jumps: &[(u64, u64, u64)]) {
    const FIELDS: u64 =
        field::TID | field::TIME | field::PERIOD | field::CALLCHAIN | field::IDENTIFIER | field::BRANCH_STACK;
    let mut file = Written::new(&[Event {
        branches: ANY,
        ..Event::clock(FIELDS)
    }]);
    file.feature_string(6, std::env::consts::ARCH);
    file.map(7, START, 0x10_0000, &program.to_string_lossy());
    for time in 1..=100 {
        let mut content = chain(&[USER, START + at]);
        let words = jumps
            .iter()
            .flat_map(|(from, to, flags)| [START + from, START + to, *flags]);
        let words = [jumps.len() as u64].into_iter().chain(words);
        content.extend(words.flat_map(u64::to_le_bytes));
        file.sample(&[1, 7 << 32 | 7, time * 10_000_000, 10_000_000], &content);
    }
    std::fs::write(path, &file.bytes).expect("written");
}

#[test]
fn recorded_jumps_are_in_the_bundle_and_stand_at_their_instructions() {
    let place = place();
    let program = program(place.path());
    let walk = listed(&program, "walk");
    let (back, call) = (one(&walk, "conditional"), one(&walk, "call"));
    let [odd, even] = ["odd", "even"].map(|function| address(&listed(&program, function)[0]));
    let looped = (address(back), back["target"].as_u64().expect("a target"));
    let jumps = [
        (looped.0, looped.1, PREDICTED | 9 << 4),
        (address(call), odd, MISPREDICTED | 5 << 4),
        (address(call), even, PREDICTED),
        (address(call), even, 0),
        (0x10_0000, looped.1, PREDICTED),
    ];
    let path = place.path().join("perf.data");
    recording(&path, &program, address(call), &jumps);

    let output = place.path().join("bundle");
    let mut import = scaleprof();
    import
        .args(["import", "--quiet", "--no-report", "--output"])
        .arg(&output)
        .arg(&path);
    succeed(&mut import);
    let imported = bundle(&output);
    let mut rows: Vec<BranchRow> = imported.branches().expect("readable").expect("a table");
    rows.sort_by_key(|row| (row.from_address, row.to_function.clone()));
    let expected = |from: u64, to: (&str, u64), taken, mispredicted, cycles: Option<i64>| BranchRow {
        measurement: 0,
        from_module: "walk".into(),
        from_function: Some("walk".into()),
        from_address: from as i64,
        to_module: "walk".into(),
        to_function: Some(to.0.into()),
        to_address: to.1 as i64,
        taken,
        with_prediction: 100,
        mispredicted: Some(mispredicted),
        with_cycles: cycles.map_or(0, |_| 100),
        cycles,
        from_build_id: rows[0].from_build_id.clone(),
        to_build_id: rows[0].from_build_id.clone(),
    };
    let mut all = vec![
        expected(looped.0, ("walk", looped.1), 100, 0, Some(900)),
        expected(address(call), ("odd", odd), 100, 100, Some(500)),
        expected(address(call), ("even", even), 200, 0, None),
    ];
    all.sort_by_key(|row| (row.from_address, row.to_function.clone()));
    assert_eq!(rows, all);
    let frame = imported.frames.iter().find(|frame| &*frame.module == "walk");
    let build_id = frame.map(|frame| frame.build_id.as_deref());
    assert_eq!(build_id, Some(rows[0].from_build_id.as_deref()));
    let left_out = "100 of its 500 branches (perf record -b) start or end outside of any file";
    let warnings = &imported.manifest.warnings;
    assert!(
        warnings.iter().any(|warning| warning.contains(left_out)),
        "{warnings:?}"
    );

    let annotate = || {
        let mut command = scaleprof();
        command.arg("annotate").arg(&output).arg("walk");
        command
    };
    let listing: Value = serde_json::from_str(&succeed(annotate().arg("--json")).0).expect("JSON");
    let instructions = listing["instructions"].as_array().expect("a list");
    let at_call = &one(instructions, "call")["branch_stats"];
    assert_eq!(
        (&at_call["taken"], &at_call["mispredicted"]),
        (&300.into(), &100.into())
    );
    assert_eq!(
        (&at_call["cycles"], &at_call["with_cycles"]),
        (&500.into(), &100.into())
    );
    assert_eq!(at_call["targets"][0]["function"], "even");
    assert!(instructions[0]["branch_stats"].is_null(), "it does not jump");
    let (text, _) = succeed(&mut annotate());
    let line = |words: &str| {
        let found = text.lines().find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("no {words}:\n{text}")).to_owned()
    };
    let call = line("-> even 67 %");
    assert!(call.contains(" 300 ") && call.contains(" 50 % "), "{call}");
    let back = line(&format!("{:x}  ", looped.0));
    assert!(back.contains(" 100 ") && back.contains(" 0.0 % "), "{back}");
    assert!(
        text.contains("taken predicted") && text.contains("\u{201c}taken\u{201d} counts"),
        "{text}"
    );
}
