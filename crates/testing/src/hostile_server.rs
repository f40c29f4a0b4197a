//! A server of the MySQL protocol that means harm: it floods, drips, hangs or never comes to an end.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What a hostile server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malice {
    /// Accepts and says nothing.
    Silence,
    /// Greets with one byte every 50 ms of a packet that is said to have 16 MiB.
    Drip,
    /// Greets with packets of 16 MiB that are continued without end.
    EndlessPacket,
    /// Switches the authentication again and again.
    EndlessSwitches,
    /// Lets us in and answers no statement.
    SilentAnswers,
    /// Answers the first statement with one byte every 50 ms.
    DrippedAnswer,
    /// Announces 2^64-1 columns, and they come.
    EndlessColumns,
    /// One column, rows without end.
    EndlessRows,
    /// Results without rows that say that more follow.
    EndlessResults,
    /// Answers statements, prepares them, and answers their execution with rows without end.
    EndlessRowsForTheLoad,
    /// The same with a first packet that is said to have 16 MiB.
    HugeHeadForTheLoad,
}

/// Longest that one connection is served, however it goes.
const LONGEST: Duration = Duration::from_secs(90);

/// One that listens on the loopback interface until this process ends.
pub struct HostileServer {
    /// Its port.
    pub port: u16,
    accepted: Arc<AtomicUsize>,
}

impl HostileServer {
    /// How many connections it took.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Starts one.
///
/// # Panics
/// There is no port, or no thread.
pub fn start(malice: Malice) -> HostileServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let accepted = Arc::new(AtomicUsize::new(0));
    let server = HostileServer {
        port,
        accepted: accepted.clone(),
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            accepted.fetch_add(1, Ordering::Relaxed);
            // It ends with an error when the client leaves.
            std::thread::spawn(move || serve(malice, &stream).unwrap_or_default());
        }
    });
    server
}

fn serve(malice: Malice, mut stream: &TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(LONGEST))?;
    stream.set_read_timeout(Some(LONGEST))?;
    match malice {
        Malice::Silence => return until_it_leaves(stream),
        Malice::Drip => {
            stream.write_all(b"\xff\xff\xff\0")?;
            return again_and_again(stream, b"\x0a", Duration::from_millis(50));
        }
        Malice::EndlessPacket => {
            let mut part = b"\xff\xff\xff\0".to_vec();
            part.resize(4 + 0xff_ffff, 0x0a);
            return again_and_again(stream, &part, Duration::ZERO);
        }
        _ => {}
    }
    stream.write_all(&packet(0, &greeting()))?;
    let _ = receive(stream)?;
    if malice == Malice::EndlessSwitches {
        let switch = [&b"\xfemysql_native_password\0"[..], &[b'B'; 20], b"\0"].concat();
        let began = Instant::now();
        while began.elapsed() < LONGEST {
            stream.write_all(&packet(2, &switch))?;
            let _ = receive(stream)?;
        }
        return Ok(());
    }
    stream.write_all(&packet(2, OK))?;
    loop {
        let statement = receive(stream)?;
        let text = String::from_utf8_lossy(statement.get(1..).unwrap_or_default());
        match (malice, statement.first()) {
            (Malice::EndlessRowsForTheLoad, Some(&EXECUTE)) => return endless_rows(stream),
            (Malice::HugeHeadForTheLoad, Some(&EXECUTE)) => {
                stream.write_all(b"\xff\xff\xff\x01")?;
                return again_and_again(stream, &[0; 65_536], Duration::ZERO);
            }
            (_, Some(&PREPARE)) => {
                let parameters = text.matches('?').count() as u16;
                stream.write_all(&prepared(parameters))?;
            }
            (Malice::EndlessRowsForTheLoad | Malice::HugeHeadForTheLoad, _) => stream.write_all(&packet(1, OK))?,
            (Malice::SilentAnswers, _) => return until_it_leaves(stream),
            (Malice::DrippedAnswer, _) => {
                stream.write_all(b"\xff\xff\x01\x01")?;
                return again_and_again(stream, b"\0", Duration::from_millis(50));
            }
            (Malice::EndlessColumns, _) => {
                stream.write_all(&packet(1, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff"))?;
                return again_and_again(stream, &column(&[b'c'; 200]).repeat(50), Duration::ZERO);
            }
            (Malice::EndlessRows, _) => return endless_rows(stream),
            (Malice::EndlessResults, _) => {
                let more = packet(1, b"\0\0\0\x0a\0\0\0");
                return again_and_again(stream, &more.repeat(100), Duration::ZERO);
            }
            _ => return Ok(()),
        }
    }
}

const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const OK: &[u8] = b"\0\0\0\x02\0\0\0";

fn endless_rows(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(&packet(1, b"\x01"))?;
    stream.write_all(&column(b"c"))?;
    // Small ones: of these a value's own memory counts most.
    again_and_again(stream, &packet(3, b"\x01r").repeat(500), Duration::ZERO)
}

fn again_and_again(mut stream: &TcpStream, bytes: &[u8], pause: Duration) -> io::Result<()> {
    let began = Instant::now();
    while began.elapsed() < LONGEST {
        stream.write_all(bytes)?;
        std::thread::sleep(pause);
    }
    Ok(())
}

fn until_it_leaves(mut stream: &TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    out.push(sequence);
    out.extend_from_slice(payload);
    out
}

fn receive(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut head = [0; 4];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
    stream.read_exact(&mut payload)?;
    Ok(payload)
}

/// The greeting of a 5.7 without encryption that ends rows without EOF packets.
fn greeting() -> Vec<u8> {
    let capabilities = (!(1_u32 << 11)).to_le_bytes();
    [
        &b"\x0a5.7.44-log\0\x07\0\0\0AAAAAAAA\0"[..],
        &capabilities[..2],
        b"\x2d\x02\0",
        &capabilities[2..],
        b"\x15\0\0\0\0\0\0\0\0\0\0AAAAAAAAAAAA\0mysql_native_password\0",
    ]
    .concat()
}

fn column(name: &[u8]) -> Vec<u8> {
    let definition = [
        b"\x03def\0\0\0",
        &[name.len() as u8][..],
        name,
        b"\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0",
    ];
    packet(2, &definition.concat())
}

/// The answer to PREPARE: statement 1, so many parameters, no columns.
fn prepared(parameters: u16) -> Vec<u8> {
    let head = [&b"\0\x01\0\0\0\0\0"[..], &parameters.to_le_bytes(), b"\0\0\0"].concat();
    let mut out = packet(1, &head);
    for _ in 0..parameters {
        out.extend(column(b"?"));
    }
    out
}
