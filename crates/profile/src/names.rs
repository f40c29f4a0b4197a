//! Names for places in one file of code, and in the kernel: the same for a process that lives and for a recording.

use crate::legible::{legible, shortened};
use crate::{Frame, KERNEL, Variable};
use scaleprof_binary::data_layout::{DataLayout, FileLayout, USUAL_DEBUG_BYTES};
use scaleprof_binary::kernel_symbols::KernelSymbols;
use scaleprof_binary::perf_map::PerfMap;
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::{SymbolFile, end_of_path};
use scaleprof_vocabulary::SymbolSource;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// What one file of code is called and what is in it.
pub struct FileNames {
    /// Its name without the folder.
    pub module: String,
    /// In hexadecimal.
    pub build_id: Option<String>,
    /// Its symbols.
    pub file: SymbolFile,
    /// Its loops that wait for another thread; none where they are looked for apart.
    pub waiting: SpinLoops,
    /// Members of its variables, once they were read.
    members: OnceLock<Option<DataLayout>>,
}

impl FileNames {
    /// Those of a file with its symbols and its waiting loops.
    #[must_use]
    pub fn new(module: String, file: SymbolFile, waiting: SpinLoops) -> FileNames {
        FileNames {
            module,
            build_id: file.build_id(),
            file,
            waiting,
            members: OnceLock::new(),
        }
    }

    /// Reads, once, which members its variables have; `bytes` are those of the file.
    pub fn read_members(&self, bytes: impl FnOnce() -> Option<Vec<u8>>) {
        let _ = self.members.get_or_init(|| {
            let described = FileLayout::of(&self.file, &bytes()?, USUAL_DEBUG_BYTES).ok()?;
            Some(described.layout)
        });
    }

    /// The frames at an address of the file, innermost first: one, and one more for each function that the compiler built in there.
    #[must_use]
    pub fn frames(&self, svma: u64) -> Vec<Frame> {
        let Some(function) = self.file.function(svma) else {
            return vec![unnamed(self.module.as_str(), self.build_id.as_deref(), svma)];
        };
        let frames = self.file.frames(svma);
        let frames = frames.into_iter().map(|frame| Frame {
            function: Some(shortened(frame.name.into()).into()),
            inlined: frame.inlined,
            file: frame.file.as_deref().map(|file| end_of_path(file).into()),
            line: frame.line.and_then(|line| i32::try_from(line).ok()),
            symbol_source: function.source,
            ..unnamed(self.module.as_str(), self.build_id.as_deref(), svma)
        });
        frames.collect()
    }

    /// The function that the machine runs at an address of the file, without those that were built into it, and without its line.
    #[must_use]
    pub fn function(&self, svma: u64) -> Frame {
        let unnamed = unnamed(self.module.as_str(), self.build_id.as_deref(), svma);
        match self.file.function(svma) {
            Some(function) => Frame {
                symbol_source: function.source,
                function: Some(shortened(function.name.into()).into()),
                ..unnamed
            },
            None => unnamed,
        }
    }

    /// The same for many addresses, which rise: those of one function follow each other, and it is looked up once.
    pub(crate) fn functions(&self, svmas: impl Iterator<Item = u64>) -> impl Iterator<Item = Frame> {
        let mut last: Option<(Range<u64>, Frame)> = None;
        svmas.map(move |svma| match &last {
            Some((range, frame)) if range.contains(&svma) => Frame {
                address: svma as i64,
                ..frame.clone()
            },
            _ => {
                let frame = self.function(svma);
                last = self.file.named_alike(svma).map(|range| (range, frame.clone()));
                frame
            }
        })
    }

    /// The variable at an address of the file, with the member where these were read and debug information tells it.
    #[must_use]
    pub fn variable(&self, svma: u64) -> Option<Variable> {
        let variable = self.file.variable(svma)?;
        let members = self.members.get().and_then(Option::as_ref);
        let with_member = members.and_then(|members| members.name_at(svma));
        Some(Variable {
            module: self.module.clone(),
            name: with_member.unwrap_or_else(|| with_offset(&variable.name, variable.offset)),
        })
    }
}

/// The frame at an address of the kernel; without its symbols one that has no name.
#[must_use]
pub fn kernel_frame(symbols: Option<&KernelSymbols>, address: u64) -> Frame {
    match symbols.and_then(|kernel| kernel.function(address)) {
        Some((function, offset, module)) => Frame {
            function: Some(function.into()),
            symbol_source: SymbolSource::Kallsyms,
            ..unnamed(kernel_module(module), None, offset)
        },
        None => unnamed(KERNEL, None, 0),
    }
}

/// The variable at an address of the kernel.
#[must_use]
pub fn kernel_variable(symbols: &KernelSymbols, address: u64) -> Option<Variable> {
    let (name, offset, module) = symbols.variable(address)?;
    Some(Variable {
        module: kernel_module(module),
        name: with_offset(name, offset),
    })
}

/// The module of code in anonymous memory. What begins with a bracket is the kernel's.
pub const OWN_MAKING: &str = "(anonymous memory)";
/// The function of such code that nothing names.
const NAMELESS: &str = "[code in anonymous memory]";

/// The frame at an address of a process at which there is code that it made or copied there itself: in the next process it lies
/// elsewhere, so that the place in its function is kept alone.
#[must_use]
pub fn of_own_making(names: &PerfMap, address: u64) -> Frame {
    let found = names.function(address);
    Frame {
        address: found.map_or(0, |(_, offset)| offset as i64),
        function: Some(found.map_or_else(|| NAMELESS.into(), |(name, _)| legible((&**name).into()).into())),
        symbol_source: if found.is_some() {
            SymbolSource::PerfMap
        } else {
            SymbolSource::Nothing
        },
        ..unnamed(OWN_MAKING, None, 0)
    }
}

/// A place in a file that nothing names.
#[must_use]
pub fn unnamed(module: impl Into<Arc<str>>, build_id: Option<&str>, svma: u64) -> Frame {
    Frame {
        module: module.into(),
        build_id: build_id.map(Into::into),
        address: svma as i64,
        function: None,
        inlined: false,
        file: None,
        line: None,
        symbol_source: SymbolSource::Nothing,
    }
}

fn kernel_module(module: Option<&str>) -> String {
    module.map_or_else(|| KERNEL.to_owned(), |module| format!("[{module}]"))
}

fn with_offset(name: &str, offset: u64) -> String {
    match offset {
        0 => name.to_owned(),
        offset => format!("{name}+{offset}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_source_file_no_folder_is_kept_that_may_be_somebodys_own() {
        for (path, kept) in [
            ("/build/mysql-5.6.14/storage/innobase/ut/ut0ut.cc", "ut/ut0ut.cc"),
            ("./nptl/pthread_create.c", "nptl/pthread_create.c"),
            ("/home/anna/patch.cc", "patch.cc"),
            ("/root/patch.cc", "patch.cc"),
            ("main.cc", "main.cc"),
        ] {
            assert_eq!(end_of_path(path), kept);
        }
    }
}
