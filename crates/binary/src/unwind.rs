//! Compiles a file's call frame information into a table that a kernel program can search.
//!
//! `.eh_frame` is a byte code that a debugger interprets: too long for the kernel, and it wants all registers. But
//! compilers use little of it. To find a caller it is enough to know, for every instruction, where the canonical frame
//! address (CFA: the stack pointer before the call) lies and where the frame pointer and the return address were saved;
//! and servers of 10 to 40 MB of code have only some ten different answers. So a table of rows of 4 bytes (the low half
//! of an address and the number of a rule), grouped by 64 KiB pages, and a short list of rules says it all.

mod gaps;
mod jump_tables;
mod leaf_functions;
mod left_alone;
mod pages;
mod program_start;
mod rule_of_row;
mod trampolines;

use std::ops::Range;

use gimli::UnwindContext;

use crate::call_frames::{CallFrames, Fde, Section};
pub use crate::unwind_error::{Architecture, UnwindError};
use gaps::{Beginnings, Gaps};
use pages::Rows;

/// From an address on, a rule holds, until the next row of the same page.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnwindRow {
    /// The low 16 bits of the file's virtual address.
    pub pc_low: u16,
    /// Index into [`UnwindTable::rules`].
    pub rule: u16,
}

/// How to find the caller's registers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UnwindRule {
    /// A [`CfaKind`]: how the canonical frame address is found.
    pub cfa: u8,
    /// A [`SavedKind`]: where the caller's frame pointer is.
    pub fp: u8,
    /// A [`SavedKind`]: where the return address is.
    pub ra: u8,
    /// [`CfaKind::Register`]: the register's DWARF number. Otherwise 0.
    pub reserved: u8,
    /// In bytes; see [`CfaKind`].
    pub cfa_offset: i32,
    /// In bytes; see [`SavedKind`] and [`CfaKind::SignalFrame`].
    pub fp_offset: i32,
    /// In bytes; see [`SavedKind`] and [`CfaKind::SignalFrame`].
    pub ra_offset: i32,
}

/// How the canonical frame address is found. The numbers are part of the kernel program's contract.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CfaKind {
    /// No code here has a rule: the address is wrong, or its code came without call frame information.
    Invalid = 0,
    /// The return address is undefined: this is where a thread starts, the stack is whole.
    Outermost = 1,
    /// `sp + cfa_offset`.
    StackPointer = 2,
    /// `fp + cfa_offset`.
    FramePointer = 3,
    /// The linker's jump table: `sp + 8 + ((pc & 15) >= cfa_offset ? 8 : 0)`.
    Plt = 4,
    /// A signal handler returns to this code. The interrupted registers lie in memory: the stack pointer at
    /// `*(sp + cfa_offset)`, the frame pointer at `*(sp + fp_offset)`, the program counter at `*(sp + ra_offset)`. That
    /// counter is no return address: look it up as it is.
    SignalFrame = 5,
    /// `*(sp + cfa_offset)`.
    DereferencedStackPointer = 6,
    /// `*(fp + cfa_offset)`: functions that align their stack.
    DereferencedFramePointer = 7,
    /// There is a rule, of a form that this table does not hold.
    Unsupported = 8,
    /// `register(reserved) + cfa_offset`: only known in the innermost frame.
    Register = 9,
}

/// Where the caller's value of a register is. The numbers are part of the kernel program's contract.
#[repr(u8)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SavedKind {
    /// Still in the register.
    Same = 0,
    /// At `*(CFA + offset)`.
    AtCfa = 1,
    /// Lost.
    Undefined = 2,
    /// The return address of a leaf function is still in `x30` (aarch64).
    InRegister = 3,
    /// At `*(fp + offset)`: functions that align their stack.
    AtFramePointer = 4,
    /// There is a rule, of a form that this table does not hold.
    Unsupported = 5,
}

impl UnwindRule {
    /// The rule of a gap; always the first of a table.
    pub const INVALID: UnwindRule = UnwindRule {
        cfa: CfaKind::Invalid as u8,
        fp: 0,
        ra: 0,
        reserved: 0,
        cfa_offset: 0,
        fp_offset: 0,
        ra_offset: 0,
    };

    /// How the canonical frame address is found.
    #[must_use]
    pub fn cfa_kind(&self) -> CfaKind {
        match self.cfa {
            0 => CfaKind::Invalid,
            1 => CfaKind::Outermost,
            2 => CfaKind::StackPointer,
            3 => CfaKind::FramePointer,
            4 => CfaKind::Plt,
            5 => CfaKind::SignalFrame,
            6 => CfaKind::DereferencedStackPointer,
            7 => CfaKind::DereferencedFramePointer,
            9 => CfaKind::Register,
            _ => CfaKind::Unsupported,
        }
    }

    /// Whether a part of it is of a form that the table does not hold.
    #[must_use]
    pub fn unsupported(&self) -> bool {
        let saved = [self.fp, self.ra].contains(&(SavedKind::Unsupported as u8));
        self.cfa == CfaKind::Unsupported as u8 || saved
    }
}

