//! Gathers rules by address and cuts them into pages.

use std::collections::HashMap;
use std::ops::Range;

use super::rule_of_row::UNSUPPORTED;
use super::{Architecture, UnwindError, UnwindRow, UnwindRule, UnwindTable};

/// Pages of 64 KiB that a table may span: 4 GiB of code. A longer one is a broken file, not a server.
const PAGES: u64 = 1 << 16;

/// Ranges with rules, added by ascending address.
pub(super) struct Rows {
    changes: Vec<(u64, u16)>,
    end: u64,
    rules: Vec<UnwindRule>,
    numbers: HashMap<UnwindRule, u16>,
}

impl Default for Rows {
    fn default() -> Self {
        Rows {
            changes: Vec::new(),
            end: 0,
            rules: vec![UnwindRule::INVALID],
            numbers: HashMap::from([(UnwindRule::INVALID, 0)]),
        }
    }
}

impl Rows {
    /// Where the range added last ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds a range; what of it is covered already keeps its rule.
    pub(super) fn push(&mut self, range: Range<u64>, rule: UnwindRule) {
        let start = range.start.max(self.end);
        if start >= range.end {
            return;
        }
        if start > self.end && !self.changes.is_empty() {
            self.change(self.end, 0);
        }
        let number = self.number(rule);
        self.change(start, number);
        self.end = range.end;
    }

    fn change(&mut self, address: u64, number: u16) {
        if self.changes.last().is_none_or(|(_, last)| *last != number) {
            self.changes.push((address, number));
        }
    }

    /// Servers have some ten rules, glibc 300. Should a file have more than fit, the rest is unsupported.
    fn number(&mut self, rule: UnwindRule) -> u16 {
        if let Some(number) = self.numbers.get(&rule) {
            return *number;
        }
        match u16::try_from(self.rules.len()) {
            // The last number is kept for `UNSUPPORTED`.
            Ok(number) if number < u16::MAX || rule == UNSUPPORTED => {
                self.rules.push(rule);
                self.numbers.insert(rule, number);
                number
            }
            _ => self.number(UNSUPPORTED),
        }
    }

    pub(super) fn into_table(
        self,
        architecture: Architecture,
        fdes: usize,
        damaged: u32,
    ) -> Result<UnwindTable, UnwindError> {
        let Some((start, _)) = self.changes.first().copied() else {
            return Err(UnwindError::CoversNothing { damaged });
        };
        let end = self.end;
        let first = start >> 16;
        let last = (end - 1) >> 16;
        let first_page = u32::try_from(first).ok().filter(|_| last - first < PAGES);
        let first_page = first_page.ok_or(UnwindError::TooWide { start, end })?;

        let mut rows = Vec::with_capacity(self.changes.len() + (last - first) as usize + 1);
        let mut page_starts = Vec::with_capacity((last - first) as usize + 2);
        let mut changes = self.changes.into_iter().peekable();
        let mut carried = 0;
        for page in first..=last {
            page_starts.push(rows.len() as u32);
            let base = page << 16;
            if changes.peek().is_none_or(|(address, _)| *address != base) {
                rows.push(UnwindRow {
                    pc_low: 0,
                    rule: carried,
                });
            }
            while let Some((address, rule)) = changes.next_if(|(address, _)| address >> 16 == page) {
                let pc_low = (address & 0xffff) as u16;
                rows.push(UnwindRow { pc_low, rule });
                carried = rule;
            }
        }
        // Behind the last entry the last page has a gap.
        if end >> 16 == last {
            let pc_low = (end & 0xffff) as u16;
            rows.push(UnwindRow { pc_low, rule: 0 });
        }
        page_starts.push(rows.len() as u32);

        let unsupported = |row: &&UnwindRow| {
            self.rules
                .get(usize::from(row.rule))
                .is_some_and(UnwindRule::unsupported)
        };
        let unsupported_rows = rows.iter().filter(unsupported).count() as u32 + damaged;
        Ok(UnwindTable {
            architecture,
            first_page,
            page_starts,
            rows,
            rules: self.rules,
            unsupported_rows,
            fdes: u32::try_from(fdes).unwrap_or(u32::MAX),
        })
    }
}
