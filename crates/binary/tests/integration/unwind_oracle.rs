//! The table against gimli's own evaluation of the call frame information, on real servers: both are interpreted on
//! the same made-up registers and memory, and must find the same caller.

use crate::files;

use std::collections::HashSet;

use files::{Binary, binaries, binary, vdso};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, EvaluationResult, Expression, LittleEndian, Location, Register,
    RegisterRule, UnwindContext, UnwindSection, Value,
};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
use scaleprof_binary::unwind::{CfaKind, SavedKind, UnwindRule, UnwindTable};

type Bytes<'data> = EndianSlice<'data, LittleEndian>;

const RBP: u16 = 6;
const RSP: u16 = 7;
const RIP: u16 = 16;

/// The return address is on top of the stack.
const AS_CALLED: UnwindRule = UnwindRule {
    cfa: CfaKind::StackPointer as u8,
    fp: SavedKind::Same as u8,
    ra: SavedKind::AtCfa as u8,
    reserved: 0,
    cfa_offset: 8,
    fp_offset: 0,
    ra_offset: -8,
};

/// What one step of a walk finds.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Caller {
    Found {
        cfa: u64,
        fp: Option<u64>,
        ra: u64,
    },
    Outermost,
    /// Not of a form that is supported.
    Unknown,
}

/// Registers and memory in which no two places hold the same.
fn register(number: u16, pc: u64) -> u64 {
    match number {
        RIP => pc,
        RSP => 0x7ffe_1000_0000,
        RBP => 0x7ffe_2000_0000,
        other => u64::from(other) << 40,
    }
}

fn memory(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

fn by_table(rule: &UnwindRule, pc: u64) -> Caller {
    let sp = register(RSP, pc);
    let fp = register(RBP, pc);
    let plus = |base: u64, offset: i32| base.wrapping_add_signed(i64::from(offset));
    let cfa = match rule.cfa_kind() {
        CfaKind::Outermost => return Caller::Outermost,
        CfaKind::Invalid | CfaKind::Unsupported => return Caller::Unknown,
        CfaKind::SignalFrame => {
            return Caller::Found {
                cfa: memory(plus(sp, rule.cfa_offset)),
                fp: Some(memory(plus(sp, rule.fp_offset))),
                ra: memory(plus(sp, rule.ra_offset)),
            };
        }
        CfaKind::StackPointer => plus(sp, rule.cfa_offset),
        CfaKind::FramePointer => plus(fp, rule.cfa_offset),
        CfaKind::Plt => sp + 8 + if (pc & 15) >= rule.cfa_offset as u64 { 8 } else { 0 },
        CfaKind::DereferencedStackPointer => memory(plus(sp, rule.cfa_offset)),
        CfaKind::DereferencedFramePointer => memory(plus(fp, rule.cfa_offset)),
        CfaKind::Register => plus(register(u16::from(rule.reserved), pc), rule.cfa_offset),
    };
    assert_eq!(
        (rule.ra, rule.ra_offset),
        (1, -8),
        "return addresses are where a call pushes them"
    );
    let fp = match rule.fp {
        0 => Some(fp),
        1 => Some(memory(plus(cfa, rule.fp_offset))),
        2 => None,
        4 => Some(memory(plus(fp, rule.fp_offset))),
        _ => return Caller::Unknown,
    };
    Caller::Found {
        cfa,
        fp,
        ra: memory(plus(cfa, rule.ra_offset)),
    }
}

fn evaluate(
    expression: Expression<Bytes<'_>>,
    encoding: gimli::Encoding,
    pc: u64,
    initial: Option<u64>,
) -> Option<u64> {
    let mut evaluation = expression.evaluation(encoding);
    if let Some(value) = initial {
        evaluation.set_initial_value(value);
    }
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register: asked, .. } => evaluation
                .resume_with_register(Value::Generic(register(asked.0, pc)))
                .ok()?,
            EvaluationResult::RequiresMemory { address, .. } => {
                evaluation.resume_with_memory(Value::Generic(memory(address))).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().as_slice() {
        [piece] => match piece.location {
            Location::Address { address } => Some(address),
            _ => None,
        },
        _ => None,
    }
}

/// What gimli and the DWARF specification say.
fn by_gimli(
    row: &gimli::UnwindTableRow<usize>,
    section: &EhFrame<Bytes<'_>>,
    encoding: gimli::Encoding,
    pc: u64,
) -> Caller {
    if row.register(Register(RIP)) == Some(RegisterRule::Undefined) {
        return Caller::Outermost;
    }
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset {
            register: number,
            offset,
        } => Some(register(number.0, pc).wrapping_add_signed(*offset)),
        CfaRule::Expression(expression) => {
            evaluate(expression.get(section).expect("an expression"), encoding, pc, None)
        }
    };
    let Some(cfa) = cfa else { return Caller::Unknown };
    let value = |number: u16| {
        Some(match row.register(Register(number)) {
            None | Some(RegisterRule::SameValue) => register(number, pc),
            Some(RegisterRule::Offset(offset)) => memory(cfa.wrapping_add_signed(offset)),
            Some(RegisterRule::Expression(expression)) => {
                let expression = expression.get(section).expect("an expression");
                memory(evaluate(expression, encoding, pc, Some(cfa))?)
            }
            Some(RegisterRule::Register(other)) => register(other.0, pc),
            _ => return None,
        })
    };
    match value(RIP) {
        Some(ra) => Caller::Found {
            cfa,
            fp: value(RBP),
            ra,
        },
        None => Caller::Unknown,
    }
}

