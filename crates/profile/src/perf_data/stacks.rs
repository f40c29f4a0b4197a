//! From samples to raw stacks: call chains as they were recorded, copies of stacks walked by unwind rules, on all CPUs. The jumps before each
//! sample are counted on the way, as no sample is looked at again.

use super::address_space;
use super::attribute::{Attribute, field};
use super::cursor::Words;
use super::files::Files;
use super::hot_lines::{HotLines, StackPart};
use super::jumps::{Counting, Jumps, Room};
use super::letting_go::Behind;
use super::met_stacks::{Met, MetStacks, StackWords};
use super::record::{Record, kind};
use super::sample::Sampled;
use super::timeline::{Layout, LayoutId};
use crate::walk::{MappedCode, OtherRegisters, Processor, Registers, StackWalker};
use crate::{RawStack, in_parallel_from_to};
use scaleprof_binary::parallel::cpus;
use scaleprof_vocabulary::UnwindStatus;
use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

/// Samples that a thread takes at once: many, so that what a walker has learnt of the code pays, and not so many that CPUs idle.
const AT_ONCE: std::ops::RangeInclusive<usize> = 48..=4096;
/// Pieces that a recording is cut into at least, as long as they are no shorter than that.
const FEWEST_PIECES: usize = 128;
/// A thread that walks has room for no more different stacks at its beginning.
const MOST_ROOM: usize = 1 << 14;
/// After so many samples it is told how much of the file was read.
const TELL_AFTER: usize = 1024;
/// So many entries a chain has at most (kernel.perf_event_max_stack): a longer stack is cut.
const LONGEST_CHAIN: usize = 127;
/// Of a chain that came later no more is taken: many samples may share it.
const LONGEST_DEFERRED: usize = 255;
/// Last branches that a processor keeps at most.
const MOST_BRANCHES: usize = 32;

/// What all samples have in common.
pub(super) struct Surroundings<'a> {
    /// By time.
    pub(super) records: &'a [(u64, Record<'a>)],
    /// The file that they are of.
    pub(super) behind: Option<&'a Behind<'a>>,
    /// Where copies of stacks are read from that are not in memory.
    pub(super) source: Option<&'a File>,
    /// How many of these could not be read any more.
    pub(super) unread: AtomicU64,
    pub(super) events: &'a [Attribute],
    pub(super) layouts: &'a [Layout],
    pub(super) files: &'a Files,
    pub(super) room_for_jumps: Room,
    /// User stacks that were taken later, by their cookies.
    pub(super) deferred: &'a HashMap<u64, Words<'a>>,
    /// Whose registers these are; none where stacks of that processor cannot be walked.
    pub(super) processor: Option<Processor>,
}

/// A sample whose stack is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The place of its record.
    pub(super) record: u32,
    pub(super) event: u32,
    pub(super) layout: LayoutId,
}

/// Stacks, each once, in the address space of the recording, and which one each sample has.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pub(super) stacks: Vec<RawStack>,
    pub(super) of_samples: Vec<u32>,
    /// The jumps before all of these samples.
    pub(super) jumps: Jumps,
}

