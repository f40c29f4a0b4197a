//! What is known about places in the servers' code: data in `knowledge/*.toml`, each entry with its source.

use super::advice::Advice;
use scaleprof_vocabulary::FindingKind;
use serde::Deserialize;

const FILES: [&str; 5] = [
    include_str!("../../knowledge/changed_rows.toml"),
    include_str!("../../knowledge/innodb.toml"),
    include_str!("../../knowledge/latches.toml"),
    include_str!("../../knowledge/metadata_locks.toml"),
    include_str!("../../knowledge/row_locks.toml"),
];

/// What is known of the callers of latches is of no kind of finding, but said beside each caller.
const WAITER: &str = "waiter";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Functions that wait on behalf of others: how a latch spins, not which one it is.
    #[serde(default)]
    primitives: Vec<String>,
    /// Functions that take, queue for and release latches for those who call them.
    #[serde(default)]
    latching: Vec<String>,
    place: Vec<Place>,
    #[serde(default)]
    spin_round: Vec<SpinRound>,
    #[serde(default)]
    row_lock: Vec<RowLock>,
}

/// How a thread waits for a row that another transaction has locked. Functions by the beginning of their names.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowLock {
    /// Products that it is about.
    products: Vec<String>,
    /// Functions in which the thread sleeps.
    waits_in: Vec<String>,
    /// Functions within these in which it waits for a latch, not for the row.
    latches: Vec<String>,
    /// The storage engine's door, which tells whether the row was to be read or written.
    engine: Vec<String>,
    /// Functions that stand for a kind of statement.
    statements: Vec<String>,
    /// Functions whose CPU time is the price of the queues: searching deadlocks, handing locks on.
    work: Vec<String>,
    /// Where that is to be read.
    source: String,
}

/// What the name of a function tells of its part in a wait for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowLockMark {
    Waits,
    Latches,
    Engine,
    Statement,
    Nothing,
}

/// How long one round of a latch is that spins.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpinRound {
    /// Products that it is about.
    products: Vec<String>,
    /// The first version that waits so, and the first that no longer does, as `8.0.16`.
    #[serde(default)]
    from: Option<String>,
    #[serde(default)]
    until: Option<String>,
    /// The setting that gives the delay.
    pub delay: String,
    /// The setting that gives how many rounds there are before a thread sleeps.
    pub rounds: String,
    /// PAUSE instructions for each unit of the delay: a number, or the setting that gives it.
    #[serde(default)]
    pub pauses: Option<f64>,
    #[serde(default)]
    pub pauses_setting: Option<String>,
    /// As many where one PAUSE takes longer than `slow_from_ns`; between `fast_below_ns` and that it is not known.
    #[serde(default)]
    pub pauses_if_slow: Option<f64>,
    #[serde(default)]
    pub fast_below_ns: Option<f64>,
    #[serde(default)]
    pub slow_from_ns: Option<f64>,
    /// Whether each round draws its delay anew, evenly between 0 and one less than the setting.
    #[serde(default)]
    pub random: bool,
    /// Where that is to be read.
    pub source: String,
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
    /// What may relieve it, whatever is set.
    #[serde(default)]
    pub try_settings: Vec<String>,
    /// Settings that may.
    #[serde(default)]
    pub advice: Vec<Advice>,
    /// Whether these come behind what may help whatever is set: they ease the pain where the cause is the application's.
    #[serde(default)]
    pub settings_last: bool,
    /// Whether somebody holds it, though who wants it sleeps at a condition variable.
    #[serde(default)]
    pub held: bool,
    /// Where that is documented.
    pub source: String,
}

pub(crate) struct Knowledge {
    places: Vec<Place>,
    primitives: Vec<String>,
    latching: Vec<String>,
    spin_rounds: Vec<SpinRound>,
    row_locks: Vec<RowLock>,
}

