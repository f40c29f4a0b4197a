//! Rules of code that no entry covers, as far as its bytes tell them.

use std::ops::Range;

use gimli::UnwindContext;

use super::jump_tables::JumpTables;
use super::left_alone::{AS_CALLED, Code};
use super::pages::Rows;
use super::trampolines::Trampolines;
use super::{UnwindRule, leaf_functions, program_start, rule_of_row};
use crate::call_frames::{CallFrames, Fde, Section};

/// What is known of a file's gaps between entries.
pub(super) struct Gaps<'data> {
    trampolines: Trampolines,
    jump_tables: JumpTables,
    start: Option<(Range<u64>, UnwindRule)>,
    leaves: Vec<(Range<u64>, UnwindRule)>,
    signal_frame: UnwindRule,
    code: Code<'data>,
}

impl<'data> Gaps<'data> {
    pub(super) fn of(bytes: &'data [u8], frames: &CallFrames<'_>, entries: &[Fde<'_>]) -> Self {
        Gaps {
            trampolines: Trampolines::find(bytes, frames),
            jump_tables: JumpTables::find(bytes, frames.architecture),
            start: program_start::find(bytes, frames),
            leaves: leaf_functions::rules(bytes, frames, entries),
            signal_frame: rule_of_row::signal_frame(frames.architecture),
            code: Code::of(bytes, frames, entries),
        }
    }

    /// The rule of an entry that starts here, if it describes code that a signal handler returns to.
    pub(super) fn signal_frame_at(&self, start: u64, fde: &Fde<'_>) -> Option<UnwindRule> {
        let returns = fde.is_signal_trampoline() || self.trampolines.starts_at(start);
        returns.then_some(self.signal_frame)
    }

    /// Adds the rules of what lies between the rows' end and an address, where the next entry begins.
    pub(super) fn fill(&self, rows: &mut Rows, next: u64, entries: &mut Beginnings<'_, '_>) {
        let gap = rows.end()..next;
        if gap.is_empty() {
            return;
        }
        let mut known: Vec<(Range<u64>, UnwindRule)> = Vec::new();
        let trampolines = self.trampolines.within(gap.clone());
        known.extend(trampolines.map(|range| (range, self.signal_frame)));
        known.extend(self.jump_tables.within(gap.clone()));
        known.extend(self.start.clone().filter(|(range, _)| gap.contains(&range.start)));
        let first = self.leaves.partition_point(|(range, _)| range.start < gap.start);
        let leaves = self.leaves.iter().skip(first);
        known.extend(leaves.take_while(|(range, _)| range.start < gap.end).cloned());
        known.sort_by_key(|(range, _)| range.start);
        for (range, rule) in known {
            self.follow(rows, range.start, entries);
            rows.push(range, rule);
        }
        self.follow(rows, next, entries);
    }

    /// The same where nothing is known but what the instructions do.
    fn follow(&self, rows: &mut Rows, next: u64, entries: &mut Beginnings<'_, '_>) {
        let gap = rows.end()..next;
        let parts = self.code.left_alone_within(gap, |address| {
            entries.at(address).is_some_and(|fde| {
                self.signal_frame_at(address, fde).is_none() && entries.first_rule(fde) == Some(AS_CALLED)
            })
        });
        for part in parts {
            rows.push(part, AS_CALLED);
        }
    }
}

/// Where entries begin, and with which rule.
pub(super) struct Beginnings<'data, 'own> {
    pub(super) frames: &'own CallFrames<'data>,
    pub(super) section: &'own Section<'own>,
    /// By start.
    pub(super) fdes: &'own [Fde<'own>],
    pub(super) context: UnwindContext<usize>,
}

impl<'own> Beginnings<'_, 'own> {
    fn at(&self, address: u64) -> Option<&'own Fde<'own>> {
        let first = self.fdes.partition_point(|fde| fde.initial_address() < address);
        self.fdes.get(first).filter(|fde| fde.initial_address() == address)
    }

    fn first_rule(&mut self, fde: &Fde<'own>) -> Option<UnwindRule> {
        let mut table = self.section.rows(fde, &mut self.context).ok()?;
        let row = table.next_row().ok().flatten()?;
        Some(rule_of_row::compile(row, self.frames.architecture, self.section))
    }
}
