//! Names for all places of a recording, each looked up once, on all CPUs.

use super::address_space::{of_file, place};
use super::files::{FileId, Files};
use crate::dictionary::Hashed;
use crate::names::{FileNames, kernel_frame, unnamed};
use crate::{Converter, Frame, Namer, RawStack, Variable, in_parallel};
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::SymbolFile;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Mutex, OnceLock};

/// Places that a thread looks up at once. Neighbours share what has to be read of the debug information.
const AT_ONCE: usize = 512;

/// Addresses of the kernel, each with its frame.
pub(super) type KernelFrames = Vec<(u64, Hashed<Frame>)>;

/// What every place of a recording is called.
#[derive(Default)]
pub(super) struct Names {
    /// Frames at addresses of user space, by address, innermost first.
    user: Vec<(u64, Vec<Hashed<Frame>>)>,
    /// Frames at addresses of the kernel.
    pub(super) in_kernel: KernelFrames,
    /// The functions of user space that jumps lead from and to, by their places.
    pub(super) functions: Vec<(u64, Frame)>,
    /// Variables that hold locks.
    variables: HashMap<u64, Variable>,
    /// Places of user space at which a thread waits in a loop.
    waiting: BTreeSet<u64>,
    /// The kernel's functions; none where they cannot be named.
    pub(super) kernel: Option<KernelSymbols>,
    files: BTreeSet<FileId>,
    /// What was read of them; nothing where that is debug information, which takes much memory.
    kept_open: Vec<FileNames>,
    /// Loops that were found where threads ran; none where no code was looked at.
    pub(super) loops: Option<u64>,
    /// Samples' files without symbols, by name, with the reason.
    pub(super) without_symbols: BTreeMap<String, String>,
}

/// What is read of one file.
#[derive(Default)]
struct Opened {
    names: OnceLock<Option<FileNames>>,
    /// Its loops that wait, where threads ran; none where it cannot be read.
    waiting: OnceLock<Option<SpinLoops>>,
}

/// Work that a thread does at once.
enum Task<'a> {
    /// Finds the loops of a file that wait.
    Waiting(FileId),
    /// Names a stretch of places in a file.
    Places(FileId, &'a [u64]),
}

impl Names {
    /// Looks up all that these stacks need, variables at these addresses, and the functions that jumps lead from and to, by file. `inlines`:
    /// functions that the compiler built into others are told apart, but not for jumps, which lead
    /// from one function that the machine runs to another.
    /// `ready` are the symbols of a file that were read before.
    pub(super) fn of(
        (stacks, variables, jumps): (&[RawStack], &BTreeSet<u64>, &[u64]),
        (files, ready): (&Files, Option<(FileId, SymbolFile)>),
        inlines: bool,
    ) -> Names {
        let ready = Mutex::new(ready);
        let places = lookups(stacks);
        let tips: BTreeSet<u64> = stacks
            .iter()
            .filter(|stack| stack.kernel.is_empty())
            .filter_map(|stack| stack.user.first().copied())
            .collect();
        let met = places.iter().chain(variables).chain(jumps);
        let met: BTreeSet<FileId> = met.filter_map(|address| Some(place(*address)?.0)).collect();
        let opened: HashMap<FileId, Opened> = met.into_iter().map(|file| (file, Opened::default())).collect();
        let names_of = |file: FileId| {
            let names = opened.get(&file).map(|opened| &opened.names)?;
            names.get_or_init(|| open(file, files, &ready)).as_ref()
        };
        let file_of = |address: &u64| place(*address).map(|(file, _)| file);
        // Reading the debug information of a file begins with its first piece and may take as long as naming all of the server's: the
        // files with few pieces come first, and their further ones, which have to wait for it, last.
        let pieces_of = |same: &'_ [u64]| same.len().div_ceil(AT_ONCE);
        let in_files = places.chunk_by(|a, b| file_of(a) == file_of(b));
        let pieces = in_files.flat_map(|same| {
            same.chunks(AT_ONCE)
                .enumerate()
                .map(move |piece| (pieces_of(same), piece))
        });
        let mut pieces: Vec<(usize, (usize, &[u64]))> = pieces.collect();
        let most = pieces.iter().map(|(all, _)| *all).max().unwrap_or(0);
        pieces.sort_by_key(|(all, (number, _))| (*all < most && *number > 0, *all));
        let pieces = pieces
            .into_iter()
            .filter_map(|(_, (_, piece))| Some(Task::Places(file_of(piece.first()?)?, piece)));
        // Looking for loops where threads ran most is the longest task, and no other needs it.
        let ran_in = |file: FileId| tips.range(of_file(file)).count();
        let mut by_length: Vec<FileId> = opened.keys().copied().collect();
        by_length.sort_by_cached_key(|file| (Reverse(ran_in(*file)), *file));
        let of_loops = by_length.into_iter().map(Task::Waiting);
        let found = in_parallel(of_loops.chain(pieces).collect(), |task| match task {
            Task::Waiting(file) => {
                let waiting = names_of(file).map(|names| spin_loops(file, &names.file, files, &tips));
                let _ = opened.get(&file)?.waiting.set(waiting);
                None
            }
            Task::Places(file, piece) => Some(hashed(frames(file, piece, names_of(file), files, inlines))),
        });
        let mut by_address: Vec<Vec<(u64, Vec<Hashed<Frame>>)>> = found.into_iter().flatten().collect();
        by_address.sort_unstable_by_key(|piece| piece.first().map(|(address, _)| *address));
        let of_jumps = jumps
            .chunk_by(|a, b| file_of(a) == file_of(b))
            .flat_map(|same| same.chunks(AT_ONCE))
            .filter_map(|piece| Some((file_of(piece.first()?)?, piece)));
        let functions = in_parallel(of_jumps.collect(), |(file, piece): (FileId, &[u64])| {
            frames(file, piece, names_of(file), files, false)
        });
        let functions = functions.into_iter().flatten();
        let variable = |address: &u64| {
            let (file, svma) = place(*address)?;
            // Of a file of which no code was met nothing was read yet: frame pointers lead past the function that waits.
            Some((*address, names_of(file)?.variable(svma)?))
        };
        let mut names = Names {
            variables: variables.iter().filter_map(variable).collect(),
            user: by_address.into_iter().flatten().collect(),
            functions: functions
                .filter_map(|(address, mut frames)| Some((address, frames.pop()?)))
                .collect(),
            waiting: tips.iter().copied().filter(|tip| waits(*tip, &opened)).collect(),
            files: opened.keys().copied().collect(),
            ..Names::default()
        };
        // Of code in anonymous memory each process has its own reason: the first one's is told.
        let in_order: BTreeMap<FileId, Opened> = opened.into_iter().collect();
        for (file, opened) in in_order {
            if !inlines {
                names.kept_open.extend(opened.names.into_inner().flatten());
            }
            match opened.waiting.into_inner() {
                Some(Some(waiting)) => *names.loops.get_or_insert(0) += waiting.loops().len() as u64,
                _ => {
                    let file = files.get(file).filter(|file| !file.is_named_by_its_process());
                    let problem = file.map(|file| {
                        (
                            file.name(),
                            file.problem().unwrap_or("its symbols cannot be read").to_owned(),
                        )
                    });
                    if let Some((name, why)) = problem {
                        names.without_symbols.entry(name).or_insert(why);
                    }
                }
            }
        }
        names
    }
}

