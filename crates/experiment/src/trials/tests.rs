//! Experiments that are gone on with.

use super::*;
use std::fs;

fn begun(path: &Path) -> Experiment {
    let file = PlanFile::parse("[[variant]]\n[[variant]]\n", "e.toml").expect("a plan");
    let source = PlanSource {
        file: Some("e.toml"),
        folder: Path::new("/plans"),
        work_folder: None,
    };
    Experiment::begin(&file, source, path).expect("begun")
}

/// What the folder's plan says of starts side by side, and then says instead.
fn kept_instead(path: &Path, side_by_side: Option<bool>) -> Option<bool> {
    let file = path.join("plan.json");
    let text = fs::read(&file).expect("the plan is kept");
    let mut plan: serde_json::Value = serde_json::from_slice(&text).expect("a plan");
    let fields = plan.as_object_mut().expect("fields");
    let before = fields.remove("side_by_side").and_then(|kept| kept.as_bool());
    if let Some(side_by_side) = side_by_side {
        fields.insert("side_by_side".to_owned(), side_by_side.into());
    }
    fs::write(&file, plan.to_string()).expect("written");
    before
}

#[test]
fn what_was_measured_one_by_one_is_gone_on_with_and_told_one_by_one() {
    // A folder of a version that knew no turns says nothing of them.
    for (kept, side_by_side) in [(None, false), (Some(false), false), (Some(true), true)] {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("e");
        let begun = begun(&path);
        let as_begun = begun.plan().design.side_by_side;
        drop(begun);
        assert_eq!(kept_instead(&path, kept), Some(as_begun));
        let again = Experiment::resume(&path).expect("found");
        assert_eq!(again.plan().design.side_by_side, side_by_side);
        assert_eq!(again.plan().one_by_one.is_none(), side_by_side);
        let told = again.so_far().design.slice_seconds;
        assert_eq!(told, side_by_side.then_some(0.25));
    }
}
