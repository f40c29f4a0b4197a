//! Bundles of which one table is not what it should be.

use scaleprof_analysis::summarise;
use scaleprof_bundle::Bundle;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A copy of a small bundle.
struct Stage {
    folder: TempDir,
    /// Relative to the folder, in their order.
    tables: Vec<PathBuf>,
}

thread_local! {
    // Unlike a static it is dropped when its thread ends, and its folder with it.
    static STAGE: Stage = Stage::set();
}

impl Stage {
    fn set() -> Stage {
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("bundle");
        let in_memory = tempfile::Builder::new()
            .prefix("scaleprof-fuzz-")
            .tempdir_in("/dev/shm");
        let folder = in_memory.or_else(|_| tempfile::tempdir()).expect("a folder");
        let mut tables = Vec::new();
        copy(&whole, &whole, folder.path(), &mut tables);
        tables.sort();
        Stage { folder, tables }
    }
}

fn copy(whole: &Path, part: &Path, to: &Path, tables: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(part).expect("the bundle beside this crate").flatten() {
        let path = entry.path();
        let relative = path.strip_prefix(whole).expect("it is in there").to_owned();
        if path.is_dir() {
            fs::create_dir(to.join(&relative)).expect("a folder");
            copy(whole, &path, to, tables);
            continue;
        }
        fs::copy(&path, to.join(&relative)).expect("copied");
        if relative.extension().is_some_and(|extension| extension == "parquet") {
            tables.push(relative);
        }
    }
}

/// The first byte says which table the rest is.
pub(crate) fn attempt(bytes: &[u8]) {
    let [which, content @ ..] = bytes else { return };
    STAGE.with(|stage| {
        let table = &stage.tables[usize::from(*which) % stage.tables.len()];
        let place = stage.folder.path().join(table);
        let good = fs::read(&place).expect("it is there");
        fs::write(&place, content).expect("written");
        if let Ok(bundle) = Bundle::open(stage.folder.path()) {
            let _ = summarise(&bundle);
            let _ = bundle.instructions();
            let _ = bundle.branches();
            let _ = bundle.data_accesses();
        }
        fs::write(&place, good).expect("written");
    });
}
