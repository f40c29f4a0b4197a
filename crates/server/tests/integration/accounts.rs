//! Logging in: every method of authentication that the servers have, over the socket and over TCP.

use testing::servers;

use scaleprof_server::*;
use scaleprof_wire::{Client, Credentials, Endpoint, Error as WireError, Password};
use servers::{Server, TestFolder, distribution, fetched, start_empty, work_folder};

const PASSWORD: &str = "ge'heim \u{e4}\u{20ac} und lang genug für mehr als einen Block von SHA-256, der 64 Bytes hat";

struct Stage {
    sandbox: Sandbox,
    _folder: TestFolder,
}

fn start(server: &Server) -> Stage {
    let folder = work_folder();
    let asked = ServerSettings {
        connections: 32,
        buffer_pool: Some(64 << 20),
        redo_log: 96 << 20,
        tcp: true,
        ..ServerSettings::default()
    };
    let settings = Settings::new(asked).expect("settings");
    let sandbox =
        start_empty(&server.installation, &settings, &folder).unwrap_or_else(|e| panic!("{}: {e}", server.name));
    Stage {
        sandbox,
        _folder: folder,
    }
}

impl Stage {
    fn execute(&self, sql: &str) {
        let mut client = self.sandbox.connect().expect("a connection");
        // As the server's default character set has it.
        client.execute("SET NAMES utf8mb4").expect("a character set");
        client.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        client.quit();
    }

    /// Makes an account for both ways in; `%` would lose against the anonymous accounts of old servers.
    fn create(&self, user: &str, identified: &str) {
        for host in ["localhost", "127.0.0.1"] {
            self.execute(&format!("CREATE USER '{user}'@'{host}' IDENTIFIED {identified}"));
        }
    }

    fn tcp(&self) -> Endpoint {
        self.sandbox.tcp_endpoint().expect("an address")
    }

    fn both_ways(&self) -> [Endpoint; 2] {
        [self.sandbox.endpoint().clone(), self.tcp()]
    }

    /// Logs in and asks the server who we are.
    fn log_in(&self, endpoint: &Endpoint, user: &str, password: Option<&str>) {
        let mut client = Client::connect(endpoint, &account(user, password)).unwrap_or_else(|e| panic!("{user}: {e}"));
        let who = client
            .query_value("SELECT CURRENT_USER()")
            .expect("an answer")
            .expect("a name");
        assert!(who.starts_with(&format!("{user}@")), "{who}");
        client.quit();
    }

    /// A wrong password is refused in words that have the user's name but no password.
    fn refuses_wrong_passwords(&self, user: &str) {
        for endpoint in self.both_ways() {
            for wrong in [Some("falsches-Wort"), Some(""), None] {
                let error = Client::connect(&endpoint, &account(user, wrong))
                    .map(drop)
                    .expect_err(user);
                let WireError::Refused {
                    user: named,
                    error: server,
                    ..
                } = &error
                else {
                    panic!("{user} over {endpoint}: {error}")
                };
                assert_eq!((&**named, server.number), (user, 1045), "{error}");
                let said = format!("{error} {error:?}");
                assert!(said.contains(user) && !said.contains("falsches-Wort"), "{said}");
            }
        }
    }
}

fn account(user: &str, password: Option<&str>) -> Credentials {
    Credentials {
        password: password.map(Password::new),
        ..Credentials::user(user)
    }
}

fn quoted() -> String {
    PASSWORD.replace('\'', "''")
}

fn plugin_is_there(stage: &Stage, file: &str) -> bool {
    let folder = stage.sandbox.variables().expect("variables")["plugin_dir"].clone();
    let there = std::path::Path::new(&folder).join(file).exists();
    if !there {
        // Debian has it in the package that also sets up a service, which tests do not install.
        eprintln!("\n*** there is no {file} in {folder}, so nothing is tried with it\n");
    }
    there
}

fn native_passwords(server: Option<Server>) {
    let Some(server) = server else { return };
    let stage = start(&server);
    stage.create("plain_user", &format!("BY '{}'", quoted()));
    stage.create("open_user", "BY ''");
    for endpoint in stage.both_ways() {
        stage.log_in(&endpoint, "plain_user", Some(PASSWORD));
        stage.log_in(&endpoint, "open_user", None);
        stage.log_in(&endpoint, "open_user", Some(""));
    }
    stage.refuses_wrong_passwords("plain_user");
    rights_are_said(&stage);
    if server.installation.product == Product::MariaDb {
        unix_socket_accounts(&stage);
        ed25519_accounts(&stage);
    }
}

#[test]
fn native_passwords_log_in_on_the_distribution_server() {
    native_passwords(distribution());
}

#[test]
fn native_passwords_log_in_on_mysql_5_6() {
    native_passwords(fetched("mysql-5.6.14"));
}

