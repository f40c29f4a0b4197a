//! What a bundle holds is what docs/bundle.md and docs/summary.md say, name by name.

use crate::sample;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;

fn doc(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    fs::read_to_string(path).expect("a page of the documentation")
}

/// The words in a text that a name could be.
fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

/// What docs/bundle.md says of a table: from the paragraph that begins with its name to that of the
/// next.
fn section<'a>(doc: &'a str, table: &str, tables: &[String]) -> &'a str {
    let begin = doc
        .find(&format!("\n`{table}`"))
        .unwrap_or_else(|| panic!("{table} has no paragraph"))
        + 1;
    let rest = &doc[begin..];
    let ends = tables
        .iter()
        .map(|other| format!("\n`{other}`"))
        .chain(["\n## ".to_owned()]);
    let end = ends.filter_map(|end| rest.find(&end)).min();
    &rest[..end.unwrap_or(rest.len())]
}

#[test]
fn every_column_of_every_table_is_documented() {
    let folder = tempfile::tempdir().expect("a folder");
    let writer = sample::write_two_measurements(folder.path());
    writer.write_instructions(&[]).expect("instructions");
    writer.write_data_accesses(&[]).expect("accesses");
    writer.write_branches(0, 0, |_| Vec::new()).expect("branches");
    let doc = doc("bundle.md");
    let entries = fs::read_dir(folder.path()).expect("tables").flatten();
    let tables: Vec<String> = entries
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(tables.len() == 14, "{tables:?}");
    for table in &tables {
        let part = fs::read_dir(folder.path().join(table))
            .expect("parts")
            .flatten()
            .next()
            .expect("a part");
        let reader = SerializedFileReader::new(File::open(part.path()).expect("a file")).expect("Parquet");
        let documented = words(section(&doc, table, &tables));
        for column in reader.metadata().file_metadata().schema_descr().columns() {
            assert!(
                documented.contains(column.name()),
                "{table}.{} is not in docs/bundle.md",
                column.name()
            );
        }
    }
}

#[test]
fn every_key_of_the_summary_is_documented() {
    let documented = doc("summary.md");
    let documented = words(&documented);
    let mut missing = Vec::new();
    for file in [
        "summary",
        "ledger_summary",
        "scaling_summary",
        "watch_summary",
        "remedy",
        "long_run",
    ] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("src")
            .join(file)
            .with_extension("rs");
        // What is flattened has no name of its own.
        let source = fs::read_to_string(source)
            .expect("its source")
            .replace("#[serde(flatten)]\n    pub ", "");
        let fields = source
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("pub ")?.split_once(": "));
        let mut count = 0;
        for (field, _) in fields.filter(|(field, _)| words(field).len() == 1) {
            // Its name in JSON is `try`.
            let key = if field == "suggestions" { "try" } else { field };
            missing.extend((!documented.contains(key)).then(|| format!("{file}: {key}")));
            count += 1;
        }
        assert!(count >= 3, "{file}: fields were found");
    }
    assert!(missing.is_empty(), "not in docs/summary.md: {missing:?}");
}
