//! Code that stands beside a fight and gets dearer by it.

use super::finding::Draft;
use crate::numbers::percent;
use crate::path_costs::StatePath;
use scaleprof_vocabulary::FindingKind;

/// What code beside a fight may have lost, as a part of what the fight itself did: as much was seen of arithmetic in registers,
/// which nothing but interruptions makes dearer (the planted allocator, crates/experiment/tests/integration/planted: 5 to 12 %).
const BY_EFFECT: f64 = 0.25;
/// How many times as long code beside a fight for a cache line may take by its effect: arithmetic beside the planted one took two to two and a half times as long, by few samples.
const MOST_SLOWED: f64 = 3.0;

/// Threads that fight for a lock in the kernel switch and wake each other thousands of times a
/// second. The interrupts that wake a CPU, and on a virtual machine the way through its host, are
/// charged to whatever code runs there, and after a switch the caches are cold: everything beside a
/// fight gets dearer. So it is with threads that fight for a cache line: arithmetic in registers
/// took twice the time beside the planted false sharing in some runs of one virtual machine and as
/// long as ever in others, at the same throughput and with nothing taken by the host; why is not
/// known. Where that common factor was measured it was taken out
/// ([`uniform_slowdown`](super::uniform_slowdown::uniform_slowdown)). Where it was not, growth of
/// ordinary code that is small beside the fight's is no cause of its own: the fight's finding says
/// how much it is.
///
/// `times` tells how many times as much some paths cost as they did. A fight for a cache line slows
/// what is beside it; what costs many times as much has a reason of its own.
pub(super) fn charge_to_the_fight(drafts: &mut Vec<Draft>, times: impl Fn(&[StatePath]) -> f64) {
    let fights = drafts.iter().filter(|draft| is_a_sure_fight(draft));
    let gravest = fights
        .map(|draft| (draft.lost.value, draft.kind))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let Some((gravest, kind)) = gravest else { return };
    let stands_by = |draft: &mut Draft| {
        draft.kind == FindingKind::CostGrowth
            && draft.lost.value < BY_EFFECT * gravest
            && (kind != FindingKind::CacheLineSharing || times(&draft.accounts.state_paths) <= MOST_SLOWED)
    };
    let (mut by_effect, mut beside) = (0.0, Vec::new());
    for draft in drafts.extract_if(.., stands_by) {
        by_effect += draft.lost.value;
        beside.extend(draft.accounts.state_paths);
    }
    let fight = drafts
        .iter_mut()
        .find(|draft| is_a_sure_fight(draft) && draft.lost.value >= gravest);
    if let Some(fight) = fight.filter(|_| by_effect > 0.0) {
        fight.accounts.state_paths.extend(beside);
        fight.evidence.push(format!(
            "up to {} more grew in adjacent code: {} charged there and cannot be separated",
            percent(by_effect),
            match fight.kind {
                FindingKind::CacheLineSharing => "the effect of the contended line on its CPU is",
                _ => "interrupts and cold caches after each switch are",
            }
        ));
    }
}

/// Whether threads that do this hinder each other all the time, whatever code they run. What may be chance is told nowhere, and so nothing can be
/// charged to it.
fn is_a_sure_fight(draft: &Draft) -> bool {
    let is_a_fight = matches!(
        draft.kind,
        FindingKind::AllocatorContention
            | FindingKind::CacheLineSharing
            | FindingKind::KernelSpinlock
            | FindingKind::SchedulerOverhead
    );
    is_a_fight && draft.is_worth_a_word()
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_bundle::Estimate;

    fn draft(kind: FindingKind, value: f64, low: f64, high: f64) -> Draft {
        let lost = Estimate {
            value,
            low: Some(low),
            high: Some(high),
        };
        Draft::new(kind, Vec::new(), lost)
    }

    fn kinds(mut drafts: Vec<Draft>) -> Vec<FindingKind> {
        charge_to_the_fight(&mut drafts, |_| 2.0);
        drafts.retain(Draft::is_worth_a_word);
        drafts.iter().map(|draft| draft.kind).collect()
    }

    #[test]
    fn a_fight_that_may_be_chance_swallows_nothing() {
        let dearer = || draft(FindingKind::CostGrowth, 0.029, 0.022, 0.036);
        let unsure = draft(FindingKind::AllocatorContention, 0.12, 0.01, 0.23);
        assert_eq!(kinds(vec![unsure, dearer()]), [FindingKind::CostGrowth]);
        let sure = draft(FindingKind::AllocatorContention, 0.12, 0.1, 0.14);
        assert_eq!(kinds(vec![sure, dearer()]), [FindingKind::AllocatorContention]);
    }

    #[test]
    fn what_stands_beside_a_fight_for_a_cache_line_is_told_there_unless_it_is_large() {
        let fight = || draft(FindingKind::CacheLineSharing, 0.44, 0.4, 0.48);
        let small = draft(FindingKind::CostGrowth, 0.041, 0.035, 0.047);
        let large = draft(FindingKind::CostGrowth, 0.2, 0.18, 0.22);
        assert_eq!(kinds(vec![fight(), small]), [FindingKind::CacheLineSharing]);
        assert_eq!(
            kinds(vec![fight(), large]),
            [FindingKind::CacheLineSharing, FindingKind::CostGrowth]
        );
    }

    #[test]
    fn what_takes_many_times_as_long_beside_a_fight_for_a_cache_line_has_a_reason_of_its_own() {
        let fight = draft(FindingKind::CacheLineSharing, 0.44, 0.4, 0.48);
        let mut drafts = vec![fight, draft(FindingKind::CostGrowth, 0.041, 0.035, 0.047)];
        charge_to_the_fight(&mut drafts, |_| 10.0);
        assert_eq!(drafts.len(), 2);
    }

    #[test]
    fn what_is_charged_is_told_of_the_fight_that_is_sure() {
        let unsure = draft(FindingKind::KernelSpinlock, 0.3, 0.0, 0.6);
        let sure = draft(FindingKind::AllocatorContention, 0.2, 0.15, 0.25);
        let mut drafts = vec![unsure, sure, draft(FindingKind::CostGrowth, 0.03, 0.025, 0.035)];
        charge_to_the_fight(&mut drafts, |_| 8.0);
        assert_eq!(drafts.len(), 2);
        assert!(drafts[0].evidence.is_empty(), "{:?}", drafts[0].evidence);
        assert!(
            drafts[1].evidence[0].starts_with("up to 3.0 % more grew"),
            "{:?}",
            drafts[1].evidence
        );
    }
}
