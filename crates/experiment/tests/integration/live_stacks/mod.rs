//! The probe on real servers under load: whole stacks, exact times, nothing lost, and the same frames as framehop.
//!
//! With CI=true the distribution's server must be there, and BPF programs must be loadable; elsewhere what is missing is skipped and
//! says so. Other servers: `./test --deep truth`. Ratios only: nothing depends on how fast the machine is.

#[cfg(target_arch = "x86_64")]
mod agreement;
mod difference;
mod rests;
mod stage;
mod watched;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use self::stage::Stage;
use self::watched::Watched;
use testing::servers::{Server, distribution, fetched};

#[test]
fn the_distribution_server() {
    stacks_of(distribution);
}

#[test]
#[ignore = "./test --deep truth"]
fn mysql_5_6() {
    stacks_of(|| fetched("mysql-5.6.14"));
}

#[test]
#[ignore = "./test --deep truth"]
fn mysql_9_7() {
    stacks_of(|| fetched("mysql-9.7"));
}

#[test]
#[ignore = "./test --deep truth, where that server was fetched"]
fn mariadb_11_8() {
    stacks_of(|| fetched("mariadb-11.8"));
}

/// One load after another: the next server may start meanwhile.
static TURN: Mutex<()> = Mutex::new(());

fn stacks_of(server: impl FnOnce() -> Option<Server>) {
    let Some(server) = server() else { return };
    let mut stage = Stage::start(&server);
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let load = stage.load();
    let watched = Watched::start(stage.pid());
    let watched = watched.map(|watched| watched.for_some_time(Duration::from_secs(2)));
    // Where BPF programs cannot be loaded that was said aloud.
    let sides = watched
        .is_some()
        .then(|| rests::Sides::watch(stage.pid(), Duration::from_secs(10)));
    #[cfg(target_arch = "x86_64")]
    let of_samples = agreement::compare_samples(stage.pid(), Duration::from_secs(3));
    #[cfg(target_arch = "x86_64")]
    let agreement = agreement::compare(stage.pid(), 200, 100);
    let watched = watched.map(Watched::end);
    load.end();
    drop(turn);
    assert!(stage.is_alive(), "{}: the server survives being looked at", server.name);

    if let Some(seen) = &watched {
        println!("{}: {seen}", server.name);
    }
    #[cfg(target_arch = "x86_64")]
    println!("{}: {of_samples}\n{}: {agreement}", server.name, server.name);

    if let Some(seen) = watched {
        seen.must_be_good();
    }
    if let Some(sides) = sides {
        sides.must_agree();
    }
    #[cfg(target_arch = "x86_64")]
    for agreement in [of_samples, agreement] {
        agreement.must_be_good();
    }
}
