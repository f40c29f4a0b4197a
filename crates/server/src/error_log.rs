//! What the server's error log says about its end.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Why a server ended, as far as its error log and the kernel tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A setting that it does not know or take.
    Setting,
    /// The disk is full.
    DiskFull,
    /// Memory could not be had, or the kernel killed it for using too much.
    NoMemory,
    /// It was not allowed to read or write a file.
    Forbidden,
    /// It needs more threads or files than a limit allows.
    Limit,
    /// An assertion failed or a signal was caught: a bug of the server.
    Crash,
}

impl Reason {
    /// What it means.
    pub fn meaning(self) -> &'static str {
        match self {
            Reason::Setting => "it refused a setting",
            Reason::DiskFull => "the disk is full",
            Reason::NoMemory => "not enough memory",
            Reason::Forbidden => "it has no access to a file",
            Reason::Limit => "it reached a limit",
            Reason::Crash => "it crashed; the log has its stack trace",
        }
    }

    /// What to do; `None` for a bug of the server.
    pub fn fix(self) -> Option<&'static str> {
        Some(match self {
            Reason::Setting => "correct or remove that --set",
            Reason::DiskFull => "free space, or name a folder on another disk with --work-dir",
            Reason::NoMemory => {
                "use fewer connections, or a smaller buffer pool with --set innodb_buffer_pool_size=..."
            }
            Reason::Forbidden => {
                "if AppArmor confines the server (aa-status): aa-complain BINARY, or run a copy of the binary from \
                 another folder"
            }
            Reason::Limit => "raise it (ulimit -n, ulimit -u, TasksMax of the systemd unit)",
            Reason::Crash => return None,
        })
    }
}

/// Phrases in lower case. The order matters: a full disk ends in an assertion, too.
const PHRASES: [(Reason, &[&str]); 6] = [
    (
        Reason::DiskFull,
        &[
            "no space left on device",
            "errcode: 28",
            "os errno 28",
            "disk is full",
            "disk full",
            "error number 28",
            "error 28",
            "out of disk space",
        ],
    ),
    (
        Reason::Setting,
        &[
            "unknown variable",
            "unknown option",
            "ambiguous option",
            "unknown suffix",
            "error while setting value",
            "requires an argument",
            "can't find the default",
            "invalid value for",
            "unknown locale",
            "incorrect argument",
            "unrecognized value",
            "requires innodb_",
            "is not a valid collation",
            "unknown character set",
            "unknown collation",
            "wrong value for option",
            "cannot take an argument",
        ],
    ),
    (
        Reason::NoMemory,
        &[
            "cannot allocate memory",
            "out of memory",
            "errno 12",
            "errcode: 12",
            "std::bad_alloc",
            "could not allocate",
        ],
    ),
    (
        Reason::Limit,
        &[
            "can't create thread",
            "can't create a new thread",
            "too many open files",
            "errcode: 24",
            "errno: 11",
        ],
    ),
    (
        Reason::Crash,
        &["got signal", "assertion failure", "got exception", "[fatal]"],
    ),
    (
        Reason::Forbidden,
        &[
            "permission denied",
            "errcode: 13",
            "errno 13",
            "operation not permitted",
        ],
    ),
];

/// The lines of a log that tell most of its end, and the reason they give with the line that gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEnd {
    /// The last complaints, or the last lines of a log without any: a crash writes pages of limits and registers
    /// after what matters.
    pub lines: Vec<String>,
    /// What they tell, and where.
    pub reason: Option<(Reason, String)>,
}

/// Reads the end of a log from the byte `from` on, at most `count` lines. A log that cannot be read is empty.
pub fn read_end(path: &Path, from: u64, count: usize) -> LogEnd {
    let text = read_last(path, from, 256 << 10).unwrap_or_default();
    let all: Vec<&str> = text.lines().collect();
    let mut complaints: Vec<&str> = all.iter().copied().filter(|line| complains(line)).collect();
    // The same complaint a hundred times over would hide the others.
    complaints.dedup_by_key(|line| line.split_once("] ").map_or(*line, |(_, what)| what));
    let telling = if complaints.is_empty() { &all } else { &complaints };
    LogEnd {
        reason: find_reason(&all),
        lines: telling[telling.len().saturating_sub(count)..]
            .iter()
            .map(|line| (*line).to_owned())
            .collect(),
    }
}

fn complains(line: &str) -> bool {
    let marks = ["[ERROR]", "[FATAL]", "ERROR:", "got signal", "Assertion", "exception"];
    marks.iter().any(|mark| line.contains(mark))
}

fn read_last(path: &Path, from: u64, most: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(most)))).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn find_reason(lines: &[&str]) -> Option<(Reason, String)> {
    PHRASES.iter().find_map(|(reason, phrases)| {
        let speaks = |line: &&&str| {
            let lower = line.to_ascii_lowercase();
            // Warnings and notes tell of what the server has coped with, such as a large page it did not get.
            let harmless = lower.contains("[warning]") || lower.contains("[note]") || lower.contains("[system]");
            !harmless && phrases.iter().any(|phrase| lower.contains(phrase))
        };
        lines.iter().find(speaks).map(|line| (*reason, line.trim().to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(line: &str) -> Option<Reason> {
        find_reason(&[line]).map(|(reason, _)| reason)
    }

    #[test]
    fn understands_the_products_ways_to_say_it() {
        let cases = [
            (
                "2026-01-01  1:00:00 0 [ERROR] /usr/sbin/mariadbd: unknown variable 'foo=1'",
                Reason::Setting,
            ),
            (
                "2026-01-01T01:00:00Z 0 [ERROR] [MY-000067] [Server] unknown variable 'foo=1'.",
                Reason::Setting,
            ),
            (
                "2026-01-01 01:00:00 9 [ERROR] mysqld: unknown option '--foo'",
                Reason::Setting,
            ),
            (
                "2026-01-01 1:00 0 [ERROR] mariadbd: Error while setting value 'x' to 'y'",
                Reason::Setting,
            ),
            (
                "2026-01-01 0 [ERROR] InnoDB: Write to file ./ibdata1 failed at offset 0: No space left on device",
                Reason::DiskFull,
            ),
            (
                "[ERROR] mysqld: Disk is full writing './x' (Errcode: 28 - No space left on device)",
                Reason::DiskFull,
            ),
            (
                "[ERROR] InnoDB: Cannot allocate memory for the buffer pool",
                Reason::NoMemory,
            ),
            (
                "[ERROR] mariadbd: Can't create/write to file 'x' (Errcode: 13 \"Permission denied\")",
                Reason::Forbidden,
            ),
            ("mysqld got signal 11 ;", Reason::Crash),
            (
                "[ERROR] Can't create thread to handle new connection(errno= 11)",
                Reason::Limit,
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(reason(line), Some(expected), "{line}");
        }
        assert_eq!(reason("[Note] mariadbd: ready for connections."), None);
        assert_eq!(reason("[Warning] mmap(x bytes) failed; errno 12"), None);
    }

    #[test]
    fn keeps_the_last_lines_and_complaints_before_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("error.log");
        std::fs::write(&log, "one\ntwo\nthree\n").expect("a log");
        assert_eq!(read_end(&log, 0, 2).lines, ["two", "three"]);
        assert_eq!(read_end(&log, 4, 9).lines, ["two", "three"]);
        assert!(read_end(Path::new("/nonexistent"), 0, 9).lines.is_empty());
        std::fs::write(&log, "[ERROR] InnoDB: no\n[Note] x\nMax open files\n").expect("a log");
        assert_eq!(read_end(&log, 0, 9).lines, ["[ERROR] InnoDB: no"]);
    }
}
