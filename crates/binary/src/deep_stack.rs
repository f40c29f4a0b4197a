//! Room for calls that go deep.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Does something that may take so many bytes of stack, on another where this one has less left.
///
/// # Errors
/// There is not so much memory to be had, as under `ulimit -v` or where the kernel promises no more than it has
/// (`vm.overcommit_memory=2`): nothing was done.
pub(crate) fn with_stack<T>(bytes: usize, work: impl FnOnce() -> T) -> Result<T, NoRoom> {
    let is_there = stacker::remaining_stack().is_some_and(|left| left >= bytes);
    match is_there || can_be_mapped(bytes) {
        true => Ok(stacker::maybe_grow(bytes, bytes, work)),
        false => Err(NoRoom),
    }
}

/// There is no memory for the stack.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// Whether the kernel gives so much: the library that changes stacks panics where it does not.
fn can_be_mapped(bytes: usize) -> bool {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping, wherever the kernel likes, that nobody has heard of when it goes.
    unsafe {
        let mapped = mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE);
        mapped.is_ok_and(|start| munmap(start, bytes).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_is_refused_and_what_is_there_is_used() {
        assert!(with_stack(usize::MAX / 2, || ()).is_err());
        assert_eq!(with_stack(64 << 20, || 7).ok(), Some(7));
    }
}
