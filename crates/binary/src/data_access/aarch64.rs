//! Instructions of aarch64 (Arm ARM, C4 "A64 Instruction Set Encoding"; which registers calls keep: AAPCS64, section 6.1.1).

use super::step::{Address, Convention, Flow, MemoryUse, Register, Sets, Step};
use scaleprof_vocabulary::AccessKind::{self, Read, Update, Write};

/// In most places SP or the register that is always zero: no address of a variable comes of either.
const NO_REGISTER: u32 = 31;

pub(super) const CONVENTION: Convention = Convention {
    decode,
    // X0 to X18, and X30, in which the return address is put.
    changed_by_calls: 0x4007_ffff,
    arguments: [0, 1],
};

fn decode(bytes: &[u8], address: u64, steps: &mut Vec<Step>) {
    let words = bytes.chunks_exact(4).zip((0..).map(|place: u64| place * 4));
    steps.extend(words.map(|(bytes, place)| {
        let word = bytes.try_into().map_or(0, u32::from_le_bytes);
        step(word, address.wrapping_add(place))
    }));
}

fn step(word: u32, address: u64) -> Step {
    let mut step = Step {
        address,
        end: address.wrapping_add(4),
        uses: [None; 2],
        sets: None,
        // Nearly all instructions put their result into the register of the last five bits; of those that have none there,
        // forgetting one does no harm.
        changes: bit(field(word, 0, 5)),
        flow: flow(word, address),
    };
    if !memory(word, address, &mut step) {
        step.sets = arithmetic(word, address);
    }
    step
}

fn field(word: u32, low: u32, bits: u32) -> u32 {
    (word >> low) & ((1 << bits) - 1)
}

/// A field of `bits` bits from bit `low` on, with its sign.
fn signed(word: u32, low: u32, bits: u32) -> i64 {
    i64::from((field(word, low, bits) << (32 - bits)).cast_signed() >> (32 - bits))
}

fn bit(register: u32) -> u32 {
    if register == NO_REGISTER { 0 } else { 1 << register }
}

fn register(word: u32, low: u32) -> Option<Register> {
    let number = field(word, low, 5);
    u8::try_from(number).ok().filter(|_| number != NO_REGISTER)
}

fn is(word: u32, mask: u32, value: u32) -> bool {
    word & mask == value
}

/// A branch's distance: `bits` bits from bit `low` on, counted in instructions.
fn target(address: u64, word: u32, low: u32, bits: u32) -> u64 {
    address.wrapping_add_signed(signed(word, low, bits) * 4)
}

fn flow(word: u32, address: u64) -> Flow {
    match word {
        // B.cond, CBZ and CBNZ, TBZ and TBNZ.
        _ if is(word, 0xff00_0000, 0x5400_0000) => Flow::MayGo(target(address, word, 5, 19)),
        _ if is(word, 0x7e00_0000, 0x3400_0000) => Flow::MayGo(target(address, word, 5, 19)),
        _ if is(word, 0x7e00_0000, 0x3600_0000) => Flow::MayGo(target(address, word, 5, 14)),
        // B, BL, BLR.
        _ if is(word, 0xfc00_0000, 0x1400_0000) => Flow::Goes(target(address, word, 0, 26)),
        _ if is(word, 0xfc00_0000, 0x9400_0000) => Flow::Calls(Some(target(address, word, 0, 26))),
        _ if is(word, 0xffff_fc1f, 0xd63f_0000) => Flow::Calls(None),
        // BR, RET, BRK.
        _ if is(word, 0xffff_fc1f, 0xd61f_0000) || is(word, 0xffff_fc1f, 0xd65f_0000) => Flow::Leaves,
        _ if is(word, 0xffe0_001f, 0xd420_0000) => Flow::Leaves,
        _ => Flow::Next,
    }
}

/// The page that ADRP names, or the place that ADR does.
fn near(word: u32, address: u64) -> Option<u64> {
    let distance = (signed(word, 5, 19) << 2) | i64::from(field(word, 29, 2));
    match word {
        _ if is(word, 0x9f00_0000, 0x9000_0000) => Some((address & !0xfff).wrapping_add_signed(distance << 12)),
        _ if is(word, 0x9f00_0000, 0x1000_0000) => Some(address.wrapping_add_signed(distance)),
        _ => None,
    }
}

fn arithmetic(word: u32, address: u64) -> Option<Sets> {
    let to = register(word, 0)?;
    if let Some(place) = near(word, address) {
        return Some(Sets::Address(to, Address::fixed(place)));
    }
    // ADD and SUB of a number, of 64 bits.
    if is(word, 0xbf80_0000, 0x9100_0000) {
        let number = u64::from(field(word, 10, 12)) << (12 * field(word, 22, 1));
        let from = register(word, 5)?;
        let number = match is(word, 0x4000_0000, 0) {
            true => number,
            false => number.wrapping_neg(),
        };
        return Some(Sets::Address(to, Address::behind(from, number)));
    }
    // ADD of two registers, plain or extended.
    if is(word, 0xff20_0000, 0x8b00_0000) || is(word, 0xffe0_0000, 0x8b20_0000) {
        let extended = field(word, 21, 1) == 1;
        return Some(Sets::Address(
            to,
            Address {
                base: Some(register(word, 5)?),
                index: Some(register(word, 16)?),
                scaled: extended || field(word, 10, 6) != 0,
                displacement: 0,
            },
        ));
    }
    // MOV is ORR with the zero register.
    if is(word, 0xffe0_ffe0, 0xaa00_03e0) {
        return Some(Sets::Address(to, Address::of_register(register(word, 16)?)));
    }
    None
}

