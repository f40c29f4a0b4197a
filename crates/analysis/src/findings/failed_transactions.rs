//! Transactions that fail because of one another, and are begun again.

use super::finding::Draft;
use super::{Context, Profiled, counted};
use scaleprof_vocabulary::FindingKind;

/// Why a transaction fails for another.
struct Reason {
    /// The server's error number.
    number: &'static str,
    /// Of one or many transactions.
    words: &'static str,
    /// Where most failed for it.
    title: &'static str,
}

/// ER_LOCK_DEADLOCK and ER_LOCK_WAIT_TIMEOUT of both products; ER_CHECKREAD, with which MariaDB's snapshot isolation says that somebody
/// else changed a row.
const REASONS: [Reason; 3] = [
    Reason {
        number: "1213",
        words: "with a deadlock (1213)",
        title: "Transactions fail with deadlocks",
    },
    Reason {
        number: "1205",
        words: "with a lock wait time-out (1205)",
        title: "Transactions fail with lock wait time-outs",
    },
    Reason {
        number: CHANGED_ROW,
        words: "at a row changed since it was read (1020)",
        title: "Transactions fail at rows that others changed since they were read",
    },
];
const CHANGED_ROW: &str = "1020";

impl Context<'_> {
    /// The finding for them at a rung; none where none failed so.
    pub(super) fn failed_transactions(&self, last: &Profiled<'_>) -> Option<Draft> {
        let counts = REASONS
            .iter()
            .filter_map(|reason| Some((reason, *last.summary.errors.get(reason.number)?)));
        let counts: Vec<(&Reason, u64)> = counts.filter(|(_, count)| *count > 0).collect();
        let failed = counts.iter().fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
        let share = failed as f64 / (failed as f64 + last.transactions);
        if failed == 0 || !share.is_finite() {
            return None;
        }
        let mut draft = Draft::new(FindingKind::Retries, Vec::new(), counted(share));
        draft.rungs = (last.summary.connections, last.summary.connections);
        let each: Vec<String> = counts
            .iter()
            .map(|(reason, count)| format!("{count} {}", reason.words))
            .collect();
        draft.evidence.push(format!(
            "{failed} transactions failed at {} connections: {}",
            last.summary.connections,
            each.join(", ")
        ));
        let most = counts.iter().find(|(_, count)| *count > failed / 2);
        draft.title = most.map(|(reason, _)| reason.title.to_owned());
        let changed = most.filter(|(reason, _)| reason.number == CHANGED_ROW);
        if let Some(place) = changed.and_then(|_| self.knowledge.place_of(FindingKind::Retries)) {
            draft.known = Some(format!("{} ({})", place.says, place.source));
            self.tell_place(&mut draft, place, last);
        }
        Some(draft)
    }
}
