//! How the allocator asks the system for memory while a recording is read.

/// Asks for memory in larger pieces: threads that need a little of it again and again wait for each other in the system.
pub(crate) fn ask_for_more_at_once() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it changes a number that the allocator goes by; one that is refused leaves it as it was.
    unsafe {
        libc::mallopt(libc::M_TOP_PAD, 1 << 20)
    };
}
