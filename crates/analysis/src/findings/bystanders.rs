//! Code that stands beside a fight and gets dearer by it.

use super::finding::Draft;
use super::kind::Kind;
use crate::numbers::percent;

/// What code beside a fight may have lost, as a part of what the fight itself did: as much was seen of arithmetic in registers,
/// which nothing but interruptions makes dearer (the planted allocator, crates/experiment/tests/planted: 5 to 12 %).
const BY_EFFECT: f64 = 0.25;

/// Threads that fight for a lock in the kernel switch and wake each other thousands of times a second. The interrupts that wake
/// a CPU, and on a virtual machine the way through its host, are charged to whatever code runs there, and after a switch the
/// caches are cold: everything beside a fight gets dearer. Where that common factor was measured it was taken out
/// ([`dilation`](super::dilation::dilation)). Where it was not, growth of ordinary code that is small beside the fight's is no cause of its own: the
/// fight's finding says how much it is.
pub(super) fn charge_to_the_fight(drafts: &mut Vec<Draft>) {
    let fights = drafts.iter().filter(|draft| is_a_fight(draft.kind));
    let Some(gravest) = fights.map(|draft| draft.lost.value).reduce(f64::max) else {
        return;
    };
    let stands_by = |draft: &mut Draft| draft.kind == Kind::CostGrowth && draft.lost.value < BY_EFFECT * gravest;
    let by_effect: f64 = drafts.extract_if(.., stands_by).map(|draft| draft.lost.value).sum();
    let fight = drafts
        .iter_mut()
        .find(|draft| is_a_fight(draft.kind) && draft.lost.value >= gravest);
    if let Some(fight) = fight.filter(|_| by_effect > 0.0) {
        fight.evidence.push(format!(
            "{} more is lost in code beside it that grew too: interrupts and cold caches after each switch are charged there, and could not be told apart",
            percent(by_effect)
        ));
    }
}

/// Whether threads that do this switch and wake each other all the time.
fn is_a_fight(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::AllocatorContention | Kind::KernelSpinlock | Kind::SchedulerOverhead
    )
}