impl Knowledge {
    pub(crate) fn of(product: &str) -> Knowledge {
        let mut knowledge = Knowledge {
            places: Vec::new(),
            primitives: Vec::new(),
            latching: Vec::new(),
            spin_rounds: Vec::new(),
            row_locks: Vec::new(),
        };
        for text in FILES {
            // A test reads them all.
            let Ok(file) = toml::from_str::<File>(text) else {
                continue;
            };
            knowledge.primitives.extend(file.primitives);
            knowledge.latching.extend(file.latching);
            let about_it =
                |place: &Place| place.products.is_empty() || place.products.iter().any(|name| product.contains(name));
            knowledge.places.extend(file.place.into_iter().filter(about_it));
            let rounds = file.spin_round.into_iter();
            knowledge
                .spin_rounds
                .extend(rounds.filter(|round| round.products.iter().any(|name| product.contains(name))));
            let row_locks = file.row_lock.into_iter();
            knowledge
                .row_locks
                .extend(row_locks.filter(|row_lock| row_lock.products.iter().any(|name| product.contains(name))));
        }
        knowledge
    }

    /// What is known of the innermost function of a path of which anything is, and that function.
    pub(super) fn place<'a>(&'a self, kind: FindingKind, path: &'a [String]) -> Option<(&'a Place, &'a str)> {
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

    /// What somebody holds there, though who wants it sleeps at a condition variable.
    pub(crate) fn held_behind_condition(&self, path: &[String]) -> Option<String> {
        let (place, _) = self.place(FindingKind::LockConvoy, path)?;
        place.held.then(|| place.what.clone())
    }

    /// What is known of a kind of finding wherever it is, of the first place that is about it.
    pub(super) fn place_of(&self, kind: FindingKind) -> Option<&Place> {
        let mut places = self.places.iter();
        places.find(|place| place.kinds.iter().any(|name| name == kind.name()))
    }

    /// What the caller of a latch waits for, by its function: such as the redo log's buffer.
    pub(super) fn waited_for_by(&self, function: &str) -> Option<&Place> {
        let mut places = self.places.iter();
        places.find(|place| {
            let is_of_waiters = place.kinds.iter().any(|kind| kind == WAITER);
            is_of_waiters && place.functions.iter().any(|name| is_named(function, name))
        })
    }

    /// The part of a function in a wait for a row.
    pub(super) fn row_lock_mark(&self, function: &str) -> RowLockMark {
        let is_one_of = |names: fn(&RowLock) -> &[String]| {
            let mut names = self.row_locks.iter().flat_map(names);
            names.any(|name| function.contains(name.as_str()) && is_named(function, name))
        };
        match () {
            () if is_one_of(|row_lock| &row_lock.waits_in) => RowLockMark::Waits,
            () if is_one_of(|row_lock| &row_lock.latches) => RowLockMark::Latches,
            () if is_one_of(|row_lock| &row_lock.engine) => RowLockMark::Engine,
            () if is_one_of(|row_lock| &row_lock.statements) => RowLockMark::Statement,
            () => RowLockMark::Nothing,
        }
    }

    /// Where it is to be read that who sleeps in this function waits for a row.
    pub(super) fn row_lock_source(&self, function: &str) -> Option<&str> {
        let names = |row_lock: &&RowLock| row_lock.waits_in.iter().any(|name| is_named(function, name));
        self.row_locks
            .iter()
            .find(names)
            .map(|row_lock| row_lock.source.as_str())
    }

    /// Whether the CPU time of a function is the price of queues for rows.
    pub(super) fn works_for_row_locks(&self, function: &str) -> bool {
        let mut names = self.row_locks.iter().flat_map(|row_lock| &row_lock.work);
        names.any(|name| function.contains(name.as_str()) && is_named(function, name))
    }

