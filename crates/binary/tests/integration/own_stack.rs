//! Walks the stack of the running test as the kernel program walks a server's: from registers and memory alone, through
//! the standard library, libc and a signal handler, to the place where the thread starts.
#![cfg(target_arch = "x86_64")]

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use scaleprof_binary::loads::{bias, segments};
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};
use scaleprof_binary::unwind::{CfaKind, SavedKind, UnwindTable};

/// A line of `/proc/self/maps`.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: PathBuf,
}

/// What is known of a loaded file.
struct Loaded {
    bias: u64,
    table: UnwindTable,
    symbols: SymbolFile,
}

struct Walker {
    mappings: Vec<Mapping>,
    memory: File,
    files: HashMap<PathBuf, Loaded>,
}

/// How a walk went: the names from the innermost frame on, and the kind of the last rule.
#[derive(Debug)]
struct Walk {
    names: Vec<String>,
    end: CfaKind,
    signals: usize,
}

impl Walker {
    fn new() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let mapping = |line: &str| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let (start, end) = fields[0].split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some(Mapping {
                start: number(start)?,
                end: number(end)?,
                offset: number(fields[2])?,
                path: PathBuf::from(fields.get(5)?),
            })
        };
        Walker {
            mappings: maps.lines().filter_map(mapping).collect(),
            memory: File::open("/proc/self/mem").expect("own memory"),
            files: HashMap::new(),
        }
    }

    fn word(&self, address: u64) -> u64 {
        let mut word = [0; 8];
        self.memory.read_exact_at(&mut word, address).expect("mapped memory");
        u64::from_le_bytes(word)
    }

    fn loaded(&mut self, pc: u64) -> &Loaded {
        let mapping = self
            .mappings
            .iter()
            .find(|mapping| mapping.start <= pc && pc < mapping.end);
        let mapping = mapping.expect("code is mapped");
        self.files.entry(mapping.path.clone()).or_insert_with(|| {
            let bytes = std::fs::read(&mapping.path).expect("readable");
            Loaded {
                bias: bias(mapping.start, mapping.offset, &segments(&bytes)).expect("a segment"),
                table: UnwindTable::from_elf(&bytes).expect("a table"),
                symbols: SymbolFile::open(Path::new(&mapping.path), &SymbolSearch::default()).expect("symbols"),
            }
        })
    }

    fn walk(&mut self, [mut pc, mut sp, mut fp]: [u64; 3]) -> Walk {
        let mut names = Vec::new();
        let mut signals = 0;
        // A return address may lie behind the function's last instruction; an interrupted one lies in it.
        let mut returned = 0;
        for _ in 0..200 {
            let loaded = self.loaded(pc - returned);
            let svma = pc - returned - loaded.bias;
            let name = loaded
                .symbols
                .function(svma)
                .map_or_else(String::new, |function| function.name);
            names.push(name);
            let rule = *loaded.table.find(svma).expect("a rule");
            let at = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
            let cfa = match rule.cfa_kind() {
                CfaKind::StackPointer => at(sp, rule.cfa_offset),
                CfaKind::FramePointer => at(fp, rule.cfa_offset),
                CfaKind::DereferencedFramePointer => self.word(at(fp, rule.cfa_offset)),
                CfaKind::SignalFrame => {
                    [pc, sp, fp] =
                        [rule.ra_offset, rule.cfa_offset, rule.fp_offset].map(|offset| self.word(at(sp, offset)));
                    returned = 0;
                    signals += 1;
                    continue;
                }
                end => return Walk { names, end, signals },
            };
            assert_eq!(rule.ra, SavedKind::AtCfa as u8);
            pc = self.word(at(cfa, rule.ra_offset));
            if rule.fp == SavedKind::AtCfa as u8 {
                fp = self.word(at(cfa, rule.fp_offset));
            } else if rule.fp == SavedKind::AtFramePointer as u8 {
                fp = self.word(at(fp, rule.fp_offset));
            }
            sp = cfa;
            returned = 1;
        }
        panic!("no end: {names:?}");
    }
}

/// The program counter, the stack pointer and the frame pointer of the function that this is inlined into.
#[inline(always)]
fn registers() -> [u64; 3] {
    let (pc, sp, fp);
    // SAFETY: it reads registers and nothing else.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) pc, out(reg) sp, out(reg) fp);
    }
    [pc, sp, fp]
}

#[inline(never)]
fn walked_from_here() -> Walk {
    let mut walker = Walker::new();
    let registers = registers();
    std::hint::black_box(walker.walk(registers))
}

#[inline(never)]
fn calls_the_walk() -> Walk {
    std::hint::black_box(walked_from_here())
}

fn position(walk: &Walk, name: &str) -> usize {
    let found = walk.names.iter().position(|known| known.contains(name));
    found.unwrap_or_else(|| panic!("no {name} in {walk:#?}"))
}

#[test]
fn a_walk_goes_from_here_to_the_start_of_the_thread() {
    let walk = std::thread::spawn(calls_the_walk).join().expect("walked");
    assert_eq!(position(&walk, "walked_from_here"), 0);
    assert_eq!(position(&walk, "calls_the_walk"), 1);
    assert_eq!(walk.end, CfaKind::Outermost, "{walk:#?}");
    assert_eq!(walk.signals, 0);
    assert!(walk.names.len() > 6, "{walk:#?}");
    assert!(
        walk.names.last().is_some_and(|name| name.contains("clone")),
        "{walk:#?}"
    );
}

static HANDLED: Mutex<Option<Walk>> = Mutex::new(None);

extern "C" fn handler(_: libc::c_int) {
    // The signal comes from `raise` below, so nothing was interrupted that this could disturb.
    *HANDLED.lock().expect("free") = Some(walked_from_here());
}

#[inline(never)]
fn raises_a_signal() {
    let handler: extern "C" fn(libc::c_int) = handler;
    // SAFETY: the handler has the type that the system calls.
    unsafe {
        libc::signal(libc::SIGUSR2, handler as libc::sighandler_t);
        libc::raise(libc::SIGUSR2);
    }
    std::hint::black_box(());
}

#[test]
fn a_walk_passes_a_signal_handler() {
    raises_a_signal();
    let walk = HANDLED.lock().expect("free").take().expect("the handler ran");
    assert_eq!(walk.signals, 1, "{walk:#?}");
    assert_eq!(walk.end, CfaKind::Outermost, "{walk:#?}");
    assert!(
        position(&walk, "handler") < position(&walk, "raises_a_signal"),
        "{walk:#?}"
    );
    // The entry of the code that the handler returns to starts one byte before its symbol.
    let returns_to = &walk.names[position(&walk, "handler") + 1];
    assert!(
        returns_to.contains("__restore_rt") || returns_to.contains("!fun_"),
        "{walk:#?}"
    );
}
