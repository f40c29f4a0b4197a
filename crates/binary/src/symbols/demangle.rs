//! C++ (and Rust) names as people write them.

use cpp_demangle::{DemangleOptions, Symbol};
use std::fmt::Write as _;

use crate::long_names::{BoundedText, LINKAGE, SHOWN, cut, cut_owned};

/// Template arguments longer than this are left out of short names.
const ARGUMENTS: usize = 24;

/// A name in two lengths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Demangled {
    /// Without parameter types and long template arguments.
    pub(crate) name: String,
    /// With all of it.
    pub(crate) full_name: String,
}

/// A name of a symbol as people write it, without parameter types and long template arguments; what is not mangled stays as it is.
pub fn readable_name(linkage_name: &str) -> String {
    demangle(linkage_name).name
}

/// Demangles a linkage name; what is not mangled stays as it is.
///
/// Compilers add what they made of a function behind a dot (`.cold`, `.part.0`), and linkers `@plt`; both are kept.
pub(crate) fn demangle(linkage_name: &str) -> Demangled {
    let linkage_name = cut(linkage_name, LINKAGE);
    let (mangled, stub) = match linkage_name.find('@') {
        Some(at) => linkage_name.split_at(at),
        None => (linkage_name, ""),
    };
    let mut names = demangled(mangled).unwrap_or_else(|| Demangled {
        name: leading_names(mangled).unwrap_or_else(|| mangled.to_owned()),
        full_name: mangled.to_owned(),
    });
    names.name.push_str(stub);
    names.full_name.push_str(stub);
    Demangled {
        name: cut_owned(names.name, SHOWN),
        full_name: cut_owned(names.full_name, SHOWN),
    }
}

fn demangled(mangled: &str) -> Option<Demangled> {
    // Rust's older names look like those of C++, with a hash at the end.
    if let Ok(symbol) = rustc_demangle::try_demangle(mangled) {
        let (mut name, mut full_name) = (BoundedText::default(), BoundedText::default());
        write!(name, "{symbol:#}").ok()?;
        write!(full_name, "{symbol}").ok()?;
        return Some(Demangled {
            name: shortened(&name.0),
            full_name: full_name.0,
        });
    }
    if !mangled.starts_with("_Z") {
        return None;
    }
    let symbol = Symbol::new(mangled).ok()?;
    let written = |options: &DemangleOptions| {
        let mut text = BoundedText::default();
        symbol.structured_demangle(&mut text, options).ok().map(|()| text.0)
    };
    let name = written(&DemangleOptions::new().no_params().no_return_type())?;
    let full_name = written(&DemangleOptions::new())?;
    Some(Demangled {
        name: compact(&name, &full_name),
        full_name: as_binutils_say(&full_name),
    })
}

/// A short name from one without parameters (which lacks what the compiler added) and one with all.
fn compact(name: &str, full_name: &str) -> String {
    let clones = full_name.find(CLONE).and_then(|start| full_name.get(start..));
    let plain = as_binutils_say(name);
    // What a method may be called on.
    let plain = plain.trim_end_matches('&').trim_end();
    let plain = plain.strip_suffix(" volatile").unwrap_or(plain);
    let mut short = shortened(plain.strip_suffix(" const").unwrap_or(plain));
    for clone in clones.unwrap_or_default().split(CLONE) {
        short.push_str(clone.trim_start().trim_end_matches(']'));
    }
    short
}

/// What cpp_demangle puts before each part that the compiler added.
const CLONE: &str = " [clone";

/// The forms of cpp_demangle for what is neither function nor variable, and those that gdb, perf and c++filt show.
const SPECIAL: [(&str, &str); 3] = [
    ("{vtable(", "vtable for "),
    ("{vtt(", "VTT for "),
    ("{virtual override thunk({", "virtual thunk to "),
];

fn as_binutils_say(name: &str) -> String {
    for (theirs, usual) in SPECIAL {
        if let Some(inside) = name.strip_prefix(theirs)
            && let Some(inside) = inside.strip_suffix(")}")
        {
            // Thunks: by how much they move the object.
            let inside = match theirs.ends_with('{') {
                true => inside.split_once("}, ").map_or(inside, |(_, inside)| inside),
                false => inside,
            };
            return format!("{usual}{inside}");
        }
    }
    name.to_owned()
}

