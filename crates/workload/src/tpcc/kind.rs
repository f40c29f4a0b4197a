//! The five kinds of transactions (clauses 2.4 to 2.8) and how each can end.

use scaleprof_vocabulary::TpccTransaction;
use std::fmt;

/// A kind of transaction, in the order in which the specification has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum TransactionKind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl TransactionKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [TransactionKind; 5] = [
        TransactionKind::NewOrder,
        TransactionKind::Payment,
        TransactionKind::OrderStatus,
        TransactionKind::Delivery,
        TransactionKind::StockLevel,
    ];

    /// The word for it in a bundle.
    pub fn word(self) -> TpccTransaction {
        match self {
            TransactionKind::NewOrder => TpccTransaction::NewOrder,
            TransactionKind::Payment => TpccTransaction::Payment,
            TransactionKind::OrderStatus => TpccTransaction::OrderStatus,
            TransactionKind::Delivery => TpccTransaction::Delivery,
            TransactionKind::StockLevel => TpccTransaction::StockLevel,
        }
    }

    /// Its name in options, tables and summaries.
    pub fn name(self) -> &'static str {
        self.word().name()
    }
}

impl fmt::Display for TransactionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Name of the New-Orders that were rolled back as planned.
pub const ROLLED_BACK: &str = TpccTransaction::NewOrderRolledBack.name();

/// How a transaction ended, as a number for counting: that of its kind, and one more for planned rollbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ending(u8);

impl Ending {
    /// It committed.
    pub(super) fn committed(kind: TransactionKind) -> Ending {
        Ending(kind as u8)
    }

    /// A New-Order that was rolled back as planned.
    pub(super) const ROLLED_BACK: Ending = Ending(TransactionKind::ALL.len() as u8);

    /// Its place in [`Ending::names`].
    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }

    /// The names of all endings, by place.
    pub(crate) fn names() -> Vec<String> {
        let kinds = TransactionKind::ALL.map(TransactionKind::name);
        kinds.into_iter().chain([ROLLED_BACK]).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ending_has_its_name() {
        let names = Ending::names();
        for kind in TransactionKind::ALL {
            assert_eq!(names[Ending::committed(kind).place()], kind.name());
        }
        assert_eq!(names[Ending::ROLLED_BACK.place()], ROLLED_BACK);
    }
}
