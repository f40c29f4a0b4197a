use super::*;
use proptest::prelude::*;
use scaleprof_vocabulary::{AccessKind, BranchKind};

/// Functions at multiples of 0x1000 and variables at multiples of 0x100 behind 0x10_0000, as a hand-made file would have them.
struct Names;

impl OperandNames for Names {
    fn code(&self, address: u64) -> Option<String> {
        (0x1000..0x10_0000)
            .contains(&address)
            .then(|| with_offset(&format!("f{:x}", address >> 12), address & 0xfff))
    }

    fn data(&self, address: u64) -> Option<String> {
        (0x10_0000..0x20_0000)
            .contains(&address)
            .then(|| with_offset(&format!("v{:x}", address >> 8), address & 0xff))
    }
}

fn one(architecture: Architecture, bytes: &[u8]) -> Instruction {
    let mut found = disassemble(architecture, bytes, 0x2000, &Names).expect("known");
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn x86(bytes: &[u8]) -> Instruction {
    one(Architecture::X86_64, bytes)
}

#[test]
fn memory_operands_say_where_how_much_and_what_is_done() {
    // Bytes as GNU as makes them for the text at 0x2000.
    let cases: [(&[u8], &str, Option<Access>); 9] = [
        (
            b"\xf0\x48\x83\x05\x37\xe0\x0f\x00\x01",
            "lock add qword ptr [v1000+64], 1",
            Some(Access {
                kind: AccessKind::Update,
                address: Some(0x10_0040),
                size: Some(8),
                locked: true,
            }),
        ),
        (
            b"\x8b\x05\xfa\xdf\x0f\x00",
            "mov eax, [v1000]",
            Some(Access {
                kind: AccessKind::Read,
                address: Some(0x10_0000),
                size: Some(4),
                locked: false,
            }),
        ),
        (
            b"\x88\x05\xfa\xe0\x0f\x00",
            "mov [v1001], al",
            Some(Access {
                kind: AccessKind::Write,
                address: Some(0x10_0100),
                size: Some(1),
                locked: false,
            }),
        ),
        (
            b"\x87\x05\xfa\xdf\x0f\x00",
            "xchg [v1000], eax",
            Some(Access {
                kind: AccessKind::Update,
                address: Some(0x10_0000),
                size: Some(4),
                locked: true,
            }),
        ),
        (
            b"\xf0\x0f\xb1\x0d\xf8\xdf\x0f\x00",
            "lock cmpxchg [v1000], ecx",
            Some(Access {
                kind: AccessKind::Update,
                address: Some(0x10_0000),
                size: Some(4),
                locked: true,
            }),
        ),
        (
            b"\x8b\x04\x25\x00\x02\x10\x00",
            "mov eax, [v1002]",
            Some(Access {
                kind: AccessKind::Read,
                address: Some(0x10_0200),
                size: Some(4),
                locked: false,
            }),
        ),
        (
            b"\x48\x83\x84\x01\x80\x00\x00\x00\x01",
            "add qword ptr [rcx+rax+0x80], 1",
            Some(Access {
                kind: AccessKind::Update,
                address: None,
                size: Some(8),
                locked: false,
            }),
        ),
        (b"\x48\x8d\x05\xf9\xdf\x0f\x00", "lea rax, [v1000]", None),
        (b"\x87\xc1", "xchg ecx, eax", None),
    ];
    for (bytes, text, access) in cases {
        let found = x86(bytes);
        assert_eq!((found.text.as_str(), found.access), (text, access));
        assert_eq!(usize::from(found.length), bytes.len());
    }
}

#[test]
fn what_each_thread_has_its_own_of_has_no_address_in_the_file() {
    let found = x86(b"\x64\x48\x8b\x04\x25\x28\x00\x00\x00");
    assert_eq!(found.text, "mov rax, fs:[0x28]");
    assert_eq!(found.access.and_then(|access| access.address), None);
}

#[test]
fn branches_say_where_they_go() {
    let branch = |kind, target| Some(Branch { kind, target });
    for (bytes, text, expected) in [
        (
            &b"\xe8\xfb\x0f\x00\x00"[..],
            "call f3",
            branch(BranchKind::Call, Some(0x3000)),
        ),
        (
            b"\xe9\x0b\x10\x00\x00",
            "jmp f3+16",
            branch(BranchKind::Jump, Some(0x3010)),
        ),
        (b"\x74\xfe", "je f2", branch(BranchKind::Conditional, Some(0x2000))),
        (b"\xff\xd0", "call rax", branch(BranchKind::Call, None)),
        (b"\xff\xe0", "jmp rax", branch(BranchKind::Jump, None)),
        (b"\xc3", "ret", branch(BranchKind::Return, None)),
        (b"\x0f\x05", "syscall", None),
        (b"\xf3\x90", "pause", None),
    ] {
        let found = x86(bytes);
        assert_eq!((found.text.as_str(), found.branch), (text, expected));
    }
}

#[test]
fn aarch64_branches_and_addresses_are_named_in_full() {
    let branch = |kind, target| Some(Branch { kind, target });
    // As llvm-mc encodes them.
    for (word, text, expected) in [
        (0x9400_0400_u32, "bl f3", branch(BranchKind::Call, Some(0x3000))),
        (0x1400_0404, "b f3+16", branch(BranchKind::Jump, Some(0x3010))),
        (0x5400_0001, "b.ne f2", branch(BranchKind::Conditional, Some(0x2000))),
        (0xb400_0000, "cbz x0, f2", branch(BranchKind::Conditional, Some(0x2000))),
        (0xd63f_0020, "blr x1", branch(BranchKind::Call, None)),
        (0xd65f_03c0, "ret", branch(BranchKind::Return, None)),
        (0xb000_07e0, "adrp x0, 0xff000", None),
        (0xd503_3fdf, "isb", None),
        (0xb824_0020, "ldadd w4, w0, [x1]", None),
        (0x0000_0000, "udf #0x0", None),
        (0xffff_ffff, ".inst 0xffffffff", None),
    ] {
        let found = one(Architecture::Aarch64, &word.to_le_bytes());
        assert_eq!((found.text.as_str(), found.branch), (text, expected));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_taken_apart_without_gaps(bytes in prop::collection::vec(any::<u8>(), 0..64), address: u64) {
        for architecture in [Architecture::X86_64, Architecture::Aarch64] {
            let found = disassemble(architecture, &bytes, address, &Names).expect("known");
            let mut at = address;
            let mut length = 0;
            for instruction in &found {
                prop_assert_eq!(instruction.address, at);
                prop_assert!(instruction.length > 0 && !instruction.text.is_empty());
                at = at.wrapping_add(u64::from(instruction.length));
                length += usize::from(instruction.length);
            }
            prop_assert_eq!(length, bytes.len());
        }
    }
}
