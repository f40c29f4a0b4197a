//! What libbpf-cargo makes of `bpf/watch.bpf.c`: the compiled programs and names for their tables.

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    dead_code,
    unsafe_op_in_unsafe_fn,
    clippy::all,
    clippy::pedantic
)]

include!(concat!(env!("OUT_DIR"), "/watch.skel.rs"));
