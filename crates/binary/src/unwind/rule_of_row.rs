//! One row of call frame information as one rule of the table.

use gimli::{CfaRule, EndianSlice, LittleEndian, Operation, Register, RegisterRule};

use super::{Architecture, CfaKind, SavedKind, UnwindRule};
use crate::call_frames::Section;

/// Some rule that the table does not hold.
pub(super) const UNSUPPORTED: UnwindRule = UnwindRule {
    cfa: CfaKind::Unsupported as u8,
    fp: SavedKind::Unsupported as u8,
    ra: SavedKind::Unsupported as u8,
    ..UnwindRule::INVALID
};

const OUTERMOST: UnwindRule = UnwindRule {
    cfa: CfaKind::Outermost as u8,
    ..UnwindRule::INVALID
};

/// DWARF's numbers of the registers that matter.
struct Registers {
    stack_pointer: Register,
    frame_pointer: Register,
    return_address: Register,
}

fn registers(architecture: Architecture) -> Registers {
    match architecture {
        // System V ABI, AMD64 supplement, figure 3.36.
        Architecture::X86_64 => Registers {
            stack_pointer: Register(7),
            frame_pointer: Register(6),
            return_address: Register(16),
        },
        // DWARF for the Arm 64-bit Architecture, section 4.1.
        Architecture::Aarch64 => Registers {
            stack_pointer: Register(31),
            frame_pointer: Register(29),
            return_address: Register(30),
        },
    }
}

/// Where the kernel saved the interrupted registers, from the stack pointer of the trampoline.
pub(super) fn signal_frame(architecture: Architecture) -> UnwindRule {
    let (sp, fp, pc) = match architecture {
        // `struct rt_sigframe` of arch/x86/include/asm/sigframe.h without the return address that the handler's `ret`
        // took: `uc.uc_mcontext` at 40, in it `rbp` at 80, `rsp` at 120, `rip` at 128.
        Architecture::X86_64 => (160, 120, 168),
        // `struct rt_sigframe` of arch/arm64/kernel/signal.c: 128 bytes of siginfo, `uc.uc_mcontext` at 304, in it
        // `regs[29]` at 240, `sp` at 256, `pc` at 264.
        Architecture::Aarch64 => (560, 544, 568),
    };
    UnwindRule {
        cfa: CfaKind::SignalFrame as u8,
        cfa_offset: sp,
        fp_offset: fp,
        ra_offset: pc,
        ..UnwindRule::INVALID
    }
}

pub(super) fn compile(
    row: &gimli::UnwindTableRow<usize>,
    architecture: Architecture,
    section: &Section<'_>,
) -> UnwindRule {
    let registers = registers(architecture);
    let return_address = row.register(registers.return_address);
    if return_address == Some(RegisterRule::Undefined) {
        return OUTERMOST;
    }
    let Some((cfa, reserved, cfa_offset)) = cfa(row.cfa(), &registers, section) else {
        return UNSUPPORTED;
    };
    let (fp, fp_offset) = saved(row.register(registers.frame_pointer), &registers, section);
    let (ra, ra_offset) = match (architecture, return_address) {
        // The walker reads it there and nowhere else: a call has pushed it.
        (Architecture::X86_64, Some(RegisterRule::Offset(-8))) => (SavedKind::AtCfa, -8),
        (Architecture::X86_64, _) => return UNSUPPORTED,
        (Architecture::Aarch64, None | Some(RegisterRule::SameValue)) => (SavedKind::InRegister, 0),
        (Architecture::Aarch64, Some(RegisterRule::Register(register))) if register == registers.return_address => {
            (SavedKind::InRegister, 0)
        }
        (Architecture::Aarch64, rule) => saved(rule, &registers, section),
    };
    UnwindRule {
        cfa: cfa as u8,
        fp: fp as u8,
        ra: ra as u8,
        reserved,
        cfa_offset,
        fp_offset,
        ra_offset,
    }
}

fn cfa(rule: &CfaRule<usize>, registers: &Registers, section: &Section<'_>) -> Option<(CfaKind, u8, i32)> {
    match rule {
        // What gimli starts with when no instruction has defined it.
        CfaRule::RegisterAndOffset {
            register: Register(0),
            offset: 0,
        } => None,
        CfaRule::RegisterAndOffset { register, offset } => {
            let offset = i32::try_from(*offset).ok()?;
            if *register == registers.stack_pointer {
                Some((CfaKind::StackPointer, 0, offset))
            } else if *register == registers.frame_pointer {
                Some((CfaKind::FramePointer, 0, offset))
            } else {
                Some((CfaKind::Register, u8::try_from(register.0).ok()?, offset))
            }
        }
        CfaRule::Expression(expression) => {
            let bytes = section.expression(expression)?;
            if let Some(boundary) = jump_table(bytes) {
                return Some((CfaKind::Plt, 0, boundary));
            }
            let (register, offset) = register_and_offset(bytes, true)?;
            if register == registers.stack_pointer {
                Some((CfaKind::DereferencedStackPointer, 0, offset))
            } else if register == registers.frame_pointer {
                Some((CfaKind::DereferencedFramePointer, 0, offset))
            } else {
                None
            }
        }
    }
}

fn saved(rule: Option<RegisterRule<usize>>, registers: &Registers, section: &Section<'_>) -> (SavedKind, i32) {
    let unsupported = (SavedKind::Unsupported, 0);
    match rule {
        // The frame pointer is a register that functions keep, so no rule means that it was not touched.
        None | Some(RegisterRule::SameValue) => (SavedKind::Same, 0),
        Some(RegisterRule::Undefined) => (SavedKind::Undefined, 0),
        Some(RegisterRule::Offset(offset)) => match i32::try_from(offset) {
            Ok(offset) => (SavedKind::AtCfa, offset),
            Err(_) => unsupported,
        },
        Some(RegisterRule::Expression(expression)) => {
            let place = section
                .expression(&expression)
                .and_then(|bytes| register_and_offset(bytes, false));
            match place {
                Some((register, offset)) if register == registers.frame_pointer => (SavedKind::AtFramePointer, offset),
                _ => unsupported,
            }
        }
        Some(_) => unsupported,
    }
}

/// The expression that linkers write for their jump table (bfd/elfxx-x86.c, `elf_x86_64_eh_frame_plt`): its stubs push
/// a number first, and from byte 11 (10 with `bnd` or `endbr64`) on it is pushed. Returns that byte.
fn jump_table(bytes: &[u8]) -> Option<i32> {
    // breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus
    match bytes {
        [
            0x77,
            8,
            0x80,
            0,
            0x3f,
            0x1a,
            boundary @ (0x3a | 0x3b),
            0x2a,
            0x33,
            0x24,
            0x22,
        ] => Some(i32::from(boundary - 0x30)),
        _ => None,
    }
}

/// `register + offset`, with or without reading the memory there.
fn register_and_offset(bytes: &[u8], dereferenced: bool) -> Option<(Register, i32)> {
    let encoding = gimli::Encoding {
        address_size: 8,
        format: gimli::Format::Dwarf32,
        version: 4,
    };
    let expression = gimli::Expression(EndianSlice::new(bytes, LittleEndian));
    let mut operations = expression.operations(encoding);
    let Some(Operation::RegisterOffset { register, offset, .. }) = operations.next().ok()? else {
        return None;
    };
    if dereferenced {
        match operations.next().ok()? {
            Some(Operation::Deref { size: 8, .. }) => {}
            _ => return None,
        }
    }
    if operations.next().ok()?.is_some() {
        return None;
    }
    Some((register, i32::try_from(offset).ok()?))
}
