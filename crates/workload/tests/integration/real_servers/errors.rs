//! What the server refuses: deadlocks and lock wait timeouts are tried again, anything else ends the load.

use super::stage::*;
use scaleprof_wire::Client;
use scaleprof_workload::*;
use std::sync::Arc;
use std::time::Duration;

const DEADLOCK: u16 = 1213;
const LOCK_WAIT_TIMEOUT: u16 = 1205;

fn two_counters(stage: &Stage) -> Client {
    let mut client = client(stage);
    execute(
        &mut client,
        "CREATE TABLE other.t (id INT PRIMARY KEY, n INT NOT NULL) ENGINE = InnoDB",
    );
    execute(&mut client, "INSERT INTO other.t VALUES (1, 0), (2, 0)");
    client
}

fn counter(client: &mut Client, id: u32) -> u64 {
    number(client, &format!("SELECT n FROM other.t WHERE id = {id}"))
}

/// Errors of all seconds, by number and name of the statement.
fn errors(ran: &Ran, program: &Program) -> Vec<(u16, String, u64)> {
    let mut all = Vec::new();
    for record in &ran.records {
        for (&(number, statement), &count) in &record.errors {
            all.push((number, program.statement_names()[usize::from(statement)].clone(), count));
        }
    }
    all
}

#[test]
fn deadlocks_are_counted_and_their_transactions_begun_again_from_nothing() {
    on_the_distribution_server(|stage| {
        let mut control = two_counters(stage);
        for transport in transports() {
            execute(&mut control, "UPDATE other.t SET n = 0");
            // Connections with odd and even numbers take the two rows in opposite order.
            let program = script(
                "BEGIN; UPDATE t SET n = n + 1 WHERE id = 1 + CONNECTION_ID() % 2; DO SLEEP(0.01);
                 UPDATE t SET n = n + 1 WHERE id = 2 - CONNECTION_ID() % 2; COMMIT",
                Repetition::Loop,
            );
            let load = LoadPlan {
                connections: 8,
                threads: 2,
                seconds: 2,
                transport,
                ..plan(stage, program)
            };
            let ran = run(&load);
            let errors = errors(&ran, &load.program);
            assert!(!errors.is_empty(), "no deadlock came");
            for (number, statement, _) in &errors {
                assert_eq!(*number, DEADLOCK);
                assert!(
                    ["statement 2 (UPDATE)", "statement 4 (UPDATE)"].contains(&&**statement),
                    "{statement}"
                );
            }
            let count: u64 = errors.iter().map(|(_, _, count)| count).sum();
            let retries = ran.sum(|r| r.retries);
            // Those that came when time was up were given up.
            assert!(
                retries <= count && count <= retries + 8,
                "{count} errors, {retries} retries"
            );
            let counters = (counter(&mut control, 1), counter(&mut control, 2));
            assert_eq!(counters, (ran.transactions(), ran.transactions()), "{transport}");
        }
    });
}

#[test]
fn writes_to_few_rows_leave_every_row_in_place() {
    on_the_distribution_server(|stage| {
        let options = OltpOptions {
            table_size: 5,
            ..OltpOptions::default()
        };
        prepare(stage, &options, OltpWorkloadKind::WriteOnly);
        let program = oltp(OltpWorkloadKind::WriteOnly, &options);
        let load = LoadPlan {
            connections: 16,
            threads: 2,
            seconds: 2,
            ..plan(stage, program)
        };
        let ran = run(&load);
        assert!(ran.transactions() > 0);
        for (number, statement, _) in errors(&ran, &load.program) {
            assert!(
                [DEADLOCK, LOCK_WAIT_TIMEOUT, 1020].contains(&number),
                "{number} {statement}"
            );
        }
        assert_eq!(
            number(&mut client(stage), "SELECT COUNT(*) FROM scaleprof_load.sbtest1"),
            5
        );
    });
}

/// Holds a row lock from now until the load's second second, then lets it go.
fn behind_a_lock(stage: &Stage, lock: &str, load: &LoadPlan) -> Ran {
    let mut blocker = client(stage);
    execute(&mut blocker, "BEGIN");
    execute(&mut blocker, lock);
    run_with(load, &Arc::default(), &mut |second| {
        if second == 2 {
            execute(&mut blocker, "ROLLBACK");
        }
    })
}

