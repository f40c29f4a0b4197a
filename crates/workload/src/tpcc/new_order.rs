//! New-Order (clause 2.4): a customer orders 5 to 15 items, now and then one from another warehouse, and one of a hundred
//! orders asks for an item that is not there and is rolled back.

use super::customer::other_warehouse;
use super::money::{Cents, Rate};
use super::nurand::{DISTRICTS, ITEMS, RunConstants};
use super::outbox::Outbox;
use super::statement::{MOST_LINES, Statement};
use super::terminal::{Home, Unexpected};
use super::text::is_original;
use crate::random::ConnectionRng;
use scaleprof_wire::BinaryRows;

/// An item number that no row has (clause 2.4.1.5, "unused item number").
const UNUSED_ITEM: u32 = ITEMS + 1;
/// Length of S_DIST_xx.
const DISTRICT_INFO: usize = 24;

/// One line of the order as the user enters it (clause 2.4.1.5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LineInput {
    item: u32,
    supply_warehouse: u32,
    quantity: u32,
}

/// What the user enters (clause 2.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewOrderInput {
    warehouse: u32,
    district: u32,
    customer: u32,
    lines: [LineInput; MOST_LINES],
    line_count: usize,
}

impl NewOrderInput {
    pub(super) fn draw(rng: &mut ConnectionRng, constants: &RunConstants, home: Home) -> Self {
        let line_count = rng.uniform(5, MOST_LINES as u32) as usize;
        // 2.4.1.4: a fixed 1 % ends with an unused item.
        let rolls_back = rng.uniform(1, 100) == 1;
        let mut lines = [LineInput::default(); MOST_LINES];
        for (number, line) in lines[..line_count].iter_mut().enumerate() {
            let is_last = number + 1 == line_count;
            *line = LineInput {
                item: match rolls_back && is_last {
                    true => UNUSED_ITEM,
                    false => constants.draw_item(rng),
                },
                // 2.4.1.5 (2): 1 % of the lines come from another warehouse.
                supply_warehouse: match rng.uniform(1, 100) {
                    1 => other_warehouse(rng, home.warehouse, home.warehouses),
                    _ => home.warehouse,
                },
                quantity: rng.uniform(1, 10),
            };
        }
        NewOrderInput {
            warehouse: home.warehouse,
            district: rng.uniform(1, DISTRICTS),
            customer: constants.draw_customer(rng),
            lines,
            line_count,
        }
    }

    fn lines(&self) -> &[LineInput] {
        &self.lines[..self.line_count]
    }

    fn is_all_local(&self) -> bool {
        self.lines().iter().all(|line| line.supply_warehouse == self.warehouse)
    }
}

/// What the tables say about a line.
#[derive(Debug, Clone, Copy, Default)]
struct LineFound {
    /// I_PRICE; none where there is no such item.
    price: Option<Cents>,
    item_is_original: bool,
    /// S_QUANTITY.
    stock: Option<i32>,
    stock_is_original: bool,
    district_info: [u8; DISTRICT_INFO],
    district_info_length: usize,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was sent.
    Begin,
    /// The district is locked and its next order number known.
    Numbered,
    /// All rows are read.
    Read,
    /// COMMIT or ROLLBACK was answered.
    Over,
}

/// The transaction (clause 2.4.2).
///
/// The district and the stock are locked before anything is read without a lock: where the server holds a transaction
/// to its first plain read (MariaDB's innodb_snapshot_isolation), a lock on a row that changed since would fail.
#[derive(Debug)]
pub(super) struct NewOrder {
    input: NewOrderInput,
    stage: Stage,
    order: u32,
    district_tax: Rate,
    warehouse_tax: Rate,
    discount: Rate,
    found: [LineFound; MOST_LINES],
    /// What the user is shown (clause 2.4.3.3): the total, and how many lines are brand goods.
    total: Cents,
    brand_lines: u32,
}

impl NewOrder {
    pub(super) fn new(input: NewOrderInput) -> Self {
        NewOrder {
            input,
            stage: Stage::Begin,
            order: 0,
            district_tax: Rate::default(),
            warehouse_tax: Rate::default(),
            discount: Rate::default(),
            found: [LineFound::default(); MOST_LINES],
            total: Cents(0),
            brand_lines: 0,
        }
    }

    /// The same order from its beginning.
    pub(super) fn again(&self) -> Self {
        NewOrder::new(self.input)
    }

    /// Whether the last statement was the planned ROLLBACK.
    pub(super) fn rolls_back(&self) -> bool {
        self.stage == Stage::Over && self.lines().any(|(_, found)| found.price.is_none())
    }

