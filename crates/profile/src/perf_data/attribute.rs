//! The events of a recording: `struct perf_event_attr` (include/uapi/linux/perf_event.h).

use super::cursor::Cursor;
use crate::event_name::plain;
use crate::import::CallPaths;

/// `sample_type`: what a sample holds, in the order in which it stands there.
pub(super) mod field {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// Types of events.
const SOFTWARE: u32 = 1;
const HARDWARE: u32 = 0;
pub(super) const TRACEPOINT: u32 = 2;
/// Software events that tick with the CPU time of a thread: `cpu-clock` and `task-clock`.
const CLOCKS: [u64; 2] = [0, 1];
/// Software event that `perf record --off-cpu` writes its sums as.
const BPF_OUTPUT: u64 = 10;

/// An event that was recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) kind: u32,
    pub(super) config: u64,
    /// Events a sample, or samples a second where `in_hertz`.
    pub(super) period_or_frequency: u64,
    pub(super) in_hertz: bool,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    pub(super) branch_sample_type: u64,
    pub(super) registers: u64,
    /// The most bytes of the user's stack that are copied with a sample.
    pub(super) copied_bytes: u32,
    /// Whether the kernel was left out.
    pub(super) without_kernel: bool,
    /// Whether records that are no samples end in thread, time and number too.
    pub(super) ids_everywhere: bool,
    /// The numbers under which its samples stand, one a CPU or thread.
    pub(super) ids: Vec<u64>,
    /// As `perf record -e` had it, where the recording tells.
    pub(super) name: Option<String>,
}

impl Attribute {
    /// Reads one; the cursor is behind it then.
    pub(super) fn read(cursor: &mut Cursor<'_>, length: usize) -> Option<Attribute> {
        let mut fields = Cursor::new(cursor.take(length)?);
        let kind = fields.u32()?;
        let _size = fields.u32()?;
        let mut attribute = Attribute {
            kind,
            config: fields.u64()?,
            period_or_frequency: fields.u64()?,
            sample_type: fields.u64()?,
            read_format: fields.u64()?,
            ..Attribute::default()
        };
        let flags = fields.u64()?;
        attribute.without_kernel = flags & (1 << 5) != 0;
        attribute.in_hertz = flags & (1 << 10) != 0;
        attribute.ids_everywhere = flags & (1 << 18) != 0;
        // The first version of the structure ends here; what it lacks is 0.
        let mut tail = || {
            fields.take(24)?;
            attribute.branch_sample_type = fields.u64()?;
            attribute.registers = fields.u64()?;
            attribute.copied_bytes = fields.u32()?;
            Some(())
        };
        let _ = tail();
        Some(attribute)
    }

    pub(super) fn has(&self, field: u64) -> bool {
        self.sample_type & field != 0
    }

    /// Where its number stands in a sample, in numbers of 8 bytes; none where it stands in none.
    pub(super) fn place_of_id(&self) -> Option<usize> {
        if self.has(field::IDENTIFIER) {
            return Some(0);
        }
        let before = [field::IP, field::TID, field::TIME, field::ADDR];
        self.has(field::ID)
            .then(|| before.iter().filter(|field| self.has(**field)).count())
    }

    /// Whether the last branches that it records are the calls that did not return yet.
    pub(super) fn has_branches_as_stack(&self) -> bool {
        /// PERF_SAMPLE_BRANCH_CALL_STACK.
        const CALL_STACK: u64 = 1 << 11;
        self.has(field::BRANCH_STACK) && self.branch_sample_type & CALL_STACK != 0
    }

    /// How the callers of its samples were found.
    pub(super) fn call_paths(&self) -> CallPaths {
        if self.has(field::STACK_USER) {
            CallPaths::CopiedStacks { cut_at: None }
        } else if self.has_branches_as_stack() {
            CallPaths::LastBranches
        } else if self.has(field::CALLCHAIN) {
            CallPaths::FramePointers
        } else {
            CallPaths::NoCallers
        }
    }

