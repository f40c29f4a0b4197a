//! Tests with archives that are made to do harm: whatever is in them, nothing outside the tree changes and no link of it leads out.

use crate::archive::{tar, unpack};
use crate::error::Error;
use crate::progress::{Silent, Watcher};
use crate::tree::{AbsoluteLinks, Limits, Tree};
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const SMALL: Limits = Limits {
    bytes: 1 << 20,
    entries: 1000,
};

/// An entry as a hostile hand may write it: the tar crate's own writer refuses names with `..`.
fn entry(kind: u8, name: &str, target: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, b"0000755\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, &[kind]);
    put(157, &target.as_bytes()[..target.len().min(100)]);
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut bytes = header.to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A folder with a tree to unpack into, and a file beside it that must stay as it is.
struct Ground {
    folder: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("tree")).expect("a tree");
        fs::write(folder.path().join("canary"), "alive").expect("written");
        Ground { folder }
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn unpack(&self, entries: &[Vec<u8>], limits: Limits, absolute: AbsoluteLinks) -> Result<(), Error> {
        let bytes = [entries.concat(), vec![0; 1024]].concat();
        let stop = AtomicBool::new(false);
        let mut watcher = Watcher {
            progress: &mut Silent,
            stop: &stop,
        };
        let mut tree = Tree::new(&self.tree(), "it", limits, absolute);
        tar(bytes.as_slice(), &mut tree, &|_| true, &mut watcher, &mut |_| {})?;
        tree.finish()
    }

    fn unpack_file(&self, name: &str, bytes: &[u8], limits: Limits) -> Result<(), Error> {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).expect("written");
        let stop = AtomicBool::new(false);
        let mut watcher = Watcher {
            progress: &mut Silent,
            stop: &stop,
        };
        let mut tree = Tree::new(&self.tree(), "it", limits, AbsoluteLinks::Refused);
        let result = unpack(&path, &mut tree, &|_| true, &mut watcher).and_then(|()| tree.finish());
        fs::remove_file(&path).expect("removed");
        result
    }

    /// Nothing beside the tree changed, and every link of it ends in it, as the kernel sees it.
    fn is_unharmed(&self) {
        let canary = fs::read_to_string(self.folder.path().join("canary"));
        assert_eq!(canary.expect("the canary"), "alive");
        let mut beside: Vec<_> = fs::read_dir(self.folder.path())
            .expect("it")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        beside.sort();
        assert_eq!(beside, ["canary", "tree"]);
        let root = self.tree().canonicalize().expect("the tree");
        let mut ahead = vec![root.clone()];
        while let Some(folder) = ahead.pop() {
            for entry in fs::read_dir(folder).expect("readable").flatten() {
                let kind = entry.file_type().expect("a kind");
                assert!(kind.is_dir() || kind.is_file() || kind.is_symlink());
                if kind.is_dir() {
                    ahead.push(entry.path());
                } else if kind.is_symlink()
                    && let Ok(end) = entry.path().canonicalize()
                {
                    assert!(end.starts_with(&root), "{:?} leads to {end:?}", entry.path());
                }
            }
        }
    }
}

fn refused(entries: &[Vec<u8>], word: &str) {
    let ground = Ground::new();
    let error = ground
        .unpack(entries, SMALL, AbsoluteLinks::Refused)
        .expect_err(word)
        .to_string();
    assert!(error.contains(word), "should say '{word}': {error}");
    ground.is_unharmed();
}

#[test]
fn entries_that_would_lie_outside_are_refused() {
    refused(&[entry(b'0', "../canary", "", b"dead")], "outside");
    refused(&[entry(b'0', "a/../../canary", "", b"dead")], "outside");
    refused(&[entry(b'0', "/tmp/scaleprof-hostile", "", b"dead")], "outside");
    refused(&[entry(b'5', "a/../..", "", b"")], "outside");
    assert!(!Path::new("/tmp/scaleprof-hostile").exists());
}

