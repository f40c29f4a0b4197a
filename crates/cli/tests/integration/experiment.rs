//! `experiment`: plans, real servers in turns, what a failure and an interruption leave.

use crate::stage::{
    Running, bundle, children, fail, kill, place, scaleprof, small_redo_log, succeed, texts, work_folder,
};
use libc::{SIGINT, SIGKILL};
use scaleprof_bundle::{Bundle, RungSummary};
use scaleprof_server::Installation;
use scaleprof_vocabulary::RunState;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};
use testing::servers::{distribution, fetched};
use testing::{LIMIT, soon};

/// The text in one line, as it breaks where the width says.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A small and quick one: what is compared is the test's.
fn small(server: &Installation, output: &Path) -> Command {
    sized(server, output, "1,2", 1, 1)
}

/// One with such rungs, seconds a rung, and A/A pairs at each end.
fn sized(server: &Installation, output: &Path, connections: &str, seconds: u32, aa_pairs: u32) -> Command {
    let mut command = scaleprof();
    command.args([
        "experiment",
        "--tables",
        "1",
        "--rows",
        "300",
        "--connections",
        connections,
        "--seconds",
        &seconds.to_string(),
    ]);
    command.args([
        "--pairs",
        "2",
        "--aa-pairs",
        &aa_pairs.to_string(),
        "--buffer-pool",
        "64M",
        "--workload",
        "oltp_point_select",
    ]);
    command.arg("--work-dir").arg(work_folder());
    command.arg("--server").arg(&server.binary);
    command.args(small_redo_log(server));
    command.arg("--output").arg(output);
    command
}

fn outcome(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("experiment.json")).expect("experiment.json");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_dry_run_prints_the_plan_and_how_long_it_takes() {
    let vary = ["--vary", "innodb_sync_array_size=1,8,64"];
    let (out, err) = succeed(scaleprof().arg("experiment").args(vary).arg("--dry-run"));
    assert_eq!(err, "");
    assert!(
        out.contains("innodb_sync_array_size=1 (the others are held against it)"),
        "{out}"
    );
    assert!(out.contains("32 server starts and 3 watched runs"), "{out}");
    let precise = ["--precision", "1.5", "--dry-run"];
    let (out, _) = succeed(scaleprof().arg("experiment").args(vary).args(precise));
    assert!(out.contains("6 to 20, until") && out.contains("at most about"), "{out}");
}

/// Every file in experiments/ is known by its name, can be carried out, and has a page of its own.
#[test]
fn every_ready_experiment_can_be_planned() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut count = 0;
    for entry in std::fs::read_dir(root.join("experiments")).expect("experiments") {
        let file = entry.expect("an entry").path();
        let name = file.file_stem().and_then(|name| name.to_str()).expect("a name");
        let page = std::fs::read_to_string(root.join(format!("docs/experiments/{name}.md"))).expect(name);
        assert!(page.contains(&format!("scaleprof experiment {name}")), "{name}");
        let parts = [
            "**The question.**",
            "Source: ",
            "**What to look at.**",
            "**An example.**",
            "**What needs bigger hardware.**",
        ];
        for part in parts {
            assert!(page.contains(part), "{name}: {part}");
        }
        let compared: &[&str] = match name {
            "mutex-or-event" | "pgo" => &["--server", "/opt/a", "--server", "/opt/b"],
            "lock-sys" => &["--vary", "innodb_deadlock_detect=ON,OFF"],
            _ => &[],
        };
        let plan = ["experiment", name, "--dry-run", "--quick"];
        let (out, _) = succeed(scaleprof().args(plan).args(compared));
        assert!(out.contains("indicative only") && out.contains("held against"), "{out}");
        if !compared.is_empty() {
            let err = fail(scaleprof().args(plan), 1);
            assert!(
                err.contains("what shall be compared is not said yet\n  fix: give "),
                "{err}"
            );
        }
        count += 1;
    }
    assert_eq!(count, 14);
}

