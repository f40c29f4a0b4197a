//! C++ names as people write them.

use cpp_demangle::{DemangleOptions, Symbol};

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

/// Demangles a linkage name; what is not mangled stays as it is.
///
/// Compilers add what they made of a function behind a dot (`.cold`, `.part.0`), and linkers `@plt`; both are kept.
pub(crate) fn demangle(linkage_name: &str) -> Demangled {
    demangled(linkage_name).unwrap_or_else(|| Demangled {
        name: linkage_name.to_owned(),
        full_name: linkage_name.to_owned(),
    })
}

fn demangled(linkage_name: &str) -> Option<Demangled> {
    if !linkage_name.starts_with("_Z") {
        return None;
    }
    let end = linkage_name.find(['.', '@']).unwrap_or(linkage_name.len());
    let (mangled, suffix) = linkage_name.split_at(end);
    let symbol = Symbol::new(mangled).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut name = shortened(&symbol.demangle_with_options(&options).ok()?);
    let mut full_name = symbol.demangle().ok()?;
    if suffix.starts_with('.') {
        full_name.push_str(&format!(" [clone {suffix}]"));
    } else {
        full_name.push_str(suffix);
    }
    name.push_str(suffix);
    Some(Demangled { name, full_name })
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
    fn what_is_not_mangled_stays_as_it_is() {
        for name in ["pthread_mutex_lock", "_ZThis is not a name", "", "_Z", "ut_delay"] {
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
