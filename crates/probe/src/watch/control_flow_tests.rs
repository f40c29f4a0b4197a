//! Would the verifiers of older kernels take the loops of the compiled programs?
//!
//! `check_cfg()` of kernel/bpf/verifier.c walks a program before it looks at any instruction. Up to Linux 6.6 it took a loop that is
//! closed by a jump and refused one whose last instruction runs into its first; the compiler is free to make either of the same C.
//! The kernel that runs the tests is newer and takes both, so the walk is done here.

use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

/// What `build.rs` compiled.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.bpf.o"));
/// The same for the other of x86-64 and aarch64; empty where its headers are not installed.
const OTHER_OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/watch.other.bpf.o"));

/// Bytes of an instruction (`struct bpf_insn`).
const INSTRUCTION: usize = 8;
const CLASS_JUMP: u8 = 0x05;
const CLASS_JUMP_32: u8 = 0x06;
const JUMP_ALWAYS: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOAD_64_BITS: u8 = 0x18;

/// Where a walk goes on after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    target: usize,
    /// Whether it may close a loop: only what jumps may.
    jumps: bool,
}

/// Why `check_cfg()` refuses a program.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    BackEdge { from: usize, to: usize },
    JumpOutOfRange { from: usize },
    Unreachable { at: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Unseen,
    Open,
    Explored,
}

/// The edges of an instruction, in the kernel's order.
fn edges(code: &[[u8; INSTRUCTION]], at: usize) -> Vec<Edge> {
    let [operation, _, low, high, ..] = code[at];
    // One before the program where the jump leads there, which is out of range all the same.
    let jumped = at.checked_add_signed(isize::from(i16::from_le_bytes([low, high])) + 1);
    let jump = Edge {
        target: jumped.unwrap_or(usize::MAX),
        jumps: true,
    };
    let next = |step, jumps| Edge {
        target: at + step,
        jumps,
    };
    match operation {
        EXIT => Vec::new(),
        JUMP_ALWAYS => vec![jump],
        CALL => vec![next(1, false)],
        // Its second half is no instruction.
        LOAD_64_BITS => vec![next(2, false)],
        _ if matches!(operation & 7, CLASS_JUMP | CLASS_JUMP_32) => vec![next(1, true), jump],
        _ => vec![next(1, false)],
    }
}

/// Walks a function as `check_cfg()` of Linux 5.3 to 6.6 does.
fn check_control_flow(code: &[[u8; INSTRUCTION]]) -> Result<(), Refusal> {
    let mut progress = vec![Progress::Unseen; code.len()];
    let mut path = vec![(0, edges(code, 0).into_iter())];
    progress[0] = Progress::Open;
    while let Some((at, rest)) = path.last_mut() {
        let at = *at;
        let Some(edge) = rest.next() else {
            progress[at] = Progress::Explored;
            path.pop();
            continue;
        };
        match progress.get(edge.target) {
            None => return Err(Refusal::JumpOutOfRange { from: at }),
            Some(Progress::Unseen) => {
                progress[edge.target] = Progress::Open;
                path.push((edge.target, edges(code, edge.target).into_iter()));
            }
            Some(Progress::Open) if !edge.jumps => {
                return Err(Refusal::BackEdge {
                    from: at,
                    to: edge.target,
                });
            }
            Some(Progress::Open | Progress::Explored) => {}
        }
    }
    let is_second_half = |at: usize| at > 0 && code[at - 1][0] == LOAD_64_BITS;
    match (0..code.len()).find(|at| progress[*at] == Progress::Unseen && !is_second_half(*at)) {
        Some(at) => Err(Refusal::Unreachable { at }),
        None => Ok(()),
    }
}

/// The functions of an object, by name.
fn functions(object: &[u8]) -> Vec<(String, Vec<[u8; INSTRUCTION]>)> {
    let file = object::File::parse(object).expect("an ELF file");
    let functions = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
    functions
        .map(|symbol| {
            let section = file
                .section_by_index(symbol.section_index().expect("a section"))
                .expect("it is there");
            let code = section
                .data_range(symbol.address(), symbol.size())
                .expect("readable")
                .expect("within its section");
            let (instructions, rest) = code.as_chunks::<INSTRUCTION>();
            assert!(rest.is_empty(), "whole instructions");
            (symbol.name().expect("a name").to_owned(), instructions.to_vec())
        })
        .collect()
}

#[test]
fn every_program_passes_the_control_flow_check_of_linux_5_15_to_6_6() {
    every_program_passes(OBJECT);
}

/// The verifier walks the same bytes on every architecture, so no machine of the other one is needed.
#[test]
fn so_do_those_of_the_other_architecture() {
    if OTHER_OBJECT.is_empty() {
        let why = "no kernel headers of the other architecture: apt-get install linux-libc-dev-arm64-cross, then touch crates/probe/build.rs";
        testing::skip!("{why}");
        return;
    }
    assert_ne!(OBJECT, OTHER_OBJECT);
    every_program_passes(OTHER_OBJECT);
}

fn every_program_passes(object: &[u8]) {
    let functions = functions(object);
    for program in [
        "on_switch",
        "on_new",
        "on_waking",
        "on_exit",
        "on_free",
        "on_contention",
        "on_sample",
        "find_threads",
    ] {
        assert!(
            functions.iter().any(|(name, _)| name == program),
            "{program} is in the object"
        );
    }
    for (name, code) in functions {
        assert_eq!(
            check_control_flow(&code),
            Ok(()),
            "{name} of {} instructions",
            code.len()
        );
    }
}

fn instruction(operation: u8, offset: i16) -> [u8; INSTRUCTION] {
    let [low, high] = offset.to_le_bytes();
    [operation, 0, low, high, 0, 0, 0, 0]
}

const ADD: u8 = 0x07;
const JUMP_IF_EQUAL: u8 = 0x15;

/// The loop that Linux 5.15 to 6.1 refused: entered by a jump over its counting, which then runs into its beginning.
#[test]
fn a_loop_that_runs_into_its_own_beginning_is_refused() {
    let code = [
        instruction(ADD, 0),
        instruction(JUMP_ALWAYS, 1),
        instruction(ADD, 0),
        instruction(ADD, 0),
        instruction(JUMP_IF_EQUAL, -3),
        instruction(EXIT, 0),
    ];
    assert_eq!(check_control_flow(&code), Err(Refusal::BackEdge { from: 2, to: 3 }));
}

#[test]
fn a_loop_that_a_jump_closes_is_taken() {
    let code = [
        instruction(ADD, 0),
        instruction(LOAD_64_BITS, 0),
        instruction(0, 0),
        instruction(CALL, 0),
        instruction(JUMP_IF_EQUAL, -4),
        instruction(EXIT, 0),
    ];
    assert_eq!(check_control_flow(&code), Ok(()));
}

#[test]
fn a_jump_out_of_the_program_and_dead_code_are_refused() {
    let out = [instruction(JUMP_ALWAYS, -2), instruction(EXIT, 0)];
    assert_eq!(check_control_flow(&out), Err(Refusal::JumpOutOfRange { from: 0 }));
    let dead = [instruction(EXIT, 0), instruction(EXIT, 0)];
    assert_eq!(check_control_flow(&dead), Err(Refusal::Unreachable { at: 1 }));
}
