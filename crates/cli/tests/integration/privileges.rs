//! What is said of a server with each privilege that there is: figures that are right or null with
//! a reason, never 0 for unknown.

use crate::stage::{bundle, is_root, place, running_server, texts};
use crate::watch::load;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::servers::distribution;

/// What `check` advises an ordinary user to give scaleprof.
const ADVISED: [&str; 5] = ["bpf", "perfmon", "sys_ptrace", "syslog", "sys_nice"];

/// Where an ordinary user can run scaleprof and write.
struct Stage {
    folder: tempfile::TempDir,
    user: u32,
}

impl Stage {
    fn of(user: u32) -> Stage {
        let folder = place();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).expect("chmod");
        };
        open(folder.path(), 0o755);
        let program = folder.path().join("scaleprof");
        std::fs::copy(env!("CARGO_BIN_EXE_scaleprof"), &program).expect("copied");
        open(&program, 0o755);
        let own = folder.path().join("own");
        std::fs::create_dir(&own).expect("made");
        std::os::unix::fs::chown(&own, Some(user), Some(user)).expect("root may");
        Stage { folder, user }
    }

    fn output(&self, name: &str) -> PathBuf {
        self.folder.path().join("own").join(name)
    }

    /// scaleprof as that user with these capabilities.
    fn scaleprof(&self, capabilities: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        let user = self.user.to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
        if !capabilities.is_empty() {
            let all: Vec<String> = capabilities.iter().map(|name| format!("+{name}")).collect();
            let all = all.join(",");
            command.args(["--inh-caps", &all, "--ambient-caps", &all]);
        }
        command.arg(self.folder.path().join("scaleprof"));
        testing::default_signals(&mut command);
        command
    }

    /// Whether a function of the kernel has its name in what was watched under that name: every wait has some.
    fn names_the_kernel(&self, name: &str) -> bool {
        let frames = bundle(&self.output(name)).frames;
        frames
            .iter()
            .any(|frame| &*frame.module == "[kernel]" && frame.function.is_some())
    }

    /// What is said of a server that serves eight clients.
    fn watch(&self, server: u32, name: &str, capabilities: &[&str]) -> String {
        let folder = self.output(name);
        let mut command = self.scaleprof(capabilities);
        command.args(["attach", "--quiet", "--seconds", "1", "--pid", &server.to_string()]);
        let output = command
            .arg("--output")
            .arg(&folder)
            .output()
            .expect("setpriv of util-linux");
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{name}: {out}\n{err}");
        let watch = bundle(&folder)
            .summary
            .and_then(|summary| summary.watch)
            .expect("a watch");
        match watch.connections.threads {
            // Its load's eight, and what controls that.
            Some(threads) => assert!((8..=12).contains(&threads), "{name}: {threads} connections\n{out}"),
            None => assert!(
                out.contains("which of them served clients is not known"),
                "{name}: {out}"
            ),
        }
        assert!(!out.contains("[kernel]+0x"), "{name}: {out}");
        out
    }
}

fn with_a_server(what: impl FnOnce(&Stage, u32)) {
    let Some(found) = distribution() else { return };
    if !is_root("another user with some capabilities") {
        return;
    }
    let server = running_server(found.installation);
    let stage = Stage::of(scaleprof_server::ServerUser::for_this_process().expect("root").uid);
    let _load = load(&server, &stage.folder.path().join("load"), "600");
    what(&stage, server.pid());
}

fn all_but(name: &str) -> Vec<&str> {
    ADVISED.into_iter().filter(|advised| *advised != name).collect()
}

#[test]
fn the_servers_own_user_is_told_what_is_unknown_and_names_of_the_kernel_need_cap_syslog() {
    with_a_server(|stage, server| {
        let out = stage.watch(server, "nobody", &[]);
        assert!(out.contains("CAP_BPF and CAP_PERFMON"), "{out}");
        let out = stage.watch(server, "all", &ADVISED);
        assert!(stage.names_the_kernel("all") && !out.contains("CAP_SYSLOG"), "{out}");
        let out = stage.watch(server, "syslog", &all_but("syslog"));
        assert!(!stage.names_the_kernel("syslog") && out.contains("CAP_SYSLOG"), "{out}");
    });
}

/// kernel.perf_event_paranoid, put back at the end.
struct Paranoid(String);

impl Paranoid {
    const SETTING: &str = "/proc/sys/kernel/perf_event_paranoid";

    fn keep() -> Paranoid {
        Paranoid(std::fs::read_to_string(Self::SETTING).expect("readable"))
    }

    fn set(&self, level: i32) {
        std::fs::write(Self::SETTING, level.to_string()).expect("root may");
    }
}

impl Drop for Paranoid {
    fn drop(&mut self) {
        let _ = std::fs::write(Self::SETTING, &self.0);
    }
}

#[test]
#[ignore = "./test --deep truth"]
fn with_each_capability_left_out_and_each_level_of_perf_events_nothing_unknown_is_0() {
    with_a_server(|stage, server| {
        for left_out in ADVISED {
            let out = stage.watch(server, left_out, &all_but(left_out));
            let without_bpf = ["bpf", "perfmon"].contains(&left_out);
            assert_eq!(
                out.contains("CAP_BPF and CAP_PERFMON"),
                without_bpf,
                "{left_out}: {out}"
            );
        }
        let paranoid = Paranoid::keep();
        for level in -1..=3 {
            paranoid.set(level);
            let out = stage.watch(server, &format!("level{level}"), &[]);
            let kernel_is_barred = out.contains("call paths inside the kernel");
            assert_eq!(kernel_is_barred, level >= 2, "{level}: {out}");
        }
    });
}

#[test]
fn check_says_what_each_missing_capability_costs() {
    if !is_root("another user with some capabilities") {
        return;
    }
    let stage = Stage::of(65534);
    let capabilities_of = |given: &[&str]| {
        let output = stage
            .scaleprof(given)
            .args(["check", "--json"])
            .output()
            .expect("setpriv");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut items = document["items"].as_array().expect("a list").iter();
        let of_capabilities = items.find(|item| item["topic"] == "capabilities");
        of_capabilities.expect("an item")["found"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert!(capabilities_of(&ADVISED).contains("all required ones are present"));
    let without = capabilities_of(&all_but("syslog"));
    assert!(
        without.contains("without CAP_SYSLOG functions of the kernel have no names"),
        "{without}"
    );
    assert!(!without.contains("without CAP_BPF"), "{without}");
}
