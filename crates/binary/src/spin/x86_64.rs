//! Instructions of x86-64 (Intel SDM volume 2).

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

use super::step::{Does, Relax, Step};

/// Places where a waiting instruction may stand: PAUSE is `rep nop`, TPAUSE and UMWAIT are `66/f2 0f ae /6`, which are rare
/// enough to be decoded wherever their bytes stand.
pub(super) fn relaxes(bytes: &[u8]) -> Vec<usize> {
    let pauses = memchr::memmem::find_iter(bytes, &[0xf3, 0x90]);
    let waits = memchr::memmem::find_iter(bytes, &[0x0f, 0xae]).filter(|at| {
        let prefix = at.checked_sub(1).and_then(|before| bytes.get(before));
        matches!(prefix, Some(0x66 | 0xf2)) && bytes.get(at + 2).is_some_and(|modrm| modrm & 0xf8 == 0xf0)
    });
    let mut all: Vec<usize> = pauses.chain(waits).collect();
    all.sort_unstable();
    all
}

pub(super) fn decode(bytes: &[u8], address: u64) -> Vec<Step> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut steps = Vec::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        steps.push(Step {
            address: instruction.ip(),
            end: instruction.next_ip(),
            does: does(&instruction),
        });
    }
    steps
}

fn does(instruction: &Instruction) -> Does {
    match instruction.mnemonic() {
        Mnemonic::Pause => return Does::Relax(Relax::Pause),
        Mnemonic::Tpause | Mnemonic::Umwait => return Does::Relax(Relax::TimedPause),
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence => return Does::Barrier,
        _ => {}
    }
    let memory = memory_operand(instruction);
    // XCHG with memory locks without the prefix.
    if instruction.has_lock_prefix() || (instruction.mnemonic() == Mnemonic::Xchg && memory.is_some()) {
        return Does::Locked;
    }
    match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch => {
            return Does::Branch(instruction.near_branch_target());
        }
        FlowControl::Call => return Does::Call(Some(instruction.near_branch_target())),
        FlowControl::IndirectCall => return Does::Call(None),
        _ => {}
    }
    // The address alone is no load; a store has its memory first.
    let reads = instruction.mnemonic() != Mnemonic::Lea
        && instruction.code() != Code::INVALID
        && memory.is_some_and(|place| place > 0 || reads_its_first_operand(instruction));
    let on_the_stack = matches!(instruction.memory_base(), Register::RSP | Register::RBP);
    match reads && !on_the_stack {
        true => Does::Load,
        false => Does::Other,
    }
}

/// Position of the operand in memory.
fn memory_operand(instruction: &Instruction) -> Option<u32> {
    (0..instruction.op_count()).find(|place| instruction.op_kind(*place) == OpKind::Memory)
}

fn reads_its_first_operand(instruction: &Instruction) -> bool {
    !matches!(
        instruction.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movaps | Mnemonic::Movups | Mnemonic::Movdqa | Mnemonic::Movdqu | Mnemonic::Movq
    )
}
