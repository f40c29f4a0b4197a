//! What the tests share: archives with a made-up server, a web server of this process, a listener.

pub mod web;

use scaleprof_builds::{Error, Fetched, Progress, Request, Shelf, fetch};
use std::io::Write;
use std::sync::atomic::AtomicBool;

/// A script that says what a server says when it is asked for its version.
pub fn server(version: &str) -> Vec<u8> {
    format!("#!/bin/sh\necho \"mysqld  Ver {version} for Linux on x86_64 (MySQL Community Server (GPL))\"\n")
        .into_bytes()
}

/// A tar of a made-up server with a library of so many incompressible bytes.
pub fn tar(version: &str, ballast: usize) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    let mut put = |name: &str, mode: u32, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_cksum();
        builder
            .append_data(&mut header, format!("mysql-{version}/{name}"), content)
            .expect("packed");
    };
    put("bin/mysqld", 0o755, &server(version));
    put("share/english/errmsg.sys", 0o644, b"messages");
    put("mysql-test/t/1st.test", 0o644, b"not kept");
    put("data/ibdata1", 0o644, b"not kept");
    put("lib/ballast", 0o644, &noise(ballast));
    builder.into_inner().expect("packed")
}

/// The same, compressed by gzip.
pub fn tar_gz(version: &str, ballast: usize) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&tar(version, ballast)).expect("packed");
    gzip.finish().expect("packed")
}

/// Bytes that look like chance and are the same every time.
pub fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(length).collect()
}

/// Keeps what it is told.
#[derive(Debug, Default)]
pub struct Heard {
    /// Stages.
    pub stages: Vec<String>,
    /// Notes.
    pub notes: Vec<String>,
    /// The most bytes of a stage, and of how many.
    pub most: (u64, Option<u64>),
}

impl Progress for Heard {
    fn stage(&mut self, what: &str) {
        self.stages.push(what.to_owned());
    }

    fn bytes(&mut self, done: u64, of: Option<u64>) {
        self.most = self.most.max((done, of));
    }

    fn share(&mut self, _done: f64) {}

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// A request for a source under its own name.
pub fn request(source: &str) -> Request {
    Request {
        source: source.parse().expect("a source"),
        name: None,
        sha256: None,
        force: false,
        repository: None,
    }
}

/// Fetches with nobody who stops it.
pub fn fetched(shelf: &Shelf, request: &Request) -> (Result<Fetched, Error>, Heard) {
    let mut heard = Heard::default();
    let result = fetch(shelf, request, &mut heard, &AtomicBool::new(false));
    (result, heard)
}

/// A shelf that goes with the test.
pub fn shelf() -> (tempfile::TempDir, Shelf) {
    let folder = tempfile::tempdir().expect("a folder");
    let shelf = Shelf::at(&folder.path().join("servers")).expect("a shelf");
    (folder, shelf)
}

/// What lies in a shelf's folder, hidden things too.
pub fn everything(shelf: &Shelf) -> Vec<String> {
    let entries = std::fs::read_dir(shelf.path()).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
