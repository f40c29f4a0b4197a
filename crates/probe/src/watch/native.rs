//! The BPF programs' unwinder, compiled for this machine.
//!
//! One text (`bpf/unwind.h`), two compilers: what the tests replay here is what runs in the kernel.

use scaleprof_vocabulary::UnwindStatus;
use std::ffi::c_void;

use scaleprof_profile::RawStack;
use serde::{Deserialize, Serialize};

use super::layout::{CodeObject, MAX_USER_FRAMES, Mapping, PageRows, Row, Rule};
use super::tables::CodeTables;

/// `struct native_tables` of bpf/unwind_native.c.
#[repr(C)]
struct NativeTables {
    mappings: *const Mapping,
    mapping_count: u32,
    objects: *const CodeObject,
    object_count: u32,
    pages: *const PageRows,
    page_count: u32,
    rows: *const Row,
    row_count: u32,
    rules: *const Rule,
    rule_count: u32,
    reader: *mut c_void,
    read: unsafe extern "C" fn(*mut c_void, u64, *mut u64) -> libc::c_long,
}

unsafe extern "C" {
    fn scaleprof_unwind(
        tables: *const NativeTables,
        pc: u64,
        sp: u64,
        fp: u64,
        lr: u64,
        frames: *mut u64,
        interrupted: *mut u32,
        ending: *mut u8,
    ) -> u32;
}

/// The registers that a walk begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartRegisters {
    /// Program counter.
    pub pc: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer (rbp, x29).
    pub fp: u64,
    /// Link register (x30); nothing on x86-64.
    pub lr: u64,
}

/// Reads one word of the thread's memory; none where it cannot be read.
type WordReader<'a> = &'a mut dyn FnMut(u64) -> Option<u64>;

unsafe extern "C" fn read_through(reader: *mut c_void, address: u64, word: *mut u64) -> libc::c_long {
    // SAFETY: `unwind` below passes a pointer to a live `WordReader` and a valid place for the word.
    let reader = unsafe { &mut *reader.cast::<WordReader<'_>>() };
    match reader(address) {
        Some(value) => {
            // SAFETY: as above.
            unsafe { word.write(value) };
            0
        }
        None => -1,
    }
}

/// Walks one user stack by the tables.
pub(crate) fn unwind(tables: &CodeTables, start: StartRegisters, mut read: WordReader<'_>) -> RawStack {
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let native = NativeTables {
        mappings: tables.mappings.as_ptr(),
        mapping_count: count(tables.mappings.len()),
        objects: tables.objects.as_ptr(),
        object_count: count(tables.objects.len()),
        pages: tables.pages.as_ptr(),
        page_count: count(tables.pages.len()),
        rows: tables.rows.as_ptr(),
        row_count: count(tables.rows.len()),
        rules: tables.rules.as_ptr(),
        rule_count: count(tables.rules.len()),
        reader: std::ptr::from_mut(&mut read).cast(),
        read: read_through,
    };
    let mut frames = vec![0; MAX_USER_FRAMES];
    let (mut interrupted, mut ending) = (0, 0);
    // SAFETY: all pointers come with their lengths and outlive the call; `frames` has room for all frames.
    let depth = unsafe {
        scaleprof_unwind(
            &native,
            start.pc,
            start.sp,
            start.fp,
            start.lr,
            frames.as_mut_ptr(),
            &mut interrupted,
            &mut ending,
        )
    };
    frames.truncate(depth as usize);
    RawStack {
        kernel: Vec::new(),
        user: frames,
        interrupted: interrupted_frames(interrupted),
        ending: UnwindStatus::from_number(ending).unwrap_or(UnwindStatus::NotTaken),
    }
}

/// Frame 0 is always an instruction pointer; bit i stands for frame i + 1.
pub(crate) fn interrupted_frames(bits: u32) -> Vec<u16> {
    std::iter::once(0)
        .chain((0..32).filter(|bit| bits & (1 << bit) != 0).map(|bit| bit + 1))
        .collect()
}