#[test]
fn loads_and_servers_are_compared_as_settings_are() {
    let servers = ["--server", "/opt/old/mysql-5.6", "--server", "/opt/new/mysql-9"];
    let (out, _) = succeed(scaleprof().args(["experiment", "lock-sys", "--dry-run"]).args(servers));
    let out = joined(&out);
    assert!(out.contains("sysbench mysql-5.6 (others are held against it)"), "{out}");
    assert!(
        out.contains("TPC-C mysql-9 (held against TPC-C mysql-5.6): server mysql-9, workload tpcc, 1 warehouses"),
        "{out}"
    );
    let options = [
        "--workload",
        "tpcc",
        "--warehouses",
        "3",
        "--vary",
        "x=1,2",
        "--dry-run",
    ];
    succeed(scaleprof().args(["experiment"]).args(options));
    let err = fail(
        scaleprof().args(["experiment", "--warehouses", "3", "--vary", "x=1,2", "--dry-run"]),
        1,
    );
    assert!(
        err.contains(
            "load.warehouses: it goes with another kind of workload than oltp_read_write\n  fix: leave it out"
        ),
        "{err}"
    );
    // A workload of the command line takes the place of the plan's with all that goes with it.
    let options = ["spin-delay", "--workload", "tpcc", "--dry-run"];
    succeed(scaleprof().args(["experiment"]).args(options));
}

#[test]
fn what_is_wrong_with_a_plan_is_said_with_file_key_and_remedy() {
    let place = place();
    let file = place.path().join("mine.toml");
    let two = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n";
    for (text, expected) in [
        (
            format!("[design]\npairs = 5\n{two}"),
            "mine.toml: design.pairs: 5 is odd",
        ),
        (
            format!("[design]\npeers = 5\n{two}"),
            "mine.toml, line 2: unknown field `peers`",
        ),
        ("name = \"x\"\n".to_owned(), "mine.toml: variant: there are 0 variants"),
    ] {
        std::fs::write(&file, text).expect("written");
        let err = fail(scaleprof().arg("experiment").arg(&file), 1);
        assert!(err.contains(expected), "{err}");
    }
    let err = fail(scaleprof().args(["experiment", "no-such"]), 1);
    assert!(err.contains("or a ready experiment: sync-array-size"), "{err}");
    let err = fail(scaleprof().args(["experiment", "--vary", "x=1"]), 1);
    assert!(err.contains("write --vary NAME=VALUE,VALUE"), "{err}");
    let err = fail(scaleprof().args(["experiment", "resume"]).arg(place.path()), 1);
    assert!(err.contains("holds no experiment"), "{err}");
    fail(scaleprof().arg("experiment"), 2);
}

