//! Functions that were built into others, and lines, against what addr2line's own loader says: our reading of the same DWARF lets go of
//! what it has read, and loads what is split off later.

mod files;

use std::path::Path;
use std::process::Command;

use addr2line::Loader;
use files::binary;
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int inner(volatile int *p) { return *p + 1; }
static inline __attribute__((always_inline)) int middle(volatile int *p) { return inner(p) * inner(p + 1); }
volatile int counted[8];
__attribute__((noinline)) int outer(volatile int *p) { return middle(p) * 3; }
int main(void) { return outer(counted) + inner(counted); }
";

/// File and line of every frame at an address, innermost first, and whether a function was built in there.
type Places = Vec<(Option<String>, Option<u32>, bool)>;

fn ours(file: &SymbolFile, svma: u64) -> Places {
    let frames = file.frames(svma).into_iter();
    frames.map(|frame| (frame.file, frame.line, frame.inlined)).collect()
}

fn of_loader(loader: &Loader, svma: u64) -> Places {
    let mut frames = loader.find_frames(svma).expect("readable");
    let mut places = Vec::new();
    while let Some(frame) = frames.next().expect("readable") {
        let place = frame.location;
        let file = place.as_ref().and_then(|place| place.file).map(str::to_owned);
        let line = place.and_then(|place| place.line).filter(|line| *line > 0);
        places.push((file, line, true));
    }
    match places.last_mut() {
        Some(outermost) => outermost.2 = false,
        None => places.push((None, None, false)),
    }
    places
}

/// Compares at some addresses of every function; returns how many of these have built-in functions.
fn agree(path: &Path, bytes_between: usize) -> usize {
    let file = SymbolFile::open(path, &SymbolSearch::default()).expect("symbols");
    let loader = Loader::new(path).expect("debug information");
    let ranges = file.function_ranges().iter().cloned();
    let mut with_built_in = 0;
    for svma in ranges.flat_map(|range| range.step_by(bytes_between)) {
        let found = ours(&file, svma);
        assert_eq!(found, of_loader(&loader, svma), "{svma:#x} of {}", path.display());
        with_built_in += usize::from(found.len() > 1);
    }
    with_built_in
}

#[test]
fn frames_are_those_of_addr2lines_loader_however_debug_information_is_stored() {
    for options in [
        &["-g"][..],
        &["-gdwarf-4"],
        &["-g", "-gz=zlib"],
        &["-g", "-gsplit-dwarf"],
        &["-g", "-fPIE", "-pie"],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("program.c"), SOURCE).expect("written");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-c", "program.c"]).args(options);
        let mut linker = Command::new("cc");
        linker.args(["-o", "program", "program.o"]).args(options);
        for step in [&mut compiler, &mut linker] {
            // Whoever compiles Rust has it: it links.
            let status = step.current_dir(folder.path()).status().expect("a C compiler");
            assert!(status.success(), "{options:?}");
        }
        // The files that are split off are named as the compiler was told: beside the program.
        let found = agree(&folder.path().join("program"), 1);
        assert!(found > 5, "{options:?}: {found}");
    }
}

#[test]
fn frames_are_those_of_addr2lines_loader_in_a_server() {
    if let Some(mysqld) = binary("mysql-5.6.14") {
        assert!(agree(&mysqld.path, 1021) > 1000);
    }
}
