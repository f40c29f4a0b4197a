//! One terminal: the deck of its user, the transaction that is under way, and what the server answered to it.
//!
//! What a statement asks for depends on rows that earlier ones returned. So a transaction is a state machine that makes
//! its statements in batches: the connection sends those of a batch one by one, gives every row that comes back to the
//! transaction, and asks for the next batch when the last one is answered.

use super::deck::Deck;
use super::delivery::{Delivery, DeliveryInput};
use super::kind::{Ending, TransactionKind};
use super::new_order::{NewOrder, NewOrderInput};
use super::nurand::DISTRICTS;
use super::options::HomeWarehouse;
use super::order_status::{OrderStatus, OrderStatusInput};
use super::outbox::Outbox;
use super::pauses::{keying_ns, think_ns};
use super::payment::{Payment, PaymentInput};
use super::statement::Statement;
use super::stock_level::{StockLevel, StockLevelInput};
use super::workload::Tpcc;
use crate::program::{Composer, Step};
use scaleprof_wire::BinaryRows;

/// What the server answered that cannot be where the tables are those that we filled.
pub(crate) type Unexpected = &'static str;

/// Where a terminal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Home {
    pub(super) warehouse: u32,
    pub(super) district: u32,
    /// Warehouses in all.
    pub(super) warehouses: u32,
}

impl Home {
    /// Where the connection at this position stands: the first terminals of all warehouses come first, so that every
    /// rung has its connections evenly on the warehouses.
    fn of(position: u32, warehouses: u32) -> Home {
        Home {
            warehouse: position % warehouses + 1,
            district: position / warehouses % DISTRICTS + 1,
            warehouses,
        }
    }
}

/// A transaction under way.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nine of ten are the two largest
enum Transaction {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

impl Transaction {
    fn draw(kind: TransactionKind, tpcc: &Tpcc, home: Home, composer: &mut Composer) -> Transaction {
        let (constants, rng) = (tpcc.constants(), &mut composer.rng);
        match kind {
            TransactionKind::NewOrder => {
                Transaction::NewOrder(NewOrder::new(NewOrderInput::draw(rng, constants, home)))
            }
            TransactionKind::Payment => Transaction::Payment(Payment::new(PaymentInput::draw(rng, constants, home))),
            TransactionKind::OrderStatus => {
                Transaction::OrderStatus(OrderStatus::new(OrderStatusInput::draw(rng, constants, home)))
            }
            TransactionKind::Delivery => Transaction::Delivery(Delivery::new(DeliveryInput::draw(rng, home))),
            TransactionKind::StockLevel => Transaction::StockLevel(StockLevel::new(StockLevelInput::draw(rng, home))),
        }
    }

    /// The same business from its beginning: what the user entered stays.
    fn again(&self) -> Transaction {
        match self {
            Transaction::NewOrder(one) => Transaction::NewOrder(one.again()),
            Transaction::Payment(one) => Transaction::Payment(one.again()),
            Transaction::OrderStatus(one) => Transaction::OrderStatus(one.again()),
            Transaction::Delivery(one) => Transaction::Delivery(one.again()),
            Transaction::StockLevel(one) => Transaction::StockLevel(one.again()),
        }
    }

    fn read(&mut self, statement: Statement, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        match self {
            Transaction::NewOrder(one) => one.read(statement, rows),
            Transaction::Payment(one) => one.read(statement, rows),
            Transaction::OrderStatus(one) => one.read(statement, rows),
            Transaction::Delivery(one) => one.read(statement, rows),
            Transaction::StockLevel(one) => one.read(statement, rows),
        }
    }

    fn go_on(&mut self, outbox: &mut Outbox<'_>) {
        match self {
            Transaction::NewOrder(one) => one.go_on(outbox),
            Transaction::Payment(one) => one.go_on(outbox),
            Transaction::OrderStatus(one) => one.go_on(outbox),
            Transaction::Delivery(one) => one.go_on(outbox),
            Transaction::StockLevel(one) => one.go_on(outbox),
        }
    }

    fn ending(&self) -> Ending {
        match self {
            Transaction::NewOrder(one) if one.rolls_back() => Ending::ROLLED_BACK,
            Transaction::NewOrder(_) => Ending::committed(TransactionKind::NewOrder),
            Transaction::Payment(_) => Ending::committed(TransactionKind::Payment),
            Transaction::OrderStatus(_) => Ending::committed(TransactionKind::OrderStatus),
            Transaction::Delivery(_) => Ending::committed(TransactionKind::Delivery),
            Transaction::StockLevel(_) => Ending::committed(TransactionKind::StockLevel),
        }
    }
}

/// Longest reply whose rows are read: fifteen order lines, or the few customers of one name.
const LONGEST_REPLY: usize = 1 << 20;

/// The terminal of one connection.
#[derive(Debug)]
pub(crate) struct Terminal {
    deck: Deck,
    /// The card that is dealt: the kind of the next transaction.
    next: TransactionKind,
    home: Home,
    transaction: Transaction,
    /// The beginning of a reply that came in pieces.
    partial: Vec<u8>,
}

impl Terminal {
    /// The terminal of a connection.
    pub(crate) fn new(tpcc: &Tpcc, composer: &mut Composer) -> Terminal {
        let home = Home::of(composer.position, tpcc.options().warehouses);
        let mut deck = Deck::new(tpcc.options().mix);
        let next = deck.deal(&mut composer.rng);
        Terminal {
            transaction: Transaction::draw(next, tpcc, home, composer),
            deck,
            next,
            home,
            partial: Vec::new(),
        }
    }

