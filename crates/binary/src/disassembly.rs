//! Machine code as people read it: instructions with their text, where they branch to and which memory they touch.
//!
//! x86-64 is written in Intel's syntax, as Intel's and AMD's manuals have it (destination first, sizes spelt out), because that
//! is what one looks instructions up by; AT&T's is known to fewer people by the year. Addresses of code and data are named:
//! `call buf_page_get_gen`, `lock add qword ptr [log_sys+64], 1`.

mod aarch64;
mod address_slots;
mod function;
mod x86_64;

use object::Architecture;
use scaleprof_vocabulary::{AccessKind, BranchKind};

use crate::symbols::SymbolFile;
pub use function::{Disassembler, FunctionListing, ListedInstruction};

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// In the file's addresses.
    pub address: u64,
    /// In bytes; at least 1, also for bytes that are no instruction.
    pub length: u8,
    /// As an assembler writes it, with names for the addresses of functions and variables.
    pub text: String,
    /// Where it goes, if it may go elsewhere than to the next one.
    pub branch: Option<Branch>,
    /// The memory that it names as its operand.
    pub access: Option<Access>,
}

impl Instruction {
    /// One past its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.address.saturating_add(u64::from(self.length))
    }
}

/// Where an instruction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// How.
    pub kind: BranchKind,
    /// The address; none where only its running tells.
    pub target: Option<u64>,
}

/// The memory operand of an instruction. What instructions do to the stack without saying so (`push`, `call`) is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// What it does.
    pub kind: AccessKind,
    /// The address in the file, where the instruction names it (relative to itself, or in full); none where it is in registers,
    /// and for what each thread has its own of.
    pub address: Option<u64>,
    /// Bytes; none where only its running tells.
    pub size: Option<u32>,
    /// Whether no other CPU can come between.
    pub locked: bool,
}

/// Names for the addresses in operands.
pub trait OperandNames {
    /// A function, with the offset in it if there is one.
    fn code(&self, address: u64) -> Option<String>;
    /// A variable, with the offset in it if there is one.
    fn data(&self, address: u64) -> Option<String>;
}

impl OperandNames for SymbolFile {
    fn code(&self, address: u64) -> Option<String> {
        let function = self.function(address)?;
        Some(with_offset(&function.name, function.offset))
    }

    fn data(&self, address: u64) -> Option<String> {
        let variable = self.variable(address)?;
        Some(with_offset(&variable.name, variable.offset))
    }
}

fn with_offset(name: &str, offset: u64) -> String {
    match offset {
        0 => name.to_owned(),
        offset => format!("{name}+{offset}"),
    }
}

/// Takes code apart, from its first byte to its last; none for an architecture that is not known here. Bytes that are no
/// instruction are `(bad)` or `.inst`, never an error: data may stand between instructions.
#[must_use]
pub fn disassemble(
    architecture: Architecture,
    bytes: &[u8],
    address: u64,
    names: &dyn OperandNames,
) -> Option<Vec<Instruction>> {
    match architecture {
        Architecture::X86_64 => Some(x86_64::decode(bytes, address, names)),
        Architecture::Aarch64 => Some(aarch64::decode(bytes, address, names)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
