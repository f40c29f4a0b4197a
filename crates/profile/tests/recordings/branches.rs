//! The last branches of a sample, which no virtual machine records: written byte by byte like the recordings of [`made`](crate::made).

use crate::made::{CHAIN, USER, frames, of_program, read};
use crate::written::{Event, Written, chain, field};
use scaleprof_profile::import::Recording;

#[test]
fn the_calls_that_the_processor_remembers_are_the_stack() {
    const CALL_STACK: u64 = 1 << 11;
    let mut event = Event::clock(CHAIN | field::BRANCH_STACK);
    event.branches = CALL_STACK;
    let mut file = Written::new(&[event]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    let mut content = chain(&[USER, 0x40_1000]);
    // How many, and from, to, flags of each, the newest first.
    let branches = [2_u64, 0x40_2000, 0x40_0f00, 0, 0x40_3000, 0x40_1f00, 0];
    content.extend(branches.iter().flat_map(|word| word.to_le_bytes()));
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &content);
    let found = read(&file);
    let own: Vec<(String, i64)> = frames(&found, &found.profile.samples[0])
        .into_iter()
        .filter(|(module, _)| module == "server")
        .collect();
    assert_eq!(
        own,
        of_program(&[0x3000, 0x2000, 0x1000]),
        "calls, not returns: nothing is taken off"
    );
    let is_told = |found: &Recording| found.warnings.iter().any(|warning| warning.contains("perf record -b"));
    assert!(!is_told(&found), "{:?}", found.warnings);

    // Jumps of any kind are no callers.
    const ANY: u64 = 1 << 3;
    let mut event = Event::clock(CHAIN | field::BRANCH_STACK);
    event.branches = ANY;
    let mut file = Written::new(&[event]);
    file.map(7, 0x40_0000, 0x10_0000, "/srv/server");
    file.sample(&[1, 7 << 32 | 7, 10, 1000], &content);
    let found = read(&file);
    assert!(is_told(&found), "{:?}", found.warnings);
    let own = frames(&found, &found.profile.samples[0]);
    assert!(
        own.iter()
            .filter(|(module, _)| module == "server")
            .map(|(_, at)| *at)
            .eq([0x1000]),
        "{own:?}"
    );
}
