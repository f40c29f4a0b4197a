//! Encrypted connections to servers that run already: who may be trusted, who is refused, and what the load says of it.

use crate::stage::{bundle, fail, place, running_server, running_server_with, scaleprof, succeed};
use scaleprof_server::Sandbox;
use scaleprof_wire::Endpoint;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::servers::{distribution, fetched};

const PASSWORD: &str = "geheim-und-lang";

/// A short load over TCP as somebody who has a password.
fn attach(server: &Sandbox, host: &str, folder: &Path) -> Command {
    let Some(Endpoint::Tcp { port, .. }) = server.tcp_endpoint() else {
        panic!("the server listens on no port")
    };
    let mut command = scaleprof();
    command.args([
        "run",
        "--yes",
        "--drop-schema",
        "--repeats",
        "1",
        "--no-refine",
        "--quiet",
    ]);
    command.args(["--tables", "1", "--rows", "300", "--connections", "2", "--seconds", "2"]);
    command.args(["--rate", "100"]);
    command.args(["--workload", "oltp_point_select", "--user", "lena"]);
    command.arg("--dsn").arg(format!("mysql://{host}:{port}"));
    command.env("SCALEPROF_PASSWORD", PASSWORD);
    command.arg("--output").arg(folder);
    command
}

/// An account that may only come encrypted, as the server's own words have it.
fn account(server: &Sandbox, identified: &str, requires: &str) {
    let mut client = server.connect().expect("a connection");
    for statement in [
        format!("CREATE USER lena@'%' IDENTIFIED {identified} '{PASSWORD}' REQUIRE {requires}"),
        "GRANT ALL ON scaleprof_load.* TO lena@'%'".to_owned(),
        "GRANT SELECT ON performance_schema.* TO lena@'%'".to_owned(),
    ] {
        client.execute(&statement).expect("an account");
    }
}

/// What the bundle says of the encryption; there must be figures in it.
fn encryption_in(folder: &Path) -> String {
    let kept = bundle(folder);
    let summary = kept.summary.as_ref().expect("a summary");
    assert!(summary.rungs[0].throughput.value > 0.0, "{:?}", summary.warnings);
    let settings = kept.settings;
    let found = settings.iter().find(|row| row.name == "scaleprof.encryption");
    found.expect("said in the settings").value.clone()
}

