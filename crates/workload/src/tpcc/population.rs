//! The initial population (clause 4.3.3.1), one source of rows a table and warehouse.
//!
//! The lines of an order and the order itself come from different sources, which draw the order's shape from the same
//! stream of random numbers.

use super::money::{Cents, Rate};
use super::nurand::{CUSTOMERS, DISTRICTS, ITEMS, RunConstants};
use super::row_writer::RowWriter;
use super::text::{last_name, push_a_string, push_data, push_n_string, push_zip};
use crate::random::ConnectionRng;
use crate::schema::{RowFormat, RowSource};

/// Orders of each district; the last of them, from this one on, are not delivered.
const ORDERS: u32 = CUSTOMERS;
const FIRST_NEW_ORDER: u32 = 2101;

/// A table of the population.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Table {
    Item,
    Warehouse,
    District,
    Stock,
    Customer,
    History,
    Orders,
    NewOrder,
    OrderLine,
}

impl Table {
    /// Those that every warehouse has rows in.
    pub(super) const OF_A_WAREHOUSE: [Table; 8] = [
        Table::Warehouse,
        Table::District,
        Table::Stock,
        Table::Customer,
        Table::History,
        Table::Orders,
        Table::NewOrder,
        Table::OrderLine,
    ];

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Item => "item",
            Table::Warehouse => "warehouse",
            Table::District => "district",
            Table::Stock => "stock",
            Table::Customer => "customer",
            Table::History => "history",
            Table::Orders => "orders",
            Table::NewOrder => "new_order",
            Table::OrderLine => "order_line",
        }
    }

    /// Its columns in the order in which [`Rows`] writes their values.
    pub(super) fn columns(self) -> &'static str {
        match self {
            Table::Item => "i_id, i_im_id, i_name, i_price, i_data",
            Table::Warehouse => "w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd",
            Table::District => {
                "d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, d_next_o_id"
            }
            Table::Stock => {
                "s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, s_dist_06, s_dist_07, \
                 s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data"
            }
            Table::Customer => {
                "c_w_id, c_d_id, c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
                 c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data"
            }
            Table::History => "h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data",
            Table::Orders => "o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local",
            Table::NewOrder => "no_w_id, no_d_id, no_o_id",
            Table::OrderLine => {
                "ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, ol_amount, \
                 ol_dist_info"
            }
        }
    }

    /// Rows of the table, or of a warehouse in it; those of order lines on average.
    pub(super) fn rows(self) -> u64 {
        let districts = u64::from(DISTRICTS);
        match self {
            Table::Item | Table::Stock => u64::from(ITEMS),
            Table::Warehouse => 1,
            Table::District => districts,
            Table::Customer | Table::History => districts * u64::from(CUSTOMERS),
            Table::Orders => districts * u64::from(ORDERS),
            Table::NewOrder => districts * u64::from(ORDERS - FIRST_NEW_ORDER + 1),
            Table::OrderLine => districts * u64::from(ORDERS) * 10,
        }
    }
}

/// What is the same for all rows.
#[derive(Debug, Clone)]
pub(super) struct Population {
    pub(super) seed: u64,
    pub(super) constants: RunConstants,
    /// The time of the load as the server writes it: all dates.
    pub(super) now: String,
}

impl Population {
    /// The random numbers of one table and warehouse.
    fn rng(&self, table: Table, warehouse: u32) -> ConnectionRng {
        ConnectionRng::new(self.seed, (u64::from(warehouse) << 8) | table as u64)
    }

    /// The rows of a warehouse in a table; the items have none (0).
    pub(super) fn rows(&self, table: Table, warehouse: u32) -> Rows<'_> {
        Rows {
            population: self,
            table,
            warehouse,
            rng: self.rng(table, warehouse),
            district: 1,
            number: 1,
            line: 1,
            orders: Vec::new(),
        }
    }

    /// Customer and number of lines of each order of a district.
    fn orders(&self, warehouse: u32, district: u32) -> Vec<OrderShape> {
        let stream = (u64::from(warehouse) << 8) | u64::from(0x40 + district);
        let mut rng = ConnectionRng::new(self.seed, stream);
        let mut shapes: Vec<OrderShape> = (1..=ORDERS)
            .map(|customer| OrderShape {
                customer,
                lines: rng.uniform(5, 15),
            })
            .collect();
        // O_C_ID: a random permutation of all customers. Fisher and Yates.
        for i in (1..shapes.len()).rev() {
            shapes.swap(i, rng.uniform(0, i as u32) as usize);
        }
        shapes
    }
}

/// What an order and its lines share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OrderShape {
    customer: u32,
    lines: u32,
}

/// The rows of a warehouse in a table, one after the other.
#[derive(Debug)]
pub(super) struct Rows<'a> {
    population: &'a Population,
    table: Table,
    warehouse: u32,
    rng: ConnectionRng,
    district: u32,
    /// Number of the next item, customer or order.
    number: u32,
    /// Number of the next line.
    line: u32,
    /// Orders of the district, once they are needed.
    orders: Vec<OrderShape>,
}

