//! The parsers, by name.

use crate::{bundle, elf, lists, recording, replies};
use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// A parser of foreign bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Target {
    /// perf.data of `perf record`, from a file or a pipe.
    PerfData,
    /// The text of `perf script`.
    PerfScript,
    /// Folded stacks.
    Folded,
    /// pprof, packed or not.
    Pprof,
    /// The text of `perf stat`.
    PerfStat,
    /// An ELF file: symbols, debug information, call frame information, machine code.
    Elf,
    /// `/proc/kallsyms` and System.map.
    KernelSymbols,
    /// `/tmp/perf-PID.map`.
    PerfMap,
    /// Replies of a MySQL or MariaDB server after login.
    Replies,
    /// A script of SQL statements.
    SqlScript,
    /// The Parquet tables of a bundle.
    Bundle,
}

impl Target {
    /// Does with the bytes what the product would do.
    ///
    /// # Panics
    /// What was read contradicts itself. Whatever else panics is the parser's fault.
    pub fn attempt(self, bytes: &[u8]) {
        match self {
            Target::PerfData | Target::PerfScript | Target::Folded | Target::Pprof => recording::attempt(bytes),
            Target::PerfStat => lists::attempt_perf_stat(bytes),
            Target::Elf => elf::attempt(bytes),
            Target::KernelSymbols => lists::attempt_kernel_symbols(bytes),
            Target::PerfMap => lists::attempt_perf_map(bytes),
            Target::Replies => replies::attempt(bytes),
            Target::SqlScript => lists::attempt_sql_script(bytes),
            Target::Bundle => bundle::attempt(bytes),
        }
    }

    /// As on the command line.
    ///
    /// # Panics
    /// Never: all have a name.
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("none is hidden");
        value.get_name().to_owned()
    }

    /// The folder with the inputs that are kept.
    pub fn corpus(self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(self.name())
    }
}

/// The most bytes of memory that an input of this length may take at once, as for whole commands: what a parser has anyway, and four
/// times the bytes that it reads.
pub fn most_memory(length: usize) -> usize {
    (300 << 20) + 4 * length
}
