//! What a place is to its neighbours, from who touches it.

use super::costs::MeasuredCosts;
use super::facts::{CodeFunction, Place, PlaceAccess};
use super::judged::{JudgedPlace, PlaceRole, Toucher};
use scaleprof_vocabulary::AccessKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Parts of names of locks, and of functions that take locks.
const LOCK_WORDS: [&str; 6] = ["mutex", "lock", "latch", "sema", "spin", "rwl"];
/// Words that end the name of a lock, whatever else is in it: `dict_foreign_err_mutex`, `block_lock`.
const LAST_WORDS: [&str; 5] = ["mutex", "lock", "latch", "rwlock", "spinlock"];
/// How the server's own locks are called: `LOCK_thread_count`.
const SERVER_LOCK: &str = "LOCK_";
/// Words with these parts make a name that sounds like a lock's one of something else.
const NOT_LOCKS: [&str; 2] = ["block", "clock"];
/// And so do words that begin so: counters and settings of locks, and structures that hold some.
const NOT_LOCKS_FROM: [&str; 4] = ["wait", "timeout", "count", "sys"];
/// And this one, for numbers: `n_lock_objects`.
const NUMBER_OF: &str = "n";
/// How compilers call the byte that says whether a static variable of a function has its first value.
const GUARD: &str = "guard variable for ";
/// What is written seldom is read by so many times as much code as writes it.
const MOSTLY: f64 = 3.0;
/// What a write that does not depend on what was there before counts beside one that does.
const MERELY_SET: f64 = 0.25;
/// An access in a loop counts for so many; one in a loop that waits for another thread for more, because many threads run that
/// at once.
const IN_LOOP: f64 = 2.0;
const IN_WAITING_LOOP: f64 = 8.0;

/// All that is known of the program.
pub(super) struct Program<'a> {
    functions: &'a [CodeFunction],
    /// Functions with the static variables that they give a first value: a write there happens once.
    guarded: HashSet<(usize, &'a str)>,
    /// Names, or beginnings of names, of locks.
    locks: BTreeSet<&'a str>,
}

impl<'a> Program<'a> {
    pub(super) fn of(places: &'a [Place], functions: &'a [CodeFunction]) -> Program<'a> {
        let mut program = Program {
            functions,
            guarded: HashSet::new(),
            locks: BTreeSet::new(),
        };
        for place in places {
            if let Some(variable) = place.name.strip_prefix(GUARD) {
                let users = place.accesses.iter().map(|access| (access.function, variable));
                program.guarded.extend(users);
            }
        }
        program.locks = places.iter().filter_map(|place| program.lock(place)).collect();
        program
    }

    /// Whether an access is one of the running server, again and again.
    pub(super) fn runs(&self, place: &Place, access: &PlaceAccess) -> bool {
        let function = self.functions.get(access.function);
        let is_first_value = || {
            let variable = place
                .name
                .rsplit_once('+')
                .map_or(place.name.as_str(), |(variable, _)| variable);
            writes(access.kind) && self.guarded.contains(&(access.function, variable))
        };
        let is_of_running_server = function.is_some_and(|function| !function.is_start_or_stop);
        is_of_running_server && !access.is_rarely_run && !is_first_value()
    }

    /// The lock that a place is or is a part of: something that is called so and is taken like one, by a locked instruction or
    /// by a function that has such a name.
    fn lock(&self, place: &'a Place) -> Option<&'a str> {
        let is_taken = place
            .accesses
            .iter()
            .filter(|access| self.runs(place, access))
            .any(|access| {
                let by_function = access.callee.as_deref().is_some_and(sounds_like_lock);
                (access.locked && writes(access.kind)) || (access.kind == AccessKind::Passed && by_function)
            });
        let mut beginnings = beginnings(&place.name);
        // The shortest part of the name that says it: all of that object is the lock.
        let mut start = 0;
        beginnings.find(|beginning| {
            let part = beginning.get(start..).unwrap_or_default();
            start = beginning.len();
            is_taken && sounds_like_lock(part)
        })
    }

    pub(super) fn is_of_lock(&self, place: &Place) -> bool {
        place.is_known_lock || beginnings(&place.name).any(|beginning| self.locks.contains(beginning))
    }
}

