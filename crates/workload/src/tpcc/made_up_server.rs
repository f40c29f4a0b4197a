//! The transactions against a server that answers by the book, for the statements that they send and their order.

use super::options::TpccOptions;
use super::statement::Statement;
use super::terminal::Terminal;
use super::workload::Tpcc;
use super::{Ending, Mix, TransactionKind};
use crate::program::Composer;
use crate::random::ConnectionRng;

/// A value of a made-up row.
enum Cell {
    Int(i32),
    Text(&'static str),
}

use Cell::{Int, Text};

fn packet(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes()[..3], &[1], payload].concat()
}

/// A reply with these rows, as a server without EOF packets writes it.
fn reply(rows: &[Vec<Cell>]) -> Vec<u8> {
    let columns = rows.first().map_or(1, Vec::len);
    let mut out = packet(&[columns as u8]);
    for column in 0..columns {
        let kind = match rows.first().map(|row| &row[column]) {
            Some(Text(_)) => 0xfd,
            Some(Int(_)) | None => 0x03,
        };
        let head = b"\x03def\0\x01t\x01t\x01c\x01c\x0c\x3f\0\x0a\0\0\0";
        out.extend(packet(&[&head[..], &[kind, 0, 0, 0, 0, 0]].concat()));
    }
    for row in rows {
        let mut payload = vec![0; 1 + (columns + 9) / 8];
        for cell in row {
            match cell {
                Int(value) => payload.extend(value.to_le_bytes()),
                Text(text) => {
                    payload.push(text.len() as u8);
                    payload.extend(text.as_bytes());
                }
            }
        }
        out.extend(packet(&payload));
    }
    out.extend(packet(&[0xfe, 0, 0, 2, 0, 0, 0]));
    out
}

/// The numbers at the end of an EXECUTE packet.
fn ints(packet: &[u8], count: usize) -> Vec<i32> {
    let values = &packet[packet.len() - 4 * count..];
    let numbers = values.chunks(4).map(|bytes| bytes.try_into().map(i32::from_le_bytes));
    numbers.map(|number| number.expect("four bytes")).collect()
}

/// What a filled database answers; nothing for a statement without rows. `oldest` is the new order of every district.
fn answer(statement: Statement, packet: &[u8], oldest: Option<i32>) -> Option<Vec<Vec<Cell>>> {
    let existing = |mut items: Vec<i32>| {
        items.sort_unstable();
        items.dedup();
        items.retain(|&item| item <= 100_000);
        items
    };
    let stock = |item: i32| {
        vec![
            Int(item),
            Int(50),
            Text("abcdefghijklmnopqrstuvwx"),
            Text("an ORIGINAL"),
        ]
    };
    Some(match statement {
        Statement::LockDistrict => vec![vec![Text("0.1000"), Int(3001)]],
        Statement::LockStockOfOne => existing(ints(packet, 1)).into_iter().map(stock).collect(),
        Statement::LockStock => existing(ints(packet, 15)).into_iter().map(stock).collect(),
        Statement::SelectItems => existing(ints(packet, 15))
            .into_iter()
            .map(|item| vec![Int(item), Text("9.99"), Text("name"), Text("data")])
            .collect(),
        Statement::SelectTaxAndDiscount => vec![vec![Text("0.2000"), Text("0.5000"), Text("BARBARBAR"), Text("GC")]],
        Statement::SelectWarehouse | Statement::SelectDistrict => vec![vec![Text("name")]],
        Statement::LockCustomer => vec![vec![Text("BC")]],
        Statement::SelectCustomerData | Statement::SelectCustomer => vec![vec![Text("data")]],
        Statement::SelectByLastName => vec![vec![Int(7)], vec![Int(8)], vec![Int(9)]],
        Statement::SelectLastOrder => vec![vec![Int(11)]],
        Statement::SelectOrderLines => vec![vec![Int(1)]],
        Statement::LockOldestNewOrder => oldest.map(|order| vec![Int(order)]).into_iter().collect(),
        Statement::LockCustomerOfOrder => vec![vec![Int(5)]],
        Statement::SumOrderLines => vec![vec![Text("123.45")]],
        Statement::SelectNextOrder => vec![vec![Int(3001)]],
        Statement::CountLowStock => vec![vec![Int(3)]],
        _ => return None,
    })
}

