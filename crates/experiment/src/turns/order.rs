//! How long turns are and who comes first.

/// The shortest turn by the clock of the load whose turn it is, nanoseconds.
///
/// Short, as a machine's speed drifts at every scale: two servers that took turns of 0.25 s differed by 1.6 % over 10 s (standard
/// deviation), in turns of 5 s by 3.3 %, and in turns of 0.1 s not by less. Long enough that the server's caches, cold at its start, are warm
/// for nearly all of it.
const SHORTEST_NS: u64 = 250_000_000;
/// A second's turn is long enough for so many connections: the end of a turn and the start of the next cost every thread of the server a
/// context switch and a wake-up, which is to stay under about 1 % of the CPUs.
const CONNECTIONS_A_SECOND: u64 = 2048;

/// How long the turns of servers with so many connections are, nanoseconds by the clock of the load whose turn it is: 0.25 s up to 512 of
/// them, and beyond in proportion.
pub(crate) fn turn_ns(connections: u32) -> u64 {
    SHORTEST_NS.max(u64::from(connections) * 1_000_000_000 / CONNECTIONS_A_SECOND)
}

/// The same in seconds.
pub(crate) fn turn_seconds(connections: u32) -> f64 {
    turn_ns(connections) as f64 / 1e9
}

/// The time by a load's own clock at which its turn of this cycle ends. The first is half a turn, so that the ends of seconds, at which
/// servers are asked things, are in the middle of turns of a quarter of a second.
pub(super) fn turn_end_ns(turn_ns: u64, cycle: u64) -> u64 {
    turn_ns / 2 + cycle * turn_ns
}

/// The order of these seats in every cycle of a measurement: one after the other, round and round,
/// so that nobody is stopped only to go on again. With whom a measurement begins changes with it;
/// seats are in the order of a round, which the next round has the other way round.
pub(super) fn order(seats: &[usize], measurement: u32) -> Vec<usize> {
    let mut order = seats.to_vec();
    let places = order.len().max(1);
    order.rotate_left(measurement as usize % places);
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn seconds_end_in_the_middle_of_turns() {
        let ends: Vec<u64> = (0..50).map(|cycle| turn_end_ns(SHORTEST_NS, cycle)).collect();
        for second in 1..=10 {
            let end = second * 1_000_000_000;
            let distance = ends.iter().map(|turn| turn.abs_diff(end)).min();
            assert_eq!(distance, Some(SHORTEST_NS / 2));
        }
    }

    #[test]
    fn turns_are_longer_where_there_are_many_threads_to_stop() {
        let lengths = [1, 512, 1024, 2048, 8192].map(turn_seconds);
        assert_eq!(lengths, [0.25, 0.25, 0.5, 1.0, 4.0]);
        assert!(turn_ns(u32::MAX) > turn_ns(99_000));
    }

    proptest! {
        #[test]
        fn all_have_a_turn_in_every_cycle_nobody_two_in_a_row_and_each_begins_in_turn(seats in 2..6usize, measurement in 0..u32::MAX) {
            let seats: Vec<usize> = (0..seats).collect();
            let cycle = order(&seats, measurement);
            let mut all = cycle.clone();
            all.sort_unstable();
            prop_assert_eq!(&all, &seats);
            // The next cycle is the same.
            prop_assert_ne!(cycle.first(), cycle.last());
            for pair in cycle.windows(2) {
                prop_assert_eq!((pair[0] + 1) % seats.len(), pair[1]);
            }
            prop_assert_eq!((cycle[0] + 1) % seats.len(), order(&seats, measurement % seats.len() as u32 + 1)[0]);
        }
    }
}