#[test]
fn variants_are_compared_and_one_that_cannot_start_is_named_with_its_servers_words() {
    let Some(server) = distribution() else { return };
    let place = place();
    let plan = place.path().join("three.toml");
    let text = "question = \"Does it matter?\"\n[design]\nprobe = false\n\
        [[variant]]\nname = \"one\"\n\
        [[variant]]\nname = \"broken\"\nset = { innodb_no_such_setting = 1 }\n\
        [[variant]]\nname = \"wrapped\"\nwrapper = [\"nice\", \"-n\", \"1\"]\nset = { innodb_spin_wait_delay = 9 }\n\
        [[variant]]\nname = \"outside\"\nwrapper = [\"sh\", \"-c\", '\"$0\" \"$@\" & wait']\n";
    std::fs::write(&plan, text).expect("written");
    let folder = place.path().join("e");
    let (out, err) = succeed(small(&server.installation, &folder).arg(&plan));
    let words = joined(&out);
    assert!(err.contains("broken takes no part any more"), "{err}");
    assert!(err.contains("innodb_no_such_setting"), "{err}");
    assert!(err.contains("the wrapper 'sh' does not become the server"), "{err}");
    assert!(err.contains("left)"), "{err}");
    assert!(
        words.contains("Does it matter?") && words.contains("wrapped over one:"),
        "{out}"
    );
    assert!(
        words.contains("CPU/tx") && words.contains("The session: 2 A/A pairs"),
        "{out}"
    );
    assert!(words.contains("indicative only"), "{out}");
    let page = std::fs::read_to_string(folder.join("report.html")).expect("a page");
    assert!(
        page.contains("<polyline") && page.contains("wrapped over one"),
        "{page}"
    );
    let told = outcome(&folder);
    assert_eq!(told["state"], "complete");
    assert_eq!(told["variants"][0]["base"], true);
    assert!(
        told["variants"][1]["dropped_reason"]
            .as_str()
            .is_some_and(|why| why.contains("innodb_no_such_setting"))
    );
    let comparison = &told["comparisons"][0];
    assert_eq!(
        (&comparison["base"], &comparison["variant"]),
        (&"one".into(), &"wrapped".into())
    );
    assert_eq!(comparison["rungs"].as_array().map(Vec::len), Some(2));
    assert!(comparison["overall"]["ratio"]["low"].is_f64(), "{comparison}");
    assert_eq!(told["comparisons"].as_array().map(Vec::len), Some(1));
    // `report` says the same again from what was measured, and starts nothing.
    let again = |arguments: &[&str]| {
        let mut command = scaleprof();
        command.arg("report").arg(&folder).args(arguments);
        command
    };
    let (json, _) = succeed(&mut again(&["--format", "json"]));
    assert_eq!(serde_json::from_str::<Value>(&json).expect("JSON"), told);
    let (text, err) = succeed(&mut again(&["--format", "text"]));
    assert!(
        joined(&text).contains("wrapped over one:") && err.is_empty(),
        "{text}{err}"
    );
    std::fs::remove_file(folder.join("report.html")).expect("it was there");
    succeed(&mut again(&[]));
    assert!(folder.join("report.html").is_file());
    assert!(fail(&mut again(&["--format", "bug"]), 1).contains("a bug report needs one run"));
    // The variant's settings and surroundings are in its bundles.
    let settings = Bundle::open(folder.join("starts/round-01-variant-3"))
        .expect("a bundle")
        .settings;
    let value = |name: &str| {
        settings
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.value.clone())
    };
    assert_eq!(value("innodb_spin_wait_delay").as_deref(), Some("9"));
    assert_eq!(value("scaleprof.server_wrapper").as_deref(), Some("nice"));
}

#[test]
fn statements_after_the_start_and_loads_of_their_own_are_what_variants_have() {
    let Some(server) = distribution() else { return };
    let place = place();
    let plan = place.path().join("loads.toml");
    let text = "[design]\nprobe = false\n\
        [[variant]]\nname = \"point\"\nsql = [\"SELECT 1\", \"SET GLOBAL innodb_spin_wait_delay = 11\"]\n\
        [[variant]]\nname = \"ranges\"\nworkload = \"oltp_read_only\"\n\
        [[variant]]\nname = \"wrong\"\nsql = [\"SELECT 1\", \"SET GLOBAL no_such_variable = 1\"]\n\
        [[variant]]\nname = \"foreign\"\nproducts = [\"percona\"]\n\
        [[variant]]\nname = \"text\"\nbase = \"ranges\"\nworkload = \"oltp_read_only\"\nprotocol = \"text\"\n";
    std::fs::write(&plan, text).expect("written");
    let folder = place.path().join("e");
    let (_, err) = succeed(sized(&server.installation, &folder, "1,2", 1, 0).arg(&plan));
    assert!(
        err.contains("wrong takes no part any more: statement 2 of those to be run after the start (sql) failed"),
        "{err}"
    );
    assert!(
        err.contains("foreign takes no part any more: it is for Percona Server, and this server is"),
        "{err}"
    );
    let told = outcome(&folder);
    let pairs: Vec<_> = told["comparisons"]
        .as_array()
        .expect("comparisons")
        .iter()
        .map(|one| (one["base"].clone(), one["variant"].clone(), one["same_work"].clone()))
        .collect();
    // The ranges are a base of their own, and of a text as of a prepared statement the work is the same.
    assert_eq!(pairs, [("ranges".into(), "text".into(), true.into())]);
    assert_eq!(told["variants"][1]["workload"]["name"], "oltp_read_only");
    let settings = Bundle::open(folder.join("starts/round-01-variant-1"))
        .expect("a bundle")
        .settings;
    let value = |name: &str| {
        let row = settings.iter().find(|row| row.name == name);
        row.map(|row| row.value.clone())
    };
    assert_eq!(value("innodb_spin_wait_delay").as_deref(), Some("11"));
    assert_eq!(value("scaleprof.server_statements").as_deref(), Some("2"));
}

