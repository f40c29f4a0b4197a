//! Waits at a condition variable: nobody holds one, so it is no lock, though threads sleep in the same futex.

/// Whether a thread waits at a condition variable of the C library until another one wakes it. Who has been woken and waits for the
/// mutex again waits for a lock. Names as of glibc 2.31 to 2.41 and musl 1.2; `path` outermost function first.
pub fn waits_at_condition_variable(path: &[String]) -> bool {
    const WAITS: [&str; 6] = [
        "pthread_cond_wait",
        "pthread_cond_timedwait",
        "pthread_cond_clockwait",
        "pthread_cond_wait_common",
        "cnd_wait",
        "cnd_timedwait",
    ];
    const LOCKS: [&str; 4] = [
        "mutex_cond_lock",
        "mutex_lock",
        "lll_lock_wait",
        "lll_lock_wait_private",
    ];
    /// As deep as the C library goes.
    const INNER: usize = 6;
    let user = path.iter().rev().filter(|function| !function.ends_with(" [k]"));
    for function in user.take(INNER) {
        let bare = function.split('@').next().unwrap_or(function);
        let name = bare.trim_start_matches("__GI_").trim_start_matches('_');
        let without_family = name.trim_start_matches("pthread_");
        if LOCKS.contains(&without_family) || LOCKS.contains(&name) {
            return false;
        }
        if WAITS.contains(&name) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(path: &[&str]) -> bool {
        let path: Vec<String> = path.iter().map(|function| (*function).to_owned()).collect();
        waits_at_condition_variable(&path)
    }

    #[test]
    fn who_waits_to_be_woken_waits_at_a_condition_variable() {
        let glibc = [
            "net_real_write",
            "pthread_cond_wait",
            "__pthread_cond_wait_common",
            "__futex_abstimed_wait_common",
            "__futex_abstimed_wait_common64",
            "do_syscall_64 [k]",
            "futex_wait [k]",
        ];
        assert!(waits(&glibc));
        assert!(waits(&[
            "os_event_wait_low",
            "___pthread_cond_timedwait64@plt",
            "pthread_cond_timedwait@@GLIBC_2.3.2"
        ]));
    }

    #[test]
    fn who_was_woken_and_wants_the_mutex_waits_for_a_lock() {
        assert!(!waits(&[
            "os_cond_wait",
            "pthread_cond_wait",
            "__pthread_cond_wait_common",
            "__pthread_mutex_cond_lock",
            "__lll_lock_wait",
            "futex_wait"
        ]));
        assert!(!waits(&[
            "tc_acquire_table",
            "pthread_mutex_lock",
            "__lll_lock_wait",
            "futex_wait"
        ]));
        assert!(!waits(&["ssux_lock_impl<true>::rd_wait", "syscall", "futex_wait [k]"]));
        assert!(!waits(&[]));
    }
}
