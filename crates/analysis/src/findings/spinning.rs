//! Threads that run and only wait.

use super::finding::Draft;
use super::{Context, LEAST, Profiled};
use crate::figure::{Figure as _, heaviest};
use crate::numbers::percent;
use crate::path_costs::StatePath;
use scaleprof_bundle::Estimate;
use scaleprof_vocabulary::{FindingKind, ShareOf, ThreadState};

/// Waiters that are told.
const MOST_WAITERS: usize = 4;

impl Context<'_> {
    /// What spinning takes of a transaction at the last rung, as a part of one of its times; all of it, not only what grew.
    pub(super) fn spinning(&self, base: &Profiled<'_>, last: &Profiled<'_>, share_of: ShareOf) -> Option<Draft> {
        let state_paths: Vec<StatePath> = last.costs.state_paths(ThreadState::Spin).collect();
        let waiters = self.by_waiter(last.costs, &state_paths);
        let (_, _, paths) = waiters.first()?;
        let worst = heaviest(last.costs, paths)?;
        let spent = last.costs.estimate_of_state(ThreadState::Spin)?;
        let share = match share_of {
            ShareOf::ConnectionTime => spent.over(last.connection_seconds()),
            _ => last.costs.spinning_share()?,
        };
        let path = self.call_paths.functions(worst.path);
        let mut draft = self.draft(FindingKind::SpinWaiting, path, share, base, last);
        draft.accounts.state_paths = state_paths
            .iter()
            .copied()
            .chain(base.costs.state_paths(ThreadState::Spin))
            .collect();
        let takes = format!(
            "spin loops take {:.1} \u{b5}s per transaction at {} connections",
            spent.value * 1e6,
            last.summary.connections
        );
        let before = base.costs.with_seconds(ThreadState::Spin);
        let before = before.fold(0.0, |sum, (_, seconds)| sum + seconds);
        draft
            .evidence
            .push(match base.summary.connections == last.summary.connections {
                true => takes,
                false => format!(
                    "{takes} and {:.1} \u{b5}s at {}; the share counts all of it, not only the growth",
                    before * 1e6,
                    base.summary.connections
                ),
            });
        for (waiter, share, _) in waiters.iter().take(MOST_WAITERS) {
            draft.evidence.push(format!(
                "{} of the spinning in {}",
                percent(*share),
                self.said_of(waiter)
            ));
        }
        draft.evidence.extend(self.settings_of(&draft.knobs));
        draft.evidence.extend(self.spin_round(&draft));
        Some(draft)
    }

    /// Spinning is waste whether or not a transaction got dearer, and whether or not CPUs idle: the last rung where it surely takes a good
    /// part of the CPU time there, else the one at which it surely takes the largest. At another rung than the last it explains nothing
    /// that is lost there, and says so.
    pub(super) fn spinning_anywhere(&self, rungs: &[Profiled<'_>]) -> Option<Draft> {
        let last = rungs.last()?;
        let of = |rung: &&Profiled<'_>| rung.summary.connections;
        let drafts = rungs.iter().filter_map(|rung| {
            let draft = self.spinning(rung, rung, ShareOf::CpuTime)?;
            draft.is_worth_a_word().then_some((rung, draft))
        });
        let mut drafts: Vec<(&Profiled<'_>, Draft)> = drafts.collect();
        drafts.sort_by(|(_, a), (_, b)| b.rank().total_cmp(&a.rank()));
        let place = drafts.iter().position(|(rung, _)| of(rung) == of(&last)).unwrap_or(0);
        let most = drafts.first().map(|(rung, draft)| (of(rung), draft.lost));
        let (rung, mut draft) = (!drafts.is_empty()).then(|| drafts.swap_remove(place))?;
        let (here, there) = (of(&rung), of(&last));
        let first = match here == there {
            true => most.filter(|(most, _)| *most != there).map(|(most, share)| {
                format!(
                    "it takes most at {most} connections: {} of the CPU time{}",
                    percent(share.value),
                    limits(share)
                )
            }),
            false => {
                draft.is_elsewhere = true;
                draft.title = Some(format!("{}, at {here} connections", draft.usual_title()));
                Some(at_the_last(here, last))
            }
        };
        let idle = rung.busy().filter(|_| !rung.is_busy()).map(|busy| {
            match rung.summary.busy_share {
                Some(_) => format!(
                    "CPUs are idle there (server and client use {}), so spinning delays no other thread but still uses CPU time",
                    percent(busy)
                ),
                None => format!(
                    "the server uses {} of the CPUs there; whether spinning delays other threads is unknown",
                    percent(busy)
                ),
            }
        });
        draft.evidence.splice(0..0, first.into_iter().chain(idle));
        Some(draft)
    }
}

/// What the spinning that is told of one rung is at the last one.
fn at_the_last(here: u32, last: &Profiled<'_>) -> String {
    let there = last.summary.connections;
    let spins = last.costs.with_seconds(ThreadState::Spin);
    let micros = spins.fold(0.0, |sum, (_, seconds)| sum + seconds) * 1e6;
    let takes = format!("spin loops take {micros:.1} \u{b5}s per transaction");
    match last.costs.spinning_share() {
        Some(Estimate {
            value,
            low: Some(low),
            high: Some(high),
        }) if high >= LEAST => format!(
            "waste at {here} connections; at {there} {takes} ({} of CPU time, {} to {}), which may be negligible",
            percent(value),
            percent(low),
            percent(high.min(1.0))
        ),
        share => format!(
            "waste at {here} connections, but not a cause of the loss at {there}: there {takes}{}",
            share.map_or(String::new(), |share| format!(
                " ({} of CPU time)",
                percent(share.value)
            ))
        ),
    }
}

/// ` (1.7 % to 4.6 %)`; nothing where too few seconds give no interval.
fn limits(share: Estimate) -> String {
    let both = share.low.zip(share.high);
    both.map_or(String::new(), |(low, high)| {
        format!(" ({} to {})", percent(low), percent(high))
    })
}