/// A CA, a server certificate for localhost, and a client certificate, in a folder that the server can read.
fn certificates(folder: &Path) {
    let script = r#"
        set -e
        authority() {
            openssl req -x509 -newkey rsa:2048 -nodes -days 3 -subj "/CN=$1" -keyout "$1-key.pem" -out "$1.pem" \
                -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign
        }
        signed() {
            openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$1-key.pem" -out "$1.csr"
            printf 'basicConstraints=CA:FALSE\nsubjectAltName=DNS:localhost\n' > "$1.ext"
            openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 3 \
                -extfile "$1.ext" -out "$1.pem"
        }
        authority ca
        authority other-ca
        signed server
        signed client
        chmod 644 ./*.pem
    "#;
    let output = Command::new("sh").args(["-c", script]).current_dir(folder).output();
    let output = output.expect("a shell");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    open(folder);
}

#[test]
fn an_account_that_requires_tls_is_served_by_default_and_refused_in_the_clear() {
    let Some(found) = fetched("mysql-9.7") else { return };
    let server = running_server(found.installation);
    account(&server, "WITH caching_sha2_password BY", "SSL");
    let place = place();

    // The first log-in of an account sends the password itself, under the encryption.
    let folder = place.path().join("by-default");
    succeed(&mut attach(&server, "127.0.0.1", &folder));
    assert_eq!(encryption_in(&folder), "TLSv1.3");
    let warnings = bundle(&folder).manifest.warnings;
    assert!(warnings.iter().any(|text| text.contains("TLSv1.3")), "{warnings:?}");

    let folder = place.path().join("io_uring");
    succeed(attach(&server, "127.0.0.1", &folder).args(["--transport", "io_uring", "--ssl-mode", "required"]));
    let warnings = bundle(&folder).manifest.warnings;
    assert!(warnings.iter().any(|text| text.contains("epoll")), "{warnings:?}");

    let folder = place.path().join("in-the-clear");
    let error = fail(
        attach(&server, "127.0.0.1", &folder).args(["--ssl-mode", "disabled"]),
        1,
    );
    assert!(error.contains("1045") && !error.contains(PASSWORD), "{error}");
    assert!(error.contains("--ssl-mode required"), "{error}");

    // The certificates that MySQL made for itself.
    let ca = data_folder(&server).join("ca.pem");
    let ours = place.path().join("ca.pem");
    std::fs::copy(ca, &ours).expect("its CA");
    let folder = place.path().join("verified");
    succeed(attach(&server, "127.0.0.1", &folder).arg("--ssl-ca").arg(&ours));
    assert_eq!(encryption_in(&folder), "TLSv1.3");
}

#[test]
fn a_server_is_trusted_by_its_ca_and_its_name_and_by_nothing_else() {
    let Some(found) = distribution() else { return };
    let place = place();
    let pki = place.path().join("pki");
    std::fs::create_dir(&pki).expect("a folder");
    open(place.path());
    certificates(&pki);
    let file = |name: &str| pki.join(name);
    let set = ["ssl_ca=ca.pem", "ssl_cert=server.pem", "ssl_key=server-key.pem"];
    let set = set.map(|setting| setting.replace('=', &format!("={}/", pki.display())));
    let server = running_server_with(found.installation, set.to_vec());
    account(&server, "BY", "X509");
    let folder = |name: &str| place.path().join(name);
    let with_identity = |host: &str, folder: &Path, ca: &str| {
        let mut command = attach(&server, host, folder);
        command.arg("--ssl-cert").arg(file("client.pem"));
        command.arg("--ssl-key").arg(file("client-key.pem"));
        command.arg("--ssl-ca").arg(file(ca));
        command
    };

    let named = folder("named");
    succeed(with_identity("localhost", &named, "ca.pem").args(["--ssl-mode", "verify-identity"]));
    assert_eq!(encryption_in(&named), "TLSv1.3");
    let kept = bundle(&named).manifest.command.join(" ");
    assert!(
        !kept.contains("pki") && kept.contains("--ssl-mode verify-identity"),
        "{kept}"
    );

    let error = fail(
        with_identity("127.0.0.1", &folder("a"), "ca.pem").args(["--ssl-mode", "verify-identity"]),
        1,
    );
    assert!(
        error.contains("another name") && error.contains("--ssl-mode verify-ca"),
        "{error}"
    );
    let error = fail(&mut with_identity("localhost", &folder("b"), "other-ca.pem"), 1);
    assert!(error.contains("not signed by the CA of --ssl-ca"), "{error}");
    let error = fail(&mut attach(&server, "localhost", &folder("c")), 1);
    assert!(error.contains("1045"), "the account wants a certificate: {error}");
    let error = fail(&mut with_identity("localhost", &folder("d"), "missing.pem"), 1);
    assert!(
        error.contains("missing.pem") && error.contains("CA certificates"),
        "{error}"
    );
    let error = fail(&mut with_identity("localhost", &folder("e"), "ca-key.pem"), 1);
    assert!(error.contains("no certificate in PEM"), "{error}");

    // The same from an option file.
    let options = place.path().join("client.cnf");
    let text = format!(
        "[client]\nssl-mode=VERIFY_IDENTITY\nssl-ca={0}/ca.pem\nssl_cert={0}/client.pem\nssl_key={0}/client-key.pem\n",
        pki.display()
    );
    std::fs::write(&options, text).expect("written");
    let by_file = folder("by-file");
    succeed(
        attach(&server, "localhost", &by_file)
            .arg("--defaults-file")
            .arg(&options),
    );
    assert_eq!(encryption_in(&by_file), "TLSv1.3");
}

#[test]
fn mariadb_s_own_certificate_will_do_where_nobody_looks_at_it() {
    let Some(found) = fetched("mariadb-11.8") else { return };
    let server = running_server(found.installation);
    account(&server, "BY", "SSL");
    let place = place();
    let folder = place.path().join("run");
    succeed(attach(&server, "127.0.0.1", &folder).args(["--ssl-mode", "required"]));
    assert_eq!(encryption_in(&folder), "TLSv1.3");
}

#[test]
fn a_server_without_tls_is_served_in_the_clear_unless_more_is_asked() {
    let Some(found) = distribution() else { return };
    let server = running_server(found.installation);
    account(&server, "BY", "NONE");
    let place = place();
    let folder = place.path().join("run");
    succeed(&mut attach(&server, "127.0.0.1", &folder));
    assert_eq!(encryption_in(&folder), "none");

    let folder = place.path().join("required");
    let error = fail(
        attach(&server, "127.0.0.1", &folder).args(["--ssl-mode", "required"]),
        1,
    );
    assert!(error.contains("offers no TLS") && error.contains("ssl_cert"), "{error}");
    assert!(!folder.exists());
    let error = fail(
        attach(&server, "127.0.0.1", &folder).args(["--ssl-mode", "verify-ca"]),
        1,
    );
    assert!(error.contains("--ssl-ca FILE"), "{error}");
    let error = fail(
        attach(&server, "127.0.0.1", &folder).args(["--ssl-mode", "sometimes"]),
        2,
    );
    assert!(error.contains("verify-identity"), "{error}");
}

fn data_folder(server: &Sandbox) -> PathBuf {
    PathBuf::from(server.variables().expect("variables")["datadir"].clone())
}

/// The server's user has to reach what lies in it.
fn open(folder: &Path) {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder, open).expect("chmod");
}
