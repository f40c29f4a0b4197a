//! The linker's jump tables (`.plt` and the like), through which calls into libraries go, where no entry covers them:
//! old linkers wrote none for x86, and none do for aarch64. Their stubs are few and known, so their rules can be told.

use std::ops::Range;

use object::{Object as _, ObjectSection as _};

use super::{Architecture, CfaKind, SavedKind, UnwindRule};

/// `jmp *address(%rip)`; `push $number`; `jmp` to the first stub.
const JUMP: [u8; 2] = [0xff, 0x25];
/// `push address(%rip)`: begins the first stub of an x86 table, to which the others jump.
const PUSH_ADDRESS: [u8; 2] = [0xff, 0x35];
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
const PUSH: u8 = 0x68;
/// Bytes of `push` with a number of 32 bits.
const PUSH_LENGTH: u64 = 5;
/// Bytes of a stub of x86 that pushes.
const STUB: u64 = 16;
/// `stp x16, x30, [sp, #-16]!`: in the first stub of an aarch64 table, which is 32 bytes long.
const STORE_PAIR: [u8; 4] = [0xf0, 0x7b, 0xbf, 0xa9];
const FIRST_STUB_OF_ARM: u64 = 32;

/// Rules of a file's jump tables.
pub(super) struct JumpTables {
    /// By address.
    rules: Vec<(Range<u64>, UnwindRule)>,
}

impl JumpTables {
    pub(super) fn find(bytes: &[u8], architecture: Architecture) -> Self {
        let mut rules = Vec::new();
        let Ok(file) = object::File::parse(bytes) else {
            return JumpTables { rules };
        };
        for section in file.sections() {
            let name = section.name().unwrap_or_default();
            let Ok(code) = section.data() else { continue };
            if name == ".plt" || name.starts_with(".plt.") || name == ".iplt" {
                match architecture {
                    Architecture::X86_64 => x86_rules(section.address(), code, &mut rules),
                    Architecture::Aarch64 => arm_rules(section.address(), code, &mut rules),
                }
            }
        }
        rules.sort_by_key(|(range, _)| range.start);
        JumpTables { rules }
    }

    /// Those in a gap between entries.
    pub(super) fn within(&self, gap: Range<u64>) -> impl Iterator<Item = (Range<u64>, UnwindRule)> + '_ {
        let first = self.rules.partition_point(|(range, _)| range.end <= gap.start);
        self.rules
            .iter()
            .skip(first)
            .take_while(move |(range, _)| range.start < gap.end)
            .map(move |(range, rule)| (range.start.max(gap.start)..range.end.min(gap.end), *rule))
    }
}

/// A stub is entered with the return address on top of the stack. Until the library's function is found for the first
/// time, it pushes a number and jumps to the first stub, which pushes an address.
fn x86_rules(start: u64, code: &[u8], rules: &mut Vec<(Range<u64>, UnwindRule)>) {
    let pushed = |words: i32| UnwindRule {
        cfa: CfaKind::StackPointer as u8,
        ra: SavedKind::AtCfa as u8,
        cfa_offset: 8 + 8 * words,
        ra_offset: -8,
        ..UnwindRule::INVALID
    };
    let mut address = start;
    for stub in code.chunks(STUB as usize) {
        let end = address.saturating_add(stub.len() as u64);
        let (boundary, before) = if stub.starts_with(&PUSH_ADDRESS) {
            (6, 1)
        } else {
            (after_push(stub).unwrap_or(STUB), 0)
        };
        let boundary = address.saturating_add(boundary).min(end);
        rules.push((address..boundary, pushed(before)));
        rules.push((boundary..end, pushed(before + 1)));
        address = end;
    }
    rules.retain(|(range, _)| !range.is_empty());
}

/// Where in a stub its number has been pushed, if it pushes one.
fn after_push(stub: &[u8]) -> Option<u64> {
    let push = if stub.starts_with(&JUMP) {
        6
    } else if stub.starts_with(&ENDBR64) {
        4
    } else {
        0
    };
    (*stub.get(push)? == PUSH).then_some(push as u64 + PUSH_LENGTH)
}

/// The stubs leave the stack alone; the first stores the return address and keeps it in its register too.
fn arm_rules(start: u64, code: &[u8], rules: &mut Vec<(Range<u64>, UnwindRule)>) {
    let untouched = UnwindRule {
        cfa: CfaKind::StackPointer as u8,
        ra: SavedKind::InRegister as u8,
        ..UnwindRule::INVALID
    };
    let stored = UnwindRule {
        ra: SavedKind::AtCfa as u8,
        cfa_offset: 16,
        ra_offset: -8,
        ..untouched
    };
    let end = start.saturating_add(code.len() as u64);
    let mut done = start;
    let first = code.get(..FIRST_STUB_OF_ARM as usize).unwrap_or(code);
    if let Some(store) = first.chunks(4).position(|instruction| instruction == STORE_PAIR) {
        let after = start.saturating_add(4 * (store as u64 + 1));
        let end_of_first = start.saturating_add(FIRST_STUB_OF_ARM).min(end);
        rules.push((start..after, untouched));
        rules.push((after..end_of_first, stored));
        done = end_of_first;
    }
    rules.push((done..end, untouched));
    rules.retain(|(range, _)| !range.is_empty());
}
