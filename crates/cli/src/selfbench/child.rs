//! Running a client as a process and taking its CPU time.

use super::{Case, TABLES};
use anyhow::{Context, bail};
use scaleprof_guard::with_clean_environment;
use scaleprof_workload::TransportChoice;
use scaleprof_workload::schema::SCHEMA;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What one process did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) transactions: f64,
    pub(super) per_second: f64,
    pub(super) cpu_user_seconds: f64,
    pub(super) cpu_system_seconds: f64,
    pub(super) resident_mib: f64,
    pub(super) elapsed_seconds: f64,
    /// Shortest latency that was seen, microseconds.
    pub(super) floor_us: Option<f64>,
    /// X·R/N.
    pub(super) little: Option<f64>,
}

impl Measured {
    pub(super) fn cpu_us_per_transaction(&self) -> f64 {
        (self.cpu_user_seconds + self.cpu_system_seconds) * 1e6 / self.transactions
    }
}

/// What the kernel accounts to a process that has ended, and what it printed.
struct Ended {
    output: String,
    user: f64,
    system: f64,
    resident_mib: f64,
    elapsed: f64,
}

fn run(command: &mut Command) -> anyhow::Result<Ended> {
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
    let mut output = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        std::io::Read::read_to_string(&mut pipe, &mut output)?;
    }
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, and wait4 writes into it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child is ours and has not been waited for.
    let pid = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
    let elapsed = began.elapsed().as_secs_f64();
    if pid < 0 || !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != 0 {
        bail!("{} failed:\n{output}", command.get_program().to_string_lossy());
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok(Ended {
        output,
        user: seconds(usage.ru_utime),
        system: seconds(usage.ru_stime),
        resident_mib: usage.ru_maxrss as f64 / 1024.0,
        elapsed,
    })
}

fn measured(ended: &Ended, transactions: f64, per_second: f64) -> Measured {
    Measured {
        transactions,
        per_second,
        cpu_user_seconds: ended.user,
        cpu_system_seconds: ended.system,
        resident_mib: ended.resident_mib,
        elapsed_seconds: ended.elapsed,
        floor_us: None,
        little: None,
    }
}

/// The arguments of one load by scaleprof.
pub(super) fn load_command(
    socket: &Path,
    case: Case,
    seconds: u32,
    transport: TransportChoice,
) -> anyhow::Result<Command> {
    let mut command = ourselves()?;
    command
        .arg("--socket")
        .arg(socket)
        .args(["--workload", case.workload.name()])
        .args(["--tables", &TABLES.to_string(), "--rows", &case.rows.to_string()])
        .args(["--connections", &case.connections.to_string()])
        .args(["--seconds", &seconds.to_string()])
        .args(["--transport", &transport.to_string()]);
    Ok(command)
}

/// Set for the processes that a measurement starts: without it, nobody has asked for this load.
pub(crate) const LOAD_PROCESS: &str = "SCALEPROF_LOAD_PROCESS";

fn ourselves() -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot find our own executable")?);
    with_clean_environment(&mut command, &[]);
    command.args(["selfbench", "load-process"]).env(LOAD_PROCESS, "1");
    Ok(command)
}

/// One load by scaleprof.
pub(super) fn ours(socket: &Path, case: Case, transport: TransportChoice) -> anyhow::Result<Measured> {
    let mut command = load_command(socket, case, case.seconds, transport)?;
    let ended = run(&mut command)?;
    let json: serde_json::Value = serde_json::from_str(&ended.output).context("reading our own figures")?;
    let figure = |value: &serde_json::Value| value.as_f64().context("a figure of ours is missing");
    Ok(Measured {
        floor_us: json["latency_us"]["min"].as_f64(),
        little: json["littles_law_ratio"].as_f64(),
        ..measured(
            &ended,
            figure(&json["transactions"])?,
            figure(&json["transactions_per_second"])?,
        )
    })
}

