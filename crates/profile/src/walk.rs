//! Walks a user stack frame by frame with the unwind rules of the files that are mapped. framehop takes the steps.
//!
//! It needs nothing but registers and a way to read the stack, so it serves for stacks that perf copied out, for memory
//! that is read live, and as the yardstick for the unwinder that runs inside the kernel.

mod expression;
mod others;
mod plain_step;
mod processor;
mod trail;
mod unwind_rules;

pub use others::OtherRegisters;
pub use processor::Processor;
use scaleprof_vocabulary::UnwindStatus;
pub use unwind_rules::UnwindRules;

use crate::RawStack;
use foldhash::{HashMap, HashMapExt as _};
use framehop::FrameAddress;
use plain_step::PlainStep;
use processor::Steps;
use std::ops::Range;
use std::sync::Arc;
use trail::{Passed, Trail, Trails};
use unwind_rules::{Rule, RuleKind};

/// Most frames of a stack that are kept.
pub const MOST_FRAMES: usize = 128;

/// The registers from which a walk begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers {
    /// Instruction pointer (rip, pc).
    pub pc: u64,
    /// Stack pointer (rsp, sp).
    pub sp: u64,
    /// Frame pointer (rbp, x29).
    pub fp: u64,
    /// Link register (x30); nothing on x86-64.
    pub lr: u64,
}

/// Code that a process has mapped.
#[derive(Debug, Clone)]
pub struct MappedCode {
    /// What the file is called.
    pub name: String,
    /// Its addresses in the process.
    pub addresses: Range<u64>,
    /// Its rules, and address in the process less address in the file; none where they could not be read.
    pub rules: Option<(Arc<UnwindRules>, u64)>,
}

/// Walks the stacks of one process.
pub struct StackWalker {
    /// By address.
    code: Vec<MappedCode>,
    steps: Steps,
    /// What is known of addresses that were met: the same few thousand come again and again.
    known: HashMap<u64, Rule>,
    /// The frames of the walk that goes on.
    passed: Trail,
    /// Those of the last walk through the stack of each thread.
    trails: Trails,
    /// The other registers of one of them, by its place: those of a frame further out follow from them.
    others: Option<(usize, OtherRegisters)>,
}

impl StackWalker {
    /// For a process of that processor that has mapped nothing yet.
    #[must_use]
    pub fn new(processor: Processor) -> StackWalker {
        StackWalker {
            code: Vec::new(),
            steps: Steps::new(processor),
            known: HashMap::new(),
            passed: Trail::default(),
            trails: Trails::default(),
            others: None,
        }
    }

    /// The process has mapped this code, by address, and no other.
    pub fn set_code(&mut self, code: Vec<MappedCode>) {
        self.known.clear();
        self.trails.clear();
        self.steps = Steps::new(self.steps.processor());
        for mapped in &code {
            if let Some((rules, bias)) = &mapped.rules
                && let Some(module) = rules.module(&mapped.name, mapped.addresses.clone(), *bias)
            {
                self.steps.add_module(module);
            }
        }
        self.code = code;
    }

