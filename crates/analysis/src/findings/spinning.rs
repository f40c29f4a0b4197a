//! Threads that run and only wait.

use super::finding::Draft;
use super::kind::Kind;
use super::{Context, Profiled};
use crate::figure::{Figure as _, heaviest};
use crate::numbers::percent;
use crate::path_costs::Pathway;

/// Waiters that are told.
const MOST_WAITERS: usize = 4;

impl Context<'_> {
    /// What spinning takes of a transaction at the last rung, which costs so many seconds; all of it, not only what grew.
    pub(super) fn spinning(&self, base: &Profiled<'_>, last: &Profiled<'_>, cost: f64) -> Option<Draft> {
        let pathways: Vec<Pathway> = last.costs.pathways("spin").collect();
        let waiters = self.by_waiter(last.costs, &pathways);
        let (_, _, paths) = waiters.first()?;
        let worst = heaviest(last.costs, paths)?;
        let spent = last.costs.estimate_of_state("spin")?;
        let path = self.call_paths.functions(worst.path);
        let mut draft = self.draft(Kind::SpinWaiting, path, spent.over(cost), base, last);
        draft.accounts.pathways = pathways.iter().copied().chain(base.costs.pathways("spin")).collect();
        let takes = format!(
            "loops that only wait take {:.1} \u{b5}s of a transaction at {} connections",
            spent.value * 1e6,
            last.summary.connections
        );
        let before = base.costs.with_seconds("spin");
        let before = before.fold(0.0, |sum, (_, seconds)| sum + seconds);
        draft
            .evidence
            .push(match base.summary.connections == last.summary.connections {
                true => takes,
                false => format!(
                    "{takes} and {:.1} \u{b5}s at {}; all of it is counted, not only what grew",
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

    /// Spinning is waste whether or not a transaction got dearer: the rung of those with busy CPUs at which it surely takes the
    /// largest part. At another rung than the last it is no cause of what is lost there, and says so.
    pub(super) fn spinning_anywhere(&self, rungs: &[Profiled<'_>]) -> Option<Draft> {
        let drafts = rungs.iter().filter(|rung| rung.is_busy()).filter_map(|rung| {
            let draft = self.spinning(rung, rung, rung.cpu()?)?;
            draft.is_worth_a_word().then_some((rung, draft))
        });
        let (rung, mut draft) = drafts.max_by(|(_, a), (_, b)| a.rank().total_cmp(&b.rank()))?;
        let Some(last) = rungs
            .last()
            .filter(|last| last.summary.connections != rung.summary.connections)
        else {
            return Some(draft);
        };
        let (here, there) = (rung.summary.connections, last.summary.connections);
        draft.is_elsewhere = true;
        draft.title = Some(format!("{}, at {here} connections", draft.usual_title()));
        let spins = last.costs.with_seconds("spin");
        let spins = spins.fold(0.0, |sum, (_, seconds)| sum + seconds);
        let share = last.cpu().map_or(String::new(), |cpu| {
            format!(" ({} of its CPU time)", percent(spins / cpu))
        });
        draft.evidence.insert(
            0,
            format!(
                "it is waste at {here} connections and no cause of what is lost at {there}: there such loops take {:.1} \u{b5}s of a \
                 transaction{share}",
                spins * 1e6
            ),
        );
        Some(draft)
    }
}
