//! What the machine code that a bundle keeps tells of where a thread can have waited.

use crate::instruction_costs::CodeAddress;
use scaleprof_bundle::InstructionRow;
use scaleprof_vocabulary::BranchKind;
use std::collections::{BTreeMap, BTreeSet};

/// How many instructions before the sampled one may be what took the time. On the machines this was tried on it was the one before
/// (a `cmp` behind the addition that waits for a multiplication has most samples of such a loop); the rest is for others.
const SKID: usize = 4;

/// The instructions of the functions that took most CPU time, by file.
#[derive(Debug, Clone, Default)]
pub struct MachineCode {
    files: BTreeMap<(String, Option<String>), BTreeMap<i64, Known>>,
}

/// What is known of one instruction.
#[derive(Debug, Clone, Default)]
struct Known {
    /// Whether it works in registers alone: its time says nothing of memory.
    in_registers: bool,
    /// Whether it can be come to from where nobody knows: by a call of its function, behind a call, by a jump whose target only its
    /// running tells.
    is_entered: bool,
    /// Those that can run right before it.
    before: BTreeSet<i64>,
}

impl MachineCode {
    /// From the table `instructions`. Of an architecture whose memory operands are not decoded nothing is known; it is told by a table
    /// in which no instruction has one.
    #[must_use]
    pub fn from_rows(rows: &[InstructionRow]) -> MachineCode {
        let mut code = MachineCode::default();
        if rows.iter().all(|row| row.access.is_none()) {
            return code;
        }
        let anywhere = |row: &&InstructionRow| row.branch == Some(BranchKind::Jump) && row.target.is_none();
        let jumps_anywhere: BTreeSet<i64> = rows.iter().filter(anywhere).map(|row| row.function_start).collect();
        for row in rows {
            let file = code.files.entry((row.module.clone(), row.build_id.clone()));
            let file = file.or_default();
            let known = file.entry(row.address).or_default();
            known.in_registers = is_in_registers(row);
            known.is_entered |= row.address == row.function_start || jumps_anywhere.contains(&row.function_start);
            let falls_through = matches!(row.branch, None | Some(BranchKind::Conditional));
            // Only a damaged table has addresses beyond all.
            let behind = row.address.checked_add(i64::from(row.length));
            if let Some(behind) = behind.filter(|_| row.branch == Some(BranchKind::Call)) {
                file.entry(behind).or_default().is_entered = true;
            }
            let next = behind.filter(|_| falls_through);
            let target = row.target.filter(|_| row.branch != Some(BranchKind::Call));
            for after in next.into_iter().chain(target) {
                file.entry(after).or_default().before.insert(row.address);
            }
        }
        code
    }

    /// Whether a thread that was sampled there cannot have waited for memory: neither this instruction nor any of the few that can run
    /// before it has anything to do with it. Where that is not known, as behind a call or at the start of a function, it can.
    #[must_use]
    pub fn cannot_wait_for_memory(&self, at: &CodeAddress) -> bool {
        let Some(file) = self.files.get(&(at.module.clone(), at.build_id.clone())) else {
            return false;
        };
        let mut reached = BTreeSet::from([at.address]);
        let mut newest = reached.clone();
        for distance in 0..=SKID {
            let mut before = BTreeSet::new();
            for address in &newest {
                let Some(known) = file.get(address).filter(|known| known.in_registers) else {
                    return false;
                };
                let is_known_before = !known.is_entered && !known.before.is_empty();
                if distance < SKID && !is_known_before {
                    return false;
                }
                before.extend(&known.before);
            }
            newest = before.into_iter().filter(|address| reached.insert(*address)).collect();
        }
        true
    }
}

