//! A bundle can be given away: no query text, value, name of a schema, table, column, user, host or folder is in it.

use crate::servers::distribution;
use crate::stage::{bundle, place, running_server, scaleprof, socket, succeed};
use std::path::Path;

/// Part of every secret that is planted.
const SECRET: &str = "geheim";

fn holds(bytes: &[u8], word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    bytes
        .windows(word.len())
        .any(|window| window.eq_ignore_ascii_case(word.as_bytes()))
}

fn every_file(folder: &Path, visit: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => every_file(&path, visit),
            false => visit(&path, &std::fs::read(&path).expect("a file")),
        }
    }
}

/// Nothing of `words` in any byte of the bundle, nor in what its compressed tables hold.
fn is_free_of(folder: &Path, words: &[String]) {
    let mut kept = bundle(folder);
    let instructions = kept.instructions().expect("readable");
    kept.path.clear();
    let tables = format!("{kept:?} {instructions:?}");
    // The search finds what is there.
    assert!(holds(tables.as_bytes(), "mARIADB"));
    for word in words {
        assert!(!holds(tables.as_bytes(), word), "a table holds '{word}'");
        every_file(folder, &mut |path, bytes| {
            assert!(!holds(bytes, word), "{} holds '{word}'", path.display());
        });
    }
}

#[test]
fn secrets_of_the_server_its_data_and_the_command_line_are_in_no_byte_of_the_bundle() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    let mut client = server.connect().expect("a connection");
    for statement in [
        "CREATE DATABASE geheim_schema",
        "CREATE TABLE geheim_schema.geheim_table (geheim_column VARCHAR(50))",
        "INSERT INTO geheim_schema.geheim_table VALUES ('geheim_value')",
        "CREATE USER geheim_user IDENTIFIED BY 'geheim_password'",
        "GRANT ALL ON *.* TO geheim_user",
        "SET GLOBAL init_connect = 'SET @geheim_variable = 1'",
    ] {
        client.execute(statement).expect(statement);
    }
    let place = place();
    let script = place.path().join("geheim_script.sql");
    let text = "SELECT geheim_column FROM geheim_schema.geheim_table WHERE geheim_column = 'geheim_value';\n\
                CREATE TABLE geheim_schema.geheim_table (x INT);\n";
    // The first script succeeds; the second fails with an error of the server that quotes names.
    for (number, statements) in [1, 2].into_iter().enumerate() {
        let lines: Vec<&str> = text.lines().take(statements).collect();
        std::fs::write(&script, lines.join("\n")).expect("written");
        let named = place.path().join(format!("geheim_folder_{number}"));
        let mut command = scaleprof();
        command.env("SCALEPROF_PASSWORD", "geheim_password");
        command.args([
            "attach",
            "--yes",
            "--user",
            "geheim_user",
            "--repeats",
            "1",
            "--no-refine",
        ]);
        command.args(["--connections", "2", "--seconds", "2", "--isolation", "read-committed"]);
        command
            .arg("--workload")
            .arg(&script)
            .arg("--setup")
            .arg(place.path().join("geheim_setup.sql"));
        std::fs::write(place.path().join("geheim_setup.sql"), "DO 'geheim_setup';").expect("written");
        command.arg("--socket").arg(socket(&server)).arg("--output").arg(&named);
        match number {
            0 => drop(succeed(&mut command)),
            _ => assert_eq!(command.output().expect("scaleprof starts").status.code(), Some(1)),
        }
        let given = place.path().join(format!("given-{number}"));
        std::fs::rename(&named, &given).expect("moved");
        let page = given.join("report.html");
        assert!(page.exists());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        // Short or common names, such as "debian", stand in any bundle by themselves.
        let host = Some(host.trim().to_owned()).filter(|host| host.len() > 6 && host != "localhost");
        let words: Vec<String> = [SECRET.to_owned()]
            .into_iter()
            .chain(host)
            .chain([place.path().to_string_lossy().into_owned()])
            .chain([socket(&server).to_string_lossy().into_owned()])
            .collect();
        is_free_of(&given, &words);
        let shown = succeed(scaleprof().arg("report").arg(&given).args(["--format", "text"])).0;
        assert!(!holds(shown.as_bytes(), SECRET), "{shown}");
    }
}
