//! Starts in which something else than the servers had a say.

use scaleprof_analysis::guards::{MOST_BY_OTHERS, MOST_STOLEN};
use scaleprof_analysis::numbers::percent;
use scaleprof_analysis::trials::{RungFigures, Session, Start};

/// What may have been amiss at a rung of a start, in words, and by how much if it was; some kinds have no measure.
type Trouble = (&'static str, fn(&RungFigures) -> Option<Option<f64>>);

/// A warning for each kind and rung, with how many starts it befell and the worst of them.
pub(crate) fn disturbed(session: &Session) -> Vec<String> {
    let kinds: [Trouble; 3] = [
        ("other programs used the CPUs", |rung| {
            rung.noise_cpu_share.filter(|share| *share > MOST_BY_OTHERS).map(Some)
        }),
        ("the hypervisor took CPU time away", |rung| {
            rung.steal_share.filter(|share| *share > MOST_STOLEN).map(Some)
        }),
        ("throughput did not settle", |rung| (!rung.steady).then_some(None)),
    ];
    let starts: Vec<&Start> = starts(session).collect();
    let mut warnings = Vec::new();
    for (what, trouble) in kinds {
        for connections in &session.ladder {
            let rungs = starts.iter().filter_map(|start| start.rungs.get(connections));
            let (all, befallen) = (rungs.clone().count(), rungs.filter_map(trouble).collect::<Vec<_>>());
            if befallen.is_empty() {
                continue;
            }
            let worst = befallen.iter().flatten().copied().reduce(f64::max);
            let worst = worst.map_or(String::new(), |share| {
                format!(", {} of the machine at the worst", percent(share))
            });
            let count = befallen.len();
            warnings.push(format!(
                "at {connections} connections {what} in {count} of {all} starts{worst}"
            ));
        }
    }
    warnings
}

fn starts(session: &Session) -> impl Iterator<Item = &Start> {
    let sentinels = session.sentinels.iter().flat_map(|pair| &pair.starts);
    sentinels.chain(session.rounds.iter().flat_map(|round| round.values()))
}

#[cfg(test)]
mod tests {
    use super::super::conduct::tests::figures;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_befell_starts_is_told_once_for_each_rung_with_the_worst() {
        let start = |other: f64, steady: bool| Start {
            began: 0.0,
            rungs: BTreeMap::from([(
                16,
                RungFigures {
                    noise_cpu_share: Some(other),
                    steady,
                    ..figures(1000.0)
                },
            )]),
        };
        let session = Session {
            ladder: vec![16],
            rounds: vec![
                BTreeMap::from([(0, start(0.3, true)), (1, start(0.01, true))]),
                BTreeMap::from([(0, start(0.1, true)), (1, start(0.0, false))]),
            ],
            ..Session::default()
        };
        assert_eq!(
            disturbed(&session),
            [
                "at 16 connections other programs used the CPUs in 2 of 4 starts, 30 % of the machine at the worst",
                "at 16 connections throughput did not settle in 1 of 4 starts",
            ]
        );
    }
}
