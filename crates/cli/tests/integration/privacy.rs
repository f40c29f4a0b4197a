//! A bundle can be given away: no query text, value, name of a schema, table, column, user, host or folder is in it.

use crate::secrets::{Bundle, bundle_is_free_of, comparison_is_free_of};
use crate::stage::{is_root, place, run, running_server_with, scaleprof, socket, succeed};
use scaleprof_server::Sandbox;
use scaleprof_wire::{Client, Credentials, Password};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use testing::servers::{distribution, fetched};

/// Part of every secret that is planted as a word.
const SECRET: &str = "geheim";
/// The number of a card that stands in rows and in queries.
const CARD: &str = "4929812345678123";
/// An address written as a number, as server_id often is.
const SERVER_ID: &str = "3232262401";

/// Secrets in every place of a server where its users put them; the hash under which it keeps the password is returned.
fn plant(server: &Sandbox) -> String {
    let mut client = server.connect().expect("a connection");
    for statement in [
        "CREATE DATABASE geheim_schema",
        "CREATE TABLE geheim_schema.geheim_table (geheim_column VARCHAR(50), card BIGINT, INDEX geheim_index (card))",
        "INSERT INTO geheim_schema.geheim_table VALUES ('geheim_value', 4929812345678123)",
        "CREATE USER geheim_user IDENTIFIED BY 'geheim_password'",
        "GRANT ALL ON *.* TO geheim_user",
        "SET GLOBAL init_connect = 'SET @geheim_variable = 1'",
        "SET GLOBAL general_log_file = 'geheim.log'",
        "SET GLOBAL general_log = ON",
        "CREATE FUNCTION geheim_schema.geheim_function() RETURNS INT DETERMINISTIC RETURN 4711",
    ] {
        client
            .execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let hash = client
        .query_value("SELECT PASSWORD('geheim_password')")
        .expect("an answer");
    hash.unwrap_or_default().trim_start_matches('*').to_owned()
}

/// Ends the foreign load whatever happens: a test that fails meanwhile would wait for it for ever.
struct EndOf<'a>(&'a AtomicBool);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Somebody else's queries while we look, until they are told to stop.
fn foreign_load(server: &Sandbox, stop: &AtomicBool) {
    let who = Credentials {
        password: Some(Password::new("geheim_password")),
        ..Credentials::user("geheim_user").in_database("geheim_schema")
    };
    let mut client = Client::connect(server.endpoint(), &who).expect("a connection");
    let query = "SELECT /* geheim_comment */ geheim_column AS geheim_alias, card + 0 FROM geheim_table \
                 WHERE geheim_column LIKE '%geheim_value%' OR card = 4929812345678123 -- geheim";
    while !stop.load(Ordering::Relaxed) {
        client.query(query).expect("an answer");
        client.query("SELECT geheim_function()").expect("an answer");
        client
            .query("SELECT geheim_gone FROM geheim_table")
            .expect_err("no such column");
        // Each is seen a hundred times; more would only take the CPUs from other tests.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Words that must not be found: those planted, and those that say where this is.
fn secrets<'a>(place: &'a str, socket: &'a str, hash: &'a str, host: &'a Option<String>) -> Vec<&'a str> {
    [SECRET, CARD, SERVER_ID, place, socket, hash]
        .into_iter()
        .chain(host.as_deref())
        .filter(|word| !word.is_empty())
        .collect()
}

/// The name of this machine. Short or common names, such as "debian", stand in any bundle by themselves.
fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Some(name.trim().to_owned()).filter(|name| name.len() > 6 && name != "localhost")
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// `attach` with a script full of secrets.
fn attach(server: &Sandbox, place: &Path, script: &Path) -> Command {
    let options = place.join("geheim.cnf");
    std::fs::write(&options, "[client]\nuser = geheim_user\npassword = geheim_password\n").expect("written");
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&options, owner_only).expect("chmod");
    let setup = place.join("geheim_setup.sql");
    std::fs::write(&setup, "DO 'geheim_setup';").expect("written");
    let mut command = scaleprof();
    command.args(["run", "--yes", "--repeats", "1", "--no-refine"]);
    command.args(["--connections", "1,2", "--seconds", "2", "--rate", "200"]);
    command.arg("--defaults-file").arg(options);
    command.arg("--workload").arg(script).arg("--setup").arg(setup);
    command.arg("--socket").arg(socket(server));
    command
}

#[test]
fn secrets_of_the_server_its_data_and_the_command_line_are_in_no_byte_of_the_bundle() {
    let Some(found) = distribution() else { return };
    let server = running_server_with(
        found.installation,
        vec!["report_host=geheim-host".into(), format!("server_id={SERVER_ID}")],
    );
    let hash = plant(&server);
    let place = place();
    let script = place.path().join("geheim_script.sql");
    let statements = [
        "SELECT geheim_column /* geheim */ FROM geheim_schema.geheim_table WHERE geheim_column = 'geheim_value' OR card = 4929812345678123;",
        "CREATE TABLE geheim_schema.geheim_table (x INT);",
    ];
    let (host, ours, at) = (host(), text(place.path()), text(&socket(&server)));
    let words = secrets(&ours, &at, &hash, &host);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| foreign_load(&server, &stop));
        }
        let _end = EndOf(&stop);
        // The first script succeeds, the second time in another isolation; the second fails with an error of the server that quotes names.
        let [first, second, failed] =
            [(1, "read-committed"), (1, "serializable"), (2, "read-committed")].map(|(lines, isolation)| {
                std::fs::write(&script, statements[..lines].join("\n")).expect("written");
                let named = place.path().join(format!("geheim_folder_{lines}_{isolation}"));
                let mut command = attach(&server, place.path(), &script);
                command.args(["--isolation", isolation]).arg("--output").arg(&named);
                match lines {
                    1 => drop(succeed(&mut command)),
                    _ => assert_eq!(command.output().expect("scaleprof starts").status.code(), Some(1)),
                }
                let given = place.path().join(format!("given-{lines}-{isolation}"));
                std::fs::rename(&named, &given).expect("moved");
                assert!(given.join("report.html").exists());
                given
            });
        bundle_is_free_of(&first, Bundle::Measured, &words);
        bundle_is_free_of(&failed, Bundle::Partial, &words);
        comparison_is_free_of(&first, &second, &words);
        if is_root("watching a server of somebody's") {
            let given = place.path().join("given-watch");
            let mut command = scaleprof();
            command.args([
                "attach",
                "--quiet",
                "--seconds",
                "3",
                "--pid",
                &server.pid().to_string(),
            ]);
            succeed(command.arg("--output").arg(&given));
            bundle_is_free_of(&given, Bundle::Partial, &words);
        }
    });
}

