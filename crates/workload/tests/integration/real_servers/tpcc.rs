//! TPC-C on real servers: what the tables hold, what the transactions leave, and that the checks see what is wrong.

use super::stage::*;
use scaleprof_wire::Client;
use scaleprof_workload::tpcc::{self, Condition, HomeWarehouse, Tpcc, TpccFillPlan, TpccOptions, TransactionKind};
use scaleprof_workload::*;
use std::sync::atomic::AtomicBool;

const WAREHOUSES: u32 = 2;

fn options() -> TpccOptions {
    TpccOptions {
        warehouses: WAREHOUSES,
        ..TpccOptions::default()
    }
}

/// Makes and fills the tables; gives a connection in their schema.
fn prepare(stage: &Stage) -> Client {
    let mut control = client(stage);
    let options = options();
    schema::create(&mut control, None, &options.data_description()).expect("a schema");
    tpcc::create_tables(&mut control, &options).expect("tables");
    let plan = TpccFillPlan {
        endpoint: stage.endpoint().clone(),
        credentials: stage.credentials(),
        options,
        threads: 2,
        skip_binary_log: true,
    };
    let mut last = None;
    tpcc::fill(&plan, &AtomicBool::new(false), &mut |done| last = Some(done)).expect("rows");
    let last = last.expect("progress");
    assert!(last.rows * 100 > last.of * 98 && last.indexes == 2, "{last:?}");
    execute(&mut control, "USE scaleprof_load");
    control
}

fn program(options: TpccOptions) -> Program {
    Program::Tpcc(Tpcc::new(options).expect("options"))
}

fn assert_consistent(control: &mut Client, when: &str) {
    let violations = tpcc::check_consistency(control, schema::SCHEMA, &AtomicBool::new(false)).expect("answers");
    let words: Vec<String> = violations.iter().map(ToString::to_string).collect();
    assert!(words.is_empty(), "{when}: {words:#?}");
}

fn everything_holds_on(stage: &Stage) {
    let mut control = prepare(stage);
    assert_consistent(&mut control, "after the load");
    the_population_is_complete(&mut control);
    for transport in transports() {
        eight_connections_leave_all_conditions_true(stage, &mut control, transport);
    }
    a_lock_that_is_held_too_long_costs_a_retry_of_the_same_transaction(stage, &mut control);
    planned_pauses_are_kept(stage);
    every_condition_is_able_to_fail(&mut control);
}

#[test]
fn the_conditions_hold_after_the_load_and_after_runs_and_each_can_fail_on_the_distribution_server() {
    on_the_distribution_server(everything_holds_on);
}

#[test]
#[ignore = "./test --deep truth"]
fn the_conditions_hold_after_the_load_and_after_runs_and_each_can_fail_on_mysql_5_6() {
    on_mysql_5_6(everything_holds_on);
}

fn the_population_is_complete(control: &mut Client) {
    let w = u64::from(WAREHOUSES);
    for (table, rows) in [
        ("item", 100_000),
        ("warehouse", w),
        ("district", 10 * w),
        ("stock", 100_000 * w),
        ("customer", 30_000 * w),
        ("history", 30_000 * w),
        ("orders", 30_000 * w),
        ("new_order", 9_000 * w),
    ] {
        assert_eq!(
            number(control, &format!("SELECT COUNT(*) FROM {table}")),
            rows,
            "{table}"
        );
    }
    let lines = number(control, "SELECT COUNT(*) FROM order_line");
    assert!(lines.abs_diff(300_000 * w) < 3_000 * w, "{lines} order lines");
    let names = number(control, "SELECT COUNT(DISTINCT c_last) FROM customer");
    assert_eq!(names, 1000);
    let originals = number(control, "SELECT COUNT(*) FROM stock WHERE s_data LIKE '%ORIGINAL%'");
    assert!(originals.abs_diff(10_000 * w) < 1_000 * w, "{originals} brand goods");
}

fn eight_connections_leave_all_conditions_true(stage: &Stage, control: &mut Client, transport: Transport) {
    let before = number(control, "SELECT SUM(d_next_o_id) FROM district");
    let load = LoadPlan {
        connections: 8,
        seconds: 2,
        threads: 2,
        transport,
        ..plan(
            stage,
            program(TpccOptions {
                home: HomeWarehouse::Random,
                ..options()
            }),
        )
    };
    let ran = run(&load);
    // Connections that were given up in a transaction close now, and what they did is undone.
    let names = load.program.transaction_names();
    let count = |name: &str| {
        let place = names.iter().position(|one| one == name).expect("a kind");
        ran.sum(|record| record.kinds[place].len())
    };
    let all: u64 = names.iter().map(|name| count(name)).sum();
    assert_eq!(all, ran.sum(|record| record.transactions));
    println!(
        "{transport}: {all} transactions in 2 s, {} retried",
        ran.sum(|r| r.retries)
    );
    for kind in TransactionKind::ALL {
        assert!(count(kind.name()) > 0, "{kind}");
    }
    let new_orders = count("new_order") + count(tpcc::ROLLED_BACK);
    let share = new_orders as f64 / all as f64;
    // Ten of 23; eight decks that are half dealt move it by some transactions, which are much of few.
    let off = (share - 10.0 / 23.0).abs();
    assert!(
        off < 0.035 + 11.0 / all as f64,
        "the share of New-Orders is {share} of {all}"
    );
    // Those that ended after the last second entered orders too.
    let entered = number(control, "SELECT SUM(d_next_o_id) FROM district") - before;
    let late = ran.outcome().late_transactions;
    let committed = count("new_order");
    assert!(
        (committed..=committed + late).contains(&entered),
        "{entered} orders, {committed} counted"
    );
    let remote = number(control, "SELECT SUM(s_remote_cnt) FROM stock");
    assert!(remote > 0, "no line came from another warehouse");
    assert_consistent(control, "after a run");
}