/// The names that a mangled name starts with, for those that cannot be read whole (C++20's constraints):
/// `_ZN2dd5cache3getI...` is `dd::cache::get`.
fn leading_names(mangled: &str) -> Option<String> {
    let mangled = mangled.strip_prefix("_Z")?;
    // Something inside a function: a lambda, a local class.
    let mut rest = mangled.trim_start_matches('Z');
    let local = rest.len() < mangled.len();
    let nested = rest.strip_prefix('N');
    rest = nested.unwrap_or(rest).trim_start_matches(['r', 'V', 'K', 'L']);
    let mut names = Vec::new();
    if let Some(std) = rest.strip_prefix("St") {
        names.push("std");
        rest = std;
    }
    loop {
        rest = rest.trim_start_matches('L');
        let digits = rest.len() - rest.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
        let Some(length) = rest.get(..digits).and_then(|digits| digits.parse::<usize>().ok()) else {
            break;
        };
        let Some(name) = rest.get(digits..digits.saturating_add(length)) else {
            break;
        };
        names.push(if name.starts_with("_GLOBAL__N") {
            "(anonymous namespace)"
        } else {
            name
        });
        rest = rest.get(digits + length..)?;
        if nested.is_none() {
            break;
        }
    }
    let known = names.last().is_some_and(|name| *name != "std" && !name.is_empty());
    if local {
        names.push("{...}");
    }
    known.then(|| names.join("::"))
}

/// Replaces long template arguments.
fn shortened(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('<') {
        let (before, from) = rest.split_at(open);
        short.push_str(before);
        // `operator<`, `operator<<`, `operator<=`, `operator<=>`: no bracket.
        if before.trim_end_matches('<').ends_with("operator") || short.ends_with("operator<") {
            short.push('<');
            rest = &from[1..];
            continue;
        }
        let Some(close) = closing(from) else {
            short.push_str(from);
            return short;
        };
        let (arguments, after) = from.split_at(close + 1);
        short.push_str(if arguments.len() > ARGUMENTS + 2 {
            "<...>"
        } else {
            arguments
        });
        rest = after;
    }
    short.push_str(rest);
    short
}