/// The stacks of samples, in the samples' order.
pub(super) fn stacks(wanted: &[Wanted], around: &Surroundings<'_>) -> Stacks {
    // By layout, as a walker is made for one.
    let mut order: Vec<u32> = (0..wanted.len() as u32).collect();
    order.sort_by_key(|at| wanted[*at as usize].layout);
    let at_once = (wanted.len() / FEWEST_PIECES).clamp(*AT_ONCE.start(), *AT_ONCE.end());
    let same_layout = |a: &u32, b: &u32| wanted[*a as usize].layout == wanted[*b as usize].layout;
    let pieces = order.chunk_by(same_layout).flat_map(|same| same.chunks(at_once));
    // Most copied stacks are like no other; of chains there are many more samples than stacks.
    let room = (wanted.len() / cpus()).min(MOST_ROOM);
    let beginning = |number| Walking::new(number, around, room);
    let work = |walking: &mut Walking<'_>, piece: &[u32]| (walking.number, walking.of_piece(piece, wanted));
    let (found, walked) = in_parallel_from_to(pieces.clone().collect(), (beginning, Walking::all), work);
    // Equal ones of several threads are one.
    let mut all = MetStacks::default();
    let mut jumps = Jumps::default();
    let of_threads: Vec<Vec<u32>> = walked
        .into_iter()
        .map(|(own, own_jumps)| {
            jumps.add_all(own_jumps);
            all.reserve_for(&own);
            (0..own.len()).map(|number| all.number_of_other(&own, number)).collect()
        })
        .collect();
    let mut of_samples = vec![0; wanted.len()];
    for (piece, (thread, own)) in pieces.zip(found) {
        for (at, stack) in piece.iter().zip(own) {
            of_samples[*at as usize] = of_threads[thread][stack as usize];
        }
    }
    Stacks {
        jumps,
        ..in_order_of_samples(&all.take(), of_samples)
    }
}

/// Numbers stacks as they are met first, so that it does not matter which thread walked which.
fn in_order_of_samples(all: &StackWords, mut of_samples: Vec<u32>) -> Stacks {
    const NOT_MET: u32 = u32::MAX;
    let mut new_numbers = vec![NOT_MET; all.len()];
    let mut stacks = Vec::with_capacity(all.len());
    for number in &mut of_samples {
        let new_number = &mut new_numbers[*number as usize];
        if *new_number == NOT_MET {
            *new_number = stacks.len() as u32;
            let mut met = Met::default();
            all.read(*number as usize, &mut met);
            stacks.push(met.stack);
        }
        *number = *new_number;
    }
    Stacks {
        stacks,
        of_samples,
        jumps: Jumps::default(),
    }
}

/// What one thread walks: a walker with the layout that it knows, and what it met so far.
struct Walking<'a> {
    number: usize,
    around: &'a Surroundings<'a>,
    walker: StackWalker,
    layout: Option<LayoutId>,
    /// Of this layout, with their numbers behind those of the layouts before.
    met: MetStacks,
    /// Of the layouts before, in the address space of the recording.
    before: StackWords,
    jumps: Counting<'a>,
    /// Memory for one copy of a stack after the other.
    room: Vec<u8>,
    lines: HotLines,
}

