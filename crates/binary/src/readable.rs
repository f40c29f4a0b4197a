//! Whether machine code can be taken apart at all: what is not understood must not look like code in which nothing was found.

use object::{Architecture, Object as _};
use std::ops::Range;

/// Why the code of a file cannot be taken apart, with what would help; none where it can. `functions` are those that its call frame
/// information tells.
pub fn why_unreadable(bytes: &[u8], functions: &[Range<u64>]) -> Option<String> {
    let architecture = object::File::parse(bytes).ok()?.architecture();
    match architecture {
        Architecture::X86_64 | Architecture::Aarch64 if functions.is_empty() => Some(
            "it tells no functions (no .eh_frame and no .debug_frame): build it without -fno-asynchronous-unwind-tables and do not strip these"
                .to_owned(),
        ),
        Architecture::X86_64 | Architecture::Aarch64 => None,
        other => Some(format!("its machine code is for {other:?}; that of x86-64 and aarch64 can be read")),
    }
}
