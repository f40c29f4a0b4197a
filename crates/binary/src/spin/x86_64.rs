//! Instructions of x86-64 (Intel SDM volume 2).

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

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
    let mut information = InstructionInfoFactory::new();
    let mut instruction = Instruction::default();
    let mut steps = Vec::new();
    let has_frame_pointer = keeps_a_frame_pointer(bytes);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        steps.push(Step {
            address: instruction.ip(),
            end: instruction.next_ip(),
            does: does(&instruction, &mut information, has_frame_pointer),
            goes_on: !matches!(
                instruction.flow_control(),
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            ),
        });
    }
    steps
}

/// `push rbp; mov rbp, rsp`, after an ENDBR64: only then RBP is a place on the stack.
fn keeps_a_frame_pointer(bytes: &[u8]) -> bool {
    let bytes = bytes.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(bytes);
    bytes.starts_with(&[0x55, 0x48, 0x89, 0xe5]) || bytes.starts_with(&[0x55, 0x48, 0x8b, 0xec])
}

fn does(instruction: &Instruction, information: &mut InstructionInfoFactory, has_frame_pointer: bool) -> Does {
    match instruction.mnemonic() {
        Mnemonic::Pause => return Does::Relax(Relax::Pause),
        Mnemonic::Tpause | Mnemonic::Umwait => return Does::Relax(Relax::TimedPause),
        Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence => return Does::Barrier,
        _ => {}
    }
    let in_memory = (0..instruction.op_count()).any(|place| instruction.op_kind(place) == OpKind::Memory);
    // XCHG with memory locks without the prefix.
    if instruction.has_lock_prefix() || (instruction.mnemonic() == Mnemonic::Xchg && in_memory) {
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
    if !in_memory {
        return Does::Other;
    }
    let on_the_stack = |base: Register| base == Register::RSP || (base == Register::RBP && has_frame_pointer);
    let memory = information.info(instruction).used_memory();
    let reads = memory.iter().any(|memory| {
        let reads = matches!(
            memory.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        reads && !on_the_stack(memory.base())
    });
    match reads {
        true => Does::Load,
        false => Does::Other,
    }
}
