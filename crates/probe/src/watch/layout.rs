//! What the BPF programs and this side share, as `bpf/layout.h` has it. Sizes are compared when it is compiled.

use scaleprof_vocabulary::ThreadState;
use serde::{Deserialize, Serialize};

/// The most frames of a stack in user space.
pub(crate) const MAX_USER_FRAMES: usize = 128;
/// The most frames of a stack in the kernel.
pub(crate) const MAX_KERNEL_FRAMES: usize = 64;
/// Unwind rows in one element of the table `rows`.
pub(crate) const ROWS_OF_CHUNK: usize = 1024;
/// Mappings in one half of the table `mappings`.
pub(crate) const MAX_MAPPINGS: usize = 2048;
/// In place of a mapped file that has no unwind rules.
pub(crate) const NO_OBJECT: u32 = u32::MAX;
/// Mapped files.
pub(crate) const MAX_OBJECTS: usize = 1024;
/// Numbers of slots in one element of the table `slot_of_thread`.
pub(crate) const THREADS_OF_GROUP: u32 = 2;
/// System calls that have a class.
pub(crate) const MAX_CALLS: usize = 512;

/// Data that the kernel and this program both see: any bytes are a valid value.
///
/// # Safety
/// The type must be `repr(C)`, without padding that matters, and valid for any bytes.
pub(crate) unsafe trait Plain: Copy + Default {}

macro_rules! plain {
    ($($type:ty = $size:expr),* $(,)?) => {
        $(
            // SAFETY: `repr(C)`, integers only.
            unsafe impl Plain for $type {}
            const _: () = assert!(size_of::<$type>() == $size);
        )*
    };
}

/// Unwind rows of one 64 KiB page of code.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageRows {
    pub first: u32,
    pub count: u32,
}

/// One mapped file's tables.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CodeObject {
    pub first_page: u32,
    pub page_count: u32,
    pub pages: u32,
    pub rules: u32,
}

/// One executable mapping.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mapping {
    pub start: u64,
    pub end: u64,
    pub bias: u64,
    pub object: u32,
    pub reserved: u32,
}

/// One unwind row; `binary::unwind::UnwindRow` without its type.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Row {
    pub pc_low: u16,
    pub rule: u16,
}

/// One unwind rule; `binary::unwind::UnwindRule` without its types.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub cfa: u8,
    pub fp: u8,
    pub ra: u8,
    pub reserved: u8,
    pub cfa_offset: i32,
    pub fp_offset: i32,
    pub ra_offset: i32,
}

/// What may change while the programs run.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Control {
    pub generation: u32,
    pub mapping_count: [u32; 2],
    pub enabled: u32,
    pub off_cpu_interval: u64,
    pub epoch: u32,
    /// One of [`resting`].
    pub resting: u32,
    pub rested_from: u64,
    pub queue_clock: i64,
    pub fights_epoch: u32,
    /// One of [`fights`].
    pub fights: u32,
}

/// One thread.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ThreadSlot {
    pub thread: u32,
    pub version: u32,
    pub state: u8,
    pub left_as: u8,
    pub sampled: u8,
    pub waker_kind: u8,
    pub cpu: u16,
    pub ended: u8,
    pub from_start: u8,
    pub left_at: u64,
    pub entered_at: u64,
    pub runnable_at: u64,
    pub ran: u64,
    pub queued: u64,
    pub uncharged: i32,
    /// A thread that waits for this one, which ran when that began.
    pub wanted_by: u32,
    pub nanoseconds: [u64; ThreadState::IN_KERNEL],
    pub sleep: u64,
    pub pc: u64,
    pub sp: u64,
    pub fp: u64,
    pub off_average: [u32; ThreadState::IN_KERNEL],
    pub preemptions: u64,
    pub migrations: u64,
    pub net_waits: u64,
    pub fault_waits: u64,
    pub not_its_own: u64,
    pub waker: u32,
    pub probability: u32,
    pub started: u64,
    pub ended_at: u64,
    pub name: [u8; 16],
    pub kernel_lock: u64,
    pub kernel_lock_kind: u32,
    pub epoch: u32,
    pub unseen: u64,
    pub unseen_ran: u64,
    pub looked_at: u64,
    pub looked_ran: u64,
    pub looked_queued: u64,
    pub looked_switches: u64,
    pub looked_preemptions: u64,
    pub first_voluntary: u64,
    pub first_preemptions: u64,
    pub seen_switches: u64,
    pub lock: u64,
    pub lock_operation: u32,
    pub kernel_lock_epoch: u32,
    #[cfg(target_arch = "aarch64")]
    pub lr: u64,
    #[cfg(target_arch = "aarch64")]
    pub unused: [u64; 7],
}

