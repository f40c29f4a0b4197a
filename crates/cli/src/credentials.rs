//! Where to connect and as whom. A password comes from the environment, an option file or a prompt, never from the
//! command line, which every user of the machine can read.

use crate::address_arguments::{AccountArguments, AddressArguments};
use crate::tls_arguments::TlsArguments;
use anyhow::{Context, bail};
use scaleprof_wire::{Credentials, Endpoint, Password};
use std::path::Path;

const DEFAULT_PORT: u16 = 3306;

/// The server's address and our account.
/// None where no running server is named.
pub(crate) fn of(
    address: &AddressArguments,
    account: &AccountArguments,
    tls: &TlsArguments,
) -> anyhow::Result<Option<(Endpoint, Credentials)>> {
    let (endpoint, dsn_user) = match (&address.socket, &address.dsn) {
        (Some(path), _) => (Endpoint::Unix(path.clone()), None),
        (None, Some(dsn)) => parse_dsn(dsn)?,
        (None, None) => return Ok(None),
    };
    let file = match &account.defaults_file {
        Some(path) => read_option_file(path)?,
        None => Account::default(),
    };
    let user = account.user.clone().or(dsn_user).or(file.user);
    let password = if account.ask_password {
        Some(rpassword::prompt_password("Password: ").context("cannot read the password")?)
    } else {
        std::env::var("SCALEPROF_PASSWORD").ok().or(file.password)
    };
    let user = user
        .or_else(|| std::env::var("USER").ok().filter(|name| !name.is_empty()))
        .or_else(own_name)
        .context("the user name is missing\nfix: give --user NAME")?;
    let who = Credentials {
        user,
        password: password.map(Password::new),
        database: None,
        tls: tls.clone().or(file.tls).read(&endpoint)?,
    };
    Ok(Some((endpoint, who)))
}

/// The name of the user that this program runs as, by the list of users.
fn own_name() -> Option<String> {
    let own = rustix::process::geteuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let lines = users.lines().map(|line| line.split(':').collect::<Vec<&str>>());
    let mine = lines.into_iter().find(|fields| fields.get(2) == Some(&own.as_str()))?;
    Some((*mine.first()?).to_owned())
}

/// Reads `mysql://USER@HOST:PORT`.
fn parse_dsn(dsn: &str) -> anyhow::Result<(Endpoint, Option<String>)> {
    // The text is not quoted in any message: it may hold a password.
    let rest = dsn
        .strip_prefix("mysql://")
        .or_else(|| dsn.strip_prefix("mariadb://"))
        .context("--dsn: mysql://USER@HOST:PORT required")?;
    let rest = rest.trim_end_matches('/');
    let (user, address) = match rest.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => bail!(
            "--dsn: no password, because other users can read the command line\nfix: set SCALEPROF_PASSWORD, or give \
             --defaults-file or --ask-password"
        ),
        Some((user, address)) => (Some(user.to_owned()), address),
        None => (None, rest),
    };
    if address.contains(['/', '?']) {
        bail!("--dsn: only USER@HOST:PORT is possible; the schema is always that of the load");
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) if !host.ends_with(':') => (
            host,
            port.parse().context("--dsn: a port is required after the last colon")?,
        ),
        _ => (address, DEFAULT_PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() {
        bail!("--dsn: the host is missing");
    }
    Ok((
        Endpoint::Tcp {
            host: host.to_owned(),
            port,
        },
        user,
    ))
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Account {
    user: Option<String>,
    password: Option<String>,
    tls: TlsArguments,
}

fn read_option_file(path: &Path) -> anyhow::Result<Account> {
    let text = scaleprof_guard::read_option_file(path)
        .with_context(|| format!("cannot read the option file {}", path.display()))?;
    parse_option_file(&text).with_context(|| format!("in {}", path.display()))
}

/// User, password and encryption of the groups `[client]` and `[scaleprof]`.
fn parse_option_file(text: &str) -> anyhow::Result<Account> {
    let mut account = Account::default();
    let mut ours = false;
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[') {
            let group = group.trim_end_matches(']').trim();
            ours = group == "client" || group == "scaleprof";
        } else if ours && !line.starts_with(['#', ';']) {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            let value = value.trim();
            let unquoted = [('"', '"'), ('\'', '\'')]
                .iter()
                .find_map(|&(open, close)| value.strip_prefix(open)?.strip_suffix(close))
                .unwrap_or(value);
            match name.trim() {
                "user" => account.user = Some(unquoted.to_owned()),
                "password" => account.password = Some(unquoted.to_owned()),
                other => {
                    // The rest is for other programs.
                    account.tls.take(other, unquoted)?;
                }
            }
        }
    }
    Ok(account)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scaleprof_wire::TlsMode;

    #[test]
    fn a_dsn_names_user_host_and_port() {
        let (endpoint, user) = parse_dsn("mysql://anna@db.example:3307/").unwrap();
        assert_eq!(endpoint.to_string(), "db.example:3307");
        assert_eq!(user.as_deref(), Some("anna"));
        assert_eq!(parse_dsn("mysql://127.0.0.1").unwrap().0.to_string(), "127.0.0.1:3306");
    }

    #[test]
    fn a_password_in_a_dsn_is_refused_and_not_repeated() {
        let error = parse_dsn("mysql://anna:hunter2@db").unwrap_err().to_string();
        assert!(error.contains("SCALEPROF_PASSWORD") && !error.contains("hunter2"));
    }

    #[test]
    fn option_files_give_the_client_s_account() {
        let text =
            "[mysqld]\nuser=mysql\n[client]\nuser = anna\npassword=\"p=w\"\nssl_ca=/ca.pem\nssl-mode=VERIFY_CA\n";
        let expected = Account {
            user: Some("anna".into()),
            password: Some("p=w".into()),
            tls: TlsArguments {
                ssl_mode: Some(TlsMode::VerifyCa),
                ssl_ca: Some("/ca.pem".into()),
                ..TlsArguments::default()
            },
        };
        assert_eq!(parse_option_file(text).unwrap(), expected);
        let error = parse_option_file("[client]\nssl-mode=sometimes\n").unwrap_err();
        assert!(format!("{error:#}").contains("'sometimes'"));
    }
}