#[test]
fn links_that_lead_outside_are_refused() {
    refused(&[entry(b'2', "a", "/etc/passwd", b"")], "outside");
    refused(&[entry(b'2', "a/b", "../../canary", b"")], "outside");
    refused(
        &[
            entry(b'2', "d/up", "..", b""),
            entry(b'2', "d/out", "up/../canary", b""),
        ],
        "outside",
    );
    refused(&[entry(b'1', "a", "../canary", b"")], "outside");
    refused(&[entry(b'1', "a", "/etc/passwd", b"")], "outside");
    refused(
        &[entry(b'2', "a", "b", b""), entry(b'1', "c", "a", b"")],
        "another name",
    );
}

#[test]
fn nothing_is_written_through_a_link() {
    let through = [entry(b'2', "a", ".", b""), entry(b'0', "a/canary", "", b"dead")];
    refused(&through, "link and a folder");
    let replaced = Ground::new();
    let twice = [entry(b'2', "a", "b", b""), entry(b'0', "a", "", b"text")];
    replaced
        .unpack(&twice, SMALL, AbsoluteLinks::Refused)
        .expect("the file takes the link's place");
    assert_eq!(fs::read(replaced.tree().join("a")).expect("a file"), b"text");
    replaced.is_unharmed();
}

#[test]
fn devices_and_pipes_are_refused() {
    refused(&[entry(b'3', "null", "", b"")], "device");
    refused(&[entry(b'6', "pipe", "", b"")], "device");
}

#[test]
fn what_never_ends_is_refused() {
    let large = vec![0; SMALL.bytes as usize + 1];
    refused(&[entry(b'0', "zeros", "", &large)], "more than 1 MiB");
    let many: Vec<_> = (0..1001).map(|at| entry(b'0', &format!("f{at}"), "", b"")).collect();
    refused(&many, "more than 1000 files");
    // What tar calls extended headers is kept in memory by its reader.
    let header = vec![b'1'; 3 << 20];
    let endless = entry(b'x', "pax", "", &header);
    let ground = Ground::new();
    let error = ground
        .unpack(
            &[endless],
            Limits {
                bytes: u64::MAX,
                entries: 10,
            },
            AbsoluteLinks::Refused,
        )
        .expect_err("refused")
        .to_string();
    assert!(error.contains("no end"), "{error}");
}

#[test]
fn bombs_of_each_packing_are_stopped_at_the_limit() {
    let zeros = entry(b'0', "zeros", "", &vec![0; 8 << 20]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).expect("packed");
    let zstd = ruzstd::encoding::compress_to_vec(zeros.as_slice(), ruzstd::encoding::CompressionLevel::Fastest);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file("zeros", zip::write::SimpleFileOptions::default())
        .expect("begun");
    zip.write_all(&vec![0; 8 << 20]).expect("packed");
    let zip = zip.finish().expect("packed").into_inner();
    for (name, bytes) in [("gzip", gzip.finish().expect("packed")), ("zstd", zstd), ("zip", zip)] {
        assert!(bytes.len() < 100_000, "{name} is a bomb: {}", bytes.len());
        let ground = Ground::new();
        let error = ground.unpack_file("bomb", &bytes, SMALL).expect_err(name).to_string();
        assert!(error.contains("more than 1 MiB"), "{name}: {error}");
        ground.is_unharmed();
    }
}

#[test]
fn zips_are_held_to_the_same_rules() {
    let packed = |name: &str, mode: u32, content: &[u8]| {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().unix_permissions(mode);
        match mode & 0o170_000 {
            0o120_000 => zip
                .add_symlink(name, String::from_utf8_lossy(content), options)
                .expect("packed"),
            _ => {
                zip.start_file(name, options).expect("begun");
                zip.write_all(content).expect("packed");
            }
        }
        zip.finish().expect("packed").into_inner()
    };
    for (name, mode, content) in [
        ("../canary", 0o100_644, &b"dead"[..]),
        ("/tmp/scaleprof-hostile", 0o100_644, b"dead"),
        ("a", 0o120_777, b"/etc/passwd"),
        ("a/b", 0o120_777, b"../../canary"),
    ] {
        let ground = Ground::new();
        let error = ground
            .unpack_file("hostile.zip", &packed(name, mode, content), SMALL)
            .expect_err(name)
            .to_string();
        assert!(error.contains("outside"), "{name}: {error}");
        ground.is_unharmed();
    }
}

