//! Where the machine code of what was sampled is read: of the server while it lives, or of the files of a recording.

use crate::shared_data::SharedData;
use scaleprof_probe::disassembly::FunctionListing;

/// Debug information that is read for the members of variables when a run ends; more of it takes many seconds.
pub(crate) const MOST_DEBUG_BYTES: u64 = 512 << 20;

/// Files of code, by name and build-id as frames have them.
pub(crate) trait CodeSource {
    /// Functions of a file, taken apart; an error says in words why not.
    fn disassemble(
        &mut self,
        module: &str,
        build_id: Option<&str>,
        addresses: &[u64],
    ) -> Result<Vec<FunctionListing>, String>;

    /// The variables of a file with all code that touches them; an error says in words why not.
    fn shared_data(&mut self, module: &str, build_id: Option<&str>) -> Result<SharedData, String>;
}
