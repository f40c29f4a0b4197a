//! Instructions of x86-64 (Intel SDM volume 2; which registers calls keep: System V ABI for AMD64, section 3.2.1).

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register as X86, UsedMemory,
};
use scaleprof_vocabulary::AccessKind;

use super::step::{Address, Convention, Flow, MemoryUse, Register, Sets, Step};
use crate::x86::writes;

const RSP: Register = 4;
const RSI: Register = 6;
const RDI: Register = 7;

pub(super) const CONVENTION: Convention = Convention {
    decode,
    // RAX, RCX, RDX, RSI, RDI, R8 to R11.
    changed_by_calls: 0b0000_1111_1100_0111,
    arguments: [RDI, RSI],
};

fn decode(bytes: &[u8], address: u64, steps: &mut Vec<Step>) {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut information = InstructionInfoFactory::new();
    let mut instruction = Instruction::default();
    steps.reserve(bytes.len() / 4);
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let (uses, changes) = match changes_nothing_but(&instruction) {
            Some(changes) => ([None; 2], changes),
            None => {
                let information = information.info(&instruction);
                (uses(&instruction, information), changes(information))
            }
        };
        steps.push(Step {
            address: instruction.ip(),
            end: instruction.next_ip(),
            uses,
            sets: sets(&instruction),
            changes,
            flow: flow(&instruction),
        });
    }
}

/// The register that an instruction of a common kind changes, as a bit, if it touches no memory; of half of all code that is known without
/// asking what each kind of instruction does, which takes long.
fn changes_nothing_but(instruction: &Instruction) -> Option<u32> {
    let is_memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
    match instruction.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Test if !is_memory(0) && !is_memory(1) => Some(0),
        Mnemonic::Mov if is_memory(0) || is_memory(1) => None,
        Mnemonic::Mov | Mnemonic::Lea => Some(number(instruction.op0_register()).map_or(0, |register| 1 << register)),
        _ => (instruction.is_jcc_short_or_near() || instruction.is_jmp_short_or_near()).then_some(0),
    }
}

fn flow(instruction: &Instruction) -> Flow {
    match instruction.flow_control() {
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => Flow::MayGo(instruction.near_branch_target()),
        FlowControl::UnconditionalBranch => Flow::Goes(instruction.near_branch_target()),
        FlowControl::Call => Flow::Calls(Some(instruction.near_branch_target())),
        FlowControl::IndirectCall => Flow::Calls(None),
        FlowControl::IndirectBranch | FlowControl::Return | FlowControl::Exception => Flow::Leaves,
        FlowControl::Next | FlowControl::Interrupt => Flow::Next,
    }
}

/// The number of a general register, whichever part of it is meant.
fn number(register: X86) -> Option<Register> {
    let full = register.full_register();
    let number = (full as u32)
        .checked_sub(X86::RAX as u32)
        .filter(|number| *number < 16)?;
    u8::try_from(number).ok()
}

fn changes(information: &InstructionInfo) -> u32 {
    let changed = information.used_registers().iter().filter(|used| writes(used.access()));
    changed
        .filter_map(|used| number(used.register()))
        .fold(0, |all, register| all | 1 << register)
}

fn uses(instruction: &Instruction, information: &InstructionInfo) -> [Option<MemoryUse>; 2] {
    let locked = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    let mut found = [None; 2];
    let of_interest = information
        .used_memory()
        .iter()
        .filter_map(|used| memory_use(used, locked));
    for (place, memory) in found.iter_mut().zip(of_interest) {
        *place = Some(memory);
    }
    found
}

fn memory_use(used: &UsedMemory, locked: bool) -> Option<MemoryUse> {
    // Thread-local memory is behind FS.
    if matches!(used.segment(), X86::FS | X86::GS) {
        return None;
    }
    let kind = match used.access() {
        OpAccess::Read | OpAccess::CondRead => AccessKind::Read,
        OpAccess::Write | OpAccess::CondWrite => AccessKind::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => AccessKind::Update,
        OpAccess::None | OpAccess::NoMemAccess => return None,
    };
    let address = address(used.base(), used.index(), used.scale(), used.displacement())?;
    // The stack is nobody else's.
    (address.base != Some(RSP)).then(|| MemoryUse {
        address,
        size: u32::try_from(used.memory_size().size()).unwrap_or(0),
        kind,
        locked,
    })
}

