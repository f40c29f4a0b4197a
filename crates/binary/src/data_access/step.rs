//! What of an instruction matters to whoever wants to know which variables it touches.

use scaleprof_vocabulary::AccessKind;

/// A general register by its number in machine code: 0 to 15 on x86-64 (RAX to R15), 0 to 30 on aarch64 (X0 to X30).
pub(super) type Register = u8;

/// How many numbers a register can have.
pub(super) const REGISTERS: usize = 32;

/// An address as an instruction spells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    pub base: Option<Register>,
    pub index: Option<Register>,
    /// Whether the index is multiplied, so that it cannot be the base in disguise.
    pub scaled: bool,
    /// What is added; the whole address where there are no registers.
    pub displacement: u64,
}

impl Address {
    pub(super) fn of_register(base: Register) -> Address {
        Address::behind(base, 0)
    }

    pub(super) fn behind(base: Register, displacement: u64) -> Address {
        Address {
            base: Some(base),
            index: None,
            scaled: false,
            displacement,
        }
    }

    pub(super) fn fixed(address: u64) -> Address {
        Address {
            base: None,
            index: None,
            scaled: false,
            displacement: address,
        }
    }
}

/// Memory that an instruction touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryUse {
    pub address: Address,
    /// Bytes; 0 where only its running tells.
    pub size: u32,
    pub kind: AccessKind,
    pub locked: bool,
}

/// What an instruction puts into a register, as far as an address can come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sets {
    /// This address.
    Address(Register, Address),
    /// This number, which is an address where the program is always at the same one.
    Number(Register, u64),
    /// The eight bytes at this address.
    Pointer(Register, Address),
}

/// Where the thread goes after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// To a place, or on to the next instruction.
    MayGo(u64),
    Goes(u64),
    /// Into a function and back; none where only its running tells which.
    Calls(Option<u64>),
    /// Away: back to the caller, through a table, nowhere.
    Leaves,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub address: u64,
    pub end: u64,
    /// x86's string instructions touch two places.
    pub uses: [Option<MemoryUse>; 2],
    pub sets: Option<Sets>,
    /// The registers that it changes, as bits.
    pub changes: u32,
    pub flow: Flow,
}

/// What differs between the architectures.
#[derive(Clone, Copy)]
pub(super) struct Convention {
    /// Adds the instructions of a function that lies at an address.
    pub decode: fn(&[u8], u64, &mut Vec<Step>),
    /// The registers that a called function may change, as bits.
    pub changed_by_calls: u32,
    /// Those in which the first two arguments are.
    pub arguments: [Register; 2],
}
