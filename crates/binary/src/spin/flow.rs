//! An instruction, as far as it tells whether the loop around it waits.

/// What of one instruction of a loop matters here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Flow {
    /// Registers that it reads, and that it sets whatever they held, by any numbers.
    pub reads: Vec<u16>,
    pub writes: Vec<u16>,
    /// Reads memory that is not the stack.
    pub loads: bool,
    /// Only adds to registers, or compares them (see `counting.rs`).
    pub counts: bool,
    /// Takes one from a register.
    pub takes_one: bool,
    /// Where it may branch to.
    pub branch: Option<u64>,
    /// Whether the next instruction may run after it.
    pub goes_on: bool,
    /// Stores, calls, locks the bus, tells the CPU that it waits, or is not understood.
    pub is_out_of_question: bool,
}
