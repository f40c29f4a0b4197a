//! Walks the user stack of a process frame by frame with the unwind rules of its files. framehop takes the steps.
//!
//! It needs nothing but registers and a way to read the stack, so it serves for stacks that perf copied out, for memory
//! that is read live, and as the yardstick for the unwinder that runs inside the kernel.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use framehop::{
    CacheNative, Error, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder as _, UnwinderNative,
};
use scaleprof_profile::{Ending, RawStack};

use super::lack::Lack;
use super::memory_map::{Mapping, parse_maps};
use super::unwind_rules::{Rule, RuleKind, UnwindRules};
use super::vdso;
use crate::error::ProbeError;

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

/// Walks the stacks of one process.
pub struct StackUnwinder {
    source: Source,
    /// Mapped code, by address.
    code: Vec<Code>,
    framehop: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    cache: Box<CacheNative<MayAllocateDuringUnwind>>,
    /// What is known of addresses that were met: the same few thousand come again and again.
    known: HashMap<u64, Rule>,
    /// Files that were read, so that reading the maps again reads only new ones.
    files: HashMap<(String, u64), Result<Arc<UnwindRules>, String>>,
}

/// Where maps and files come from.
struct Source {
    /// `/proc/PID/maps`, for a process that lives.
    maps: Option<PathBuf>,
    /// The root folder as the process sees it.
    root: PathBuf,
    /// The program itself, to be had even if its file was removed since.
    program: Option<PathBuf>,
}

struct Code {
    addresses: Range<u64>,
    rules: Option<(Arc<UnwindRules>, u64)>,
}

impl StackUnwinder {
    /// For a process that lives; it must belong to the caller, or the caller be root.
    pub fn of_process(pid: u32) -> Result<Self, ProbeError> {
        let mut unwinder = Self::empty(Source {
            maps: Some(PathBuf::from(format!("/proc/{pid}/maps"))),
            root: PathBuf::from(format!("/proc/{pid}/root")),
            program: Some(PathBuf::from(format!("/proc/{pid}/exe"))),
        });
        unwinder.read_maps_again()?;
        Ok(unwinder)
    }

    /// For a process of which the text of `/proc/PID/maps` was kept; its files are looked for below `root` and must be
    /// the ones that it ran. The vDSO is that of the running kernel.
    pub fn of_maps(maps: &str, root: &Path) -> Self {
        let mut unwinder = Self::empty(Source {
            maps: None,
            root: root.to_path_buf(),
            program: None,
        });
        unwinder.take_maps(&parse_maps(maps));
        unwinder
    }

    fn empty(source: Source) -> Self {
        Self {
            source,
            code: Vec::new(),
            framehop: UnwinderNative::new(),
            cache: Box::default(),
            known: HashMap::new(),
            files: HashMap::new(),
        }
    }

    /// Learns of files that the process has mapped or unmapped since. Files that were read before are not read again.
    pub fn read_maps_again(&mut self) -> Result<(), ProbeError> {
        let Some(path) = &self.source.maps else {
            return Ok(());
        };
        let text = std::fs::read_to_string(path).map_err(|source| ProbeError::Read {
            path: path.clone(),
            source,
        })?;
        self.take_maps(&parse_maps(&text));
        Ok(())
    }

    /// Mapped files of code whose unwind rules could not be read: stacks end there.
    pub fn missing(&self) -> Vec<Lack> {
        let failed = self
            .files
            .iter()
            .filter_map(|((path, _), rules)| Some((path, rules.as_ref().err()?)));
        let mut missing: Vec<Lack> = failed
            .map(|(path, why)| Lack {
                what: format!("call paths through {path}"),
                why: why.clone(),
                command: None,
            })
            .collect();
        missing.sort_by(|a, b| a.what.cmp(&b.what));
        missing
    }

    /// Walks a stack outwards. `read` gives the eight bytes at an address of the process, or nothing where they are not
    /// to be had.
    pub fn unwind(&mut self, pc: u64, sp: u64, bp: u64, read: &mut dyn FnMut(u64) -> Option<u64>) -> RawStack {
        self.unwind_from(Registers { pc, sp, fp: bp, lr: 0 }, read)
    }

    /// The same, on processors whose link register holds the first return address too.
    pub fn unwind_from(&mut self, start: Registers, read: &mut dyn FnMut(u64) -> Option<u64>) -> RawStack {
        let mut stack = RawStack {
            user: vec![start.pc],
            interrupted: vec![0],
            ..RawStack::default()
        };
        let mut registers = start;
        let mut frame = FrameAddress::from_instruction_pointer(start.pc);
        stack.ending = loop {
            match self.step(frame, &mut registers, read) {
                Err(ending) => break ending,
                Ok(_) if stack.user.len() == MOST_FRAMES => break Ending::TooDeep,
                Ok(caller) => {
                    if !caller.is_return_address() {
                        stack.interrupted.push(stack.user.len() as u16);
                    }
                    stack.user.push(caller.address());
                    frame = caller;
                }
            }
        };
        stack
    }

