//! Loops in which a thread waits for another one without leaving its CPU.
//!
//! A program that waits so tells the CPU: PAUSE on x86-64 (and TPAUSE, UMWAIT), ISB, YIELD or WFE on aarch64. Where such an
//! instruction stands, a loop stands around it: in the same function, or in the one that calls it. So the loops are found in
//! any binary, stripped or not, whatever its functions are called. Loops are taken from backward branches; what can
//! come back to the branch without passing its target again is the loop, wherever the compiler laid it.
//!
//! A loop that waits and does not say so is found by what it lacks (see `unrelaxed.rs` and `counting.rs`), with less certainty.

mod aarch64;
mod counting;
mod find;
mod flow;
mod step;
mod turns;
mod unrelaxed;
mod x86_64;

use std::ops::Range;

use object::{Architecture, Object as _, ObjectSection as _, SectionKind};

use crate::symbols::SymbolError;
pub use step::Relax;

/// What a loop does while it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpinKind {
    /// It looks at memory in every turn.
    Poll,
    /// It only counts time down; whoever is around it looks again afterwards.
    Delay,
    /// It calls a [`Delay`](SpinKind::Delay) in every turn.
    Retry,
}

impl SpinKind {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            SpinKind::Poll => "poll",
            SpinKind::Delay => "delay",
            SpinKind::Retry => "retry",
        }
    }
}

/// What a waiting loop should not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpinFault {
    /// It locks the bus or takes the cache line for itself in every turn, and so slows down the thread that it waits for.
    LockedInstruction,
    /// It waits for all its stores in every turn.
    MemoryBarrier,
    /// It never tells the CPU that it waits: it takes all of the core from the other hyperthread, and pays for a wrong guess when
    /// the wait ends.
    NoRelax,
    /// It only counts in registers: a compiler that sees through it leaves it out.
    OnlyCounts,
}

impl SpinFault {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            SpinFault::LockedInstruction => "a locked instruction in every turn: look with a plain load first",
            SpinFault::NoRelax => "no PAUSE (ISB on aarch64) in any turn: it takes the core from the other hyperthread",
            SpinFault::OnlyCounts => {
                "nothing but counting: another compiler, or other options, may leave it out; PAUSE or a compiler barrier in every turn keeps it"
            }
            SpinFault::MemoryBarrier => "a memory barrier in every turn: one after the loop will do",
        }
    }
}

/// One such loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpinLoop {
    /// Its code, in the file's addresses, by address: in one piece, mostly.
    pub parts: Vec<Range<u64>>,
    /// The function that it is in.
    pub function: Range<u64>,
    /// How it tells the CPU that it waits; none where it does not, and is found by what it lacks.
    pub relax: Option<Relax>,
    /// What it does.
    pub kind: SpinKind,
    /// Its instructions.
    pub instructions: u32,
    /// What it should not do.
    pub faults: Vec<SpinFault>,
}

impl SpinLoop {
    /// Whether a thread that is seen in it waits. One without a waiting instruction is run through once by a thread that finds at once
    /// what it looks for, such as the reader of a sequence lock.
    pub fn is_certain(&self) -> bool {
        self.relax.is_some()
    }

    /// Its first address.
    pub fn start(&self) -> u64 {
        self.parts.first().map_or(self.function.start, |part| part.start)
    }

    /// One past its last address.
    pub fn end(&self) -> u64 {
        self.parts.last().map_or(self.function.start, |part| part.end)
    }
}

/// All waiting loops of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpinLoops {
    /// By address. A loop may lie within another one.
    loops: Vec<SpinLoop>,
    /// The ranges of those that are certain, laid together.
    covered: Vec<Range<u64>>,
}

impl SpinLoops {
    /// Those of an ELF file for x86-64 or aarch64 that are [certain](SpinLoop::is_certain); other architectures have none that are
    /// known.
    ///
    /// `functions` are its functions by address, without overlaps, as call frame information gives them.
    ///
    /// # Errors
    /// [`SymbolError::NotElf`].
    pub fn of(name: &str, bytes: &[u8], functions: &[Range<u64>]) -> Result<SpinLoops, SymbolError> {
        Ok(Self::in_code(code_of(name, bytes, functions)?, find::loops))
    }

    /// Those and the ones that are only likely to wait, whose search takes some times as long.
    ///
    /// # Errors
    /// [`SymbolError::NotElf`].
    pub fn with_likely(name: &str, bytes: &[u8], functions: &[Range<u64>]) -> Result<SpinLoops, SymbolError> {
        Ok(Self::in_code(code_of(name, bytes, functions)?, |code| {
            let mut found = find::loops(code);
            found.extend(find::unrelaxed(code));
            found
        }))
    }

    fn in_code(code: Option<find::Code<'_>>, find: impl Fn(&find::Code<'_>) -> Vec<SpinLoop>) -> SpinLoops {
        code.map_or_else(SpinLoops::default, |code| SpinLoops::from_loops(find(&code)))
    }

    fn from_loops(mut loops: Vec<SpinLoop>) -> SpinLoops {
        loops.retain(|found| !found.parts.is_empty());
        loops.sort_by_key(|found| (found.start(), std::cmp::Reverse(found.end())));
        loops.dedup_by(|later, earlier| later.parts == earlier.parts);
        let certain = loops.iter().filter(|found| found.is_certain());
        let mut parts: Vec<Range<u64>> = certain.flat_map(|found| found.parts.iter().cloned()).collect();
        parts.sort_by_key(|part| part.start);
        let mut covered: Vec<Range<u64>> = Vec::new();
        for part in parts {
            match covered.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => covered.push(part),
            }
        }
        SpinLoops { loops, covered }
    }

    /// By address.
    pub fn loops(&self) -> &[SpinLoop] {
        &self.loops
    }

    /// Whether an instruction belongs to a waiting loop, one that is [certain](SpinLoop::is_certain). For a sample ask for where the thread stood itself, not for a return
    /// address.
    pub fn contains(&self, svma: u64) -> bool {
        let after = self.covered.partition_point(|range| range.start <= svma);
        let before = after.checked_sub(1).and_then(|index| self.covered.get(index));
        before.is_some_and(|range| range.contains(&svma))
    }
}

/// None for an architecture of which nothing is known.
fn code_of<'a>(
    name: &str,
    bytes: &'a [u8],
    functions: &'a [Range<u64>],
) -> Result<Option<find::Code<'a>>, SymbolError> {
    let not_elf = |error| SymbolError::NotElf {
        name: name.to_owned(),
        error,
    };
    let elf = object::File::parse(bytes).map_err(not_elf)?;
    let sections = elf
        .sections()
        .filter(|section| section.kind() == SectionKind::Text)
        .filter_map(|section| Some((section.address(), section.data().ok()?)))
        .collect();
    Ok(match elf.architecture() {
        Architecture::X86_64 => Some(find::Code {
            sections,
            functions,
            decode: x86_64::decode,
            may_call: x86_64::may_call,
            relaxes: x86_64::relaxes,
            unrelaxed: x86_64::unrelaxed,
            flows: x86_64::flows,
        }),
        Architecture::Aarch64 => Some(find::Code {
            sections,
            functions,
            decode: aarch64::decode,
            may_call: aarch64::may_call,
            relaxes: aarch64::relaxes,
            unrelaxed: aarch64::unrelaxed,
            flows: aarch64::flows,
        }),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