/// A script whose third statement waits too long for a row and is tried again: each of its two updates must have happened once for
/// every transaction.
fn each_update_happens_once(text: &str) {
    on_the_distribution_server(|stage| {
        let mut control = two_counters(stage);
        let load = LoadPlan {
            seconds: 5,
            session_statements: vec!["SET innodb_lock_wait_timeout = 1".into()],
            ..plan(stage, script(text, Repetition::Loop))
        };
        let ran = behind_a_lock(stage, "SELECT * FROM other.t WHERE id = 2 FOR UPDATE", &load);
        let errors = errors(&ran, &load.program);
        assert!(!errors.is_empty(), "no timeout came");
        for (number, statement, _) in errors {
            assert_eq!((number, &*statement), (LOCK_WAIT_TIMEOUT, "statement 3 (UPDATE)"));
        }
        assert!(ran.transactions() > 0, "it never got through");
        let counters = (counter(&mut control, 1), counter(&mut control, 2));
        assert_eq!(counters, (ran.transactions(), ran.transactions()));
    });
}

#[test]
fn a_lock_wait_timeout_leaves_no_half_transaction() {
    each_update_happens_once("BEGIN; UPDATE t SET n = n + 1 WHERE id = 1; UPDATE t SET n = n + 1 WHERE id = 2; COMMIT");
}

#[test]
fn what_a_script_has_committed_is_not_done_again_when_the_rest_is() {
    each_update_happens_once("UPDATE t SET n = n + 1 WHERE id = 1; BEGIN; UPDATE t SET n = n + 1 WHERE id = 2; COMMIT");
}

/// The statements behind the one that failed were never sent: their first EXECUTE must still carry their types.
fn prepared_statements_survive_a_retry_of_the_first_transaction(stage: &Stage) {
    let options = OltpOptions {
        table_size: 1,
        ..OltpOptions::default()
    };
    prepare(stage, &options, OltpWorkloadKind::WriteOnly);
    let load = LoadPlan {
        connections: 2,
        seconds: 5,
        session_statements: vec!["SET innodb_lock_wait_timeout = 1".into()],
        ..plan(stage, oltp(OltpWorkloadKind::WriteOnly, &options))
    };
    let ran = behind_a_lock(
        stage,
        "SELECT * FROM scaleprof_load.sbtest1 WHERE id = 1 FOR UPDATE",
        &load,
    );
    let errors = errors(&ran, &load.program);
    let timed_out =
        |(number, statement, _): &(u16, String, u64)| (*number, &**statement) == (LOCK_WAIT_TIMEOUT, "index_updates");
    assert!(errors.iter().any(timed_out), "{errors:?}");
    assert!(ran.transactions() > 0, "it never got through");
}

#[test]
fn prepared_statements_survive_a_retry_of_a_first_transaction() {
    on_the_distribution_server(prepared_statements_survive_a_retry_of_the_first_transaction);
    on_mysql_5_6(prepared_statements_survive_a_retry_of_the_first_transaction);
}

#[test]
fn any_other_error_ends_the_load_and_names_the_kind_of_statement() {
    on_the_distribution_server(|stage| {
        for transport in transports() {
            let options = OltpOptions {
                table_size: 100,
                ..OltpOptions::default()
            };
            prepare(stage, &options, OltpWorkloadKind::PointSelect);
            let program = oltp(OltpWorkloadKind::PointSelect, &options);
            let load = LoadPlan {
                connections: 8,
                threads: 2,
                seconds: 60,
                transport,
                ..plan(stage, program)
            };
            let mut control = client(stage);
            let ran = run_with(&load, &Arc::default(), &mut |second| {
                if second == 0 {
                    execute(&mut control, "DROP TABLE scaleprof_load.sbtest1");
                }
            });
            let Err(LoadError::Statement { statement, error }) = &ran.result else {
                panic!("{:?}", ran.result)
            };
            assert_eq!((&**statement, error.number), ("point_selects", 1146));
            let text = ran.result.as_ref().map_err(ToString::to_string).expect_err("an error");
            assert!(text.contains("point_selects") && text.contains("1146"), "{text}");
            assert!(ran.records.len() < 30, "it went on");
        }
    });
}

#[test]
fn what_keeps_a_connection_from_opening_is_said_with_what_to_do() {
    on_the_distribution_server(|stage| {
        let options = OltpOptions {
            table_size: 100,
            ..OltpOptions::default()
        };
        let missing = plan(stage, oltp(OltpWorkloadKind::PointSelect, &options));
        let error = run(&missing).result.expect_err("no tables");
        assert!(
            error.to_string().contains("1049") && error.to_string().contains("do not exist"),
            "{error}"
        );

        let many = LoadPlan {
            connections: 500,
            ..plan(stage, script("DO 1", Repetition::Loop))
        };
        let error = run(&many).result.expect_err("too many");
        assert!(matches!(error, LoadError::Open { wanted: 500, .. }), "{error}");
        assert!(error.to_string().contains("raise max_connections"), "{error}");
        // They close their connections when they give up: the server takes new ones again before long.
        let began = std::time::Instant::now();
        while stage.connect().is_err() {
            assert!(began.elapsed() < Duration::from_secs(30), "connections are left");
            std::thread::sleep(Duration::from_millis(50));
        }
    });
}
