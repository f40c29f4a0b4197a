//! The load on a server that means harm: it ends when it is to, and keeps nothing.

use crate::real_servers::stage::{oltp, plan_for, transports};
use scaleprof_wire::Endpoint;
use scaleprof_workload::tpcc::{Tpcc, TpccOptions};
use scaleprof_workload::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testing::hostile_server::{Malice, start};

struct Nobody;

impl LoadObserver for Nobody {
    fn connected(&mut self, _: u32, _: u32) {}
    fn begins(&mut self) {}
    fn second_ended(&mut self, _: u32) {}
    fn record(&mut self, _: SecondRecord) {}
}

fn on(malice: Malice, program: Program) -> LoadPlan {
    let host = "127.0.0.1".to_owned();
    let port = start(malice).port;
    LoadPlan {
        seconds: 60,
        ..plan_for(Endpoint::Tcp { host, port }, program)
    }
}

fn point_select() -> Program {
    oltp(OltpWorkloadKind::PointSelect, &OltpOptions::default())
}

#[test]
fn a_reply_without_end_does_not_keep_the_load_from_its_end() {
    for transport in transports() {
        let plan = LoadPlan {
            transport,
            ..on(Malice::EndlessRowsForTheLoad, point_select())
        };
        let stop = Arc::new(AtomicBool::new(false));
        let soon = stop.clone();
        let user = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            soon.store(true, Ordering::Relaxed);
        });
        let ended = drive(&plan, &stop, &mut Nobody);
        user.join().expect("no panic");
        assert!(matches!(ended, Err(LoadError::Stopped)), "{transport}: {ended:?}");
    }
}

#[test]
fn more_than_was_asked_for_ends_the_load() {
    let nobody = &mut Nobody;
    for transport in transports() {
        let plan = LoadPlan {
            transport,
            ..on(Malice::HugeHeadForTheLoad, point_select())
        };
        let ended = drive(&plan, &Arc::default(), nobody);
        assert!(matches!(ended, Err(LoadError::Protocol(_))), "{transport}: {ended:?}");
        let tpcc = Program::Tpcc(Tpcc::new(TpccOptions::default()).expect("options"));
        let plan = LoadPlan {
            transport,
            ..on(Malice::EndlessRowsForTheLoad, tpcc)
        };
        let ended = drive(&plan, &Arc::default(), nobody);
        assert!(matches!(ended, Err(LoadError::Unexpected(_))), "{transport}: {ended:?}");
    }
}
