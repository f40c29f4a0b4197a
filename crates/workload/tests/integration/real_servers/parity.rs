//! Our workloads are sysbench's, statement for statement, as the server sees them.

use super::general_log::{Logged, normalised, numbers, statements, while_logging};
use super::stage::*;
use super::sysbench;
use scaleprof_workload::*;
use std::collections::BTreeSet;

const EVENTS: u32 = 20;
const ROWS: u32 = 1000;

/// What one client did.
struct Seen {
    /// Every transaction, as the commands and normalised texts of its statements.
    transactions: Vec<Vec<String>>,
    /// Normalised texts of what was prepared.
    prepared: BTreeSet<String>,
}

fn see(log: Vec<Logged>, per_transaction: impl Fn(&[Logged]) -> Vec<Vec<Logged>>) -> Seen {
    let prepared = log
        .iter()
        .filter(|entry| entry.command == "Prepare")
        .map(|entry| normalised(&entry.text))
        .collect();
    let mut transactions = Vec::new();
    for (_, entries) in statements(log) {
        for transaction in per_transaction(&entries) {
            check_values(&transaction);
            let lines = transaction
                .iter()
                .map(|e| format!("{}: {}", e.command, normalised(&e.text)));
            transactions.push(lines.collect());
        }
    }
    Seen { transactions, prepared }
}

/// Transactions end with COMMIT, or are one statement each. Statements of a client's own setting up are left out.
fn cut(entries: &[Logged]) -> Vec<Vec<Logged>> {
    let ours = |e: &&Logged| e.text.contains("sbtest") || ["BEGIN", "COMMIT"].contains(&e.text.as_str());
    let entries: Vec<Logged> = entries.iter().filter(ours).cloned().collect();
    if entries.iter().any(|e| e.text == "COMMIT") {
        entries
            .split_inclusive(|e| e.text == "COMMIT")
            .map(<[Logged]>::to_vec)
            .collect()
    } else {
        entries.into_iter().map(|e| vec![e]).collect()
    }
}

/// What ties the values of a transaction together.
fn check_values(transaction: &[Logged]) {
    let table = |text: &str| {
        let at = text.find("sbtest").map(|at| at + "sbtest".len());
        at.and_then(|at| {
            text[at..]
                .split(|c: char| !c.is_ascii_digit())
                .next()
                .map(str::to_owned)
        })
    };
    for pair in transaction.windows(2) {
        let (a, b) = (&pair[0].text, &pair[1].text);
        // A group of statements draws its table once.
        if normalised(a) == normalised(b) {
            assert_eq!(table(a), table(b), "{a} | {b}");
        }
        if a.starts_with("DELETE") && b.starts_with("INSERT") {
            assert_eq!(table(a), table(b));
            assert_eq!(numbers(a)[0], numbers(b)[0], "the deleted row comes back: {a} | {b}");
        }
    }
    for Logged { text, .. } in transaction {
        if text.contains(" id BETWEEN ") {
            let ends = numbers(text);
            assert_eq!(ends[1] - ends[0], 99, "{text}");
        }
        if text.contains("count(k)") {
            let ends = numbers(text);
            assert!(ends.len() == 20 && ends.chunks(2).all(|e| e[1] - e[0] == 5), "{text}");
        }
        if text.starts_with("UPDATE") && text.contains("c=") {
            let c = text.split('\'').nth(1).unwrap_or_default();
            assert_eq!(c.len(), 119, "{text}");
        }
    }
}

fn ours(stage: &Stage, kind: OltpWorkloadKind, protocol: Protocol) -> Seen {
    let tables = if kind.name().starts_with("select_random") { 1 } else { 2 };
    let options = OltpOptions {
        tables,
        table_size: ROWS,
        protocol,
        ..OltpOptions::default()
    };
    let plan = LoadPlan {
        // An open loop, to have a few transactions only.
        loop_kind: LoopKind::Open {
            rate: f64::from(EVENTS),
            arrivals: Arrivals::Even,
        },
        ..plan(stage, oltp(kind, &options))
    };
    let mut transactions = 0;
    let log = while_logging(stage, || transactions = run(&plan).transactions());
    let seen = see(log, cut);
    assert_eq!(seen.transactions.len() as u64, transactions, "{kind}: counted and sent");
    seen
}

