//! `annotate` on a program of the compiler's, and what it refuses. On a server's run: in truth.rs.

use crate::stage::{fail, place, scaleprof, succeed};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A loop with one instruction that no other function has: a locked addition to `counter`.
const SOURCE: &str = "
long counter;
__attribute__((always_inline)) static inline void count_one(void) { __sync_fetch_and_add(&counter, 1); }
void count_many(unsigned long times)
{
	while (times--)
		count_one();
}
void count_few(void) { count_many(3); }
int main(int argc, char **argv) { (void)argv; count_many(argc); count_few(); return (int)counter; }
";

fn program(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("count.c"), folder.join("count"));
    std::fs::write(&source, SOURCE).expect("written");
    let compiled = Command::new("cc")
        .args(["-g", "-O1", "-o"])
        .args([&program, &source])
        .status();
    assert!(compiled.expect("cc runs").success());
    program
}

#[test]
fn a_function_is_listed_with_its_source_lines_names_and_what_was_built_in() {
    let place = place();
    let program = program(place.path());
    let annotate = |function: &str| {
        let mut command = scaleprof();
        command.arg("annotate").arg(&program).arg(function);
        command
    };
    let (text, _) = succeed(&mut annotate("count_many"));
    assert!(text.starts_with("count_many  in count, "), "{text}");
    // Line 3 of the source holds the addition; the folder of the source is a temporary one.
    assert!(text.contains("count.c:3  built in: count_one"), "{text}");
    assert!(text.contains("> a branch goes here"), "{text}");
    #[cfg(target_arch = "x86_64")]
    assert!(text.contains("lock ") && text.contains("[counter], 1"), "{text}");

    let (json, _) = succeed(annotate("count_many").arg("--json"));
    let listing: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(listing["module"], "count");
    assert!(listing["compared"].is_null() && listing["growth"].is_null());
    #[cfg(target_arch = "x86_64")]
    {
        let instructions = listing["instructions"].as_array().expect("a list");
        let updates: Vec<&serde_json::Value> = instructions.iter().filter(|one| one["access"] == "update").collect();
        assert_eq!(updates.len(), 1, "{listing:#}");
        let update = updates[0];
        assert_eq!((&update["locked"], &update["data_size"]), (&true.into(), &8.into()));
        assert_eq!(update["inlined"], serde_json::json!(["count_one"]));
        assert!(update["data_address"].as_i64().is_some_and(|address| address > 0));
    }

    let error = fail(&mut annotate("count_"), 1);
    assert!(
        error.contains("2 functions have 'count_' in their names") && error.contains("count!count_few"),
        "{error}"
    );
    let error = fail(&mut annotate("no_such_function"), 1);
    assert!(
        error.contains("count has no function with 'no_such_function'"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_annotated_is_refused_with_what_to_give_instead() {
    let place = place();
    let error = fail(scaleprof().arg("annotate"), 2);
    assert!(error.contains("BUNDLE|BINARY"), "{error}");
    let error = fail(scaleprof().args(["annotate", "/bin/sh"]), 1);
    assert!(error.contains("name a function of /bin/sh after the file"), "{error}");
    let error = fail(scaleprof().arg("annotate").arg(place.path()), 1);
    assert!(error.contains("is not a bundle"), "{error}");
    let text = place.path().join("text");
    std::fs::write(&text, "no machine code").expect("written");
    let error = fail(scaleprof().arg("annotate").arg(&text).arg("main"), 1);
    assert!(error.contains("not a 64-bit ELF file"), "{error}");
    let error = fail(scaleprof().args(["annotate", "/bin/sh", "main", "--rung", "4"]), 1);
    assert!(error.contains("require a bundle"), "{error}");
}

#[test]
fn functions_that_a_recording_names_without_addresses_are_told_apart() {
    let place = place();
    let stacks = place.path().join("stacks.txt");
    std::fs::write(&stacks, "main;alpha 10\nmain;beta 30\n").expect("written");
    let output = place.path().join("bundle");
    succeed(
        scaleprof()
            .args(["import", "--quiet", "--output"])
            .arg(&output)
            .arg(&stacks),
    );
    let listed = succeed(scaleprof().args(["annotate", "--json"]).arg(&output)).0;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let functions = listed["functions"].as_array().expect("functions").iter();
    let costs: BTreeMap<&str, f64> = functions
        .map(|one| {
            (
                one["function"].as_str().expect("a name"),
                one["compared"]["value"].as_f64().expect("a figure"),
            )
        })
        .collect();
    assert_eq!(costs.len(), 2, "{costs:?}");
    assert!((costs["beta"] / costs["alpha"] - 3.0).abs() < 1e-9, "{costs:?}");
    let without_code = place.path().join("without-code");
    let mut import = scaleprof();
    import
        .args(["import", "--quiet", "--no-code", "--output"])
        .arg(&without_code);
    succeed(import.arg(&stacks));
    let error = fail(scaleprof().arg("annotate").arg(&without_code).arg("beta"), 1);
    assert!(
        error.contains("has no machine code (imported with --no-code)"),
        "{error}"
    );
}
