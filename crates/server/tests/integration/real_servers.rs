//! Starts real servers: the distribution's, and those that `scaleprof servers` fetched.

use testing::servers;

use scaleprof_server::*;
use scaleprof_vocabulary::SettingSource;
use servers::{Server, distribution, each_server, runs, settings, start_empty, work_folder};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

fn builder(server: &Server, set: &[&str], work: &WorkFolder) -> SandboxBuilder {
    SandboxBuilder::new(server.installation.clone(), settings(set), work.clone())
}

fn start(server: &Server, set: &[&str], work: &WorkFolder) -> Sandbox {
    start_empty(&server.installation, &settings(set), work).unwrap_or_else(|e| panic!("{}: {e}", server.name))
}

fn value(sandbox: &Sandbox, sql: &str) -> String {
    sandbox
        .connect()
        .expect("a connection")
        .query_value(sql)
        .expect("an answer")
        .unwrap_or_default()
}

fn execute(sandbox: &Sandbox, statements: &[&str]) {
    let mut client = sandbox.connect().expect("a connection");
    for sql in statements {
        client.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// A line of /proc/PID/status.
fn status_line(pid: u32, name: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).expect("its status");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the line");
    line.trim_start_matches(':').trim().to_owned()
}

#[test]
fn every_server_starts_answers_and_stops() {
    for server in each_server() {
        let work = work_folder();
        let began = Instant::now();
        let sandbox = builder(&server, &[], &work)
            .start_fresh()
            .unwrap_or_else(|e| panic!("{}: {e}", server.name));
        let version = value(&sandbox, "select version()");
        println!(
            "{}: {version} after {:.1} s",
            server.name,
            began.elapsed().as_secs_f64()
        );
        assert!(
            version.starts_with(&server.installation.version.to_string()),
            "{}: {version}",
            server.name
        );
        let pid = sandbox.pid();
        sandbox.stop().unwrap_or_else(|e| panic!("{}: {e}", server.name));
        assert!(!Path::new("/proc").join(pid.to_string()).exists());
        assert!(runs(&work).is_empty(), "{}: its folder is left", server.name);
    }
}

#[test]
fn starts_the_distribution_server_as_an_unprivileged_user() {
    let Some(server) = distribution() else { return };
    let work = work_folder();
    let sandbox = start(&server, &[], &work);
    let pid = sandbox.pid();
    let uid = match ServerUser::for_this_process() {
        Some(user) => user.uid,
        None => rustix::process::getuid().as_raw(),
    };
    assert_ne!(uid, 0);
    assert_eq!(status_line(pid, "Uid"), format!("{uid}\t{uid}\t{uid}\t{uid}"));
    assert_eq!(status_line(pid, "CapEff"), "0000000000000000");
    // The files of a process that is not dumpable belong to root, and profilers cannot read them.
    let maps = fs::metadata(format!("/proc/{pid}/maps")).expect("its maps");
    assert_eq!(maps.uid(), uid, "the server is not dumpable");
    assert_eq!(
        fs::read_link(format!("/proc/{pid}/exe")).expect("its executable"),
        server.installation.binary
    );
    assert_eq!(
        fs::read_to_string(format!("/proc/{pid}/oom_score_adj"))
            .expect("its score")
            .trim(),
        "700"
    );
    // SAFETY: getpgid has no memory effects.
    let group = unsafe { libc::getpgid(pid as i32) };
    assert_eq!(group, pid as i32, "a ^C would reach it");
}

#[test]
fn says_which_setting_is_unknown() {
    for server in each_server() {
        let work = work_folder();
        for set in ["innodb_no_such_thing=1", "innodb_autoinc_lock_mode=nonsense"] {
            let began = Instant::now();
            let error = builder(&server, &[set], &work)
                .start_fresh()
                .map(|_| ())
                .expect_err(set);
            let name = set.split('=').next().unwrap_or_default();
            assert!(
                matches!(error, Error::SettingRefused { .. }),
                "{}: {error}",
                server.name
            );
            let text = error.to_string();
            println!("{}: {}", server.name, text.lines().next().unwrap_or_default());
            assert!(text.replace('-', "_").contains(name), "{}: {text}", server.name);
            assert!(began.elapsed() < Duration::from_secs(60), "it was waited for");
            assert!(runs(&work).is_empty());
        }
    }
}

/// MariaDB removed it in 10.6 and takes it all the same; MySQL has it.
#[test]
fn says_which_setting_is_taken_and_does_nothing() {
    for server in each_server() {
        let work = work_folder();
        let set = ["innodb_sync_array_size=8", "innodb_spin_wait_delay=20"];
        let sandbox = start(&server, &set, &work);
        let is_known = sandbox
            .variables()
            .expect("variables")
            .contains_key("innodb_sync_array_size");
        let in_vain = sandbox.set_in_vain().expect("a log");
        assert_eq!(in_vain.is_empty(), is_known, "{}: {in_vain:?}", server.name);
        assert!(
            in_vain.iter().all(|name| name == "innodb_sync_array_size"),
            "{in_vain:?}"
        );
    }
}

#[test]
fn every_server_has_the_settings_that_are_pinned() {
    for server in each_server() {
        let work = work_folder();
        let sandbox = start(&server, &[], &work);
        let has = sandbox.variables().expect("variables");
        let matter = sandbox.settings_that_matter().expect("settings");
        let of = |name: &str| has.get(name).map(String::as_str);
        let redo = match of("innodb_redo_log_capacity") {
            Some(bytes) => bytes.parse().unwrap_or(0),
            None => {
                let number = |name| of(name).and_then(|text| text.parse::<u64>().ok());
                number("innodb_log_file_size").unwrap_or(0) * number("innodb_log_files_in_group").unwrap_or(1)
            }
        };
        assert_eq!(redo, 96 << 20, "{}", server.name);
        for (name, expected) in [
            ("character_set_server", "utf8mb4"),
            ("collation_server", "utf8mb4_general_ci"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_buffer_pool_size", "134217728"),
            ("performance_schema", "OFF"),
            ("max_connections", "128"),
            ("max_prepared_stmt_count", "1048576"),
            ("log_bin", "OFF"),
            ("local_infile", "ON"),
            ("skip_networking", "ON"),
            ("skip_name_resolve", "ON"),
        ] {
            assert_eq!(of(name), Some(expected), "{}: {name}", server.name);
        }
        assert!(matches!(of("query_cache_type"), None | Some("OFF")), "{}", server.name);
        assert_eq!(
            matter.get("transaction_isolation").map(String::as_str),
            Some("REPEATABLE-READ")
        );
        assert!(matter.contains_key("innodb_sync_spin_loops"));
        assert!(
            !matter
                .values()
                .any(|value| value.contains(&*work.path().to_string_lossy()))
        );
        let counters = sandbox.status().expect("status");
        assert!(counters["questions"].parse::<u64>().is_ok());
        sandbox.stop_hard();
    }
}

#[test]
fn a_prepared_folder_starts_on_a_fresh_copy() {
    for server in each_server() {
        let work = work_folder();
        let cache = Cache::open(&work).expect("a cache");
        let key = DataKey::new(&server.installation, &settings(&[]), "one row").expect("a key");
        assert!(cache.get(&key).expect("a look").is_none());
        let sandbox = start(&server, &[], &work);
        // MariaDB's servers have none.
        let has_identity = server.installation.product != Product::MariaDb;
        let first_uuid = has_identity.then(|| value(&sandbox, "select @@server_uuid"));
        execute(
            &sandbox,
            &["create database bench", "create table bench.t (a int) engine=innodb"],
        );
        execute(&sandbox, &["insert into bench.t values (1)"]);
        let prepared = sandbox
            .into_prepared(&cache, &key)
            .unwrap_or_else(|e| panic!("{}: {e}", server.name));

        for _ in 0..2 {
            let began = Instant::now();
            let mut sandbox = builder(&server, &[], &work)
                .start_from(&prepared)
                .expect("a start on the copy");
            println!(
                "{}: started on a copy in {:.2} s",
                server.name,
                began.elapsed().as_secs_f64()
            );
            assert_eq!(value(&sandbox, "select count(*) from bench.t"), "1", "{}", server.name);
            execute(&sandbox, &["insert into bench.t values (2)"]);
            sandbox.restart().expect("a restart");
            assert_eq!(value(&sandbox, "select count(*) from bench.t"), "2", "{}", server.name);
            if let Some(first) = &first_uuid {
                let again = value(&sandbox, "select @@server_uuid");
                assert_eq!(first.len(), 36, "{first}");
                assert_ne!(&again, first, "two servers of one identity");
            }
            sandbox.stop_hard();
        }
        drop(prepared);
        assert!(cache.get(&key).expect("a look").is_some());
        assert_eq!(cache.remove_all().expect("removed"), 1);
    }
}

#[test]
fn listens_on_loopback_only_and_only_when_asked() {
    for server in each_server() {
        let work = work_folder();
        let asked = ServerSettings {
            tcp: true,
            ..settings(&[]).asked().clone()
        };
        let settings = Settings::new(asked).expect("settings");
        let sandbox =
            start_empty(&server.installation, &settings, &work).unwrap_or_else(|e| panic!("{}: {e}", server.name));
        let endpoint = sandbox.tcp_endpoint().expect("an address");
        // Without a password nobody gets in but through the socket, whose folder is ours.
        let refused = scaleprof_wire::Client::connect(&endpoint, &sandbox.credentials()).map(drop);
        assert!(
            matches!(&refused, Err(scaleprof_wire::Error::Refused { .. })),
            "{}: {refused:?}",
            server.name
        );
        assert_eq!(sandbox.variables().expect("variables")["bind_address"], "127.0.0.1");
    }
}

#[test]
fn a_users_option_file_wins_over_what_is_pinned_but_cannot_move_the_data() {
    for server in each_server() {
        let name = &server.name;
        let work = work_folder();
        let foreign = work.path().join("foreign");
        fs::create_dir(&foreign).expect("a folder");
        // Its user could write there, as it could where the system's own instance has its logs.
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o777)).expect("open to all");
        let file = work.path().join("their.cnf");
        let text = format!(
            "[client]\npassword=secret\n[mysqld]\ndatadir={0}\ninnodb_data_home_dir={0}\nsocket={0}/s\n\
             log_error={0}/log\ninnodb_flush_log_at_trx_commit=1\nmax_connections=77\nserver_id=7\n\
             log_bin={0}/binlog\nlog_bin_index={0}/binlog.index\nrelay_log={0}/relay\n\
             general_log=ON\ngeneral_log_file={0}/general\nslow_query_log=ON\nslow_query_log_file={0}/slow\n\
             loose_innodb_doublewrite_dir={0}\nloose_wsrep_on=ON\nloose_wsrep_cluster_address=gcomm://192.0.2.1\n",
            foreign.display()
        );
        fs::write(&file, text).expect("an option file");
        for (set, logs) in [
            (&["max-connections=78"][..], "1"),
            (&["max-connections=78", "log_bin=ON"], "1"),
            (&["max-connections=78", "skip-log-bin"], "0"),
        ] {
            let asked = ServerSettings {
                defaults_file: Some(file.clone()),
                ..settings(set).asked().clone()
            };
            let settings = Settings::new(asked).expect("settings");
            let builder = SandboxBuilder::new(server.installation.clone(), settings, work.clone());
            let sandbox = builder.start_fresh().unwrap_or_else(|error| panic!("{name}: {error}"));
            let has = sandbox.variables().expect("variables");
            assert_eq!(has["innodb_flush_log_at_trx_commit"], "1");
            assert_eq!(has["max_connections"], "78");
            assert_eq!(value(&sandbox, "select @@log_bin"), logs, "{name}");
            assert_eq!(fs::read_dir(&foreign).expect("the folder").count(), 0, "{name}");
            let copy = runs(&work)[0].join("user.cnf");
            assert_eq!(fs::metadata(copy).expect("the copy").mode() & 0o777, 0o600);
        }
    }
}