impl<'a> Walking<'a> {
    /// With room for so many stacks.
    fn new(number: usize, around: &'a Surroundings<'a>, room: usize) -> Walking<'a> {
        Walking {
            number,
            around,
            walker: StackWalker::new(around.processor.unwrap_or(Processor::HERE)),
            layout: None,
            met: MetStacks::with_room(room),
            before: StackWords::default(),
            jumps: Counting::new(&around.room_for_jumps),
            room: Vec::new(),
            lines: HotLines::default(),
        }
    }

    /// What was learnt of one layout holds until the next.
    fn go_to(&mut self, id: LayoutId) {
        if self.layout != Some(id) {
            self.leave();
            let places = self.around.layouts.get(id.0 as usize);
            let code = places.map(|layout| code(layout, self.around.files));
            self.walker.set_code(code.unwrap_or_default());
            self.layout = Some(id);
        }
    }

    /// Brings what was met in a layout into the address space of the recording.
    fn leave(&mut self) {
        let nothing = Layout::default();
        let layout = self.layout.and_then(|id| self.around.layouts.get(id.0 as usize));
        let stacks = self.met.take();
        self.before.reserve_for(&stacks);
        let mut met = Met::default();
        for number in 0..stacks.len() {
            stacks.read(number, &mut met);
            end(&mut met, &mut self.walker);
            bring_into_recording(&mut met.stack, layout.unwrap_or(&nothing));
            self.before.push(&met);
        }
        self.jumps.leave(layout.unwrap_or(&nothing));
    }

    /// All stacks that were met, by number, and all jumps.
    fn all(mut self) -> (StackWords, Jumps) {
        self.leave();
        (self.before, self.jumps.into_jumps())
    }

    /// Asks for what will be looked at of the next samples.
    fn expect(&mut self, next: Option<&Wanted>, after_next: Option<&Wanted>) {
        let record = |wanted: &Wanted| {
            self.around
                .records
                .get(wanted.record as usize)
                .map(|(_, record)| record)
        };
        if let Some(record) = after_next.and_then(record) {
            record.prefetch();
        }
        let Some((next, record)) = next.and_then(|next| Some((next, record(next)?))) else {
            return;
        };
        let event = &self.around.events[next.event as usize];
        let has_copy = event.has(field::STACK_USER) && record.copy().is_none();
        let sample = has_copy.then(|| Sampled::of(record, event)).flatten();
        if let Some(sample) = &sample
            && let Some(bytes) = sample.copied.in_memory()
            && let Some((_, start)) = start_of_copy(sample, event, self.around.processor)
        {
            self.lines.expect(&part_of_stack(sample, &start, bytes));
        }
    }

    /// The numbers of the stacks of samples that have one layout.
    fn of_piece(&mut self, piece: &[u32], wanted: &[Wanted]) -> Vec<u32> {
        let around = self.around;
        if let Some(first) = piece.first() {
            self.go_to(wanted[*first as usize].layout);
        }
        let mut found = Vec::with_capacity(piece.len());
        let ahead = |at: Option<&u32>| at.map(|at| &wanted[*at as usize]);
        // Most samples have a stack that was seen before: the next one is read into its memory.
        let mut spare = RawStack::default();
        for some in piece.chunks(TELL_AFTER) {
            for (place, at) in some.iter().enumerate() {
                self.expect(ahead(some.get(place + 1)), ahead(some.get(place + 2)));
                let wanted = &wanted[*at as usize];
                let event = &around.events[wanted.event as usize];
                let record = around.records.get(wanted.record as usize).map(|(_, record)| record);
                let sampled = record.and_then(|record| Some((record, Sampled::of(record, event)?)));
                let met = match sampled {
                    Some((record, sample)) => {
                        if event.has_jumps() {
                            self.jumps.count(&sample.branches);
                        }
                        of_sample(
                            &sample,
                            record.misc,
                            event,
                            around,
                            (&mut self.walker, &mut self.room, &mut self.lines),
                            spare,
                        )
                    }
                    None => Met::whole(not_taken()),
                };
                found.push(self.before.len() as u32 + self.met.number_of(&met));
                spare = met.stack;
            }
            if let Some(behind) = around.behind {
                let record = |at: &u32| around.records.get(wanted[*at as usize].record as usize);
                behind.has_read(some.iter().filter_map(record).map(|(_, record)| record.body()));
            }
        }
        found
    }
}

/// Tells how a chain ends.
fn end(met: &mut Met, walker: &mut StackWalker) {
    let Met { stack, is_chain } = met;
    if std::mem::take(is_chain) {
        stack.ending = match stack.user.as_slice() {
            [] => UnwindStatus::NoUserStack,
            _ if stack.user.len() + stack.kernel.len() >= LONGEST_CHAIN => UnwindStatus::TooDeep,
            [.., last] => match walker.is_outermost(*last) {
                Some(true) => UnwindStatus::Complete,
                Some(false) => UnwindStatus::NoProgress,
                None => UnwindStatus::NoRule,
            },
        };
    }
}

fn code(layout: &Layout, files: &Files) -> Vec<MappedCode> {
    let places = layout.places.iter().filter_map(|place| {
        let file = files.get(place.file)?;
        Some(MappedCode {
            name: file.name(),
            addresses: place.start..place.end,
            rules: file.rules().map(|rules| (rules, place.bias)),
        })
    });
    places.collect()
}

fn not_taken() -> RawStack {
    RawStack {
        ending: UnwindStatus::NotTaken,
        ..RawStack::default()
    }
}

