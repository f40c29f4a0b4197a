//! TPC-C from the command line.

use crate::stage::{bundle, place, run, succeed};
use scaleprof_bundle::Summary;
use scaleprof_vocabulary::RunState;
use testing::servers::distribution;

#[test]
fn a_ladder_of_tpcc_ends_with_consistent_tables_and_tells_tpmc_and_each_kind_of_transaction() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("run");
    let arguments = ["--workload", "tpcc", "--connections", "2,8", "--seconds", "4", "--json"];
    let (out, _) = succeed(run(Some(&server.installation), &folder).args(arguments));
    let summary: Summary = serde_json::from_str(&out).expect("JSON");
    let kept = bundle(&folder);
    // A run whose tables break a condition fails.
    assert_eq!(kept.manifest.state, RunState::Complete);
    assert_eq!(kept.manifest.workload.name, scaleprof_vocabulary::WorkloadName::Tpcc);
    assert!(
        kept.manifest.command.contains(&"tpcc".to_owned()),
        "{:?}",
        kept.manifest.command
    );
    assert_eq!(summary.rungs.len(), 2);
    for rung in &summary.rungs {
        let kinds: Vec<&str> = rung.transactions.iter().map(|one| one.transaction.name()).collect();
        let five = ["new_order", "payment", "order_status", "delivery", "stock_level"];
        assert_eq!(kinds[..5], five);
        let all: u64 = rung.transactions.iter().map(|one| one.count).sum();
        let new_orders: u64 = rung
            .transactions
            .iter()
            .filter(|one| one.transaction.name().starts_with("new_order"))
            .map(|one| one.count)
            .sum();
        let figures = rung.tpcc.as_ref().expect("TPC-C's figures");
        let expected = rung.throughput.value * 60.0 * new_orders as f64 / all as f64;
        assert!((figures.tpmc.value / expected - 1.0).abs() < 1e-9);
        assert!((figures.nominal_share - figures.tpmc.value / 12.86).abs() < 1e-6);
        assert!(!figures.nominal_is_limit, "nobody types and reads");
    }
    let page = std::fs::read_to_string(folder.join("report.html")).expect("report.html");
    assert!(page.contains(r#""operation":"transaction","label":"new_order""#));
}
