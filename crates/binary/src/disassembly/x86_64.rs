//! Instructions of x86-64 (Intel SDM volume 2).

use scaleprof_vocabulary::{AccessKind, BranchKind};
use std::cell::RefCell;
use std::rc::Rc;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter as _, Instruction as Decoded, InstructionInfoFactory,
    IntelFormatter, Mnemonic, OpAccess, OpKind, Register, SymbolResolver, SymbolResult,
};

use super::{Access, Branch, Instruction, OperandNames};
use crate::long_names::cut;

pub(super) fn decode(bytes: &[u8], address: u64, names: &dyn OperandNames) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut information = InstructionInfoFactory::new();
    let mut decoded = Decoded::default();
    let named = Rc::new(RefCell::new(None));
    let mut formatter = formatter(&named);
    let end = address.wrapping_add(bytes.len() as u64);
    let is_inside = |target: u64| (address..end).contains(&target);
    let mut instructions = Vec::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut decoded);
        let branch = branch(&decoded);
        let access = access(&decoded, &mut information);
        // Within the code that is shown an address says more than a name and an offset.
        let target = branch
            .and_then(|branch| branch.target)
            .filter(|target| !is_inside(*target) || *target == address);
        let target = target.and_then(|target| Some((target, names.code(target)?)));
        let place =
            || data_address(&decoded).and_then(|place| Some((place, names.data(place).or_else(|| names.code(place))?)));
        *named.borrow_mut() = target.or_else(place);
        let mut text = String::new();
        formatter.format(&decoded, &mut text);
        instructions.push(Instruction {
            address: decoded.ip(),
            length: u8::try_from(decoded.len()).unwrap_or(1).max(1),
            text,
            branch,
            access,
        });
    }
    instructions
}

/// Most bytes of a name in the text of an instruction.
const IN_TEXT: usize = 256;

/// The address that an instruction names, and its name.
type Named = Rc<RefCell<Option<(u64, String)>>>;

/// Gives the formatter the name that was looked up for the instruction that it writes: it may not borrow what knows names.
struct OneName(Named);

impl SymbolResolver for OneName {
    fn symbol(&mut self, _: &Decoded, _: u32, _: Option<u32>, address: u64, _: u32) -> Option<SymbolResult<'_>> {
        let named = self.0.borrow();
        let (of, name) = named.as_ref()?;
        (*of == address).then(|| SymbolResult::with_string(address, cut(name, IN_TEXT).to_owned()))
    }
}

fn formatter(named: &Named) -> IntelFormatter {
    let mut formatter = IntelFormatter::with_options(Some(Box::new(OneName(Rc::clone(named)))), None);
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    // Where there is no name the address says more than its distance.
    options.set_rip_relative_addresses(false);
    formatter
}

fn branch(decoded: &Decoded) -> Option<Branch> {
    let is_near = matches!(
        decoded.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    // SYSCALL counts as a call of the kernel and names no address.
    let target = is_near.then(|| decoded.near_branch_target());
    let kind = match decoded.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => BranchKind::Jump,
        FlowControl::ConditionalBranch => BranchKind::Conditional,
        FlowControl::Call if is_near => BranchKind::Call,
        FlowControl::IndirectCall => BranchKind::Call,
        FlowControl::Return => BranchKind::Return,
        _ => return None,
    };
    Some(Branch { kind, target })
}

/// The address of its memory operand, where no register but RIP is part of it.
fn data_address(decoded: &Decoded) -> Option<u64> {
    let in_memory = (0..decoded.op_count()).any(|place| decoded.op_kind(place) == OpKind::Memory);
    // Behind FS and GS every thread has its own.
    if !in_memory || matches!(decoded.memory_segment(), Register::FS | Register::GS) {
        return None;
    }
    if decoded.is_ip_rel_memory_operand() {
        return Some(decoded.ip_rel_memory_address());
    }
    let in_full = decoded.memory_base() == Register::None && decoded.memory_index() == Register::None;
    in_full.then(|| decoded.memory_displacement64())
}

fn access(decoded: &Decoded, information: &mut InstructionInfoFactory) -> Option<Access> {
    let place = (0..decoded.op_count()).find(|place| decoded.op_kind(*place) == OpKind::Memory)?;
    let kind = match information.info(decoded).op_access(place) {
        OpAccess::Read | OpAccess::CondRead => AccessKind::Read,
        OpAccess::Write | OpAccess::CondWrite => AccessKind::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => AccessKind::Update,
        // LEA, prefetches and the long NOPs touch nothing.
        OpAccess::None | OpAccess::NoMemAccess => return None,
    };
    Some(Access {
        kind,
        address: data_address(decoded),
        size: u32::try_from(decoded.memory_size().size())
            .ok()
            .filter(|size| *size > 0),
        // XCHG with memory locks without the prefix.
        locked: decoded.has_lock_prefix() || decoded.mnemonic() == Mnemonic::Xchg,
    })
}