#[test]
fn runs_on_the_cpus_it_was_given() {
    let Some(server) = distribution() else { return };
    let work = work_folder();
    let first: CpuSet = CpuSet::allowed().expect("CPUs").iter().take(1).collect();
    let placement = Placement::on_this_machine(Some(first.clone()), None).expect("a placement");
    let sandbox = builder(&server, &[], &work)
        .placement(placement)
        .start_fresh()
        .expect("a server");
    assert_eq!(status_line(sandbox.pid(), "Cpus_allowed_list"), first.to_string());
}

#[test]
fn binds_its_memory_to_the_nodes_it_was_given() {
    let Some(server) = distribution() else { return };
    let work = work_folder();
    let mut placement = Placement::on_this_machine(None, None).expect("a placement");
    placement.memory_nodes = Some(vec![0]);
    let sandbox = builder(&server, &[], &work)
        .placement(placement)
        .start_fresh()
        .expect("a server");
    match fs::read_to_string(format!("/proc/{}/numa_maps", sandbox.pid())) {
        Ok(maps) => assert!(maps.lines().any(|line| line.contains(" bind:0 ")), "{maps}"),
        Err(_) => testing::skip!("which nodes its memory is on: this kernel has no numa_maps"),
    }
}

#[test]
fn tells_how_a_server_died_in_the_middle() {
    let Some(server) = distribution() else { return };
    let work = work_folder();
    let mut sandbox = start(&server, &[], &work);
    assert!(sandbox.watch().is_none());
    // SAFETY: kill has no memory effects, and the process is ours.
    unsafe { libc::kill(sandbox.pid() as i32, libc::SIGSEGV) };
    let deadline = Instant::now() + Duration::from_secs(30);
    let death = loop {
        if let Some(death) = sandbox.watch() {
            break death;
        }
        assert!(Instant::now() < deadline, "it lives on");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(death.signal, Some(libc::SIGSEGV), "{death}");
    assert_eq!(
        death.reason.as_ref().map(|(reason, _)| *reason),
        Some(Reason::Crash),
        "{death}"
    );
    let kept = work.path().join("kept.log");
    sandbox.keep_error_log(&kept).expect("the log");
    drop(sandbox);
    assert!(fs::read_to_string(kept).expect("the log").contains("got signal 11"));
    assert!(runs(&work).is_empty());
}

#[test]
fn refuses_a_folder_without_our_marker() {
    let work = work_folder();
    let theirs = work.path().join("theirs");
    fs::create_dir(&theirs).expect("a folder");
    fs::write(theirs.join("ibdata1"), "theirs").expect("a file");
    let error = WorkFolder::open(&theirs).map(|_| ()).expect_err("not ours");
    assert!(error.to_string().contains("neither used nor removed"), "{error}");
    assert_eq!(fs::read_to_string(theirs.join("ibdata1")).expect("the file"), "theirs");
}

#[test]
fn every_server_of_our_own_says_who_set_what() {
    for server in each_server() {
        let work = work_folder();
        let sandbox = start(&server, &["max_heap_table_size=1048576"], &work);
        execute(&sandbox, &["SET GLOBAL flush_time = 17"]);
        let variables = sandbox.variables().expect("variables");
        let origins = sandbox.origins(&variables).expect("origins");
        let set_by = |name: &str| origins.get(name).and_then(|origin| origin.set_by);
        assert_eq!(
            set_by("max_heap_table_size"),
            Some(SettingSource::User),
            "{}",
            server.name
        );
        assert_eq!(
            set_by("max_connections"),
            Some(SettingSource::Pinned),
            "{}",
            server.name
        );
        assert_eq!(
            set_by("innodb_spin_wait_delay"),
            Some(SettingSource::Default),
            "{}",
            server.name
        );
        // Only newer servers notice it.
        let by_statement = set_by("flush_time");
        let knows_more = !matches!(server.name, "mysql-5.6.14");
        assert_eq!(
            by_statement == Some(SettingSource::Runtime),
            knows_more,
            "{}: {by_statement:?}",
            server.name
        );
        let default = origins["max_heap_table_size"].default.as_deref();
        let says_defaults = server.installation.product == Product::MariaDb;
        assert_eq!(
            default == Some("16777216"),
            says_defaults,
            "{}: {default:?}",
            server.name
        );
    }
}
