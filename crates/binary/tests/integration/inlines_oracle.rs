//! Functions that were built into others, and lines, against what addr2line's own loader says: our reading of the same DWARF takes
//! units one by one, lets go of what it has read, and loads what is split off later.

use crate::files;

use std::path::Path;
use std::process::Command;

use addr2line::Loader;
use files::binary;
use scaleprof_binary::symbols::{SourceFrame, SymbolFile, SymbolSearch};

const HEADER: &str = "\
static inline __attribute__((always_inline)) int inner(volatile int *p) { return *p + 1; }
static inline __attribute__((always_inline)) int middle(volatile int *p) { return inner(p) * inner(p + 1); }
extern volatile int counted[8];
int outer(volatile int *p);
int other(volatile int *p);
";

/// Two units, of which each has functions of the header built in, and one of data alone.
const SOURCES: [(&str, &str); 3] = [
    (
        "program.c",
        "#include \"header.h\"\n__attribute__((noinline)) int outer(volatile int *p) { return middle(p) * 3; }\n\
         int main(void) { return outer(counted) + other(counted) + inner(counted); }\n",
    ),
    (
        "other.c",
        "#include \"header.h\"\nstatic __attribute__((noinline)) int hidden(volatile int *p) { return inner(p + 2) ^ 5; }\n\
         int other(volatile int *p) { return hidden(p) + middle(p + 3) + middle(p + 1); }\n",
    ),
    ("data.c", "#include \"header.h\"\nvolatile int counted[8];\n"),
];

/// Name, file and line of every frame at an address, innermost first, and whether a function was built in there.
type Places = Vec<(Option<String>, Option<String>, Option<u32>, bool)>;

/// The outermost function may have a better name from the symbols.
fn ours(file: &SymbolFile, svma: u64) -> Places {
    let frames = file.frames(svma).into_iter();
    let place = |frame: SourceFrame| {
        let name = frame.inlined.then_some(frame.linkage_name);
        (name, frame.file, frame.line, frame.inlined)
    };
    frames.map(place).collect()
}

fn of_loader(loader: &Loader, svma: u64) -> Places {
    let mut frames = loader.find_frames(svma).expect("readable");
    let mut places = Vec::new();
    while let Some(frame) = frames.next().expect("readable") {
        let place = frame.location;
        let file = place.as_ref().and_then(|place| place.file).map(str::to_owned);
        let line = place.and_then(|place| place.line).filter(|line| *line > 0);
        let name = frame
            .function
            .and_then(|function| Some(function.raw_name().ok()?.into_owned()));
        places.push((name, file, line, true));
    }
    match places.last_mut() {
        Some(outermost) => (outermost.0, outermost.3) = (None, false),
        None => places.push((None, None, None, false)),
    }
    places
}

/// Compares at some addresses of every function, which several threads ask for; returns how many of these have built-in functions.
fn agree(path: &Path, bytes_between: usize, what: &str) -> usize {
    let file = SymbolFile::open(path, &SymbolSearch::default()).expect("symbols");
    let loader = Loader::new(path).expect("debug information");
    let ranges = file.function_ranges().iter().cloned();
    let asked: Vec<u64> = ranges.flat_map(|range| range.step_by(bytes_between)).collect();
    let part = |number: usize| {
        let own = asked.iter().skip(number).step_by(3);
        own.map(|svma| ours(&file, *svma)).collect::<Vec<Places>>()
    };
    let mut parts: Vec<_> = std::thread::scope(|scope| {
        let part = &part;
        let parts: Vec<_> = (0..3).map(|number| scope.spawn(move || part(number))).collect();
        let done = parts.into_iter().map(|part| part.join().expect("no panic").into_iter());
        done.collect()
    });
    let found: Vec<Places> = (0..asked.len()).filter_map(|place| parts[place % 3].next()).collect();
    assert_eq!(found.len(), asked.len());
    for (svma, found) in asked.iter().zip(&found) {
        assert_eq!(*found, of_loader(&loader, *svma), "{what}: {svma:#x}");
    }
    found.iter().filter(|found| found.len() > 1).count()
}

/// Compiles each source by itself, and links them.
fn program(folder: &Path, compiler: &str, options: &[&str]) {
    std::fs::write(folder.join("header.h"), HEADER).expect("written");
    let mut objects = Vec::new();
    for (name, source) in SOURCES {
        std::fs::write(folder.join(name), source).expect("written");
        let object = name.replace(".c", ".o");
        let mut command = Command::new(compiler);
        command.args(["-O2", "-c", name, "-o", &object]).args(options);
        run(&mut command, folder);
        objects.push(object);
    }
    // Whoever compiles Rust has it: it links.
    let mut command = Command::new(compiler);
    command.args(["-o", "program"]).args(objects).args(options);
    run(&mut command, folder);
}

fn run(command: &mut Command, folder: &Path) {
    let status = command.current_dir(folder).status().expect("a C compiler");
    assert!(status.success(), "{command:?}");
}

#[test]
fn frames_are_those_of_addr2lines_loader_however_debug_information_is_stored() {
    for (compiler, options) in [
        ("cc", &["-g"][..]),
        ("cc", &["-gdwarf-2", "-gstrict-dwarf"]),
        ("cc", &["-gdwarf-4"]),
        ("cc", &["-gdwarf-5", "-gdwarf64"]),
        ("cc", &["-gdwarf-4", "-fdebug-types-section"]),
        ("cc", &["-gdwarf-5", "-fdebug-types-section"]),
        // Units that refer to each other.
        ("cc", &["-g", "-flto"]),
        ("cc", &["-g", "-gz=zlib"]),
        ("cc", &["-g", "-gsplit-dwarf"]),
        ("cc", &["-gdwarf-4", "-gsplit-dwarf"]),
        ("cc", &["-g", "-fPIE", "-pie"]),
        // No lists of addresses.
        ("clang", &["-g"]),
        ("clang", &["-gdwarf-4", "-ffunction-sections"]),
    ] {
        if compiler == "clang" && Command::new(compiler).arg("--version").output().is_err() {
            testing::skip!("no clang");
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder");
        program(folder.path(), compiler, options);
        // The files that are split off are named as the compiler was told: beside the program.
        let found = agree(&folder.path().join("program"), 1, &format!("{compiler} {options:?}"));
        assert!(found > 10, "{compiler} {options:?}: {found}");
    }
}

#[test]
fn units_of_clang_and_gcc_stand_beside_each_other() {
    if Command::new("clang").arg("--version").output().is_err() {
        testing::skip!("no clang");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    program(folder.path(), "cc", &["-g"]);
    let mut command = Command::new("clang");
    run(
        command.args(["-O2", "-g", "-c", "other.c", "-o", "other.o"]),
        folder.path(),
    );
    let mut command = Command::new("cc");
    run(
        command.args(["-o", "program", "program.o", "other.o", "data.o"]),
        folder.path(),
    );
    assert!(agree(&folder.path().join("program"), 1, "both") > 10);
}

#[test]
fn frames_are_those_of_addr2lines_loader_in_a_server() {
    if let Some(mysqld) = binary("mysql-5.6.14") {
        assert!(agree(&mysqld.path, 1021, "mysqld") > 1000);
    }
}
