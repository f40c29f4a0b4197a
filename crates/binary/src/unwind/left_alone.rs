//! Code that no entry covers and that leaves the stack alone until it returns: its caller is where a call left it.
//!
//! The thunks of virtual functions have no entries in MySQL 5.6.14 (some 280 of them), and none covers what fills the room between
//! two functions, through which glibc's `__memmove_chk` runs on into `memmove`. Such code is short and can be followed: where it
//! returns, or goes on to where a function begins, and does nothing to the stack, the stack pointer and the frame pointer are what
//! they were when it was entered, and the return address lies on top of the stack.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};

use super::{Architecture, CfaKind, SavedKind, UnwindRule};
use crate::call_frames::{CallFrames, Fde};
use crate::loads::{self, Segment};
use crate::x86::writes;

/// Where a function begins: the call has pushed the return address, nothing else has happened.
pub(super) const AS_CALLED: UnwindRule = UnwindRule {
    cfa: CfaKind::StackPointer as u8,
    ra: SavedKind::AtCfa as u8,
    cfa_offset: 8,
    ra_offset: -8,
    ..UnwindRule::INVALID
};

/// Bytes of a gap that is followed at most. Longer ones are programs without entries, or none.
const LONGEST: u64 = 1 << 14;

/// The code of a file.
pub(super) struct Code<'data> {
    /// What is loaded to be run and has entries, by address.
    segments: Vec<(u64, &'data [u8])>,
}

impl<'data> Code<'data> {
    /// Only x86 is followed: for other processors it is empty. `entries` by start.
    pub(super) fn of(bytes: &'data [u8], frames: &CallFrames<'_>, entries: &[Fde<'_>]) -> Self {
        let loaded = match frames.architecture {
            Architecture::X86_64 => frames.segments.as_slice(),
            Architecture::Aarch64 => &[],
        };
        // What has none may lie so far away that no table would span both.
        let has_entries = |segment: &&Segment| {
            let first = entries.partition_point(|entry| entry.initial_address() < segment.svma);
            let entry = entries.get(first);
            segment.executable && entry.is_some_and(|entry| segment.contains(entry.initial_address()))
        };
        let code = loaded.iter().filter(has_entries);
        let mut segments: Vec<_> = code
            .map(|segment| (segment.svma, loads::segment_bytes(bytes, segment)))
            .collect();
        segments.sort_by_key(|(start, _)| *start);
        Code { segments }
    }

    /// Gives the parts of a gap between entries that leave the stack alone until they return, in ascending order.
    /// `begins_a_function` says of an address outside of the gap whether [`AS_CALLED`] holds there.
    pub(super) fn left_alone_within(
        &self,
        gap: Range<u64>,
        mut begins_a_function: impl FnMut(u64) -> bool,
    ) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        // Segments of a damaged file may lie over each other.
        let mut done = gap.start;
        for (start, code) in &self.segments {
            let end = start.saturating_add(code.len() as u64);
            let inside = done.max(*start)..gap.end.min(end);
            if inside.is_empty() {
                continue;
            }
            done = inside.end;
            if inside.end - inside.start <= LONGEST {
                let piece = code.get((inside.start - start) as usize..(inside.end - start) as usize);
                let piece = piece.unwrap_or_default();
                parts.extend(left_alone(inside.start, piece, &mut begins_a_function));
            }
        }
        parts
    }
}

/// Goes from the last instruction to the first, so that it is known of each what comes behind it. Jumps backwards are not
/// followed. Of code in which anything is done to the stack nothing is told: it may have a frame, or return to where it likes.
fn left_alone(start: u64, code: &[u8], begins_a_function: &mut impl FnMut(u64) -> bool) -> Vec<Range<u64>> {
    let gap = start..start.saturating_add(code.len() as u64);
    let instructions: Vec<Instruction> = Decoder::with_ip(64, code, start, DecoderOptions::NONE)
        .into_iter()
        .collect();
    let mut information = InstructionInfoFactory::new();
    if instructions.iter().any(|one| touches_the_stack(one, &mut information)) {
        return Vec::new();
    }
    let mut parts: Vec<Range<u64>> = Vec::new();
    for instruction in instructions.iter().rev() {
        let mut returns_from = |address: u64| {
            if !gap.contains(&address) {
                return begins_a_function(address);
            }
            // What starts last comes first.
            let at = parts.partition_point(|part| part.start > address);
            parts.get(at).is_some_and(|part| part.contains(&address))
                && instructions.binary_search_by_key(&address, Instruction::ip).is_ok()
        };
        let next = instruction.next_ip();
        let returns = match instruction.flow_control() {
            FlowControl::Return => instruction.mnemonic() == Mnemonic::Ret,
            FlowControl::UnconditionalBranch => near_target(instruction).is_some_and(&mut returns_from),
            FlowControl::ConditionalBranch => {
                near_target(instruction).is_some_and(&mut returns_from) && returns_from(next)
            }
            FlowControl::Next => returns_from(next),
            // What a call, the kernel or a jump to somewhere does is not known.
            _ => false,
        };
        if returns {
            match parts.last_mut() {
                Some(part) if part.start == next => part.start = instruction.ip(),
                _ => parts.push(instruction.ip()..next),
            }
        }
    }
    parts.reverse();
    parts
}

fn near_target(jump: &Instruction) -> Option<u64> {
    (jump.op0_kind() == OpKind::NearBranch64).then(|| jump.near_branch64())
}

