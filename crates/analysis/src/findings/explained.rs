//! How much of what is lost the findings explain, and what has no finding. Nothing is told twice: the call paths and locks of all
//! findings of one account are put together before they are added up.

use super::busy::once_each;
use super::cover::{Covered, cover};
use super::finding::Draft;
use super::uniform_slowdown::uniform_slowdown;
use super::{Context, Profiled};
use crate::call_paths::CallPaths;
use crate::figure::{Figure as _, growth};
use crate::numbers::percent;
use crate::path_costs::{PathCosts, StatePath};
use scaleprof_bundle::{Estimate, Explained, UnexplainedPath};
use scaleprof_vocabulary::{PerState, ShareOf, ThreadState};

/// Part of the loss from which on a path without a finding is named.
const WORTH_A_NAME: f64 = 0.01;
/// Functions by which it is named in the sentence, innermost first.
const MOST_FUNCTIONS: usize = 3;
/// From here on all is explained, as far as a rounded figure can tell.
const ALL: f64 = 0.995;

impl Context<'_> {
    /// What the listed findings explain of what a transaction takes more at the last rung, in an account of time; none where it
    /// takes no more.
    pub(super) fn explained(
        &self,
        account: ShareOf,
        drafts: &[Draft],
        base: &Profiled<'_>,
        last: &Profiled<'_>,
    ) -> Option<Explained> {
        let is_cpu = account == ShareOf::CpuTime;
        let lost = match is_cpu {
            true => last.cpu()? - base.cpu()?,
            false => last.connection_seconds() - base.connection_seconds(),
        };
        // A rung without a transaction takes endlessly long for one.
        if lost <= 0.0 || !lost.is_finite() {
            return None;
        }
        let telling = || {
            drafts
                .iter()
                .filter(|draft| draft.share_of == account && !draft.is_elsewhere)
        };
        let locks: Vec<i64> = telling().filter_map(|draft| draft.accounts.lock).collect();
        let without = |rung: &Profiled<'_>| rung.costs.without(ThreadState::Lock, rung.locks.off_cpu(&locks));
        let (before, after) = (without(base), without(last));
        let uniform_slowdown = match is_cpu {
            true => uniform_slowdown(base.costs, last.costs).unwrap_or(1.0),
            false => 1.0,
        };
        let mut told: Vec<StatePath> = telling()
            .flat_map(|draft| &draft.accounts.state_paths)
            .copied()
            .collect();
        told.sort();
        told.dedup();
        // What waits in a loop does not take longer because everything does.
        let (spins, others): (Vec<StatePath>, Vec<StatePath>) = told
            .iter()
            .partition(|state_path| state_path.state == ThreadState::Spin);
        let parts = [
            growth(&before, &after, &spins, 1.0),
            growth(&before, &after, &others, uniform_slowdown),
        ];
        let of_locks = locks.iter().filter_map(|lock| {
            let now = last.locks.estimate(*lock)?;
            Some(now.less(base.locks.estimate(*lock)))
        });
        let besides = telling().filter_map(|draft| draft.accounts.besides);
        let explained = together(parts.into_iter().chain(of_locks).chain(besides)).over(lost);
        let untold = Untold {
            before: &before,
            after: &after,
            told: &told,
            lost,
            uniform_slowdown,
        };
        let states = ThreadState::ALL
            .into_iter()
            .filter(|state| !is_cpu || state.is_on_cpu());
        // What waits for a CPU is told by its share: it is no cause. What waits for the client is not the server's.
        let of_server = states.filter(|state| *state != ThreadState::RunQueue && !state.waits_for_work());
        let named = of_server.filter_map(|state| untold.heaviest(state, self.call_paths));
        let heaviest = named.max_by(|a, b| a.share.total_cmp(&b.share));
        let mut found = Explained {
            account,
            rungs: [base.summary.connections, last.summary.connections],
            lost_seconds_per_txn: lost,
            explained_share: explained,
            unexplained_share: (1.0 - explained.value).max(0.0),
            waiting_for_cpu_share: (!is_cpu).then(|| untold.share(ThreadState::RunQueue).max(0.0)),
            outside_server_share: (!is_cpu).then(|| untold.share(ThreadState::Net).max(0.0)),
            heaviest,
            sentence: String::new(),
        };
        let told: f64 = telling()
            .filter_map(|draft| draft.accounts.besides)
            .map(|besides| besides.value)
            .sum();
        let least = found.heaviest.as_ref().map_or(WORTH_A_NAME, |path| path.share) * lost;
        let unseen = (!is_cpu).then(|| unseen_waits(base, last, told)).flatten();
        let unseen = unseen.filter(|(_, seconds)| *seconds > least).map(|(words, _)| words);
        found.sentence = self.sentence(&found, telling().count(), unseen);
        Some(found)
    }

    fn sentence(&self, found: &Explained, findings: usize, unseen: Option<String>) -> String {
        let [base, last] = found.rungs;
        let more = found.lost_seconds_per_txn * 1e6;
        let what = match found.account {
            ShareOf::CpuTime => format!("a transaction takes {more:.0} \u{b5}s more CPU time than at {base}"),
            _ => format!("a transaction takes a connection {more:.0} \u{b5}s longer than at {base}"),
        };
        let value = found.explained_share.value;
        let between = match found.explained_share.low.zip(found.explained_share.high) {
            // More than all of it is beyond what can be explained, unless other paths got cheaper.
            Some((low, high)) if high > low => {
                format!(" ({} to {})", percent(low.max(0.0)), percent(high.min(value.max(1.0))))
            }
            // What was counted has no interval.
            _ => String::new(),
        };
        let explain = match findings {
            0 => "no finding explains any of it".to_owned(),
            _ => {
                let who = match findings {
                    1 => "one finding explains",
                    _ => "the findings together explain",
                };
                let cheaper = if value > 1.0 + WORTH_A_NAME {
                    ", other paths decreased"
                } else {
                    ""
                };
                let limits = found.explained_share.low.zip(found.explained_share.high);
                match limits.is_some_and(|(low, high)| low <= 0.0 && high >= 1.0) {
                    true => format!(
                        "the explained share is unknown: too few repeats (mean {})",
                        percent(value)
                    ),
                    false => format!("{who} {} of it{between}{cheaper}", percent(value)),
                }
            }
        };
        let rest = match value < ALL {
            true => format!("; {}", self.rest(found, unseen)),
            false => String::new(),
        };
        format!("At {last} connections {what}: {explain}{rest}.")
    }

    /// What has no finding.
    fn rest(&self, found: &Explained, unseen: Option<String>) -> String {
        let mut parts = Vec::new();
        let known = |share: Option<f64>| share.filter(|share| *share >= WORTH_A_NAME);
        if let Some(share) = known(found.waiting_for_cpu_share) {
            // Where other parts shrank, one grows by more than the whole.
            let how_much = match share > 1.0 {
                true => "more than all of it".to_owned(),
                false => percent(share),
            };
            parts.push(format!("{how_much} is run-queue time, an effect rather than a cause"));
        }
        if let Some(share) = known(found.outside_server_share) {
            parts.push(format!("{} is outside the server", percent(share)));
        }
        parts.push(match (unseen, &found.heaviest) {
            (Some(words), _) => words,
            (None, Some(heaviest)) => format!(
                "the heaviest call path of it ({}, {}) is in {}",
                percent(heaviest.share),
                heaviest.state.name(),
                self.by_its_innermost(heaviest)
            ),
            (None, None) => "no call path of it has 1 %".to_owned(),
        });
        format!(
            "{} has no finding: {}",
            percent(found.unexplained_share),
            parts.join(", ")
        )
    }

    fn by_its_innermost(&self, heaviest: &UnexplainedPath) -> String {
        let how = |function: &&String| function.ends_with(" [k]") || self.knowledge.is_primitive(function);
        let is_on_cpu = heaviest.state.is_on_cpu();
        let inwards = || heaviest.path.iter().rev();
        let named: Vec<&str> = match is_on_cpu || inwards().all(|function| how(&function)) {
            true => inwards().take(MOST_FUNCTIONS).map(String::as_str).collect(),
            false => inwards()
                .skip_while(how)
                .take(MOST_FUNCTIONS)
                .map(String::as_str)
                .collect(),
        };
        named.join(" < ")
    }
}

