//! The unwind tables of all files that a process has mapped, laid end to end as the walk wants them.

use scaleprof_binary::unwind::UnwindTable;

use super::layout::{CodeObject, MAX_MAPPINGS, MAX_OBJECTS, Mapping, PageRows, Row, Rule};

/// Tables of many files. Files are only ever added: what the kernel already has stays where it is.
#[derive(Debug, Default)]
pub struct CodeTables {
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) objects: Vec<CodeObject>,
    pub(crate) pages: Vec<PageRows>,
    pub(crate) rows: Vec<Row>,
    pub(crate) rules: Vec<Rule>,
}

/// How long the tables are: what was there before is not written again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub objects: usize,
    pub pages: usize,
    pub rows: usize,
    pub rules: usize,
}

impl CodeTables {
    /// Takes the tables of one more file; none where there is no room for another.
    pub(crate) fn add_object(&mut self, table: &UnwindTable) -> Option<u32> {
        if self.objects.len() >= MAX_OBJECTS {
            return None;
        }
        let count = |length: usize| u32::try_from(length).ok();
        let first_row = count(self.rows.len())?;
        let object = CodeObject {
            first_page: table.first_page,
            page_count: count(table.page_starts.len().saturating_sub(1))?,
            pages: count(self.pages.len())?,
            rules: count(self.rules.len())?,
        };
        let index = count(self.objects.len())?;
        self.objects.push(object);
        self.pages.extend(table.page_starts.windows(2).map(|pair| PageRows {
            first: first_row + pair[0],
            count: pair[1].saturating_sub(pair[0]),
        }));
        self.rows.extend(table.rows.iter().map(|row| Row {
            pc_low: row.pc_low,
            rule: row.rule,
        }));
        self.rules.extend(table.rules.iter().map(|rule| Rule {
            cfa: rule.cfa,
            fp: rule.fp,
            ra: rule.ra,
            reserved: rule.reserved,
            cfa_offset: rule.cfa_offset,
            fp_offset: rule.fp_offset,
            ra_offset: rule.ra_offset,
        }));
        Some(index)
    }

    /// Replaces the mappings; those past the most that fit are left out (and their frames end as `no_mapping`).
    pub(crate) fn set_mappings(&mut self, mut mappings: Vec<Mapping>) {
        mappings.sort_by_key(|mapping| mapping.start);
        mappings.truncate(MAX_MAPPINGS);
        self.mappings = mappings;
    }

    pub(crate) fn lengths(&self) -> Lengths {
        Lengths {
            objects: self.objects.len(),
            pages: self.pages.len(),
            rows: self.rows.len(),
            rules: self.rules.len(),
        }
    }
}