impl Names {
    /// The files in which places were looked up.
    pub(super) fn files(&self) -> impl Iterator<Item = FileId> {
        self.files.iter().copied()
    }

    /// The frames at an address under which a place was looked up, until they are given away.
    pub(super) fn of_place(&self, address: u64) -> impl Iterator<Item = &Frame> {
        let found = self.user.binary_search_by_key(&address, |(address, _)| *address);
        let frames = found.ok().and_then(|at| self.user.get(at)).map(|(_, frames)| frames);
        frames.into_iter().flatten().map(Hashed::content)
    }

    /// How many addresses have frames that were not given away.
    pub(super) fn addresses(&self) -> usize {
        self.user.len() + self.in_kernel.len()
    }

    /// Gives all frames away: they are many, and nobody asks once more.
    pub(super) fn give(&mut self, converter: &mut Converter) {
        for (address, frames) in std::mem::take(&mut self.user) {
            converter.know(address, false, frames);
        }
        for (address, frame) in std::mem::take(&mut self.in_kernel) {
            converter.know(address, true, vec![frame]);
        }
    }
}

impl Namer for Names {
    /// Those that were not looked up before: of a hostile recording's kernel, or where no file is mapped.
    fn frames(&mut self, address: u64, kernel: bool) -> Vec<Frame> {
        match kernel {
            true => vec![kernel_frame(self.kernel.as_ref(), address)],
            false => Vec::new(),
        }
    }

    fn is_waiting_loop(&mut self, address: u64) -> bool {
        self.waiting.contains(&address)
    }

    fn variable(&mut self, address: u64) -> Option<Variable> {
        self.variables.get(&address).cloned()
    }
}

