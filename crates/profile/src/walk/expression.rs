//! The caller of a frame whose unwind rule is a DWARF expression (DWARF 5, 6.4.3 and 2.5), or begins at a register that framehop does
//! not follow.
//!
//! There are three such expressions in a server's process: PLT stubs, the frame that the kernel makes for a signal, and
//! functions that align their stack. framehop evaluates no expression that reads memory, which the last two do.

use gimli::{
    CfaRule, EhFrame, Encoding, Evaluation, EvaluationResult, Expression, FrameDescriptionEntry, Location, Register,
    RegisterRule, UnwindExpression, Value,
};

use super::others::is_kept;
use super::unwind_rules::{Row, Slice};
use super::{OtherRegisters, Processor, Registers};

/// Most steps of one expression: those that occur have five to ten.
const MOST_STEPS: u32 = 200;

/// The bits of an address in user space on aarch64.
const CODE_ADDRESS: u64 = u64::MAX >> 16;

/// The row of a function's rules that holds at an address, with what it stands in.
pub(super) type RowOf<'a, 'bytes> = (
    &'a FrameDescriptionEntry<Slice<'bytes>>,
    &'a Row,
    &'a EhFrame<Slice<'bytes>>,
);

/// The registers of the caller; nothing where memory cannot be read or the rule needs more than that.
pub(super) fn caller(
    processor: Processor,
    of: RowOf<'_, '_>,
    (frame, others): (&Registers, &OtherRegisters),
    read: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<Registers> {
    let (fde, row, _) = of;
    let mut place = Place::of(processor, of, (frame, others), read);
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => place.register(*register)?.wrapping_add_signed(*offset),
        CfaRule::Expression(expression) => place.evaluate(expression, None)?,
    };
    let return_address = row.register(fde.cie().return_address_register());
    let pc = match processor {
        Processor::X86_64 => place.value(return_address?, cfa, 0)?,
        // A function that calls none has it in the link register still. Its upper bits may be signed (pointer authentication).
        Processor::Aarch64 => {
            place.value(return_address.unwrap_or(RegisterRule::SameValue), cfa, frame.lr)? & CODE_ADDRESS
        }
    };
    let frame_pointer = row
        .register(processor.frame_pointer())
        .unwrap_or(RegisterRule::SameValue);
    Some(Registers {
        pc,
        sp: cfa,
        fp: place.value(frame_pointer, cfa, frame.fp)?,
        lr: pc,
    })
}

/// What the other registers held in the caller, whose stack pointer is `cfa`. What a frame made by a signal saved is all that the
/// interrupted code had; else a function keeps some registers and may change the others.
pub(super) fn others_of_caller(
    processor: Processor,
    of: RowOf<'_, '_>,
    (frame, others): (&Registers, &OtherRegisters),
    cfa: u64,
    read: &mut dyn FnMut(u64) -> Option<u64>,
) -> OtherRegisters {
    let (_, row, _) = of;
    let mut place = Place::of(processor, of, (frame, others), read);
    others.of_caller(processor, |register, now| match row.register(register) {
        None | Some(RegisterRule::SameValue) => now.filter(|_| is_kept(processor, register)),
        Some(RegisterRule::Undefined) => None,
        Some(rule) => place.value(rule, cfa, now.unwrap_or(0)),
    })
}

/// What an expression may look at.
struct Place<'a, 'bytes> {
    processor: Processor,
    section: &'a EhFrame<Slice<'bytes>>,
    encoding: Encoding,
    frame: &'a Registers,
    others: &'a OtherRegisters,
    read: &'a mut dyn FnMut(u64) -> Option<u64>,
}

impl<'a, 'bytes> Place<'a, 'bytes> {
    fn of(
        processor: Processor,
        (fde, _, section): RowOf<'a, 'bytes>,
        (frame, others): (&'a Registers, &'a OtherRegisters),
        read: &'a mut dyn FnMut(u64) -> Option<u64>,
    ) -> Self {
        Place {
            processor,
            section,
            encoding: fde.cie().encoding(),
            frame,
            others,
            read,
        }
    }

    fn register(&self, register: Register) -> Option<u64> {
        let of = self.processor;
        match register {
            register if register == of.stack_pointer() => Some(self.frame.sp),
            register if register == of.frame_pointer() => Some(self.frame.fp),
            register if Some(register) == of.instruction_pointer() => Some(self.frame.pc),
            register => self.others.get(register),
        }
    }

    /// What a register held in the caller.
    fn value(&mut self, rule: RegisterRule<usize>, cfa: u64, now: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => Some(now),
            RegisterRule::Offset(offset) => (self.read)(cfa.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Some(cfa.wrapping_add_signed(offset)),
            RegisterRule::Register(register) => self.register(register),
            RegisterRule::Expression(expression) => {
                let address = self.evaluate(&expression, Some(cfa))?;
                (self.read)(address)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(&expression, Some(cfa)),
            _ => None,
        }
    }

    fn evaluate(&mut self, expression: &UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let Expression(bytes) = expression.get(self.section).ok()?;
        let mut evaluation = Evaluation::new(bytes, self.encoding);
        evaluation.set_max_iterations(MOST_STEPS);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = self.register(register)?;
                    evaluation.resume_with_register(Value::Generic(value)).ok()?
                }
                EvaluationResult::RequiresMemory { address, size: 8, .. } => {
                    let value = (self.read)(address)?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.as_result().last()?.location {
            Location::Address { address } => Some(address),
            _ => None,
        }
    }
}
