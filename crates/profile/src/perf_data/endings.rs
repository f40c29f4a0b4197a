//! How stacks end that the kernel walked by frame pointers: it does not say whether it reached the thread's first function.

use super::resolve::Names;
use crate::RawStack;
use scaleprof_vocabulary::UnwindStatus;

/// Functions in which threads and programs begin.
const FIRST: [&str; 8] = [
    "start_thread",
    "clone",
    "clone3",
    "thread_start",
    "_start",
    "libc_start_main",
    "libc_start_call_main",
    "GI_clone3",
];

/// Marks those as complete that end in a function in which threads begin.
pub(super) fn settle(stacks: &mut [RawStack], names: &Names) {
    for stack in stacks {
        let position = stack.user.len().saturating_sub(1);
        let unsure = matches!(
            stack.ending,
            UnwindStatus::NoProgress | UnwindStatus::NoRule | UnwindStatus::TooDeep
        );
        let lookup = stack
            .user
            .last()
            .filter(|_| unsure)
            .map(|last| last.saturating_sub(u64::from(position > 0)));
        let frames = lookup.into_iter().flat_map(|lookup| names.of_place(lookup));
        if frames.filter_map(|frame| frame.function.as_deref()).any(is_first) {
            stack.ending = UnwindStatus::Complete;
        }
    }
}

fn is_first(function: &str) -> bool {
    let plain = function.split('@').next().unwrap_or(function);
    plain == "_start" || FIRST.contains(&plain.trim_start_matches('_'))
}

#[cfg(test)]
mod tests {
    use super::is_first;

    #[test]
    fn threads_and_programs_begin_in_the_c_library() {
        assert!(is_first("start_thread") && is_first("__libc_start_main@@GLIBC_2.34") && is_first("_start"));
        assert!(is_first("__clone3") && is_first("__libc_start_call_main"));
        assert!(!is_first("handle_one_connection") && !is_first("start_threads"));
    }
}