#[test]
fn where_a_run_took_place_is_in_no_byte_of_the_bundle() {
    if !is_root("another host name") {
        return;
    }
    for found in [distribution(), fetched("mysql-5.6.14")].into_iter().flatten() {
        let place = place();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path(), open).expect("chmod");
        let options = place.path().join("geheim.cnf");
        let lines = format!(
            "[mysqld]\nserver_id = {SERVER_ID}\nreport_host = geheim-host\nreport_user = 2020\ninit_connect = 'SET @geheim = 1'\n\
             general_log_file = geheim.log\ninnodb_io_capacity = 321\n"
        );
        std::fs::write(&options, lines).expect("written");
        let given = place.path().join("given");
        let mut inner = run(Some(&found.installation), &given);
        inner.args(["--workload", "oltp_read_write", "--tables", "1", "--rows", "500"]);
        inner
            .args(["--connections", "2", "--seconds", "2", "--server-defaults-file"])
            .arg(&options);
        // A host of its own name, for scaleprof and for its server.
        let mut command = Command::new("unshare");
        command.args(["--uts", "sh", "-c", "hostname geheim-host.example && exec \"$@\"", "sh"]);
        command.arg(inner.get_program()).args(inner.get_args());
        command
            .env("USER", "geheim_user")
            .env("LOGNAME", "geheim_user")
            .env("HOME", "/geheim_home");
        succeed(&mut command);
        let ours = text(place.path());
        bundle_is_free_of(
            &given,
            Bundle::Partial,
            &[SECRET, SERVER_ID, &ours, &text(crate::stage::work_folder())],
        );
        let kept = crate::stage::bundle(&given);
        let row = kept.settings.iter().find(|row| row.name == "innodb_io_capacity");
        let row = row.expect("a setting that may be shown");
        assert_eq!(
            (row.value.as_str(), row.set_by),
            ("321", Some(scaleprof_vocabulary::SettingSource::OptionFile))
        );
    }
}
