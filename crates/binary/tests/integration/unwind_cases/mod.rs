//! The table of hand-made call frame information: what no server at hand has.

use crate::files;
mod gaps;

use files::small_elf::{AARCH64, SmallSection, X86_64, small_elf};
use gimli::write::{
    Address, CallFrameInstruction as Instruction, CommonInformationEntry, DebugFrame, EhFrame, EndianVec, Expression,
    FrameDescriptionEntry, FrameTable,
};
use gimli::{Encoding, Format, LittleEndian, Register};
use proptest::prelude::*;
use scaleprof_binary::unwind::{Architecture, CfaKind, SavedKind, UnwindError, UnwindRule, UnwindTable};

const CODE: u64 = 0x1_0000;

fn encoding(version: u16) -> Encoding {
    Encoding {
        format: Format::Dwarf32,
        version,
        address_size: 8,
    }
}

fn x86_entry() -> CommonInformationEntry {
    let mut cie = CommonInformationEntry::new(encoding(1), 1, -8, Register(16));
    cie.add_instruction(Instruction::Cfa(Register(7), 8));
    cie.add_instruction(Instruction::Offset(Register(16), -8));
    cie
}

fn arm_entry() -> CommonInformationEntry {
    let mut cie = CommonInformationEntry::new(encoding(1), 4, -8, Register(30));
    cie.add_instruction(Instruction::Cfa(Register(31), 0));
    cie
}

fn entry(start: u64, length: u32, instructions: Vec<(u32, Instruction)>) -> FrameDescriptionEntry {
    let mut fde = FrameDescriptionEntry::new(Address::Constant(start), length);
    for (offset, instruction) in instructions {
        fde.add_instruction(offset, instruction);
    }
    fde
}

fn eh_frame(cie: CommonInformationEntry, fdes: Vec<FrameDescriptionEntry>) -> SmallSection {
    let mut table = FrameTable::default();
    let cie = table.add_cie(cie);
    for fde in fdes {
        table.add_fde(cie, fde);
    }
    let mut section = EhFrame::from(EndianVec::new(LittleEndian));
    table.write_eh_frame(&mut section).expect("written");
    SmallSection {
        name: ".eh_frame",
        svma: 0x80_0000,
        data: section.0.into_vec(),
    }
}

fn compiled(machine: u16, code: &[u8], section: SmallSection) -> UnwindTable {
    UnwindTable::from_elf(&small_elf(machine, CODE, code, &[section])).expect("a table")
}

fn at(table: &UnwindTable, offset: u64) -> UnwindRule {
    *table.find(CODE + offset).expect("a rule")
}

fn rule(cfa: CfaKind, cfa_offset: i32, fp: SavedKind, fp_offset: i32, ra: SavedKind, ra_offset: i32) -> UnwindRule {
    UnwindRule {
        cfa: cfa as u8,
        fp: fp as u8,
        ra: ra as u8,
        reserved: 0,
        cfa_offset,
        fp_offset,
        ra_offset,
    }
}

#[test]
fn an_arm_function_keeps_its_return_address_in_a_register_until_it_is_stored() {
    let (fp, lr, sp) = (Register(29), Register(30), Register(31));
    // What gcc -mbranch-protection=standard writes: paciasp; stp x29, x30, [sp, #-32]!; mov x29, sp; ...; ldp; autiasp; ret
    let fde = entry(
        CODE,
        32,
        vec![
            (4, Instruction::NegateRaState),
            (8, Instruction::CfaOffset(32)),
            (8, Instruction::Offset(fp, -32)),
            (8, Instruction::Offset(lr, -24)),
            (12, Instruction::CfaRegister(fp)),
            (20, Instruction::Restore(fp)),
            (20, Instruction::Restore(lr)),
            (20, Instruction::Cfa(sp, 0)),
            (24, Instruction::NegateRaState),
        ],
    );
    let table = compiled(AARCH64, &[0; 64], eh_frame(arm_entry(), vec![fde]));
    assert_eq!(table.architecture, Architecture::Aarch64);
    let leaf = rule(CfaKind::StackPointer, 0, SavedKind::Same, 0, SavedKind::InRegister, 0);
    let stored = rule(CfaKind::StackPointer, 32, SavedKind::AtCfa, -32, SavedKind::AtCfa, -24);
    let framed = rule(CfaKind::FramePointer, 32, SavedKind::AtCfa, -32, SavedKind::AtCfa, -24);
    assert_eq!(
        [0, 4, 8, 12, 19, 20, 31].map(|offset| at(&table, offset)),
        [leaf, leaf, stored, framed, framed, leaf, leaf]
    );
    assert_eq!(at(&table, 32), UnwindRule::INVALID);
    assert_eq!(table.unsupported_rows, 0);
}

