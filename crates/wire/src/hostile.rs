//! Tests with servers that mean harm: what they may make us wait and keep.

use crate::auth::log_in;
use crate::packet::PacketStream;
use crate::{Client, Credentials, Endpoint, Error};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use testing::hostile_server::{Malice, start};

const PATIENCE: Duration = Duration::from_millis(500);

fn endpoint(malice: Malice) -> Endpoint {
    Endpoint::Tcp {
        host: "127.0.0.1".to_owned(),
        port: start(malice).port,
    }
}

/// What becomes of a login that may take half a second, or a minute where the server floods.
fn login(malice: Malice, longest: Duration) -> Error {
    let endpoint = endpoint(malice);
    let stream = PacketStream::connect(&endpoint, longest).expect("it listens");
    log_in(stream, &endpoint, &Credentials::user("root")).expect_err("no login")
}

/// What becomes of the first statement.
fn statement(malice: Malice, longest: Duration) -> Error {
    let mut client = Client::connect(&endpoint(malice), &Credentials::user("root")).expect("a login");
    client.set_patience(Some(longest));
    client.query("SHOW GLOBAL STATUS").expect_err("no answer")
}

fn is_late(error: &Error) -> bool {
    matches!(error, Error::Lost { source, .. } if source.kind() == ErrorKind::TimedOut)
}

/// The most memory that this process ever had, bytes.
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("our status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("the line");
    let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib << 10
}

#[test]
fn a_server_that_hangs_or_drips_is_left_when_the_time_is_over() {
    for malice in [Malice::Silence, Malice::Drip] {
        let error = login(malice, PATIENCE);
        assert!(is_late(&error), "{malice:?}: {error}");
    }
    for malice in [Malice::SilentAnswers, Malice::DrippedAnswer] {
        let began = Instant::now();
        let error = statement(malice, PATIENCE);
        assert!(is_late(&error), "{malice:?}: {error}");
        assert!(began.elapsed() >= PATIENCE, "{malice:?}: it was given its time");
    }
}

#[test]
fn a_server_that_never_comes_to_an_end_is_left_and_takes_no_memory() {
    let before = most_memory();
    let floods = [
        (
            login as fn(Malice, Duration) -> Error,
            Malice::EndlessPacket,
            "more than 64 MiB",
        ),
        (login, Malice::EndlessSwitches, "a handshake without end"),
        (statement, Malice::EndlessColumns, "a column count that no result has"),
        (statement, Malice::EndlessRows, "more rows than any answer to this has"),
        (statement, Malice::EndlessResults, "more than 64 MiB"),
    ];
    for (ask, malice, reason) in floods {
        let error = ask(malice, testing::LIMIT).to_string();
        assert!(error.contains(reason), "{malice:?}: {error}");
    }
    let grown = most_memory() - before;
    assert!(grown < 300 << 20, "{} MiB more", grown >> 20);
}
