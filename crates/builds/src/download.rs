//! Downloads a file by curl, which knows the machine's proxies and certificates; goes on where an earlier try stopped.

use crate::child;
use crate::error::Error;
use crate::progress::Watcher;
use crate::source::without_account;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often a download that broke off is taken up again.
const TRIES: u32 = 4;
/// Exit codes of curl(1) for what may go better the next time: no connection, a part only, too slow, a broken stream.
const BROKE_OFF: [i32; 10] = [5, 6, 7, 16, 18, 28, 35, 52, 56, 92];
/// The server gives no part of the file, or the file is another one by now.
const NO_PART: [i32; 2] = [33, 36];
const HTTP_ERROR: i32 = 22;

/// What has to be known to go on with a part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    url: String,
    /// Bytes of the whole file.
    length: u64,
    /// What tells this version of the file from others: a strong ETag, or the date of its last change.
    version: String,
}

/// What the last of a chain of answers said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Headers {
    length: Option<u64>,
    version: Option<String>,
}

/// Downloads to `to`, unless it is there whole from an earlier try.
///
/// # Errors
/// The server has it not or cannot be reached; the disk is full; the user said stop. What was downloaded stays, for the next try.
pub(crate) fn fetch(url: &str, to: &Path, watcher: &mut Watcher<'_>) -> Result<(), Error> {
    if to.is_file() {
        return Ok(());
    }
    let shown = without_account(url);
    let beside = |ending: &str| {
        let mut name = to.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let (part, facts, headers) = (beside(".part"), beside(".part.json"), beside(".part.headers"));
    let mut last = String::new();
    for attempt in 0..TRIES {
        let known = known(&facts, &shown, &part);
        let have = known.as_ref().map_or(0, |_| length(&part));
        if known.as_ref().is_some_and(|known| known.length == have) {
            return whole(&part, to, &[&facts, &headers]);
        }
        let _ = fs::remove_file(&headers);
        let mut curl = curl();
        curl.args(["--fail", "--speed-limit", "1000", "--speed-time", "60", "--dump-header"])
            .arg(&headers)
            .arg("--output")
            .arg(&part);
        if let Some(known) = &known {
            curl.args([
                "--continue-at",
                "-",
                "--header",
                &format!("If-Range: {}", known.version),
            ]);
        }
        curl.args(["--url", url]);
        let mut total = known.as_ref().map(|known| known.length);
        let mut kept = known.is_some();
        let ended = child::run(&mut curl, "curl", "curl", watcher, |_, watcher| {
            if !kept && let Some(found) = read_headers(&headers) {
                kept = true;
                total = found.length;
                keep(&facts, &shown, &found);
            }
            watcher.progress.bytes(length(&part), total);
        })?;
        match ended.status.code() {
            Some(0) => return whole(&part, to, &[&facts, &headers]),
            Some(code) if NO_PART.contains(&code) => remove(&[&part, &facts])?,
            Some(code) if BROKE_OFF.contains(&code) => {
                last = ended.complaint();
                watcher.progress.note(&format!("{last}; trying again"));
                pause(attempt, watcher)?;
            }
            Some(HTTP_ERROR) => match refusal(&ended.complaint()) {
                // What was asked for lies behind the end: the part is not of this file.
                Refusal::NoSuchPart => remove(&[&part, &facts])?,
                Refusal::Later => {
                    last = ended.complaint();
                    watcher.progress.note(&format!("{last}; trying again"));
                    pause(attempt, watcher)?;
                }
                Refusal::Never(reason) => {
                    remove(&[&part, &facts, &headers])?;
                    return Err(Error::Download { url: shown, reason });
                }
            },
            _ => {
                last = ended.complaint();
                break;
            }
        }
    }
    Err(Error::Download {
        url: shown,
        reason: format!("{last}. What came is kept: the same command goes on from there"),
    })
}

fn curl() -> Command {
    let mut curl = child::program("curl");
    // Nothing but the web, whatever an answer redirects to.
    curl.args([
        "--silent",
        "--show-error",
        "--location",
        "--proto",
        "=http,https",
        "--proto-redir",
        "=http,https",
    ]);
    curl.args(["--connect-timeout", "30", "--max-redirs", "10"]);
    curl
}

/// What an answer of 400 or more means for a download.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    NoSuchPart,
    Later,
    Never(String),
}

/// Of `curl: (22) The requested URL returned error: 404`.
fn refusal(complaint: &str) -> Refusal {
    let status = complaint.rsplit("error: ").next().unwrap_or_default();
    match status.get(..3).unwrap_or_default() {
        "416" => Refusal::NoSuchPart,
        "408" | "429" => Refusal::Later,
        code if code.starts_with('5') => Refusal::Later,
        _ => Refusal::Never(complaint.trim_start_matches("curl: (22) ").to_owned()),
    }
}

/// Waits before the next try, 1, 2, 4 s.
fn pause(attempt: u32, watcher: &Watcher<'_>) -> Result<(), Error> {
    for _ in 0..(10 << attempt.min(3)) {
        watcher.go_on()?;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    Ok(())
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |facts| facts.len())
}

