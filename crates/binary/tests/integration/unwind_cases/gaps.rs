//! Code between functions that no entry covers.

use super::*;

/// A function at 0, one at 64 and a part of one at 96 whose frame stands already; between them the code that is given.
fn with_gaps(pieces: &[(usize, &[u8])]) -> UnwindTable {
    let mut code = vec![0xcc; 128];
    for (offset, piece) in pieces {
        code[*offset..offset + piece.len()].copy_from_slice(piece);
    }
    let fdes = vec![
        entry(CODE, 4, vec![]),
        entry(CODE + 64, 16, vec![(8, Instruction::CfaOffset(16))]),
        entry(CODE + 96, 16, vec![(0, Instruction::CfaOffset(48))]),
    ];
    compiled(X86_64, &code, eh_frame(x86_entry(), fdes))
}

fn jump_to(place: usize, target: usize) -> [u8; 5] {
    let distance = (target as i32 - place as i32 - 5).to_le_bytes();
    [0xe9, distance[0], distance[1], distance[2], distance[3]]
}

#[test]
fn code_without_an_entry_that_leaves_the_stack_alone_returns_to_who_called_it() {
    let as_called = rule(CfaKind::StackPointer, 8, SavedKind::Same, 0, SavedKind::AtCfa, -8);
    // A thunk: add $-8, %rdi; jmp. What fills the room behind it. And test %eax, %eax; je past the nop; nop; ret.
    let table = with_gaps(&[
        (8, &[0x48, 0x83, 0xc7, 0xf8]),
        (12, &jump_to(12, 64)),
        (24, &[0x85, 0xc0, 0x74, 0x01, 0x90, 0xc3]),
        (50, &[0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0, 0x0f, 0x1f, 0x40, 0]),
    ]);
    for offset in [8, 11, 12, 16, 24, 26, 28, 29, 50, 59, 60, 63, 64, 71] {
        assert_eq!(at(&table, offset), as_called, "at {offset}");
    }
    for offset in [4, 7, 17, 23, 30, 49, 80, 95, 112] {
        assert_eq!(at(&table, offset), UnwindRule::INVALID, "at {offset}");
    }
    assert_eq!(at(&table, 72).cfa_offset, 16);
}

#[test]
fn code_without_an_entry_that_goes_elsewhere_has_no_rule() {
    let table = with_gaps(&[
        // Into the middle of a function; to a part of one; a call; through a register; backwards.
        (8, &jump_to(8, 72)),
        (16, &jump_to(16, 96)),
        (24, &[0xe8, 0, 0, 0, 0, 0xc3]),
        (32, &[0xff, 0xe0]),
        (36, &[0xc3]),
        (37, &jump_to(37, 36)),
        // je to the second byte of add $-8, %rdi, behind a return.
        (44, &[0x74, 0x02, 0xc3, 0x48, 0x83, 0xc7, 0xf8, 0xc3]),
        // Before a part of a function.
        (92, &[0x90; 4]),
    ]);
    let returns = [29, 36, 46, 47, 48, 49, 50, 51];
    for offset in (4..64).chain(80..96) {
        let expected = if returns.contains(&offset) { 8 } else { 0 };
        assert_eq!(at(&table, offset).cfa_offset, expected, "at {offset}");
    }
}

#[test]
fn code_without_an_entry_that_does_something_to_the_stack_has_no_rule() {
    let cases: [&[u8]; 5] = [
        // push %rbp; pop %rbp; ret
        &[0x55, 0x5d, 0xc3],
        // xor %ebp, %ebp; ret
        &[0x31, 0xed, 0xc3],
        // push %rax; ret
        &[0x50, 0xc3],
        // As compilers jump through a register without that the CPU guesses where to (-mretpoline), without an entry: call 2f;
        // 1: pause; lfence; jmp 1b; 2: mov %r11, (%rsp); ret
        &[
            0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x4c, 0x89, 0x1c, 0x24, 0xc3,
        ],
        // je to the push behind the return
        &[0x74, 0x01, 0xc3, 0x55, 0xc3],
    ];
    for code in cases {
        let table = with_gaps(&[(16, code)]);
        for offset in 4..64 {
            assert_eq!(at(&table, offset), UnwindRule::INVALID, "{code:02x?} at {offset}");
        }
    }
}

#[test]
fn code_without_an_entry_is_followed_where_it_is_short_and_only_on_x86() {
    // All of it returns where it stands.
    let with_gap = |machine: u16, returns: &[u8], length: usize, cie: CommonInformationEntry| {
        let mut code = vec![0; 16];
        code.extend(returns.iter().cycle().take(length));
        code.extend([0; 16]);
        let fdes = vec![entry(CODE, 16, vec![]), entry(CODE + 16 + length as u64, 16, vec![])];
        compiled(machine, &code, eh_frame(cie, fdes))
    };
    let (short, long) = (1 << 14, (1 << 14) + 8);
    let told = |table: &UnwindTable, length: u64| {
        let places = [16, 16 + length / 2, 15 + length].map(|offset| at(table, offset));
        places.map(|rule| rule != UnwindRule::INVALID)
    };
    let x86 = |length: usize| with_gap(X86_64, &[0xc3], length, x86_entry());
    assert_eq!(told(&x86(short), short as u64), [true; 3]);
    assert_eq!(told(&x86(long), long as u64), [false; 3]);
    let arm = with_gap(AARCH64, &0xd65f_03c0_u32.to_le_bytes(), 64, arm_entry());
    assert_eq!(told(&arm, 64), [false; 3]);
}

#[test]
fn an_arm_function_without_an_entry_that_keeps_its_registers_returns_by_the_link_register() {
    // strb wzr, [x0], #1; ret. sub sp, sp, #16; ret. And again the first, with an entry for its second instruction.
    let words: [u32; 10] = [
        0xd65f_03c0,
        0xd65f_03c0,
        0x3800_141f,
        0xd65f_03c0,
        0xd100_43ff,
        0xd65f_03c0,
        0x3800_141f,
        0xd65f_03c0,
        0,
        0xd65f_03c0,
    ];
    let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let mut symbols = vec![0; 24];
    for offset in [8_u64, 16, 24] {
        // A global function of the first section, 8 bytes long, without a name.
        symbols.extend([0, 0, 0, 0, 0x12, 0, 1, 0]);
        symbols.extend((CODE + offset).to_le_bytes());
        symbols.extend(8_u64.to_le_bytes());
    }
    let section = |name, data| SmallSection { name, svma: 0, data };
    let fdes = vec![entry(CODE, 8, vec![]), entry(CODE + 28, 4, vec![])];
    let sections = [
        eh_frame(arm_entry(), fdes),
        section(".symtab", symbols),
        section(".strtab", vec![0]),
    ];
    let table = UnwindTable::from_elf(&small_elf(AARCH64, CODE, &code, &sections)).expect("a table");
    let leaf = rule(CfaKind::StackPointer, 0, SavedKind::Same, 0, SavedKind::InRegister, 0);
    let none = UnwindRule::INVALID;
    assert_eq!(
        [0, 8, 12, 16, 20, 24, 28, 32, 36].map(|offset| at(&table, offset)),
        [leaf, leaf, leaf, none, none, none, leaf, none, none]
    );
}