    /// Begins the transaction whose card was dealt and writes its first statements.
    pub(crate) fn begin(&mut self, tpcc: &Tpcc, composer: &mut Composer, out: &mut Vec<u8>, steps: &mut Vec<Step>) {
        let home = match tpcc.options().home {
            HomeWarehouse::Fixed => self.home,
            HomeWarehouse::Random => Home {
                warehouse: composer.rng.uniform(1, self.home.warehouses),
                district: composer.rng.uniform(1, DISTRICTS),
                ..self.home
            },
        };
        self.transaction = Transaction::draw(self.next, tpcc, home, composer);
        self.next = self.deck.deal(&mut composer.rng);
        self.go_on(tpcc, composer, out, steps);
    }

    /// Begins the same transaction again, after the server rolled it back.
    pub(crate) fn begin_again(
        &mut self,
        tpcc: &Tpcc,
        composer: &mut Composer,
        out: &mut Vec<u8>,
        steps: &mut Vec<Step>,
    ) {
        self.transaction = self.transaction.again();
        self.partial.clear();
        self.go_on(tpcc, composer, out, steps);
    }

    /// Writes the next statements in the place of the last ones; none where the transaction is over.
    pub(crate) fn go_on(&mut self, tpcc: &Tpcc, composer: &mut Composer, out: &mut Vec<u8>, steps: &mut Vec<Step>) {
        out.clear();
        steps.clear();
        let mut outbox = Outbox {
            tpcc,
            composer,
            out,
            steps,
        };
        self.transaction.go_on(&mut outbox);
    }

    /// Keeps a piece of a reply that is not complete.
    ///
    /// # Errors
    /// The reply is longer than any that was asked for.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> Result<(), Unexpected> {
        self.partial.extend_from_slice(bytes);
        match self.partial.len() > LONGEST_REPLY {
            true => Err("more rows than it asked for"),
            false => Ok(()),
        }
    }

    /// Takes the last piece of a reply with rows; `kind` is the number of its statement.
    ///
    /// # Errors
    /// What is not as it is on tables that we filled.
    pub(crate) fn read(&mut self, kind: u16, bytes: &[u8], deprecate_eof: bool) -> Result<(), Unexpected> {
        let Some(&statement) = Statement::ALL.get(usize::from(kind)) else {
            return Ok(());
        };
        let joined;
        let reply = if self.partial.is_empty() {
            bytes
        } else {
            self.partial.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.partial);
            &joined
        };
        let mut rows = BinaryRows::new(reply, deprecate_eof).ok_or("rows that cannot be read")?;
        self.transaction.read(statement, &mut rows)
    }

    /// Forgets pieces of a reply that has no rows.
    pub(crate) fn forget(&mut self) {
        self.partial.clear();
    }

    /// How the transaction that is over ended.
    pub(crate) fn ending(&self) -> Ending {
        self.transaction.ending()
    }

    /// How long the user reads what the last transaction showed and types the input of the next, nanoseconds; none
    /// where connections begin again at once.
    pub(crate) fn pause_ns(&self, tpcc: &Tpcc, composer: &mut Composer) -> Option<u64> {
        let factor = tpcc.options().pauses?;
        let last = TransactionKind::ALL
            .into_iter()
            .find(|&kind| Ending::committed(kind) == self.ending())
            .unwrap_or(TransactionKind::NewOrder);
        Some(think_ns(last, factor, &mut composer.rng) + keying_ns(self.next, factor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::ConnectionRng;
    use crate::tpcc::TpccOptions;

    #[test]
    fn connections_stand_evenly_on_the_warehouses_and_no_two_in_one_district_until_all_are_taken() {
        let homes: Vec<(u32, u32)> = (0..30)
            .map(|position| Home::of(position, 3))
            .map(|home| (home.warehouse, home.district))
            .collect();
        assert_eq!(homes[..4], [(1, 1), (2, 1), (3, 1), (1, 2)]);
        let different: std::collections::BTreeSet<_> = homes.iter().collect();
        assert_eq!(different.len(), 30);
        assert_eq!(Home::of(30, 3), Home::of(0, 3));
    }

    fn composer(tpcc: &Tpcc) -> Composer {
        let prepared = tpcc.prepared_sql().len();
        Composer {
            rng: ConnectionRng::new(1, 0),
            position: 0,
            of: 1,
            statement_ids: (1..=prepared as u32).collect(),
            types_sent: vec![false; prepared].into(),
        }
    }

    #[test]
    fn a_transaction_that_is_begun_again_sends_what_it_sent() {
        let tpcc = Tpcc::new(TpccOptions::default()).expect("options");
        let mut composer = composer(&tpcc);
        let mut terminal = Terminal::new(&tpcc, &mut composer);
        let (mut out, mut steps) = (Vec::new(), Vec::new());
        for _ in 0..50 {
            composer.types_sent.fill(false);
            terminal.begin(&tpcc, &mut composer, &mut out, &mut steps);
            let (first, ending) = (out.clone(), terminal.ending());
            assert!(!steps.is_empty());
            composer.types_sent.fill(false);
            terminal.begin_again(&tpcc, &mut composer, &mut out, &mut steps);
            assert_eq!((&out, terminal.ending()), (&first, ending));
        }
    }

    #[test]
    fn rows_that_cannot_be_are_refused() {
        let tpcc = Tpcc::new(TpccOptions::default()).expect("options");
        let mut terminal = Terminal::new(&tpcc, &mut composer(&tpcc));
        assert!(terminal.read(Statement::LockDistrict as u16, b"\x01", true).is_err());
    }
}
