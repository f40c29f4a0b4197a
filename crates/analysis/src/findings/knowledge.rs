//! What is known about places in the servers' code: data in `knowledge/*.toml`, each entry with its source.

use super::kind::Kind;
use serde::Deserialize;

const FILES: [&str; 1] = [include_str!("../../knowledge/innodb.toml")];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Functions that wait on behalf of others: how a latch spins, not which one it is.
    #[serde(default)]
    primitives: Vec<String>,
    place: Vec<Place>,
}

/// One place.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    /// Kinds of findings that it is about.
    kinds: Vec<String>,
    /// Products that it is about; all where empty.
    #[serde(default)]
    products: Vec<String>,
    /// Functions that give it away, by the beginning of their names.
    functions: Vec<String>,
    /// What it stands for, as an object of a sentence.
    pub what: String,
    /// What is known of it.
    pub says: String,
    /// Settings that matter there.
    #[serde(default)]
    pub settings: Vec<String>,
    /// What may relieve it.
    #[serde(default)]
    pub try_settings: Vec<String>,
    /// Where that is documented.
    pub source: String,
}

pub(super) struct Knowledge {
    places: Vec<Place>,
    primitives: Vec<String>,
}

impl Knowledge {
    pub(super) fn of(product: &str) -> Knowledge {
        let mut knowledge = Knowledge {
            places: Vec::new(),
            primitives: Vec::new(),
        };
        for text in FILES {
            // A test reads them all.
            let Ok(file) = toml::from_str::<File>(text) else {
                continue;
            };
            knowledge.primitives.extend(file.primitives);
            let about_it =
                |place: &Place| place.products.is_empty() || place.products.iter().any(|name| product.contains(name));
            knowledge.places.extend(file.place.into_iter().filter(about_it));
        }
        knowledge
    }

    /// What is known of the innermost function of a path of which anything is, and that function.
    pub(super) fn place<'a>(&'a self, kind: Kind, path: &'a [String]) -> Option<(&'a Place, &'a str)> {
        let of_kind = || {
            self.places
                .iter()
                .filter(|place| place.kinds.iter().any(|name| name == kind.name()))
        };
        path.iter().rev().find_map(|function| {
            let place = of_kind().find(|place| place.functions.iter().any(|name| is_named(function, name)))?;
            Some((place, function.as_str()))
        })
    }

    /// The function of the server that a path is about: not the kernel's, not the C library's, not merely how waiting is done.
    pub(super) fn place_in_server<'a>(&self, path: &'a [String]) -> Option<&'a str> {
        let own = |function: &&String| {
            let how = self.primitives.iter().any(|name| is_named(function, name));
            !function.ends_with(" [k]") && !is_of_the_c_library(function) && !how
        };
        path.iter().rev().find(own).map(String::as_str)
    }

    /// Who waits in a path that spins: the innermost functions up to the first that is not merely how waiting is done.
    pub(super) fn waiter(&self, path: &[String]) -> String {
        let mut inner = Vec::new();
        for function in path.iter().rev() {
            inner.push(function.as_str());
            let is_primitive = self.primitives.iter().any(|name| is_named(function, name));
            if !is_primitive && inner.len() > 1 {
                break;
            }
        }
        inner.reverse();
        inner.join(" > ")
    }
}

/// Whether a function is one of glibc's, by its name: those that wait, write and start threads.
pub(super) fn is_of_the_c_library(function: &str) -> bool {
    const NAMES: [&str; 22] = [
        "poll",
        "ppoll",
        "read",
        "pread",
        "pread64",
        "write",
        "pwrite",
        "pwrite64",
        "fsync",
        "fdatasync",
        "io_getevents",
        "syscall",
        "recv",
        "send",
        "clone",
        "clone3",
        "start_thread",
        "select",
        "futex_wait",
        "lll_lock_wait",
        "sched_yield",
        "nanosleep",
    ];
    let bare = function.split('@').next().unwrap_or(function);
    bare.starts_with("__") || bare.starts_with("pthread_") || NAMES.contains(&bare)
}

/// Whether a function is called so, whatever its arguments and its class are.
fn is_named(function: &str, name: &str) -> bool {
    let named = function.replace("(anonymous namespace)::", "");
    let bare = named.split(['(', '<']).next().unwrap_or(&named);
    bare.split("::").any(|part| part == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_as_it_should_be_and_every_entry_has_a_source() {
        for text in FILES {
            let file: File = toml::from_str(text).expect("as it should be");
            for place in &file.place {
                assert!(
                    !place.source.is_empty() && !place.functions.is_empty() && !place.kinds.is_empty(),
                    "{place:?}"
                );
            }
        }
    }

    #[test]
    fn functions_are_known_with_their_classes_and_arguments() {
        assert!(is_named("mutex_spin_wait", "mutex_spin_wait"));
        assert!(is_named(
            "ssux_lock_impl<true>::wr_wait(unsigned int)",
            "ssux_lock_impl"
        ));
        assert!(is_named(
            "TTASEventMutex<GenericPolicy>::spin_and_try_lock",
            "TTASEventMutex"
        ));
        assert!(is_named("lock_sys_t::wr_lock(int)", "wr_lock"));
        assert!(!is_named("my_mutex_spin_wait", "mutex_spin_wait"));
        assert!(is_named("trx_sys_t::register_rw(trx_t*)", "trx_sys_t"));
        assert!(is_named(
            "(anonymous namespace)::trx_start_low(trx_t*)",
            "trx_start_low"
        ));
    }

    #[test]
    fn the_waiter_is_named_with_what_it_waits_by() {
        let path: Vec<String> = ["main", "row_upd_step", "trx_start_low", "mutex_spin_wait", "ut_delay"]
            .map(String::from)
            .into();
        assert_eq!(
            Knowledge::of("MySQL").waiter(&path),
            "trx_start_low > mutex_spin_wait > ut_delay"
        );
    }
}
