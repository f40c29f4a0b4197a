//! A file's variables from all that its symbols were read from.

use super::DataLayout;
use crate::mapped_file::mapped;
use crate::symbols::{SymbolError, SymbolFile};

/// Debug information that is read for the members of variables. Of more, as the largest servers have, reading takes many
/// seconds.
pub const USUAL_DEBUG_BYTES: u64 = 512 << 20;

/// The variables of a file, and how far their members are known.
#[derive(Debug)]
pub struct FileLayout {
    /// The variables.
    pub layout: DataLayout,
    /// Variables whose type is known.
    pub with_members: usize,
    /// Why members are not known that debug information should tell; in words.
    pub problem: Option<String>,
}

impl FileLayout {
    /// Those of a file of these bytes. Debug information over so many bytes is not read: members are known by their offset then.
    ///
    /// # Errors
    /// [`SymbolError::NotElf`].
    pub fn of(symbols: &SymbolFile, bytes: &[u8], most_debug_bytes: u64) -> Result<FileLayout, SymbolError> {
        let mut layout = DataLayout::of(symbols.name(), bytes)?;
        layout.add_symbols(symbols.data_symbols());
        let described = symbols
            .debug_file()
            .filter(|path| std::fs::metadata(path).is_ok_and(|facts| facts.len() <= most_debug_bytes))
            .map(|path| {
                let debug = mapped(path)
                    .map_err(|error| format!("the debug information of {} cannot be read: {error}", symbols.name()))?;
                layout.add_debug_info(&debug).map_err(|error| error.to_string())
            })
            .unwrap_or(Ok(0));
        let (with_members, problem) = match described {
            Ok(with_members) => (with_members, None),
            Err(problem) => (0, Some(problem)),
        };
        Ok(FileLayout {
            layout,
            with_members,
            problem,
        })
    }
}
