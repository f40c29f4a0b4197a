//! The page's types are made from the words: `UPDATE_EXPECTED=1` writes them.

use scaleprof_vocabulary::{
    ExperimentVerdict, FindingKind, GrowthShape, LadderVerdict, LoopWord, MeasurementOutcome, Operation, Role,
    RunState, ShareOf, ThreadState, UnwindStatus, WakerKind, Word, WorkloadName,
};
use std::fmt::Write as _;
use std::path::Path;

const FILE: &str = "../../web/src/vocabulary.ts";

/// `threadStates`, `ThreadState`, and where the page shows them `threadStateLabels`.
fn set<W: Word>(out: &mut String, are_shown: bool) {
    let words = || W::WORDS.iter().map(|word| (word.name(), word.label()));
    let first = W::SET[..1].to_lowercase();
    let (name, rest) = (W::SET, &W::SET[1..]);
    let plural = match rest.ends_with('s') {
        true => "es",
        false => "s",
    };
    let names: Vec<String> = words().map(|(name, _)| format!("{name:?}")).collect();
    let _ = write!(
        out,
        "\nexport const {first}{rest}{plural} = [{}] as const;\nexport type {name} = (typeof {first}{rest}{plural})[number];\n",
        names.join(", "),
    );
    if are_shown {
        let labels: Vec<String> = words().map(|(name, label)| format!("  {name}: {label:?},\n")).collect();
        let _ = write!(
            out,
            "export const {first}{rest}Labels: Record<{name}, string> = {{\n{}}};\n",
            labels.concat()
        );
    }
}

#[test]
fn the_pages_words_are_these() {
    let mut text = String::from(
        "/** Words that bundles and summaries hold, with what they are called. Made from the crate vocabulary by its test; not edited. */\n",
    );
    set::<ThreadState>(&mut text, true);
    set::<Role>(&mut text, false);
    set::<UnwindStatus>(&mut text, false);
    set::<WakerKind>(&mut text, false);
    set::<MeasurementOutcome>(&mut text, true);
    set::<Operation>(&mut text, false);
    set::<FindingKind>(&mut text, false);
    set::<ShareOf>(&mut text, true);
    set::<GrowthShape>(&mut text, true);
    set::<RunState>(&mut text, false);
    set::<LadderVerdict>(&mut text, false);
    set::<ExperimentVerdict>(&mut text, true);
    set::<WorkloadName>(&mut text, true);
    set::<LoopWord>(&mut text, false);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&file, &text).expect("the page's sources are writable");
    }
    let found = std::fs::read_to_string(&file).expect("the page's sources");
    assert_eq!(found, text, "set UPDATE_EXPECTED=1 to write {FILE}, and build the page");
}
