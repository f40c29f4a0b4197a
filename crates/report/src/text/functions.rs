//! Call paths in few words.

use scaleprof_bundle::CallPath;

/// The `most` innermost functions that say something, innermost first.
pub(super) fn innermost(path: &CallPath, most: usize) -> Vec<String> {
    innermost_in_state(&path.state, &path.path, most)
}

/// The same of functions in that state, outermost first.
pub(super) fn innermost_in_state(state: &str, path: &[String], most: usize) -> Vec<String> {
    match state {
        "cpu" | "spin" => shortened(path.iter().rev().take(most)),
        _ => innermost_waiting(path, most),
    }
}

/// The same of a thread that is off its CPU: it is always in the kernel's scheduler and in the C library's waiting, which say
/// no more than its state does.
pub(crate) fn innermost_waiting(path: &[String], most: usize) -> Vec<String> {
    let says_nothing = |name: &&String| name.ends_with(" [k]") || waits_in_library(name);
    let found = shortened(path.iter().rev().skip_while(says_nothing).take(most));
    match found.is_empty() {
        true => shortened(path.iter().rev().take(most)),
        false => found,
    }
}

fn shortened<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.map(|name| without_parameters(name).to_owned()).collect()
}

/// Functions of the C library in which a thread waits.
fn waits_in_library(name: &str) -> bool {
    let begins = [
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
    use scaleprof_bundle::Estimate;

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

    fn path(state: &str, functions: &[&str]) -> CallPath {
        CallPath {
            state: state.into(),
            path: functions.iter().map(|name| (*name).to_owned()).collect(),
            seconds_per_txn: Estimate {
                value: 1.0,
                low: None,
                high: None,
            },
            samples: 1,
        }
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
        assert_eq!(innermost(&path("lock", &functions), 2), ["lock", "work"]);
        assert_eq!(innermost(&path("cpu", &functions), 2), ["schedule [k]", "do_futex [k]"]);
        assert_eq!(innermost(&path("other", &["a [k]", "b [k]"]), 4), ["b [k]", "a [k]"]);
    }
}
