//! Outside of this crate a word of a set is compared as what it is, never as text.

use scaleprof_vocabulary::{
    AccessKind, BranchKind, ExperimentVerdict, FindingKind, GrowthShape, LadderVerdict, LatencyKind, LoopWord,
    MeasurementOutcome, Operation, Role, RunState, SettingSource, ShareOf, SymbolSource, ThreadState, TpccTransaction,
    UnwindStatus, WakerKind, Word, WorkloadName,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Lines that have such a word and mean something else, by what they contain.
const OTHERS: [(&str, &str); 9] = [
    // A line of /proc/PID/syscall.
    ("probe/src/plain/wait.rs", "first == \"running\""),
    // A distribution of rows.
    ("report/src/bug/environment.rs", "\"none\""),
    // A plan without replicas.
    ("experiment/src/trials/plan/server.rs", "method"),
    // A part of a function's name.
    ("binary/src/data_access/start_and_stop.rs", "\"update\""),
    // How an open loop spreads its transactions.
    ("workload/src/client/pacing.rs", "Arrivals"),
    // A line of /proc/cpuinfo.
    ("probe/src/cpu_facts.rs", "\"cpu model\""),
    // A group and an option of a client's option file.
    ("cli/src/credentials.rs", "group == \"client\""),
    ("cli/src/credentials.rs", "account.user"),
    // A key of a label.
    ("profile/src/pprof/read.rs", "labels.lock"),
];

fn names<W: Word>(all: &mut BTreeSet<&'static str>) {
    all.extend(W::WORDS.iter().map(|word| word.name()));
}

/// Files of the program itself: no tests, examples and generated ones.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_of_tests = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains("tests"));
        if is_of_tests {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// How a line looks that compares something with this word: `== "cpu"`, `"cpu" =>`, `"cpu" | "spin"`.
fn comparisons(word: &str) -> [String; 7] {
    let quoted = format!("\"{word}\"");
    [
        format!("== {quoted}"),
        format!("!= {quoted}"),
        format!("{quoted} =>"),
        format!("{quoted} | \""),
        format!("\" | {quoted}"),
        format!("Some({quoted})"),
        format!("{quoted}].contains"),
    ]
}

#[test]
fn no_word_is_compared_as_text() {
    let mut words = BTreeSet::new();
    names::<ThreadState>(&mut words);
    names::<Role>(&mut words);
    names::<WakerKind>(&mut words);
    names::<MeasurementOutcome>(&mut words);
    names::<UnwindStatus>(&mut words);
    names::<FindingKind>(&mut words);
    names::<ShareOf>(&mut words);
    names::<GrowthShape>(&mut words);
    names::<RunState>(&mut words);
    names::<LadderVerdict>(&mut words);
    names::<ExperimentVerdict>(&mut words);
    names::<SettingSource>(&mut words);
    names::<WorkloadName>(&mut words);
    names::<LoopWord>(&mut words);
    names::<TpccTransaction>(&mut words);
    names::<BranchKind>(&mut words);
    names::<AccessKind>(&mut words);
    names::<LatencyKind>(&mut words);
    names::<Operation>(&mut words);
    names::<SymbolSource>(&mut words);
    let comparisons: Vec<String> = words.into_iter().flat_map(comparisons).collect();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut problems = Vec::new();
    let mut looked_at = 0;
    for one in std::fs::read_dir(crates).expect("the crates") {
        let one = one.expect("a crate");
        let source = one.path().join("src");
        let mut files = Vec::new();
        if source.is_dir() && one.file_name() != "vocabulary" {
            sources(&source, &mut files);
        }
        looked_at += files.len();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("a source file");
            let program = text.split("\nmod tests {").next().unwrap_or("");
            for line in program
                .lines()
                .filter(|line| line.contains('"') && !line.trim_start().starts_with("//"))
            {
                let other = OTHERS
                    .iter()
                    .any(|(ending, part)| file.ends_with(ending) && line.contains(part));
                if !other && comparisons.iter().any(|one| line.contains(one)) {
                    problems.push(format!("{}: {}", file.display(), line.trim()));
                }
            }
        }
    }
    assert!(looked_at > 300, "only {looked_at} files were found");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}
