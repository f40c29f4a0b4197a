//! What a user's option file holds, with the files that it includes.

use crate::setting::one_spelling;
use scaleprof_guard::read_option_file;
use std::fs;
use std::path::{Path, PathBuf};

/// MySQL follows so many includes within each other (mysys/my_default.c).
const DEEPEST: usize = 10;

/// An option file's text, with those of the files that it includes and that can be read where it names them: what comes last counts.
pub(crate) fn with_included(text: &str) -> String {
    let mut all = String::new();
    append(text, 0, &mut all);
    all
}

/// The names of the options in such a text, in one spelling; of all programs' sections.
pub(crate) fn option_names(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(name_of).map(one_spelling)
}

/// What such a text says of an option, last, whether or not it is spelt with `loose` before it; none where it gives it no
/// value.
pub(crate) fn option_value(text: &str, option: &str) -> Option<String> {
    option_values(text, option).last()
}

/// All values that such a text gives an option.
pub(crate) fn option_values<'text>(text: &'text str, option: &'text str) -> impl Iterator<Item = String> + 'text {
    text.lines().filter_map(move |line| value_in(line, option))
}

fn value_in(line: &str, option: &str) -> Option<String> {
    let name = one_spelling(name_of(line)?);
    let (_, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim();
    (name.strip_prefix("loose_").unwrap_or(&name) == option).then(|| value.trim_matches(['"', '\'']).to_owned())
}

fn name_of(line: &str) -> Option<&str> {
    let name = line.split(['=', '#', ';']).next().unwrap_or_default().trim();
    (!name.is_empty() && !name.starts_with(['[', '!'])).then_some(name)
}

fn append(text: &str, depth: usize, all: &mut String) {
    for line in text.split_inclusive('\n') {
        all.push_str(line);
        let line = line.trim();
        let (files, given) = match (line.strip_prefix("!includedir"), line.strip_prefix("!include")) {
            (Some(folder), _) => (option_files(Path::new(folder.trim())), folder),
            (None, Some(file)) => (vec![PathBuf::from(file.trim())], file),
            (None, None) => continue,
        };
        // Not some other word that begins alike.
        if !given.starts_with(char::is_whitespace) || depth == DEEPEST {
            continue;
        }
        for file in files {
            // A server passes over files that all may write to, and so does this.
            if let Ok(text) = read_option_file(&file) {
                append(&text, depth + 1, all);
                if !all.ends_with('\n') {
                    all.push('\n');
                }
            }
        }
    }
}

/// The option files of a folder, by name.
fn option_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|end| end == "cnf"))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_an_option_counts_however_it_is_spelt() {
        let text = "[mysqld]\nthread_handling = no-threads\n#thread_handling=x\nloose-thread-handling = 'pool-of-threads' # since May\nthread_pool\n";
        assert_eq!(
            option_value(text, "thread_handling").as_deref(),
            Some("pool-of-threads")
        );
        assert_eq!(option_value(text, "thread_pool"), None);
        assert_eq!(option_value(text, "plugin_load"), None);
    }

    #[test]
    fn files_that_are_included_count_and_circles_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("conf.d")).expect("a folder");
        fs::write(at("conf.d/a.cnf"), "[mysqld]\ncollation-server=latin1_bin\n").expect("written");
        fs::write(at("conf.d/notes.txt"), "passed over").expect("written");
        let circle = format!("!include {}\n", at("circle.cnf").display());
        fs::write(at("circle.cnf"), &circle).expect("written");
        let text = format!(
            "[mysqld]\n  !includedir {}\n{circle}!include /no/such/file\n",
            at("conf.d").display()
        );
        let all = with_included(&text);
        assert!(all.contains("latin1_bin") && !all.contains("passed over"), "{all}");
        assert_eq!(option_names(&all).collect::<Vec<_>>(), ["collation_server"]);
        let after = with_included(&format!("{text}collation_server = utf8mb4_bin"));
        assert_eq!(option_value(&after, "collation_server").as_deref(), Some("utf8mb4_bin"));
        let before = with_included(&format!("collation_server = utf8mb4_bin\n{text}"));
        assert_eq!(option_value(&before, "collation_server").as_deref(), Some("latin1_bin"));
    }
}