    /// Whether these are jumps, of whatever kind: they tell nothing of callers.
    pub(super) fn has_jumps(&self) -> bool {
        self.has(field::BRANCH_STACK) && !self.has_branches_as_stack()
    }

    /// Whether the weights of its samples are CPU time already, nanoseconds.
    pub(super) fn counts_nanoseconds(&self) -> bool {
        self.kind == SOFTWARE && CLOCKS.contains(&self.config)
    }

    /// Whether it comes with the work of a CPU, so that its samples say where CPU time goes.
    pub(super) fn tells_cpu_time(&self) -> bool {
        // Raw events of a CPU (4) and those of named units (from 6 on) are cycles under other names mostly, or so rare that
        // somebody wanted them.
        let cycles = self.kind == HARDWARE && matches!(self.config & 0xffff_ffff, 0 | 1 | 9);
        self.counts_nanoseconds() || cycles || (self.kind >= 4 && self.kind != 5)
    }

    /// Whether its samples are waits, with their length as the period.
    pub(super) fn is_off_cpu(&self) -> bool {
        self.name.as_deref().is_some_and(|name| name.starts_with("offcpu-time"))
            || (self.kind == SOFTWARE && self.config == BPF_OUTPUT && self.name.is_none())
    }

    /// Whether its samples are threads that leave their CPUs.
    pub(super) fn is_switch(&self) -> bool {
        self.kind == TRACEPOINT && self.name.as_deref() == Some(super::switches::NAME)
    }

    /// Whether it is a place in the kernel, or in a program, that somebody passes.
    pub(super) fn is_tracepoint(&self) -> bool {
        self.kind == TRACEPOINT
    }

    /// Whether it is perf's own, for records that are no samples.
    pub(super) fn is_dummy(&self) -> bool {
        self.words().starts_with("dummy")
    }

    /// Whether its samples are threads that are woken.
    pub(super) fn is_wake_up(&self) -> bool {
        let name = self.name.as_deref().unwrap_or_default();
        self.kind == TRACEPOINT && super::switches::WAKE_UPS.contains(&name)
    }

    /// Whether its samples are calls of futex(2).
    pub(super) fn is_futex_call(&self) -> bool {
        self.kind == TRACEPOINT && self.name.as_deref() == Some(super::futexes::ENTER)
    }

    /// Whether its samples are the ends of such calls.
    pub(super) fn is_futex_end(&self) -> bool {
        self.kind == TRACEPOINT && self.name.as_deref() == Some(super::futexes::EXIT)
    }

    /// Its name, made up where the recording tells none.
    pub(super) fn words(&self) -> String {
        const OF_SOFTWARE: [&str; 11] = [
            "cpu-clock",
            "task-clock",
            "page-faults",
            "context-switches",
            "cpu-migrations",
            "minor-faults",
            "major-faults",
            "alignment-faults",
            "emulation-faults",
            "dummy",
            "bpf-output",
        ];
        const OF_HARDWARE: [&str; 10] = [
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
            "bus-cycles",
            "stalled-cycles-frontend",
            "stalled-cycles-backend",
            "ref-cycles",
        ];
        let place = usize::try_from(self.config & 0xffff_ffff).unwrap_or(usize::MAX);
        let known = match self.kind {
            SOFTWARE => OF_SOFTWARE.get(place),
            HARDWARE => OF_HARDWARE.get(place),
            _ => None,
        };
        match (&self.name, known) {
            (Some(name), _) => name.clone(),
            (None, Some(name)) => (*name).to_owned(),
            (None, None) => format!("event {}:{:#x}", self.kind, self.config),
        }
    }

    /// Whether it is called so, with or without what follows the colon (`cycles` for `cycles:u`) and the kind of cores.
    pub(super) fn is_called(&self, asked: &str) -> bool {
        let name = self.words();
        name == asked || (self.kind != TRACEPOINT && plain(&name).split(':').next() == Some(asked))
    }
}