impl ThreadSlot {
    /// The register that holds the return address of a function that calls nobody; 0 on processors that have none.
    pub(crate) fn link_register(&self) -> u64 {
        #[cfg(target_arch = "aarch64")]
        return self.lr;
        #[cfg(not(target_arch = "aarch64"))]
        0
    }
}

/// Head of a record; its addresses follow.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RecordHead {
    pub kind: u8,
    pub state: u8,
    pub ending: u8,
    pub waker_kind: u8,
    pub thread: u32,
    pub cpu: u32,
    pub other: u32,
    pub time: u64,
    pub sleep: u64,
    pub runnable_at: u64,
    pub lock: u64,
    pub lock_operation: u32,
    pub probability: u32,
    pub kernel_frames: u16,
    pub user_frames: u16,
    pub interrupted: u32,
}

plain! {
    PageRows = 8,
    CodeObject = 16,
    Mapping = 32,
    Row = 4,
    Rule = 16,
    Control = 56,
    ThreadSlot = if cfg!(target_arch = "aarch64") { 448 } else { 384 },
    RecordHead = 64,
}

/// `UNKNOWN_CPU` of `bpf/layout.h`.
pub(crate) const UNKNOWN_CPU: u16 = 0xffff;

/// `enum fights` of `bpf/layout.h`.
pub(crate) mod fights {
    pub(crate) const UNSEEN: u32 = 0;
    pub(crate) const SEEN: u32 = 1;
    pub(crate) const GET_READY: u32 = 2;
}

/// The last of `enum ended` of `bpf/layout.h`: nothing more of the thread is to come.
pub(crate) const ENDED: u8 = 3;

/// `enum resting` of `bpf/layout.h`.
pub(crate) mod resting {
    pub(crate) const WATCHES: u32 = 0;
    pub(crate) const RESTS: u32 = 1;
    pub(crate) const GETS_READY: u32 = 2;
}

/// In `lock_operation`: the lock is one of the kernel's.
pub(crate) const KERNEL_LOCK: u32 = 0x8000_0000;
pub(crate) const KERNEL_LOCK_UNSEEN: u32 = 0x4000_0000;

/// Kinds of records.
pub(crate) mod record_kind {
    pub(crate) const CPU: u8 = 1;
    pub(crate) const SLEEP: u8 = 2;
    pub(crate) const WAKE: u8 = 3;
    pub(crate) const OWNER: u8 = 4;
    pub(crate) const WAKER: u8 = 5;
}

/// What the programs count, by its place in `counts`.
pub(crate) mod counted {
    pub(crate) const CPU_STACKS: u32 = 0;
    pub(crate) const SLEEP_STACKS: u32 = 1;
    pub(crate) const OTHER_STACKS: u32 = 2;
    pub(crate) const RING_FULL: u32 = 3;
    pub(crate) const NO_SLOT: u32 = 4;
    pub(crate) const NO_SCRATCH: u32 = 5;
    pub(crate) const FRAMES: u32 = 6;
    pub(crate) const FIGHTS: u32 = 7;
    pub(crate) const SLEEPING_FIGHTS: u32 = 8;
}
