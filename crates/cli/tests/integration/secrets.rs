//! Looks for secrets in a bundle and in what is made of it, in every form in which they could be written.

use crate::stage::{bundle, scaleprof, succeed};
use std::io::Read;
use std::path::Path;

/// A word in all forms: as it is, and as encodings of text write it.
struct Forms {
    /// Looked for whatever the case of letters.
    plain: Vec<(&'static str, Vec<u8>)>,
    /// Looked for letter by letter.
    exact: Vec<(&'static str, Vec<u8>)>,
}

impl Forms {
    fn of(word: &str) -> Forms {
        let small = word.to_ascii_lowercase();
        let each = |form: &dyn Fn(u8) -> String| small.bytes().map(form).collect::<String>().into_bytes();
        let mut plain = vec![
            ("text", small.clone().into_bytes()),
            ("hexadecimal", each(&|b| format!("{b:02x}"))),
            ("percent signs", each(&|b| format!("%{b:02x}"))),
            ("JSON escapes", each(&|b| format!("\\u{b:04x}"))),
            ("octal", each(&|b| format!("\\{b:03o}"))),
            (
                "UTF-16, low byte first",
                small.encode_utf16().flat_map(u16::to_le_bytes).collect(),
            ),
            (
                "UTF-16, high byte first",
                small.encode_utf16().flat_map(u16::to_be_bytes).collect(),
            ),
            ("reversed", small.bytes().rev().collect()),
        ];
        // Characters that are not letters may be encoded alone.
        let encoded: String = small
            .chars()
            .map(|c| match c.is_ascii_alphanumeric() || "-_.~".contains(c) {
                true => c.to_string(),
                false => c.to_string().bytes().map(|b| format!("%{b:02x}")).collect(),
            })
            .collect();
        plain.push(("an address", encoded.into_bytes()));
        let mut exact = Vec::new();
        for written in [small.clone(), small.to_ascii_uppercase(), word.to_owned()] {
            for shift in 0..3 {
                exact.push(("base64", base64_inside(written.as_bytes(), shift)));
            }
        }
        Forms { plain, exact }
    }

    /// In which form the word is there.
    fn found_in(&self, bytes: &[u8], small: &[u8]) -> Option<&'static str> {
        let plain = self.plain.iter().find(|(_, form)| contains(small, form));
        let exact = self.exact.iter().find(|(_, form)| contains(bytes, form));
        plain.or(exact).map(|(name, _)| *name)
    }
}

/// The part of the word's base64 that is the same whatever stands around it, when `shift` bytes stand before it.
fn base64_inside(word: &[u8], shift: usize) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut padded = vec![0; shift];
    padded.extend_from_slice(word);
    let whole = padded.len() / 3 * 3;
    let encoded: Vec<u8> = padded[..whole]
        .chunks(3)
        .flat_map(|three| {
            let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
            [18, 12, 6, 0].map(|at| ALPHABET[(bits >> at & 63) as usize])
        })
        .collect();
    // What mixes bits of the word with those before it.
    let mixed = [0, 2, 3][shift];
    encoded[mixed..].to_vec()
}

fn contains(bytes: &[u8], form: &[u8]) -> bool {
    !form.is_empty() && memchr::memmem::find(bytes, form).is_some()
}

/// What is packed into a page: every long run of base64, unpacked, and inflated where it is compressed.
fn packed(page: &[u8]) -> Vec<Vec<u8>> {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut found = Vec::new();
    for run in page.split(|byte| !is_base64(byte)).filter(|run| run.len() >= 64) {
        let bytes = from_base64(run);
        for inflated in [
            read_all(flate2::read::ZlibDecoder::new(&bytes[..])),
            read_all(flate2::read::GzDecoder::new(&bytes[..])),
            read_all(flate2::read::DeflateDecoder::new(&bytes[..])),
        ] {
            found.extend(inflated);
        }
        found.push(bytes);
    }
    found
}

fn read_all(mut packed: impl Read) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    packed.read_to_end(&mut bytes).is_ok().then_some(bytes)
}

fn from_base64(run: &[u8]) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(run.len() * 3 / 4);
    for four in run.chunks(4).filter(|four| four.len() > 1) {
        let bits = four.iter().fold(0u32, |bits, byte| bits << 6 | u32::from(value(*byte)));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

fn every_file(folder: &Path, look: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => every_file(&path, look),
            false => look(&path, &std::fs::read(&path).expect("a file")),
        }
    }
}

/// What is shown, each with what shows it.
type Shown = Vec<(String, Vec<u8>)>;

/// How much a bundle has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bundle {
    /// Rungs that were measured to their end: whatever can be made of a bundle can be made of it.
    Measured,
    /// Less: some commands refuse it, and what they complain of is looked through.
    Partial,
}

/// A page, and what is packed into it.
fn page(name: &str, bytes: Vec<u8>) -> Shown {
    let unpacked = packed(&bytes).into_iter();
    let mut shown: Shown = unpacked.map(|bytes| (format!("{name}, unpacked"), bytes)).collect();
    shown.push((name.to_owned(), bytes));
    shown
}

