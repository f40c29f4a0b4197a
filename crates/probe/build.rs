//! Compiles the BPF programs and, for the tests and the walks from user space, the unwinder for this machine.

use scaleprof_vocabulary::{ThreadState, UnwindStatus, WakerKind};
use std::env;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Older ones do not compile what the programs do atomically.
const CLANG_NEEDED: u32 = 12;
/// The newest that is looked for under a name with its number.
const CLANG_NEWEST: u32 = 40;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    println!("cargo:rerun-if-changed=bpf");

    std::fs::write(out.join("words.h"), words()).expect("cargo's folder is writable");

    // The objects are kept for the test that walks them as older verifiers do.
    watch_programs(&architecture)
        .obj(out.join("watch.bpf.o"))
        .build_and_generate(out.join("watch.skel.rs"))
        .unwrap_or_else(refused);
    // What differs by architecture is compiled otherwise there, and no machine that tests this may have it.
    let (other, define) = match architecture.as_str() {
        "aarch64" => ("x86_64", "x86"),
        _ => ("aarch64", "arm64"),
    };
    let object = out.join("watch.other.bpf.o");
    let headers = format!("/usr/{other}-linux-gnu/include/asm");
    if Path::new(&headers).exists() {
        watch_programs(other)
            .clang_args(
                arguments(other)
                    .into_iter()
                    .chain([format!("-D__TARGET_ARCH_{define}")]),
            )
            .obj(object)
            .build()
            .unwrap_or_else(refused);
    } else {
        std::fs::write(object, []).expect("cargo's folder is writable");
    }

    cc::Build::new()
        .file("bpf/unwind_native.c")
        .include(out)
        .warnings_into_errors(true)
        .flag("-Wall")
        .compile("scaleprof_unwind");
}

fn watch_programs(architecture: &str) -> libbpf_cargo::SkeletonBuilder {
    let mut builder = libbpf_cargo::SkeletonBuilder::new();
    builder
        .source("bpf/watch.bpf.c")
        .clang(clang())
        .clang_args(arguments(architecture));
    builder
}

/// The header with the words that a record of the kernel's programs holds as numbers.
fn words() -> String {
    let states = ThreadState::in_kernel();
    let ends = UnwindStatus::ALL.into_iter().take(UnwindStatus::IN_KERNEL);
    let mut header = format!("#define STATES {}\n#define ENDINGS {}\n", states.len(), ends.len());
    enumerate(&mut header, "thread_state", "STATE", states.map(|state| state.name()));
    enumerate(&mut header, "unwind_status", "END", ends.map(|status| status.name()));
    let wakers = WakerKind::ALL.iter().map(|kind| kind.name());
    enumerate(
        &mut header,
        "waker_kind",
        "WAKER",
        ["unknown"].into_iter().chain(wakers),
    );
    header
}

/// An enum of C with these names, numbered from 0.
fn enumerate<'a>(header: &mut String, what: &str, prefix: &str, names: impl Iterator<Item = &'a str>) {
    let _ = writeln!(header, "enum {what} {{");
    for (number, name) in names.enumerate() {
        let _ = writeln!(header, "\t{prefix}_{} = {number},", name.to_uppercase());
    }
    header.push_str("};\n");
}

fn arguments(architecture: &str) -> [String; 6] {
    // <asm/types.h> lies in a folder of the target's own; clang for BPF does not look there by itself. The second is that of Debian's
    // packages for cross-building (linux-libc-dev-arm64-cross).
    let triplet = format!("{architecture}-linux-gnu");
    [
        format!("-I/usr/include/{triplet}"),
        format!("-I/usr/{triplet}/include"),
        format!("-I{}", env::var("OUT_DIR").expect("cargo sets OUT_DIR")),
        "-Wall".to_owned(),
        "-Werror".to_owned(),
        // Instructions that Linux 5.1 and newer know, whatever clang there is.
        "-mcpu=v3".to_owned(),
    ]
}

fn refused<T>(error: impl std::fmt::Display) -> T {
    panic!("the BPF programs do not compile: {error:#}\nThey need clang: apt-get install clang libelf-dev zlib1g-dev")
}

/// `clang`, or where that is too old or missing the newest `clang-N`: old distributions have newer ones beside their own.
fn clang() -> String {
    println!("cargo:rerun-if-env-changed=PATH");
    let names = (CLANG_NEEDED..=CLANG_NEWEST)
        .rev()
        .map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned())
        .chain(names)
        .find(|name| version_of(name).is_some_and(|version| version >= CLANG_NEEDED))
        .unwrap_or_else(|| {
            let have = version_of("clang").map_or("none".to_owned(), |version| version.to_string());
            panic!("the BPF programs need clang {CLANG_NEEDED} or newer, here is {have}: scripts/install-needs run")
        })
}

/// The main number of a clang's version, if it is there.
fn version_of(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("-dumpversion").output().ok()?;
    String::from_utf8(output.stdout)
        .ok()?
        .split('.')
        .next()?
        .trim()
        .parse()
        .ok()
}
