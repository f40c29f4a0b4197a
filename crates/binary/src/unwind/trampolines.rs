//! The code that a signal handler returns to: it asks the kernel to restore the interrupted registers.
//!
//! Debuggers know it by its bytes too (gdb, libgcc), because its call frame information is often missing or wrong.

use std::ops::Range;

use memchr::memmem;

use super::Architecture;
use crate::call_frames::CallFrames;
use crate::loads;

/// `mov $15 (rt_sigreturn), %rax; syscall`
const X86_64: &[u8] = &[0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05];
/// `mov x8, #139 (rt_sigreturn); svc #0`
const AARCH64: &[u8] = &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Where a file's trampolines start, in ascending order.
pub(super) struct Trampolines {
    starts: Vec<u64>,
    length: u64,
}

impl Trampolines {
    pub(super) fn find(bytes: &[u8], frames: &CallFrames<'_>) -> Self {
        let code = match frames.architecture {
            Architecture::X86_64 => X86_64,
            Architecture::Aarch64 => AARCH64,
        };
        let mut starts: Vec<u64> = Vec::new();
        for segment in frames.segments.iter().filter(|segment| segment.executable) {
            let places = memmem::find_iter(loads::segment_bytes(bytes, segment), code);
            starts.extend(places.map(|place| segment.svma.saturating_add(place as u64)));
        }
        starts.sort_unstable();
        let length = code.len() as u64;
        Trampolines { starts, length }
    }

    /// Whether an entry that starts here describes a trampoline. Entries start one byte early, so that the unwinders
    /// that look up the byte before a return address find them.
    pub(super) fn starts_at(&self, start: u64) -> bool {
        let next = start.saturating_add(1);
        self.starts.binary_search(&start).is_ok() || self.starts.binary_search(&next).is_ok()
    }

    /// The code of those that start in a gap between entries, with the byte before as far as it belongs to the gap.
    pub(super) fn within(&self, gap: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let first = self.starts.partition_point(|start| *start < gap.start);
        let inside = self
            .starts
            .iter()
            .skip(first)
            .take_while(move |start| **start < gap.end);
        inside.map(move |start| {
            let end = start.saturating_add(self.length).min(gap.end);
            start.saturating_sub(1).max(gap.start)..end
        })
    }
}
