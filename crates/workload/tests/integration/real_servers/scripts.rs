//! Scripts: every statement runs, is timed by itself, and its results are read whole.

use super::stage::*;
use scaleprof_workload::*;

/// How often each statement was timed.
fn timed(ran: &Ran) -> Vec<u64> {
    let statements = ran.records.first().map_or(0, |r| r.statements.len());
    (0..statements).map(|i| ran.sum(|r| r.statements[i].len())).collect()
}

const THREE_RESULTS: &str = "DELIMITER //
    CREATE PROCEDURE other.three() BEGIN SELECT 1; SELECT 2, 'b' UNION SELECT 3, 'c'; SELECT 4 WHERE FALSE; END//
    DELIMITER ;";

#[test]
fn a_script_that_runs_once_runs_once_on_every_connection() {
    on_the_distribution_server(|stage| {
        execute(
            &mut client(stage),
            Script::split(THREE_RESULTS).expect("one statement")[0],
        );
        execute(&mut client(stage), "CREATE TABLE other.seen (n INT)");
        for transport in transports() {
            execute(&mut client(stage), "TRUNCATE TABLE other.seen");
            // The first is over within a second, the second goes over the end of one, at another time on each thread.
            for pause in ["0", "1 + 0.01 * (CONNECTION_ID() % 4)"] {
                let text =
                    format!("INSERT INTO seen VALUES (1); CALL three(); DO SLEEP({pause}); SELECT 1 UNION SELECT 2");
                let load = LoadPlan {
                    connections: 10,
                    threads: 2,
                    seconds: 60,
                    transport,
                    ..plan(stage, script(&text, Repetition::Once))
                };
                let ran = run(&load);
                assert_eq!(ran.outcome().late_transactions, 0, "{transport}");
                assert_eq!(ran.sum(|r| r.transactions), 10, "{transport}");
                assert_eq!(ran.sum(|r| r.queries), 40);
                assert_eq!(ran.sum(|r| r.reads), 20, "the CALL and the SELECT");
                assert_eq!(ran.sum(|r| r.writes), 10);
                assert_eq!(timed(&ran), [10; 4]);
                assert_eq!(ran.sum(|r| r.service.len()), 10);
                assert!(ran.outcome().ran_ns < 50_000_000_000, "it waited for the time to be up");
            }
            assert_eq!(number(&mut client(stage), "SELECT COUNT(*) FROM other.seen"), 20);
        }
    });
}

#[test]
fn a_script_in_a_loop_has_every_statement_timed_as_often_as_it_ran() {
    on_the_distribution_server(|stage| {
        execute(
            &mut client(stage),
            Script::split(THREE_RESULTS).expect("one statement")[0],
        );
        for transport in transports() {
            let program = script("DO 1; CALL three(); SELECT 'x' UNION SELECT 'y'", Repetition::Loop);
            let load = LoadPlan {
                connections: 4,
                seconds: 2,
                threads: 2,
                transport,
                ..plan(stage, program)
            };
            let ran = run(&load);
            let timed = timed(&ran);
            assert_eq!(timed.iter().sum::<u64>(), ran.sum(|r| r.queries));
            assert!(timed[0] >= timed[1] && timed[1] >= timed[2], "{timed:?}");
            // Those under way at the end of the last second are in it with their first statements.
            let transactions = ran.sum(|r| r.transactions);
            assert_eq!(timed[2], transactions);
            assert!(
                transactions > 0 && timed[0] <= transactions + 4,
                "{timed:?}, {transactions}"
            );
            assert_eq!(ran.sum(|r| r.service.len()), transactions);
        }
    });
}

#[test]
fn large_results_and_long_rows_are_read_to_their_end() {
    on_the_distribution_server(|stage| {
        let mut control = client(stage);
        execute(&mut control, "SET GLOBAL max_allowed_packet = 67108864");
        execute(&mut control, "CREATE TABLE other.marks (n INT)");
        execute(&mut control, "CREATE TABLE other.d (n INT)");
        execute(
            &mut control,
            "INSERT INTO other.d VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)",
        );
        // 16 MiB less one byte is where a payload is continued in the next packet: rows on both sides of it.
        let text = "SELECT a.n, REPEAT('x', 40 * b.n + c.n) FROM d a, d b, d c, d d, d e; INSERT INTO marks VALUES (1);
            SELECT REPEAT('y', 17000000); INSERT INTO marks VALUES (2);
            SELECT REPEAT('y', 16777211); SELECT REPEAT('y', 16777210); SELECT REPEAT('y', 33554426);
            INSERT INTO marks VALUES (3)";
        for transport in transports() {
            execute(&mut control, "TRUNCATE TABLE other.marks");
            let load = LoadPlan {
                connections: 3,
                seconds: 60,
                transport,
                ..plan(stage, script(text, Repetition::Once))
            };
            let ran = run(&load);
            assert_eq!(ran.transactions(), 3, "{transport}");
            assert_eq!((ran.sum(|r| r.reads), ran.sum(|r| r.writes)), (15, 9), "{transport}");
            assert_eq!(number(&mut control, "SELECT COUNT(*) FROM other.marks"), 9);
        }
        execute(&mut control, "SET GLOBAL max_allowed_packet = DEFAULT");
    });
}

#[test]
fn statements_longer_than_a_packet_arrive_whole() {
    on_the_distribution_server(|stage| {
        let mut control = client(stage);
        execute(&mut control, "SET GLOBAL max_allowed_packet = 67108864");
        execute(&mut control, "CREATE TABLE other.lengths (n INT)");
        let long = "z".repeat(17_000_000);
        let text = format!("INSERT INTO lengths SELECT LENGTH('{long}'); INSERT INTO lengths SELECT LENGTH('{long}')");
        for transport in transports() {
            let load = LoadPlan {
                connections: 2,
                seconds: 60,
                transport,
                ..plan(stage, script(&text, Repetition::Once))
            };
            assert_eq!(run(&load).transactions(), 2, "{transport}");
            assert_eq!(
                number(&mut control, "SELECT COUNT(*) FROM other.lengths WHERE n = 17000000"),
                4
            );
            execute(&mut control, "TRUNCATE TABLE other.lengths");
        }
        execute(&mut control, "SET GLOBAL max_allowed_packet = DEFAULT");
    });
}

#[test]
fn a_request_for_a_local_file_is_refused() {
    on_the_distribution_server(|stage| {
        execute(&mut client(stage), "CREATE TABLE other.t (a INT)");
        let text = "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t";
        let ran = run(&plan(stage, script(text, Repetition::Once)));
        let error = ran.result.expect_err("refused").to_string();
        assert!(error.contains("a local file"), "{error}");
        assert_eq!(number(&mut client(stage), "SELECT COUNT(*) FROM other.t"), 0);
    });
}
