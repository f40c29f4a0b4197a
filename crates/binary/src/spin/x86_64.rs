//! Instructions of x86-64 (Intel SDM volume 2).

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

use super::flow::Flow;
use super::step::{Does, Relax, Step};
use super::unrelaxed::{MOST_BYTES, Unrelaxed};

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

/// Short branches back over instructions that wait, or only count. Jcc rel8 is 70 to 7f, JMP rel8 eb; longer ones span more than such
/// a loop.
pub(super) fn unrelaxed(bytes: &[u8], address: u64) -> Vec<Unrelaxed> {
    let mut information = InstructionInfoFactory::new();
    let mut found = Vec::new();
    for (place, pair) in bytes.windows(2).enumerate() {
        let back = usize::from((pair[1] as i8).wrapping_neg().max(0).unsigned_abs());
        let is_short_branch = matches!(pair[0], 0x70..=0x7f | 0xeb);
        // A load takes two bytes at least, and so does what counts.
        if !is_short_branch || !(4..=MOST_BYTES).contains(&back) {
            continue;
        }
        let end = place + 2;
        let Some(start) = end.checked_sub(back) else { continue };
        let range = address + start as u64..address + end as u64;
        let flows = flows_with(&bytes[start..end], range.start, &mut information);
        found.extend(flows.and_then(|flows| Unrelaxed::of(&flows, range)));
    }
    found
}

/// None where the bytes are no instructions that end with the last of them, or one rules the loop out.
pub(super) fn flows(bytes: &[u8], address: u64) -> Option<Vec<Flow>> {
    flows_with(bytes, address, &mut InstructionInfoFactory::new())
}

fn flows_with(bytes: &[u8], address: u64, information: &mut InstructionInfoFactory) -> Option<Vec<Flow>> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut flows = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let flow = flow(&instruction, information);
        if instruction.is_invalid() || flow.is_out_of_question {
            return None;
        }
        flows.push(flow);
    }
    Some(flows)
}

fn flow(instruction: &Instruction, information: &mut InstructionInfoFactory) -> Flow {
    let reads_clock = matches!(
        instruction.mnemonic(),
        Mnemonic::Rdtsc | Mnemonic::Rdtscp | Mnemonic::Cpuid
    );
    let is_branch = matches!(
        instruction.flow_control(),
        FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
    );
    // Whether RBP is a place on the stack only the function's beginning tells, which is asked later.
    let does = does(instruction, information, false);
    let mut flow = Flow {
        branch: is_branch.then(|| instruction.near_branch_target()),
        goes_on: instruction.flow_control() != FlowControl::UnconditionalBranch,
        loads: does == Does::Load,
        is_out_of_question: reads_clock
            || instruction.has_rep_prefix()
            || instruction.has_repne_prefix()
            || matches!(does, Does::Locked | Does::Relax(_) | Does::Call(_))
            || !(is_branch || instruction.flow_control() == FlowControl::Next),
        counts: counts(instruction),
        takes_one: takes_one(instruction),
        ..Flow::default()
    };
    let used = information.info(instruction);
    for memory in used.used_memory() {
        let only_reads = matches!(
            memory.access(),
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        );
        flow.is_out_of_question |= !only_reads;
    }
    for register in used.used_registers() {
        let number = register.register().full_register() as u16;
        match register.access() {
            OpAccess::Read | OpAccess::CondRead => flow.reads.push(number),
            OpAccess::Write => flow.writes.push(number),
            OpAccess::None | OpAccess::NoMemAccess => {}
            OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                flow.reads.push(number);
                flow.writes.push(number);
            }
        }
    }
    flow
}

/// A sum of registers and constants, or a comparison of them. What doubles a register does not only count.
fn counts(instruction: &Instruction) -> bool {
    let operand = |place| (place < instruction.op_count()).then(|| instruction.op_kind(place));
    let in_registers = (0..instruction.op_count()).all(|place| operand(place) != Some(OpKind::Memory));
    let (to, by) = (instruction.op0_register(), instruction.op1_register());
    match instruction.mnemonic() {
        Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Cmp | Mnemonic::Test => in_registers,
        Mnemonic::Add | Mnemonic::Sub => {
            in_registers && (by == Register::None || to.full_register() != by.full_register())
        }
        Mnemonic::Lea => {
            let (base, index) = (instruction.memory_base(), instruction.memory_index());
            (index == Register::None || instruction.memory_index_scale() == 1) && base != index
        }
        Mnemonic::Nop => true,
        _ => false,
    }
}

/// DEC, SUB of 1, ADD and LEA of -1.
fn takes_one(instruction: &Instruction) -> bool {
    let has_constant =
        instruction.op_count() > 1 && !matches!(instruction.op_kind(1), OpKind::Register | OpKind::Memory);
    match instruction.mnemonic() {
        Mnemonic::Dec => true,
        Mnemonic::Sub if has_constant => instruction.immediate(1) == 1,
        Mnemonic::Add if has_constant => instruction.immediate(1) as i64 == -1,
        Mnemonic::Lea => {
            instruction.memory_index() == Register::None && instruction.memory_displacement64() as i64 == -1
        }
        _ => false,
    }
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

/// CALL rel32 is e8 and four bytes, counted from its end.
pub(super) fn may_call(bytes: &[u8], address: u64, wanted: &dyn Fn(u64) -> bool) -> bool {
    let distance = |place: usize| bytes.get(place + 1..)?.first_chunk::<4>().copied();
    memchr::memchr_iter(0xe8, bytes).any(|place| {
        distance(place).is_some_and(|distance| {
            let end = address.wrapping_add(place as u64 + 5);
            wanted(end.wrapping_add_signed(i64::from(i32::from_le_bytes(distance))))
        })
    })
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
    let on_the_stack = |base: Register| base == Register::RSP || (base == Register::RBP && has_frame_pointer);
    // XCHG with memory locks without the prefix.
    if instruction.has_lock_prefix() || (instruction.mnemonic() == Mnemonic::Xchg && in_memory) {
        // `lock or [rsp], 0` is how compilers write a full barrier.
        return match on_the_stack(instruction.memory_base()) {
            true => Does::Barrier,
            false => Does::Locked,
        };
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