    /// Walks a stack outwards. `read` gives the eight bytes at an address of the process, or nothing where they are not to be
    /// had. `others` gives the other registers of the innermost frame, should they be needed; without them some stacks end early.
    pub fn walk(
        &mut self,
        start: Registers,
        others: &dyn Fn() -> OtherRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> RawStack {
        let mut nobodys = Trail::default();
        let stack = self.walk_along(&mut nobodys, RawStack::default(), start, others, read);
        // Its memory serves the next walk.
        self.passed = nobodys;
        stack
    }

    /// The same through the stack of a thread that will come again, and in the memory of a stack that is not needed any more. What stands far
    /// out in a stack is mostly what stood there the last time, and then no rule has to be looked for.
    pub(crate) fn walk_again(
        &mut self,
        thread: u32,
        stack: RawStack,
        start: Registers,
        others: &dyn Fn() -> OtherRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> RawStack {
        let mut last = self.trails.take(thread);
        let stack = self.walk_along(&mut last, stack, start, others, read);
        self.trails.keep(thread, last);
        stack
    }

    /// `last` is the trail of the walk before, and then that of this one.
    fn walk_along(
        &mut self,
        last: &mut Trail,
        mut stack: RawStack,
        start: Registers,
        others: &dyn Fn() -> OtherRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> RawStack {
        stack.forget();
        self.passed.clear();
        self.others = None;
        let mut ahead = last.ahead();
        let mut at = Passed {
            frame: FrameAddress::from_instruction_pointer(start.pc),
            registers: start,
            plain: None,
        };
        stack.ending = loop {
            self.pass(at, &mut stack);
            while stack.user.len() < MOST_FRAMES
                && let Some((plain, caller)) = ahead.caller(&at, read)
            {
                self.passed.last_went_on_by(Some(plain));
                at = caller;
                self.pass(at, &mut stack);
            }
            let mut registers = at.registers;
            match self.step(at.frame, &mut registers, others, read) {
                Err(ending) => break ending,
                Ok(_) if stack.user.len() == MOST_FRAMES => break UnwindStatus::TooDeep,
                Ok((frame, plain)) => {
                    self.passed.last_went_on_by(plain);
                    at = Passed {
                        frame,
                        registers,
                        plain: None,
                    };
                }
            }
        };
        std::mem::swap(last, &mut self.passed);
        stack
    }

    /// Comes to a frame.
    fn pass(&mut self, at: Passed, stack: &mut RawStack) {
        if !at.frame.is_return_address() {
            stack.interrupted.push(stack.user.len() as u16);
        }
        stack.user.push(at.frame.address());
        self.passed.push(at);
    }

    /// Whether a stack may end at this return address: nothing called the function there. None where no rules say.
    pub fn is_outermost(&mut self, return_address: u64) -> Option<bool> {
        let rule = self.rule_at(return_address.wrapping_sub(1))?;
        (rule.kind != RuleKind::None).then_some(rule.kind == RuleKind::Outermost)
    }

    /// From one frame to its caller, with the plain step that led there if it was one; or how the walk ends here.
    fn step(
        &mut self,
        frame: FrameAddress,
        registers: &mut Registers,
        others: &dyn Fn() -> OtherRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(FrameAddress, Option<PlainStep>), UnwindStatus> {
        let address = frame.address_for_lookup();
        let rule = self.rule_at(address).ok_or(UnwindStatus::NoMapping)?;
        let stack_pointer = registers.sp;
        match rule.kind {
            RuleKind::Outermost => return Err(UnwindStatus::Complete),
            RuleKind::Expression => self.step_by_rule(address, registers, &OtherRegisters::default(), read)?,
            RuleKind::Offset => match rule.plain {
                Some(plain) => *registers = plain.caller(registers, !frame.is_return_address(), read)?,
                None => self.step_by_framehop(address, frame, registers, read)?,
            },
            RuleKind::Register => {
                let here = self.others_here(others, read);
                self.step_by_rule(address, registers, &here, read)?;
            }
            // The frame pointer would lead past the caller, if that is what it is at all.
            RuleKind::Unsupported => return Err(UnwindStatus::UnsupportedRule),
            RuleKind::None => {
                let followed = self.steps.step(frame, registers, read);
                followed.map_err(|_| UnwindStatus::NoRule)?;
                // The frame pointer was followed: believed only if it leads to code.
                self.rule_at(registers.pc.wrapping_sub(1)).ok_or(UnwindStatus::NoRule)?;
            }
        }
        if rule.of_signal {
            // A signal may have a stack of its own, so the stack pointer may go either way.
            return Ok((FrameAddress::from_instruction_pointer(registers.pc), None));
        }
        if registers.sp <= stack_pointer && self.stack_pointer_must_move(frame) {
            return Err(UnwindStatus::NoProgress);
        }
        let caller = FrameAddress::from_return_address(registers.pc).ok_or(UnwindStatus::NoMapping)?;
        Ok((caller, rule.plain))
    }

    /// On aarch64 framehop takes a frame pointer of zero for the end of the stack. There the function that a thread begins in is yet to
    /// come, whose rules mark the end.
    fn step_by_framehop(
        &mut self,
        address: u64,
        frame: FrameAddress,
        registers: &mut Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(), UnwindStatus> {
        let before = registers.pc;
        match self.steps.step(frame, registers, read) {
            Err(UnwindStatus::NoMapping) if self.steps.processor() == Processor::Aarch64 => {
                self.step_by_rule(address, registers, &OtherRegisters::default(), read)?;
                // Of a caller the link register is not known, and what stands for it is its own address.
                (registers.pc != before).then_some(()).ok_or(UnwindStatus::NoMapping)
            }
            stepped => stepped,
        }
    }

    /// On aarch64 a leaf function keeps its return address in a register and may leave the stack pointer where it is.
    fn stack_pointer_must_move(&self, frame: FrameAddress) -> bool {
        self.steps.processor() == Processor::X86_64 || frame.is_return_address()
    }

    /// The other registers of the frame that the walk has come to, from those of the innermost one.
    fn others_here(
        &mut self,
        innermost: &dyn Fn() -> OtherRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> OtherRegisters {
        let (known, mut others) = self.others.take().unwrap_or_else(|| (0, innermost()));
        let passed = self.passed.frames();
        let here = passed.len().saturating_sub(1);
        for pair in passed[known..].windows(2) {
            let [callee, caller] = pair else { break };
            if !others.are_known() {
                break;
            }
            let (address, caller) = (callee.frame.address_for_lookup(), caller.registers);
            let rules = self.code_at(address).and_then(|code| code.rules.as_ref());
            others = rules.map_or_else(OtherRegisters::default, |(rules, bias)| {
                let in_file = address.wrapping_sub(*bias);
                rules.others_of_caller(
                    self.steps.processor(),
                    in_file,
                    (&callee.registers, &others),
                    caller.sp,
                    read,
                )
            });
        }
        self.others = Some((here, others));
        others
    }

    /// By a rule that framehop has no step for.
    fn step_by_rule(
        &self,
        address: u64,
        registers: &mut Registers,
        others: &OtherRegisters,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(), UnwindStatus> {
        let code = self.code_at(address).ok_or(UnwindStatus::NoMapping)?;
        let (rules, bias) = code.rules.as_ref().ok_or(UnwindStatus::NoRule)?;
        let mut unreadable = false;
        let mut read = |address| {
            let word = read(address);
            unreadable |= word.is_none();
            word
        };
        let processor = self.steps.processor();
        let frame = (&*registers, others);
        let caller = rules.caller(processor, address.wrapping_sub(*bias), frame, &mut read);
        *registers = caller.ok_or(match unreadable {
            true => UnwindStatus::UnreadableMemory,
            false => UnwindStatus::UnsupportedRule,
        })?;
        Ok(())
    }

    /// The rule at an address of the process; nothing where no code is mapped.
    fn rule_at(&mut self, address: u64) -> Option<Rule> {
        if let Some(rule) = self.known.get(&address) {
            return Some(*rule);
        }
        let code = self.code_at(address)?;
        let rule = match &code.rules {
            Some((rules, bias)) => rules.rule_at(self.steps.processor(), address.wrapping_sub(*bias)),
            None => Rule::NONE,
        };
        self.known.insert(address, rule);
        Some(rule)
    }

    fn code_at(&self, address: u64) -> Option<&MappedCode> {
        let at = self.code.partition_point(|code| code.addresses.end <= address);
        self.code.get(at).filter(|code| code.addresses.contains(&address))
    }
}