/// Whether it is one of those that do arithmetic with registers or jump within a function, and has no operand in memory. What moves
/// strings, uses the stack or enters the kernel is none of them, whatever the table says of its operands.
fn is_in_registers(row: &InstructionRow) -> bool {
    const WITH_REGISTERS: [&str; 32] = [
        "adc", "add", "and", "cdq", "cdqe", "cmp", "cqo", "dec", "imul", "inc", "lea", "mov", "movsx", "movsxd",
        "movzx", "mul", "mulx", "neg", "nop", "not", "or", "rol", "ror", "rorx", "sar", "sbb", "shl", "shr", "sub",
        "test", "xchg", "xor",
    ];
    let name = row.text.split(' ').next().unwrap_or("");
    let jumps = matches!(row.branch, Some(BranchKind::Jump | BranchKind::Conditional));
    let chooses = name.starts_with("cmov") || name.starts_with("set");
    row.access.is_none() && (jumps || chooses || WITH_REGISTERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_vocabulary::AccessKind;

    /// Instructions of four bytes from 0x100 on: text, what they do with memory, how and where they branch.
    type Made = (&'static str, Option<AccessKind>, Option<(BranchKind, i64)>);

    fn code(made: &[Made]) -> MachineCode {
        let row = |(number, (text, access, branch)): (i64, &Made)| InstructionRow {
            module: "mysqld".to_owned(),
            build_id: None,
            function_start: 0x100,
            address: 0x100 + 4 * number,
            length: 4,
            text: (*text).to_owned(),
            access: *access,
            branch: branch.map(|(kind, _)| kind),
            target: branch.map(|(_, target)| target).filter(|target| *target > 0),
            ..InstructionRow::default()
        };
        let mut rows: Vec<InstructionRow> = (0..).zip(made).map(row).collect();
        // Another function, so that memory operands are seen to be decoded.
        rows.push(InstructionRow {
            address: 0x1000,
            length: 4,
            text: "mov rax,[rdi]".to_owned(),
            access: Some(AccessKind::Read),
            ..InstructionRow::default()
        });
        MachineCode::from_rows(&rows)
    }

    fn cannot(code: &MachineCode, address: i64) -> bool {
        code.cannot_wait_for_memory(&CodeAddress {
            module: "mysqld".to_owned(),
            build_id: None,
            address,
        })
    }

    /// The loop of the planted program whose samples once moved from one of its instructions to another.
    const IN_REGISTERS: [Made; 8] = [
        ("mov rax,rdi", None, None),
        ("xor edx,edx", None, None),
        ("imul rax,rdi", None, None),
        ("add rdx,1", None, None),
        ("add rax,rcx", None, None),
        ("cmp rsi,rdx", None, None),
        ("jne 108h", None, Some((BranchKind::Conditional, 0x108))),
        ("ret", None, Some((BranchKind::Return, 0))),
    ];

    #[test]
    fn a_loop_in_registers_cannot_wait_for_memory() {
        let code = code(&IN_REGISTERS);
        assert!(cannot(&code, 0x114), "the cmp");
        assert!(!cannot(&code, 0x100), "nobody knows what ran before the function");
        assert!(!cannot(&code, 0x10c), "which is four instructions away from here");
        assert!(!cannot(&code, 0x11c), "a return reads the stack");
        assert!(!cannot(&code, 0x200), "no code is known there");
        for text in ["rep movsb", "syscall", "push rax"] {
            let mut made = IN_REGISTERS;
            made[3].0 = text;
            assert!(!cannot(&self::code(&made), 0x114), "{text}");
        }
    }

    #[test]
    fn a_load_that_can_run_shortly_before_may_be_what_is_waited_for() {
        for place in [2, 3, 4, 5] {
            let mut made = IN_REGISTERS;
            made[place].1 = Some(AccessKind::Read);
            assert!(!cannot(&code(&made), 0x114), "a load at {place}");
        }
        // It is reached over the jump back.
        let mut made = IN_REGISTERS;
        made[6].1 = Some(AccessKind::Read);
        assert!(!cannot(&code(&made), 0x114));
        let mut made = IN_REGISTERS;
        made[3] = ("call 900h", None, Some((BranchKind::Call, 0x900)));
        assert!(!cannot(&code(&made), 0x114), "a function was called");
        // Also where another way leads there too.
        let mut made = IN_REGISTERS;
        made[3] = ("call 900h", None, Some((BranchKind::Call, 0x900)));
        made[6].2 = Some((BranchKind::Conditional, 0x110));
        assert!(!cannot(&code(&made), 0x114));
        let mut made = IN_REGISTERS;
        made[7] = ("jmp rax", None, Some((BranchKind::Jump, 0)));
        assert!(
            !cannot(&code(&made), 0x114),
            "a jump of the function may lead anywhere in it"
        );
        let mut made = IN_REGISTERS;
        made[6].2 = Some((BranchKind::Conditional, 0x100));
        assert!(!cannot(&code(&made), 0x100), "callers come to the top of this loop too");
    }

    #[test]
    fn where_memory_operands_are_not_decoded_nothing_is_excluded() {
        let rows: Vec<InstructionRow> = (0..9)
            .map(|number| InstructionRow {
                module: "mysqld".to_owned(),
                address: 0x100 + 4 * number,
                length: 4,
                text: "ldr x0, [x1]".to_owned(),
                ..InstructionRow::default()
            })
            .collect();
        assert!(!cannot(&MachineCode::from_rows(&rows), 0x114));
    }

    #[test]
    fn a_damaged_table_is_borne() {
        let row = |address: i64, length: i32| InstructionRow {
            module: "mysqld".to_owned(),
            address,
            length,
            access: Some(AccessKind::Read),
            branch: Some(BranchKind::Call),
            target: Some(i64::MIN),
            ..InstructionRow::default()
        };
        let code = MachineCode::from_rows(&[row(i64::MAX, i32::MAX), row(i64::MIN, i32::MIN), row(-1, 1)]);
        assert!(!cannot(&code, i64::MAX));
    }
}
