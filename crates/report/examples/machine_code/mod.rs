//! Made-up machine code of the made-up functions in which threads are on a CPU, and who of them touches one cache line.

use scaleprof_bundle::{Bundle, BundleError, BundleWriter, DataAccessRow, InstructionRow};
use scaleprof_vocabulary::{AccessKind, BranchKind};
use std::path::Path;

/// Where the line begins: a counter that two of them write, beside a setting that the other two read.
const LINE: i64 = 0x10_0000;

/// A function, and what it does with that line just before the instruction at which its samples are.
struct Function {
    name: &'static str,
    place: (&'static str, i64, i64),
    access: AccessKind,
    waits: bool,
}

const SETTING: (&str, i64, i64) = ("btr_search_enabled", LINE + 8, 1);
const COUNTER: (&str, i64, i64) = ("ut_rnd_ulint_counter", LINE + 16, 8);
const FUNCTIONS: [Function; 4] = [
    Function {
        name: "page_cur_search_with_match",
        place: SETTING,
        access: AccessKind::Read,
        waits: false,
    },
    Function {
        name: "MYSQLparse(void*)",
        place: SETTING,
        access: AccessKind::Read,
        waits: false,
    },
    Function {
        name: "ut_delay",
        place: COUNTER,
        access: AccessKind::Update,
        waits: true,
    },
    Function {
        name: "mutex_spin_wait",
        place: COUNTER,
        access: AccessKind::Update,
        waits: true,
    },
];

/// Writes both tables into that folder and makes it the bundle's own: they are read from there when a page is made.
pub fn add(bundle: &mut Bundle, folder: &Path) -> Result<(), BundleError> {
    let (mut instructions, mut accesses) = (Vec::new(), Vec::new());
    for function in &FUNCTIONS {
        let frame = bundle
            .frames
            .iter()
            .find(|frame| frame.function.as_deref() == Some(function.name));
        if let Some(frame) = frame {
            instructions.extend(function.instructions(frame.address));
            accesses.push(function.access(frame.address));
        }
    }
    let writer = BundleWriter::create(folder)?;
    writer.write_instructions(&instructions)?;
    writer.write_data_accesses(&accesses)?;
    folder.clone_into(&mut bundle.path);
    Ok(())
}

impl Function {
    /// A loop of three instructions, in the last of which the samples are, with something before and behind it.
    fn instructions(&self, seen_at: i64) -> Vec<InstructionRow> {
        let (place, address, _) = self.place;
        let row = |offset: i64, length: i32, text: String| InstructionRow {
            module: "mysqld".into(),
            function: self.name.into(),
            function_start: seen_at - 24,
            address: seen_at + offset,
            length,
            text,
            file: Some("storage/innobase/ut/ut0ut.cc".into()),
            line: Some(100 + (offset / 8) as i32),
            ..InstructionRow::default()
        };
        let text = match self.access {
            AccessKind::Read => format!("cmp byte ptr [{place}], 0"),
            _ => format!("lock add qword ptr [{place}], 1"),
        };
        let start = seen_at - 16;
        vec![
            row(-24, 8, "push rbp".into()),
            InstructionRow {
                inlined: Some("ut_rnd_interval".into()),
                in_spin_loop: self.waits,
                ..row(-16, 8, "pause".into())
            },
            InstructionRow {
                access: Some(self.access),
                data_address: Some(address),
                in_spin_loop: self.waits,
                ..row(-8, 8, text)
            },
            InstructionRow {
                branch: Some(BranchKind::Conditional),
                target: Some(start),
                in_spin_loop: self.waits,
                ..row(0, 2, format!("jne {start:#x}"))
            },
            InstructionRow {
                branch: Some(BranchKind::Return),
                ..row(2, 1, "ret".into())
            },
        ]
    }

    fn access(&self, seen_at: i64) -> DataAccessRow {
        let (place, variable_address, variable_size) = self.place;
        DataAccessRow {
            module: "mysqld".into(),
            line_pair_address: LINE,
            variable: place.into(),
            variable_address,
            variable_size,
            function: Some(self.name.into()),
            call_sites: Some(3),
            instruction: Some(seen_at - 8),
            sampled_at: Some(seen_at),
            sampled_after: Some(seen_at + 2),
            access: Some(self.access),
            locked: self.access == AccessKind::Update,
            in_loop: true,
            in_spin_loop: self.waits,
            ..DataAccessRow::default()
        }
    }
}
