use scaleprof_vocabulary::AccessKind;
use std::ops::Range;

use super::image::Image;
use super::step::Convention;
use super::*;

const CODE: u64 = 0x1000;
const DATA: Range<u64> = 0x8000..0x9000;

/// Runs over a function; there is a pointer to 0x8100 at 0x7000.
fn found(convention: &Convention, bytes: &[u8], is_fixed: bool) -> Vec<Access> {
    let mut image = Image::with_variables(DATA, is_fixed);
    image.relocated.insert(0x7000, 0x8100);
    let function = CODE..CODE + bytes.len() as u64;
    let found = DataAccesses::in_code(&[(CODE, bytes)], &[function], convention, image);
    found
        .functions
        .into_iter()
        .flat_map(|function| function.accesses)
        .collect()
}

/// Place, kind, whether exact and whether locked.
fn told(accesses: &[Access]) -> Vec<(u64, AccessKind, bool, bool)> {
    let told = accesses
        .iter()
        .map(|access| (access.place, access.kind, access.exact, access.locked));
    told.collect()
}

fn x86(bytes: &[u8]) -> Vec<(u64, AccessKind, bool, bool)> {
    told(&found(&x86_64::CONVENTION, bytes, false))
}

fn arm(words: &[u32]) -> Vec<(u64, AccessKind, bool, bool)> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    told(&found(&aarch64::CONVENTION, &bytes, false))
}

use AccessKind::{Passed, Read, Update, Write};

#[test]
fn operands_relative_to_the_instruction_are_what_they_point_at() {
    // mov eax, [rip+0x6ffa]: the next instruction is at 0x1006, so that is 0x8000
    assert_eq!(x86(&[0x8b, 0x05, 0xfa, 0x6f, 0, 0]), [(0x8000, Read, true, false)]);
    // mov [rip+0x6ffa], eax
    assert_eq!(x86(&[0x89, 0x05, 0xfa, 0x6f, 0, 0]), [(0x8000, Write, true, false)]);
    // lock add dword [rip+0x6ff8], 1
    let locked = [0xf0, 0x83, 0x05, 0xf8, 0x6f, 0, 0, 1];
    assert_eq!(x86(&locked), [(0x8000, Update, true, true)]);
    // xchg [rip+0x6ffa], eax locks without the prefix.
    assert_eq!(x86(&[0x87, 0x05, 0xfa, 0x6f, 0, 0]), [(0x8000, Update, true, true)]);
    // lea rax, [rip+0x6ff9] alone touches nothing.
    assert_eq!(x86(&[0x48, 0x8d, 0x05, 0xf9, 0x6f, 0, 0]), []);
}

#[test]
fn an_address_of_the_global_offset_table_is_followed_over_a_call_in_a_kept_register() {
    // mov rbx, [rip+0x5ff9] (0x7000); call +0; mov eax, [rbx+8]; mov rcx, [rip+..] is changed by the next call
    let mut code = vec![0x48, 0x8b, 0x1d, 0xf9, 0x5f, 0, 0];
    code.extend([0xe8, 0, 0, 0, 0, 0x8b, 0x43, 0x08]);
    assert_eq!(x86(&code), [(0x8108, Read, true, false)]);
    // The same in RCX, which the call may change.
    let mut code = vec![0x48, 0x8b, 0x0d, 0xf9, 0x5f, 0, 0];
    code.extend([0xe8, 0, 0, 0, 0, 0x8b, 0x41, 0x08]);
    assert_eq!(x86(&code), []);
}

#[test]
fn an_element_of_an_array_is_some_place_in_it() {
    // lea rax, [rip+0x6ff9]; mov ecx, [rax+rdi*4]
    let code = [0x48, 0x8d, 0x05, 0xf9, 0x6f, 0, 0, 0x8b, 0x0c, 0xb8];
    assert_eq!(x86(&code), [(0x8000, Read, false, false)]);
    // mov rcx, [rdi*8+0x8040] means something only where the program is always at the same place.
    let code = [0x48, 0x8b, 0x0c, 0xfd, 0x40, 0x80, 0, 0];
    assert_eq!(x86(&code), []);
    assert_eq!(
        told(&found(&x86_64::CONVENTION, &code, true)),
        [(0x8040, Read, false, false)]
    );
}

#[test]
fn a_pointer_that_steps_through_an_array_stays_in_it() {
    // 1000: lea rax, [rip+0x6ff9]; 1007: mov [rax], edx; add rax, 8; cmp rax, rcx; jne 1007; ret
    let code = [
        0x48, 0x8d, 0x05, 0xf9, 0x6f, 0, 0, 0x89, 0x10, 0x48, 0x83, 0xc0, 0x08, 0x48, 0x39, 0xc8, 0x75, 0xf5, 0xc3,
    ];
    assert_eq!(x86(&code), [(0x8000, Write, false, false)]);
    let found = found(&x86_64::CONVENTION, &code, false);
    assert!(found[0].in_loop && found[0].instruction == 0x1007);
}

#[test]
fn where_two_ways_meet_only_what_both_know_is_known() {
    // 1000: lea rax, [0x8000]; test edi, edi; je 100d; mov rax, rsi (100b: 2 bytes more); 100e: mov ecx, [rax]
    let mut code = vec![
        0x48, 0x8d, 0x05, 0xf9, 0x6f, 0, 0, 0x85, 0xff, 0x74, 0x03, 0x48, 0x89, 0xf0, 0x8b, 0x08, 0xc3,
    ];
    assert_eq!(x86(&code), []);
    // Without the MOV (three NOPs) both ways agree.
    code[11..14].copy_from_slice(&[0x90; 3]);
    assert_eq!(x86(&code), [(0x8000, Read, true, false)]);
}

