//! Functions that run only while the program starts or ends.
//!
//! Nearly every setting is written somewhere: where the program starts. Such a write takes no cache line from anybody. What
//! tells it apart is first who calls: a function that nobody calls but functions of the start, and whose address is nowhere
//! taken, is one of them. And second what programmers call such functions; a name is believed only as long as no other function
//! calls the one that has it (`buf_page_init` runs all the time).

use foldhash::{HashMap, HashSet};

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
/// somebody changes a setting. `name` gives a function's name without parameters by its place; it need not for those whose name
/// [tells nothing](may_tell).
///
/// It is a judgement, not a proof: calls by pointer are not seen, only that a function's address is taken.
pub fn start_and_stop(accesses: &DataAccesses, name: impl Fn(usize) -> Option<String>) -> HashSet<usize> {
    let places: HashMap<u64, usize> = accesses
        .functions
        .iter()
        .zip(0..)
        .map(|(function, place)| (function.function.start, place))
        .collect();
    let mut is_called = vec![false; accesses.functions.len()];
    for called in accesses.functions.iter().flat_map(|function| &function.calls) {
        if let Some(known) = places.get(called).and_then(|place| is_called.get_mut(*place)) {
            *known = true;
        }
    }
    let names: Vec<Likely> = (0..is_called.len())
        .map(|place| name(place).map_or(Likely::Unknown, |name| likely(&name)))
        .collect();
    let likely = |place: usize| names.get(place).copied().unwrap_or(Likely::Unknown);
    let is_pointed_at = |place: usize| {
        let function = accesses.functions.get(place);
        function.is_some_and(|function| accesses.pointed_at.binary_search(&function.function.start).is_ok())
    };
    let mut found: HashSet<usize> = (0..is_called.len())
        .filter(|place| match likely(*place) {
            Likely::Surely | Likely::ByName => true,
            Likely::Unknown => !is_pointed_at(*place) && is_called.get(*place) == Some(&true),
        })
        .collect();
    // What somebody else calls falls out, and all that it calls in turn.
    let mut out: Vec<usize> = (0..is_called.len()).filter(|place| !found.contains(place)).collect();
    while let Some(caller) = out.pop() {
        let called = accesses
            .functions
            .get(caller)
            .into_iter()
            .flat_map(|function| &function.calls);
        for place in called.filter_map(|called| places.get(called).copied()) {
            if likely(place) != Likely::Surely && found.remove(&place) {
                out.push(place);
            }
        }
    }
    found
}

/// How words begin of which one is in every name that says something.
const HINTS: [&str; 20] = [
    "boot",
    "clean",
    "constructor",
    "deinit",
    "destroy",
    "destructor",
    "disable",
    "enable",
    "exit",
    "finalize",
    "fini",
    "free",
    "global",
    "init",
    "main",
    "one_option",
    "shutdown",
    "start",
    "teardown",
    "up",
];

/// Whether a function's name may say that it runs only while the program starts or ends; by its name as the linker knows it, in which all
/// its words stand as they were written, each behind something that is no letter.
pub fn may_tell(linkage_name: &str) -> bool {
    let name = linkage_name.as_bytes();
    let mut is_in_word = false;
    name.iter().enumerate().any(|(place, letter)| {
        let begins = !is_in_word && letter.is_ascii_alphabetic();
        is_in_word = letter.is_ascii_alphabetic();
        begins && is_hint(name.get(place..).unwrap_or_default())
    })
}

fn is_hint(word: &[u8]) -> bool {
    let letter = word.first().map(u8::to_ascii_lowercase);
    let mut of_letter = HINTS.iter().filter(|hint| hint.as_bytes().first() == letter.as_ref());
    of_letter.any(|hint| {
        let begin = word.get(..hint.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(hint.as_bytes()))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likely {
    Surely,
    ByName,
    Unknown,
}

fn likely(name: &str) -> Likely {
    // What the compiler laid apart or copied is the same function: `mysqld_main.cold`.
    let whole = name.split('.').next().unwrap_or(name);
    if WHOLE_NAMES.contains(&whole) || BEGINNINGS.iter().any(|begin| name.starts_with(begin)) {
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
        let pointed_at: std::collections::BTreeSet<u64> = pointed_at.iter().map(|place| place * 16).collect();
        DataAccesses {
            functions: functions.collect(),
            pointed_at: pointed_at.into_iter().collect(),
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

    #[test]
    fn a_name_that_says_something_is_not_passed_over_as_the_linker_knows_it() {
        let tell = [
            "main",
            "_start",
            "mysqld_main.cold",
            "_Z11mysqld_mainiPPc",
            "_ZN4THD7cleanupEv",
            "_ZN3Log8clean_upEv",
            "_ZL20mysqld_get_one_optioniPK9my_optionPc",
            "_ZL8opt_initv.part.0",
            "_ZN4Pool9init_funcEv",
            "_GLOBAL__sub_I_sql_class.cc",
            "_Z41__static_initialization_and_destruction_0ii",
            "__cxx_global_var_init",
            "innodb_io_capacity_update",
        ];
        let words = LAST_WORDS.iter().chain(&WHOLE_NAMES).chain(&BEGINNINGS);
        for name in words.chain(&tell) {
            assert!(may_tell(name), "{name}");
        }
        for name in ["_ZN4THD5queryEv", "row_search_mvcc", "_ZN4Item3runEv", "lookup", ""] {
            assert!(!may_tell(name), "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_left_calls_nothing_that_others_call_and_is_all_of_that(
            calls in proptest::collection::vec(proptest::collection::vec(0..12_u64, 0..4), 12),
            pointed_at in proptest::collection::vec(0..12_u64, 0..4),
        ) {
            let names = ["main", "log_init", "a", "b", "c", "d", "e", "f", "g", "h", "page_free", "i"];
            let program = program(&calls.iter().map(Vec::as_slice).collect::<Vec<_>>(), &pointed_at);
            let found = start_and_stop(&program, |place| Some(names[place].to_owned()));
            // One after the other is taken out while anybody else calls it.
            let mut left: HashSet<usize> = (0..12_usize)
                .filter(|place| {
                    let called = calls.iter().flatten().any(|called| *called == *place as u64);
                    likely(names[*place]) != Likely::Unknown || (called && !pointed_at.contains(&(*place as u64)))
                })
                .collect();
            while let Some(out) = left.iter().copied().find(|place| {
                let is_caller = |caller: &usize| calls[*caller].contains(&(*place as u64)) && caller != place;
                likely(names[*place]) != Likely::Surely && (0..12).any(|caller| is_caller(&caller) && !left.contains(&caller))
            }) {
                left.remove(&out);
            }
            proptest::prop_assert_eq!(found, left);
        }
    }
}
