//! Functions that were put into each other by the thousand, as no compiler does: told without an end of the stack.

use crate::files::small_elf::{SmallSection, X86_64, small_elf};
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

const CODE: u64 = 0x1_0000;
const LENGTH: u64 = 16;

/// DWARF 4 of a function `outermost` and so many levels of `inner` in it, all at the same addresses (7.5).
fn nested(levels: usize) -> Vec<SmallSection> {
    // Each: number, tag, whether it has children, and pairs of attribute and form.
    #[rustfmt::skip]
    let abbreviations = vec![
        1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0, // compile_unit: low_pc, high_pc
        2, 0x2e, 0, 0x03, 0x08, 0x20, 0x0b, 0, 0, // subprogram: name, inline
        3, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x12, 0x07, 0, 0, // subprogram: name, low_pc, high_pc
        4, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x07, 0, 0, // inlined_subroutine: abstract_origin, low_pc, high_pc
        0,
    ];
    let place = [CODE.to_le_bytes(), LENGTH.to_le_bytes()].concat();
    // Behind the length: version, abbreviations, bytes of an address.
    let mut unit = [&4_u16.to_le_bytes()[..], &0_u32.to_le_bytes(), &[8]].concat();
    unit.push(1);
    unit.extend(&place);
    let inner = (4 + unit.len()) as u32;
    unit.extend(b"\x02inner\0\x03");
    unit.extend(b"\x03outermost\0");
    unit.extend(&place);
    for _ in 0..levels {
        unit.push(4);
        unit.extend(inner.to_le_bytes());
        unit.extend(&place);
    }
    unit.extend(vec![0; levels + 2]);
    let info = [&(unit.len() as u32).to_le_bytes()[..], &unit].concat();
    let section = |name, svma, data| SmallSection { name, svma, data };
    vec![
        section(".debug_abbrev", 0x80_0000, abbreviations),
        section(".debug_info", 0x100_0000, info),
    ]
}

fn names_at_the_beginning(levels: usize) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nested");
    let file = small_elf(X86_64, CODE, &[0x90; LENGTH as usize], &nested(levels));
    std::fs::write(&path, file).expect("written");
    let file = SymbolFile::open(&path, &SymbolSearch::nowhere()).expect("readable");
    let frames = file.frames(CODE + 1).into_iter();
    frames.map(|frame| frame.linkage_name).collect()
}

#[test]
fn functions_put_into_each_other_by_the_thousand_are_told_in_part() {
    assert_eq!(names_at_the_beginning(2), ["inner", "inner", "outermost"]);
    for levels in [20_000, 200_000] {
        let names = names_at_the_beginning(levels);
        assert_eq!(names.len(), 256, "{levels}");
        assert!(names[..254].iter().all(|name| name == "inner"), "{levels}");
        assert_eq!(names[254..], ["[further inlined functions]", "outermost"], "{levels}");
    }
}

#[test]
fn where_nobody_has_the_stack_nothing_is_told_of_inlined_functions() {
    let names = names_at_the_beginning(4_000_000);
    assert_eq!(names.len(), 1, "{:?}", &names[..1]);
}
