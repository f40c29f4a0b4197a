//! What a measurement's tables say of the server's threads.

use scaleprof_vocabulary::{Role, ThreadState};
use std::collections::{BTreeMap, HashMap};

use scaleprof_bundle::{CounterRow, StateRow};

use crate::stretch::{Counts, LostBy, Stretch, SwitchTime, Switching, ThreadStretch};

/// The states that a collector tells; spinning is found later, in the stacks.
fn told_states() -> impl Iterator<Item = ThreadState> {
    ThreadState::in_kernel().filter(|state| *state != ThreadState::Spin)
}

pub(crate) fn second_rows(
    measurement: i32,
    second: i32,
    stretch: &Stretch,
    role: &impl Fn(u32) -> Role,
) -> Vec<StateRow> {
    let mut sums: HashMap<(Role, ThreadState), u64> = HashMap::new();
    let mut lifetimes: HashMap<Role, u64> = HashMap::new();
    for thread in &stretch.threads {
        let role = role(thread.thread);
        *lifetimes.entry(role).or_default() += thread.lifetime_ns;
        for state in told_states() {
            *sums.entry((role, state)).or_default() += thread.nanoseconds[state as usize];
        }
    }
    let lifetime = |role: Role| lifetimes.get(&role).copied().map(signed);
    let mut rows: Vec<StateRow> = sums
        .into_iter()
        .map(|((role, state), nanoseconds)| StateRow {
            measurement,
            second: Some(second),
            role,
            thread: None,
            name: None,
            state,
            nanoseconds: signed(nanoseconds),
            lifetime_ns: lifetime(role).filter(|_| state == ThreadState::Cpu),
        })
        .collect();
    rows.sort_by_key(|row| (row.role, row.state));
    rows
}

pub(crate) fn thread_rows(
    measurement: i32,
    (thread, name): (u32, &str),
    stretch: &ThreadStretch,
    role: Role,
) -> Vec<StateRow> {
    let states = told_states().map(|state| (state, stretch.nanoseconds[state as usize]));
    states
        .filter(|(state, nanoseconds)| *nanoseconds > 0 || (*state == ThreadState::Cpu && stretch.lifetime_ns > 0))
        .map(|(state, nanoseconds)| StateRow {
            measurement,
            second: None,
            role,
            thread: Some(i64::from(thread)),
            name: Some(name.to_owned()),
            state,
            nanoseconds: signed(nanoseconds),
            lifetime_ns: (state == ThreadState::Cpu).then(|| signed(stretch.lifetime_ns)),
        })
        .collect()
}

pub(crate) fn counter_rows(measurement: i32, samples: u64, before: Counts, after: Counts) -> Vec<CounterRow> {
    rows_of(
        measurement,
        None,
        [
            ("probe.samples", samples as f64),
            ("probe.samples_lost", after.lost.saturating_sub(before.lost) as f64),
            ("probe.stacks", after.stacks.saturating_sub(before.stacks) as f64),
            (
                "probe.stacks_complete",
                after.complete.saturating_sub(before.complete) as f64,
            ),
        ],
    )
}

/// For how long switches were seen; nothing where there was nobody to see them.
pub(crate) fn seen_rows(measurement: i32, seconds: &[Stretch]) -> Vec<CounterRow> {
    let times: Vec<SwitchTime> = seconds.iter().filter_map(|stretch| stretch.switches_seen).collect();
    if times.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&SwitchTime) -> u64| times.iter().map(of).sum::<u64>() as f64 / 1e9;
    rows_of(
        measurement,
        None,
        [
            ("probe.switch_seconds", sum(|time| time.all_ns)),
            ("probe.observed_seconds", sum(|time| time.seen_ns)),
        ],
    )
}

pub(crate) fn lost_rows(measurement: i32, before: LostBy, after: LostBy) -> Vec<CounterRow> {
    let lost = |of: fn(&LostBy) -> u64| of(&after).saturating_sub(of(&before)) as f64;
    rows_of(
        measurement,
        None,
        [
            ("probe.lost_to_full_ring", lost(|by| by.full_ring)),
            ("probe.lost_without_slot", lost(|by| by.without_slot)),
            ("probe.unmatched", lost(|by| by.unmatched)),
            ("probe.lost_for_memory", lost(|by| by.for_memory)),
            ("probe.lost_to_recursion", lost(|by| by.to_recursion)),
        ],
    )
}

/// How many threads of each role there were, and of each name where the kernel gave the number of one to another.
pub(crate) fn life_rows(
    measurement: i32,
    lives: &HashMap<u32, u64>,
    names: &BTreeMap<u32, &str>,
    role: &impl Fn(u32) -> Role,
) -> Vec<CounterRow> {
    let count = |of: Role| {
        let lives = lives.iter().filter(|(thread, _)| role(**thread) == of);
        lives.map(|(_, count)| *count).sum::<u64>() as f64
    };
    let mut rows = rows_of(
        measurement,
        None,
        [
            ("threads.connection_level", count(Role::Connection)),
            ("threads.background_level", count(Role::Background)),
        ],
    );
    // Threads and numbers of each name.
    let mut by_name: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (thread, name) in names.iter().filter(|(thread, _)| role(**thread) == Role::Background) {
        let (all, numbers) = by_name.entry(name).or_default();
        *all += lives.get(thread).copied().unwrap_or_default();
        *numbers += 1;
    }
    for (name, (all, _)) in by_name.into_iter().filter(|(_, (all, numbers))| all > numbers) {
        let counter = format!("threads.background.{name}_level");
        rows.extend(rows_of(measurement, None, [(counter.as_str(), all as f64)]));
    }
    rows
}