/// What is known of a part, if it is one of this file and no longer than the whole.
fn known(facts: &Path, url: &str, part: &Path) -> Option<Part> {
    let known: Part = serde_json::from_str(&fs::read_to_string(facts).ok()?).ok()?;
    let have = length(part);
    (known.url == url && have > 0 && have <= known.length).then_some(known)
}

fn keep(facts: &Path, url: &str, found: &Headers) {
    if let (Some(length), Some(version)) = (found.length, &found.version) {
        let part = Part {
            url: url.to_owned(),
            length,
            version: version.clone(),
        };
        // Without it the next try starts from the beginning, no more.
        if let Ok(text) = serde_json::to_string(&part) {
            let _ = fs::write(facts, text);
        }
    }
}

fn whole(part: &Path, to: &Path, others: &[&Path]) -> Result<(), Error> {
    fs::rename(part, to).map_err(Error::system("keep", to))?;
    remove(others)
}

fn remove(paths: &[&Path]) -> Result<(), Error> {
    for path in paths {
        match fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::system("remove", path)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_headers(path: &Path) -> Option<Headers> {
    headers(&String::from_utf8_lossy(&fs::read(path).ok()?))
}

/// The headers of the last answer, once they are whole; none before, and none of a redirection.
fn headers(text: &str) -> Option<Headers> {
    let text = text.replace("\r\n", "\n");
    let block = text.rsplit("HTTP/").next().filter(|_| text.starts_with("HTTP/"))?;
    let (block, _) = block.split_once("\n\n")?;
    let status = block.split_whitespace().nth(1)?;
    if !status.starts_with('2') {
        return None;
    }
    let value = |name: &str| {
        block.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let length = match value("content-range") {
        Some(range) => range.rsplit('/').next().and_then(|whole| whole.parse().ok()),
        None => value("content-length").and_then(|length| length.parse().ok()),
    };
    // A weak ETag may be that of other bytes (RFC 9110, 13.1.5).
    let tag = value("etag").filter(|tag| !tag.starts_with("W/"));
    Some(Headers {
        length,
        version: tag.or_else(|| value("last-modified")),
    })
}

/// The text of a small file, such as a checksum; none where the server has no such file.
///
/// # Errors
/// The server cannot be reached, or fails.
pub(crate) fn text(url: &str, watcher: &mut Watcher<'_>) -> Result<Option<String>, Error> {
    let mut curl = curl();
    curl.args(["--max-time", "60", "--retry", "3", "--max-filesize", "1000000"])
        .args(["--write-out", "\n%{http_code}", "--url", url]);
    let ended = child::run(&mut curl, "curl", "curl", watcher, |_, _| {})?;
    let failed = |reason: String| Error::Download {
        url: without_account(url),
        reason,
    };
    if !ended.status.success() {
        return Err(failed(ended.complaint()));
    }
    let (body, code) = ended.output.rsplit_once('\n').unwrap_or(("", &ended.output));
    match code {
        "200" => Ok(Some(body.to_owned())),
        // What a server says of a file that it has not, or does not show.
        "401" | "403" | "404" | "410" => Ok(None),
        _ => Err(failed(format!("the server answers {code}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_answer_of_a_chain_counts_once_it_is_whole() {
        let redirected = "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 7\r\n\r\n";
        assert_eq!(headers(redirected), None);
        let whole = format!("{redirected}HTTP/2 200 \r\ncontent-length: 100\r\netag: \"abc\"\r\n\r\n");
        let found = headers(&whole).expect("whole");
        assert_eq!((found.length, found.version.as_deref()), (Some(100), Some("\"abc\"")));
        assert_eq!(headers("HTTP/1.1 200 OK\r\nContent-Length: 1"), None, "more may come");
        let part = "HTTP/1.1 206 Partial\r\nContent-Length: 5\r\nContent-Range: bytes 95-99/100\r\nETag: W/\"x\"\r\n\
                    Last-Modified: Tue\r\n\r\n";
        let found = headers(part).expect("whole");
        assert_eq!((found.length, found.version.as_deref()), (Some(100), Some("Tue")));
    }

    #[test]
    fn a_server_in_trouble_is_asked_again_and_one_that_says_no_is_not() {
        let says = |code: u32| refusal(&format!("curl: (22) The requested URL returned error: {code}"));
        assert_eq!(says(503), Refusal::Later);
        assert_eq!(says(416), Refusal::NoSuchPart);
        assert_eq!(
            says(404),
            Refusal::Never("The requested URL returned error: 404".to_owned())
        );
    }

    #[test]
    fn a_part_of_another_file_is_not_gone_on_with() {
        let folder = tempfile::tempdir().expect("a folder");
        let (facts, part) = (folder.path().join("f"), folder.path().join("p"));
        let found = Headers {
            length: Some(10),
            version: Some("v".to_owned()),
        };
        keep(&facts, "http://h/a", &found);
        fs::write(&part, "12345").expect("written");
        assert!(known(&facts, "http://h/a", &part).is_some());
        assert!(known(&facts, "http://h/b", &part).is_none());
        fs::write(&part, "12345678901").expect("written");
        assert!(known(&facts, "http://h/a", &part).is_none(), "longer than the whole");
    }
}
