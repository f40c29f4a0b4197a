//! Instructions of aarch64: all have four bytes.

use scaleprof_vocabulary::BranchKind;
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction as Decoded, Opcode, Operand};

use super::{Branch, Instruction, OperandNames};

/// Memory is not looked at here: an address takes two instructions (ADRP and what follows it), and only registers join them.
pub(super) fn decode(bytes: &[u8], address: u64, names: &dyn OperandNames) -> Vec<Instruction> {
    let end = address.wrapping_add(bytes.len() as u64);
    let decoder = InstDecoder::default();
    let words = bytes.chunks(4).enumerate();
    words
        .map(|(place, bytes)| {
            let at = address.wrapping_add(place as u64 * 4);
            let decoded = decoder.decode(&mut U8Reader::new(bytes)).ok();
            let branch = decoded.as_ref().and_then(|decoded| branch(decoded, at));
            let name = |target: u64| match (address..end).contains(&target) && target != address {
                true => None,
                false => names.code(target).or_else(|| names.data(target)),
            };
            Instruction {
                address: at,
                length: bytes.len() as u8,
                text: match &decoded {
                    Some(decoded) => text(decoded, at, name),
                    None => raw(bytes),
                },
                branch,
                access: None,
            }
        })
        .collect()
}

/// What is no known instruction, or less than one.
fn raw(bytes: &[u8]) -> String {
    match <[u8; 4]>::try_from(bytes) {
        Ok(word) => format!(".inst {:#010x}", u32::from_le_bytes(word)),
        Err(_) => "(bad)".to_owned(),
    }
}

/// The decoder writes `$+0x40` for what lies so far ahead; people want to know where that is.
fn text(decoded: &Decoded, at: u64, name: impl Fn(u64) -> Option<String>) -> String {
    let text = decoded.to_string();
    let Some(target) = named_address(decoded, at) else {
        return text;
    };
    let Some((before, _)) = text.rsplit_once('$') else {
        return text;
    };
    match name(target) {
        Some(name) if decoded.opcode != Opcode::ADRP => format!("{before}{name}"),
        // Only a page: what is in it the next instruction says.
        _ => format!("{before}{target:#x}"),
    }
}

fn offset(decoded: &Decoded) -> Option<i64> {
    decoded.operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some(*offset),
        _ => None,
    })
}

/// The address that the instruction names by its distance.
fn named_address(decoded: &Decoded, at: u64) -> Option<u64> {
    let from = match decoded.opcode {
        Opcode::ADRP => at & !0xfff,
        _ => at,
    };
    Some(from.wrapping_add_signed(offset(decoded)?))
}

fn branch(decoded: &Decoded, at: u64) -> Option<Branch> {
    let kind = match decoded.opcode {
        Opcode::B | Opcode::BR | Opcode::BRAA | Opcode::BRAAZ | Opcode::BRAB | Opcode::BRABZ => BranchKind::Jump,
        Opcode::BL | Opcode::BLR | Opcode::BLRAA | Opcode::BLRAAZ | Opcode::BLRAB | Opcode::BLRABZ => BranchKind::Call,
        Opcode::RET | Opcode::RETAA | Opcode::RETAB => BranchKind::Return,
        Opcode::Bcc(_) | Opcode::CBZ | Opcode::CBNZ | Opcode::TBZ | Opcode::TBNZ => BranchKind::Conditional,
        _ => return None,
    };
    let target = named_address(decoded, at);
    Some(Branch { kind, target })
}
