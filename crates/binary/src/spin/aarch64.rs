//! Instructions of aarch64 (Arm ARM, C4 "A64 Instruction Set Encoding"): all have four bytes, and the few groups that matter
//! are told by their first bits.

use super::flow::Flow;
use super::step::{Does, Relax, Step};
use super::unrelaxed::{MOST_BYTES, Unrelaxed};

const YIELD: u32 = 0xd503_203f;
const WFE: u32 = 0xd503_205f;
const NOP: u32 = 0xd503_201f;
/// `isb sy`
const ISB: u32 = 0xd503_3fdf;

pub(super) fn relaxes(bytes: &[u8]) -> Vec<usize> {
    let words = bytes.chunks_exact(4).enumerate();
    words
        .filter(|(_, bytes)| relax(word(bytes)).is_some())
        .map(|(place, _)| place * 4)
        .collect()
}

/// Branches back over nothing but loads, additions, comparisons and branches: of other instructions it is not told what they read and
/// set.
pub(super) fn unrelaxed(bytes: &[u8], address: u64) -> Vec<Unrelaxed> {
    let words: Vec<u32> = bytes.chunks_exact(4).map(word).collect();
    let mut found = Vec::new();
    for (place, last) in words.iter().enumerate() {
        let at = address + place as u64 * 4;
        let Does::Branch(target) = does(*last, at) else {
            continue;
        };
        if target >= at || at - target >= MOST_BYTES as u64 || target < address {
            continue;
        }
        let first = ((target - address) / 4) as usize;
        let flows: Vec<Flow> = words[first..=place]
            .iter()
            .zip(first..)
            .map(|(word, place)| flow(*word, address + place as u64 * 4))
            .collect();
        found.extend(Unrelaxed::of(&flows, target..at + 4));
    }
    found
}

pub(super) fn flows(bytes: &[u8], address: u64) -> Option<Vec<Flow>> {
    let words = bytes.chunks_exact(4).zip(0u64..);
    let flows = words.map(|(bytes, place)| flow(word(bytes), address + place * 4));
    Some(flows.collect())
}

fn flow(word: u32, address: u64) -> Flow {
    let field = |low: u32| ((word >> low) & 31) as u16;
    // XZR and WZR, which hold nothing; as a base it is the stack.
    let registers = |numbers: &[u16]| {
        numbers
            .iter()
            .copied()
            .filter(|number| *number != 31)
            .collect::<Vec<u16>>()
    };
    let flow = Flow {
        goes_on: !ends(word),
        ..Flow::default()
    };
    match does(word, address) {
        Does::Branch(target) => Flow {
            branch: Some(target),
            // CBZ, CBNZ, TBZ and TBNZ ask a register.
            reads: match word & 0x7c00_0000 == 0x3400_0000 {
                true => registers(&[field(0)]),
                false => Vec::new(),
            },
            ..flow
        },
        Does::Barrier => flow,
        // So do pairs that are indexed so; those of SIMD registers are not followed.
        Does::Load if is_load_of_pair(word) => Flow {
            loads: true,
            reads: registers(&[field(5)]),
            writes: registers(&[field(0), field(10)]),
            is_out_of_question: word & 0x0480_0000 != 0,
            ..flow
        },
        // Before- and after-indexed loads change their base.
        Does::Load if word & 0x3b20_0400 != 0x3800_0400 => Flow {
            loads: true,
            reads: match word & 0x3b20_0c00 == 0x3820_0800 {
                true => registers(&[field(5), field(16)]),
                false => registers(&[field(5)]),
            },
            writes: registers(&[field(0)]),
            ..flow
        },
        // ADD and SUB of a constant, or of another register that is not shifted; into the zero register they are CMN and CMP. One that
        // doubles a register does not only count.
        _ if word & 0x1f80_0000 == 0x1100_0000 => Flow {
            reads: registers(&[field(5)]),
            writes: registers(&[field(0)]),
            counts: true,
            // SUB, and its constant, which is not shifted.
            takes_one: word & 0x4000_0000 != 0 && (word >> 10) & 0x1fff == 1,
            ..flow
        },
        _ if word & 0x1f20_0000 == 0x0b00_0000 => Flow {
            reads: registers(&[field(5), field(16)]),
            writes: registers(&[field(0)]),
            counts: word & 0xfc00 == 0 && field(5) != field(16),
            ..flow
        },
        // ANDS into the zero register, which is TST: of a constant, or of another register.
        _ if word & 0x7f80_001f == 0x7200_001f => Flow {
            reads: registers(&[field(5)]),
            counts: true,
            ..flow
        },
        _ if word & 0x7f20_001f == 0x6a00_001f => Flow {
            reads: registers(&[field(5), field(16)]),
            counts: true,
            ..flow
        },
        // MOVN and MOVZ, and MOV of a register.
        _ if word & 0x3f80_0000 == 0x1280_0000 => Flow {
            writes: registers(&[field(0)]),
            ..flow
        },
        _ if word & 0x7fe0_ffe0 == 0x2a00_03e0 => Flow {
            reads: registers(&[field(16)]),
            writes: registers(&[field(0)]),
            ..flow
        },
        _ if word == NOP => Flow { counts: true, ..flow },
        _ => Flow {
            is_out_of_question: true,
            ..flow
        },
    }
}