fn sysbenchs(stage: &Stage, kind: OltpWorkloadKind, protocol: Protocol) -> Seen {
    let mode = match protocol {
        Protocol::Binary => "auto",
        Protocol::Text => "disable",
    };
    let options = [
        "--tables=2".to_owned(),
        format!("--table-size={ROWS}"),
        format!("--events={EVENTS}"),
        format!("--db-ps-mode={mode}"),
    ];
    let log = while_logging(stage, || {
        sysbench::sysbench(stage, schema::SCHEMA, kind.name(), &options, "run");
    });
    let seen = see(log, cut);
    assert_eq!(
        seen.transactions.len(),
        EVENTS as usize,
        "{kind}: sysbench's transactions"
    );
    seen
}

fn statements_are_sysbenchs(stage: &Stage) {
    if !sysbench::is_there() {
        return;
    }
    let options = OltpOptions {
        tables: 2,
        table_size: ROWS,
        ..OltpOptions::default()
    };
    prepare(stage, &options, OltpWorkloadKind::ReadWrite);
    for kind in OltpWorkloadKind::ALL {
        for protocol in [Protocol::Binary, Protocol::Text] {
            let theirs = sysbenchs(stage, kind, protocol);
            let ours = ours(stage, kind, protocol);
            // Every transaction of a workload has the same statements in the same order, theirs and ours.
            let expected = &theirs.transactions[0];
            assert!(!ours.transactions.is_empty());
            for transaction in theirs.transactions.iter().chain(&ours.transactions) {
                assert_eq!(transaction, expected, "{kind} {protocol}");
            }
            // Attempts to prepare what cannot be prepared are logged by some servers and not by others.
            let preparable = |seen: &Seen| -> BTreeSet<String> {
                let kept = seen.prepared.iter().filter(|t| t.contains("sbtest"));
                kept.cloned().collect()
            };
            assert_eq!(preparable(&ours), preparable(&theirs), "{kind} {protocol}: prepared");
        }
    }
}

#[test]
fn statements_are_sysbenchs_in_number_and_order_on_the_distribution_server() {
    on_the_distribution_server(statements_are_sysbenchs);
}

#[test]
fn statements_are_sysbenchs_in_number_and_order_on_mysql_5_6() {
    on_mysql_5_6(statements_are_sysbenchs);
}

/// SHOW CREATE TABLE without the AUTO_INCREMENT counter.
fn definition(stage: &Stage, schema: &str) -> String {
    let shown = client(stage)
        .query(&format!("SHOW CREATE TABLE {schema}.sbtest1"))
        .expect("the definition");
    let text = shown.rows[0][1].clone().expect("the definition");
    let words = text.split(' ').filter(|word| !word.starts_with("AUTO_INCREMENT="));
    words.collect::<Vec<_>>().join(" ")
}

fn tables_are_sysbenchs(stage: &Stage) {
    if !sysbench::is_there() {
        return;
    }
    for set in [&[][..], &["auto-inc=off"], &["secondary=on"], &["create-secondary=off"]] {
        let mut options = OltpOptions {
            table_size: 10,
            ..OltpOptions::default()
        };
        for option in set {
            let (name, value) = option.split_once('=').expect("an option");
            options.set(name, value).expect("an option");
        }
        prepare(stage, &options, OltpWorkloadKind::ReadWrite);
        let arguments: Vec<String> = set
            .iter()
            .map(|option| format!("--{}", option.replace('-', "_")))
            .collect();
        let arguments = [&["--tables=1".to_owned(), "--table-size=10".to_owned()], &arguments[..]].concat();
        sysbench::sysbench(stage, "other", "oltp_read_write", &arguments, "prepare");
        assert_eq!(definition(stage, schema::SCHEMA), definition(stage, "other"), "{set:?}");
        execute(&mut client(stage), "DROP TABLE other.sbtest1");
    }
}

#[test]
fn tables_are_sysbenchs_on_the_distribution_server() {
    on_the_distribution_server(tables_are_sysbenchs);
}

#[test]
fn tables_are_sysbenchs_on_mysql_5_6() {
    on_mysql_5_6(tables_are_sysbenchs);
}

#[test]
fn inserts_without_auto_increment_bring_ids_that_no_connection_used() {
    on_the_distribution_server(|stage| {
        let options = OltpOptions {
            auto_inc: false,
            tables: 2,
            ..OltpOptions::default()
        };
        prepare(stage, &options, OltpWorkloadKind::Insert);
        let mut client = client(stage);
        let rows =
            "SELECT (SELECT COUNT(*) FROM scaleprof_load.sbtest1) + (SELECT COUNT(*) FROM scaleprof_load.sbtest2)";
        assert_eq!(number(&mut client, rows), 0, "sysbench leaves them empty too");
        let load = LoadPlan {
            connections: 8,
            ..plan(stage, oltp(OltpWorkloadKind::Insert, &options))
        };
        let ran = run(&load);
        assert_eq!(number(&mut client, rows), ran.transactions());
    });
}
