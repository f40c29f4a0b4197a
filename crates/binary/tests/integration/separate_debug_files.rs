//! Debug files apart from their binaries, as distributions make them, with a program that is compiled here.

use scaleprof_vocabulary::SymbolSource;
use std::path::{Path, PathBuf};
use std::process::Command;

use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int inner(volatile int *p) { return *p + 1; }
static __attribute__((noinline, noclone)) int outer(volatile int *p) { return inner(p) * 3; }
volatile int counted;
static volatile int hidden[8];
int main(void) { return outer(&counted) + outer(hidden); }
";

/// The program before and after it was stripped, and its debug file.
struct Program {
    folder: tempfile::TempDir,
    whole: PathBuf,
    stripped: PathBuf,
    debug: PathBuf,
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> bool {
    let status = Command::new(program).args(arguments).current_dir(folder).status();
    status.is_ok_and(|status| status.success())
}

fn program(options: &[&str]) -> Option<Program> {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name| folder.path().join(name);
    std::fs::write(place("program.c"), SOURCE).expect("written");
    let compile = [&["-g", "-O2", "-o", "whole", "program.c"], options].concat();
    let steps: [(&str, &[&str]); 4] = [
        ("cc", &compile),
        ("objcopy", &["--only-keep-debug", "whole", "program.debug"]),
        ("objcopy", &["--strip-all", "whole", "stripped"]),
        ("objcopy", &["--add-gnu-debuglink=program.debug", "stripped"]),
    ];
    for (program, arguments) in steps {
        if !run(program, arguments, folder.path()) {
            testing::skip!("{program}: it failed or is not installed. apt-get install gcc binutils");
            return None;
        }
    }
    Some(Program {
        whole: place("whole"),
        stripped: place("stripped"),
        debug: place("program.debug"),
        folder,
    })
}

fn address(program: &Program, name: &str) -> u64 {
    let nm = Command::new("nm").arg(&program.whole).output().expect("nm");
    let text = String::from_utf8_lossy(&nm.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.ends_with(&format!(" {name}")))
        .expect("listed");
    u64::from_str_radix(&line[..16], 16).expect("a number")
}

/// Everything that the whole program tells must be told of the stripped one.
fn tells_all(program: &Program, search: &SymbolSearch) {
    let outer = address(program, "outer");
    for path in [&program.whole, &program.stripped] {
        let file = SymbolFile::open(path, search).expect("symbols");
        let function = file.function(outer + 1).expect("a function");
        assert_eq!(
            (function.name.as_str(), function.source, function.offset),
            ("outer", SymbolSource::Symtab, 1)
        );
        let frames = file.frames(outer);
        let shown: Vec<(&str, bool)> = frames
            .iter()
            .map(|frame| (frame.name.as_str(), frame.inlined))
            .collect();
        assert_eq!(shown, [("inner", true), ("outer", false)], "{:?}", file.notes());
        assert!(frames[0].file.as_ref().is_some_and(|file| file.ends_with("program.c")));
        assert_eq!((frames[0].line, frames[1].line), (Some(1), Some(2)));
        let hidden = file.variable(address(program, "hidden") + 12).expect("a variable");
        assert_eq!((hidden.name.as_str(), hidden.offset, hidden.size), ("hidden", 12, 32));
        assert_eq!(
            file.variable(address(program, "counted")).map(|found| found.size),
            Some(4)
        );
    }
}

#[test]
fn a_debug_file_is_found_by_the_link() {
    let Some(program) = program(&["-Wl,--build-id=none"]) else {
        return;
    };
    tells_all(&program, &SymbolSearch::default());
}

#[test]
fn a_debug_file_is_found_by_the_build_id() {
    let Some(program) = program(&["-Wl,--build-id=0xabcdef0123456789"]) else {
        return;
    };
    let folder = program.folder.path().join("debug");
    let place = folder.join(".build-id/ab/cdef0123456789.debug");
    std::fs::create_dir_all(place.parent().expect("a folder")).expect("made");
    std::fs::rename(&program.debug, &place).expect("moved");
    let search = SymbolSearch {
        debug_folders: vec![folder],
        ..SymbolSearch::nowhere()
    };
    tells_all(&program, &search);
    let file = SymbolFile::open(&program.stripped, &search).expect("symbols");
    assert_eq!(file.build_id().as_deref(), Some("abcdef0123456789"));
}

#[test]
fn a_debug_file_of_another_build_is_refused_with_the_reason() {
    let Some(program) = program(&["-Wl,--build-id=none"]) else {
        return;
    };
    let mut bytes = std::fs::read(&program.debug).expect("readable");
    bytes.push(0);
    std::fs::write(&program.debug, bytes).expect("written");
    let outer = address(&program, "outer");
    let file = SymbolFile::open(&program.stripped, &SymbolSearch::default()).expect("symbols");
    assert!(
        file.notes()[0].contains("not used as debug file: its checksum is"),
        "{:?}",
        file.notes()
    );
    let function = file.function(outer + 1).expect("a function");
    assert_eq!((function.source, function.offset), (SymbolSource::FrameBounds, 1));
    assert_eq!(function.name, format!("stripped!fun_{outer:x}"));
    assert_eq!(file.frames(outer).len(), 1);
}

/// Programs that keep their DWARF but not their symbol table are rare, but an address is named all the same.
#[test]
fn debug_information_names_what_no_symbol_does() {
    let Some(program) = program(&[]) else { return };
    let outer = address(&program, "outer");
    let only = program.folder.path().join("only-dwarf");
    let copied = std::fs::copy(&program.whole, &only).is_ok();
    assert!(
        copied
            && run(
                "objcopy",
                &["--strip-symbol=outer", "only-dwarf"],
                program.folder.path()
            )
    );
    let file = SymbolFile::open(&only, &SymbolSearch::nowhere()).expect("symbols");
    let function = file.function(outer + 1).expect("a function");
    assert_eq!(
        (function.name.as_str(), function.source),
        ("outer", SymbolSource::Dwarf)
    );
}