/// Nothing of `words` in any byte of the bundle, nor in what its compressed tables and its page hold, nor in anything that
/// is made of it.
pub fn bundle_is_free_of(folder: &Path, extent: Bundle, words: &[&str]) {
    let mut kept = bundle(folder);
    let instructions = kept.instructions().expect("readable");
    kept.path.clear();
    let tables = format!("{kept:?} {instructions:?}");
    let mut shown: Shown = vec![("its tables".to_owned(), tables.into_bytes())];
    every_file(folder, &mut |path, bytes| {
        let name = path.display().to_string();
        match name.ends_with(".html") {
            true => shown.extend(page(&name, bytes.to_vec())),
            false => shown.push((name, bytes.to_vec())),
        }
    });
    for format in ["text", "json", "bug"] {
        let said = succeed(scaleprof().arg("report").arg(folder).args(["--format", format])).0;
        shown.push((format!("the {format} report"), said.into_bytes()));
    }
    shown.extend(whatever_else_is_shown(folder, extent));
    // The search finds what is there.
    none_is_in(&shown, words, &kept.manifest.server.product, 5);
}

/// Nothing of `words` in what `diff` of two bundles beside each other says: text, JSON, and the page with what is packed into it. They
/// are named from beside them, as the terminal repeats what it was given.
pub fn comparison_is_free_of(a: &Path, b: &Path, words: &[&str]) {
    let around = a.parent().expect("a folder around it");
    let names = [a, b].map(|bundle| bundle.file_name().expect("a folder's name"));
    let said = |options: &[&str]| {
        let mut command = scaleprof();
        command.current_dir(around).arg("diff").args(names).args(options);
        succeed(&mut command).0.into_bytes()
    };
    said(&["--html", "compared.html"]);
    let mut shown = page(
        "the page",
        std::fs::read(around.join("compared.html")).expect("it is written"),
    );
    shown.push(("the text".to_owned(), said(&[])));
    shown.push(("the JSON".to_owned(), said(&["--json"])));
    none_is_in(&shown, words, &bundle(a).manifest.server.product, 3);
}

/// None of the words is in anything that is shown, while `known` is found in at least so many places.
fn none_is_in(shown: &Shown, words: &[&str], known: &str, least: usize) {
    // Once for all words: lowering takes longer than looking.
    let small: Vec<Vec<u8>> = shown.iter().map(|(_, bytes)| bytes.to_ascii_lowercase()).collect();
    let found = |word: &str| -> Vec<(&str, &'static str)> {
        let forms = Forms::of(word);
        let both = shown.iter().zip(&small);
        both.filter_map(|((place, bytes), small)| Some((place.as_str(), forms.found_in(bytes, small)?)))
            .collect()
    };
    assert!(found(known).len() >= least, "'{known}' is only in {:?}", found(known));
    for word in words {
        let found = found(word);
        assert!(found.is_empty(), "'{word}' is in {found:?}");
    }
}

/// What the other commands make of a bundle, with their complaints. The bundle is called `.`, as where it lies is the caller's own word.
fn whatever_else_is_shown(folder: &Path, extent: Bundle) -> Shown {
    let mut commands = vec![
        "annotate .".to_owned(),
        "annotate . --json".to_owned(),
        "check --bundle . --json".to_owned(),
    ];
    for format in ["pprof", "folded", "folded-diff", "firefox", "speedscope"] {
        // Rungs that are named are taken, whoever set their limit.
        let rungs = match format {
            "folded-diff" => " --rung 2 --base-rung 1",
            _ => "",
        };
        commands.push(format!(
            "export . --threads all --states all --output - --format {format}{rungs}"
        ));
    }
    let shown = commands.into_iter().flat_map(|command| {
        let mut process = scaleprof();
        process.current_dir(folder).args(command.split(' '));
        let output = process.output().expect("scaleprof starts");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            extent == Bundle::Partial || output.stdout.len() > 100,
            "`{command}` says nothing: {complaints}"
        );
        let mut shown = vec![(format!("what `{command}` complains of"), output.stderr)];
        shown.extend(read_all(flate2::read::GzDecoder::new(&output.stdout[..])).map(|text| (command.clone(), text)));
        shown.push((command, output.stdout));
        shown
    });
    shown.collect()
}

#[test]
fn a_secret_is_found_in_every_form() {
    let text = "Es ist streng Geheim, sagt er: geheim!";
    let forms = Forms::of("geheim");
    let found = |bytes: &[u8]| forms.found_in(bytes, &bytes.to_ascii_lowercase()).is_some();
    assert!(found(text.as_bytes()) && !found(b"gehei"));
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert!(found(&utf16));
    for before in ["", "x", "xy", "xyz"] {
        let secret = format!("{before}geheim, und mehr");
        // As base64 -w0 writes them.
        let encoded = match before {
            "" => "Z2VoZWltLCB1bmQgbWVocg==",
            "x" => "eGdlaGVpbSwgdW5kIG1laHI=",
            "xy" => "eHlnZWhlaW0sIHVuZCBtZWhy",
            _ => "eHl6Z2VoZWltLCB1bmQgbWVocg==",
        };
        assert!(found(encoded.as_bytes()), "{secret}");
        assert_eq!(from_base64(encoded.trim_end_matches('=').as_bytes()), secret.as_bytes());
    }
    assert!(found(b"x=%67%65%68%65%69%6D") && found(b"676568 67656865696D"));
    let mut page = b"<script>".to_vec();
    let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut packer, text.repeat(9).as_bytes()).expect("packed");
    let bytes = packer.finish().expect("packed");
    let mut whole = bytes.clone();
    whole.resize(bytes.len().div_ceil(3) * 3, 0);
    page.extend(base64_inside(&whole, 0));
    page.extend(b"</script>");
    assert!(!found(&page) && packed(&page).iter().any(|bytes| found(bytes)));
}
