//! A web server on the loopback: files with ranges and ETags, and answers that break off.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One file.
#[derive(Debug, Clone, Default)]
pub struct File {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// After so many bytes of an answer the connection ends.
    pub breaks_after: Option<usize>,
    /// Pause after every 64 KiB.
    pub pause: Duration,
    /// Whether it knows of parts.
    pub has_no_parts: bool,
}

/// A running server. It ends with the test.
pub struct Web {
    address: String,
    files: Arc<Mutex<HashMap<String, File>>>,
    asked: Arc<Mutex<Vec<String>>>,
    ended: Arc<AtomicBool>,
}

impl Web {
    /// Listens on a free port of loopback.
    pub fn start() -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let web = Web {
            address: address.clone(),
            files: Arc::default(),
            asked: Arc::default(),
            ended: Arc::default(),
        };
        let (files, asked, ended) = (web.files.clone(), web.asked.clone(), web.ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let (files, asked) = (files.clone(), asked.clone());
                // A client that goes away is what some tests are about.
                std::thread::spawn(move || drop(answer(stream, &files, &asked)));
            }
        });
        web
    }

    /// The address of a file.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves a file from now on.
    pub fn put(&self, path: &str, file: File) {
        self.files.lock().expect("the files").insert(path.to_owned(), file);
    }

    /// Serves these bytes from now on.
    pub fn put_bytes(&self, path: &str, bytes: &[u8]) {
        self.put(
            path,
            File {
                bytes: bytes.to_vec(),
                ..File::default()
            },
        );
    }

    /// Paths that were asked for, with the range where one was.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("the list").clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the listener.
        drop(TcpStream::connect(&self.address));
    }
}

fn answer(stream: TcpStream, files: &Mutex<HashMap<String, File>>, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let range = headers.get("range").cloned();
    asked.lock().expect("the list").push(
        format!("{path} {}", range.clone().unwrap_or_default())
            .trim()
            .to_owned(),
    );
    let mut stream = stream;
    let file = files.lock().expect("the files").get(&path).cloned();
    let Some(file) = file else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone");
    };
    let tag = format!("\"{}\"", file.bytes.len());
    let same = headers.get("if-range").is_none_or(|wanted| *wanted == tag);
    let start = range
        .filter(|_| same && !file.has_no_parts)
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let body = file.bytes.get(start.unwrap_or(0)..).unwrap_or_default();
    let status = match start {
        Some(start) => format!(
            "206 Partial Content\r\nContent-Range: bytes {start}-{}/{}",
            file.bytes.len() - 1,
            file.bytes.len()
        ),
        None => "200 OK".to_owned(),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: {tag}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    let body = body.get(..file.breaks_after.unwrap_or(body.len())).unwrap_or(body);
    for piece in body.chunks(1 << 16) {
        stream.write_all(piece)?;
        std::thread::sleep(file.pause);
    }
    Ok(())
}
