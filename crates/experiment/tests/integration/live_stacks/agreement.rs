//! The same walks by two unwinders: ours, the code that runs in the kernel, and framehop.
//!
//! Two ways to the same question. Every sample that the kernel takes of the loaded server for a while is walked by both over the copy
//! of its stack that came with it. And threads are stopped at random moments and walked on where they stand; those that run are then led
//! on instruction by instruction, so that functions are met while they build and leave their frames, and jump tables in the middle.

use scaleprof_vocabulary::UnwindStatus;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use scaleprof_probe::plain::{PlainOptions, StackUnwinder, sampled_stacks};
use scaleprof_probe::symbols::SymbolSearch;
use scaleprof_probe::{ProcessCode, ProcessNames, StartRegisters};
use scaleprof_profile::RawStack;
use testing::stopped_thread::StoppedThread;

use super::difference::{Difference, Parting};

/// Instructions that a running thread is led on.
const STEPS: usize = 32;
/// How often a running thread that was met in a system call is let go on to be met outside.
const PAUSES: usize = 8;

/// Samples a second of each thread's CPU time, and bytes of stack that come with each: enough for nearly all stacks,
/// and little enough for the rings.
const SAMPLING: PlainOptions = PlainOptions {
    frequency_hz: 99,
    stack_bytes: 49_152,
    switches: false,
    looks_hz: 0,
};

/// Bytes below the stack pointer that are still the function's (System V ABI, AMD64, 3.2.2).
const RED_ZONE: u64 = 128;

/// What a comparison gave.
#[derive(Default)]
pub struct Agreement {
    /// Samples of the kernel, and those that found no room in its rings.
    samples: usize,
    lost: u64,
    /// Stops in a system call.
    in_calls: usize,
    /// Stops between two instructions of the program.
    in_user_code: usize,
    walks: usize,
    frames: usize,
    incomplete: usize,
    ends_at_the_start: usize,
    starts_of_threads: usize,
    /// One of each kind, and how often it came.
    differences: BTreeMap<Parting, (usize, Difference)>,
}

/// Stops threads of a process until so many were met in a system call and so many outside of any.
pub fn compare(pid: u32, in_calls: usize, in_user_code: usize) -> Agreement {
    let mut comparison = Comparison::of(pid);
    let mut chance = Chance(u64::from(pid) | 1);
    let mut tries = 0;
    while comparison.agreement.in_calls < in_calls || comparison.agreement.in_user_code < in_user_code {
        tries += 1;
        assert!(tries < 100 * (in_calls + in_user_code), "{}", comparison.agreement);
        let threads = threads(pid);
        let any = threads[chance.below(threads.len())];
        // Most threads sleep most of the time, always in the same few places.
        let mut others = (0..threads.len()).map(|_| threads[chance.below(threads.len())]);
        match others.find(|other| runs(pid, *other)).filter(|_| tries % 4 != 0) {
            Some(running) => comparison.stop(running, Some(&mut chance)),
            None => comparison.stop(any, None),
        }
    }
    comparison.agreement
}

/// Walks every sample that the kernel takes of a process for a while, and for as long again until there are enough. On a busy machine
/// some find no room in the rings, which says nothing of how the others are walked.
pub fn compare_samples(pid: u32, time: Duration) -> Agreement {
    const ENOUGH: usize = 200;
    const MOST_STRETCHES: usize = 20;
    let mut comparison = Comparison::of(pid);
    for _ in 0..MOST_STRETCHES {
        let lost = sampled_stacks(pid, SAMPLING, time, |registers, memory| {
            comparison.agreement.samples += 1;
            let start = StartRegisters {
                pc: registers.pc,
                sp: registers.sp,
                fp: registers.fp,
                lr: registers.lr,
            };
            // Nothing below the stack pointer is copied. What a rule seeks there is a frame pointer that a function has taken back already,
            // and has not said so until its next instruction.
            let red_zone = start.sp.saturating_sub(RED_ZONE)..start.sp;
            let mut with_taken_back = |address: u64| match red_zone.contains(&address) {
                true => Some(start.fp),
                false => memory(address),
            };
            comparison.walk_over(start, false, &mut with_taken_back);
        });
        comparison.agreement.lost += lost.expect("the kernel samples");
        if comparison.agreement.samples > ENOUGH {
            return comparison.agreement;
        }
    }
    panic!("too few samples: {}", comparison.agreement);
}

struct Comparison {
    ours: ProcessCode,
    framehop: StackUnwinder,
    names: ProcessNames,
    memory: Memory,
    agreement: Agreement,
}

/// Reads words of the process's memory.
type Memory = Box<dyn FnMut(u64) -> Option<u64>>;

impl Comparison {
    fn of(pid: u32) -> Self {
        let mut ours = ProcessCode::of(pid).expect("its code");
        let memory = ours.memory().expect("its memory");
        let mut names = ProcessNames::new(SymbolSearch::default());
        names.follow(ours.map());
        Self {
            ours,
            framehop: StackUnwinder::of_process(pid).expect("its code"),
            names,
            memory: Box::new(memory),
            agreement: Agreement::default(),
        }
    }