/// Where the bracket closes that `text` starts with. Arrows and operators inside do not count; parentheses do, as
/// conditions stand in them.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut inside) = (0_usize, 0_usize);
    let mut before = b' ';
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'(' => inside += 1,
            b')' => inside = inside.saturating_sub(1),
            b'<' if inside == 0 && !text.get(..place)?.ends_with("operator") => depth += 1,
            b'>' if inside == 0 && before != b'-' && !text.get(..place)?.ends_with("operator") => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(place);
                }
            }
            _ => {}
        }
        before = *byte;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(linkage_name: &str) -> (String, String) {
        let Demangled { name, full_name } = demangle(linkage_name);
        (name, full_name)
    }

    fn pair(name: &str, full_name: &str) -> (String, String) {
        (name.to_owned(), full_name.to_owned())
    }

    #[test]
    fn short_names_have_no_parameters() {
        assert_eq!(
            names("_ZN3THD6awakenE12killed_state"),
            pair("THD::awaken", "THD::awaken(killed_state)")
        );
        assert_eq!(
            names("_ZNK4Item10is_null_opEv"),
            pair("Item::is_null_op", "Item::is_null_op() const")
        );
        assert_eq!(
            names("_ZSt4swapIiEvRT_S1_"),
            pair("std::swap<int>", "void std::swap<int>(int&, int&)")
        );
    }

    #[test]
    fn what_the_compiler_made_of_a_function_stays_visible() {
        assert_eq!(
            names("_Z15row_search_mvccPhb.cold"),
            pair(
                "row_search_mvcc.cold",
                "row_search_mvcc(unsigned char*, bool) [clone .cold]"
            )
        );
        assert_eq!(names("buf_flush.part.0"), pair("buf_flush.part.0", "buf_flush.part.0"));
        assert_eq!(
            names("_Znwm@plt"),
            pair("operator new@plt", "operator new(unsigned long)@plt")
        );
    }

    #[test]
    fn names_with_dots_in_them_are_read() {
        assert_eq!(names("_ZN10._anon_223D1Ev").0, "._anon_223::~._anon_223");
        let compiled_twice = "_Z3fooi.constprop.0.isra.0.cold";
        assert_eq!(names(compiled_twice).0, "foo.constprop.0.isra.0.cold");
    }

    #[test]
    fn names_of_rust_are_read_too() {
        let old = "_ZN9own_stack7handler17h232903a75e004c70E";
        assert_eq!(
            names(old),
            pair("own_stack::handler", "own_stack::handler::h232903a75e004c70")
        );
        assert_eq!(names("_RNvCskwGfYPst2Cb_3foo3bar").0, "foo::bar");
    }

    #[test]
    fn tables_and_thunks_are_called_as_elsewhere() {
        assert_eq!(names("_ZTV3THD").0, "vtable for THD");
        assert_eq!(names("_ZTI3THD").0, "typeinfo for THD");
        assert_eq!(names("_ZThn8_N3Foo3barEv").0, "virtual thunk to Foo::bar");
        assert_eq!(names("_ZNKRSs3strEv").0, "std::string::str");
    }

    #[test]
    fn what_cannot_be_read_whole_keeps_its_leading_names() {
        let constrained = "_ZN2dd12ForEachChildIP10AccessPathQaaaa16is_convertible_vIT_PKS0_EEvSE_";
        assert_eq!(names(constrained), pair("dd::ForEachChild", constrained));
        assert_eq!(names("_ZSt14__copy_move_a1IXsrEX").0, "std::__copy_move_a1");
        assert_eq!(
            names("_ZZ15WalkAccessPathsIPQaaaa16is_EENKUlOSD_SJ_E_clI").0,
            "WalkAccessPaths::{...}"
        );
    }

    #[test]
    fn a_few_bytes_that_stand_for_gigabytes_are_no_name() {
        // Each S_ is all that stands before it, twice (Itanium C++ ABI, 5.1.10).
        let doubling: String = (0..40)
            .map(|level| match level {
                0 => "1aI".to_owned(),
                1 => "1bI".to_owned(),
                _ => "1cI".to_owned(),
            })
            .collect();
        let arguments: String = (0..40).map(|_| "S_S_E").collect();
        for mangled in [
            format!("_Z1fI{doubling}i{arguments}Evv"),
            format!("_Z{}", "N1a1bI".repeat(2000)),
            format!("_RNv{}", "C1a".repeat(3000)),
        ] {
            let names = demangle(&mangled);
            assert!(
                names.name.len() <= SHOWN && names.full_name.len() <= SHOWN,
                "{}",
                mangled.len()
            );
        }
    }

    #[test]
    fn what_is_not_mangled_stays_as_it_is() {
        for name in [
            "pthread_mutex_lock",
            "_GLOBAL__I_x",
            "_ZThis is not a name",
            "",
            "_Z",
            "ut_delay",
        ] {
            assert_eq!(names(name), pair(name, name));
        }
    }

    #[test]
    fn long_template_arguments_are_left_out_and_operators_are_no_brackets() {
        let long = "std::map<std::basic_string<char, std::char_traits<char>>, int>::at";
        assert_eq!(shortened(long), "std::map<...>::at");
        for name in [
            "operator<",
            "operator<< <int>",
            "A::operator<=>",
            "A<B>::operator->",
            "f<(1 > 0)>",
            "a < b",
            "std::vector<int>::push_back",
        ] {
            assert_eq!(shortened(name), name);
        }
    }

    proptest! {
        #[test]
        fn any_name_is_read_without_harm(name in "(_Z)?[\\PC<>()_A-Z0-9a-z.@-]{0,60}") {
            let _ = demangle(&name);
            let _ = shortened(&name);
        }
    }
}
