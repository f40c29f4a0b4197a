//! The vDSO of aarch64, from which the kernel's linker script drops the call frame information (seen in Linux 6.1 and 6.12).
//!
//! Its clocks call nobody and leave the stack pointer, the frame pointer and the link register alone, which their few instructions
//! show. A function that keeps a frame has a frame pointer in it, which the walk follows by itself.

use std::ops::Range;

use object::{Object as _, ObjectSymbol as _, SymbolKind};

use super::{CfaKind, SavedKind, UnwindRule};
use crate::call_frames::{CallFrames, is_vdso};
use crate::loads;

/// The caller's stack begins where ours does, and the return address is in its register.
const UNTOUCHED: UnwindRule = UnwindRule {
    cfa: CfaKind::StackPointer as u8,
    ra: SavedKind::InRegister as u8,
    ..UnwindRule::INVALID
};

/// The rules of its functions that call nobody, by address; none for any other file.
pub(super) fn rules(bytes: &[u8], frames: &CallFrames<'_>) -> Vec<(Range<u64>, UnwindRule)> {
    let Ok(file) = object::File::parse(bytes) else {
        return Vec::new();
    };
    if !is_vdso(frames.architecture, &file) {
        return Vec::new();
    }
    let functions = file
        .dynamic_symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text);
    let mut rules: Vec<_> = functions
        .map(|symbol| symbol.address()..symbol.address().saturating_add(symbol.size()))
        .filter(|range| code_of(bytes, frames, range).is_some_and(leaves_registers_alone))
        .map(|range| (range, UNTOUCHED))
        .collect();
    rules.sort_by_key(|(range, _)| range.start);
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