impl RowSource for Rows<'_> {
    fn push(&mut self, format: RowFormat, out: &mut Vec<u8>) -> bool {
        if self.district > DISTRICTS {
            return false;
        }
        let row = RowWriter::new(format, out);
        match self.table {
            Table::Item => self.item(row),
            Table::Warehouse => self.warehouse(row),
            Table::District => self.district(row),
            Table::Stock => self.stock(row),
            Table::Customer => self.customer(row),
            Table::History => self.history(row),
            Table::Orders => self.order(row),
            Table::NewOrder => self.new_order(row),
            Table::OrderLine => self.order_line(row),
        }
        true
    }
}

impl Rows<'_> {
    /// Goes to the next number; past `last` to the next district.
    fn count(&mut self, first: u32, last: u32) {
        self.number += 1;
        if self.number > last {
            self.number = first;
            self.district += 1;
            self.orders.clear();
        }
    }

    /// Goes to the next number of a table without districts.
    fn count_to(&mut self, last: u32) {
        self.number += 1;
        if self.number > last {
            self.district = DISTRICTS + 1;
        }
    }

    fn order_shape(&mut self) -> OrderShape {
        if self.orders.is_empty() {
            self.orders = self.population.orders(self.warehouse, self.district);
        }
        self.orders[self.number as usize - 1]
    }

    /// NAME, STREET_1, STREET_2, CITY, STATE and ZIP of a warehouse or district.
    fn name_and_address<'w>(&mut self, row: RowWriter<'w>) -> RowWriter<'w> {
        let row = row.made(|out| push_a_string(&mut self.rng, 6, 10, out));
        self.address(row)
    }

    fn address<'w>(&mut self, row: RowWriter<'w>) -> RowWriter<'w> {
        let rng = &mut self.rng;
        row.made(|out| push_a_string(rng, 10, 20, out))
            .made(|out| push_a_string(rng, 10, 20, out))
            .made(|out| push_a_string(rng, 10, 20, out))
            .made(|out| push_a_string(rng, 2, 2, out))
            .made(|out| push_zip(rng, out))
    }

    fn item(&mut self, row: RowWriter<'_>) {
        let rng = &mut self.rng;
        row.numbers([self.number, rng.uniform(1, 10_000)])
            .made(|out| push_a_string(rng, 14, 24, out))
            .cents(Cents(i64::from(rng.uniform(100, 10_000))))
            .made(|out| push_data(rng, out))
            .end();
        self.count_to(ITEMS);
    }

    fn warehouse(&mut self, row: RowWriter<'_>) {
        let row = row.number(self.warehouse);
        let row = self.name_and_address(row);
        row.rate(Rate(i64::from(self.rng.uniform(0, 2000))))
            .cents(Cents(30_000_000))
            .end();
        self.count_to(1);
    }

    fn district(&mut self, row: RowWriter<'_>) {
        let row = row.numbers([self.warehouse, self.district]);
        let row = self.name_and_address(row);
        row.rate(Rate(i64::from(self.rng.uniform(0, 2000))))
            .cents(Cents(3_000_000))
            .number(ORDERS + 1)
            .end();
        self.count(1, 1);
    }

    fn stock(&mut self, row: RowWriter<'_>) {
        let rng = &mut self.rng;
        let mut row = row.numbers([self.warehouse, self.number, rng.uniform(10, 100)]);
        for _ in 0..DISTRICTS {
            row = row.made(|out| push_a_string(rng, 24, 24, out));
        }
        row.numbers([0, 0, 0]).made(|out| push_data(rng, out)).end();
        self.count_to(ITEMS);
    }

    fn customer(&mut self, row: RowWriter<'_>) {
        // The first thousand customers have every last name once.
        let name = match self.number {
            1..=1000 => self.number - 1,
            _ => self.population.constants.draw_last_name_to_load(&mut self.rng),
        };
        let row = row
            .numbers([self.warehouse, self.district, self.number])
            .made(|out| push_a_string(&mut self.rng, 8, 16, out))
            .text("OE")
            .text(&last_name(name));
        let row = self.address(row);
        let rng = &mut self.rng;
        row.made(|out| push_n_string(rng, 16, out))
            .text(&self.population.now)
            .text(if rng.uniform(1, 10) == 1 { "BC" } else { "GC" })
            .cents(Cents(5_000_000))
            .rate(Rate(i64::from(rng.uniform(0, 5000))))
            .cents(Cents(-1000))
            .cents(Cents(1000))
            .numbers([1, 0])
            .made(|out| push_a_string(rng, 300, 500, out))
            .end();
        self.count(1, CUSTOMERS);
    }

    fn history(&mut self, row: RowWriter<'_>) {
        row.numbers([
            self.warehouse,
            self.district,
            self.number,
            self.warehouse,
            self.district,
        ])
        .text(&self.population.now)
        .cents(Cents(1000))
        .made(|out| push_a_string(&mut self.rng, 12, 24, out))
        .end();
        self.count(1, CUSTOMERS);
    }

    fn order(&mut self, row: RowWriter<'_>) {
        let shape = self.order_shape();
        let is_delivered = self.number < FIRST_NEW_ORDER;
        row.numbers([self.warehouse, self.district, self.number, shape.customer])
            .text(&self.population.now)
            .number_or_null(is_delivered.then(|| self.rng.uniform(1, 10)))
            .numbers([shape.lines, 1])
            .end();
        self.count(1, ORDERS);
    }

    fn new_order(&mut self, row: RowWriter<'_>) {
        self.number = self.number.max(FIRST_NEW_ORDER);
        row.numbers([self.warehouse, self.district, self.number]).end();
        self.count(FIRST_NEW_ORDER, ORDERS);
    }

    fn order_line(&mut self, row: RowWriter<'_>) {
        let shape = self.order_shape();
        let is_delivered = self.number < FIRST_NEW_ORDER;
        let rng = &mut self.rng;
        let item = rng.uniform(1, ITEMS);
        let amount = match is_delivered {
            true => 0,
            false => i64::from(rng.uniform(1, 999_999)),
        };
        row.numbers([
            self.warehouse,
            self.district,
            self.number,
            self.line,
            item,
            self.warehouse,
        ])
        .text_or_null(is_delivered.then_some(&self.population.now))
        .number(5)
        .cents(Cents(amount))
        .made(|out| push_a_string(rng, 24, 24, out))
        .end();
        self.line += 1;
        if self.line > shape.lines {
            self.line = 1;
            self.count(1, ORDERS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn population() -> Population {
        Population {
            seed: 5,
            constants: RunConstants::of(5),
            now: "2026-11-22 08:00:00".to_owned(),
        }
    }

    /// The rows of warehouse 3 in a table, as their values.
    fn rows(table: Table) -> Vec<Vec<String>> {
        let population = population();
        let (mut source, mut out) = (population.rows(table, 3), Vec::new());
        while source.push(RowFormat::Tabs, &mut out) {}
        let text = String::from_utf8(out).expect("ASCII");
        let columns = table.columns().split(',').count();
        let rows: Vec<Vec<String>> = text
            .lines()
            .map(|line| line.split('\t').map(str::to_owned).collect())
            .collect();
        assert!(rows.iter().all(|row: &Vec<String>| row.len() == columns), "{table:?}");
        rows
    }

    #[test]
    fn every_table_has_the_rows_of_the_specification() {
        for table in [Table::Item].into_iter().chain(Table::OF_A_WAREHOUSE) {
            let count = rows(table).len() as u64;
            match table {
                // 10 lines an order on average.
                Table::OrderLine => assert!(count.abs_diff(table.rows()) < 3000, "{count}"),
                _ => assert_eq!(count, table.rows(), "{table:?}"),
            }
        }
    }

    #[test]
    fn orders_and_their_lines_agree_and_every_customer_has_ordered_once() {
        let orders = rows(Table::Orders);
        let mut lines: BTreeMap<(String, String), u32> = BTreeMap::new();
        for line in rows(Table::OrderLine) {
            *lines.entry((line[1].clone(), line[2].clone())).or_default() += 1;
            let is_delivered = line[2].parse::<u32>().expect("a number") < FIRST_NEW_ORDER;
            assert_eq!(line[6] == "\\N", !is_delivered);
            assert_eq!(line[8] == "0.00", is_delivered);
        }
        for order in &orders {
            let key = (order[1].clone(), order[2].clone());
            assert_eq!(lines.get(&key).map(u32::to_string).as_ref(), Some(&order[6]));
            let is_delivered = order[2].parse::<u32>().expect("a number") < FIRST_NEW_ORDER;
            assert_eq!(order[5] == "\\N", !is_delivered);
        }
        let customers: std::collections::BTreeSet<_> = orders.iter().map(|order| (&order[1], &order[3])).collect();
        assert_eq!(customers.len(), orders.len());
    }

    #[test]
    fn new_orders_are_the_last_nine_hundred_of_each_district() {
        let new_orders = rows(Table::NewOrder);
        for district in 1..=DISTRICTS {
            let numbers: Vec<u32> = new_orders
                .iter()
                .filter(|row| row[1] == district.to_string())
                .map(|row| row[2].parse().expect("a number"))
                .collect();
            assert!(numbers.iter().copied().eq(FIRST_NEW_ORDER..=ORDERS));
        }
    }

    #[test]
    fn customers_have_every_last_name_and_one_of_ten_bad_credit() {
        let customers = rows(Table::Customer);
        let names: std::collections::BTreeSet<_> = customers.iter().map(|row| &row[5]).collect();
        assert_eq!(names.len(), 1000);
        let bad = customers.iter().filter(|row| row[13] == "BC").count();
        assert!((2750..=3250).contains(&bad), "{bad} of 30000");
        assert!(customers.iter().all(|row| (300..=500).contains(&row[20].len())));
        // Not the same rows in another warehouse.
        let population = population();
        let mut other = Vec::new();
        population.rows(Table::Customer, 4).push(RowFormat::Tabs, &mut other);
        assert!(!String::from_utf8(other).expect("ASCII").contains(&customers[0][20]));
    }
}
