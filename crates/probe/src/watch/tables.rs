//! The unwind tables of all files that a process has mapped, laid end to end as the walk wants them.

use scaleprof_binary::unwind::UnwindTable;
use serde::{Deserialize, Serialize};

use super::layout::{CodeObject, MAX_MAPPINGS, MAX_OBJECTS, Mapping, PageRows, Row, Rule};

/// Tables of many files. Files are only ever added: what the kernel already has stays where it is.
#[derive(Debug, Default, Serialize, Deserialize)]
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

    /// What is needed to walk through these addresses: the rows of their pages of code, and nothing of other pages.
    pub(crate) fn excerpt(&self, addresses: &[u64]) -> CodeTables {
        let mut wanted: Vec<bool> = vec![false; self.pages.len()];
        for address in addresses {
            let mapping = self.mappings.iter().find(|m| (m.start..m.end).contains(address));
            let object = mapping.and_then(|m| Some((m, self.objects.get(m.object as usize)?)));
            // A return address may be the first one of the next page.
            for back in 0..=1 {
                let page = object.and_then(|(mapping, object)| {
                    let page =
                        (address.wrapping_sub(mapping.bias + back) >> 16).checked_sub(object.first_page.into())?;
                    (page < u64::from(object.page_count)).then_some(object.pages as usize + page as usize)
                });
                if let Some(wanted) = page.and_then(|page| wanted.get_mut(page)) {
                    *wanted = true;
                }
            }
        }
        let mut rows = Vec::new();
        let pages = self.pages.iter().zip(wanted).map(|(page, wanted)| {
            let (first, count) = (page.first as usize, page.count as usize);
            let kept = self
                .rows
                .get(first..first + count)
                .filter(|_| wanted)
                .unwrap_or_default();
            let excerpt = PageRows {
                first: rows.len() as u32,
                count: kept.len() as u32,
            };
            rows.extend_from_slice(kept);
            excerpt
        });
        CodeTables {
            pages: pages.collect(),
            mappings: self.mappings.clone(),
            objects: self.objects.clone(),
            rules: self.rules.clone(),
            rows,
        }
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
