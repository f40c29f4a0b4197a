//! Functions of aarch64 that no entry covers and that leave the stack pointer, the frame pointer and the link register alone.
//!
//! Written in assembler, or of the vDSO, whose entries are dropped. The walk would follow the frame pointer from there: that is still
//! the caller's, so the caller would be left out, and what lies above it would be looked for at a wrong stack pointer.

use std::ops::Range;

use object::{Object as _, ObjectSymbol as _, SymbolKind};

use super::{Architecture, CfaKind, SavedKind, UnwindRule};
use crate::call_frames::{CallFrames, Fde};
use crate::loads;

/// The caller's stack begins where ours does, and the return address is in its register.
const UNTOUCHED: UnwindRule = UnwindRule {
    cfa: CfaKind::StackPointer as u8,
    ra: SavedKind::InRegister as u8,
    ..UnwindRule::INVALID
};

/// Their rules, by address; none where the processor is another one. `entries` by start.
pub(super) fn rules(bytes: &[u8], frames: &CallFrames<'_>, entries: &[Fde<'_>]) -> Vec<(Range<u64>, UnwindRule)> {
    if frames.architecture != Architecture::Aarch64 {
        return Vec::new();
    }
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    let has_entry = |range: &Range<u64>| {
        let behind = entries.partition_point(|entry| entry.initial_address() < range.end);
        let last = behind.checked_sub(1).and_then(|last| entries.get(last));
        last.is_some_and(|entry| entry.end_address() > range.start)
    };
    let mut rules: Vec<_> = file
        .dynamic_symbols()
        .chain(file.symbols())
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
        .filter(|range| !has_entry(range))
        .filter(|range| code_of(bytes, frames, range).is_some_and(leaves_registers_alone))
        .map(|range| (range, UNTOUCHED))
        .collect();
    rules.sort_by_key(|(range, _)| (range.start, range.end));
    rules.dedup();
    rules
}

fn code_of<'data>(bytes: &'data [u8], frames: &CallFrames<'_>, range: &Range<u64>) -> Option<&'data [u8]> {
    let segment = frames
        .segments
        .iter()
        .find(|segment| segment.executable && segment.contains(range.start))?;
    let start = usize::try_from(range.start - segment.svma).ok()?;
    let end = usize::try_from(range.end - segment.svma).ok()?;
    loads::segment_bytes(bytes, segment).get(start..end)
}

/// Whether no instruction may write the stack pointer, the frame pointer or the link register. Where it is not sure, it says no.
fn leaves_registers_alone(code: &[u8]) -> bool {
    let words = code.as_chunks::<4>().0;
    !words.is_empty() && !words.iter().any(|word| may_write(u32::from_le_bytes(*word)))
}

/// Arm Architecture Reference Manual, C4.1.
fn may_write(word: u32) -> bool {
    const STACK_POINTER: u32 = 31;
    let is_frame_or_link = |register: u32| matches!(register & 31, 29 | 30);
    let (first, base) = (word & 31, word >> 5 & 31);
    // B and B.cond name no register; BL and BLR write the link register.
    match () {
        () if word >> 26 == 0b00_0101 || word >> 24 == 0x54 => return false,
        () if word >> 26 == 0b10_0101 || word & 0xffff_fc00 == 0xd63f_0000 => return true,
        () => {}
    }
    let pair = word & 0x3a00_0000 == 0x2800_0000;
    // Before or after the access the address is written back.
    let pair_writes_back = pair && word & 0x0080_0000 != 0;
    let single_writes_back = word & 0x3b20_0400 == 0x3800_0400;
    if (pair_writes_back || single_writes_back) && base == STACK_POINTER {
        return true;
    }
    // ADD, SUB (immediate, extended register), AND, ORR, EOR (immediate): those that set no flags write the stack pointer.
    let add = word & 0x3f00_0000 == 0x1100_0000 || word & 0x3fe0_0000 == 0x0b20_0000;
    let logical = word & 0x1f80_0000 == 0x1200_0000 && word >> 29 & 3 != 3;
    if (add || logical) && first == STACK_POINTER {
        return true;
    }
    is_frame_or_link(first) || pair && is_frame_or_link(word >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(words: &[u32]) -> bool {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        leaves_registers_alone(&code)
    }

    #[test]
    fn a_clock_of_the_vdso_leaves_the_registers_alone() {
        // paciasp; add x4, sp, x4; ldr xzr, [x4]; mrs x4, cntvct_el0; tbnz w6, #0; b.ne; b; autiasp; ret
        let clock = [
            0xd503_233f,
            0x8b24_63e4,
            0xf940_009f,
            0xd53b_e044,
            0x3700_0366,
            0x5400_0061,
            0x1400_001e,
            0xd503_23bf,
            0xd65f_03c0,
        ];
        assert!(alone(&clock));
    }

    #[test]
    fn a_loop_that_clears_memory_leaves_the_registers_alone() {
        // OPENSSL_cleanse of OpenSSL 3.0 (crypto/arm64cpuid.pl), whose library has no entry for it.
        let cleanse = [
            0xb400_00e1, // cbz x1
            0xf100_3c3f, // cmp x1, #0xf
            0x5400_00c8, // b.hi
            0xd503_201f, // nop
            0x3800_141f, // strb wzr, [x0], #1
            0xf100_0421, // subs x1, x1, #0x1
            0x54ff_ffc1, // b.ne
            0xd65f_03c0, // ret
            0xf240_081f, // tst x0, #0x7
            0x5400_00e0, // b.eq
            0x17ff_fffc, // b
            0xf800_841f, // str xzr, [x0], #8
            0xf27d_f03f, // tst x1, #0xfffffffffffffff8
            0xb5ff_fe01, // cbnz x1
        ];
        assert!(alone(&cleanse));
    }

    #[test]
    fn frames_and_calls_are_seen() {
        for word in [
            0xa9b8_7bfd, // stp x29, x30, [sp, #-128]!
            0x9100_03fd, // mov x29, sp
            0xa8c8_7bfd, // ldp x29, x30, [sp], #128
            0xd100_43ff, // sub sp, sp, #16
            0xcb23_63ff, // sub sp, sp, x3
            0x927c_ec1f, // and sp, x0, #-16
            0xf81f_0ffe, // str x30, [sp, #-16]!
            0xf84107e0,  // ldr x0, [sp], #16
            0x9400_0099, // bl
            0xd63f_0000, // blr x0
        ] {
            assert!(!alone(&[word]), "{word:#x}");
        }
        assert!(!alone(&[]));
    }
}