/// Sum of the counters of a bundle whose names begin so.
fn counted(bundle: &Bundle, prefix: &str) -> f64 {
    let rows = bundle.counters.iter().filter(|row| row.counter.starts_with(prefix));
    rows.map(|row| row.value).sum()
}

#[test]
fn servers_side_by_side_take_turns_and_what_is_counted_is_of_their_own_turns() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("e");
    let seconds = 3.0;
    let mut command = sized(&server.installation, &folder, "8", 3, 0);
    command.args(["--no-probe", "--vary", "innodb_spin_wait_delay=6,7,8"]);
    let (out, _) = succeed(&mut command);
    assert!(joined(&out).contains("side by side in turns of 0.25 s"), "{out}");
    assert_eq!(outcome(&folder)["design"]["slice_seconds"], 0.25);
    let cpus = std::thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    let bundles: Vec<Bundle> = (1..=3)
        .map(|variant| Bundle::open(folder.join(format!("starts/round-01-variant-{variant}"))).expect("a bundle"))
        .collect();
    for bundle in &bundles {
        let turns = bundle.manifest.ladder.interleaving.expect("it took turns");
        assert_eq!(turns.runs, 3);
        let ours: i64 = bundle.seconds.iter().map(|second| second.transactions).sum();
        let theirs = counted(bundle, "server.transactions_by_status");
        assert!(
            ours > 100 && (ours as f64 - theirs).abs() <= 0.01 * theirs,
            "{ours} of {theirs}"
        );
        // Of three times as long, a third is its own.
        let machine = counted(bundle, "machine.cpu_");
        assert!(
            (machine / (cpus * seconds) - 1.0).abs() < 0.15,
            "{machine} s of {cpus} CPUs"
        );
        // By one clock: the server's CPU time is counted by two.
        let used = counted(bundle, "server.cpu_seconds_by_scheduler") + counted(bundle, "client.cpu_");
        assert!(used > 0.1 * seconds && used < 1.1 * machine, "{used} of {machine}");
        let starts: Vec<i64> = bundle.seconds.iter().map(|second| second.started_at.0).collect();
        assert!(
            starts.windows(2).all(|pair| pair[1] - pair[0] > 2_000_000),
            "{starts:?}"
        );
    }
    // SHOW STATUS is answered in the middle of a turn. Where other tests have the CPUs, an answer may come after the turn, and the seconds at
    // both of its sides have none; asked at the ends of turns, none would have.
    let asked = |bundle: &Bundle| {
        bundle
            .counters
            .iter()
            .filter(|row| row.counter == "status.questions")
            .count()
    };
    let answered: Vec<usize> = bundles.iter().map(asked).collect();
    assert!(answered.iter().sum::<usize>() >= 3, "{answered:?} of 3 seconds each");
    // At the same time, not one after the other.
    let began = |bundle: &Bundle| bundle.seconds.first().expect("a second").started_at.0;
    let apart = began(&bundles[0]).abs_diff(began(&bundles[2]));
    assert!(apart < 2_500_000, "{apart} us");
}

#[test]
fn servers_that_are_asked_for_one_after_the_other_take_no_turns() {
    let Some(server) = distribution() else { return };
    let place = place();
    let alone = place.path().join("alone");
    let mut command = sized(&server.installation, &alone, "1,2", 1, 0);
    command.args(["--no-probe", "--vary", "innodb_spin_wait_delay=6,7", "--no-interleave"]);
    let (out, _) = succeed(&mut command);
    assert!(!out.contains("side by side"), "{out}");
    let bundle = Bundle::open(alone.join("starts/round-01-variant-1")).expect("a bundle");
    assert_eq!(bundle.manifest.ladder.interleaving, None);
}