/// Compares every row of every entry: its first address, its last, and one between. Returns how
/// many were compared.
fn compare(name: &str, bytes: &[u8]) -> u64 {
    let table = UnwindTable::from_elf(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    let elf = object::File::parse(bytes).expect("an ELF file");
    let found = elf.section_by_name(".eh_frame").expect(".eh_frame");
    let section = EhFrame::new(found.data().expect("its bytes"), LittleEndian);
    let mut bases = BaseAddresses::default().set_eh_frame(found.address());
    if let Some(text) = elf.section_by_name(".text") {
        bases = bases.set_text(text.address());
    }
    let mut context = UnwindContext::new();
    let (mut starts, mut ends) = (HashSet::new(), Vec::new());
    let (mut compared, mut unknown, mut fdes) = (0_u64, 0_u64, 0);
    let mut entries = section.entries(&bases);
    while let Some(entry) = entries.next().expect("an entry") {
        let gimli::CieOrFde::Fde(partial) = entry else { continue };
        let fde = partial.parse(EhFrame::cie_from_offset).expect("an entry");
        fdes += 1;
        let mut rows = fde.rows(&section, &bases, &mut context).expect("rows");
        while let Some(row) = rows.next_row().expect("a row") {
            let (start, end) = (row.start_address(), row.end_address());
            if start >= end {
                continue;
            }
            for pc in [start, end - 1, start + memory(start) % (end - start)] {
                let rule = table.find(pc).unwrap_or_else(|| panic!("{name}: nothing at {pc:#x}"));
                assert_ne!(rule.cfa_kind(), CfaKind::Invalid, "{name}: a gap at {pc:#x}");
                let ours = by_table(rule, pc);
                compared += 1;
                if ours == Caller::Unknown {
                    unknown += 1;
                    continue;
                }
                let theirs = by_gimli(row, &section, fde.cie().encoding(), pc);
                assert_eq!(ours, theirs, "{name} at {pc:#x}: {rule:?} for {row:?}");
            }
        }
        starts.insert(fde.initial_address());
        ends.push(fde.end_address());
    }
    for end in ends.into_iter().filter(|end| !starts.contains(end)) {
        let rule = table.find(end).copied().unwrap_or(UnwindRule::INVALID);
        let known = [UnwindRule::INVALID, AS_CALLED].contains(&rule);
        assert!(known, "{name}: a gap starts at {end:#x} with {rule:?}");
    }
    println!(
        "{name}: {fdes} entries, {} rows, {} rules, {} pages; {compared} addresses compared, {unknown} unsupported",
        table.rows.len(),
        table.rules.len(),
        table.page_starts.len() - 1
    );
    assert!(
        unknown * 1000 <= compared,
        "{name}: {unknown} of {compared} are unsupported"
    );
    assert_eq!(table.fdes, fdes, "{name}");
    compared
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_table_finds_the_callers_that_gimli_finds_everywhere_in_real_servers() {
    for binary in binaries() {
        let compared = compare(binary.name, &binary.bytes);
        assert!(compared > 10_000, "{}: only {compared}", binary.name);
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_vdso_is_a_file_like_others() {
    assert!(compare("vdso", &vdso()) > 10);
}

fn table(binary: &Binary) -> UnwindTable {
    UnwindTable::from_elf(&binary.bytes).unwrap_or_else(|error| panic!("{}: {error}", binary.name))
}

#[test]
fn pages_are_whole_and_rules_are_few() {
    for binary in binaries() {
        let table = table(&binary);
        for page in table.page_starts.windows(2) {
            let rows = &table.rows[page[0] as usize..page[1] as usize];
            assert_eq!(rows[0].pc_low, 0, "{}: a page starts at its start", binary.name);
            assert!(rows.windows(2).all(|pair| pair[0].pc_low < pair[1].pc_low));
            assert!(rows.windows(2).all(|pair| pair[0].rule != pair[1].rule));
            // The kernel program's search takes 13 steps.
            assert!(rows.len() <= 1 << 13, "{}: {} rows in a page", binary.name, rows.len());
        }
        assert_eq!(*table.page_starts.last().expect("an end") as usize, table.rows.len());
        assert_eq!(table.rules[0], UnwindRule::INVALID);
        assert!(table.rules.len() < 1000, "{}: {} rules", binary.name, table.rules.len());
    }
}

#[test]
fn threads_end_where_libc_starts_them() {
    let Some(libc) = binary("libc") else { return };
    let elf = object::File::parse(&*libc.bytes).expect("an ELF file");
    let clone = elf.dynamic_symbols().find(|symbol| symbol.name() == Ok("__clone"));
    let clone = clone.expect("libc has it");
    let table = table(&libc);
    let kinds: Vec<CfaKind> = (clone.address()..clone.address() + clone.size())
        .filter_map(|pc| Some(table.find(pc)?.cfa_kind()))
        .collect();
    assert!(kinds.contains(&CfaKind::Outermost), "{kinds:?}");
    assert!(kinds.contains(&CfaKind::StackPointer), "{kinds:?}");
    assert!(table.rules.iter().any(|rule| rule.cfa_kind() == CfaKind::SignalFrame));
    assert!(table.rules.iter().any(|rule| rule.cfa_kind() == CfaKind::Plt));
}

/// They have no entries there. They change the first argument, or look up by how much, and jump.
#[test]
fn thunks_of_virtual_functions_return_to_who_called_them() {
    let Some(server) = binary("mysql-5.6.14") else { return };
    let elf = object::File::parse(&*server.bytes).expect("an ELF file");
    let table = table(&server);
    let mut thunks = 0;
    for symbol in elf.symbols() {
        let name = symbol.name().unwrap_or_default();
        if (name.starts_with("_ZTh") || name.starts_with("_ZTv")) && symbol.is_definition() && symbol.size() > 0 {
            for pc in symbol.address()..symbol.address() + symbol.size() {
                assert_eq!(table.find(pc), Some(&AS_CALLED), "{name} at {pc:#x}");
            }
            thunks += 1;
        }
    }
    assert!(thunks > 200, "{thunks} thunks");
}

/// Programs may be stripped of their section headers (`sstrip`); the C++ runtime needs none either.
#[test]
fn a_file_without_section_headers_has_the_same_table() {
    for name in ["libc", "mysql-9.7"] {
        let Some(mut binary) = binary(name) else { continue };
        let whole = table(&binary);
        binary.bytes[40..48].fill(0); // e_shoff
        binary.bytes[58..64].fill(0); // e_shentsize, e_shnum, e_shstrndx
        assert_eq!(table(&binary), whole, "{name}");
    }
}
