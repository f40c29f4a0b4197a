//! How many transactions a load has done so far, at any moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts a load's transactions as they end, for who wants to know before a second is over. The one of [`Tally::default`] counts nothing
/// and costs nothing.
#[derive(Debug, Clone, Default)]
pub struct Tally(Option<Arc<AtomicU64>>);

impl Tally {
    /// One that counts.
    #[must_use]
    pub fn that_counts() -> Tally {
        Tally(Some(Arc::default()))
    }

    /// Transactions that have ended well; none where nobody counts.
    #[must_use]
    pub fn transactions(&self) -> Option<u64> {
        self.0.as_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// One more.
    #[inline]
    pub(crate) fn add(&self) {
        if let Some(count) = &self.0 {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}
