//! Which rungs to measure next.

/// What is known of a rung.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    /// Connections.
    pub connections: u32,
    /// Transactions per second.
    pub throughput: f64,
}

/// Neighbours closer than this ratio need no rung between them.
pub const CLOSE: f64 = 1.2;

/// Connections to measure next, rising: the geometric midpoints between the peak and its neighbours, and between the last
/// rung that still has 95 % of the peak and the first past it that has not, until neighbours are within a ratio of 1.2.
/// At most `budget` of them, those next to the peak first; none when there is nothing left to find.
pub fn next_rungs(seen: &[Seen], budget: usize) -> Vec<u32> {
    let mut rungs = seen.to_vec();
    rungs.sort_by_key(|rung| rung.connections);
    rungs.dedup_by_key(|rung| rung.connections);
    let Some(peak) = (0..rungs.len()).max_by(|a, b| rungs[*a].throughput.total_cmp(&rungs[*b].throughput)) else {
        return Vec::new();
    };
    let held = |rung: &Seen| rung.throughput >= crate::peak::BAND * rungs[peak].throughput;
    let mut pairs = Vec::new();
    if peak > 0 {
        pairs.push((peak - 1, peak));
    }
    if peak + 1 < rungs.len() {
        pairs.push((peak, peak + 1));
        if let Some(last) = rungs.iter().rposition(held).filter(|last| last + 1 < rungs.len()) {
            pairs.push((last, last + 1));
        }
    }
    let mut wanted: Vec<u32> = Vec::new();
    for (low, high) in pairs {
        if let Some(middle) = midpoint(rungs[low].connections, rungs[high].connections)
            && wanted.len() < budget
            && !wanted.contains(&middle)
        {
            wanted.push(middle);
        }
    }
    wanted.sort_unstable();
    wanted
}

fn midpoint(low: u32, high: u32) -> Option<u32> {
    let middle = (f64::from(low) * f64::from(high)).sqrt().round() as u32;
    (f64::from(high) > CLOSE * f64::from(low) && middle > low && middle < high).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seen(points: &[(u32, f64)]) -> Vec<Seen> {
        points
            .iter()
            .map(|(connections, throughput)| Seen {
                connections: *connections,
                throughput: *throughput,
            })
            .collect()
    }

    #[test]
    fn the_peak_and_the_fall_are_closed_in_on() {
        let ladder = seen(&[(1, 10.), (4, 40.), (16, 100.), (64, 99.), (256, 50.)]);
        assert_eq!(next_rungs(&ladder, 9), vec![8, 32, 128]);
        assert_eq!(next_rungs(&ladder, 1), vec![8]);
        assert!(next_rungs(&ladder, 0).is_empty());
    }

    #[test]
    fn neighbours_that_are_close_are_left_alone() {
        assert!(next_rungs(&seen(&[(10, 9.), (11, 10.), (12, 8.)]), 9).is_empty());
        assert!(next_rungs(&seen(&[(1, 9.), (2, 10.), (3, 8.)]), 9).is_empty());
        assert!(next_rungs(&[], 9).is_empty());
    }

    proptest! {
        #[test]
        fn it_ends_within_a_few_rounds_whatever_the_curve(top in 1.0..600.0f64, steep in 0.1..3.0f64) {
            let curve = |n: u32| { let n = f64::from(n); if n <= top { n } else { top * (n / top).powf(-steep) } };
            let mut ladder: Vec<Seen> = (0..10).map(|k| Seen { connections: 1 << k, throughput: curve(1 << k) }).collect();
            for _ in 0..12 {
                for connections in next_rungs(&ladder, 4) {
                    prop_assert!(ladder.iter().all(|rung| rung.connections != connections));
                    ladder.push(Seen { connections, throughput: curve(connections) });
                }
            }
            prop_assert!(next_rungs(&ladder, 4).is_empty());
            prop_assert!(ladder.len() < 40);
        }
    }
}