/// An account without rights may log in, but not to a schema, and is told so with the schema's name.
fn rights_are_said(stage: &Stage) {
    stage.execute("CREATE DATABASE private");
    for endpoint in stage.both_ways() {
        let who = account("plain_user", Some(PASSWORD)).in_database("private");
        let error = Client::connect(&endpoint, &who).map(drop).expect_err("no rights");
        assert!(matches!(error, WireError::Refused { .. }), "{error}");
        assert_eq!(error.number(), Some(1044), "{error}");
        assert!(error.to_string().contains("private"), "{error}");
        let mut client = Client::connect(&endpoint, &account("plain_user", Some(PASSWORD))).expect("a connection");
        let error = client.execute("CREATE DATABASE more").expect_err("no rights");
        assert_eq!(error.number(), Some(1044), "{error}");
    }
    for host in ["localhost", "127.0.0.1"] {
        stage.execute(&format!("GRANT ALL ON private.* TO 'plain_user'@'{host}'"));
    }
    for endpoint in stage.both_ways() {
        let who = account("plain_user", Some(PASSWORD)).in_database("private");
        let mut client = Client::connect(&endpoint, &who).expect("a connection");
        let schema = client.query_value("SELECT DATABASE()").expect("an answer");
        assert_eq!(schema.as_deref(), Some("private"));
    }
}

/// The name that the system has for us.
fn our_name() -> String {
    let out = std::process::Command::new("id").arg("-un").output().expect("id");
    String::from_utf8_lossy(&out.stdout).trim().to_owned()
}

fn unix_socket_accounts(stage: &Stage) {
    let name = our_name();
    let verb = if name == "root" { "ALTER" } else { "CREATE" };
    stage.execute("CREATE USER somebody_else@localhost IDENTIFIED VIA unix_socket");
    let alternative = "IDENTIFIED VIA mysql_native_password USING PASSWORD('x') OR unix_socket";
    stage.execute(&format!("{verb} USER '{name}'@localhost {alternative}"));
    stage.log_in(stage.sandbox.endpoint(), &name, None);
    let refused = Client::connect(stage.sandbox.endpoint(), &account("somebody_else", None));
    let error = refused.map(drop).expect_err("not us");
    assert!(
        matches!(&error, WireError::Refused { user, .. } if user == "somebody_else"),
        "{error}"
    );
}

fn ed25519_accounts(stage: &Stage) {
    if !plugin_is_there(stage, "auth_ed25519.so") {
        return;
    }
    stage.execute("INSTALL SONAME 'auth_ed25519'");
    stage.create("curve_user", &format!("VIA ed25519 USING PASSWORD('{}')", quoted()));
    for endpoint in stage.both_ways() {
        stage.log_in(&endpoint, "curve_user", Some(PASSWORD));
    }
    // The server's challenge is any bytes, zeros too, one at its end in every 256th.
    for _ in 0..800 {
        stage.log_in(stage.sandbox.endpoint(), "curve_user", Some(PASSWORD));
    }
    stage.refuses_wrong_passwords("curve_user");
}

#[test]
fn ed25519_logs_in_on_a_newer_mariadb() {
    let Some(server) = fetched("mariadb-11.8") else { return };
    let stage = start(&server);
    ed25519_accounts(&stage);
}

#[test]
fn caching_sha2_logs_in_over_the_socket_and_over_tcp() {
    let Some(server) = fetched("mysql-9.7") else { return };
    let stage = start(&server);
    stage.create("sha_user", &format!("WITH caching_sha2_password BY '{}'", quoted()));
    stage.create("open_user", "BY ''");
    let [socket, tcp] = stage.both_ways();
    // The server has not seen the password since it started: full authentication, over TCP with the server's RSA key.
    // Then it remembers, for all ways in; each account has a host of its own here.
    for _ in 0..2 {
        stage.log_in(&tcp, "sha_user", Some(PASSWORD));
        stage.log_in(&socket, "sha_user", Some(PASSWORD));
    }
    stage.execute("FLUSH PRIVILEGES");
    // In the clear over the socket, which nobody can listen to.
    stage.log_in(&socket, "sha_user", Some(PASSWORD));
    stage.log_in(&socket, "sha_user", Some(PASSWORD));
    stage.log_in(&tcp, "sha_user", Some(PASSWORD));
    for endpoint in [&socket, &tcp] {
        stage.log_in(endpoint, "open_user", None);
    }
    // With the password remembered, and forgotten.
    stage.refuses_wrong_passwords("sha_user");
    stage.execute("FLUSH PRIVILEGES");
    stage.refuses_wrong_passwords("sha_user");

    if plugin_is_there(&stage, "auth_socket.so") {
        stage.execute("INSTALL PLUGIN auth_socket SONAME 'auth_socket.so'");
        let name = our_name();
        stage.execute("CREATE USER somebody_else@localhost IDENTIFIED WITH auth_socket");
        stage.execute(&format!(
            "CREATE USER by_name@localhost IDENTIFIED WITH auth_socket AS '{name}'"
        ));
        stage.log_in(&socket, "by_name", None);
        let error = Client::connect(&socket, &account("somebody_else", None))
            .map(drop)
            .expect_err("not us");
        assert!(matches!(error, WireError::Refused { .. }), "{error}");
    }
}
