//! Machine code taken apart, against what objdump says of the same bytes.
#![cfg(target_arch = "x86_64")]

use crate::files;
use scaleprof_vocabulary::{AccessKind, BranchKind};

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use files::binary;
use scaleprof_binary::disassembly::{Disassembler, FunctionListing};
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

/// A line of objdump's.
#[derive(Debug)]
struct Line {
    text: String,
    /// What it says behind `#`: the address that the operand names.
    names: Option<u64>,
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

/// objdump's lines between two addresses; `None`, said aloud, where it is not installed.
fn objdump(path: &Path, start: u64, end: u64) -> Option<BTreeMap<u64, Line>> {
    let output = Command::new("objdump")
        .args(["-d", "-w", "--no-show-raw-insn", "-M", "intel"])
        .arg(format!("--start-address={start:#x}"))
        .arg(format!("--stop-address={end:#x}"))
        .arg(path)
        .output();
    let output = match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => {
            testing::skip!("objdump: {error}. apt-get install binutils");
            return None;
        }
    };
    let line = |line: &str| {
        let (address, rest) = line.split_once(":\t")?;
        let (text, comment) = match rest.split_once('#') {
            Some((text, comment)) => (text, comment.split_whitespace().next()),
            None => (rest, None),
        };
        let line = Line {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            names: comment.and_then(|address| hexadecimal(address.trim_start_matches("0x"))),
        };
        Some((hexadecimal(address.trim())?, line))
    };
    let lines: BTreeMap<u64, Line> = output.lines().filter_map(line).collect();
    assert!(!lines.is_empty(), "objdump says nothing of {}", path.display());
    Some(lines)
}

/// Addresses, lengths, targets of branches and named memory are objdump's; gives how many instructions were compared.
fn agrees(listing: &FunctionListing, lines: &BTreeMap<u64, Line>) -> usize {
    let of_objdump: Vec<u64> = lines
        .range(listing.range.clone())
        .map(|(address, _)| *address)
        .collect();
    let ours: Vec<u64> = listing.instructions.iter().map(|one| one.instruction.address).collect();
    assert_eq!(ours, of_objdump, "{}", listing.function);
    let last = listing.instructions.last().map(|one| one.instruction.end());
    assert_eq!(last, Some(listing.range.end), "{}", listing.function);
    for listed in &listing.instructions {
        let instruction = &listed.instruction;
        let line = &lines[&instruction.address];
        let words: Vec<&str> = line.text.split(' ').collect();
        let target = words.iter().rev().find_map(|word| hexadecimal(word));
        let says = |kind| instruction.branch.is_some_and(|branch| branch.kind == kind);
        if let Some(branch) = instruction.branch.filter(|branch| branch.target.is_some()) {
            assert_eq!(branch.target, target, "{instruction:?} {line:?}");
        }
        let operation = words
            .iter()
            .find(|word| !matches!(**word, "bnd" | "notrack" | "repz" | "rep"));
        let operation = operation.copied().unwrap_or_default();
        assert_eq!(says(BranchKind::Call), operation == "call", "{instruction:?} {line:?}");
        assert_eq!(says(BranchKind::Return), operation == "ret", "{instruction:?} {line:?}");
        let jumps = says(BranchKind::Jump) || says(BranchKind::Conditional);
        let is_jump = operation.starts_with('j') || operation.starts_with("loop");
        assert_eq!(jumps, is_jump, "{instruction:?} {line:?}");
        // What only takes an address touches nothing.
        let touches =
            !operation.starts_with("lea") && !operation.starts_with("nop") && !operation.starts_with("prefetch");
        if let Some(address) = line.names.filter(|_| touches) {
            let access = instruction.access;
            assert_eq!(
                access.and_then(|access| access.address),
                Some(address),
                "{instruction:?} {line:?}"
            );
        }
        let locked = line.text.starts_with("lock ");
        assert!(
            !locked || instruction.access.is_some_and(|access| access.locked),
            "{instruction:?} {line:?}"
        );
    }
    listing.instructions.len()
}

