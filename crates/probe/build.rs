//! Compiles the BPF programs and, for the tests and the walks from user space, the unwinder for this machine.

use std::env;
use std::path::PathBuf;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the target");
    println!("cargo:rerun-if-changed=bpf");

    // <asm/types.h> lies in a folder of the target's own; clang for BPF does not look there by itself. The second is that of Debian's
    // packages for cross-building (libc6-dev-arm64-cross).
    let triplet = format!("{architecture}-linux-gnu");
    let arguments = [
        format!("-I/usr/include/{triplet}"),
        format!("-I/usr/{triplet}/include"),
        "-Wall".to_owned(),
        "-Werror".to_owned(),
        // Instructions that Linux 5.1 and newer know, whatever clang there is.
        "-mcpu=v3".to_owned(),
    ];
    libbpf_cargo::SkeletonBuilder::new()
        .source("bpf/watch.bpf.c")
        // Kept for the test that walks it as older verifiers do.
        .obj(out.join("watch.bpf.o"))
        .clang_args(arguments)
        .build_and_generate(out.join("watch.skel.rs"))
        .unwrap_or_else(|error| {
            panic!("the BPF programs do not compile: {error:#}\nThey need clang: apt-get install clang libelf-dev zlib1g-dev")
        });

    cc::Build::new()
        .file("bpf/unwind_native.c")
        .warnings_into_errors(true)
        .flag("-Wall")
        .compile("scaleprof_unwind");
}