    /// From one frame to its caller, or how the walk ends here.
    fn step(
        &mut self,
        frame: FrameAddress,
        registers: &mut Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<FrameAddress, Ending> {
        let address = frame.address_for_lookup();
        let rule = self.rule_at(address).ok_or(Ending::NoMapping)?;
        let stack_pointer = registers.sp;
        match rule.kind {
            RuleKind::Outermost => return Err(Ending::Complete),
            RuleKind::Expression => self.step_by_expression(address, registers, read)?,
            RuleKind::Offset => self.step_by_offset(frame, registers, read)?,
            RuleKind::Unsupported | RuleKind::None => {
                let why = match rule.kind {
                    RuleKind::Unsupported => Ending::UnsupportedRule,
                    _ => Ending::NoRule,
                };
                self.step_by_offset(frame, registers, read).map_err(|_| why)?;
                // The frame pointer was followed: believed only if it leads to code.
                self.rule_at(registers.pc.wrapping_sub(1)).ok_or(why)?;
            }
        }
        if rule.of_signal {
            // A signal may have a stack of its own, so the stack pointer may go either way.
            return Ok(FrameAddress::from_instruction_pointer(registers.pc));
        }
        if registers.sp <= stack_pointer && stack_pointer_must_move(frame) {
            return Err(Ending::NoProgress);
        }
        FrameAddress::from_return_address(registers.pc).ok_or(Ending::NoMapping)
    }

    fn step_by_offset(
        &mut self,
        frame: FrameAddress,
        registers: &mut Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(), Ending> {
        let mut native = to_native(registers);
        let mut read = |address| read(address).ok_or(());
        let caller = self
            .framehop
            .unwind_frame(frame, &mut native, &mut self.cache, &mut read);
        match caller {
            Ok(Some(pc)) => *registers = of_native(pc, &native),
            // A return address of zero, where the rules marked no end.
            Ok(None) | Err(Error::ReturnAddressIsNull) => return Err(Ending::NoMapping),
            Err(Error::CouldNotReadStack(_)) => return Err(Ending::UnreadableMemory),
            Err(_) => return Err(Ending::NoProgress),
        }
        Ok(())
    }

    fn step_by_expression(
        &mut self,
        address: u64,
        registers: &mut Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Result<(), Ending> {
        let code = self.code_at(address).ok_or(Ending::NoMapping)?;
        let (rules, bias) = code.rules.as_ref().ok_or(Ending::NoRule)?;
        let mut unreadable = false;
        let mut read = |address| {
            let word = read(address);
            unreadable |= word.is_none();
            word
        };
        let caller = rules.caller_by_expression(address.wrapping_sub(*bias), registers, &mut read);
        *registers = caller.ok_or(match unreadable {
            true => Ending::UnreadableMemory,
            false => Ending::UnsupportedRule,
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
            Some((rules, bias)) => rules.rule_at(address.wrapping_sub(*bias)),
            None => Rule {
                kind: RuleKind::None,
                of_signal: false,
            },
        };
        self.known.insert(address, rule);
        Some(rule)
    }

    fn code_at(&self, address: u64) -> Option<&Code> {
        let at = self.code.partition_point(|code| code.addresses.end <= address);
        self.code.get(at).filter(|code| code.addresses.contains(&address))
    }

    fn take_maps(&mut self, maps: &[Mapping]) {
        self.code.clear();
        self.known.clear();
        self.framehop = UnwinderNative::new();
        for mapping in maps
            .iter()
            .filter(|mapping| mapping.executable && !mapping.path.is_empty())
        {
            let rules = self.rules_of(mapping);
            let placed = rules.and_then(|rules| {
                let bias = rules.bias(mapping.addresses.start, mapping.file_offset)?;
                if let Some(module) = rules.module(&mapping.path, mapping.addresses.clone(), bias) {
                    self.framehop.add_module(module);
                }
                Some((rules, bias))
            });
            self.code.push(Code {
                addresses: mapping.addresses.clone(),
                rules: placed,
            });
        }
    }

    fn rules_of(&mut self, mapping: &Mapping) -> Option<Arc<UnwindRules>> {
        // [vsyscall] is three system calls and no stack.
        if !mapping.path.starts_with('/') && mapping.path != "[vdso]" {
            return None;
        }
        let key = (mapping.path.clone(), mapping.inode);
        if !self.files.contains_key(&key) {
            let rules = read_rules(mapping, &self.source);
            self.files.insert(key.clone(), rules.map(Arc::new));
        }
        self.files[&key].as_ref().ok().cloned()
    }
}

/// On aarch64 a leaf function keeps its return address in a register and may leave the stack pointer where it is.
fn stack_pointer_must_move(frame: FrameAddress) -> bool {
    cfg!(target_arch = "x86_64") || frame.is_return_address()
}

#[cfg(target_arch = "x86_64")]
fn to_native(registers: &Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.pc, registers.sp, registers.fp)
}

#[cfg(target_arch = "x86_64")]
fn of_native(pc: u64, native: &UnwindRegsNative) -> Registers {
    Registers {
        pc,
        sp: native.sp(),
        fp: native.bp(),
        lr: 0,
    }
}

#[cfg(target_arch = "aarch64")]
fn to_native(registers: &Registers) -> UnwindRegsNative {
    UnwindRegsNative::new(registers.lr, registers.sp, registers.fp)
}

#[cfg(target_arch = "aarch64")]
fn of_native(pc: u64, native: &UnwindRegsNative) -> Registers {
    Registers {
        pc,
        sp: native.sp(),
        fp: native.fp(),
        lr: native.lr(),
    }
}

/// Reads the rules of a mapped file, if the file that is there now is the one that was mapped.
fn read_rules(mapping: &Mapping, source: &Source) -> Result<UnwindRules, String> {
    use std::os::unix::fs::MetadataExt as _;

    if mapping.path == "[vdso]" {
        let image = vdso::own_image().ok_or("our own process has none")?;
        return UnwindRules::read(image.as_slice());
    }
    let place = source.root.join(mapping.path.trim_start_matches('/'));
    let mut why = "the file was removed or replaced since the server started; restart the server".to_owned();
    for place in source.program.iter().chain([&place]) {
        let opened = std::fs::File::open(place).and_then(|file| Ok((file.metadata()?.ino(), file)));
        match opened {
            Ok((inode, file)) if inode == mapping.inode => return UnwindRules::read(&object::ReadCache::new(file)),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => why = format!("{} cannot be read: {error}", place.display()),
        }
    }
    Err(why)
}