#[test]
fn every_instruction_of_a_part_of_mysqld_is_where_objdump_has_it() {
    let Some(server) = binary("mysql-5.6.14") else { return };
    let symbols = SymbolFile::open(&server.path, &SymbolSearch::nowhere()).expect("symbols");
    let waiting = SpinLoops::default();
    let disassembler = Disassembler::of(&server.bytes, &symbols, &waiting).expect("ELF");
    let start_of = |name: &str| {
        let found = symbols.functions_with(name);
        found
            .iter()
            .find(|function| function.name == name)
            .map(|function| function.start)
            .expect(name)
    };
    // InnoDB's utilities and buffer pool, some hundred functions; and a large one of the SQL layer.
    let (first, last) = (start_of("ut_delay"), start_of("buf_page_get_gen"));
    let parser = start_of("MYSQLparse");
    let mut compared = 0;
    for range in [first..last + 1, parser..parser + 1] {
        let ranges = symbols.function_ranges().iter();
        let starts: Vec<u64> = ranges
            .map(|one| one.start)
            .filter(|start| range.contains(start))
            .collect();
        let listings = disassembler.functions(&starts);
        let end = listings.last().map_or(0, |listing| listing.range.end);
        let Some(lines) = objdump(&server.path, range.start, end) else {
            return;
        };
        compared += listings.iter().map(|listing| agrees(listing, &lines)).sum::<usize>();
    }
    println!("{compared} instructions agree");
    assert!(compared > 30_000, "{compared}");
}

const SOURCE: &str = "
long counter, other;
__attribute__((always_inline)) static inline void count_one(void) { __sync_fetch_and_add(&counter, 1); }
long hot(unsigned long times)
{
	while (times--) {
		count_one();
		if (times & 1)
			other = times;
	}
	return counter;
}
void waits(volatile int *flag) { while (*flag) __asm__ volatile(\"pause\" ::: \"memory\"); }
int main(int argc, char **argv) { (void)argv; return (int)hot(argc); }
";

#[test]
fn a_compiled_loop_has_its_lines_its_inlined_function_its_variables_and_its_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("hot.c"), folder.path().join("hot"));
    std::fs::write(&source, SOURCE).expect("written");
    for options in [["-O2", "-fPIE", "-pie"], ["-O1", "-fno-pie", "-no-pie"]] {
        let compiled = Command::new("cc")
            .arg("-g")
            .args(options)
            .arg("-o")
            .args([&program, &source])
            .status();
        assert!(compiled.expect("cc runs").success());
        let bytes = std::fs::read(&program).expect("readable");
        let symbols = SymbolFile::open(&program, &SymbolSearch::nowhere()).expect("symbols");
        let waiting = SpinLoops::of("hot", &bytes, symbols.function_ranges()).expect("ELF");
        let disassembler = Disassembler::of(&bytes, &symbols, &waiting).expect("ELF");
        let listing = |name: &str| {
            let found = symbols.functions_with(name);
            let function = found.iter().find(|function| function.name == name).expect(name);
            disassembler.function(function.start).expect("code")
        };
        let hot = listing("hot");
        let Some(lines) = objdump(&program, hot.range.start, hot.range.end) else {
            return;
        };
        agrees(&hot, &lines);
        let locked: Vec<_> = hot
            .instructions
            .iter()
            .filter(|one| one.instruction.access.is_some_and(|access| access.locked))
            .collect();
        let [count] = locked.as_slice() else { panic!("{hot:#?}") };
        let access = count.instruction.access.expect("it has one");
        let counter = symbols.variable(access.address.expect("named")).expect("a variable");
        assert_eq!((counter.name.as_str(), counter.offset), ("counter", 0));
        assert_eq!((access.kind, access.size), (AccessKind::Update, Some(8)));
        assert!(count.instruction.text.contains("[counter]"), "{count:?}");
        assert_eq!(
            (count.inlined.as_slice(), count.line),
            (&["count_one".into()][..], Some(3))
        );
        let file = count.file.as_deref().expect("debug information");
        assert!(file.ends_with("hot.c") && file.matches('/').count() <= 1, "{file}");
        let stored = hot
            .instructions
            .iter()
            .find(|one| one.instruction.text.contains("[other]"))
            .expect("stored");
        assert_eq!(
            stored.instruction.access.map(|access| access.kind),
            Some(AccessKind::Write)
        );
        assert!(!hot.instructions.iter().any(|one| one.waits));

        let waits = listing("waits");
        let pause = waits
            .instructions
            .iter()
            .find(|one| one.instruction.text == "pause")
            .expect("it pauses");
        assert!(
            pause.waits && waits.instructions.iter().any(|one| !one.waits),
            "{waits:#?}"
        );
    }
}
