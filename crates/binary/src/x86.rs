//! What instructions of x86 do, beyond what the decoder tells.

use iced_x86::OpAccess;

/// Whether an instruction that does so to a register or to memory may change it.
pub(crate) fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}
