//! Making the system tables of an empty data folder.

use crate::capabilities::Initialise;
use crate::error::Error;
use crate::error_log::Reason;
use crate::process::{Launch, ServerProcess};
use scaleprof_guard::replace;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Longest time for it. MySQL 9 needs 5 s here; slow disks and busy machines many times that.
const LONGEST: Duration = Duration::from_secs(600);

/// Runs the server once so that it makes its system tables. `launch` is how the server is started later: with the
/// same option file, so that its files have the right sizes at once.
pub(crate) fn initialise(
    how: &Initialise,
    launch: &Launch,
    watch_over: impl FnOnce(u32) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut launch = launch.clone();
    // In a folder of ours: the server reads it from its standard input.
    let sql = launch.folder.join("initialise.sql");
    let write = |text: &str| {
        let written = replace(&sql, |file| {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(text.as_bytes())
        });
        written.map_err(Error::system("write", &sql))
    };
    match how {
        Initialise::Itself => launch.arguments.push("--initialize-insecure".to_owned()),
        Initialise::Bootstrap { before, scripts, after } => {
            let mut text = before.clone();
            for script in scripts {
                // It goes to the server, and so must be something that its user may read: no link to what root alone may.
                let real = fs::canonicalize(script).map_err(Error::system("resolve", script))?;
                if let Some(user) = &launch.user {
                    user.check_reach(&real)?;
                }
                let bytes = fs::read(&real).map_err(Error::system("read", &real))?;
                text.push_str(&String::from_utf8_lossy(&bytes));
                text.push('\n');
            }
            text.push_str(after);
            write(&text)?;
            // What mysql_install_db adds: statements longer than the default packet, and no pages of warnings.
            let options = [
                "--bootstrap",
                "--log-warnings=0",
                "--max-allowed-packet=8M",
                "--net-buffer-length=16K",
            ];
            launch.arguments.extend(options.map(str::to_owned));
            // MariaDB: another engine may be enforced, but system tables have theirs.
            launch.arguments.push("--loose-enforce-storage-engine=".to_owned());
            launch.input = Some(sql.clone());
        }
    }
    let mut process = ServerProcess::start(&launch)?;
    watch_over(process.pid())?;
    let death = process.wait_for_end(LONGEST);
    if launch.input.is_some() {
        fs::remove_file(&sql).map_err(Error::system("remove", &sql))?;
    }
    match (&death.reason, death.exit_code) {
        (_, Some(0)) => Ok(()),
        (Some((Reason::Setting, line)), _) => Err(Error::SettingRefused {
            line: line.clone(),
            binary: launch.binary,
        }),
        _ => Err(Error::Initialise {
            binary: launch.binary,
            death,
        }),
    }
}