/// A place with who touches it while the server runs.
pub(super) struct Touched<'a> {
    pub place: &'a Place,
    pub role: PlaceRole,
    /// How much code reads it, by function: each counts by how often it is called, and more where it reads in a loop.
    pub reads: BTreeMap<usize, f64>,
    /// How much code writes it.
    pub writes: BTreeMap<usize, f64>,
    program: &'a Program<'a>,
}

impl<'a> Touched<'a> {
    pub(super) fn of(place: &'a Place, program: &'a Program<'a>) -> Touched<'a> {
        let mut touched = Touched {
            place,
            role: PlaceRole::Unused,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            program,
        };
        touched.reads = touched.weights(|what| what == AccessKind::Read);
        touched.writes = touched.weights(writes);
        let passed = touched.weights(|what| what == AccessKind::Passed);
        touched.role = if program.is_of_lock(place) {
            touched.writes.extend(passed);
            PlaceRole::Lock
        } else if touched.is_mostly_read() {
            PlaceRole::ReadMostly
        } else if !touched.writes.is_empty() {
            PlaceRole::Written
        } else if !passed.is_empty() {
            PlaceRole::AddressPassed
        } else {
            PlaceRole::Unused
        };
        touched
    }

    /// Whether what is written depends on what was there before, or is written again and again: so it is with counters and locks,
    /// not with settings.
    fn counts(&self) -> bool {
        self.running().any(|access| {
            access.kind == AccessKind::Update
                || (writes(access.kind)
                    && (access.locked || access.in_loop || self.reads.contains_key(&access.function)))
        })
    }

    /// How much code writes it. Who merely puts something there may do so once a day.
    pub(super) fn write_weight(&self) -> f64 {
        let all: f64 = self.writes.values().sum();
        match self.role == PlaceRole::Lock || self.counts() {
            true => all,
            false => all * MERELY_SET,
        }
    }

    /// Much code looks at it, and little puts something there that does not depend on what was there before: a setting.
    fn is_mostly_read(&self) -> bool {
        let counts = self.counts();
        let (read, written): (f64, f64) = (self.reads.values().sum(), self.writes.values().sum());
        !self.reads.is_empty() && (self.writes.is_empty() || (!counts && read >= MOSTLY * written))
    }

    /// Accesses of the running server.
    fn running(&self) -> impl Iterator<Item = &'a PlaceAccess> {
        let (place, program) = (self.place, self.program);
        place.accesses.iter().filter(move |access| program.runs(place, access))
    }

    fn weights(&self, is_wanted: impl Fn(AccessKind) -> bool) -> BTreeMap<usize, f64> {
        let mut by_function: BTreeMap<usize, f64> = BTreeMap::new();
        for access in self.running().filter(|access| is_wanted(access.kind)) {
            let calls = self
                .program
                .functions
                .get(access.function)
                .map_or(0, |function| function.calls);
            let times = match (access.in_spin_loop, access.in_loop) {
                (true, _) => IN_WAITING_LOOP,
                (false, true) => IN_LOOP,
                (false, false) => 1.0,
            };
            let weight = ((1.0 + f64::from(calls)).ln() + 1.0) * times;
            let known = by_function.entry(access.function).or_default();
            *known = known.max(weight);
        }
        by_function
    }

    /// Functions that touch it so, the most used first.
    fn touchers(&self, is_wanted: impl Fn(AccessKind) -> bool) -> Vec<Toucher> {
        let mut sites: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
        for access in self.running().filter(|access| is_wanted(access.kind)) {
            if let Some(function) = self.program.functions.get(access.function) {
                let known = sites.entry(&function.name).or_default();
                known.0 += 1;
                known.1 = known.1.max(function.calls);
            }
        }
        let mut touchers: Vec<(&str, (u32, u32))> = sites.into_iter().collect();
        touchers.sort_by(|a, b| b.1.1.cmp(&a.1.1).then(b.1.0.cmp(&a.1.0)).then(a.0.cmp(b.0)));
        let touchers = touchers.into_iter().map(|(function, (sites, _))| Toucher {
            function: function.to_owned(),
            sites,
        });
        touchers.collect()
    }

