//! Transactions that fail because of one another, and are begun again.

use super::finding::Draft;
use super::kind::Kind;
use super::{Profiled, counted};

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
const SNAPSHOT_ISOLATION: &str = "innodb_snapshot_isolation";

/// The finding for them at a rung; none where none failed so.
pub(super) fn failed_transactions(last: &Profiled<'_>) -> Option<Draft> {
    let counts = REASONS
        .iter()
        .filter_map(|reason| Some((reason, *last.summary.errors.get(reason.number)?)));
    let counts: Vec<(&Reason, u64)> = counts.filter(|(_, count)| *count > 0).collect();
    let failed: u64 = counts.iter().map(|(_, count)| count).sum();
    let share = failed as f64 / (failed as f64 + last.transactions);
    if failed == 0 || !share.is_finite() {
        return None;
    }
    let mut draft = Draft::new(Kind::Retries, Vec::new(), counted(share));
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
    let most = counts.iter().find(|(_, count)| 2 * count > failed);
    draft.title = most.map(|(reason, _)| reason.title.to_owned());
    if most.is_some_and(|(reason, _)| reason.number == CHANGED_ROW) {
        draft.known = Some(format!(
            "{SNAPSHOT_ISOLATION}: with it a transaction fails where it changes a row that another changed after its snapshot (MariaDB; ON \
             by default since 11.6.2)"
        ));
        draft.tries.push(format!(
            "{SNAPSHOT_ISOLATION}=OFF, as before MariaDB 11.6.2, where the application can bear it"
        ));
        draft.knobs.push(SNAPSHOT_ISOLATION.to_owned());
    }
    Some(draft)
}
