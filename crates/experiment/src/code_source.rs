//! Where the machine code of what was sampled is read: of the server while it lives, or of the files of a recording.

use crate::shared_data::SharedData;
use scaleprof_analysis::cache_lines::Kept;
use scaleprof_probe::disassembly::FunctionListing;

/// A file of code as frames have it: its name and its build-id.
pub(crate) type CodeFile<'a> = (&'a str, Option<&'a str>);

/// What of a file's variables is kept, of the variables with all code that touches them.
pub(crate) type KeepShared<'a> = dyn Fn(CodeFile<'_>, &SharedData) -> Kept + Sync + 'a;

/// Files of code. Several are asked for at once, as each takes long and has parts that one CPU does alone.
pub(crate) trait CodeSource {
    /// Functions of each file, taken apart: those that hold these addresses. An error says in words why not.
    fn disassemble(&mut self, files: &[(CodeFile<'_>, Vec<u64>)]) -> Vec<Result<Vec<FunctionListing>, String>>;

    /// What `keep` keeps of the variables of each file. An error says in words why they are not known.
    fn shared_data(&mut self, files: &[CodeFile<'_>], keep: &KeepShared<'_>) -> Vec<Result<Kept, String>>;
}
