//! What instructions do.

use crate::word::words;

words! {
    /// What kind of branch an instruction is.
    BranchKind {
        /// Goes there always.
        Jump: "jump",
        /// Goes there or on.
        Conditional: "conditional",
        /// Goes there and comes back.
        Call: "call",
        /// Goes back to the caller.
        Return: "return",
    }
}

words! {
    /// What an instruction does with memory.
    AccessKind {
        /// Looks at it.
        Read: "read" ("reads"),
        /// Puts something there, whatever was there before.
        Write: "write" ("writes"),
        /// Reads, changes and writes it in one instruction.
        Update: "update" ("updates"),
        /// Hands its address to a function, which may do anything with it.
        Passed: "passed_to_call" ("hands its address to a function"),
    }
}
