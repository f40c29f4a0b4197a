//! Functions that run only while the program starts or ends.
//!
//! Nearly every setting is written somewhere: where the program starts. Such a write takes no cache line from anybody. What
//! tells it apart is first who calls: a function that nobody calls but functions of the start, and whose address is nowhere
//! taken, is one of them. And second what programmers call such functions; a name is believed only as long as no other function
//! calls the one that has it (`buf_page_init` runs all the time).

use std::collections::{HashMap, HashSet};

use super::DataAccesses;

/// What the last word of such a function's name is.
const LAST_WORDS: [&str; 20] = [
    "boot",
    "cleanup",
    "constructor",
    "deinit",
    "deinitialize",
    "destroy",
    "destructor",
    "disable",
    "enable",
    "exit",
    "fini",
    "finalize",
    "free",
    "init",
    "initialise",
    "initialize",
    "shutdown",
    "startup",
    "teardown",
    "up",
];
/// Programs begin and end with these.
const WHOLE_NAMES: [&str; 6] = [
    "main",
    "mysqld_main",
    "_start",
    "_init",
    "_fini",
    "__static_initialization_and_destruction_0",
];
/// How compilers call what runs before `main` and after it.
const BEGINNINGS: [&str; 4] = ["_GLOBAL__", "global constructors", "global destructors", "__cxx_global"];

/// The places, among [`DataAccesses::functions`], of the functions that run only while the program starts or ends, or while
/// somebody changes a setting. `name` gives a function's name without parameters by its place.
///
/// It is a judgement, not a proof: calls by pointer are not seen, only that a function's address is taken.
pub fn start_and_stop(accesses: &DataAccesses, name: impl Fn(usize) -> Option<String>) -> HashSet<usize> {
    let places: HashMap<u64, usize> = accesses
        .functions
        .iter()
        .zip(0..)
        .map(|(function, place)| (function.function.start, place))
        .collect();
    let mut callers: Vec<HashSet<usize>> = vec![HashSet::new(); accesses.functions.len()];
    for (caller, function) in accesses.functions.iter().enumerate() {
        for called in &function.calls {
            if let Some(known) = places.get(called).and_then(|place| callers.get_mut(*place)) {
                known.insert(caller);
            }
        }
    }
    let names: Vec<Likely> = (0..callers.len())
        .map(|place| name(place).map_or(Likely::Unknown, |name| likely(&name)))
        .collect();
    let likely = |place: usize| names.get(place).copied().unwrap_or(Likely::Unknown);
    let is_pointed_at = |place: usize| {
        let function = accesses.functions.get(place);
        function.is_some_and(|function| accesses.pointed_at.contains(&function.function.start))
    };
    let mut found: HashSet<usize> = (0..callers.len())
        .filter(|place| match likely(*place) {
            Likely::Surely => true,
            Likely::ByName => true,
            Likely::Unknown => !is_pointed_at(*place) && callers.get(*place).is_some_and(|callers| !callers.is_empty()),
        })
        .collect();
    // What somebody else calls, and all that it calls, falls out.
    loop {
        let before = found.len();
        let out: Vec<usize> = found
            .iter()
            .copied()
            .filter(|place| likely(*place) != Likely::Surely)
            .filter(|place| {
                let callers = callers.get(*place).into_iter().flatten();
                callers
                    .into_iter()
                    .any(|caller| caller != place && !found.contains(caller))
            })
            .collect();
        for place in out {
            found.remove(&place);
        }
        if found.len() == before {
            return found;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likely {
    Surely,
    ByName,
    Unknown,
}

fn likely(name: &str) -> Likely {
    if WHOLE_NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin)) {
        return Likely::Surely;
    }
    let method = name.rsplit("::").next().unwrap_or(name);
    let plain = method.split(['.', ' ', '<']).next().unwrap_or(method);
    let plain = ["_func", "_low", "_fn", "_impl"]
        .iter()
        .fold(plain, |plain, end| plain.strip_suffix(end).unwrap_or(plain));
    let last = plain.rsplit('_').next().unwrap_or(plain).to_ascii_lowercase();
    // The functions that a server calls when somebody sets a variable: `innodb_io_capacity_update`.
    let changes_setting = !name.contains("::") && last == "update";
    // What MySQL's option parser calls for each option.
    let takes_option = name.ends_with("get_one_option");
    let is_named = LAST_WORDS.contains(&last.as_str()) && (last != "up" || plain.ends_with("clean_up"));
    match is_named || changes_setting || takes_option {
        true => Likely::ByName,
        false => Likely::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::super::FunctionAccesses;
    use super::*;

    /// Functions of 16 bytes, each with those that it calls.
    fn program(calls: &[&[u64]], pointed_at: &[u64]) -> DataAccesses {
        let functions = calls.iter().zip(0_u64..);
        let functions = functions.map(|(calls, place)| FunctionAccesses {
            function: place * 16..place * 16 + 16,
            accesses: Vec::new(),
            calls: calls.iter().map(|place| place * 16).collect(),
            addresses: Vec::new(),
        });
        DataAccesses {
            functions: functions.collect(),
            pointed_at: pointed_at.iter().map(|place| place * 16).collect(),
        }
    }

    fn found(calls: &[&[u64]], pointed_at: &[u64], names: &[&str]) -> Vec<String> {
        let program = program(calls, pointed_at);
        let found = start_and_stop(&program, |place| names.get(place).map(|name| (*name).to_owned()));
        let found = names.iter().zip(0..).filter(|(_, place)| found.contains(place));
        found.map(|(name, _)| (*name).to_owned()).collect()
    }

    #[test]
    fn what_only_the_start_calls_belongs_to_it() {
        let names = ["main", "reads_settings", "parses", "serves", "thread"];
        // main calls reads_settings, which calls parses; serves is called by a thread that is started by pointer.
        let calls: [&[u64]; 5] = [&[1], &[2], &[], &[], &[3]];
        assert_eq!(found(&calls, &[4], &names), ["main", "reads_settings", "parses"]);
        // A thread that parses as well takes it out.
        let calls: [&[u64]; 5] = [&[1], &[2], &[], &[], &[3, 2]];
        assert_eq!(found(&calls, &[4], &names), ["main", "reads_settings"]);
    }

    #[test]
    fn a_name_is_believed_until_somebody_else_calls() {
        let names = ["log_init", "thread", "page_init", "io_update", "Item::update"];
        let calls: [&[u64]; 5] = [&[], &[2], &[], &[], &[]];
        assert_eq!(found(&calls, &[0, 1, 3, 4], &names), ["log_init", "io_update"]);
    }
}