#[test]
fn an_arm_thread_starts_where_the_return_address_is_undefined() {
    let start = entry(CODE, 16, vec![(0, Instruction::Undefined(Register(30)))]);
    let table = compiled(AARCH64, &[0; 64], eh_frame(arm_entry(), vec![start]));
    assert_eq!(at(&table, 8).cfa_kind(), CfaKind::Outermost);
}

#[test]
fn functions_that_align_their_stack_are_walked_through_the_frame_pointer() {
    let (rbp, rsp, r10) = (Register(6), Register(7), Register(10));
    let mut dereferenced = Expression::new();
    dereferenced.op_breg(rbp, -40);
    dereferenced.op_deref();
    let mut on_stack = Expression::new();
    on_stack.op_breg(rsp, 24);
    on_stack.op_deref();
    let mut place = Expression::new();
    place.op_breg(rbp, 0);
    let mut odd = Expression::new();
    odd.op_breg(rbp, 8);
    odd.op_deref();
    odd.op_plus_uconst(16);
    let fde = entry(
        CODE,
        60,
        vec![
            (10, Instruction::Cfa(r10, 0)),
            (20, Instruction::Expression(rbp, place)),
            (20, Instruction::CfaExpression(dereferenced)),
            (30, Instruction::CfaExpression(on_stack)),
            (40, Instruction::CfaExpression(odd)),
            (50, Instruction::Cfa(rsp, 8)),
            (50, Instruction::Register(rbp, Register(0))),
        ],
    );
    let table = compiled(X86_64, &[0; 64], eh_frame(x86_entry(), vec![fde]));
    let (caller, framed) = ((SavedKind::AtCfa, -8), (SavedKind::AtFramePointer, 0));
    let innermost = rule(CfaKind::Register, 0, SavedKind::Same, 0, caller.0, caller.1);
    assert_eq!(
        at(&table, 10),
        UnwindRule {
            reserved: 10,
            ..innermost
        }
    );
    let aligned = rule(
        CfaKind::DereferencedFramePointer,
        -40,
        framed.0,
        framed.1,
        caller.0,
        caller.1,
    );
    assert_eq!(at(&table, 20), aligned);
    let aligned = rule(
        CfaKind::DereferencedStackPointer,
        24,
        framed.0,
        framed.1,
        caller.0,
        caller.1,
    );
    assert_eq!(at(&table, 30), aligned);
    assert_eq!(at(&table, 40).cfa_kind(), CfaKind::Unsupported);
    // The caller is still found; only its frame pointer is not.
    assert_eq!(
        at(&table, 50),
        rule(CfaKind::StackPointer, 8, SavedKind::Unsupported, 0, caller.0, caller.1)
    );
    assert_eq!(table.unsupported_rows, 2);
}

#[test]
fn a_return_address_that_no_call_pushed_is_unsupported_on_x86() {
    let fde = entry(CODE, 16, vec![(8, Instruction::Register(Register(16), Register(5)))]);
    let table = compiled(X86_64, &[0; 64], eh_frame(x86_entry(), vec![fde]));
    assert_eq!(at(&table, 0).cfa_kind(), CfaKind::StackPointer);
    assert_eq!(at(&table, 8).cfa_kind(), CfaKind::Unsupported);
}

