//! The step from a frame to its caller that nearly all code of x86-64 needs, without a look at its rules.
//!
//! A walk takes a few hundred thousand steps at some thousands of places. framehop reads the rules of a place again when it has met
//! others since (it keeps 509), so what it would do there is kept here, for all places that were met. Tests hold it against framehop.

use gimli::{CfaRule, RegisterRule, X86_64};
use scaleprof_vocabulary::UnwindStatus;

use super::Registers;
use super::unwind_rules::Row;

/// Where the caller's registers are; the return address lies below where its stack ends, in eight bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainStep {
    /// The caller's stack ends so many bytes above the stack pointer, and its frame pointer is still in its register.
    Above(u32),
    /// The same, and the frame pointer lies so many bytes from the stack pointer.
    AboveWithFramePointer(u32, i32),
    /// Of a function that keeps a frame pointer: that of its caller lies there, and the return address above it.
    ByFramePointer,
}

impl PlainStep {
    /// What the rules of a place come to; none where they say something else.
    pub(super) fn of(row: &Row) -> Option<PlainStep> {
        if row.register(X86_64::RA) != Some(RegisterRule::Offset(-8)) {
            return None;
        }
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
            return None;
        };
        // Where the stack is not laid out in words something else is meant.
        let in_words = |offset: i64| (offset % 8 == 0).then_some(offset);
        let above = u32::try_from(in_words(offset)?)
            .ok()
            .filter(|above| *above < MOST_ABOVE)?;
        match (register, row.register(X86_64::RBP)) {
            (X86_64::RSP, None | Some(RegisterRule::Undefined | RegisterRule::SameValue)) => {
                Some(PlainStep::Above(above))
            }
            (X86_64::RSP, Some(RegisterRule::Offset(from_end))) => {
                let at = i64::from(above).checked_add(in_words(from_end)?)?;
                let at = i32::try_from(at).ok()?;
                (at.unsigned_abs() < MOST_ABOVE).then_some(PlainStep::AboveWithFramePointer(above, at))
            }
            (X86_64::RBP, Some(RegisterRule::Offset(-16))) if offset == 16 => Some(PlainStep::ByFramePointer),
            _ => None,
        }
    }

    /// The caller's registers, or how the walk ends here. `is_interrupted`: the frame did not call, as the innermost one.
    pub(super) fn caller(
        self,
        registers: &Registers,
        is_interrupted: bool,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<Registers, UnwindStatus> {
        let Registers { sp, fp, .. } = *registers;
        let (end, fp) = match self {
            PlainStep::Above(above) => (sp.checked_add(u64::from(above)).ok_or(UnwindStatus::NoProgress)?, fp),
            PlainStep::AboveWithFramePointer(above, at) => {
                let end = sp.checked_add(u64::from(above)).ok_or(UnwindStatus::NoProgress)?;
                let at = sp.checked_add_signed(i64::from(at)).ok_or(UnwindStatus::NoProgress)?;
                match read(at) {
                    Some(fp) => (end, fp),
                    // It was popped already: compilers do not always say so, and what is below the stack is not kept.
                    None if is_interrupted && at < sp => (end, fp),
                    None => return Err(UnwindStatus::UnreadableMemory),
                }
            }
            PlainStep::ByFramePointer if fp == 0 => return Err(UnwindStatus::NoMapping),
            PlainStep::ByFramePointer => {
                let end = fp
                    .checked_add(16)
                    .filter(|end| *end > sp)
                    .ok_or(UnwindStatus::NoProgress)?;
                (end, read(fp).ok_or(UnwindStatus::UnreadableMemory)?)
            }
        };
        let pc = read(end.wrapping_sub(8)).ok_or(UnwindStatus::UnreadableMemory)?;
        match pc {
            0 => Err(UnwindStatus::NoMapping),
            pc if end == sp && pc == registers.pc => Err(UnwindStatus::NoProgress),
            pc => Ok(Registers { pc, sp: end, fp, lr: 0 }),
        }
    }
}

/// No frame is larger: framehop takes offsets that fit into 15 bits of words.
const MOST_ABOVE: u32 = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::walk::processor::{Processor, Steps};
    use crate::walk::{MappedCode, UnwindRules};
    use framehop::FrameAddress;
    use proptest::prelude::*;
    use std::sync::{Arc, LazyLock};

    /// This test and what it calls, as a process would have them mapped.
    static CODE: LazyLock<(MappedCode, Arc<UnwindRules>)> = LazyLock::new(|| {
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        let rules = Arc::new(UnwindRules::read(&*bytes).expect("rules"));
        let code = MappedCode {
            name: "test".to_owned(),
            addresses: 0..1 << 40,
            rules: Some((Arc::clone(&rules), 0)),
        };
        (code, rules)
    });

    /// A stack of 64 words from 0x1000 on, each with its own value.
    fn read(address: u64) -> Option<u64> {
        let word = address.checked_sub(0x1000)? / 8;
        (address.is_multiple_of(8) && word < 64).then_some(word % 7 * 0x101)
    }

    #[test]
    fn most_rules_of_this_program_have_plain_steps() {
        let rules = &CODE.1;
        let text = rules.text();
        let places = text.clone().step_by((text.end - text.start) as usize / 10_000);
        let plain = places.filter(|pc| rules.rule_at(Processor::X86_64, *pc).plain.is_some());
        assert!(plain.count() > 1000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]
        #[test]
        fn its_steps_are_framehops(
            place in 0_u64..1 << 32,
            sp in 0x0fc0_u64..0x1240,
            fp in prop_oneof![Just(0_u64), 0x0fc0_u64..0x1240, any::<u64>()],
            called: bool,
        ) {
            let (code, rules) = &*CODE;
            let text = rules.text();
            let pc = text.start + place % (text.end - text.start);
            let rule = rules.rule_at(Processor::X86_64, pc);
            if let Some(plain) = rule.plain {
                let (rules, bias) = code.rules.clone().expect("rules");
                let mut steps = Steps::new(Processor::X86_64);
                steps.add_module(rules.module(&code.name, code.addresses.clone(), bias).expect("a module"));
                let (sp, fp) = (sp / 8 * 8, if fp > 0x2000 { fp } else { fp / 8 * 8 });
                let frame = match called {
                    true => FrameAddress::from_return_address(pc + 1).expect("not 0"),
                    false => FrameAddress::from_instruction_pointer(pc),
                };
                let before = Registers { pc: frame.address(), sp, fp, lr: 0 };
                let mut by_framehop = before;
                let ended = steps.step(frame, &mut by_framehop, &mut read);
                let own = plain.caller(&before, !called, &mut read);
                prop_assert_eq!(own, ended.map(|()| by_framehop), "{:?} of {:?}", plain, before);
            }
        }
    }
}
