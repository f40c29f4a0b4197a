//! Starts that belong together and were torn apart by an interruption.

use scaleprof_analysis::trials::{Session, Start};

/// Starts that lie so many times farther apart than usual were interrupted in between,
const FAR: f64 = 4.0;
/// if it is more than so many seconds: a server that once took its time is no interruption.
const LEAST_SECONDS: f64 = 120.0;

/// A warning for every round and pair whose starts lie far apart. Pairs hide what changes slowly, because their starts follow each other.
/// Such as run side by side are measured again together when they are interrupted, and take turns however far apart they began.
pub(crate) fn torn_apart(session: &Session) -> Vec<String> {
    if session.side_by_side {
        return Vec::new();
    }
    let rounds = session.rounds.iter().zip(1..).map(|(round, number): (_, u32)| {
        let apart = apart(round.values()) / round.len().saturating_sub(1).max(1) as f64;
        (format!("round {number}"), apart)
    });
    let pairs = session.sentinels.iter().zip(1..).map(|(pair, number): (_, u32)| {
        let [a, b] = &pair.starts;
        (format!("A/A pair {number}"), apart([a, b].into_iter()))
    });
    let all: Vec<(String, f64)> = rounds.chain(pairs).filter(|(_, apart)| *apart > 0.0).collect();
    let mut sorted: Vec<f64> = all.iter().map(|(_, apart)| *apart).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(usual) = sorted.get(sorted.len().saturating_sub(1) / 2) else {
        return Vec::new();
    };
    all.iter()
        .filter(|(_, apart)| *apart > (FAR * usual).max(LEAST_SECONDS))
        .map(|(what, apart)| {
            format!(
                "the starts of {what} lie {:.0} min apart, others {:.1} min: what changed on the machine meanwhile counts as a difference \
                 of its variants",
                apart / 60.0,
                usual / 60.0
            )
        })
        .collect()
}

/// Seconds from the first to the last.
fn apart<'a>(starts: impl Iterator<Item = &'a Start>) -> f64 {
    let (first, last) = starts.fold((f64::INFINITY, f64::NEG_INFINITY), |(first, last), start| {
        (first.min(start.began), last.max(start.began))
    });
    if last > first { last - first } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn round(begins: [f64; 2]) -> BTreeMap<usize, Start> {
        let start = |began| Start {
            began,
            rungs: BTreeMap::new(),
        };
        begins.into_iter().map(start).enumerate().collect()
    }

    #[test]
    fn a_pair_between_whose_starts_a_night_went_by_is_told() {
        let night = 9.0 * 3600.0;
        let rounds = [
            [0.0, 60.0],
            [120.0, 180.0],
            [240.0, 240.0 + night],
            [300.0 + night, 365.0 + night],
        ];
        let session = Session {
            rounds: rounds.map(round).into(),
            ..Session::default()
        };
        let told = torn_apart(&session);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].starts_with("the starts of round 3 lie 540 min apart, others 1.0 min"),
            "{told:?}"
        );
        let in_turns = Session {
            side_by_side: true,
            ..session
        };
        assert!(torn_apart(&in_turns).is_empty());
        let even = Session {
            rounds: vec![round([0.0, 60.0]), round([120.0, 200.0])],
            ..Session::default()
        };
        assert!(torn_apart(&even).is_empty());
    }
}