/// The addresses of user space under which the places of stacks are looked up, by file.
fn lookups(stacks: &[RawStack]) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    let mut room = 1 << 20;
    let mut before = &RawStack::default();
    for stack in stacks {
        // The outer frames of one are mostly those of the one before.
        let own = stack.user.len().saturating_sub(before.outer_steps_in_common(stack));
        before = stack;
        for (position, address) in stack.user[..own].iter().enumerate() {
            all.push(address - u64::from(stack.is_return_address(position) && *address > 0));
        }
        if all.len() > room {
            all.sort_unstable();
            all.dedup();
            room = room.max(2 * all.len());
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// The symbols of a file, with the debug information at hand if functions that were built into others are asked for.
pub(super) fn symbols(id: FileId, files: &Files, inlines: bool) -> Option<SymbolFile> {
    let symbols = files.symbols(id)?;
    if inlines && let Some(first) = symbols.function_ranges().first() {
        let _ = symbols.frames(first.start);
    }
    Some(symbols)
}

fn open(id: FileId, files: &Files, ready: &Mutex<Option<(FileId, SymbolFile)>>) -> Option<FileNames> {
    let take = || ready.lock().ok()?.take_if(|(of, _)| *of == id);
    let file = files.get(id)?;
    let symbols = match take() {
        Some((_, symbols)) => symbols,
        None => symbols(id, files, false)?,
    };
    let mut names = FileNames::new(file.name(), symbols, SpinLoops::default());
    names.build_id = file.build_id().map(str::to_owned);
    Some(names)
}

/// The loops of a file that wait, in the functions in which threads ran.
fn spin_loops(id: FileId, symbols: &SymbolFile, files: &Files, tips: &BTreeSet<u64>) -> SpinLoops {
    let hot = hot_functions(id, symbols.function_ranges(), tips);
    let file = files.get(id).filter(|_| !hot.is_empty());
    let found = file.and_then(|file| SpinLoops::of(&file.name(), file.bytes()?, &hot).ok());
    found.unwrap_or_default()
}

/// Whether a place belongs to a loop that waits.
fn waits(address: u64, opened: &HashMap<FileId, Opened>) -> bool {
    let waiting = |file| opened.get(&file)?.waiting.get()?.as_ref();
    place(address).is_some_and(|(file, svma)| waiting(file).is_some_and(|waiting| waiting.contains(svma)))
}

/// The functions in which a thread ran: only there can it have waited in a loop.
fn hot_functions(id: FileId, functions: &[Range<u64>], tips: &BTreeSet<u64>) -> Vec<Range<u64>> {
    let own = tips.range(of_file(id)).filter_map(|tip| place(*tip));
    let mut hot: Vec<Range<u64>> = Vec::new();
    for (_, svma) in own {
        let after = functions.partition_point(|function| function.start <= svma);
        let function = after.checked_sub(1).and_then(|at| functions.get(at));
        if let Some(function) = function.filter(|function| function.contains(&svma))
            && hot.last() != Some(function)
        {
            hot.push(function.clone());
        }
    }
    hot
}

fn hashed(frames: Vec<(u64, Vec<Frame>)>) -> Vec<(u64, Vec<Hashed<Frame>>)> {
    let of_address = |(address, frames): (u64, Vec<Frame>)| (address, frames.into_iter().map(Hashed::of).collect());
    frames.into_iter().map(of_address).collect()
}

/// What stands at addresses of one file.
fn frames(
    id: FileId,
    piece: &[u64],
    names: Option<&FileNames>,
    files: &Files,
    inlines: bool,
) -> Vec<(u64, Vec<Frame>)> {
    let svma_of = |address: &u64| place(*address).map_or(0, |(_, svma)| svma);
    if let (Some(names), false) = (names, inlines) {
        let frames = names.functions(piece.iter().map(svma_of));
        return piece.iter().copied().zip(frames.map(|frame| vec![frame])).collect();
    }
    let of_place = |address: &u64| {
        let svma = svma_of(address);
        let frames = match names {
            Some(names) => names.frames(svma),
            None => {
                let file = files.get(id)?;
                let own = file.frame_of_own_making(svma);
                vec![own.unwrap_or_else(|| unnamed(file.name(), file.build_id(), svma))]
            }
        };
        Some((*address, frames))
    };
    piece.iter().filter_map(of_place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Stacks of few addresses have outer frames in common, and in a few of them a signal interrupted somebody.
    fn any_stack() -> impl Strategy<Value = RawStack> {
        let addresses = |most| vec(0..5_u64, 0..most);
        let stack = (addresses(6), addresses(3), vec(0..5_u16, 0..2), any::<bool>());
        stack.prop_map(|(user, kernel, mut interrupted, walked)| {
            if walked {
                interrupted.insert(0, 0);
            }
            RawStack {
                user,
                kernel,
                interrupted,
                ..RawStack::default()
            }
        })
    }

    proptest! {
        #[test]
        fn every_place_of_every_stack_is_looked_up(stacks in vec(any_stack(), 0..12)) {
            let mut all = BTreeSet::new();
            for stack in &stacks {
                for (position, address) in stack.user.iter().enumerate() {
                    let called = position > 0 && !stack.interrupted.contains(&(position as u16));
                    all.insert(address.saturating_sub(u64::from(called)));
                }
            }
            prop_assert_eq!(lookups(&stacks), all.into_iter().collect::<Vec<u64>>());
        }
    }
}
