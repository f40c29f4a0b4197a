//! ELF files, as every command that names code reads them.

use object::{Object as _, ObjectSection as _};
use scaleprof_binary::data_access::DataAccesses;
use scaleprof_binary::data_layout::DataLayout;
use scaleprof_binary::disassembly::disassemble;
use scaleprof_binary::spin::SpinLoops;
use scaleprof_binary::symbols::SymbolFile;
use scaleprof_binary::unwind::UnwindTable;

/// Bytes of code that are taken apart.
const CODE: usize = 4096;
/// Addresses that are named.
const ADDRESSES: usize = 64;

/// Symbols and source lines of some functions, rules of unwinding, loops that wait, variables and who touches them, instructions.
pub(crate) fn attempt(bytes: &[u8]) {
    let Ok(file) = SymbolFile::from_bytes("server", bytes) else {
        return;
    };
    let functions = file.function_ranges().to_vec();
    for function in functions.iter().take(ADDRESSES) {
        for address in [function.start, function.end.saturating_sub(1)] {
            let _ = file.function(address);
            let _ = file.linkage_name(address);
            let _ = file.variable(address);
            let _ = file.frames(address);
        }
    }
    let _ = file.coverage();
    if let Ok(table) = UnwindTable::from_elf(bytes) {
        for function in functions.iter().take(ADDRESSES) {
            let _ = table.find(function.start);
        }
    }
    if let Ok(loops) = SpinLoops::with_likely("server", bytes, &functions) {
        for one in loops.loops() {
            assert!(one.start() < one.end());
        }
    }
    if let Ok(mut layout) = DataLayout::of("server", bytes) {
        layout.add_symbols(file.data_symbols());
        let _ = layout.add_debug_info(&bytes);
    }
    let _ = DataAccesses::of("server", bytes, &functions);
    let Ok(elf) = object::File::parse(bytes) else { return };
    for section in elf
        .sections()
        .filter(|section| section.kind() == object::SectionKind::Text)
    {
        let code = section.data().unwrap_or_default();
        let code = &code[..code.len().min(CODE)];
        let _ = disassemble(elf.architecture(), code, section.address(), &file);
    }
}
