//! `spinloops` on a program of the compiler's and on what is none.

use crate::stage::{fail, place, scaleprof, succeed};
use std::process::Command;

const SOURCE: &str = "
volatile int flag;
#if defined(__x86_64__)
void waits_for_flag(void) { while (flag) __asm__ volatile(\"pause\" ::: \"memory\"); }
void takes_it_at_once(void) { while (__sync_lock_test_and_set(&flag, 1)) __asm__ volatile(\"pause\" ::: \"memory\"); }
#else
void waits_for_flag(void) { while (flag) __asm__ volatile(\"isb\" ::: \"memory\"); }
void takes_it_at_once(void) { while (__sync_lock_test_and_set(&flag, 1)) __asm__ volatile(\"isb\" ::: \"memory\"); }
#endif
";

#[test]
fn loops_that_wait_are_listed_with_what_they_should_not_do() {
    let place = place();
    let (source, library) = (place.path().join("spin.c"), place.path().join("spin.so"));
    std::fs::write(&source, SOURCE).expect("written");
    let compiled = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.expect("cc runs").success());
    let (text, _) = succeed(scaleprof().arg("spinloops").arg(&library));
    assert!(
        text.starts_with("2 loops of spin.so wait for another thread. One "),
        "{text}"
    );
    assert!(
        text.contains("waits_for_flag") && text.contains("takes_it_at_once"),
        "{text}"
    );
    assert_eq!(
        text.matches("warning: a locked instruction in every turn").count(),
        1,
        "{text}"
    );

    let (json, _) = succeed(scaleprof().arg("spinloops").arg(&library).arg("--json"));
    let listing: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(listing["loops"].as_array().map(Vec::len), Some(2));
    assert!(listing["relax_nanoseconds"].as_f64().is_some_and(|cost| cost > 0.0));
    assert_eq!(listing["loops"][0]["kind"], "poll");

    let error = fail(scaleprof().arg("spinloops").arg(&source), 1);
    assert!(error.contains("not a 64-bit ELF file"), "{error}");
    for command in ["spinloops", "cachelines"] {
        let error = fail(scaleprof().arg(command).arg(place.path()), 1);
        assert!(error.contains("is a folder: name the server's binary"), "{error}");
        assert!(!error.contains("Run as root"), "{error}");
        let error = fail(scaleprof().arg(command).arg(place.path().join("none")), 1);
        assert!(
            error.contains("Is the path right?") && !error.contains("Run as root"),
            "{error}"
        );
    }
}
