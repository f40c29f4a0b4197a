//! The processors whose stacks can be walked, and framehop's steps on each.

use super::Registers;
use super::unwind_rules::SectionBytes;
use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, FrameAddress, Module, Unwinder as _};
use gimli::Register;
use scaleprof_vocabulary::UnwindStatus;

/// A processor whose stacks can be walked, on any machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Processor {
    /// x86-64.
    X86_64,
    /// aarch64, little-endian.
    Aarch64,
}

impl Processor {
    /// The one that this program runs on.
    pub const HERE: Processor = match cfg!(target_arch = "aarch64") {
        true => Processor::Aarch64,
        false => Processor::X86_64,
    };

    /// The one of that name, as `uname -m` gives it.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Processor> {
        match name {
            "x86_64" | "amd64" => Some(Processor::X86_64),
            "aarch64" | "arm64" => Some(Processor::Aarch64),
            _ => None,
        }
    }

    /// The stack pointer, as DWARF numbers it (System V ABI of the processor).
    pub(super) fn stack_pointer(self) -> Register {
        match self {
            Processor::X86_64 => gimli::X86_64::RSP,
            Processor::Aarch64 => gimli::AArch64::SP,
        }
    }

    /// The frame pointer, as DWARF numbers it.
    pub(super) fn frame_pointer(self) -> Register {
        match self {
            Processor::X86_64 => gimli::X86_64::RBP,
            Processor::Aarch64 => gimli::AArch64::X29,
        }
    }

    /// The register in which expressions find the instruction pointer: the PLT's rule looks where in the stub it stands.
    pub(super) fn instruction_pointer(self) -> Option<Register> {
        match self {
            Processor::X86_64 => Some(gimli::X86_64::RA),
            Processor::Aarch64 => None,
        }
    }
}

/// What framehop keeps for one process.
pub(super) enum Steps {
    X86_64(UnwinderX86_64<SectionBytes>, Box<CacheX86_64>),
    Aarch64(UnwinderAarch64<SectionBytes>, Box<CacheAarch64>),
}

impl Steps {
    pub(super) fn new(processor: Processor) -> Steps {
        match processor {
            Processor::X86_64 => Steps::X86_64(UnwinderX86_64::new(), Box::default()),
            Processor::Aarch64 => Steps::Aarch64(UnwinderAarch64::new(), Box::default()),
        }
    }

    pub(super) fn processor(&self) -> Processor {
        match self {
            Steps::X86_64(..) => Processor::X86_64,
            Steps::Aarch64(..) => Processor::Aarch64,
        }
    }

    pub(super) fn add_module(&mut self, module: Module<SectionBytes>) {
        match self {
            Steps::X86_64(unwinder, _) => unwinder.add_module(module),
            Steps::Aarch64(unwinder, _) => unwinder.add_module(module),
        }
    }

    /// To the caller of a frame, by its rule or the frame pointer.
    pub(super) fn step(
        &mut self,
        frame: FrameAddress,
        registers: &mut Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(), UnwindStatus> {
        let mut read = |address| read(address).ok_or(());
        let (found, caller) = match self {
            Steps::X86_64(unwinder, cache) => {
                let mut native = UnwindRegsX86_64::new(registers.pc, registers.sp, registers.fp);
                let found = unwinder.unwind_frame(frame, &mut native, cache, &mut read);
                (found, (native.sp(), native.bp(), 0))
            }
            Steps::Aarch64(unwinder, cache) => {
                // Return addresses may be signed in their upper bits (pointer authentication); user space has 48.
                let mask = PtrAuthMask(u64::MAX >> 16);
                let mut native =
                    UnwindRegsAarch64::new_with_ptr_auth_mask(mask, registers.lr, registers.sp, registers.fp);
                let found = unwinder.unwind_frame(frame, &mut native, cache, &mut read);
                (found, (native.sp(), native.fp(), native.lr()))
            }
        };
        match found {
            Ok(Some(pc)) => {
                let (sp, fp, lr) = caller;
                *registers = Registers { pc, sp, fp, lr };
                Ok(())
            }
            // A return address of zero, where the rules marked no end.
            Ok(None) | Err(Error::ReturnAddressIsNull) => Err(UnwindStatus::NoMapping),
            Err(Error::CouldNotReadStack(_)) => Err(UnwindStatus::UnreadableMemory),
            Err(_) => Err(UnwindStatus::NoProgress),
        }
    }
}
