//! The code that a program starts with, where no entry covers it: old C libraries wrote none, and programs that were linked
//! with them still have theirs (MySQL 5.6.14). The main thread's stack ends there.

use std::ops::Range;

use super::{Architecture, CfaKind, UnwindRule};
use crate::call_frames::CallFrames;
use crate::loads;

/// `_start` is shorter than this.
const LONGEST: usize = 64;
const ENDBR64: &[u8] = &[0xf3, 0x0f, 0x1e, 0xfa];
/// `xor %ebp, %ebp`: the System V ABI asks for it, to mark the outermost frame.
const CLEAR_FRAME_POINTER: &[u8] = &[0x31, 0xed];
const HALT: u8 = 0xf4;

/// There is no caller.
const OUTERMOST: UnwindRule = UnwindRule {
    cfa: CfaKind::Outermost as u8,
    ..UnwindRule::INVALID
};

/// `_start` of an x86 program: from the entry point to the `hlt` behind the call of `__libc_start_main`, which does not
/// return.
pub(super) fn find(bytes: &[u8], frames: &CallFrames<'_>) -> Option<(Range<u64>, UnwindRule)> {
    if frames.architecture != Architecture::X86_64 {
        return None;
    }
    let start = object::Object::entry(&object::File::parse(bytes).ok()?);
    let segment = frames
        .segments
        .iter()
        .find(|segment| segment.executable && segment.contains(start))?;
    let skipped = usize::try_from(start - segment.svma).ok()?;
    let code = loads::segment_bytes(bytes, segment).get(skipped..)?;
    let code = code.get(..LONGEST).unwrap_or(code);
    let cleared = code.strip_prefix(ENDBR64).unwrap_or(code);
    cleared.starts_with(CLEAR_FRAME_POINTER).then_some(())?;
    let halt = (7..code.len()).find(|at| {
        let near = code[at - 5] == 0xe8;
        let through_table = code[at - 6..].starts_with(&[0xff, 0x15]);
        code[*at] == HALT && (near || through_table)
    })?;
    Some((start..start.saturating_add(halt as u64 + 1), OUTERMOST))
}
