//! The registers of a frame beside those that every walk follows.
//!
//! A few functions find their caller from another register than the stack and frame pointers: the dynamic linker's while it looks for a
//! function (rbx), and some of OpenSSL's assembler. Where all registers of the innermost frame are known, as perf records them, those of
//! a frame further out follow from the rules of the frames between, for who uses such a register saves it. They are followed only when
//! they are asked for: in thousands of stacks there is hardly one.

use super::Processor;
use gimli::Register;

/// Registers that DWARF numbers, x0 to x30 on aarch64, rax to r15 on x86-64.
const NUMBERED: usize = 32;

/// Values of registers by their DWARF number; those that are not known are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherRegisters([Option<u64>; NUMBERED]);

impl OtherRegisters {
    /// Those that `value` knows, by DWARF number.
    #[must_use]
    pub fn of(processor: Processor, value: impl Fn(u16) -> Option<u64>) -> OtherRegisters {
        let mut all = OtherRegisters::default();
        for number in numbers(processor) {
            all.0[usize::from(number)] = value(number);
        }
        all
    }

    /// Whether any is known.
    pub(super) fn are_known(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// What a register holds.
    pub(super) fn get(&self, register: Register) -> Option<u64> {
        self.0.get(usize::from(register.0)).copied().flatten()
    }

    /// Those of the caller: `saved` is told each register and what it holds now, and gives what it held in the caller.
    pub(super) fn of_caller(
        &self,
        processor: Processor,
        mut saved: impl FnMut(Register, Option<u64>) -> Option<u64>,
    ) -> OtherRegisters {
        let mut caller = OtherRegisters::default();
        for number in numbers(processor) {
            let register = Register(number);
            caller.0[usize::from(number)] = saved(register, self.get(register));
        }
        caller
    }
}

/// Whether a function gives the register back as it found it (System V ABI for x86-64, 3.2.1; AAPCS64, 6.1.1).
pub(super) fn is_kept(processor: Processor, register: Register) -> bool {
    match processor {
        Processor::X86_64 => matches!(register.0, 3 | 6 | 12..=15),
        Processor::Aarch64 => matches!(register.0, 19..=29),
    }
}

fn numbers(processor: Processor) -> std::ops::Range<u16> {
    match processor {
        Processor::X86_64 => 0..16,
        Processor::Aarch64 => 0..31,
    }
}