fn put(step: &mut Step, address: Option<Address>, size: u32, kind: AccessKind, locked: bool) {
    let memory = address.map(|address| MemoryUse {
        address,
        size,
        kind,
        locked,
    });
    step.uses = [memory, None];
}

/// Fills in what an instruction does that reads or writes memory; false if it does not.
fn memory(word: u32, address: u64, step: &mut Step) -> bool {
    let base = register(word, 5);
    let size = field(word, 30, 2);
    let bytes = 1 << size;
    let target = field(word, 0, 5);
    if is(word, 0x3f00_0000, 0x0800_0000) {
        exclusive(word, step);
    } else if is(word, 0x3b20_0c00, 0x3820_0000) {
        // Atomic operations of ARMv8.1; LDAPR looks like one.
        let loads_only = is(word, 0x3fff_fc00, 0x38bf_c000);
        let kind = if loads_only { Read } else { Update };
        put(step, base.map(Address::of_register), bytes, kind, !loads_only);
    } else if is(word, 0x3b00_0000, 0x1800_0000) {
        // LDR of a place near the instruction; 64 bits wide in the second form.
        let place = Address::fixed(self::target(address, word, 5, 19));
        put(step, Some(place), 4 << (size & 1), Read, false);
        if is(word, 0xff00_0000, 0x5800_0000)
            && let Some(to) = register(word, 0)
        {
            step.sets = Some(Sets::Pointer(to, place));
        }
    } else if is(word, 0x3a00_0000, 0x2800_0000) {
        pair(word, step);
    } else if is(word, 0x3a00_0000, 0x3800_0000) {
        let is_vector = field(word, 26, 1) == 1;
        let operation = field(word, 22, 2);
        // PRFM touches nothing.
        if !is_vector && size == 3 && operation == 2 {
            return true;
        }
        let scale = if is_vector { (operation >> 1) << 2 | size } else { size };
        let loads = if is_vector { operation & 1 == 1 } else { operation != 0 };
        let form = field(word, 10, 2);
        let (place, written_back) = if is(word, 0x0100_0000, 0x0100_0000) {
            let place = base.map(|base| Address::behind(base, u64::from(field(word, 10, 12)) << scale));
            (place, None)
        } else if is(word, 0x0020_0000, 0x0020_0000) {
            let place = base.zip(register(word, 16)).map(|(base, index)| Address {
                index: Some(index),
                scaled: field(word, 12, 1) == 1,
                ..Address::of_register(base)
            });
            (place, None)
        } else {
            let distance = signed(word, 12, 9).cast_unsigned();
            let place = base.map(|base| Address::behind(base, if form == 1 { 0 } else { distance }));
            (
                place,
                base.filter(|_| form & 1 == 1)
                    .map(|base| Address::behind(base, distance)),
            )
        };
        put(step, place, 1 << scale, if loads { Read } else { Write }, false);
        step.changes = if loads && !is_vector { bit(target) } else { 0 };
        if let (Some(to), Some(place)) = (register(word, 0), place)
            && loads
            && !is_vector
            && size == 3
        {
            step.sets = Some(Sets::Pointer(to, place));
        }
        write_back(step, written_back);
    } else {
        return false;
    }
    true
}

/// After an access that moves its base on.
fn write_back(step: &mut Step, moved: Option<Address>) {
    if let Some((base, moved)) = moved.and_then(|moved| Some((moved.base?, moved))) {
        step.changes |= 1 << base;
        step.sets = Some(Sets::Address(base, moved));
    }
}

/// LDP, STP and their like.
fn pair(word: u32, step: &mut Step) {
    let is_vector = field(word, 26, 1) == 1;
    let loads = field(word, 22, 1) == 1;
    let scale = if is_vector {
        2 + field(word, 30, 2)
    } else {
        2 + field(word, 31, 1)
    };
    let distance = (signed(word, 15, 7) << scale).cast_unsigned();
    let form = field(word, 23, 2);
    let base = register(word, 5);
    let place = base.map(|base| Address::behind(base, if form == 1 { 0 } else { distance }));
    put(step, place, 2 << scale, if loads { Read } else { Write }, false);
    step.changes = if loads && !is_vector {
        bit(field(word, 0, 5)) | bit(field(word, 10, 5))
    } else {
        0
    };
    write_back(
        step,
        base.filter(|_| form & 1 == 1)
            .map(|base| Address::behind(base, distance)),
    );
}

/// Loads and stores that order memory or claim it: LDAR, STLR, LDXR, STXR, CAS.
fn exclusive(word: u32, step: &mut Step) {
    let (ordered, loads, second) = (field(word, 23, 1), field(word, 22, 1), field(word, 21, 1));
    let bytes = 1 << field(word, 30, 2);
    let place = register(word, 5).map(Address::of_register);
    let is_pair = second == 1 && ordered == 0;
    // CASP has no bit 31; LDXP and STXP do.
    let compares = second == 1 && (ordered == 1 || field(word, 31, 1) == 0);
    let (kind, locked) = match (compares, ordered, loads) {
        (true, ..) => (Update, true),
        (false, 1, 1) => (Read, false),
        (false, 1, _) => (Write, false),
        (false, _, 1) => (Read, true),
        (false, ..) => (Update, true),
    };
    put(step, place, if is_pair { 2 * bytes } else { bytes }, kind, locked);
    step.changes = bit(field(word, 0, 5)) | bit(field(word, 16, 5)) | bit(field(word, 10, 5));
}
