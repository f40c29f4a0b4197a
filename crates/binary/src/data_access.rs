//! Which variables the instructions of each function read, write and update.
//!
//! A variable is named in machine code by its address: relative to the instruction, as a number where the program is always
//! at the same place, or by a pointer that the loader puts into the global offset table, which is how code that was made for
//! libraries (and with it nearly all of MySQL 5.6) reaches even its own variables. The address may be put into a register
//! first and used later. So addresses are followed through the registers of a function, across its branches and over its
//! calls as far as the calling convention keeps registers. Covered is: an address in a register, sums with numbers and with
//! other registers (an element of an array: which one is unknown, but not of which variable), and pointers that step through
//! an array in a loop.
//!
//! Not covered: what goes through memory (spilled registers, pointers in structures on the heap), what a function does with a
//! pointer that it is given (it is told that the address is [handed on](AccessKind::Passed)), and thread-local variables,
//! which no two threads share. Where a jump table leads to is not known either: its targets start knowing nothing, unless the
//! code before them runs into them as well.

mod aarch64;
mod image;
mod loops;
mod places;
mod registers;
mod start_and_stop;
mod step;
#[cfg(test)]
mod tests;
mod walk;
mod x86_64;

use scaleprof_vocabulary::AccessKind;
use std::ops::Range;

use object::read::elf::ElfFile64;
use object::{Architecture, Endianness, Object as _, ObjectSection as _, SectionKind};

use crate::parallel::in_parallel;
use crate::symbols::SymbolError;
use image::Image;
pub use places::{TouchedPlace, touched_places};
pub use start_and_stop::{may_tell, start_and_stop};

/// One instruction and a place in memory that it touches, in the file's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Where the instruction is.
    pub instruction: u64,
    /// Where a sampling timer sees a thread that waited for it: at the instruction behind it; and where that is a conditional
    /// branch, with which CPUs join a comparison to one operation, at the one behind that as well.
    pub seen_at: [u64; 2],
    /// The first byte that it touches; where `exact` is false, the place that something unknown was added to.
    pub place: u64,
    /// Bytes; 0 where only its running tells.
    pub size: u32,
    /// Whether it is that very place.
    pub exact: bool,
    /// What it does.
    pub kind: AccessKind,
    /// Whether it lies within a loop of its function.
    pub in_loop: bool,
    /// Whether it takes the cache line for itself meanwhile: LOCK and XCHG, and on aarch64 exclusive and atomic instructions.
    pub locked: bool,
    /// The function that gets the address, where it is [handed on](AccessKind::Passed) and that is known.
    pub callee: Option<u64>,
}

/// What one function does with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionAccesses {
    /// The function, or a part of one.
    pub function: Range<u64>,
    /// By place in the function, as far as the variables are known.
    pub accesses: Vec<Access>,
    /// The functions that it calls or goes on to, in the file's addresses, a call each.
    pub calls: Vec<u64>,
    /// Addresses outside of the variables that it puts into registers: functions that may be called by pointer, and constants.
    addresses: Vec<u64>,
}

/// What all functions of a file do with its variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DataAccesses {
    /// By address; those that touch no variable included.
    pub functions: Vec<FunctionAccesses>,
    /// Addresses that stand in tables of the file or that code puts into registers, in ascending order: a function whose address
    /// is among them may be called by pointer, and a variable whose address is may be written by pointer.
    pub pointed_at: Vec<u64>,
}

impl DataAccesses {
    /// Those of an ELF file for x86-64 or aarch64; in files for other architectures none are known.
    ///
    /// `functions` are its functions by address, without overlaps, as call frame information gives them.
    ///
    /// # Errors
    /// [`SymbolError::NotElf`].
    pub fn of(name: &str, bytes: &[u8], functions: &[Range<u64>]) -> Result<DataAccesses, SymbolError> {
        let elf = ElfFile64::<Endianness>::parse(bytes).map_err(|error| SymbolError::NotElf {
            name: name.to_owned(),
            error,
        })?;
        let convention = match elf.architecture() {
            Architecture::X86_64 => x86_64::CONVENTION,
            Architecture::Aarch64 => aarch64::CONVENTION,
            _ => return Ok(DataAccesses::default()),
        };
        let image = Image::of(&elf);
        let sections = elf.sections().filter(|section| section.kind() == SectionKind::Text);
        let code: Vec<(u64, &[u8])> = sections
            .filter_map(|section| Some((section.address(), section.data().ok()?)))
            .collect();
        Ok(DataAccesses::in_code(&code, functions, &convention, image))
    }

    fn in_code(
        code: &[(u64, &[u8])],
        functions: &[Range<u64>],
        convention: &step::Convention,
        image: Image<'_>,
    ) -> DataAccesses {
        // Of a large server it is tens of thousands, each by itself.
        let of_part = |part: &[Range<u64>]| in_functions(part, code, convention, &image);
        let mut found = DataAccesses::default();
        for part in in_parallel(functions.chunks(AT_ONCE).collect(), of_part) {
            found.functions.extend(part.functions);
            found.pointed_at.extend(part.pointed_at);
        }
        found.pointed_at.extend(image.pointed_at.into_list());
        found.pointed_at.sort_unstable();
        found.pointed_at.dedup();
        found
    }
}

/// So many functions a thread takes at once.
const AT_ONCE: usize = 256;

fn in_functions(
    functions: &[Range<u64>],
    code: &[(u64, &[u8])],
    convention: &step::Convention,
    image: &Image<'_>,
) -> DataAccesses {
    let mut found = DataAccesses::default();
    let mut steps = Vec::new();
    for function in functions {
        let Some(bytes) = bytes_of(code, function) else {
            continue;
        };
        let mut accesses = FunctionAccesses {
            function: function.clone(),
            accesses: Vec::new(),
            calls: Vec::new(),
            addresses: Vec::new(),
        };
        steps.clear();
        (convention.decode)(bytes, function.start, &mut steps);
        walk::accesses(&steps, convention, image, &mut accesses);
        found.pointed_at.append(&mut accesses.addresses);
        found.functions.push(accesses);
    }
    found
}

fn bytes_of<'data>(code: &[(u64, &'data [u8])], range: &Range<u64>) -> Option<&'data [u8]> {
    code.iter().find_map(|(address, bytes)| {
        let start = usize::try_from(range.start.checked_sub(*address)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(*address)?).ok()?;
        bytes.get(start..end)
    })
}