#[test]
fn a_rule_goes_on_across_pages_and_the_search_finds_it_there() {
    let long = entry(CODE + 0xff00, 0x3_0000, vec![(0x20, Instruction::CfaOffset(16))]);
    let table = compiled(X86_64, &[0x90; 0x6_0000], eh_frame(x86_entry(), vec![long]));
    assert_eq!(table.first_page, 1);
    assert_eq!(table.page_starts, [0, 3, 4, 5, 7]);
    let rules =
        [0, 0xfeff, 0xff00, 0xff20, 0x1_0000, 0x2_ffff, 0x3_feff, 0x3_ff00].map(|offset| at(&table, offset).cfa_offset);
    assert_eq!(rules, [0, 0, 8, 16, 16, 16, 16, 0]);
    assert!(table.find(CODE - 1).is_none());
    assert!(table.find(CODE + 0x4_0000).is_none());
}

#[test]
fn of_entries_that_overlap_the_first_wins() {
    let with = |start, length, offset| entry(start, length, vec![(0, Instruction::CfaOffset(offset))]);
    let fdes = vec![
        with(CODE + 8, 16, 32),
        with(CODE, 16, 16),
        with(CODE, 12, 24),
        with(CODE + 2, 4, 40),
    ];
    let table = compiled(X86_64, &[0; 64], eh_frame(x86_entry(), fdes));
    assert_eq!(
        [0, 3, 15, 16, 23, 24].map(|offset| at(&table, offset).cfa_offset),
        [16, 16, 16, 32, 32, 0]
    );
}

#[test]
fn code_that_returns_from_a_signal_is_known_by_its_bytes() {
    let trampoline = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    let mut code = vec![0x90; 128];
    code[64..73].copy_from_slice(&trampoline); // without an entry
    code[33..42].copy_from_slice(&trampoline); // with one that starts a byte early
    let fdes = vec![entry(CODE, 16, vec![]), entry(CODE + 32, 10, vec![])];
    let table = compiled(X86_64, &code, eh_frame(x86_entry(), fdes));
    let saved = rule(CfaKind::SignalFrame, 160, SavedKind::Same, 120, SavedKind::Same, 168);
    for offset in [32, 33, 41, 63, 64, 72] {
        assert_eq!(at(&table, offset), saved, "at {offset}");
    }
    for offset in [16, 42, 62, 73] {
        assert_eq!(at(&table, offset), UnwindRule::INVALID, "at {offset}");
    }
}

/// A file whose jump table lies in a section and has no entry.
fn with_jump_table(machine: u16, code: &[u8], table: Vec<u8>, cie: CommonInformationEntry) -> UnwindTable {
    let start = CODE + 8;
    assert_eq!(code[8..8 + table.len()], table[..]);
    let plt = SmallSection {
        name: ".plt",
        svma: start,
        data: table,
    };
    let entries = eh_frame(cie, vec![entry(CODE, 4, vec![])]);
    UnwindTable::from_elf(&small_elf(machine, CODE, code, &[entries, plt])).expect("a table")
}

#[test]
fn a_jump_table_without_an_entry_is_known_by_its_stubs() {
    // As MySQL 5.6.14 has it; it begins at no multiple of 16.
    let mut table = vec![0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x40, 0];
    table.extend([0xff, 0x25, 1, 2, 3, 4, 0x68, 0, 0, 0, 0, 0xe9, 1, 2, 3, 4]);
    table.extend([0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 1, 2, 3, 4, 0x90]);
    table.extend([0xff, 0x25, 1, 2, 3, 4, 0x66, 0x90]);
    let mut code = vec![0x90; 128];
    code[8..8 + table.len()].copy_from_slice(&table);
    let table = with_jump_table(X86_64, &code, table, x86_entry());
    let pushed = |words: i32| {
        rule(
            CfaKind::StackPointer,
            8 + 8 * words,
            SavedKind::Same,
            0,
            SavedKind::AtCfa,
            -8,
        )
    };
    for (offset, words) in [
        (8, 1),
        (13, 1),
        (14, 2),
        (23, 2),
        (24, 0),
        (34, 0),
        (35, 1),
        (39, 1),
        (40, 0),
        (48, 0),
        (49, 1),
        (55, 1),
        (56, 0),
        (63, 0),
    ] {
        assert_eq!(at(&table, offset), pushed(words), "at {offset}");
    }
    for offset in [4, 7, 64] {
        assert_eq!(at(&table, offset), UnwindRule::INVALID, "at {offset}");
    }
}