/// Runs transactions of one kind to their ends; gives the statements of each and how it ended.
fn run(kind: TransactionKind, oldest: Option<i32>, times: usize) -> Vec<(Vec<Statement>, Ending)> {
    let mut cards = [0; 5];
    cards[kind as usize] = 1;
    let mix: Mix = cards.map(|n: u8| n.to_string()).join(",").parse().expect("a mix");
    let options = TpccOptions {
        warehouses: 3,
        mix,
        ..TpccOptions::default()
    };
    let tpcc = Tpcc::new(options).expect("options");
    let prepared = tpcc.prepared_sql().len();
    let mut composer = Composer {
        rng: ConnectionRng::new(1, 0),
        position: 0,
        of: 1,
        statement_ids: (1..=prepared as u32).collect(),
        types_sent: vec![false; prepared].into(),
    };
    let mut terminal = Terminal::new(&tpcc, &mut composer);
    let (mut out, mut steps) = (Vec::new(), Vec::new());
    let mut all = Vec::new();
    for _ in 0..times {
        let mut sent = Vec::new();
        terminal.begin(&tpcc, &mut composer, &mut out, &mut steps);
        while !steps.is_empty() {
            let mut start = 0;
            for step in &steps {
                let packet = &out[start..step.end as usize];
                let length = u32::from_le_bytes([packet[0], packet[1], packet[2], 0]);
                assert_eq!(length as usize + 4, packet.len());
                start = step.end as usize;
                let statement = Statement::ALL[usize::from(step.kind)];
                sent.push(statement);
                if let Some(rows) = answer(statement, packet, oldest) {
                    // In two pieces, as it may come.
                    let bytes = reply(&rows);
                    let (head, tail) = bytes.split_at(bytes.len() / 2);
                    terminal.keep(head).expect("it is short");
                    terminal.read(step.kind, tail, true).expect("rows by the book");
                }
            }
            assert_eq!(start, out.len());
            terminal.go_on(&tpcc, &mut composer, &mut out, &mut steps);
        }
        all.push((sent, terminal.ending()));
    }
    all
}

fn count(statements: &[Statement], statement: Statement) -> usize {
    statements.iter().filter(|&&one| one == statement).count()
}

#[test]
fn a_new_order_changes_the_stock_of_every_line_and_enters_them_all() {
    let orders = run(TransactionKind::NewOrder, None, 2000);
    let (mut rolled_back, mut statements) = (0, 0);
    for (sent, ending) in &orders {
        use Statement::*;
        assert_eq!(sent[..4], [LockDistrict, CountOrder, InsertOrder, InsertNewOrder]);
        for once in [SelectItems, SelectTaxAndDiscount, InsertOrderLines] {
            assert_eq!(count(sent, once), 1, "{once:?}");
        }
        let lines = count(sent, UpdateStock);
        let unused = *ending == Ending::ROLLED_BACK;
        let fewest = if unused { 4 } else { 5 };
        assert!((fewest..=15).contains(&lines), "{lines} lines");
        assert_eq!(sent.last(), Some(if unused { &Rollback } else { &Commit }));
        rolled_back += usize::from(unused);
        statements += sent.len();
    }
    assert!(
        (8..=40).contains(&rolled_back),
        "{rolled_back} of 2000 were rolled back"
    );
    let mean = statements as f64 / orders.len() as f64;
    assert!((18.0..19.5).contains(&mean), "{mean} round trips");
}

#[test]
fn a_payment_of_a_customer_with_bad_credit_reads_and_writes_their_data() {
    for (sent, ending) in run(TransactionKind::Payment, None, 200) {
        use Statement::*;
        assert_eq!(sent[..4], [PayWarehouse, PayDistrict, SelectWarehouse, SelectDistrict]);
        let rest: Vec<Statement> = sent[4..].iter().copied().filter(|&s| s != SelectByLastName).collect();
        assert_eq!(
            rest,
            [LockCustomer, SelectCustomerData, PayBadCustomer, InsertHistory, Commit]
        );
        assert_eq!(ending, Ending::committed(TransactionKind::Payment));
    }
}

#[test]
fn an_order_status_reads_the_customer_the_order_and_its_lines() {
    let all = run(TransactionKind::OrderStatus, None, 500);
    let by_name = all
        .iter()
        .filter(|(sent, _)| sent[0] == Statement::SelectByLastName)
        .count();
    assert!((260..=340).contains(&by_name), "{by_name} of 500 by last name");
    for (sent, _) in all {
        use Statement::*;
        assert!(sent.ends_with(&[SelectCustomer, SelectLastOrder, SelectOrderLines, Commit]));
    }
}

#[test]
fn a_delivery_serves_ten_districts_and_skips_those_without_an_order() {
    for (oldest, served) in [(Some(2101), 10), (None, 0)] {
        for (sent, _) in run(TransactionKind::Delivery, oldest, 3) {
            use Statement::*;
            assert_eq!(count(&sent, LockOldestNewOrder), 10);
            for of_each in [
                DeleteNewOrder,
                SetCarrier,
                SetDeliveryDate,
                SumOrderLines,
                CreditCustomer,
            ] {
                assert_eq!(count(&sent, of_each), served, "{of_each:?}");
            }
            assert_eq!(sent.last(), Some(&Commit));
        }
    }
}

#[test]
fn a_stock_level_counts_after_it_has_read_the_next_order() {
    for (sent, _) in run(TransactionKind::StockLevel, None, 3) {
        use Statement::*;
        assert_eq!(sent, [SelectNextOrder, CountLowStock, Commit]);
    }
}