    /// How a latch of that version of the server spins.
    pub(super) fn spin_round(&self, version: &str) -> Option<&SpinRound> {
        let is_at_least = |bound: &str| numbers_of(version) >= numbers_of(bound);
        self.spin_rounds.iter().find(|round| {
            round.from.as_deref().is_none_or(is_at_least) && !round.until.as_deref().is_some_and(is_at_least)
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

    /// For whose sake a thread waits for a lock, or gives one back: the innermost function of the server that is not merely how
    /// that is done, and what called it, innermost first, at most so many. Where all functions are of that kind, the innermost.
    pub(crate) fn takers<'a>(&self, path: &'a [String], most: usize) -> Vec<&'a str> {
        let is_how = |function: &&String| {
            let latches = || self.latching.iter().any(|name| is_named(function, name));
            function.ends_with(" [k]") || self.is_primitive(function) || latches()
        };
        let inwards = path.iter().rev();
        let found: Vec<&str> = inwards
            .clone()
            .skip_while(is_how)
            .take(most)
            .map(String::as_str)
            .collect();
        match found.is_empty() {
            true => inwards.take(most).map(String::as_str).collect(),
            false => found,
        }
    }

    /// Whether a function merely waits on behalf of others: the C library's, and those that the data names.
    pub(super) fn is_primitive(&self, function: &str) -> bool {
        is_of_the_c_library(function) || self.primitives.iter().any(|name| is_named(function, name))
    }

    /// Who waits in a path that spins or goes into the kernel: the innermost functions of the server up to the first that is not
    /// merely how waiting is done. The functions come innermost first, each with whether it is that.
    pub(super) fn waiter<'f>(innermost_first: impl Iterator<Item = (&'f str, bool)>) -> String {
        let mut inner = Vec::new();
        // What stands for callers that are missing waits for nothing.
        let says_nothing = |function: &str| function.ends_with(" [k]") || function.starts_with("[incomplete");
        for (function, is_primitive) in innermost_first.filter(|(function, _)| !says_nothing(function)) {
            inner.push(function);
            if !is_primitive && inner.len() > 1 {
                break;
            }
        }
        inner.reverse();
        inner.join(" > ")
    }
}

/// Whether a function is one of glibc's, by its name: those that wait, write and start threads, and those without a name.
pub(super) fn is_of_the_c_library(function: &str) -> bool {
    const NAMES: [&str; 21] = [
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
        "lll_lock_wait",
        "sched_yield",
        "nanosleep",
    ];
    let bare = function.split('@').next().unwrap_or(function);
    // Before glibc 2.34 its files are called by their version.
    let families = [
        "__",
        "pthread_",
        "lll_",
        "futex_",
        "libc.so",
        "libc-2.",
        "libpthread-2.",
    ];
    families.iter().any(|family| bare.starts_with(family)) || NAMES.contains(&bare)
}

/// Whether a function is called so, whatever its arguments and its class are: `name` is one part of its name, or several that follow each
/// other (`ReadView::open`).
fn is_named(function: &str, name: &str) -> bool {
    let named = function.replace("(anonymous namespace)::", "");
    let bare = named.split(['(', '<']).next().unwrap_or(&named);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with("::");
    let mut begins = bare
        .match_indices(name)
        .map(|(at, _)| (&bare[..at], &bare[at + name.len()..]));
    begins.any(|(before, after)| ends(after) && (before.is_empty() || before.ends_with("::")))
}

