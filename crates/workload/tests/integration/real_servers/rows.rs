//! The rows that a workload finds.

use super::stage::*;
use scaleprof_workload::schema::{self, FillPlan, SCHEMA, SchemaError, SchemaState};
use scaleprof_workload::*;
use std::sync::atomic::AtomicBool;
use testing::servers::each_server;

/// More than one INSERT of 512 KiB and one read of LOAD DATA hold.
const ROWS: u32 = 6000;

fn fill(stage: &Stage, options: &OltpOptions, threads: u32) -> u64 {
    schema::create(&mut client(stage), Some(options), "rows of a test").expect("tables");
    assert_eq!(
        schema::state(&mut client(stage)).expect("a state"),
        SchemaState::Unusable
    );
    let plan = FillPlan {
        endpoint: stage.endpoint().clone(),
        credentials: stage.credentials(),
        options: options.clone(),
        kind: OltpWorkloadKind::ReadWrite,
        seed: 3,
        threads,
        skip_binary_log: true,
    };
    schema::fill(&plan, &AtomicBool::new(false), &mut |progress| {
        assert!(progress.rows <= progress.of)
    })
    .expect("rows");
    let state = schema::state(&mut client(stage)).expect("a state");
    assert_eq!(state, SchemaState::Filled("rows of a test".into()));
    // What differs when any value of any row differs.
    number(
        &mut client(stage),
        &format!(
            "SELECT SUM(CRC32(CONCAT_WS('|', id, k, c, pad))) FROM \
             (SELECT * FROM {SCHEMA}.sbtest1 UNION ALL SELECT * FROM {SCHEMA}.sbtest2) AS both_tables"
        ),
    )
}

fn check(stage: &Stage) {
    let mut client = client(stage);
    for table in 1..=2 {
        let mut is = |what: &str, expected: u64| {
            let sql = format!("SELECT {what} FROM {SCHEMA}.sbtest{table}");
            assert_eq!(number(&mut client, &sql), expected, "{sql}");
        };
        let rows = u64::from(ROWS);
        is("COUNT(*)", rows);
        is("MIN(id)", 1);
        is("MAX(id)", rows);
        is("COUNT(DISTINCT id)", rows);
        is("MIN(LENGTH(c))", 119);
        is("MAX(LENGTH(c))", 119);
        is("MIN(LENGTH(pad))", 59);
        is("MAX(LENGTH(pad))", 59);
        is("COUNT(DISTINCT c)", rows);
        is("SUM(k BETWEEN 1 AND 6000)", rows);
        is(
            "SUM(c REGEXP '^([0-9]{11}-){9}[0-9]{11}$' AND pad REGEXP '^([0-9]{11}-){4}[0-9]{11}$')",
            rows,
        );
        // Drawn, not counted: two thirds of the values come at all.
        is("COUNT(DISTINCT k) BETWEEN 3500 AND 4100", 1);
        let index = format!(
            "SELECT COUNT(*) FROM information_schema.statistics WHERE table_schema = '{SCHEMA}' \
             AND table_name = 'sbtest{table}' AND index_name = 'k_{table}' AND column_name = 'k'"
        );
        assert_eq!(number(&mut client, &index), 1);
    }
}

fn options() -> OltpOptions {
    OltpOptions {
        tables: 2,
        table_size: ROWS,
        ..OltpOptions::default()
    }
}

fn rows_are_whole_and_the_same_by_either_way(stage: &Stage) {
    let by_load_data = fill(stage, &options(), 3);
    check(stage);
    execute(&mut client(stage), "SET GLOBAL local_infile = OFF");
    let by_insert = fill(stage, &options(), 3);
    check(stage);
    assert_eq!(by_load_data, by_insert, "LOAD DATA and INSERT made different rows");
}

#[test]
fn rows_are_whole_and_the_same_by_load_data_and_by_insert() {
    on_the_distribution_server(rows_are_whole_and_the_same_by_either_way);
    on_mysql_5_6(rows_are_whole_and_the_same_by_either_way);
    // It refuses LOCAL by an error of its own.
    if let Some(server) = each_server().into_iter().find(|server| server.name == "mysql-9.7") {
        rows_are_whole_and_the_same_by_either_way(&start(&server, 16));
    }
}

