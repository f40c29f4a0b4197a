//! Order-Status (clause 2.6): a customer asks for their last order.

use super::customer::{CustomerChoice, middle_customer};
use super::nurand::{DISTRICTS, RunConstants};
use super::outbox::Outbox;
use super::statement::Statement;
use super::terminal::{Home, Unexpected};
use crate::random::ConnectionRng;
use scaleprof_wire::BinaryRows;

/// What the user enters (clause 2.6.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OrderStatusInput {
    warehouse: u32,
    district: u32,
    customer: CustomerChoice,
}

impl OrderStatusInput {
    pub(super) fn draw(rng: &mut ConnectionRng, constants: &RunConstants, home: Home) -> Self {
        OrderStatusInput {
            warehouse: home.warehouse,
            district: rng.uniform(1, DISTRICTS),
            customer: CustomerChoice::draw(rng, constants),
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    /// The customer's number is known.
    Chosen,
    /// Customer and last order are read.
    Found,
    Over,
}

/// The transaction (clause 2.6.2).
#[derive(Debug)]
pub(super) struct OrderStatus {
    input: OrderStatusInput,
    stage: Stage,
    customer: u32,
    order: u32,
}

impl OrderStatus {
    pub(super) fn new(input: OrderStatusInput) -> Self {
        OrderStatus {
            input,
            stage: Stage::Begin,
            customer: 0,
            order: 0,
        }
    }

    /// The same question from its beginning.
    pub(super) fn again(&self) -> Self {
        OrderStatus::new(self.input)
    }

    pub(super) fn read(&mut self, statement: Statement, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        match statement {
            Statement::SelectByLastName => {
                self.customer = middle_customer(rows).ok_or("no customer of a last name")?;
            }
            Statement::SelectCustomer => {
                rows.next_row().ok_or("no customer of an Order-Status")?;
            }
            Statement::SelectLastOrder => {
                // Every customer has ordered once when the tables are filled.
                let mut row = rows.next_row().ok_or("no order of a customer")?;
                self.order = row.int().and_then(|n| n.try_into().ok()).ok_or("no O_ID")?;
            }
            // Under READ UNCOMMITTED an order may be seen before its lines are.
            _ => {}
        }
        Ok(())
    }

    /// Writes the statements that can be sent now; none when it is over.
    pub(super) fn go_on(&mut self, outbox: &mut Outbox<'_>) {
        let OrderStatusInput {
            warehouse, district, ..
        } = self.input;
        match self.stage {
            Stage::Begin => {
                self.stage = Stage::Chosen;
                if let Some(number) = self.input.customer.number_or_ask(warehouse, district, outbox) {
                    self.customer = number;
                    self.find(outbox);
                }
            }
            Stage::Chosen => self.find(outbox),
            Stage::Found => {
                let values = outbox.execute(Statement::SelectOrderLines);
                values.ints([warehouse, district, self.order]).send();
                outbox.end(Statement::Commit);
                self.stage = Stage::Over;
            }
            Stage::Over => {}
        }
    }

    fn find(&mut self, outbox: &mut Outbox<'_>) {
        let customer = [self.input.warehouse, self.input.district, self.customer];
        outbox.execute(Statement::SelectCustomer).ints(customer).send();
        outbox.execute(Statement::SelectLastOrder).ints(customer).send();
        self.stage = Stage::Found;
    }
}
