//! Names of perf's events.
//!
//! A CPU with cores of several kinds has a counting unit for each (Documentation/intel-hybrid.txt of perf): `cycles` is recorded as
//! `cpu_core/cycles/` and `cpu_atom/cycles/`, two events of which each tells the time on its own cores. They are one event
//! here, or else the time on half of the CPUs would be missing.

/// Counting units of kinds of cores.
const CORES: [&str; 3] = ["cpu_core/", "cpu_atom/", "cpu_lowpower/"];

/// The name without its unit, where that is a kind of cores: `cycles/P` of `cpu_core/cycles/P`.
fn on_some_cores(name: &str) -> Option<&str> {
    CORES.iter().find_map(|unit| name.strip_prefix(unit))
}

/// Whether both are the same event on cores of different kinds.
pub(crate) fn are_one_on_different_cores(one: &str, other: &str) -> bool {
    one != other && on_some_cores(one).is_some_and(|rest| on_some_cores(other) == Some(rest))
}

/// The event without its modifiers and without the kind of cores: `cycles` of `cycles:ppp` and of `cpu_core/cycles/P`.
pub(crate) fn plain(event: &str) -> &str {
    if let Some((name, _)) = on_some_cores(event).and_then(|rest| rest.split_once('/')) {
        return name;
    }
    let parts = event.split(':').count();
    // A tracepoint has its group in front of a colon.
    match event.rsplit_once(':') {
        Some((name, modifiers)) if parts > 2 || modifiers.len() <= 5 && !modifiers.contains('_') => name,
        _ => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_and_kinds_of_cores_are_no_part_of_a_name() {
        for (event, name) in [
            ("cycles", "cycles"),
            ("cycles:ppp", "cycles"),
            ("cpu_core/cycles/", "cycles"),
            ("cpu_atom/cycles/Pu", "cycles"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("sched:sched_switch:u", "sched:sched_switch"),
            ("uncore_imc/cas_count/", "uncore_imc/cas_count/"),
        ] {
            assert_eq!(plain(event), name, "{event}");
        }
    }

    #[test]
    fn an_event_is_one_on_all_kinds_of_cores() {
        assert!(are_one_on_different_cores("cpu_core/cycles/P", "cpu_atom/cycles/P"));
        assert!(!are_one_on_different_cores("cpu_core/cycles/P", "cpu_core/cycles/P"));
        assert!(!are_one_on_different_cores(
            "cpu_core/cycles/P",
            "cpu_atom/instructions/P"
        ));
        assert!(!are_one_on_different_cores("cycles", "cycles:u"));
    }
}
