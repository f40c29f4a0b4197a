//! aarch64's machine code taken apart, against what LLVM says of the same words; on a machine of any architecture.

use std::path::Path;
use std::process::Command;

use object::Architecture;
use scaleprof_binary::disassembly::{OperandNames, disassemble};

struct NoNames;

impl OperandNames for NoNames {
    fn code(&self, _: u64) -> Option<String> {
        None
    }

    fn data(&self, _: u64) -> Option<String> {
        None
    }
}

/// Words without any pattern (splitmix64), the same in every run.
fn words(count: u64) -> Vec<u32> {
    let word = |place: u64| {
        let mut z = place.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    };
    (1..=count).map(word).collect()
}

/// LLVM's text of each word; `None`, said aloud, where LLVM is not installed.
fn llvm(words: &[u32], folder: &Path) -> Option<Vec<String>> {
    let (raw, object) = (folder.join("words.bin"), folder.join("words.o"));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&raw, bytes).expect("written");
    let made = Command::new("llvm-objcopy")
        .args([
            "-I",
            "binary",
            "-O",
            "elf64-littleaarch64",
            "--rename-section=.data=.text,code",
        ])
        .args([&raw, &object])
        .status();
    let output = Command::new("llvm-objdump")
        .args(["-d", "--no-show-raw-insn", "--mattr=+v8.5a,+lse,+crypto,+fullfp16"])
        .arg(&object)
        .output();
    let (Ok(true), Ok(output)) = (made.map(|status| status.success()), output) else {
        testing::skip!("llvm-objdump: it is not installed. apt-get install llvm");
        return None;
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = |line: &str| {
        let (address, text) = line.split_once(':')?;
        u64::from_str_radix(address.trim(), 16).ok()?;
        Some(text.trim().to_owned())
    };
    let lines: Vec<String> = text.lines().filter_map(line).collect();
    assert_eq!(lines.len(), words.len());
    Some(lines)
}

#[test]
fn words_that_both_know_are_the_same_instruction() {
    let words = words(100_000);
    let folder = tempfile::tempdir().expect("a folder");
    let Some(theirs) = llvm(&words, folder.path()) else {
        return;
    };
    let (mut same, mut different, mut lacking) = (0, Vec::new(), Vec::new());
    for (word, theirs) in words.iter().zip(&theirs) {
        let ours = disassemble(Architecture::Aarch64, &word.to_le_bytes(), 0, &NoNames).expect("known");
        let [ours] = ours.as_slice() else {
            panic!("{word:#x} is one instruction")
        };
        let name = |text: &str| text.split_whitespace().next().unwrap_or_default().to_owned();
        match (ours.text.starts_with(".inst"), theirs.contains("unknown")) {
            (_, true) => {}
            (true, false) => lacking.push(theirs),
            (false, false) if name(&ours.text) == name(theirs) => same += 1,
            (false, false) => different.push((ours.text.clone(), theirs)),
        }
    }
    println!(
        "{same} are the same, {} are not, {} are not known",
        different.len(),
        lacking.len()
    );
    assert!(same > 25_000, "{same}");
    // Aliases of one instruction (`mov` and `dup`), and registers of the system.
    assert!(different.len() * 1000 < same, "{different:?}");
    assert!(lacking.len() * 100 < same, "{lacking:?}");
}
