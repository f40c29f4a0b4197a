//! Passwords: from the environment or an option file, and never anywhere else.

use crate::stage::{Running, children, command_line, place, running_server, scaleprof, socket, texts};
use std::path::Path;
use testing::servers::fetched;
use testing::soon;

const PASSWORD: &str = "Hunter2-geheim";

fn is_in_no_file(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            is_in_no_file(&path);
        } else {
            let bytes = std::fs::read(&path).expect("a file");
            let found = bytes
                .windows(PASSWORD.len())
                .any(|window| window == PASSWORD.as_bytes());
            assert!(!found, "{} holds the password", path.display());
        }
    }
}

#[test]
fn a_password_logs_in_and_shows_nowhere() {
    let Some(found) = fetched("mysql-9.7") else { return };
    let server = running_server(found.installation);
    let mut client = server.connect().expect("a connection");
    for statement in [
        format!("CREATE USER lena IDENTIFIED WITH caching_sha2_password BY '{PASSWORD}'"),
        "GRANT ALL ON scaleprof_load.* TO lena".to_owned(),
        "GRANT SELECT ON performance_schema.* TO lena".to_owned(),
    ] {
        client.execute(&statement).expect("an account");
    }
    let place = place();
    let options = place.path().join("client.cnf");
    std::fs::write(&options, format!("[client]\nuser=lena\npassword={PASSWORD}\n")).expect("written");

    for from_environment in [true, false] {
        let bundles = place.path().join(format!("bundles-{from_environment}"));
        let folder = bundles.join("run");
        let mut command = scaleprof();
        command.args([
            "run",
            "--yes",
            "--repeats",
            "1",
            "--no-refine",
            "--workload",
            "oltp_point_select",
        ]);
        command.args(["--tables", "1", "--rows", "300", "--connections", "1", "--seconds", "2"]);
        command.args(["--rate", "100"]);
        command.arg("--output").arg(&folder);
        match from_environment {
            // Over TCP without TLS the password goes out under the server's public key.
            true => {
                let dsn = format!("mysql://lena@{}", server.tcp_endpoint().expect("TCP"));
                command
                    .env("SCALEPROF_PASSWORD", PASSWORD)
                    .args(["--dsn", &dsn, "--ssl-mode", "disabled"]);
            }
            false => {
                command.arg("--socket").arg(socket(&server));
                command.arg("--defaults-file").arg(&options);
            }
        }
        let running = Running::start(&mut command);
        let pid = running.pid();
        // By then it has logged in.
        soon("its load begins", || folder.join("manifest.json").exists());
        for process in children(pid).into_iter().chain([pid]) {
            assert!(!command_line(process).contains(PASSWORD));
        }
        let output = running.end_and_leave_nothing(&[]);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{out}\n{err}");
        assert!(!out.contains(PASSWORD) && !err.contains(PASSWORD));
        is_in_no_file(&bundles);
    }

    let mut command = scaleprof();
    command.env("SCALEPROF_PASSWORD", format!("{PASSWORD}-wrong"));
    command
        .args(["run", "--yes", "--user", "lena", "--socket"])
        .arg(socket(&server));
    command.arg("--output").arg(place.path().join("wrong"));
    let output = command.output().expect("scaleprof starts");
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err.contains("1045") && !err.contains(PASSWORD) && !out.contains(PASSWORD),
        "{err}"
    );
}