pub(super) fn decode(bytes: &[u8], address: u64) -> Vec<Step> {
    let words = bytes.chunks_exact(4).enumerate();
    words
        .map(|(place, bytes)| {
            let address = address + place as u64 * 4;
            Step {
                address,
                end: address + 4,
                does: does(word(bytes), address),
                goes_on: !ends(word(bytes)),
            }
        })
        .collect()
}

pub(super) fn may_call(bytes: &[u8], address: u64, wanted: &dyn Fn(u64) -> bool) -> bool {
    let words = bytes.chunks_exact(4).enumerate();
    words.into_iter().any(|(place, bytes)| {
        let does = does(word(bytes), address + place as u64 * 4);
        matches!(does, Does::Call(Some(target)) if wanted(target))
    })
}

fn word(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

fn relax(word: u32) -> Option<Relax> {
    match word {
        YIELD => Some(Relax::Yield),
        WFE => Some(Relax::Wfe),
        ISB => Some(Relax::Isb),
        _ => None,
    }
}

/// B, BR, RET and BRK: what stands behind runs only where something goes there.
fn ends(word: u32) -> bool {
    word & 0xfc00_0000 == 0x1400_0000
        || word & 0xffff_fc1f == 0xd61f_0000
        || word & 0xffff_fc1f == 0xd65f_0000
        || word & 0xffe0_001f == 0xd420_0000
}

/// A branch's distance: `bits` bits from bit `low` on, counted in instructions.
fn target(address: u64, word: u32, low: u32, bits: u32) -> u64 {
    let field = (word >> low) & ((1 << bits) - 1);
    let signed = ((field << (32 - bits)) as i32) >> (32 - bits);
    address.wrapping_add_signed(i64::from(signed) * 4)
}

fn does(word: u32, address: u64) -> Does {
    if let Some(relax) = relax(word) {
        return Does::Relax(relax);
    }
    match word {
        // DMB and DSB, whatever their domain.
        _ if word & 0xffff_f0ff == 0xd503_30bf || word & 0xffff_f0ff == 0xd503_309f => Does::Barrier,
        // B.cond; CBZ and CBNZ; TBZ and TBNZ; B; BL; BLR.
        _ if word & 0xff00_0000 == 0x5400_0000 => Does::Branch(target(address, word, 5, 19)),
        _ if word & 0x7e00_0000 == 0x3400_0000 => Does::Branch(target(address, word, 5, 19)),
        _ if word & 0x7e00_0000 == 0x3600_0000 => Does::Branch(target(address, word, 5, 14)),
        _ if word & 0xfc00_0000 == 0x1400_0000 => Does::Branch(target(address, word, 0, 26)),
        _ if word & 0xfc00_0000 == 0x9400_0000 => Does::Call(Some(target(address, word, 0, 26))),
        _ if word & 0xffff_fc1f == 0xd63f_0000 => Does::Call(None),
        // LDAPR looks like an atomic operation.
        _ if word & 0x3fff_fc00 == 0x38bf_c000 => Does::Load,
        // Exclusive stores, and the atomic operations of ARMv8.1 (LDADD, SWP, CAS and their like).
        _ if word & 0x3f40_0000 == 0x0800_0000 && word & 0x0080_0000 == 0 => Does::Locked,
        _ if word & 0x3f20_0c00 == 0x3820_0000 => Does::Locked,
        _ if word & 0x3fa0_7c00 == 0x08a0_7c00 => Does::Locked,
        // Loads of one register, plain, acquiring or exclusive; base register 31 is the stack.
        _ if is_load(word) && (word >> 5) & 31 != 31 => Does::Load,
        _ => Does::Other,
    }
}

fn is_load(word: u32) -> bool {
    let unsigned_offset = word & 0x3b40_0000 == 0x3940_0000;
    let other_offset = word & 0x3b60_0000 == 0x3840_0000;
    let register_offset = word & 0x3b60_0c00 == 0x3860_0800;
    let acquiring = word & 0x3f40_0000 == 0x0840_0000;
    unsigned_offset
        || other_offset
        || register_offset
        || acquiring
        || is_wide_signed_load(word)
        || is_load_of_pair(word)
}

/// LDRSB, LDRSH and LDRSW into 64 bits: `opc` is 2, which with `size` 3 is PRFM.
fn is_wide_signed_load(word: u32) -> bool {
    let unsigned_offset = word & 0x3f00_0000 == 0x3900_0000;
    let other_offset = word & 0x3f20_0000 == 0x3800_0000;
    let register_offset = word & 0x3f20_0c00 == 0x3820_0800;
    (unsigned_offset || other_offset || register_offset) && (word >> 22) & 3 == 2 && word >> 30 != 3
}

/// LDP, LDPSW and LDNP, of any registers.
fn is_load_of_pair(word: u32) -> bool {
    word & 0x3a40_0000 == 0x2840_0000
}
