//! What is tried, and how.

use super::*;
use crate::Company;
use crate::options::{LoadOptions, WorkloadChoice};
use scaleprof_bundle::Estimate;
use scaleprof_server::{ServerSettings, Surroundings};
use scaleprof_vocabulary::{FindingKind, ShareOf};
use scaleprof_workload::{LoopKind, OltpOptions, OltpWorkloadKind, TransportChoice};

fn remedy(setting: &str, value: &str) -> Remedy {
    Remedy {
        setting: setting.to_owned(),
        value: value.to_owned(),
    }
}

fn finding(rung: u32, remedies: &[Remedy]) -> Finding {
    Finding {
        kind: FindingKind::SpinWaiting,
        title: String::new(),
        lost_share: Estimate {
            value: 0.3,
            low: None,
            high: None,
        },
        share_of: ShareOf::CpuTime,
        rungs: [1, rung],
        path: Vec::new(),
        evidence: Vec::new(),
        suggestions: Vec::new(),
        remedies: remedies.to_vec(),
        remedy_results: Vec::new(),
    }
}

fn options() -> RunOptions {
    RunOptions {
        server: ServerChoice::Private {
            path: None,
            settings: Box::new(ServerSettings {
                set: vec!["a=1".to_owned()],
                ..ServerSettings::default()
            }),
            surroundings: Surroundings::default(),
            cpus_server: None,
            cpus_client: None,
            company: Company::Alone,
            cpus_company: None,
            work_folder: None,
            cache_size: Some(u64::MAX),
            shut_down: false,
        },
        load: LoadOptions {
            workload: WorkloadChoice::Oltp(OltpWorkloadKind::PointSelect),
            oltp: OltpOptions::default(),
            idle_connections: 0,
            loop_kind: LoopKind::Closed,
            isolation: None,
            seed: 1,
            threads: None,
            transport: TransportChoice::Auto,
            reads_tables_first: true,
        },
        connections: vec![1, 512],
        refine: false,
        repeats: 1,
        order_seed: 7,
        seconds: 30,
        watch: None,
        output: PathBuf::from("/runs/one"),
        command: Vec::new(),
    }
}

#[test]
fn a_remedy_that_findings_share_is_tried_once_at_the_gravest_ones_rung() {
    let (a, b, c) = (remedy("a", "5"), remedy("b", "2"), remedy("c", "1"));
    let findings = [
        finding(256, &[a.clone(), b.clone()]),
        finding(256, std::slice::from_ref(&b)),
        // What is lost at another rung would need a ladder of its own.
        finding(512, &[c]),
    ];
    assert_eq!(remedies(&findings), (vec![(a, 256), (b, 256)], 1));
    assert!(remedies(&[finding(256, &[])]).0.is_empty());
    let many: Vec<Remedy> = (0..9).map(|value| remedy("a", &value.to_string())).collect();
    let (tried, others) = remedies(&[finding(256, &many)]);
    assert_eq!((tried.len(), others), (4, many.len() - 4));
}

#[test]
fn each_remedy_is_the_runs_server_with_one_setting_more() {
    let plan = plan(&options(), &[remedy("a", "5"), remedy("b", "2")], 512);
    let set: Vec<Vec<String>> = plan
        .variants
        .iter()
        .map(|variant| match &variant.server {
            ServerChoice::Private { settings, .. } => settings.set.clone(),
            ServerChoice::Attached(_) => Vec::new(),
        })
        .collect();
    assert_eq!(set, [vec!["a=1"], vec!["a=1", "a=5"], vec!["a=1", "b=2"]]);
    assert_eq!((plan.design.connections, plan.design.seconds), (vec![512], 5));
    // Six pairs are the fewest that count.
    assert_eq!(plan.design.most_pairs, 6);
    assert_eq!(folder_beside(Path::new("/runs/one")), Path::new("/runs/one-tried"));
}
