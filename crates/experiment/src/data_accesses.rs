//! Keeping who touches the variables in the cache lines of hot instructions, so that these lines can be judged where the server
//! is not.

use crate::code_source::{CodeFile, CodeSource};
use crate::shared_data::SharedData;
use scaleprof_analysis::cache_lines::{Kept, rows_to_keep};
use scaleprof_analysis::hot_code::HotCode;
use scaleprof_bundle::{BundleError, BundleWriter, DataAccessRow};
use std::collections::{BTreeMap, HashMap};

/// Files with a smaller part of the samples on CPUs are not taken apart: it takes seconds.
const LEAST_SHARE: f64 = 0.05;
/// No more rows than these are kept of a file; a pair of lines is kept whole or not at all.
const MOST_ROWS: usize = 20_000;

/// Writes the table `data_accesses` of a run whose measurements are written, while its server's code can be read. `hot` are all functions in which
/// threads were seen. Gives what was left out, in words.
///
/// # Errors
/// The bundle cannot be written.
pub(crate) fn keep_data_accesses(
    bundle: &BundleWriter,
    hot: &[HotCode],
    code: &mut dyn CodeSource,
) -> Result<Option<String>, BundleError> {
    let mut rows = Vec::new();
    let mut lacks = Vec::new();
    let seen = seen(hot);
    let files: Vec<CodeFile<'_>> = seen.keys().copied().collect();
    let keep = |file: CodeFile<'_>, data: &SharedData| {
        let untouched = |range| data.lying_in(range);
        let nowhere = HashMap::new();
        let seen = seen.get(&file).unwrap_or(&nowhere);
        rows_to_keep(&data.places, &data.functions, seen, untouched, MOST_ROWS)
    };
    let all = code.shared_data(&files, &keep);
    for ((module, build_id), kept) in files.into_iter().zip(all) {
        match kept {
            Ok(kept) => {
                lacks.extend(left_out(module, &kept));
                rows.extend(kept.rows.into_iter().map(|row| DataAccessRow {
                    module: module.to_owned(),
                    build_id: build_id.map(str::to_owned),
                    ..row
                }));
            }
            Err(problem) => lacks.push(problem),
        }
    }
    bundle.write_data_accesses(&rows)?;
    Ok((!lacks.is_empty()).then(|| lacks.join("; ")))
}

/// A file, as frames name it, with the samples at each address.
type SeenIn<'a> = BTreeMap<CodeFile<'a>, HashMap<u64, u64>>;

/// Where threads were seen, by file; only files in which they were seen much.
fn seen(hot: &[HotCode]) -> SeenIn<'_> {
    let mut shares: BTreeMap<(&str, Option<&str>), f64> = BTreeMap::new();
    let mut seen = SeenIn::new();
    // What the kernel maps into every process has no variables of the server.
    for function in hot.iter().filter(|function| !function.module.starts_with('[')) {
        let file = (function.module.as_str(), function.build_id.as_deref());
        *shares.entry(file).or_default() += function.share;
        let at = function.addresses.iter().map(|address| *address as u64);
        seen.entry(file)
            .or_default()
            .extend(at.zip(function.samples.iter().copied()));
    }
    seen.retain(|file, _| shares.get(file).is_some_and(|share| *share >= LEAST_SHARE));
    seen
}

fn left_out(module: &str, kept: &Kept) -> Option<String> {
    (kept.left_out > 0).then(|| {
        format!(
            "{} pairs of cache lines of {module} were left out: a bundle keeps {MOST_ROWS} accesses of a file",
            kept.left_out
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(module: &str, share: f64, addresses: &[(i64, u64)]) -> HotCode {
        HotCode {
            module: module.into(),
            build_id: None,
            function: Some("f".into()),
            addresses: addresses.iter().map(|(address, _)| *address).collect(),
            samples: addresses.iter().map(|(_, samples)| *samples).collect(),
            share,
        }
    }

    #[test]
    fn samples_are_gathered_by_file_and_files_that_hardly_run_are_left_out() {
        let hot = [
            function("mysqld", 0.3, &[(0x10, 7), (0x20, 2)]),
            function("mysqld", 0.01, &[(0x90, 1)]),
            function("libz.so", 0.02, &[(0x10, 5)]),
            function("[vdso]", 0.4, &[(0x10, 50)]),
        ];
        let found = seen(&hot);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[&("mysqld", None)],
            HashMap::from([(0x10, 7), (0x20, 2), (0x90, 1)])
        );
    }

    #[test]
    fn what_did_not_fit_is_said() {
        assert_eq!(left_out("mysqld", &Kept::default()), None);
        let kept = Kept {
            left_out: 2,
            ..Kept::default()
        };
        assert_eq!(
            left_out("mysqld", &kept).as_deref(),
            Some("2 pairs of cache lines of mysqld were left out: a bundle keeps 20000 accesses of a file")
        );
    }
}