#[test]
fn a_thread_that_waited_is_seen_behind_the_instruction_and_behind_a_joined_branch() {
    // 1000: cmp byte [rip+0x6ff9], 0 (7 bytes); 1007: je 1009; 1009: ret
    let found = found(
        &x86_64::CONVENTION,
        &[0x80, 0x3d, 0xf9, 0x6f, 0, 0, 0, 0x74, 0x00, 0xc3],
        false,
    );
    assert_eq!(told(&found), [(0x8000, Read, true, false)]);
    assert_eq!(found[0].seen_at, [0x1007, 0x1009]);
}

#[test]
fn addresses_that_are_handed_on_are_told_with_who_gets_them() {
    // lea rdi, [rip+0x6ff9]; call 0x2000
    let code = [0x48, 0x8d, 0x3d, 0xf9, 0x6f, 0, 0, 0xe8, 0xf4, 0x0f, 0, 0];
    let found = found(&x86_64::CONVENTION, &code, false);
    assert_eq!(told(&found), [(0x8000, Passed, true, false)]);
    assert_eq!(found[0].callee, Some(0x2000));
}

#[test]
fn thread_local_variables_are_nobodys_business() {
    // mov eax, fs:[0x8000]
    assert_eq!(x86(&[0x64, 0x8b, 0x04, 0x25, 0, 0x80, 0, 0]), []);
}

#[test]
fn aarch64_pairs_of_page_and_offset_are_followed() {
    // adrp x0, 0x8000; ldr w1, [x0, #16]; str x1, [x0, #24]
    assert_eq!(
        arm(&[0xf000_0020, 0xb940_1001, 0xf900_0c01]),
        [(0x8010, Read, true, false), (0x8018, Write, true, false)]
    );
    // adrp x2, 0x8000; add x2, x2, #0x40; ldrb w0, [x2]; ldr x3, [x2, x1, lsl #3]
    assert_eq!(
        arm(&[0xf000_0022, 0x9101_0042, 0x3940_0040, 0xf861_7843]),
        [(0x8040, Read, true, false), (0x8040, Read, false, false)]
    );
    // adrp x4, 0x7000; ldr x4, [x4] (the global offset table); ldadd x1, x0, [x4]; ldp x5, x6, [x4, #16]
    assert_eq!(
        arm(&[0xd000_0024, 0xf940_0084, 0xf821_0080, 0xa941_1885]),
        [(0x8100, Update, true, true), (0x8110, Read, true, false)]
    );
    // adrp x0, 0x8000; ldaxr w1, [x0]; stlxr w2, w1, [x0]; ldar w3, [x0]; stlr w3, [x0]
    assert_eq!(
        arm(&[0xf000_0020, 0x885f_fc01, 0x8802_fc01, 0x88df_fc03, 0x889f_fc03]),
        [
            (0x8000, Read, true, true),
            (0x8000, Update, true, true),
            (0x8000, Read, true, false),
            (0x8000, Write, true, false)
        ]
    );
    // adrp x19, 0x8000; bl away; ldr w0, [x19]: kept over the call; x0 is not.
    assert_eq!(
        arm(&[0xf000_0033, 0x9400_0400, 0xb940_0260]),
        [(0x8000, Read, true, false)]
    );
    assert_eq!(
        arm(&[0xf000_0020, 0x9400_0400, 0xb940_0000]),
        [(0x8000, Passed, true, false)]
    );
}

/// Bytes, each followed by a load from that place of `DATA` if there is one.
fn code_with_loads(pieces: &[(Vec<u8>, Option<u64>)]) -> Vec<u8> {
    let mut code = Vec::new();
    for (bytes, load) in pieces {
        code.extend(bytes);
        if let Some(offset) = load {
            // mov eax, [rip+..]: six bytes, and the place is counted from behind them.
            let next = CODE + code.len() as u64 + 6;
            code.extend([0x8b, 0x05]);
            code.extend(((DATA.start + offset - next) as u32).to_le_bytes());
        }
    }
    code
}

#[test]
fn loads_one_behind_the_other_are_all_found() {
    let offsets = || (0..40).map(|number| 64 * number);
    let pieces: Vec<_> = offsets().map(|offset| (Vec::new(), Some(offset))).collect();
    let expected: Vec<_> = offsets()
        .map(|offset| (DATA.start + offset, Read, true, false))
        .collect();
    assert_eq!(x86(&code_with_loads(&pieces)), expected);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_followed_without_panic(
        pieces in proptest::collection::vec(
            (
                proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40),
                proptest::option::of(0..DATA.end - DATA.start),
            ),
            0..20,
        ),
        is_x86: bool,
        is_fixed: bool,
    ) {
        let bytes = code_with_loads(&pieces);
        let convention = if is_x86 { x86_64::CONVENTION } else { aarch64::CONVENTION };
        for access in found(&convention, &bytes, is_fixed) {
            proptest::prop_assert!(DATA.contains(&access.place));
            proptest::prop_assert!((CODE..CODE + bytes.len() as u64).contains(&access.instruction));
        }
    }
}