/// Whether an instruction writes the stack pointer, the frame pointer or what the stack pointer leads to. Calls and returns do, and leave
/// it as it was.
fn touches_the_stack(instruction: &Instruction, information: &mut InstructionInfoFactory) -> bool {
    if let FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return = instruction.flow_control() {
        return false;
    }
    let information = information.info(instruction);
    let mut registers = information.used_registers().iter();
    let mut memory = information.used_memory().iter();
    registers
        .any(|used| writes(used.access()) && matches!(used.register().full_register(), Register::RSP | Register::RBP))
        || memory.any(|used| writes(used.access()) && [used.base(), used.index()].contains(&Register::RSP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Instructions that such code is made of, and some that it is not.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            4 => Just(vec![0x90]),
            // add $-8, %rdi; test %eax, %eax; mov (%rdi), %rax; mov %rax, (%rdi)
            4 => Just(vec![0x48, 0x83, 0xc7, 0xf8]),
            2 => Just(vec![0x85, 0xc0]),
            2 => Just(vec![0x48, 0x8b, 0x07]),
            2 => Just(vec![0x48, 0x89, 0x07]),
            6 => Just(vec![0xc3]),
            // jmp, je, a prefix on its own, call, jmp *%rax, int3, syscall
            6 => any::<i8>().prop_map(|distance| vec![0xeb, (distance / 4) as u8]),
            6 => any::<i8>().prop_map(|distance| vec![0x74, (distance / 4) as u8]),
            1 => Just(vec![0xf0]),
            1 => Just(vec![0xe8, 0, 0, 0, 0]),
            1 => Just(vec![0xff, 0xe0]),
            1 => Just(vec![0xcc]),
            1 => Just(vec![0x0f, 0x05]),
        ]
    }

    proptest! {
        /// Led on from any place that is told, on every way, code returns or comes to where a function begins, and on its way is told.
        #[test]
        fn what_is_told_returns_on_every_way(pieces in prop::collection::vec(piece(), 1..40), function in 0_u64..4) {
            const START: u64 = 0x1000;
            let code = pieces.concat();
            let end = START + code.len() as u64;
            let is_function = |address: u64| address == end + function || address == START - 16;
            let parts = left_alone(START, &code, &mut { is_function });
            prop_assert!(parts.windows(2).all(|pair| pair[0].end < pair[1].start));
            let is_told = |address: u64| parts.iter().any(|part| part.contains(&address));
            let all: Vec<Instruction> = Decoder::with_ip(64, &code, START, DecoderOptions::NONE).into_iter().collect();
            for one in all.iter().filter(|one| is_told(one.ip())) {
                let leads_on = |address: u64| {
                    is_function(address) || (is_told(address) && all.iter().any(|other| other.ip() == address))
                };
                let next = one.next_ip();
                let target = one.near_branch_target();
                let returns = match one.mnemonic() {
                    Mnemonic::Ret => true,
                    Mnemonic::Jmp => leads_on(target),
                    Mnemonic::Je => leads_on(target) && leads_on(next),
                    Mnemonic::Call | Mnemonic::Int3 | Mnemonic::Syscall | Mnemonic::INVALID => false,
                    _ => leads_on(next),
                };
                prop_assert!(returns, "{one:?} of {code:02x?}");
            }
        }

        /// Segments of a damaged file may lie over each other.
        #[test]
        fn parts_rise_and_lie_within_the_gap_wherever_segments_do(
            segments in prop::collection::vec((0_u64..64, prop::collection::vec(prop::sample::select(vec![0x90_u8, 0xc3, 0x55]), 0..64)), 0..5),
            gap in (0_u64..64, 0_u64..64),
        ) {
            let mut segments: Vec<(u64, &[u8])> = segments.iter().map(|(start, code)| (*start, code.as_slice())).collect();
            segments.sort_by_key(|(start, _)| *start);
            let gap = gap.0..gap.0 + gap.1;
            let parts = Code { segments }.left_alone_within(gap.clone(), |_| true);
            prop_assert!(parts.iter().all(|part| !part.is_empty() && gap.start <= part.start && part.end <= gap.end), "{parts:?}");
            prop_assert!(parts.windows(2).all(|pair| pair[0].end <= pair[1].start), "{parts:?}");
        }

        #[test]
        fn of_code_that_does_anything_to_the_stack_nothing_is_told(
            before in prop::collection::vec(piece(), 0..8),
            which in 0_usize..9,
            behind in prop::collection::vec(piece(), 0..8),
        ) {
            // push %rax; pop %rbp; mov %r11, (%rsp); xor %ebp, %ebp; sub $8, %rsp; xchg %rax, (%rsp); leave; push $1; movl $1, 8(%rsp)
            let does: [&[u8]; 9] = [
                &[0x50],
                &[0x5d],
                &[0x4c, 0x89, 0x1c, 0x24],
                &[0x31, 0xed],
                &[0x48, 0x83, 0xec, 0x08],
                &[0x48, 0x87, 0x04, 0x24],
                &[0xc9],
                &[0x6a, 0x01],
                &[0xc7, 0x44, 0x24, 0x08, 1, 0, 0, 0],
            ];
            // A prefix of what stands before would be one of the instruction in question.
            let before: Vec<Vec<u8>> = before.into_iter().filter(|piece| piece[..] != [0xf0]).collect();
            let code = [before.concat(), does[which].to_vec(), behind.concat(), vec![0xc3]].concat();
            prop_assert_eq!(left_alone(0x1000, &code, &mut |_| true), []);
        }
    }
}