pub(super) fn has_sysbench() -> bool {
    Command::new("sysbench")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn sysbench_command(socket: &Path, schema: &str, rows: u32) -> Command {
    let mut command = Command::new("sysbench");
    with_clean_environment(&mut command, &[]);
    command
        .arg(format!("--mysql-socket={}", socket.display()))
        .arg("--mysql-user=root")
        .arg(format!("--mysql-db={schema}"))
        .arg(format!("--tables={TABLES}"))
        .arg(format!("--table-size={rows}"))
        .arg("--rand-type=uniform");
    command
}

/// One load by sysbench.
pub(super) fn sysbench(socket: &Path, case: Case) -> anyhow::Result<Measured> {
    let mut command = sysbench_command(socket, SCHEMA, case.rows);
    command
        .arg(format!("--threads={}", case.connections))
        .arg(format!("--time={}", case.seconds))
        .args([case.workload.name(), "run"]);
    let ended = run(&mut command)?;
    let (transactions, per_second) = parse_transactions(&ended.output).context("sysbench printed no transactions")?;
    Ok(Measured {
        floor_us: parse_minimum_us(&ended.output),
        ..measured(&ended, transactions, per_second)
    })
}

/// Reads `transactions:   187060 (46705.07 per sec.)`.
fn parse_transactions(output: &str) -> Option<(f64, f64)> {
    let line = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("transactions:"))?;
    let (count, rest) = line.trim().split_once(char::is_whitespace)?;
    let rate = rest.trim().strip_prefix('(')?.split_whitespace().next()?;
    Some((count.parse().ok()?, rate.parse().ok()?))
}

/// Reads `min:    0.03` of the latency table, milliseconds there.
fn parse_minimum_us(output: &str) -> Option<f64> {
    let text = output.lines().find_map(|line| line.trim().strip_prefix("min:"))?;
    Some(text.trim().parse::<f64>().ok()? * 1000.0)
}

/// Fills our schema.
pub(super) fn fill_ours(socket: &Path, rows: u32) -> anyhow::Result<Measured> {
    let mut command = ourselves()?;
    command
        .arg("--socket")
        .arg(socket)
        .args(["--workload", "oltp_read_write", "--connections", "1", "--seconds", "1"])
        .args(["--tables", &TABLES.to_string(), "--rows", &rows.to_string()])
        .args(["--fill", &TABLES.to_string()]);
    let ended = run(&mut command)?;
    let count = f64::from(rows) * f64::from(TABLES);
    Ok(measured(&ended, count, count / ended.elapsed))
}

/// Lets sysbench fill a schema of its own.
pub(super) fn fill_sysbench(socket: &Path, rows: u32) -> anyhow::Result<Measured> {
    const THEIRS: &str = "sbtest";
    let endpoint = scaleprof_wire::Endpoint::Unix(socket.to_path_buf());
    let mut client = scaleprof_wire::Client::connect(&endpoint, &scaleprof_wire::Credentials::user("root"))?;
    // The server is our own sandbox: nobody else has a schema of this name in it.
    client.execute(&format!("DROP DATABASE IF EXISTS {THEIRS}"))?;
    client.execute(&format!("CREATE DATABASE {THEIRS}"))?;
    let mut command = sysbench_command(socket, THEIRS, rows);
    command
        .arg(format!("--threads={TABLES}"))
        .args(["oltp_read_write", "prepare"]);
    let ended = run(&mut command)?;
    let count = f64::from(rows) * f64::from(TABLES);
    Ok(measured(&ended, count, count / ended.elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysbench_s_report_is_read() {
        let output = "SQL statistics:\n    transactions:                        187060 (46705.07 per sec.)\n\
                      Latency (ms):\n         min:                                    0.03\n";
        assert_eq!(parse_transactions(output), Some((187_060.0, 46_705.07)));
        assert_eq!(parse_minimum_us(output), Some(30.0));
    }
}