/// Somebody locks all districts for longer than transactions wait: they fail in their middle, and are begun again.
fn a_lock_that_is_held_too_long_costs_a_retry_of_the_same_transaction(stage: &Stage, control: &mut Client) {
    let mut locker = client(stage);
    let load = LoadPlan {
        connections: 4,
        seconds: 4,
        session_statements: vec!["SET SESSION innodb_lock_wait_timeout = 1".to_owned()],
        ..plan(stage, program(options()))
    };
    let ran = run_with(&load, &Default::default(), &mut |second| match second {
        0 => {
            execute(&mut locker, "BEGIN");
            execute(&mut locker, "SELECT COUNT(*) FROM scaleprof_load.district FOR UPDATE");
        }
        2 => execute(&mut locker, "ROLLBACK"),
        _ => {}
    });
    let timeouts = |statement: &str| {
        let names = load.program.statement_names();
        let place = names.iter().position(|name| name == statement).expect("a statement") as u16;
        ran.sum(|record| record.errors.get(&(1205, place)).copied().unwrap_or(0))
    };
    let (payments, orders) = (timeouts("payment.pay_district"), timeouts("new_order.lock_district"));
    assert!(payments + orders > 0, "no transaction waited too long");
    assert_eq!(ran.sum(|record| record.retries), ran.sum(SecondRecord::error_count));
    assert!(ran.records[3].transactions > 0, "they go on when the lock is gone");
    assert_consistent(control, "after transactions were begun again");
}

/// A hundredth of the specification's keying and think times: connections do fewer transactions than they could.
fn planned_pauses_are_kept(stage: &Stage) {
    let load = LoadPlan {
        connections: 2,
        seconds: 3,
        ..plan(
            stage,
            program(TpccOptions {
                pauses: Some(0.01),
                ..options()
            }),
        )
    };
    let ran = run(&load);
    // A cycle of the mix takes 20.8 s on average, so 208 ms and the transaction: less than 10 a second.
    let transactions = ran.transactions();
    assert!((6..=60).contains(&transactions), "{transactions} transactions in 3 s");
    let inside: u64 = ran.sum(|record| record.in_transaction_ns);
    assert!(
        inside < 3_000_000_000,
        "connections rest between transactions: {inside} ns inside"
    );
}

/// What breaks each condition, in their order.
const PLANTED: [&str; 12] = [
    "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1",
    "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = 2 AND d_id = 10",
    "DELETE FROM new_order WHERE no_w_id = 1 AND no_d_id = 2 AND no_o_id = \
     (SELECT o_id - 5 FROM (SELECT MAX(o_id) AS o_id FROM orders WHERE o_w_id = 1 AND o_d_id = 2) AS last)",
    "DELETE FROM order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 1",
    "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 4 AND o_id = 9",
    "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 2 AND o_d_id = 4 AND o_id = 9",
    "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 3 AND ol_number = 2",
    "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
    "UPDATE history SET h_d_id = 3 WHERE h_w_id = 1 AND h_d_id = 2 LIMIT 1",
    "UPDATE customer SET c_balance = c_balance - 0.01 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 1",
    "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 1 AND c_d_id = 5 AND c_id = 1",
    "UPDATE customer SET c_ytd_payment = c_ytd_payment + 0.01 WHERE c_w_id = 2 AND c_d_id = 1 AND c_id = 3000",
];

fn every_condition_is_able_to_fail(control: &mut Client) {
    execute(control, "SET autocommit = 0");
    for (condition, violation) in Condition::ALL.iter().zip(PLANTED) {
        let changed = control.execute(violation).expect(violation).affected_rows;
        assert!(changed > 0, "{violation}");
        let found = condition.check(control).expect("an answer");
        let found = found.unwrap_or_else(|| panic!("condition {} did not see: {violation}", condition.number));
        assert!(found.places >= 1);
        println!("{found}");
        execute(control, "ROLLBACK");
    }
    execute(control, "COMMIT");
    assert_consistent(control, "after all is rolled back");
}
