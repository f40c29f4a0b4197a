//! How call paths are known.

use crate::word::words;

words! {
    /// How a walk through a stack ended. Only [`Complete`](UnwindStatus::Complete) stacks show their whole call path.
    ///
    /// The numbers are those of the kernel's programs, but for [`Unknown`](UnwindStatus::Unknown).
    #[derive(Default)]
    UnwindStatus {
        /// At the thread's first frame, which the unwind rules mark as the outermost.
        #[default]
        Complete: "complete",
        /// The thread has no user stack: it belongs to the kernel or is about to end.
        NoUserStack: "no_user_stack",
        /// An address lies in no mapped file (JIT code, or a file mapped a moment ago).
        NoMapping: "no_mapping",
        /// No unwind rule covers an address of a mapped file.
        NoRule: "no_rule",
        /// A rule of a kind that is not supported.
        UnsupportedRule: "unsupported_rule",
        /// The stack's memory was not to be read.
        UnreadableMemory: "unreadable_memory",
        /// It is deeper than the most frames that are kept.
        TooDeep: "too_deep",
        /// The walk did not go outwards: a broken stack or a wrong rule.
        NoProgress: "no_progress",
        /// It was not taken: the thread blocked before it was first watched, or a buffer was full.
        NotTaken: "not_taken",
        /// At the thread's first frame, but in part by frame pointers, through code that no unwind rule covers: a function may be
        /// missing on the way.
        FramePointer: "frame_pointer",
        /// Another program walked, and wrote down the names alone: nobody knows how far it came.
        Unknown: "unknown",
    }
}

impl UnwindStatus {
    /// How many of them a walk of ours may come to.
    pub const IN_KERNEL: usize = 10;

    /// What a walk of ours came to, by its number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<UnwindStatus> {
        Self::ALL[..Self::IN_KERNEL].get(usize::from(number)).copied()
    }
}

words! {
    /// What ended a wait.
    WakerKind {
        /// A thread of the same process.
        SameProcess: "same_process",
        /// A thread of another process: for a socket, the client.
        OtherProcess: "other_process",
        /// An interrupt or a kernel thread: a timer, a disk, a network card.
        Kernel: "kernel",
    }
}

words! {
    /// Where the name of a place in the machine code comes from, the most trusted of a file first.
    SymbolSource {
        /// The debug information.
        Dwarf: "dwarf" ("debug information"),
        /// The symbol table of the file or of its debug file.
        Symtab: "symtab" ("symbol table"),
        /// A list of symbols beside the file, which agrees with what the file exports.
        SymbolList: "symbol_list" ("symbol list"),
        /// What the file exports to other files, or (`write@plt`) imports from them.
        Dynsym: "dynsym" ("exported"),
        /// No name at all: the bounds of a function, known from its call frame information (`.eh_frame`).
        FrameBounds: "eh_frame" ("bounds of functions"),
        /// The kernel's own list.
        Kallsyms: "kallsyms" ("the kernel's symbols"),
        /// The list of names of code that the process made itself, `/tmp/perf-PID.map`.
        PerfMap: "perf_map" ("perf map"),
        /// Another program wrote down the name and no address.
        NameAlone: "recording",
        /// Nothing names it.
        Nothing: "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernels_programs_lead_back_to_how_a_walk_ended() {
        assert_eq!(UnwindStatus::from_number(0), Some(UnwindStatus::Complete));
        assert_eq!(UnwindStatus::from_number(9), Some(UnwindStatus::FramePointer));
        assert_eq!(UnwindStatus::from_number(10), None);
    }
}
