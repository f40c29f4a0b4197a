//! A server that hangs or floods: the first ^C ends what waits for it, and nothing is left.

use crate::stage::{Running, place, scaleprof, texts};
use libc::SIGINT;
use testing::hostile_server::{Malice, start};
use testing::soon;

#[test]
fn the_first_interrupt_ends_what_waits_for_a_server_without_end() {
    let place = place();
    for malice in [
        Malice::Silence,
        Malice::Drip,
        Malice::SilentAnswers,
        Malice::DrippedAnswer,
    ] {
        let server = start(malice);
        let folder = place.path().join("run");
        let mut command = scaleprof();
        command
            .args(["run", "--yes", "--quiet", "--dsn"])
            .arg(format!("mysql://root@127.0.0.1:{}", server.port))
            .arg("--output")
            .arg(&folder);
        let running = Running::start(&mut command);
        soon("it connects", || server.accepted() > 0);
        running.signal(SIGINT);
        let output = running.end();
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(130), "{malice:?}: {err}");
        assert!(!folder.exists(), "{malice:?}: nothing was measured");
    }
}
