//! Stock-Level (clause 2.8): how many items of the district's last 20 orders are running out.

use super::outbox::Outbox;
use super::statement::Statement;
use super::terminal::{Home, Unexpected};
use crate::random::ConnectionRng;
use scaleprof_wire::BinaryRows;

/// Orders that are looked at (clause 2.8.2.2).
const ORDERS: u32 = 20;

/// What the user enters (clause 2.8.1); the district is the terminal's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StockLevelInput {
    warehouse: u32,
    district: u32,
    threshold: u32,
}

impl StockLevelInput {
    pub(super) fn draw(rng: &mut ConnectionRng, home: Home) -> Self {
        StockLevelInput {
            warehouse: home.warehouse,
            district: home.district,
            threshold: rng.uniform(10, 20),
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    /// The number of the next order is known.
    Numbered,
    Over,
}

/// The transaction (clause 2.8.2).
#[derive(Debug)]
pub(super) struct StockLevel {
    input: StockLevelInput,
    stage: Stage,
    next_order: u32,
}

impl StockLevel {
    pub(super) fn new(input: StockLevelInput) -> Self {
        StockLevel {
            input,
            stage: Stage::Begin,
            next_order: 0,
        }
    }

    /// The same question from its beginning.
    pub(super) fn again(&self) -> Self {
        StockLevel::new(self.input)
    }

    pub(super) fn read(&mut self, statement: Statement, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        let mut row = rows.next_row().ok_or("no answer of a Stock-Level")?;
        if statement == Statement::SelectNextOrder {
            self.next_order = row.int().and_then(|n| n.try_into().ok()).ok_or("no D_NEXT_O_ID")?;
        }
        Ok(())
    }

    /// Writes the statements that can be sent now; none when it is over.
    pub(super) fn go_on(&mut self, outbox: &mut Outbox<'_>) {
        let StockLevelInput {
            warehouse,
            district,
            threshold,
        } = self.input;
        match self.stage {
            Stage::Begin => {
                let values = outbox.execute(Statement::SelectNextOrder);
                values.ints([warehouse, district]).send();
                self.stage = Stage::Numbered;
            }
            Stage::Numbered => {
                let oldest = self.next_order.saturating_sub(ORDERS);
                let values = outbox.execute(Statement::CountLowStock);
                values
                    .ints([warehouse, district, oldest, self.next_order, warehouse, threshold])
                    .send();
                outbox.end(Statement::Commit);
                self.stage = Stage::Over;
            }
            Stage::Over => {}
        }
    }
}
