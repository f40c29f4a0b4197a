//! Delivery (clause 2.7): the oldest order of every district of a warehouse that is not delivered gets its carrier.
//!
//! The specification lets a terminal queue it and go on (2.7.2); here the connection waits for it, as other kits do, and
//! all ten districts are one transaction of the server (2.7.4.2 allows one to ten).

use super::money::Cents;
use super::nurand::DISTRICTS;
use super::outbox::Outbox;
use super::statement::Statement;
use super::terminal::{Home, Unexpected};
use crate::random::ConnectionRng;
use scaleprof_wire::BinaryRows;

/// What the user enters (clause 2.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DeliveryInput {
    warehouse: u32,
    carrier: u32,
}

impl DeliveryInput {
    pub(super) fn draw(rng: &mut ConnectionRng, home: Home) -> Self {
        DeliveryInput {
            warehouse: home.warehouse,
            carrier: rng.uniform(1, 10),
        }
    }
}

/// How far it is with the district.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    /// The oldest order is locked, where there is one.
    Locked,
    /// It is delivered but for its customer's account.
    Delivered,
    Over,
}

/// The transaction (clause 2.7.4).
///
/// Everything is read with locks, which its own changes need all the same: a plain read would fix what the transaction
/// sees at its first district, and miss orders that came since.
#[derive(Debug)]
pub(super) struct Delivery {
    input: DeliveryInput,
    stage: Stage,
    district: u32,
    order: Option<u32>,
    customer: u32,
    amount: Cents,
}

impl Delivery {
    pub(super) fn new(input: DeliveryInput) -> Self {
        Delivery {
            input,
            stage: Stage::Begin,
            district: 1,
            order: None,
            customer: 0,
            amount: Cents(0),
        }
    }

    /// The same delivery from its beginning.
    pub(super) fn again(&self) -> Self {
        Delivery::new(self.input)
    }

    pub(super) fn read(&mut self, statement: Statement, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        match statement {
            // 2.7.4.2: a district without one is skipped.
            Statement::LockOldestNewOrder => {
                self.order = rows
                    .next_row()
                    .map(|mut row| row.int().and_then(|n| n.try_into().ok()).ok_or("no NO_O_ID"))
                    .transpose()?;
            }
            Statement::LockCustomerOfOrder => {
                let mut row = rows.next_row().ok_or("no order of a new order")?;
                self.customer = row.int().and_then(|n| n.try_into().ok()).ok_or("no O_C_ID")?;
            }
            Statement::SumOrderLines => {
                let mut row = rows.next_row().ok_or("no lines of an order")?;
                self.amount = row.text().and_then(Cents::parse).ok_or("no OL_AMOUNT")?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the statements that can be sent now; none when it is over.
    pub(super) fn go_on(&mut self, outbox: &mut Outbox<'_>) {
        let DeliveryInput { warehouse, carrier } = self.input;
        match (self.stage, self.order) {
            (Stage::Begin, _) => self.lock_oldest(outbox),
            (Stage::Locked, Some(order)) => {
                let order = [warehouse, self.district, order];
                outbox.execute(Statement::DeleteNewOrder).ints(order).send();
                outbox.execute(Statement::SetCarrier).int(carrier).ints(order).send();
                outbox.execute(Statement::LockCustomerOfOrder).ints(order).send();
                outbox.execute(Statement::SetDeliveryDate).ints(order).send();
                outbox.execute(Statement::SumOrderLines).ints(order).send();
                self.stage = Stage::Delivered;
            }
            (Stage::Locked, None) => self.go_to_next_district(outbox),
            (Stage::Delivered, _) => {
                let values = outbox.execute(Statement::CreditCustomer);
                values
                    .cents(self.amount)
                    .ints([warehouse, self.district, self.customer])
                    .send();
                self.go_to_next_district(outbox);
            }
            (Stage::Over, _) => {}
        }
    }

    fn lock_oldest(&mut self, outbox: &mut Outbox<'_>) {
        let values = outbox.execute(Statement::LockOldestNewOrder);
        values.ints([self.input.warehouse, self.district]).send();
        self.stage = Stage::Locked;
    }

    fn go_to_next_district(&mut self, outbox: &mut Outbox<'_>) {
        if self.district < DISTRICTS {
            self.district += 1;
            self.lock_oldest(outbox);
        } else {
            outbox.end(Statement::Commit);
            self.stage = Stage::Over;
        }
    }
}