/// The state whose waits grew most of those of which no call path was seen, in words, and by how many seconds of a transaction, less what
/// findings tell without one.
fn unseen_waits(base: &Profiled<'_>, last: &Profiled<'_>, told: f64) -> Option<(String, f64)> {
    let states = |rung: &Profiled<'_>| Some(rung.summary.ledger.as_ref()?.seconds_per_txn);
    let (before, after) = (states(base)?, states(last)?);
    let waits = [
        ThreadState::Lock,
        ThreadState::Io,
        ThreadState::Sleep,
        ThreadState::Other,
    ];
    // Of a recording of threads that run, all that is known of the rest is that it is no CPU time.
    if !after
        .iter()
        .any(|(state, of_state)| !state.is_on_cpu() && of_state.is_some())
    {
        let on_cpu = |states: &PerState<Option<f64>>| -> f64 {
            let of = states.iter().filter(|(state, _)| state.is_on_cpu());
            of.filter_map(|(_, seconds)| *seconds).sum()
        };
        let lost = last.connection_seconds() - base.connection_seconds();
        let words = "only running threads were recorded, so the waits are unknown: also record switches (perf sched \
                     record, or perf record --off-cpu)";
        return Some((words.to_owned(), lost - (on_cpu(&after) - on_cpu(&before)) - told));
    }
    let unseen = waits.into_iter();
    let unseen = unseen.filter(|state| last.costs.with_seconds(*state).next().is_none());
    let grown = unseen.filter_map(|state| Some((state, after[state]? - before[state].unwrap_or(0.0))));
    let (state, seconds) = grown.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let seconds = seconds - told;
    let words = format!(
        "{:.0} \u{b5}s more are in the state {}, whose call paths are unknown (the report has the reason)",
        seconds * 1e6,
        state.name()
    );
    Some((words, seconds))
}