    /// Compares where a thread stands. A running one is met again a little later if it is in a system call, and then led
    /// on by instructions.
    fn stop(&mut self, thread: u32, running: Option<&mut Chance>) {
        let Some(mut stopped) = StoppedThread::stop(thread) else {
            return;
        };
        let Some(mut registers) = stopped.registers() else {
            return;
        };
        self.walk(&registers);
        if in_call(&registers) {
            self.agreement.in_calls += 1;
            let Some(chance) = running else { return };
            for _ in 0..PAUSES {
                if !stopped.go_on(Duration::from_micros(chance.below(200) as u64)) {
                    return;
                }
                let Some(later) = stopped.registers() else { return };
                registers = later;
                if !in_call(&registers) {
                    break;
                }
            }
            if in_call(&registers) {
                return;
            }
            self.walk(&registers);
        }
        self.agreement.in_user_code += 1;
        for _ in 0..STEPS {
            if self.is_system_call(registers.rip) || !stopped.step() {
                return;
            }
            let Some(next) = stopped.registers() else { return };
            registers = next;
            self.walk(&registers);
        }
    }

    fn walk(&mut self, registers: &libc::user_regs_struct) {
        let start = StartRegisters {
            pc: registers.rip,
            sp: registers.rsp,
            fp: registers.rbp,
            lr: 0,
        };
        let mut memory = std::mem::replace(&mut self.memory, Box::new(|_| None));
        self.walk_over(start, starts_a_thread(registers), &mut memory);
        self.memory = memory;
    }

    /// Walks by both; `starts_a_thread` where the thread is about to make another.
    fn walk_over(&mut self, start: StartRegisters, starts_a_thread: bool, memory: &mut dyn FnMut(u64) -> Option<u64>) {
        let ours = self.ours.unwind(start, memory);
        let framehop = self.framehop.unwind(start.pc, start.sp, start.fp, memory);
        self.agreement.walks += 1;
        self.agreement.frames += ours.user.len();
        self.agreement.incomplete += usize::from(ours.ending != UnwindStatus::Complete);
        if !same(&ours, &framehop) {
            let difference = Difference::of(start, &ours, &framehop, &mut self.names);
            if difference.is_the_end_at_the_programs_start() {
                self.agreement.ends_at_the_start += 1;
                return;
            }
            if starts_a_thread && ours.ending == UnwindStatus::NoRule && ours.user.len() == 1 {
                self.agreement.starts_of_threads += 1;
                return;
            }
            let parting = difference.parting.clone();
            let (count, _) = self.agreement.differences.entry(parting).or_insert((0, difference));
            *count += 1;
        }
    }

    fn is_system_call(&mut self, pc: u64) -> bool {
        // `syscall` is 0f 05.
        (self.memory)(pc).is_none_or(|code| code & 0xffff == 0x050f)
    }
}

/// Whether a stopped thread is in a system call, which would go on for as long as it likes.
fn in_call(registers: &libc::user_regs_struct) -> bool {
    (registers.orig_rax as i64) >= 0
}

/// Whether a thread makes another one. glibc writes no rule for the instructions behind that system call (clone3.S says
/// why): the new thread is there too, and has no caller. We say that there is no rule; framehop guesses.
fn starts_a_thread(registers: &libc::user_regs_struct) -> bool {
    [libc::SYS_clone, libc::SYS_clone3].contains(&(registers.orig_rax as i64))
}

fn same(ours: &RawStack, framehop: &RawStack) -> bool {
    ours.user == framehop.user && ours.interrupted == framehop.interrupted && ours.ending == framehop.ending
}

fn threads(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the server runs");
    tasks
        .flatten()
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect()
}

fn runs(pid: u32, thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('R'))
}

/// Marsaglia's xorshift: good enough to choose threads.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

impl Agreement {
    pub fn must_be_good(&self) {
        assert!(self.differences.is_empty(), "{self}");
        // A copy of a stack ends somewhere, and both walkers with it: a hundredth of MySQL 5.6's are longer.
        let part = if self.samples > 0 { 20 } else { 100 };
        assert!(self.incomplete * part < self.walks, "{self}");
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let different: usize = self.differences.values().map(|(count, _)| count).sum();
        write!(
            f,
            "{} walks, {} of samples of the kernel ({} lost), at {} stops in system calls and {} outside of them, {} frames; {} of ours incomplete, {different} \
             unlike framehop's; allowed: {} that reached the program's start, {} while a thread was made",
            self.walks,
            self.samples,
            self.lost,
            self.in_calls,
            self.in_user_code,
            self.frames,
            self.incomplete,
            self.ends_at_the_start,
            self.starts_of_threads
        )?;
        for (count, difference) in self.differences.values() {
            write!(f, "\n{count} times: {difference}")?;
        }
        Ok(())
    }
}
