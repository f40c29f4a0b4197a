//! Call paths in few words.

use scaleprof_vocabulary::ThreadState;

/// Several in few words each, in their order: those that would read alike, such as waits in the same plumbing of the server, go on to the
/// first function in which they differ.
pub(super) fn apart<'a>(paths: impl Iterator<Item = (ThreadState, &'a [String])>, most: usize) -> Vec<String> {
    let all: Vec<Vec<String>> = paths
        .map(|(state, path)| innermost_in_state(state, path, usize::MAX))
        .collect();
    let few = |path: &'_ [String]| path.iter().take(most).cloned().collect::<Vec<String>>().join(" < ");
    let words: Vec<String> = all.iter().map(|path| few(path)).collect();
    let told = all.iter().zip(&words).enumerate().map(|(at, (path, own))| {
        let alike = all.iter().zip(&words).enumerate();
        let alike = alike.filter(|(other, (_, words))| *other != at && *words == own);
        let common = alike.map(|(_, (other, _))| path.iter().zip(other).take_while(|(one, two)| one == two).count());
        match common.max().and_then(|common| Some((common, path.get(common)?))) {
            Some((common, differs)) if common == most => format!("{own} < {differs}"),
            Some((_, differs)) => format!(
                "{} < \u{2026} < {differs}",
                few(path.get(..most.saturating_sub(1)).unwrap_or(path))
            ),
            None => own.clone(),
        }
    });
    told.collect()
}

/// The `most` innermost functions that say something of a path in that state, outermost first: innermost first.
pub(super) fn innermost_in_state(state: ThreadState, path: &[String], most: usize) -> Vec<String> {
    match state.is_on_cpu() {
        true => shortened(path.iter().rev().take(most)),
        false => innermost_waiting(path, most),
    }
}

/// The same of a thread that is off its CPU: it is always in the kernel's scheduler and in the C library's waiting, which say
/// no more than its state does.
pub(crate) fn innermost_waiting(path: &[String], most: usize) -> Vec<String> {
    let says_nothing = |name: &&String| name.ends_with(" [k]") || waits_in_library(name);
    let found = shortened(path.iter().rev().skip_while(says_nothing).take(most));
    // A stack that ends in the library has only what stands for its missing callers outside of it.
    match found.iter().all(|name| name.starts_with("[incomplete")) {
        true => shortened(path.iter().rev().take(most)),
        false => found,
    }
}

fn shortened<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.map(|name| without_parameters(name).to_owned()).collect()
}

/// Functions of the C library in which a thread waits. Those of glibc 2.41 have no names without its debug file, and lie between every wait
/// and the kernel; before 2.34 the library is two files, whose names hold the version.
fn waits_in_library(name: &str) -> bool {
    let begins = [
        "libc.so.6!",
        "libc-2.",
        "libpthread-2.",
        "__syscall_cancel",
        "__internal_syscall_cancel",
        "__lll_",
        "__pthread_",
        "___pthread_",
        "pthread_",
        "__futex_",
        "__GI_",
        "futex_",
        "syscall",
    ];
    begins.iter().any(|begin| name.starts_with(begin))
}

/// `row_search(int, char*) const` is `row_search`: C++ overloads differ in what a reader of few words can spare.
pub(super) fn without_parameters(name: &str) -> &str {
    let trimmed = name.strip_suffix(" const").unwrap_or(name);
    if !trimmed.ends_with(')') {
        return name;
    }
    let mut depth = 0;
    for (at, letter) in trimmed.char_indices().rev() {
        match letter {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let rest = trimmed[..at].trim_end();
            return if rest.is_empty() || rest.ends_with("operator") || rest.ends_with("::") {
                name
            } else {
                rest
            };
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_go_and_names_stay() {
        for (name, short) in [
            ("main", "main"),
            ("row_search(int, char*) const", "row_search"),
            ("f(void (*)(int))", "f"),
            ("(anonymous namespace)::f(int)", "(anonymous namespace)::f"),
            ("A::operator()(int)", "A::operator()"),
            ("A::operator()", "A::operator()"),
            ("A::(anonymous)", "A::(anonymous)"),
            ("broken)", "broken)"),
            ("schedule [k]", "schedule [k]"),
        ] {
            assert_eq!(without_parameters(name), short);
        }
    }

    fn innermost(state: ThreadState, functions: &[&str], most: usize) -> Vec<String> {
        let functions: Vec<String> = functions.iter().map(|name| (*name).to_owned()).collect();
        innermost_in_state(state, &functions, most)
    }

    #[test]
    fn paths_that_read_alike_go_on_to_where_they_differ() {
        let path = |functions: &[&str]| functions.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let paths = [
            path(&["undo", "mutex_enter", "sync_wait", "os_wait"]),
            path(&["commit", "mutex_enter", "sync_wait", "os_wait"]),
            path(&["row", "latch", "sync_wait", "os_wait"]),
            path(&["work"]),
        ];
        let told = apart(paths.iter().map(|path| (ThreadState::Lock, path.as_slice())), 2);
        assert_eq!(
            told,
            [
                "os_wait < \u{2026} < undo",
                "os_wait < \u{2026} < commit",
                "os_wait < sync_wait < latch",
                "work"
            ]
        );
    }

    #[test]
    fn a_blocked_thread_is_named_by_what_it_did_not_by_how_it_blocks() {
        let functions = [
            "main",
            "work(int)",
            "lock",
            "pthread_mutex_lock",
            "__lll_lock_wait",
            "do_futex [k]",
            "schedule [k]",
        ];
        assert_eq!(innermost(ThreadState::Lock, &functions, 2), ["lock", "work"]);
        assert_eq!(
            innermost(ThreadState::Cpu, &functions, 2),
            ["schedule [k]", "do_futex [k]"]
        );
        let glibc_2_41 = ["main", "log_flush", "fdatasync"];
        let unnamed = ["libc.so.6!fun_8f3c0", "libc.so.6!fun_8f340", "libc.so.6!fun_9a700"];
        let named = ["__syscall_cancel", "__internal_syscall_cancel", "__syscall_cancel_arch"];
        for within in [unnamed, named] {
            let path = [glibc_2_41, within].concat();
            assert_eq!(innermost(ThreadState::Io, &path, 2), ["fdatasync", "log_flush"]);
        }
        assert_eq!(
            innermost(ThreadState::Other, &["a [k]", "b [k]"], 4),
            ["b [k]", "a [k]"]
        );
        let ends_there = ["[incomplete: no_progress]", "__lll_lock_wait"];
        assert_eq!(
            innermost(ThreadState::Lock, &ends_there, 4),
            ["__lll_lock_wait", "[incomplete: no_progress]"]
        );
    }
}
