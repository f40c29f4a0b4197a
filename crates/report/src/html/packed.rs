//! Text for the page that would be large as it is: base64 of a raw deflate stream (RFC 1951) of JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use std::io::{self, Write};

/// A value as such text; empty where it cannot be written as JSON. `web/src/packed.ts` reads it.
pub(super) fn packed_json(value: &impl Serialize) -> String {
    // Nothing is written but to memory, which has no errors; a page without one of its parts would still be one.
    pack(value).unwrap_or_default()
}

fn pack(value: &impl Serialize) -> io::Result<String> {
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::best());
    deflated.write_all(&serde_json::to_vec(value)?)?;
    Ok(STANDARD.encode(deflated.finish()?))
}

/// What was packed, as JSON.
#[cfg(test)]
pub(super) fn unpacked(text: &str) -> serde_json::Value {
    let deflated = STANDARD.decode(text).expect("base64");
    serde_json::from_reader(flate2::read::DeflateDecoder::new(deflated.as_slice())).expect("JSON")
}