    /// Functions that touch it so, while the server runs or otherwise.
    fn count(&self, runs: bool, is_wanted: impl Fn(AccessKind) -> bool) -> u32 {
        let accesses = self.place.accesses.iter();
        let of_kind = accesses.filter(|access| is_wanted(access.kind) && self.program.runs(self.place, access) == runs);
        let functions: BTreeSet<usize> = of_kind.map(|access| access.function).collect();
        u32::try_from(functions.len()).unwrap_or(u32::MAX)
    }

    /// As it is shown.
    pub(super) fn judged(&self, line: u64, costs: Option<&MeasuredCosts<'_>>) -> JudgedPlace {
        let cost = |is_wanted: fn(AccessKind) -> bool| {
            let sites = self.running().filter(|access| is_wanted(access.kind));
            costs?.of_instructions(sites.map(|access| (access.instruction, access.sampled_at)))
        };
        let place = self.place;
        JudgedPlace {
            name: place.name.clone(),
            offset: i64::try_from(i128::from(place.address) - i128::from(line)).unwrap_or(i64::MIN),
            size: place.size,
            role: self.role,
            read_weight: self.reads.values().sum(),
            write_weight: self.writes.values().sum(),
            readers: self.touchers(|what| what == AccessKind::Read),
            writers: self.touchers(writes),
            locked: self.running().any(|access| access.locked && writes(access.kind)),
            address_passed_by: self.count(true, |what| what == AccessKind::Passed),
            rare_writers: self.count(false, writes),
            read_cost: cost(|what| what == AccessKind::Read),
            write_cost: cost(writes),
            write_rate: None,
        }
    }
}

/// The objects that a place is a part of, the largest first, and itself: `a`, `a.b` and `a.b[2]` for `a.b[2]`.
fn beginnings(name: &str) -> impl Iterator<Item = &str> {
    let ends = name
        .char_indices()
        .filter(|(_, letter)| matches!(letter, '.' | '+' | '['));
    let ends = ends.map(|(end, _)| end).chain([name.len()]);
    ends.filter_map(|end| name.get(..end))
}

pub(super) fn writes(what: AccessKind) -> bool {
    matches!(what, AccessKind::Write | AccessKind::Update)
}

fn sounds_like_lock(name: &str) -> bool {
    let is_servers = name.trim_start_matches(['.', '+', '[']).starts_with(SERVER_LOCK);
    let name = name.to_ascii_lowercase();
    let words = || {
        name.split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
    };
    if is_servers || words().next_back().is_some_and(|last| LAST_WORDS.contains(&last)) {
        return true;
    }
    let is_of_locks_only = |word: &str| {
        NOT_LOCKS.iter().any(|part| word.contains(part))
            || NOT_LOCKS_FROM.iter().any(|begin| word.starts_with(begin))
            || word == NUMBER_OF
    };
    LOCK_WORDS.iter().any(|word| name.contains(word)) && !words().any(is_of_locks_only)
}

#[cfg(test)]
mod tests {
    use super::sounds_like_lock;

    #[test]
    fn locks_are_known_by_their_names() {
        for name in [
            "LOCK_thread_count",
            "LOCK_plugin_delete",
            "dict_foreign_err_mutex",
            "trx_sys_mutex",
            "pthread_mutex_lock",
            "rw_lock_s_lock_func",
            ".latch",
            "spin_mutex_1",
        ] {
            assert!(sounds_like_lock(name), "{name}");
        }
        for name in [
            "buf_block_count",
            "lock_wait_timeout",
            "innodb_lock_wait_timeout",
            "n_lock_max_wait_time",
            "lock_sys",
            "mutex_count",
            "start_clock",
            "buf_pool",
        ] {
            assert!(!sounds_like_lock(name), "{name}");
        }
    }
}