fn of_sample(
    sample: &Sampled<'_>,
    misc: u16,
    event: &Attribute,
    around: &Surroundings<'_>,
    (walker, room, lines): (&mut StackWalker, &mut Vec<u8>, &mut HotLines),
    spare: RawStack,
) -> Met {
    if !event.has(field::CALLCHAIN) && !event.has(field::STACK_USER) && sample.chain.len() == 0 {
        return Met::whole(of_address(sample.ip, misc));
    }
    let mut stack = of_chain(sample, misc, around, spare);
    if let Some(start) = start_of_copy(sample, event, around.processor) {
        let kernel = std::mem::take(&mut stack.kernel);
        let copied = sample.copied.bytes(around.source, room).unwrap_or_else(|| {
            around.unread.fetch_add(1, Ordering::Relaxed);
            &[]
        });
        let walked = walked((sample, copied), event, start, (walker, lines), stack);
        return Met::whole(RawStack { kernel, ..walked });
    }
    if event.has_branches_as_stack() && sample.branches.len() >= 3 {
        add_branches(&mut stack, sample);
        return Met::whole(stack);
    }
    Met { stack, is_chain: true }
}

/// Whether a record is a sample that was taken in the kernel.
pub(super) fn is_sample_of_kernel(record: &Record<'_>) -> bool {
    record.kind == kind::SAMPLE && is_of_kernel(record.misc)
}

/// Whether a sample was taken in the kernel (PERF_RECORD_MISC_CPUMODE_MASK).
fn is_of_kernel(misc: u16) -> bool {
    matches!(misc & 7, 1 | 3)
}

/// Where a thread was, and no more.
fn of_address(address: u64, misc: u16) -> RawStack {
    let mut stack = not_taken();
    match is_of_kernel(misc) {
        true => stack.kernel.push(address),
        false => stack.user.push(address),
    }
    stack
}

/// The addresses that the kernel took: those of the kernel, and those of user space by frame pointers. `stack` is one whose memory
/// may be used again.
fn of_chain(sample: &Sampled<'_>, misc: u16, around: &Surroundings<'_>, mut stack: RawStack) -> RawStack {
    /// From here on they are marks (enum perf_callchain_context).
    const MARKS: u64 = -4095_i64 as u64;
    const HYPERVISOR: u64 = -32_i64 as u64;
    const KERNEL: u64 = -128_i64 as u64;
    const USER: u64 = -512_i64 as u64;
    const USER_DEFERRED: u64 = -640_i64 as u64;
    stack.forget();
    let mut of_kernel = Some(is_of_kernel(misc));
    let mut chain = sample.chain.iter();
    while let Some(address) = chain.next() {
        match address {
            KERNEL | HYPERVISOR => of_kernel = Some(true),
            USER => of_kernel = Some(false),
            USER_DEFERRED => {
                let later = chain.next().and_then(|cookie| around.deferred.get(&cookie));
                let addresses = later
                    .into_iter()
                    .flat_map(Words::iter)
                    .filter(|address| *address < MARKS);
                stack.user.extend(addresses.take(LONGEST_DEFERRED));
            }
            // A guest's.
            MARKS.. => of_kernel = None,
            address => match of_kernel {
                Some(true) => stack.kernel.push(address),
                Some(false) => stack.user.push(address),
                None => {}
            },
        }
    }
    if stack.kernel.is_empty() && stack.user.is_empty() && sample.ip != 0 {
        return of_address(sample.ip, misc);
    }
    stack
}

/// Where the walk through a user stack that was copied begins, and whose registers these are; none where no stack was copied.
fn start_of_copy(
    sample: &Sampled<'_>,
    event: &Attribute,
    processor: Option<Processor>,
) -> Option<(Processor, Registers)> {
    let register = |number| sample.register(event, number);
    let processor = processor?;
    let start = match processor {
        Processor::X86_64 => Registers {
            pc: register(8)?,
            sp: register(7)?,
            fp: register(6).unwrap_or(0),
            lr: 0,
        },
        Processor::Aarch64 => Registers {
            pc: register(32)?,
            sp: register(31)?,
            fp: register(29).unwrap_or(0),
            lr: register(30).unwrap_or(0),
        },
    };
    Some((processor, start))
}

