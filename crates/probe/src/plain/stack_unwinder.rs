//! Walks the user stacks of a process that lives, or of which the maps were kept.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use scaleprof_profile::RawStack;
use scaleprof_profile::walk::{MappedCode, OtherRegisters, Processor, Registers, StackWalker, UnwindRules};

use super::lack::Lack;
use super::memory_map::{Mapping, parse_maps};
use super::vdso;
use crate::error::ProbeError;

/// Walks the stacks of one process.
pub struct StackUnwinder {
    source: Source,
    walker: StackWalker,
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
            walker: StackWalker::new(Processor::HERE),
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
        self.walker.walk(start, &OtherRegisters::default, read)
    }

    fn take_maps(&mut self, maps: &[Mapping]) {
        let code = maps
            .iter()
            .filter(|mapping| mapping.executable && !mapping.path.is_empty())
            .map(|mapping| MappedCode {
                name: mapping.path.clone(),
                addresses: mapping.addresses.clone(),
                rules: self.rules_of(mapping).and_then(|rules| {
                    let bias = rules.bias(mapping.addresses.start, mapping.file_offset)?;
                    Some((rules, bias))
                }),
            });
        let code = code.collect();
        self.walker.set_code(code);
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

/// Why the file of a mapping cannot be read.
pub(crate) const NOT_FOUND: &str = "the mapped file was removed, replaced or is in another mount namespace; with \
                                    CAP_SYS_ADMIN (root) scaleprof can read it";

/// Reads the rules of a mapped file, if the file that is there now is the one that was mapped.
fn read_rules(mapping: &Mapping, source: &Source) -> Result<UnwindRules, String> {
    use std::os::unix::fs::MetadataExt as _;

    if mapping.path == "[vdso]" {
        let image = vdso::own_image().ok_or("our own process has none")?;
        return UnwindRules::read(image.as_slice());
    }
    let inside = source.root.join(mapping.path.trim_start_matches('/'));
    // Of a process with another root folder (chroot) the kernel names files as we see them.
    let seen_by_us = PathBuf::from(&mapping.path);
    let mut why = NOT_FOUND.to_owned();
    for place in source.program.iter().chain([&inside, &seen_by_us]) {
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
