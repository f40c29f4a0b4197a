//! Futexes of threads that were found asleep, read from the memory of their process: as `bpf/futex.h` does it for threads that go
//! to sleep.

use scaleprof_profile::FUTEX2_WAITV;

/// Operations of futex(2) for locks with priority inheritance (include/uapi/linux/futex.h): the word names its owner.
const LOCK_PI: u32 = 6;
const LOCK_PI2: u32 = 13;
/// FUTEX_TID_MASK and FUTEX_WAITERS.
const OWNER: u32 = 0x3fff_ffff;
const HAS_WAITERS: u32 = 0x8000_0000;

/// The futex of a wait whose call named `address`: who waits for many is told to wait for the first of them (struct futex_waitv).
pub(crate) fn address_of(address: u64, operation: u32, mut read: impl FnMut(u64) -> Option<u64>) -> u64 {
    match operation {
        FUTEX2_WAITV => read(address.wrapping_add(8)).unwrap_or_default(),
        _ => address,
    }
}

/// The owner of a glibc mutex, or of a futex with priority inheritance; none where it is neither, or nobody holds it.
pub(crate) fn owner(address: u64, operation: u32, mut read: impl FnMut(u64) -> Option<u64>) -> Option<u32> {
    // struct __pthread_mutex_s of nptl: lock, count, owner, and one word more.
    let word = read(address)? as u32;
    if matches!(operation, LOCK_PI | LOCK_PI2) {
        return Some(word & OWNER).filter(|owner| *owner != 0);
    }
    let owner = read(address.wrapping_add(8))? as u32;
    // 2: locked, with waiters. 1: taken by somebody who has not been told yet that others wait. A robust mutex holds its owner in
    // both places.
    let is_held = matches!(word, 1 | 2) || word == owner | HAS_WAITERS;
    (is_held && owner != 0).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory at 1000: the words of a mutex.
    fn memory(words: [u32; 4]) -> impl Fn(u64) -> Option<u64> {
        move |address| {
            let first = usize::try_from(address.checked_sub(1000)? / 4).ok()?;
            let pair = words.get(first..first + 2)?;
            Some(u64::from(pair[0]) | u64::from(pair[1]) << 32)
        }
    }

    #[test]
    fn the_owner_stands_where_the_kind_of_mutex_has_it() {
        let of = |words, operation| owner(1000, operation, memory(words));
        assert_eq!(of([2, 1, 77, 0], 0), Some(77), "a plain one");
        assert_eq!(of([1, 1, 77, 0], 0), Some(77), "taken before a waiter woke");
        assert_eq!(of([0, 1, 77, 0], 0), None, "let go");
        assert_eq!(of([HAS_WAITERS | 77, 1, 77, 0], 0), Some(77), "a robust one");
        assert_eq!(of([HAS_WAITERS | 77, 1, 5, 0], 0), None, "no mutex");
        assert_eq!(of([HAS_WAITERS | 77, 1, 0, 0], LOCK_PI), Some(77));
        assert_eq!(of([0, 0, 0, 0], LOCK_PI2), None);
        assert_eq!(owner(5000, 0, memory([2, 1, 77, 0])), None, "not to be read");
    }

    #[test]
    fn the_first_of_many_futexes_is_told() {
        assert_eq!(
            address_of(1000, FUTEX2_WAITV, memory([1, 0, 0xabc, 0x7f])),
            0x7f_0000_0abc
        );
        assert_eq!(address_of(1000, 9, memory([1, 0, 0xabc, 0x7f])), 1000);
    }
}