/// How the server's threads got and lost their CPUs; nothing where that was not counted.
pub(crate) fn switching_rows(measurement: i32, second: i32, threads: &[ThreadStretch]) -> Vec<CounterRow> {
    let counted: Vec<Switching> = threads.iter().filter_map(|thread| thread.switching).collect();
    if counted.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&Switching) -> u64| counted.iter().map(of).sum::<u64>() as f64;
    rows_of(
        measurement,
        Some(second),
        [
            ("threads.voluntary_switches", sum(|thread| thread.voluntary)),
            ("threads.preemptions", sum(|thread| thread.preempted)),
            ("threads.migrations", sum(|thread| thread.migrations)),
            ("threads.page_fault_waits", sum(|thread| thread.fault_waits)),
            (
                "threads.cpu_seconds_uncharged",
                sum(|thread| thread.not_its_own_ns) * 1e-9,
            ),
        ],
    )
}

pub(crate) fn rows_of<const N: usize>(
    measurement: i32,
    second: Option<i32>,
    counters: [(&str, f64); N],
) -> Vec<CounterRow> {
    counters
        .into_iter()
        .map(|(counter, value)| CounterRow {
            measurement,
            second,
            counter: counter.to_owned(),
            value,
            running_share: None,
        })
        .collect()
}

fn signed(nanoseconds: u64) -> i64 {
    i64::try_from(nanoseconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(thread: u32, nanoseconds: [u64; ThreadState::IN_KERNEL]) -> ThreadStretch {
        ThreadStretch {
            thread,
            name: String::new(),
            lifetime_ns: nanoseconds.iter().sum(),
            nanoseconds,
            net_seen_ns: 0,
            switching: None,
            ended: false,
            after_end: false,
        }
    }

    #[test]
    fn threads_are_counted_by_role_and_where_numbers_came_again_by_name() {
        let lives = HashMap::from([(7, 3), (8, 1), (9, 2)]);
        let names = BTreeMap::from([(7, "io"), (8, "io"), (9, "served")]);
        let role = |thread: u32| {
            if thread == 9 {
                Role::Connection
            } else {
                Role::Background
            }
        };
        let rows = life_rows(0, &lives, &names, &role);
        let told: Vec<(&str, f64)> = rows.iter().map(|row| (row.counter.as_str(), row.value)).collect();
        assert_eq!(
            told,
            [
                ("threads.connection_level", 2.0),
                ("threads.background_level", 4.0),
                ("threads.background.io_level", 4.0)
            ]
        );
        let once = HashMap::from([(7, 1), (8, 1)]);
        assert_eq!(life_rows(0, &once, &names, &role).len(), 2, "numbers tell it");
    }

    #[test]
    fn a_second_has_the_sums_of_its_threads_by_role_and_they_fill_their_lives() {
        let stretch = Stretch {
            threads: vec![
                thread(1, [10, 0, 20, 30, 40, 50, 60, 70]),
                thread(2, [1, 0, 2, 3, 4, 5, 6, 7]),
                thread(9, [100, 0, 0, 900, 0, 0, 0, 0]),
            ],
            ..Stretch::default()
        };
        let role = |thread: u32| {
            if thread == 9 {
                Role::Background
            } else {
                Role::Connection
            }
        };
        let rows = second_rows(0, 3, &stretch, &role);
        let of = |role: Role, state: ThreadState| {
            let row = rows.iter().find(|row| row.role == role && row.state == state);
            row.map(|row| row.nanoseconds)
        };
        let states = [
            ThreadState::Cpu,
            ThreadState::RunQueue,
            ThreadState::Lock,
            ThreadState::Io,
            ThreadState::Net,
            ThreadState::Sleep,
            ThreadState::Other,
        ];
        assert_eq!(
            states.map(|state| of(Role::Connection, state)),
            [11, 22, 33, 44, 55, 66, 77].map(Some)
        );
        assert_eq!(
            (
                of(Role::Background, ThreadState::Cpu),
                of(Role::Background, ThreadState::Lock)
            ),
            (Some(100), Some(900))
        );
        for role in [Role::Connection, Role::Background] {
            let all: i64 = states.iter().filter_map(|state| of(role, *state)).sum();
            let of_role = rows.iter().filter(|row| row.role == role);
            let lifetimes = of_role.filter_map(|row| Some((row.state, row.lifetime_ns?)));
            assert_eq!(lifetimes.collect::<Vec<_>>(), [(ThreadState::Cpu, all)], "{role:?}");
        }
    }

    #[test]
    fn a_thread_has_its_lifetime_beside_its_cpu_time_also_where_it_had_none_and_no_row_without_a_life() {
        let rows = |stretch: &ThreadStretch| {
            let rows = thread_rows(0, (7, "purge"), stretch, Role::Background);
            let of_row = |row: StateRow| (row.state, row.nanoseconds, row.lifetime_ns);
            rows.into_iter().map(of_row).collect::<Vec<_>>()
        };
        let expected = [(ThreadState::Cpu, 0, Some(50)), (ThreadState::Io, 50, None)];
        assert_eq!(rows(&thread(7, [0, 0, 0, 0, 50, 0, 0, 0])), expected);
        assert_eq!(rows(&thread(7, [0; ThreadState::IN_KERNEL])), []);
    }
}