#[test]
fn an_arm_jump_table_leaves_the_return_address_in_its_register() {
    let mut table = vec![0xf0, 0x7b, 0xbf, 0xa9];
    table.resize(48, 0x1f);
    let mut code = vec![0; 128];
    code[8..56].copy_from_slice(&table);
    let table = with_jump_table(AARCH64, &code, table, arm_entry());
    let untouched = rule(CfaKind::StackPointer, 0, SavedKind::Same, 0, SavedKind::InRegister, 0);
    let stored = rule(CfaKind::StackPointer, 16, SavedKind::Same, 0, SavedKind::AtCfa, -8);
    assert_eq!(
        [8, 12, 36, 40, 52].map(|offset| at(&table, offset)),
        [untouched, stored, stored, untouched, untouched]
    );
    assert_eq!(at(&table, 56), UnwindRule::INVALID);
}

#[test]
fn a_programs_start_without_an_entry_is_where_its_stack_ends() {
    // As MySQL 5.6.14 has it: xor %ebp, %ebp; ...; call __libc_start_main; hlt
    let mut start = vec![
        0x31, 0xed, 0x49, 0x89, 0xd1, 0x5e, 0x48, 0x89, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x50, 0x54,
    ];
    start.extend([0xe8, 0xcf, 0xfe, 0xff, 0xff, 0xf4]);
    let mut code = vec![0xcc; 128];
    code[16..16 + start.len()].copy_from_slice(&start);
    let entries = || eh_frame(x86_entry(), vec![entry(CODE, 8, vec![]), entry(CODE + 64, 8, vec![])]);
    let mut file = small_elf(X86_64, CODE, &code, &[entries()]);
    file[24..32].copy_from_slice(&(CODE + 16).to_le_bytes());
    let table = UnwindTable::from_elf(&file).expect("a table");
    for offset in [16, 31, 36] {
        assert_eq!(at(&table, offset).cfa_kind(), CfaKind::Outermost, "at {offset}");
    }
    for offset in [15, 37, 63] {
        assert_eq!(at(&table, offset), UnwindRule::INVALID, "at {offset}");
    }
    // Something else at the entry point is not taken for it.
    file[24..32].copy_from_slice(&(CODE + 17).to_le_bytes());
    let table = UnwindTable::from_elf(&file).expect("a table");
    assert_eq!(at(&table, 31), UnwindRule::INVALID);
}

#[test]
fn debug_frame_serves_where_there_is_no_eh_frame() {
    let mut frames = FrameTable::default();
    let mut cie = CommonInformationEntry::new(encoding(4), 1, -8, Register(16));
    cie.add_instruction(Instruction::Cfa(Register(7), 8));
    cie.add_instruction(Instruction::Offset(Register(16), -8));
    let cie = frames.add_cie(cie);
    frames.add_fde(cie, entry(CODE, 16, vec![(4, Instruction::CfaOffset(16))]));
    // A function that the linker threw away.
    frames.add_fde(cie, entry(0, 16, vec![]));
    let mut section = DebugFrame::from(EndianVec::new(LittleEndian));
    frames.write_debug_frame(&mut section).expect("written");
    let section = SmallSection {
        name: ".debug_frame",
        svma: 0x80_0000,
        data: section.0.into_vec(),
    };
    let table = compiled(X86_64, &[0; 64], section);
    assert_eq!(
        (table.fdes, at(&table, 3).cfa_offset, at(&table, 4).cfa_offset),
        (1, 8, 16)
    );
}