fn part_of_stack<'a>(sample: &Sampled<'_>, start: &Registers, bytes: &'a [u8]) -> StackPart<'a> {
    StackPart {
        thread: sample.thread,
        start: start.sp,
        bytes,
        is_cut: sample.copied.is_cut(bytes),
    }
}

/// The user stack that was copied, walked by the rules of its code. `spare` is a stack whose memory may be used again.
fn walked(
    (sample, copied): (&Sampled<'_>, &[u8]),
    event: &Attribute,
    (processor, start): (Processor, Registers),
    (walker, lines): (&mut StackWalker, &mut HotLines),
    spare: RawStack,
) -> RawStack {
    lines.begin(&part_of_stack(sample, &start, copied));
    let mut read = |address: u64| {
        let from = usize::try_from(address.checked_sub(start.sp)?).ok()?;
        let word = copied.get(from..)?.first_chunk::<8>()?;
        lines.note(address);
        Some(u64::from_le_bytes(*word))
    };
    let register = |number| sample.register(event, number_of_perf(processor, number));
    let others = || OtherRegisters::of(processor, register);
    walker.walk_again(sample.thread, spare, start, &others, &mut read)
}

/// The number by which perf records a register (enum perf_event_x86_regs, perf_event_arm_regs), of its DWARF number.
fn number_of_perf(processor: Processor, dwarf: u16) -> u32 {
    /// rax, rdx, rcx, rbx, rsi, rdi, rbp and rsp; r8 to r15 follow the segments' registers.
    const FIRST_EIGHT: [u32; 8] = [0, 3, 2, 1, 4, 5, 6, 7];
    match (processor, dwarf) {
        (Processor::Aarch64, number) => u32::from(number),
        (Processor::X86_64, number @ 0..8) => FIRST_EIGHT[usize::from(number)],
        (Processor::X86_64, number) => u32::from(number) + 8,
    }
}

/// The calls that the processor remembers: each is the place of a call, not of a return.
fn add_branches(stack: &mut RawStack, sample: &Sampled<'_>) {
    stack.user.truncate(1);
    if stack.user.is_empty() && sample.ip != 0 && stack.kernel.is_empty() {
        stack.user.push(sample.ip);
    }
    let calls = sample.branches.iter().step_by(3).take(MOST_BRANCHES);
    // Those of the kernel are in the chain already.
    stack.user.extend(calls.filter(|from| *from != 0 && *from >> 63 == 0));
    stack.interrupted = (0..stack.user.len() as u16).collect();
    stack.ending = match sample.branches.len() / 3 >= MOST_BRANCHES {
        true => UnwindStatus::TooDeep,
        false => UnwindStatus::NoProgress,
    };
}

/// Gives the stack addresses of the recording.
fn bring_into_recording(stack: &mut RawStack, layout: &Layout) {
    for (position, address) in stack.user.iter_mut().enumerate() {
        let exact = position == 0
            || stack
                .interrupted
                .iter()
                .any(|interrupted| usize::from(*interrupted) == position);
        *address = address_space::of_process(layout, *address, !exact);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `<asm/perf_regs.h>`: ax, bx, cx, dx, si, di, bp and sp, then ip, flags and six segments, then r8 to r15.
    #[test]
    fn registers_have_the_numbers_of_the_kernel() {
        let of = |processor| move |number| number_of_perf(processor, number);
        let x86: Vec<u32> = (0..16).map(of(Processor::X86_64)).collect();
        // DWARF: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8...
        assert_eq!(x86, [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23]);
        let aarch64: Vec<u32> = (0..31).map(of(Processor::Aarch64)).collect();
        assert_eq!(aarch64, (0..31).collect::<Vec<u32>>());
    }
}
