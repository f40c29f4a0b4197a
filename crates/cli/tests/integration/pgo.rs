//! `scripts/pgo`, for real on a small server in C++: built, trained, built anew.

use crate::stage::place;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output};
use std::time::{Duration, Instant};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/small_server");
/// Numbers that the small server is asked.
const TRAINING: std::ops::Range<u64> = 1..20_000;

fn pgo(words: &[&str]) -> Output {
    let script = Path::new(ROOT).join("scripts/pgo");
    let mut command = Command::new("bash");
    command.arg(script).args(words).output().expect("bash runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn connected(socket: &Path) -> BufReader<UnixStream> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(client) = UnixStream::connect(socket) {
            return BufReader::new(client);
        }
        assert!(Instant::now() < deadline, "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A small server that runs, and a client of it.
struct Small {
    child: Child,
    client: BufReader<UnixStream>,
}

impl Small {
    fn start(build: &Path, socket: &Path) -> Small {
        let child = Command::new(build.join("bin/small_server"))
            .arg(socket)
            .spawn()
            .expect("it runs");
        let client = connected(socket);
        Small { child, client }
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.client.get_mut(), "{line}").expect("sent");
        let mut answer = String::new();
        self.client.read_line(&mut answer).expect("answered");
        answer.trim().to_owned()
    }

    fn end(mut self) {
        assert_eq!(self.ask("end"), "ended");
        assert!(self.child.wait().expect("its end").success());
    }
}

#[test]
fn a_server_is_built_trained_and_built_anew_by_what_the_training_saw() {
    let place = place();
    let out = place.path().join("out");
    // The training is a program of its own to the script: numbers sent by bash through a socket would need more tools than there are.
    let training = "python3 -c 'import os, socket, subprocess, time\n\
        path = os.environ[\"SERVER\"] + \"/s\"\n\
        server = subprocess.Popen([os.environ[\"SERVER\"] + \"/bin/small_server\", path])\n\
        client = socket.socket(socket.AF_UNIX)\n\
        for attempt in range(2000):\n    \
            try: client.connect(path); break\n    \
            except OSError: time.sleep(0.01)\n\
        lines = client.makefile(\"rw\")\n\
        for number in range(1, 20000):\n    lines.write(f\"{number}\\n\"); lines.flush(); lines.readline()\n\
        lines.write(\"end\\n\"); lines.flush(); lines.readline(); server.wait()'";
    let output = pgo(&[
        SOURCE,
        out.to_str().expect("a name"),
        "--train",
        training,
        "--jobs",
        "2",
    ]);
    let told = said(&output);
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 files of the profile"), "{told}");
    let read = |build: &str| std::fs::read(out.join(build).join("bin/small_server")).expect(build);
    assert_ne!(read("plain"), read("guided"), "the profile made no difference");
    let log = std::fs::read_to_string(out.join("guided.log")).expect("its log");
    assert!(!log.contains("profile count data file not found"), "{log}");
    // What is built anew does the same.
    let mut answers = Vec::new();
    for build in ["plain", "guided"] {
        let mut small = Small::start(&out.join(build), &place.path().join(build));
        answers.push(
            TRAINING
                .step_by(997)
                .map(|number| small.ask(&number.to_string()))
                .collect::<Vec<_>>(),
        );
        small.end();
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0][0], "0", "1 is where all sequences end");
    assert!(!out.join("build").exists(), "nothing but the builds is left");
}

#[test]
fn a_training_without_a_profile_and_wrong_folders_are_told() {
    let place = place();
    let out = place.path().join("out");
    let out = out.to_str().expect("a name");
    let told = said(&pgo(&[place.path().to_str().expect("a name"), out]));
    assert!(told.contains("has no CMakeLists.txt"), "{told}");
    let output = pgo(&[SOURCE, out, "--train", "true"]);
    assert!(
        !output.status.success() && said(&output).contains("the training wrote no profile"),
        "{}",
        said(&output)
    );
    let told = said(&pgo(&[SOURCE, out]));
    assert!(told.contains("is not empty"), "{told}");
}