#[test]
fn a_server_that_is_killed_is_started_again_with_those_beside_it() {
    let Some(server) = distribution() else { return };
    let place = place();
    let folder = place.path().join("e");
    let mut command = sized(&server.installation, &folder, "4", 2, 0);
    command.args(["--no-probe", "--vary", "innodb_spin_wait_delay=6,7"]);
    let running = Running::start(&mut command);
    let begun = |variant: u32| folder.join(format!("starts/round-01-variant-{variant}/manifest.json"));
    soon("the first round runs", || begun(1).exists() && begun(2).exists());
    let victim = running.server();
    std::thread::sleep(Duration::from_millis(700));
    kill(victim, SIGKILL);
    let output = running.end_and_leave_nothing(&[]);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let again = "failed and was started again";
    assert!(err.contains(again) && joined(&out).contains(again), "{out}{err}");
    let told = outcome(&folder);
    assert_eq!(
        (&told["state"], &told["design"]["rounds"]),
        (&"complete".into(), &2.into())
    );
    let aside = ["starts/round-01-variant-1-failed", "starts/round-01-variant-2-failed"];
    let aside = aside.iter().filter(|kept| folder.join(kept).exists());
    assert_eq!(aside.count(), 1, "one server was killed");
}

/// An experiment of two equal variants whose second pair is under way.
fn under_way(folder: &Path) -> Option<(Running, Vec<u32>)> {
    let server = distribution()?;
    let mut command = small(&server.installation, folder);
    let vary = ["--no-probe", "--vary", "innodb_spin_wait_delay=6,7"];
    let running = Running::start(command.args(vary));
    soon("the first pair is kept", || {
        let kept = |half: u32| folder.join(format!("starts/first-a-a-pair-1-{half}-variant-1/summary.json"));
        kept(1).exists() && kept(2).exists()
    });
    let server = running.server();
    let mut processes = children(running.pid());
    processes.push(server);
    Some((running, processes))
}

/// `report` of an experiment that did not end: nothing in its folder is touched, and what it failed of is not lost.
fn tells_what_there_is_so_far(folder: &Path) {
    let file = folder.join("experiment.json");
    let report = || {
        let (out, _) = succeed(scaleprof().arg("report").arg(folder).args(["--format", "json"]));
        serde_json::from_str::<Value>(&out).expect("JSON")
    };
    let before = std::fs::read(&file).ok();
    let told = report();
    assert_eq!(told["state"], "interrupted");
    assert_eq!(told["variants"].as_array().map(Vec::len), Some(2));
    assert_eq!(std::fs::read(&file).ok(), before, "experiment.json is left as it is");
    let failed = r#"{"state": "failed", "problem": "the disk is full"}"#;
    std::fs::write(&file, failed).expect("written");
    let told = report();
    assert_eq!(
        (&told["state"], &told["problem"]),
        (&"failed".into(), &"the disk is full".into())
    );
    assert_eq!(std::fs::read(&file).expect("still there"), failed.as_bytes());
    match before {
        Some(text) => std::fs::write(&file, text).expect("written"),
        None => std::fs::remove_file(&file).expect("removed"),
    }
}

fn goes_on(signal: i32, code: Option<i32>) {
    let place = place();
    let folder = place.path().join("e");
    let Some((running, processes)) = under_way(&folder) else {
        return;
    };
    running.signal(signal);
    let output = running.end_and_leave_nothing(&processes);
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), code, "{err}");
    let first = folder.join("starts/first-a-a-pair-1-1-variant-1/summary.json");
    let written = || -> SystemTime {
        first
            .metadata()
            .and_then(|meta| meta.modified())
            .expect("the first start")
    };
    let before = written();
    let resume = || {
        let mut command = scaleprof();
        command.args(["experiment", "resume", "--quiet"]).arg(&folder);
        command
    };
    tells_what_there_is_so_far(&folder);
    let (out, _) = succeed(&mut resume());
    assert_eq!(written(), before, "what was measured is not measured again");
    assert!(
        joined(&out).contains("innodb_spin_wait_delay=7 over innodb_spin_wait_delay=6"),
        "{out}"
    );
    let told = outcome(&folder);
    assert_eq!(
        (&told["state"], &told["design"]["rounds"]),
        (&"complete".into(), &2.into())
    );
    // A third time there is nothing left to do, and the answer is the same.
    let (again, _) = succeed(&mut resume());
    assert_eq!(again, out);
}

