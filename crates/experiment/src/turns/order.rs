//! When turns end and who comes first.

/// How long a turn is by the clock of the load whose turn it is, nanoseconds.
///
/// Short, as a machine's speed drifts at every scale: two servers that took turns of 0.25 s differed by 1.6 % over 10 s (standard
/// deviation), in turns of 5 s by 3.3 %, and in turns of 0.1 s not by less. Long enough that the server's caches, cold at its start, are warm
/// for nearly all of it.
pub(super) const TURN_NS: u64 = 250_000_000;
/// The same in seconds.
pub const TURN_SECONDS: f64 = TURN_NS as f64 / 1e9;

/// The time by a load's own clock at which its turn of this cycle ends. The first is half a turn, so that the ends of seconds, at which
/// servers are asked things, are in the middle of turns.
pub(super) fn turn_end_ns(cycle: u64) -> u64 {
    TURN_NS / 2 + cycle * TURN_NS
}

/// The order of these seats in a cycle: every second one is the mirror image of that before it, so that a steady drift has the same say
/// for all. Which cycles begin with whom changes with the visit.
pub(super) fn order(seats: &[usize], visit: u32, cycle: u64) -> Vec<usize> {
    let mut order = seats.to_vec();
    let places = order.len().max(1);
    order.rotate_left(visit as usize % places);
    if cycle % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seconds_end_in_the_middle_of_turns() {
        let ends: Vec<u64> = (0..50).map(turn_end_ns).collect();
        for second in 1..=10 {
            let end = second * 1_000_000_000;
            let distance = ends.iter().map(|turn| turn.abs_diff(end)).min();
            assert_eq!(distance, Some(TURN_NS / 2));
        }
    }

    proptest! {
        #[test]
        fn all_have_a_turn_in_every_cycle_and_a_steady_drift_has_the_same_say(seats in 1..6usize, visit in any::<u32>(), pair in 0..50u64) {
            let seats: Vec<usize> = (0..seats).collect();
            let (one, other) = (order(&seats, visit, 2 * pair), order(&seats, visit, 2 * pair + 1));
            for seat in &seats {
                let place = |order: &[usize]| order.iter().position(|one| one == seat).expect("in it");
                prop_assert_eq!(place(&one) + place(&other), seats.len() - 1);
            }
        }
    }
}