    fn lines(&self) -> impl Iterator<Item = (&LineInput, &LineFound)> {
        self.input.lines().iter().zip(&self.found)
    }

    pub(super) fn read(&mut self, statement: Statement, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        match statement {
            Statement::LockDistrict => {
                let mut row = rows.next_row().ok_or("no district of a New-Order")?;
                self.district_tax = row.text().and_then(Rate::parse).ok_or("no D_TAX")?;
                self.order = row.int().and_then(|n| n.try_into().ok()).ok_or("no D_NEXT_O_ID")?;
            }
            Statement::LockStock | Statement::LockStockOfOne => return self.read_stock(rows),
            Statement::SelectItems => return self.read_items(rows),
            Statement::SelectTaxAndDiscount => {
                let mut row = rows.next_row().ok_or("no customer of a New-Order")?;
                self.warehouse_tax = row.text().and_then(Rate::parse).ok_or("no W_TAX")?;
                self.discount = row.text().and_then(Rate::parse).ok_or("no C_DISCOUNT")?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Rows of one supplying warehouse. A stock row does not say of which: it is asked for in the same order again.
    fn read_stock(&mut self, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        let warehouse = self.next_unread_warehouse().ok_or("stock that was not asked for")?;
        while let Some(mut row) = rows.next_row() {
            let item = row.int().ok_or("no S_I_ID")?;
            let quantity = row.int().and_then(|n| n.try_into().ok()).ok_or("no S_QUANTITY")?;
            let info = row.text().ok_or("no S_DIST")?;
            let is_brand = is_original(row.text().ok_or("no S_DATA")?);
            for (line, found) in self.input.lines().iter().zip(&mut self.found) {
                if i64::from(line.item) == item && line.supply_warehouse == warehouse {
                    found.stock = Some(quantity);
                    found.stock_is_original = is_brand;
                    found.district_info_length = info.len().min(DISTRICT_INFO);
                    let length = found.district_info_length;
                    found.district_info[..length].copy_from_slice(&info[..length]);
                }
            }
        }
        let supplied = self.lines().filter(|(line, _)| line.supply_warehouse == warehouse);
        let lacks = |(line, found): (&LineInput, &LineFound)| found.stock.is_none() && line.item != UNUSED_ITEM;
        let incomplete = supplied.into_iter().any(lacks);
        // Lines of the unused item have no stock: what marks the warehouse as read is a quantity all the same.
        for (line, found) in self.input.lines().iter().zip(&mut self.found) {
            if line.supply_warehouse == warehouse {
                found.stock.get_or_insert(0);
            }
        }
        if incomplete {
            return Err("no stock of an item");
        }
        Ok(())
    }

    /// The supplying warehouses in rising order are asked one after the other.
    fn next_unread_warehouse(&self) -> Option<u32> {
        let unread = self.lines().filter(|(_, found)| found.stock.is_none());
        unread.map(|(line, _)| line.supply_warehouse).min()
    }

    fn read_items(&mut self, rows: &mut BinaryRows<'_>) -> Result<(), Unexpected> {
        while let Some(mut row) = rows.next_row() {
            let item = row.int().ok_or("no I_ID")?;
            let price = row.text().and_then(Cents::parse).ok_or("no I_PRICE")?;
            row.value().ok_or("no I_NAME")?;
            let is_brand = is_original(row.text().ok_or("no I_DATA")?);
            for (line, found) in self.input.lines().iter().zip(&mut self.found) {
                if i64::from(line.item) == item {
                    found.price = Some(price);
                    found.item_is_original = is_brand;
                }
            }
        }
        Ok(())
    }

    /// Writes the statements that can be sent now; none when it is over.
    pub(super) fn go_on(&mut self, outbox: &mut Outbox<'_>) {
        match self.stage {
            Stage::Begin => {
                let (warehouse, district) = (self.input.warehouse, self.input.district);
                let values = outbox.execute(Statement::LockDistrict);
                values.ints([warehouse, district]).send();
                self.stage = Stage::Numbered;
            }
            Stage::Numbered => {
                self.enter_order(outbox);
                self.ask(outbox);
                self.stage = Stage::Read;
            }
            Stage::Read => {
                self.take_from_stock(outbox);
                self.enter_lines(outbox);
                let complete = self.lines().all(|(_, found)| found.price.is_some());
                outbox.end(match complete {
                    true => Statement::Commit,
                    false => Statement::Rollback,
                });
                self.stage = Stage::Over;
            }
            Stage::Over => {}
        }
    }

    fn enter_order(&self, outbox: &mut Outbox<'_>) {
        let NewOrderInput {
            warehouse,
            district,
            customer,
            line_count,
            ..
        } = self.input;
        let values = outbox.execute(Statement::CountOrder);
        values.ints([warehouse, district]).send();
        let is_local = u32::from(self.input.is_all_local());
        let values = outbox.execute(Statement::InsertOrder);
        values
            .ints([warehouse, district, self.order, customer, line_count as u32, is_local])
            .send();
        let values = outbox.execute(Statement::InsertNewOrder);
        values.ints([warehouse, district, self.order]).send();
    }

    /// Asks for everything that the lines need. Stock is locked warehouse by warehouse in rising order, and by the index in
    /// that of the items: orders that meet on several rows wait for one another instead of locking each other out.
    fn ask(&self, outbox: &mut Outbox<'_>) {
        let NewOrderInput {
            warehouse,
            district,
            customer,
            ..
        } = self.input;
        let mut asked = 0;
        while let Some(next) = self.next_warehouse_above(asked) {
            self.ask_for_stock(next, outbox);
            asked = next;
        }
        let mut values = outbox.execute(Statement::SelectItems);
        for item in padded(self.input.lines().iter().map(|line| line.item)) {
            values = values.int(item);
        }
        values.send();
        let values = outbox.execute(Statement::SelectTaxAndDiscount);
        values.ints([warehouse, district, customer]).send();
    }

    fn next_warehouse_above(&self, asked: u32) -> Option<u32> {
        let supplying = self.input.lines().iter().map(|line| line.supply_warehouse);
        supplying.filter(|&warehouse| warehouse > asked).min()
    }

    fn ask_for_stock(&self, warehouse: u32, outbox: &mut Outbox<'_>) {
        let lines = || {
            self.input
                .lines()
                .iter()
                .filter(move |line| line.supply_warehouse == warehouse)
        };
        let statement = match lines().count() {
            1 => Statement::LockStockOfOne,
            _ => Statement::LockStock,
        };
        let mut values = outbox.execute(statement).ints([self.input.district, warehouse]);
        let items = padded(lines().map(|line| line.item));
        let wanted = if statement == Statement::LockStock {
            MOST_LINES
        } else {
            1
        };
        for &item in &items[..wanted] {
            values = values.int(item);
        }
        values.send();
    }

    /// Clause 2.4.2.2: the stock falls by what is ordered, and is filled up by 91 where fewer than 10 would be left.
    fn take_from_stock(&mut self, outbox: &mut Outbox<'_>) {
        let home = self.input.warehouse;
        for number in 0..self.input.line_count {
            let (line, found) = (self.input.lines[number], self.found[number]);
            let (Some(_), Some(stock)) = (found.price, found.stock) else {
                continue;
            };
            let left = stock_left(stock, line.quantity as i32);
            let is_remote = u32::from(line.supply_warehouse != home);
            let values = outbox.execute(Statement::UpdateStock);
            values
                .signed(left)
                .ints([line.quantity, is_remote, line.supply_warehouse, line.item])
                .send();
            // The same item may stand in a further line.
            for (other, found) in self.input.lines().iter().zip(&mut self.found).skip(number + 1) {
                if (other.item, other.supply_warehouse) == (line.item, line.supply_warehouse) {
                    found.stock = Some(left);
                }
            }
        }
    }

    /// Clause 2.4.2.2: the lines with their amounts, and what the user is shown of them.
    fn enter_lines(&mut self, outbox: &mut Outbox<'_>) {
        let NewOrderInput {
            warehouse, district, ..
        } = self.input;
        let order = self.order;
        let lines = self.lines().filter(|(_, found)| found.price.is_some()).count();
        let mut values = outbox.execute_lines(Statement::InsertOrderLines, lines);
        let (mut sum, mut brand_lines) = (0, 0);
        for (number, (line, found)) in (1..).zip(self.lines()) {
            let Some(price) = found.price else { continue };
            let amount = Cents(price.0 * i64::from(line.quantity));
            sum += amount.0;
            brand_lines += u32::from(found.item_is_original && found.stock_is_original);
            values = values
                .ints([
                    warehouse,
                    district,
                    order,
                    number,
                    line.item,
                    line.supply_warehouse,
                    line.quantity,
                ])
                .cents(amount)
                .string(&found.district_info[..found.district_info_length]);
        }
        values.send();
        self.total = total(Cents(sum), self.discount, self.warehouse_tax, self.district_tax);
        self.brand_lines = brand_lines;
    }
}

/// S_QUANTITY after an order of `quantity` (clause 2.4.2.2).
fn stock_left(stock: i32, quantity: i32) -> i32 {
    if stock >= quantity + 10 {
        stock - quantity
    } else {
        stock - quantity + 91
    }
}

/// total-amount (clause 2.4.2.2): sum * (1 - C_DISCOUNT) * (1 + W_TAX + D_TAX), rounded to a cent.
fn total(sum: Cents, discount: Rate, warehouse_tax: Rate, district_tax: Rate) -> Cents {
    const ONE: i64 = 10_000;
    let exact = i128::from(sum.0) * i128::from(ONE - discount.0) * i128::from(ONE + warehouse_tax.0 + district_tax.0);
    let scale = i128::from(ONE) * i128::from(ONE);
    Cents(((exact + scale / 2) / scale) as i64)
}

/// The items as many times as a list has places: the last one again and again, which a server looks for only once.
fn padded(items: impl Iterator<Item = u32>) -> [u32; MOST_LINES] {
    let mut list = [0; MOST_LINES];
    let mut count = 0;
    for (place, item) in list.iter_mut().zip(items) {
        *place = item;
        count += 1;
    }
    let last = list[usize::saturating_sub(count, 1)];
    list[count..].fill(last);
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(warehouses: u32, count: usize) -> Vec<NewOrderInput> {
        let (constants, mut rng) = (RunConstants::of(1), ConnectionRng::new(1, 0));
        let home = Home {
            warehouse: 2,
            district: 1,
            warehouses,
        };
        (0..count)
            .map(|_| NewOrderInput::draw(&mut rng, &constants, home))
            .collect()
    }

    #[test]
    fn one_of_a_hundred_orders_ends_with_an_item_that_is_not_there() {
        let inputs = inputs(4, 40_000);
        let unused = |input: &&NewOrderInput| input.lines().iter().any(|line| line.item == UNUSED_ITEM);
        let rolled_back: Vec<_> = inputs.iter().filter(unused).collect();
        // Binomial: 400, deviation 20.
        assert!((300..=500).contains(&rolled_back.len()), "{}", rolled_back.len());
        for input in rolled_back {
            let items: Vec<u32> = input.lines().iter().map(|line| line.item).collect();
            assert_eq!(
                items.iter().position(|&item| item == UNUSED_ITEM),
                Some(items.len() - 1)
            );
        }
    }

    #[test]
    fn one_of_a_hundred_lines_comes_from_another_warehouse_and_orders_have_5_to_15_lines() {
        let inputs = inputs(4, 20_000);
        let lines: Vec<&LineInput> = inputs.iter().flat_map(|input| input.lines()).collect();
        let remote = lines.iter().filter(|line| line.supply_warehouse != 2).count() as f64;
        let share = remote / lines.len() as f64;
        assert!((0.008..0.012).contains(&share), "{share}");
        let mean = lines.len() as f64 / inputs.len() as f64;
        assert!((9.9..10.1).contains(&mean), "{mean}");
        assert!(inputs.iter().all(|input| (5..=15).contains(&input.line_count)));
        assert!(lines.iter().all(|line| (1..=10).contains(&line.quantity)));
        let local = inputs.iter().filter(|input| input.is_all_local()).count() as f64 / inputs.len() as f64;
        // The mean of 0.99^n over n from 5 to 15.
        assert!((0.89..0.92).contains(&local), "{local}");
    }

    #[test]
    fn with_one_warehouse_nothing_is_remote() {
        let home = Home {
            warehouse: 1,
            district: 1,
            warehouses: 1,
        };
        let (constants, mut rng) = (RunConstants::of(1), ConnectionRng::new(1, 0));
        assert!((0..500).all(|_| NewOrderInput::draw(&mut rng, &constants, home).is_all_local()));
    }

    #[test]
    fn stock_is_filled_up_where_fewer_than_ten_would_be_left() {
        assert_eq!(stock_left(20, 10), 10);
        assert_eq!(stock_left(19, 10), 100);
        assert_eq!(stock_left(10, 1), 100);
        assert_eq!(stock_left(11, 1), 10);
    }

    #[test]
    fn the_total_takes_off_the_discount_and_adds_the_taxes() {
        // 100.00 * 0.5 * 1.3
        assert_eq!(total(Cents(10_000), Rate(5000), Rate(2000), Rate(1000)), Cents(6500));
        assert_eq!(total(Cents(1), Rate(0), Rate(0), Rate(0)), Cents(1));
    }

    #[test]
    fn a_list_is_filled_with_its_last_item() {
        let list = padded([3, 1, 2].into_iter());
        assert_eq!(list[..4], [3, 1, 2, 2]);
        assert_eq!(list[MOST_LINES - 1], 2);
    }
}