#[test]
fn an_archive_that_is_cut_off_is_no_archive() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&entry(b'0', "file", "", &[7; 5000])).expect("packed");
    let whole = gzip.finish().expect("packed");
    for length in [3, 12, whole.len() / 2, whole.len() - 9] {
        let ground = Ground::new();
        ground
            .unpack_file("cut.tar.gz", &whole[..length], SMALL)
            .expect_err("it is cut off");
    }
}

#[test]
fn links_of_packages_have_the_tree_for_their_root_or_are_left_out() {
    let ground = Ground::new();
    let entries = [
        entry(b'0', "./lib/x/ld-2.31.so", "", b"loader"),
        entry(b'2', "./lib64/ld.so.2", "/lib/x/ld-2.31.so", b""),
        entry(b'2', "./out", "../../canary", b""),
    ];
    ground
        .unpack(&entries, SMALL, AbsoluteLinks::OfTheTree)
        .expect("unpacked");
    assert_eq!(
        fs::read(ground.tree().join("lib64/ld.so.2")).expect("it leads"),
        b"loader"
    );
    assert!(fs::symlink_metadata(ground.tree().join("out")).is_err());
    ground.is_unharmed();
}

fn hostile_entry() -> impl Strategy<Value = (u8, String, String)> {
    let name = prop_oneof![
        6 => "[abc](/[abc]){0,3}",
        1 => "(\\.\\.|\\.|[ab]|/)(/(\\.\\.|\\.|[ab]|)){0,4}",
    ];
    let target = prop_oneof![
        3 => "(\\.\\.|[abc])(/(\\.\\.|\\.|[abc])){0,4}",
        1 => "/[abc](/[abc]){0,2}",
        1 => "(\\.\\./){1,6}canary",
    ];
    let kind = prop_oneof![4 => Just(b'0'), 2 => Just(b'5'), 3 => Just(b'2'), 1 => Just(b'1')];
    (kind, name, target)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn no_archive_reaches_out_of_its_tree(
        entries in proptest::collection::vec(hostile_entry(), 1..10), of_the_tree in any::<bool>()
    ) {
        let ground = Ground::new();
        let bytes: Vec<_> = entries.iter().map(|(kind, name, target)| {
            let content: &[u8] = if *kind == b'0' { b"dead" } else { b"" };
            entry(*kind, name, target, content)
        }).collect();
        let absolute = if of_the_tree { AbsoluteLinks::OfTheTree } else { AbsoluteLinks::Refused };
        // Whether it is refused or not.
        let _ = ground.unpack(&bytes, SMALL, absolute);
        ground.is_unharmed();
    }

    #[test]
    fn a_harmless_archive_unpacks_to_what_is_in_it(
        files in proptest::collection::btree_map("[a-d]{1,3}(/[e-h]{1,3}){0,3}", (proptest::collection::vec(any::<u8>(), 0..2000), any::<bool>()), 1..8)
    ) {
        use std::os::unix::fs::PermissionsExt;
        let is_folder_too = |name: &String| files.keys().any(|other| other != name && Path::new(other).starts_with(name));
        prop_assume!(!files.keys().any(is_folder_too));
        let ground = Ground::new();
        let mut builder = tar::Builder::new(Vec::new());
        for (name, (content, executable)) in &files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(if *executable { 0o4711 } else { 0o600 });
            header.set_cksum();
            builder.append_data(&mut header, name, content.as_slice()).expect("packed");
        }
        let bytes = builder.into_inner().expect("packed");
        ground.unpack_file("it.tar", &bytes, SMALL).expect("unpacked");
        for (name, (content, executable)) in &files {
            let path = ground.tree().join(name);
            prop_assert_eq!(&fs::read(&path).expect("a file"), content);
            let mode = fs::metadata(&path).expect("facts").permissions().mode() & 0o7777;
            prop_assert_eq!(mode, if *executable { 0o755 } else { 0o644 });
        }
        ground.is_unharmed();
    }
}
