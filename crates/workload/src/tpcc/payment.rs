//! Payment (clause 2.5): a customer pays, 15 of 100 times in a district that is not theirs.

use super::customer::{CustomerChoice, middle_customer, other_warehouse};
use super::money::Cents;
use super::nurand::{DISTRICTS, RunConstants};
use super::outbox::Outbox;
use super::statement::Statement;
use super::terminal::{Home, Unexpected};
use crate::random::ConnectionRng;
use scaleprof_wire::BinaryRows;
use std::io::Write as _;

/// What the user enters (clause 2.5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PaymentInput {
    warehouse: u32,
    district: u32,
    customer_warehouse: u32,
    customer_district: u32,
    customer: CustomerChoice,
    amount: Cents,
}

impl PaymentInput {
    pub(super) fn draw(rng: &mut ConnectionRng, constants: &RunConstants, home: Home) -> Self {
        let district = rng.uniform(1, DISTRICTS);
        // 2.5.1.2: 85 % pay where they belong. With one warehouse the rest has only its district elsewhere.
        let (customer_warehouse, customer_district) = match rng.uniform(1, 100) {
            1..=85 => (home.warehouse, district),
            _ => {
                let elsewhere = other_warehouse(rng, home.warehouse, home.warehouses);
                (elsewhere, rng.uniform(1, DISTRICTS))
            }
        };
        PaymentInput {
            warehouse: home.warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: CustomerChoice::draw(rng, constants),
            amount: Cents(i64::from(rng.uniform(100, 500_000))),
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begin,
    /// The customer's number is known.
    Chosen,
    /// The customer is locked.
    Locked,
    Over,
}

/// Longest W_NAME and D_NAME.
const NAME: usize = 10;

/// A name as it was read.
#[derive(Debug, Clone, Copy, Default)]
struct Name {
    bytes: [u8; NAME],
    length: usize,
}

impl Name {
    fn of(text: &[u8]) -> Name {
        let length = text.len().min(NAME);
        let mut bytes = [0; NAME];
        bytes[..length].copy_from_slice(&text[..length]);
        Name { bytes, length }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// The transaction (clause 2.5.2).
#[derive(Debug)]
pub(super) struct Payment {
    input: PaymentInput,
    stage: Stage,
    customer: u32,
    has_bad_credit: bool,
    warehouse_name: Name,
    district_name: Name,
}

impl Payment {
    pub(super) fn new(input: PaymentInput) -> Self {
        Payment {
            input,
            stage: Stage::Begin,
            customer: 0,
            has_bad_credit: false,
            warehouse_name: Name::default(),
            district_name: Name::default(),
        }
    }

    /// The same payment from its beginning.
    pub(super) fn again(&self) -> Self {
        Payment::new(self.input)
    }

    pub(super) fn read(&mut self, statement: Statement, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        match statement {
            Statement::SelectWarehouse => {
                let mut row = rows.next_row().ok_or("no warehouse of a Payment")?;
                self.warehouse_name = Name::of(row.text().ok_or("no W_NAME")?);
            }
            Statement::SelectDistrict => {
                let mut row = rows.next_row().ok_or("no district of a Payment")?;
                self.district_name = Name::of(row.text().ok_or("no D_NAME")?);
            }
            Statement::SelectByLastName => {
                self.customer = middle_customer(rows).ok_or("no customer of a last name")?;
            }
            Statement::LockCustomer => {
                let mut row = rows.next_row().ok_or("no customer of a Payment")?;
                self.has_bad_credit = row.text().ok_or("no C_CREDIT")? == b"BC";
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes the statements that can be sent now; none when it is over.
    pub(super) fn go_on(&mut self, outbox: &mut Outbox<'_>) {
        match self.stage {
            Stage::Begin => {
                self.take_in(outbox);
                let (warehouse, district) = (self.input.customer_warehouse, self.input.customer_district);
                self.stage = Stage::Chosen;
                if let Some(number) = self.input.customer.number_or_ask(warehouse, district, outbox) {
                    self.customer = number;
                    self.lock_customer(outbox);
                }
            }
            Stage::Chosen => self.lock_customer(outbox),
            Stage::Locked => {
                self.credit_customer(outbox);
                self.note(outbox);
                outbox.end(Statement::Commit);
                self.stage = Stage::Over;
            }
            Stage::Over => {}
        }
    }

    /// Warehouse and district get the amount, and then are read. The clause asks for no order of the two; reading first would set a
    /// snapshot between the two locks, behind which a New-Order may change the district: MariaDB from 11.6.2 on, which isolates
    /// snapshots by default, then ends the payment with error 1020.
    fn take_in(&self, outbox: &mut Outbox<'_>) {
        let PaymentInput {
            warehouse,
            district,
            amount,
            ..
        } = self.input;
        let values = outbox.execute(Statement::PayWarehouse);
        values.cents(amount).int(warehouse).send();
        let values = outbox.execute(Statement::PayDistrict);
        values.cents(amount).ints([warehouse, district]).send();
        outbox.execute(Statement::SelectWarehouse).int(warehouse).send();
        let values = outbox.execute(Statement::SelectDistrict);
        values.ints([warehouse, district]).send();
    }

    /// Warehouse, district and number of the customer.
    fn customer(&self) -> [u32; 3] {
        [
            self.input.customer_warehouse,
            self.input.customer_district,
            self.customer,
        ]
    }

    fn lock_customer(&mut self, outbox: &mut Outbox<'_>) {
        outbox.execute(Statement::LockCustomer).ints(self.customer()).send();
        self.stage = Stage::Locked;
    }

    /// 2.5.2.2: of a customer with bad credit C_DATA is read, and gets the payment written before it.
    fn credit_customer(&self, outbox: &mut Outbox<'_>) {
        let amount = self.input.amount;
        if !self.has_bad_credit {
            let values = outbox.execute(Statement::PayCustomer);
            values.cents(amount).cents(amount).ints(self.customer()).send();
            return;
        }
        outbox
            .execute(Statement::SelectCustomerData)
            .ints(self.customer())
            .send();
        let values = outbox.execute(Statement::PayBadCustomer);
        let data = self.customer_data();
        values
            .cents(amount)
            .cents(amount)
            .string(&data)
            .ints(self.customer())
            .send();
    }

    /// What is written before C_DATA: C_ID, C_D_ID, C_W_ID, D_ID, W_ID, H_AMOUNT.
    fn customer_data(&self) -> Vec<u8> {
        let [warehouse, district, customer] = self.customer();
        let mut data = Vec::with_capacity(64);
        // Writing to a Vec cannot fail.
        let _ = write!(
            data,
            "{customer} {district} {warehouse} {} {} ",
            self.input.district, self.input.warehouse
        );
        self.input.amount.push(&mut data);
        data.push(b'|');
        data
    }

    /// 2.5.2.2: H_DATA is W_NAME and D_NAME with four spaces between them.
    fn note(&self, outbox: &mut Outbox<'_>) {
        let data = [self.warehouse_name.bytes(), b"    ", self.district_name.bytes()].concat();
        let values = outbox.execute(Statement::InsertHistory);
        values
            .ints(self.customer())
            .ints([self.input.warehouse, self.input.district])
            .cents(self.input.amount)
            .string(&data)
            .send();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(warehouses: u32) -> Vec<PaymentInput> {
        let (constants, mut rng) = (RunConstants::of(1), ConnectionRng::new(1, 0));
        let home = Home {
            warehouse: 1,
            district: 1,
            warehouses,
        };
        (0..40_000)
            .map(|_| PaymentInput::draw(&mut rng, &constants, home))
            .collect()
    }

    fn share(inputs: &[PaymentInput], is: impl Fn(&PaymentInput) -> bool) -> f64 {
        inputs.iter().filter(|input| is(input)).count() as f64 / inputs.len() as f64
    }

    #[test]
    fn fifteen_of_a_hundred_pay_at_another_warehouse_and_sixty_by_last_name() {
        let inputs = inputs(5);
        let remote = share(&inputs, |input| input.customer_warehouse != input.warehouse);
        assert!((0.14..0.16).contains(&remote), "{remote}");
        let by_name = share(&inputs, |input| matches!(input.customer, CustomerChoice::LastName(_)));
        assert!((0.59..0.61).contains(&by_name), "{by_name}");
        let local = |input: &PaymentInput| input.customer_warehouse == input.warehouse;
        assert!(
            inputs
                .iter()
                .filter(|i| local(i))
                .all(|i| i.customer_district == i.district)
        );
    }

    #[test]
    fn amounts_are_from_1_to_5000_and_one_warehouse_has_no_other() {
        let inputs = inputs(1);
        assert!(inputs.iter().all(|input| (100..=500_000).contains(&input.amount.0)));
        let mean = inputs.iter().map(|input| input.amount.0 as f64).sum::<f64>() / inputs.len() as f64;
        assert!((245_000.0..255_000.0).contains(&mean), "{mean}");
        assert!(inputs.iter().all(|input| input.customer_warehouse == 1));
    }

    #[test]
    fn what_is_noted_of_a_customer_with_bad_credit_names_the_payment() {
        let input = PaymentInput {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: CustomerChoice::Number(5),
            amount: Cents(678),
        };
        let mut payment = Payment::new(input);
        payment.customer = 5;
        assert_eq!(payment.customer_data(), b"5 4 3 2 1 6.78|");
    }
}
