//! Starts real servers with replicas, in every way to replicate that they know.

use testing::servers;

use scaleprof_server::*;
use scaleprof_wire::Client;
use servers::{Server, distribution, fetched, runs, settings, work_folder};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ReplicationMethod::{Asynchronous, Galera, Group, SemiSynchronous};

fn builder(server: &Server, set: &[&str], work: &WorkFolder) -> SandboxBuilder {
    SandboxBuilder::new(server.installation.clone(), settings(set), work.clone())
}

/// A data folder with one table.
fn data(server: &Server, builder: &SandboxBuilder, work: &WorkFolder) -> PreparedData {
    let cache = Cache::open(work).expect("a cache");
    let settings = Settings::new(ServerSettings::default()).expect("settings");
    let key = DataKey::new(&server.installation, &settings, "replication test").expect("a key");
    let sandbox = builder.clone().start_fresh().expect("a server");
    let mut client = sandbox.connect().expect("a connection");
    for sql in [
        "CREATE DATABASE bench",
        "CREATE TABLE bench.t (a INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO bench.t VALUES (0)",
    ] {
        client.execute(sql).expect(sql);
    }
    client.quit();
    sandbox.into_prepared(&cache, &key).expect("kept")
}

fn rows(client: &mut Client) -> String {
    let count = client.query_value("SELECT COUNT(*) FROM bench.t").expect("an answer");
    count.expect("a count")
}

/// Waits until a replica is as far as the source; how far that is.
fn caught_up(positions: [Position; 2], source: &mut Client, replica: &mut Client) -> u64 {
    let wanted = positions[0].read(source).expect("the source's position");
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let found = positions[1].read(replica).expect("the replica's position");
        if found >= wanted {
            assert_eq!(found, wanted, "it is ahead of what it follows");
            return wanted;
        }
        assert!(Instant::now() < deadline, "it stays at {found} of {wanted}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn follows(server: &Server, method: ReplicationMethod, replicas: u32) {
    let what = format!("{}, {method}, {replicas}", server.name);
    let work = work_folder();
    let builder = builder(server, &[], &work);
    let data = data(server, &builder, &work);
    let replication = Replication::new(method, replicas).expect("replicas");
    let began = Instant::now();
    let (source, mut all) = builder
        .start_replicated(&data, replication, None, &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    println!("{what}: started in {:.1} s", began.elapsed().as_secs_f64());
    all.check(&source).expect("all follow");
    let mut client = source.connect().expect("a connection");
    let positions = all.positions();
    let before = positions[0].read(&mut client).expect("a position");
    for row in 1..=50 {
        client
            .execute(&format!("INSERT INTO bench.t VALUES ({row})"))
            .expect("inserted");
    }
    let after = positions[0].read(&mut client).expect("a position");
    assert_eq!(after - before, 50, "{what}: a position counts transactions");
    for replica in all.servers() {
        let mut replica = replica.connect().expect("a connection");
        assert_eq!(caught_up(positions, &mut client, &mut replica), after, "{what}");
        assert_eq!(rows(&mut replica), "51", "{what}");
    }
    all.check(&source).expect("all follow still");
    // A password would be found in what others can see.
    let log = std::fs::read_to_string(source.error_log()).unwrap_or_default();
    assert!(!log.contains("Aa1-"), "{what}: a password stands in the log");

    drop(client);
    all.kill();
    let error = all.check(&source).expect_err("they are dead").to_string();
    assert!(error.contains("replica 1 does not follow"), "{what}: {error}");
    drop((all, source));
    assert!(runs(&work).is_empty(), "{what}: folders are left");
}

#[test]
fn replicas_of_mariadb_follow_in_every_way_that_it_knows() {
    let Some(server) = distribution() else { return };
    for (method, replicas) in [(Asynchronous, 2), (SemiSynchronous, 1), (Galera, 2)] {
        follows(&server, method, replicas);
    }
}

#[test]
fn replicas_of_the_newest_mysql_follow_in_every_way_that_it_knows() {
    let Some(server) = fetched("mysql-9.7") else { return };
    for (method, replicas) in [(Asynchronous, 1), (SemiSynchronous, 2), (Group, 2)] {
        follows(&server, method, replicas);
    }
}

#[test]
fn replicas_of_an_old_mysql_follow() {
    let Some(server) = fetched("mysql-5.6.14") else { return };
    for (method, replicas) in [(Asynchronous, 1), (SemiSynchronous, 1)] {
        follows(&server, method, replicas);
    }
}

#[test]
fn what_a_server_cannot_do_is_said_before_anything_starts() {
    let Some(server) = distribution() else { return };
    let work = work_folder();
    let builder = builder(&server, &[], &work);
    let data = data(&server, &builder, &work);
    let group = Replication::new(Group, 1).expect("replicas");
    let error = builder
        .start_replicated(&data, group, None, &AtomicBool::new(false))
        .expect_err("MariaDB has none");
    let said = error.to_string();
    assert!(
        said.contains("group replication") && said.contains("MySQL 8.0.23"),
        "{said}"
    );
    assert!(runs(&work).is_empty());
}