#[test]
fn what_cannot_be_compiled_says_why() {
    let error = |bytes: &[u8]| UnwindTable::from_elf(bytes).expect_err("no table");
    assert!(matches!(error(b"#!/bin/sh\n"), UnwindError::NotElf(_)));
    assert!(matches!(
        error(&small_elf(X86_64, CODE, &[0; 64], &[])),
        UnwindError::NoCallFrames
    ));
    assert!(matches!(
        error(&small_elf(20, CODE, &[0; 64], &[])),
        UnwindError::Architecture(_)
    ));
    let elsewhere = eh_frame(x86_entry(), vec![entry(CODE + 0x1000, 16, vec![])]);
    let elsewhere = small_elf(X86_64, CODE, &[0; 64], &[elsewhere]);
    assert!(matches!(error(&elsewhere), UnwindError::CoversNothing { damaged: 0 }));
    assert!(error(&elsewhere).to_string().contains("covers no code"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Nothing that a file may hold makes the compiler panic, loop or take memory without end.
    #[test]
    fn any_call_frame_information_is_read_without_harm(data in prop::collection::vec(any::<u8>(), 0..400), arm: bool) {
        let section = SmallSection { name: ".eh_frame", svma: 0x80_0000, data };
        let machine = if arm { AARCH64 } else { X86_64 };
        let _ = UnwindTable::from_elf(&small_elf(machine, CODE, &[0x90; 256], &[section]));
    }

    #[test]
    fn any_code_between_two_entries_is_followed_without_harm(code in prop::collection::vec(any::<u8>(), 1..2000)) {
        let end = CODE + code.len() as u64;
        let fdes = vec![entry(CODE, 1, vec![]), entry(end - 1, 1, vec![])];
        let table = compiled(X86_64, &code, eh_frame(x86_entry(), fdes));
        for offset in 0..code.len() as u64 {
            prop_assert!([0, 8].contains(&at(&table, offset).cfa_offset));
        }
    }

    #[test]
    fn a_file_with_broken_bytes_is_read_without_harm(
        breaks in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
    ) {
        let fdes = vec![
            entry(CODE, 16, vec![(4, Instruction::CfaOffset(16))]),
            entry(CODE + 16, 200, vec![(4, Instruction::RememberState), (8, Instruction::RestoreState)]),
        ];
        let mut bytes = small_elf(X86_64, CODE, &[0x90; 256], &[eh_frame(x86_entry(), fdes)]);
        for (place, value) in breaks {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        bytes.truncate(bytes.len().min(bytes.len() / 2 + cut.index(bytes.len())));
        if let Ok(table) = UnwindTable::from_elf(&bytes) {
            for page in 0..(table.page_starts.len() as u64).min(64) {
                let _ = table.find(((u64::from(table.first_page) + page) << 16) + 77);
            }
        }
    }

    /// The pages and the search against a plain list of ranges.
    #[test]
    fn the_search_finds_the_range_that_holds_an_address(
        pieces in prop::collection::vec((1_u32..0x5000, 0_u32..0x3000, 1_i32..6), 1..60),
        asked in prop::collection::vec(0_u64..0x20_0000, 50),
    ) {
        let mut ranges = Vec::new();
        let mut next = CODE;
        for (length, gap, kind) in pieces {
            ranges.push((next..next + u64::from(length), kind * 8));
            next += u64::from(length) + u64::from(gap);
        }
        let fdes = ranges
            .iter()
            .map(|(range, offset)| {
                entry(range.start, (range.end - range.start) as u32, vec![(0, Instruction::CfaOffset(*offset))])
            })
            .collect();
        // Traps: what has no entry has no rule.
        let code = vec![0xcc; (next - CODE) as usize];
        let table = compiled(X86_64, &code, eh_frame(x86_entry(), fdes));
        let edges = ranges.iter().flat_map(|(range, _)| [range.start, range.end - 1, range.end]);
        for svma in asked.into_iter().map(|asked| CODE + asked).chain(edges) {
            let expected = ranges.iter().find(|(range, _)| range.contains(&svma)).map_or(0, |(_, offset)| *offset);
            prop_assert_eq!(table.find(svma).map_or(0, |rule| rule.cfa_offset), expected, "at {:#x}", svma);
        }
    }
}
