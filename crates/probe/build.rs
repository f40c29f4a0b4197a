//! Compiles the BPF programs and, for the tests and the walks from user space, the unwinder for this machine.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    println!("cargo:rerun-if-changed=bpf");

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
        .warnings_into_errors(true)
        .flag("-Wall")
        .compile("scaleprof_unwind");
}

fn watch_programs(architecture: &str) -> libbpf_cargo::SkeletonBuilder {
    let mut builder = libbpf_cargo::SkeletonBuilder::new();
    builder.source("bpf/watch.bpf.c").clang_args(arguments(architecture));
    builder
}

fn arguments(architecture: &str) -> [String; 5] {
    // <asm/types.h> lies in a folder of the target's own; clang for BPF does not look there by itself. The second is that of Debian's
    // packages for cross-building (linux-libc-dev-arm64-cross).
    let triplet = format!("{architecture}-linux-gnu");
    [
        format!("-I/usr/include/{triplet}"),
        format!("-I/usr/{triplet}/include"),
        "-Wall".to_owned(),
        "-Werror".to_owned(),
        // Instructions that Linux 5.1 and newer know, whatever clang there is.
        "-mcpu=v3".to_owned(),
    ]
}

fn refused<T>(error: impl std::fmt::Display) -> T {
    panic!("the BPF programs do not compile: {error:#}\nThey need clang: apt-get install clang libelf-dev zlib1g-dev")
}