#[test]
fn an_interrupted_experiment_goes_on_where_it_was() {
    goes_on(SIGINT, Some(130));
}

#[test]
fn a_killed_experiment_goes_on_where_it_was() {
    goes_on(SIGKILL, None);
}

/// `run --try`, stopped while it tries: the run is whole, what was tried so far is told with its findings, and nothing is left running.
#[test]
fn trying_that_is_interrupted_keeps_the_run_and_what_was_tried() {
    let Some(server) = fetched("mysql-5.6.14") else { return };
    let place = place();
    let (folder, tried) = (place.path().join("run"), place.path().join("run-tried"));
    let starts = || std::fs::read_dir(tried.join("starts")).into_iter().flatten().count();
    // Twenty times its default, of PAUSEs that take 40 ns: who waits for a latch spins for a millisecond, and to set it back is advised.
    let delay = (120.0 * 40.0 / scaleprof_probe::relax_nanoseconds()).round().max(120.0);
    // What so short a run finds differs on a busy machine: one of which no finding advises a setting ends by itself. It is made again only
    // where others used the CPUs, which its rungs tell.
    const DISTURBED: f64 = 0.06;
    let mut disturbed = Vec::new();
    let running = (1..=3).find_map(|number| {
        let _ = std::fs::remove_dir_all(&folder);
        let mut command = scaleprof();
        command.args(["run", "--quiet", "--no-refine", "--buffer-pool", "64M", "--try"]);
        command.args(["--workload", "oltp_update_index", "--tables", "4", "--rows", "2000"]);
        command.args(["--connections", "2,64", "--seconds", "4", "--repeats", "2"]);
        command.args(["--set", &format!("innodb_spin_wait_delay={delay}")]);
        command.arg("--server").arg(&server.installation.binary);
        command
            .arg("--work-dir")
            .arg(work_folder())
            .arg("--output")
            .arg(&folder);
        let mut running = Running::start(&mut command);
        // Four measurements of 4 s, a server that is slow as told, and two starts of it.
        let until = Instant::now() + 2 * LIMIT;
        while starts() < 2 {
            if running.is_over() {
                let output = running.end();
                assert!(output.status.success() && starts() == 0, "{:?}", texts(&output));
                let summary = bundle(&folder).summary.expect("a summary");
                let of_others =
                    |rung: &RungSummary| rung.noise_cpu_share.unwrap_or(0.0) + rung.steal_share.unwrap_or(0.0);
                let others = summary.rungs.iter().map(of_others).fold(0.0, f64::max);
                assert!(others > DISTURBED, "nothing to try was found: {:#?}", summary.findings);
                if number < 3 {
                    println!("REPEATED run --try after run {number}: others had {others:.3} of the CPUs");
                }
                disturbed.push(others);
                return None;
            }
            if Instant::now() > until {
                panic!("nothing was tried in {:?}: {}", 2 * LIMIT, running.last_words());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Some(running)
    });
    let Some(running) = running else {
        panic!("not decided: disturbed: others had {disturbed:?} of the CPUs");
    };
    let processes = children(running.pid());
    running.signal(SIGINT);
    let output = running.end_and_leave_nothing(&processes);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(130), "{out}\n{err}");
    let kept = bundle(&folder);
    assert_eq!(kept.manifest.state, RunState::Complete);
    assert!(!kept.remedy_results.is_empty(), "{err}");
    let told = serde_json::from_str::<Value>(&std::fs::read_to_string(folder.join("summary.json")).expect("a summary"));
    let told = told.expect("JSON");
    let findings = told["findings"].as_array().expect("findings");
    let of_findings = findings
        .iter()
        .flat_map(|finding| finding["remedy_results"].as_array().into_iter().flatten());
    let doubts: Vec<&Value> = of_findings.map(|tried| &tried["caveat"]).collect();
    assert!(
        !doubts.is_empty() && doubts.iter().all(|doubt| doubt.is_string()),
        "{findings:#?}"
    );
    assert!(tried.join("report.html").exists() && tried.join("experiment.json").exists());
    let again = fail(scaleprof().arg("report").arg(&tried), 1);
    assert!(again.contains("repeat the run"), "{again}");
}