/// None where a register takes part that is no general one, as in gathers.
fn address(base: X86, index: X86, scale: u32, displacement: u64) -> Option<Address> {
    let register = |register: X86| match register {
        X86::None => Some(None),
        register => number(register).map(Some),
    };
    Some(Address {
        base: register(base)?,
        index: register(index)?,
        scaled: scale > 1,
        displacement,
    })
}

/// The memory operand as an address, as LEA takes it.
fn operand(instruction: &Instruction) -> Option<Address> {
    if instruction.is_ip_rel_memory_operand() {
        return Some(Address::fixed(instruction.ip_rel_memory_address()));
    }
    if matches!(instruction.memory_segment(), X86::FS | X86::GS) {
        return None;
    }
    address(
        instruction.memory_base(),
        instruction.memory_index(),
        instruction.memory_index_scale(),
        instruction.memory_displacement64(),
    )
}

fn sets(instruction: &Instruction) -> Option<Sets> {
    if instruction.op_count() != 2 || instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let register = instruction.op0_register();
    let to = number(register).filter(|_| register.is_gpr64() || register.is_gpr32())?;
    let from = instruction.op1_kind();
    match instruction.mnemonic() {
        Mnemonic::Lea => Some(Sets::Address(to, operand(instruction)?)),
        Mnemonic::Mov if from == OpKind::Memory && register.is_gpr64() => {
            Some(Sets::Pointer(to, operand(instruction)?))
        }
        Mnemonic::Mov if from == OpKind::Register => {
            let address = Address::of_register(number(instruction.op1_register())?);
            Some(Sets::Address(to, address))
        }
        Mnemonic::Mov if is_immediate(from) => Some(Sets::Number(to, instruction.immediate(1))),
        Mnemonic::Add if is_immediate(from) => Some(Sets::Address(to, Address::behind(to, instruction.immediate(1)))),
        Mnemonic::Sub if is_immediate(from) => {
            let less = instruction.immediate(1).wrapping_neg();
            Some(Sets::Address(to, Address::behind(to, less)))
        }
        Mnemonic::Add if from == OpKind::Register => Some(Sets::Address(
            to,
            Address {
                index: Some(number(instruction.op1_register())?),
                ..Address::of_register(to)
            },
        )),
        _ => None,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate32to64
            | OpKind::Immediate8to64
            | OpKind::Immediate8to32
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many instructions were told without asking, of how many.
    fn as_told_when_asked(code: &[u8]) -> (usize, usize) {
        let mut information = InstructionInfoFactory::new();
        let (mut told, mut all) = (0, 0);
        for instruction in &mut Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE) {
            all += 1;
            if let Some(changed) = changes_nothing_but(&instruction) {
                let information = information.info(&instruction);
                assert_eq!(changed, changes(information), "{instruction:?}");
                assert_eq!(uses(&instruction, information), [None; 2], "{instruction:?}");
                told += 1;
            }
        }
        (told, all)
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_common_instructions_change_is_told_as_when_asked_in_the_code_of_a_program() {
        use object::{Object as _, ObjectSection as _};
        let own = std::fs::read("/proc/self/exe").expect("it runs");
        let file = object::File::parse(&*own).expect("an ELF file");
        let text = file.section_by_name(".text").expect("code");
        let (told, all) = as_told_when_asked(text.data().expect("its bytes"));
        assert!(all > 100_000 && told * 4 > all, "{told} of {all}");
    }

    proptest::proptest! {
        #[test]
        fn what_any_bytes_change_is_told_as_when_asked(code in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
            as_told_when_asked(&code);
        }
    }
}
