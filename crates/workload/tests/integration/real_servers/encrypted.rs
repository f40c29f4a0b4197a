//! Encrypted loads: the same packets, in records of another length, over epoll.

use super::stage::*;
use scaleprof_wire::{Tls, TlsMode, TlsOptions};
use scaleprof_workload::*;
use testing::servers::fetched;

fn encrypted(plan: LoadPlan) -> LoadPlan {
    let tls = Tls::new(TlsOptions {
        mode: TlsMode::Required,
        ..TlsOptions::default()
    });
    let mut plan = plan;
    plan.credentials.tls = tls.expect("nothing to read");
    plan
}

#[test]
fn long_statements_and_large_results_arrive_whole() {
    let Some(server) = fetched("mysql-9.7") else { return };
    let stage = start(&server, 64);
    let mut control = client(&stage);
    for sql in [
        "SET GLOBAL max_allowed_packet = 67108864",
        "CREATE DATABASE other",
        "CREATE TABLE other.lengths (n INT)",
    ] {
        execute(&mut control, sql);
    }
    let long = "z".repeat(17_000_000);
    let text = format!(
        "INSERT INTO lengths SELECT LENGTH('{long}'); SELECT REPEAT('y', 17000000); SELECT REPEAT('y', 16777211);
         INSERT INTO lengths SELECT 17000000"
    );
    let load = encrypted(LoadPlan {
        connections: 2,
        seconds: 60,
        transport: Transport::IoUring,
        ..plan(&stage, script(&text, Repetition::Once))
    });
    let ran = run(&load);
    assert_eq!(ran.transactions(), 2);
    assert_eq!(ran.outcome().transport, Transport::Epoll);
    let whole = "SELECT COUNT(*) FROM other.lengths WHERE n = 17000000";
    assert_eq!(number(&mut control, whole), 4);
}

#[test]
fn many_encrypted_connections_run_on_one_thread() {
    let Some(server) = fetched("mysql-9.7") else { return };
    let stage = start(&server, 64);
    let options = OltpOptions {
        table_size: 1000,
        ..OltpOptions::default()
    };
    prepare(&stage, &options, OltpWorkloadKind::ReadWrite);
    let load = encrypted(LoadPlan {
        connections: 48,
        idle_connections: 8,
        seconds: 3,
        transport: Transport::Epoll,
        ..plan(&stage, oltp(OltpWorkloadKind::ReadWrite, &options))
    });
    let ran = run(&load);
    assert!(
        ran.transactions() > 48 && ran.outcome().seconds == 3,
        "{:?}",
        ran.outcome()
    );
    assert!(
        ran.sum(|r| r.queries) >= 18 * ran.sum(|r| r.transactions),
        "18 statements a transaction"
    );
    // In the first second the thread begins.
    ran.assert_all_at_work(1, 48, "encrypted");
}
