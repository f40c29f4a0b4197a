//! A function taken apart, with what its source and its loops say of every instruction.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::sync::Arc;

use object::{Architecture, Object as _};

use super::address_slots::AddressSlots;
use super::{Instruction, OperandNames, disassemble};
use crate::loads::{Segment, segment_bytes, segments};
use crate::parallel::in_parallel;
use crate::spin::SpinLoops;
use crate::symbols::{SymbolError, SymbolFile, end_of_path};

/// So many functions a thread takes apart at once.
const AT_ONCE: usize = 8;

/// One instruction of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedInstruction {
    /// The instruction.
    pub instruction: Instruction,
    /// The source file with its last folder.
    pub file: Option<String>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// Functions that the compiler built in here, outermost first; empty for the function's own code.
    pub inlined: Vec<Arc<str>>,
    /// Whether it is part of a loop that waits for another thread.
    pub waits: bool,
}

/// A function's instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionListing {
    /// Without parameter types and long template arguments.
    pub function: String,
    /// Its code in the file's addresses.
    pub range: Range<u64>,
    /// By address, without gaps.
    pub instructions: Vec<ListedInstruction>,
}

/// Takes functions of one file apart.
pub struct Disassembler<'file> {
    bytes: &'file [u8],
    symbols: &'file SymbolFile,
    waiting: &'file SpinLoops,
    architecture: Architecture,
    segments: Vec<Segment>,
    slots: AddressSlots,
}

impl OperandNames for Disassembler<'_> {
    fn code(&self, address: u64) -> Option<String> {
        self.symbols.code(address)
    }

    fn data(&self, address: u64) -> Option<String> {
        // A name that covers the whole table says less.
        self.slots.name(address).or_else(|| self.symbols.data(address))
    }
}

impl<'file> Disassembler<'file> {
    /// For the file of these bytes, with its symbols and its waiting loops.
    ///
    /// # Errors
    /// [`SymbolError::NotElf`].
    pub fn of(bytes: &'file [u8], symbols: &'file SymbolFile, waiting: &'file SpinLoops) -> Result<Self, SymbolError> {
        let elf = object::File::parse(bytes).map_err(|error| SymbolError::NotElf {
            name: symbols.name().to_owned(),
            error,
        })?;
        Ok(Disassembler {
            bytes,
            symbols,
            waiting,
            architecture: elf.architecture(),
            slots: AddressSlots::of(&elf, symbols),
            segments: segments(bytes),
        })
    }

    /// Whether the file's architecture is known: x86-64 and aarch64 are.
    #[must_use]
    pub fn knows_architecture(&self) -> bool {
        matches!(self.architecture, Architecture::X86_64 | Architecture::Aarch64)
    }

    /// The functions that hold these addresses, each once, in the order of the addresses.
    #[must_use]
    pub fn functions(&self, addresses: &[u64]) -> Vec<FunctionListing> {
        let mut starts = BTreeSet::new();
        let new = addresses.iter().filter(|svma| {
            let function = self.symbols.function(**svma);
            function.is_some_and(|function| starts.insert(function.start))
        });
        // Neighbours come from one part of the debug information.
        let new: Vec<u64> = new.copied().collect();
        let some =
            |some: &[u64]| -> Vec<FunctionListing> { some.iter().filter_map(|svma| self.function(*svma)).collect() };
        in_parallel(new.chunks(AT_ONCE).collect(), some)
            .into_iter()
            .flatten()
            .collect()
    }

    /// The function that holds an address; none where there is no function, or no code of it in the file.
    #[must_use]
    pub fn function(&self, svma: u64) -> Option<FunctionListing> {
        let function = self.symbols.function(svma)?;
        let range = function.start..function.start.checked_add(function.size)?;
        let code = self.code(&range)?;
        let instructions = disassemble(self.architecture, code, range.start, self)?;
        // Thousands of instructions may come from the same functions.
        let mut names = HashSet::new();
        let instructions = instructions
            .into_iter()
            .map(|instruction| self.listed(instruction, &mut names));
        Some(FunctionListing {
            function: function.name,
            instructions: instructions.collect(),
            range,
        })
    }

    fn listed(&self, instruction: Instruction, names: &mut HashSet<Arc<str>>) -> ListedInstruction {
        let mut shared = |name: &str| match names.get(name) {
            Some(known) => Arc::clone(known),
            None => {
                let new = Arc::from(name);
                names.insert(Arc::clone(&new));
                new
            }
        };
        let frames = self.symbols.frames(instruction.address);
        let innermost = frames.first();
        ListedInstruction {
            file: innermost.and_then(|frame| frame.file.as_deref()).map(end_of_path),
            line: innermost.and_then(|frame| frame.line),
            inlined: frames
                .iter()
                .rev()
                .filter(|frame| frame.inlined)
                .map(|frame| shared(&frame.name))
                .collect(),
            waits: self.waiting.contains(instruction.address),
            instruction,
        }
    }

    fn code(&self, range: &Range<u64>) -> Option<&'file [u8]> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.executable && segment.contains(range.start))?;
        let bytes = segment_bytes(self.bytes, segment);
        let start = usize::try_from(range.start - segment.svma).ok()?;
        let end = usize::try_from(range.end.checked_sub(segment.svma)?).ok()?;
        bytes.get(start..end.min(bytes.len()))
    }
}