/// What no finding tells of two rungs.
struct Untold<'a> {
    /// Without the locks that findings tell.
    before: &'a PathCosts,
    after: &'a PathCosts,
    /// The call paths that findings tell, in order.
    told: &'a [StatePath],
    /// What a transaction takes more, seconds.
    lost: f64,
    /// What takes longer on a CPU everywhere alike, and is told by a finding of its own.
    uniform_slowdown: f64,
}

impl Untold<'_> {
    fn is_told(&self, state_path: &StatePath) -> bool {
        self.told.binary_search(state_path).is_ok()
    }

    /// By which part of the loss all that is untold in a state grew.
    fn share(&self, state: ThreadState) -> f64 {
        let rest = |costs: &PathCosts| {
            let rest = costs
                .with_seconds(state)
                .filter(|(state_path, _)| !self.is_told(state_path));
            rest.map(|(_, seconds)| seconds).sum::<f64>()
        };
        (rest(self.after) - rest(self.before)) / self.lost
    }

    /// The call path of a state that grew most; none where none holds 1 % of the loss.
    fn heaviest(&self, state: ThreadState, call_paths: &CallPaths<'_>) -> Option<UnexplainedPath> {
        let of_both = self.after.state_paths(state).chain(self.before.state_paths(state));
        let mut rest: Vec<StatePath> = of_both
            .filter(|state_path| !self.is_told(state_path) && call_paths.is_whole(state_path.path))
            .collect();
        once_each(&mut rest);
        let longer = if state == ThreadState::Cpu {
            self.uniform_slowdown
        } else {
            1.0
        };
        let grew = |state_path: &StatePath| self.after.seconds(*state_path) - longer * self.before.seconds(*state_path);
        let costs = rest
            .iter()
            .map(|state_path| (state_path.path, grew(state_path), self.after.seconds(*state_path)));
        let covered = cover(costs, call_paths, WORTH_A_NAME * self.lost).into_iter();
        let shares = covered.map(|Covered { path, within }| {
            let inside = rest.iter().filter(|state_path| within.contains(&state_path.path));
            (path, inside.map(grew).sum::<f64>() / self.lost)
        });
        let (path, share) = shares
            .filter(|(_, share)| *share >= WORTH_A_NAME)
            .max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        Some(UnexplainedPath {
            state,
            path: call_paths.functions(path),
            share,
        })
    }
}

/// The sum of figures that may hang together: their intervals are added up, which is never too narrow.
fn together(parts: impl Iterator<Item = Estimate>) -> Estimate {
    let nothing = Estimate {
        value: 0.0,
        low: Some(0.0),
        high: Some(0.0),
    };
    parts.fold(nothing, |sum, part| {
        let add = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a + b);
        // What was counted has no interval and needs none.
        let is_counted = part.low.is_none() && part.high.is_none();
        let limits = if is_counted {
            (Some(part.value), Some(part.value))
        } else {
            (part.low, part.high)
        };
        Estimate {
            value: sum.value + part.value,
            low: add(sum.low, limits.0),
            high: add(sum.high, limits.1),
        }
    })
}