/// All rules of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnwindTable {
    /// The processor: it says which registers are meant.
    pub architecture: Architecture,
    /// The first page's number: a virtual address of the file shifted right by 16.
    pub first_page: u32,
    /// For every page the index of its first row; one more at the end. Pages have at least one row, the first at 0.
    pub page_starts: Vec<u32>,
    /// By page and then by `pc_low`.
    pub rows: Vec<UnwindRow>,
    /// Every rule once, [`UnwindRule::INVALID`] first.
    pub rules: Vec<UnwindRule>,
    /// Rows of a form that the table does not hold, and entries that could not be read.
    pub unsupported_rows: u32,
    /// Entries (FDEs: functions and parts of them) that the table was made from.
    pub fdes: u32,
}

impl UnwindTable {
    /// Compiles the table of an ELF file (a server, a library, the vDSO).
    ///
    /// Where no entry covers the linker's jump tables, the program's start, the code that signal handlers return to and code
    /// that leaves the stack alone until it returns (on aarch64 whole functions), their rules are known from their bytes. Where entries overlap, the one
    /// that starts first wins, and of two that start together the first in the section.
    pub fn from_elf(bytes: &[u8]) -> Result<UnwindTable, UnwindError> {
        let frames = CallFrames::from_elf(bytes)?;
        let entries = frames.entries();
        let section = frames.section();
        let gaps = Gaps::of(bytes, &frames, &entries.fdes);
        let mut beginnings = Beginnings {
            frames: &frames,
            section: &section,
            fdes: &entries.fdes,
            context: UnwindContext::new(),
        };
        let mut rows = Rows::default();
        let mut context = UnwindContext::new();
        for fde in &entries.fdes {
            let Some(range) = frames.code_range(fde) else { continue };
            gaps.fill(&mut rows, range.start, &mut beginnings);
            match gaps.signal_frame_at(range.start, fde) {
                Some(rule) => rows.push(range, rule),
                None => push_entry(&mut rows, &frames, &section, fde, range, &mut context),
            }
        }
        gaps.fill(&mut rows, u64::MAX, &mut beginnings);
        rows.into_table(frames.architecture, entries.fdes.len(), entries.damaged)
    }

    /// The rule for an address of the file: exactly the search that the kernel program does. `None` before the first
    /// page and behind the last; gaps between have [`UnwindRule::INVALID`].
    ///
    /// For a return address ask for the byte before: a call may be its function's last instruction.
    #[must_use]
    pub fn find(&self, svma: u64) -> Option<&UnwindRule> {
        let page = usize::try_from((svma >> 16).checked_sub(u64::from(self.first_page))?).ok()?;
        let mut low = *self.page_starts.get(page)?;
        let mut high = *self.page_starts.get(page + 1)?;
        let pc_low = (svma & 0xffff) as u16;
        // The row at `low` starts at or before the address, the one at `high` behind it.
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.rows.get(middle as usize)?.pc_low <= pc_low {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.rules.get(usize::from(self.rows.get(low as usize)?.rule))
    }
}

/// Adds the rows of one entry, in order.
fn push_entry<'data>(
    rows: &mut Rows,
    frames: &CallFrames<'data>,
    section: &'data Section<'data>,
    fde: &Fde<'data>,
    range: Range<u64>,
    context: &mut UnwindContext<usize>,
) {
    let mut done = range.start;
    if let Ok(mut table) = section.rows(fde, context) {
        while let Ok(Some(row)) = table.next_row() {
            let part = row.start_address().max(done)..row.end_address().min(range.end);
            if part.start < part.end {
                done = part.end;
                rows.push(part, rule_of_row::compile(row, frames.architecture, section));
            }
        }
    }
    // An instruction that could not be read: what follows it is unknown.
    rows.push(done..range.end, rule_of_row::UNSUPPORTED);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel program is compiled against these numbers and sizes.
    #[test]
    fn rows_and_rules_have_the_layout_that_the_kernel_program_reads() {
        assert_eq!((size_of::<UnwindRow>(), align_of::<UnwindRow>()), (4, 2));
        assert_eq!((size_of::<UnwindRule>(), align_of::<UnwindRule>()), (16, 4));
        assert_eq!(std::mem::offset_of!(UnwindRule, cfa_offset), 4);
        assert_eq!(std::mem::offset_of!(UnwindRule, fp_offset), 8);
        assert_eq!(std::mem::offset_of!(UnwindRule, ra_offset), 12);
        for cfa in 0..=9 {
            let rule = UnwindRule {
                cfa,
                ..UnwindRule::default()
            };
            assert_eq!(rule.cfa_kind() as u8, cfa);
        }
        let unknown = UnwindRule {
            cfa: 200,
            ..UnwindRule::default()
        };
        assert_eq!(unknown.cfa_kind(), CfaKind::Unsupported);
        assert_eq!(UnwindRule::default(), UnwindRule::INVALID);
    }
}