#[test]
fn a_fill_that_is_kept_waiting_for_a_lock_begins_again() {
    on_the_distribution_server(|stage| {
        // Two statements that fill one empty table may deadlock on MariaDB, but seldom; a timeout takes the same way.
        execute(&mut client(stage), "SET GLOBAL innodb_lock_wait_timeout = 1");
        for local in ["ON", "OFF"] {
            execute(&mut client(stage), &format!("SET GLOBAL local_infile = {local}"));
            let options = OltpOptions {
                table_size: 200,
                ..OltpOptions::default()
            };
            schema::create(&mut client(stage), Some(&options), "x").expect("tables");
            let mut blocker = client(stage);
            execute(&mut blocker, "BEGIN");
            execute(&mut blocker, &format!("INSERT INTO {SCHEMA}.sbtest1 (id) VALUES (150)"));
            let plan = FillPlan {
                endpoint: stage.endpoint().clone(),
                credentials: stage.credentials(),
                options,
                kind: OltpWorkloadKind::ReadWrite,
                seed: 3,
                threads: 4,
                skip_binary_log: true,
            };
            let mut blocker = Some(blocker);
            let began = std::time::Instant::now();
            schema::fill(&plan, &AtomicBool::new(false), &mut |_| {
                if began.elapsed().as_millis() > 2500
                    && let Some(mut blocker) = blocker.take()
                {
                    execute(&mut blocker, "ROLLBACK");
                }
            })
            .unwrap_or_else(|error| panic!("local_infile {local}: {error}"));
            assert!(blocker.is_none(), "nothing kept it waiting");
            assert_eq!(
                number(&mut client(stage), &format!("SELECT COUNT(*) FROM {SCHEMA}.sbtest1")),
                200
            );
        }
        execute(&mut client(stage), "SET GLOBAL innodb_lock_wait_timeout = DEFAULT");
    });
}

#[test]
fn rows_that_a_load_used_up_are_not_taken_for_whole() {
    on_the_distribution_server(|stage| {
        fill(stage, &options(), 2);
        let mut client = client(stage);
        schema::mark_used_up(&mut client).expect("noted");
        assert_eq!(schema::state(&mut client).expect("a state"), SchemaState::Unusable);
    });
}

#[test]
fn a_stopped_fill_leaves_a_schema_that_is_not_marked_as_whole() {
    on_the_distribution_server(|stage| {
        schema::create(&mut client(stage), Some(&options()), "x").expect("tables");
        let plan = FillPlan {
            endpoint: stage.endpoint().clone(),
            credentials: stage.credentials(),
            options: options(),
            kind: OltpWorkloadKind::ReadWrite,
            seed: 3,
            threads: 2,
            skip_binary_log: true,
        };
        let error = schema::fill(&plan, &AtomicBool::new(true), &mut |_| {}).expect_err("stopped");
        assert!(matches!(error, SchemaError::Stopped), "{error}");
        let mut client = client(stage);
        assert_eq!(schema::state(&mut client).expect("a state"), SchemaState::Unusable);
        schema::warm(
            &mut client,
            &OltpOptions {
                create_secondary: false,
                ..options()
            },
            1,
            schema::Statistics::Anew,
        )
        .expect("warm");
        schema::drop_ours(&mut client).expect("dropped");
        assert_eq!(schema::state(&mut client).expect("a state"), SchemaState::Absent);
    });
}

#[test]
fn a_schema_of_somebody_else_is_neither_written_to_nor_dropped() {
    on_the_distribution_server(|stage| {
        let mut client = client(stage);
        execute(&mut client, &format!("CREATE DATABASE {SCHEMA}"));
        execute(&mut client, &format!("CREATE TABLE {SCHEMA}.theirs (a INT)"));
        for result in [
            schema::create(&mut client, Some(&options()), "x"),
            schema::drop_ours(&mut client),
            schema::state(&mut client).map(drop),
        ] {
            assert!(matches!(result, Err(SchemaError::NotOurs)), "{result:?}");
        }
        let tables = format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = '{SCHEMA}'");
        assert_eq!(number(&mut client, &tables), 1);
    });
}

#[test]
fn an_account_without_rights_is_told_which_it_needs() {
    on_the_distribution_server(|stage| {
        execute(&mut client(stage), "CREATE USER poor@localhost IDENTIFIED BY ''");
        let poor = scaleprof_wire::Credentials::user("poor");
        let mut poor = scaleprof_wire::Client::connect(stage.endpoint(), &poor).expect("a connection");
        let error = schema::create(&mut poor, Some(&options()), "x").expect_err("no rights");
        assert!(error.to_string().contains("GRANT ALL ON scaleprof_load.*"), "{error}");
    });
}
