//! What of an instruction matters to whoever looks for loops.

/// An instruction that tells the CPU that the thread only waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relax {
    /// `pause`
    Pause,
    /// `tpause`, `umwait`
    TimedPause,
    /// `isb`
    Isb,
    /// `yield`
    Yield,
    /// `wfe`
    Wfe,
}

impl Relax {
    /// As an assembler writes it.
    pub fn name(self) -> &'static str {
        match self {
            Relax::Pause => "pause",
            Relax::TimedPause => "tpause",
            Relax::Isb => "isb",
            Relax::Yield => "yield",
            Relax::Wfe => "wfe",
        }
    }
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Does {
    Relax(Relax),
    /// Goes elsewhere within the function, perhaps.
    Branch(u64),
    /// Calls a function; none where only its running tells which.
    Call(Option<u64>),
    /// Reads memory that is not the stack.
    Load,
    /// Reads and writes memory as one.
    Locked,
    Barrier,
    Other,
}

/// One instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    pub address: u64,
    pub end: u64,
    pub does: Does,
    /// Whether the next instruction may run after it.
    pub goes_on: bool,
}

impl Step {
    pub(super) fn calls(&self) -> bool {
        matches!(self.does, Does::Call(_))
    }
}
