//! The real sysbench.

use scaleprof_server::Sandbox;
use scaleprof_wire::Endpoint;
use std::process::Command;

/// Whether the sysbench that we are measured against is there.
pub fn is_there() -> bool {
    let version = Command::new("sysbench").arg("--version").output();
    let text = version.map(|out| String::from_utf8_lossy(&out.stdout).into_owned());
    if text.as_ref().is_ok_and(|text| text.starts_with("sysbench 1.0.")) {
        return true;
    }
    testing::skip!("there is no sysbench 1.0 ({text:?}). apt-get install sysbench");
    false
}

/// Runs it with one thread in a schema; `command` is `run` or `prepare`.
pub fn sysbench(sandbox: &Sandbox, schema: &str, workload: &str, options: &[String], command: &str) {
    let Endpoint::Unix(socket) = sandbox.endpoint() else {
        panic!("a sandbox without a socket")
    };
    let out = Command::new("sysbench")
        .arg(workload)
        .arg(format!("--mysql-socket={}", socket.display()))
        .args(["--mysql-user=root", "--threads=1", "--time=0", "--rand-seed=7"])
        .arg(format!("--mysql-db={schema}"))
        .args(options)
        .arg(command)
        .output()
        .expect("sysbench starts");
    assert!(
        out.status.success(),
        "sysbench {workload}: {}{}",
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}
