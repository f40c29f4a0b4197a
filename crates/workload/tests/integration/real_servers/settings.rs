//! Servers with settings that some of their users have: the load runs, or one error names the setting and the way out.

use super::stage::*;
use scaleprof_wire::Credentials;
use scaleprof_workload::*;

fn options() -> OltpOptions {
    OltpOptions {
        tables: 1,
        table_size: 500,
        ..OltpOptions::default()
    }
}

/// Does something with a setting on, a literal of SQL, which is as before afterwards.
fn with_setting(stage: &Stage, name: &str, value: &str, work: impl FnOnce()) {
    let mut control = client(stage);
    let read = |control: &mut scaleprof_wire::Client| control.query_value(&format!("SELECT @@GLOBAL.{name}"));
    let before = read(&mut control).expect("an answer").expect("a value");
    execute(&mut control, &format!("SET GLOBAL {name} = {value}"));
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let number = before.parse::<i64>().is_ok();
    let quoted = if number { before } else { format!("'{before}'") };
    execute(&mut control, &format!("SET GLOBAL {name} = {quoted}"));
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

fn outcome(stage: &Stage, kind: OltpWorkloadKind) -> Result<u64, LoadError> {
    let ran = run(&plan(stage, oltp(kind, &options())));
    let transactions = ran.records.iter().map(|second| second.transactions).sum();
    ran.result.map(|_| transactions)
}

#[test]
fn a_load_runs_in_the_sql_mode_of_oracle_and_with_small_packets() {
    on_the_distribution_server(|stage| {
        for (name, value) in [("sql_mode", "'ORACLE'"), ("max_allowed_packet", "16384")] {
            with_setting(stage, name, value, || {
                prepare(stage, &options(), OltpWorkloadKind::ReadWrite);
                let done =
                    outcome(stage, OltpWorkloadKind::ReadWrite).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert!(done > 0, "{name}");
            });
        }
    });
}

#[test]
fn where_sessions_only_read_tables_are_filled_and_the_error_of_a_load_that_writes_names_the_setting() {
    on_the_distribution_server(|stage| {
        with_setting(stage, "tx_read_only", "1", || {
            let mut own = client(stage);
            execute(&mut own, "SET SESSION TRANSACTION READ WRITE");
            schema::create(&mut own, Some(&options()), "test").expect("tables");
            let plan = schema::FillPlan {
                endpoint: stage.endpoint().clone(),
                credentials: stage.credentials(),
                options: options(),
                kind: OltpWorkloadKind::ReadWrite,
                seed: 1,
                threads: 2,
                skip_binary_log: true,
            };
            schema::fill(&plan, &Default::default(), &mut |_| {}).expect("rows");
            assert!(outcome(stage, OltpWorkloadKind::ReadOnly).expect("it only reads") > 0);
            let said = outcome(stage, OltpWorkloadKind::ReadWrite)
                .expect_err("it writes")
                .to_string();
            assert!(
                said.contains("1792") && said.contains("tx_read_only") && said.contains("oltp_read_only"),
                "{said}"
            );
        });
    });
}

#[test]
fn on_a_server_that_is_read_only_statistics_stay_and_tables_are_refused_with_the_setting() {
    on_the_distribution_server(|stage| {
        prepare(stage, &options(), OltpWorkloadKind::ReadWrite);
        let mut control = client(stage);
        execute(&mut control, "CREATE USER IF NOT EXISTS plain@localhost");
        execute(&mut control, "GRANT ALL ON scaleprof_load.* TO plain@localhost");
        with_setting(stage, "read_only", "1", || {
            let who = Credentials::user("plain");
            let mut plain = scaleprof_wire::Client::connect(stage.endpoint(), &who).expect("a connection");
            let warmed = schema::warm(&mut plain, &options(), 1, schema::Statistics::Anew).expect("read");
            assert_eq!(warmed, schema::Statistics::AsTheyAre);
            let load = LoadPlan {
                credentials: who.in_database(schema::SCHEMA),
                ..plan(stage, oltp(OltpWorkloadKind::ReadOnly, &options()))
            };
            assert!(run(&load).transactions() > 0);
            let refused = schema::create(&mut plain, Some(&options()), "test").expect_err("read-only");
            let said = refused.to_string();
            assert!(said.contains("1290") && said.contains("read_only"), "{said}");
        });
        execute(&mut control, "DROP USER plain@localhost");
    });
}