/// The leading numbers of a version such as `10.11.19-MariaDB`.
fn numbers_of(version: &str) -> Vec<u32> {
    let numeric = version
        .split(|c: char| !c.is_ascii_digit() && c != '.')
        .next()
        .unwrap_or("");
    numeric.split('.').map_while(|part| part.parse().ok()).collect()
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
                for kind in &place.kinds {
                    assert!(
                        kind == WAITER || FindingKind::parse(kind).is_ok(),
                        "{kind} is no kind of finding"
                    );
                }
                for name in &place.functions {
                    assert!(is_named(&format!("{name}(THD*, bool)"), name), "{name} names nothing");
                }
            }
            for round in &file.spin_round {
                let pauses = round.pauses.is_some() != round.pauses_setting.is_some();
                let slow =
                    round.pauses_if_slow.is_some() == (round.fast_below_ns.is_some() && round.slow_from_ns.is_some());
                assert!(pauses && slow && !round.source.is_empty(), "{round:?}");
            }
            for row_lock in &file.row_lock {
                let says_all =
                    !row_lock.waits_in.is_empty() && !row_lock.latches.is_empty() && !row_lock.work.is_empty();
                assert!(says_all && !row_lock.source.is_empty(), "{row_lock:?}");
            }
        }
    }

    #[test]
    fn a_name_is_whole_parts_of_a_functions_name() {
        for (function, name, named) in [
            (
                "MDL_wait::timed_wait(MDL_context_owner*, timespec*)",
                "MDL_wait::timed_wait",
                true,
            ),
            (
                "MDL_wait::timed_wait(MDL_context_owner*, timespec*)",
                "timed_wait",
                true,
            ),
            ("My_MDL_wait::timed_wait", "MDL_wait::timed_wait", false),
            ("MDL_wait::timed_wait_more", "MDL_wait::timed_wait", false),
            ("ssux_lock_impl<true>::rd_wait", "ssux_lock_impl", true),
            ("(anonymous namespace)::lock_wait", "lock_wait", true),
            ("lock_wait_suspend_thread", "lock_wait", false),
        ] {
            assert_eq!(is_named(function, name), named, "{function}");
        }
    }

    #[test]
    fn the_latch_is_told_that_a_caller_waits_for() {
        let knowledge = Knowledge::of("MySQL");
        let what = |function: &str| knowledge.waited_for_by(function).map(|place| place.what.as_str());
        assert_eq!(
            what("mtr_log_reserve_and_write(mtr_t*)"),
            Some("the redo log's buffer (log_sys)")
        );
        assert_eq!(what("trx_start_low"), Some("InnoDB's list of transactions (trx_sys)"));
        assert_eq!(what("row_search_for_mysql"), None);
        // It is no kind of finding: nothing is named after it.
        let path = ["main".to_owned(), "mtr_log_reserve_and_write".to_owned()];
        assert!(knowledge.place(FindingKind::LockConvoy, &path).is_none());
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
    fn versions_are_told_apart_by_their_numbers() {
        let rounds = |product: &str, version: &str| {
            let knowledge = Knowledge::of(product);
            let round = knowledge.spin_round(version)?;
            Some((round.pauses, round.pauses_setting.is_some()))
        };
        assert_eq!(rounds("MySQL", "5.6.14"), Some((Some(50.0), false)));
        assert_eq!(rounds("MySQL", "8.0.15"), Some((Some(50.0), false)));
        assert_eq!(rounds("MySQL", "8.0.16-debug"), Some((None, true)));
        assert_eq!(rounds("Percona Server", "9.1.0"), Some((None, true)));
        assert_eq!(
            rounds("MariaDB", "10.11.19-MariaDB-0+deb12u1"),
            Some((Some(50.0), false))
        );
        assert_eq!(rounds("MariaDB", "5.5.68-MariaDB"), None);
        assert_eq!(rounds("PostgreSQL", "17"), None);
    }

    #[test]
    fn a_latch_is_taken_for_the_sake_of_the_function_that_asks_for_it() {
        let path: Vec<String> = [
            "main",
            "row_upd_step",
            "btr_cur_search_to_nth_level",
            "pfs_rw_lock_s_lock_func",
            "rw_lock_s_lock_spin",
            "sync_array_wait_event",
            "os_event_wait_low",
            "pthread_cond_wait@@GLIBC_2.3.2",
            "do_futex [k]",
        ]
        .map(String::from)
        .into();
        let knowledge = Knowledge::of("MySQL");
        assert_eq!(
            knowledge.takers(&path, 2),
            ["btr_cur_search_to_nth_level", "row_upd_step"]
        );
        assert_eq!(knowledge.takers(&path[3..6], 1), ["sync_array_wait_event"]);
        assert!(knowledge.takers(&[], 2).is_empty());
    }

    #[test]
    fn the_waiter_is_named_with_what_it_waits_by() {
        let path: Vec<String> = ["main", "row_upd_step", "trx_start_low", "mutex_spin_wait", "ut_delay"]
            .map(String::from)
            .into();
        let knowledge = Knowledge::of("MySQL");
        let functions = path.iter().rev().map(String::as_str);
        let innermost_first = functions.map(|function| (function, knowledge.is_primitive(function)));
        assert_eq!(
            Knowledge::waiter(innermost_first),
            "trx_start_low > mutex_spin_wait > ut_delay"
        );
        let without_callers = [("ut_delay", true), ("[incomplete: not_taken]", false)];
        assert_eq!(Knowledge::waiter(without_callers.into_iter()), "ut_delay");
    }
}
