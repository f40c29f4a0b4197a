//! Where a compiler and linker put variables, and who touches them, against what the program's source says and `nm`.

mod against_nm;
mod classes;
use crate::files;
use scaleprof_vocabulary::AccessKind;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use files::binary;
use scaleprof_binary::data_access::{DataAccesses, TouchedPlace, may_tell, start_and_stop, touched_places};
use scaleprof_binary::data_layout::{DataKind, DataLayout};
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

const SOURCE: &str = r#"
struct inner { int low; int high; };
struct stats { long reads; long writes; struct inner inner; struct inner each[3]; char name[12]; };
volatile long counter = 1;
volatile char setting = 1;
static volatile long hidden = 3;
volatile struct stats stats;
volatile long table[64];
volatile long flag;
__thread volatile long mine;
__thread volatile long mine_too = 4;
const char *const names[2] = { "one", "two" };
void gets_pointer(volatile void *place);
__attribute__((noinline)) long reads_setting(void) { return setting; }
__attribute__((noinline)) long reads_setting_twice(long n) { return setting ? n : setting; }
__attribute__((noinline)) void writes_flag(void) { flag = 7; }
__attribute__((noinline)) void adds_locked(void) { __sync_fetch_and_add(&counter, 2); }
__attribute__((noinline)) long swaps(void) { return __sync_val_compare_and_swap(&counter, 2, 3); }
__attribute__((noinline)) void adds(void) { hidden += 5; }
__attribute__((noinline)) void counts_a_write(void) { stats.writes++; }
__attribute__((noinline)) int reads_inner(void) { return stats.inner.high + stats.each[1].low; }
__attribute__((noinline)) long reads_some(unsigned long i) { return table[i & 63]; }
__attribute__((noinline)) long reads_fourth(void) { return table[4]; }
__attribute__((noinline)) void clears(void) { for (int i = 0; i < 64; i++) table[i] = 0; }
__attribute__((noinline)) void waits(void) { while (flag) { } }
__attribute__((noinline)) void hands_on(void) { gets_pointer(&stats); }
__attribute__((noinline)) long reads_mine(void) { return mine + mine_too; }
__attribute__((noinline)) void starts(void) { setting = 0; }
__attribute__((noinline)) void gets_pointer(volatile void *place) { *(volatile long *) place = 1; }
int main(int argc, char **argv)
{
	starts();
	writes_flag(); adds_locked(); adds(); counts_a_write(); clears(); waits(); hands_on();
	return reads_setting() + reads_setting_twice(argc) + swaps() + reads_inner() + reads_some(argc) + reads_fourth()
		+ reads_mine() + names[argc & 1][0];
}
"#;

/// The ways in which servers are built.
const KINDS: [&[&str]; 3] = [
    &["-fno-pie", "-no-pie"],
    &["-fPIE", "-pie"],
    &["-fPIC", "-shared", "-Wl,-Bsymbolic"],
];

struct Built {
    /// What it was built with, for messages.
    how: String,
    path: PathBuf,
    bytes: Vec<u8>,
    symbols: SymbolFile,
}

fn build(folder: &Path, compiler: &str, options: &[&str]) -> Built {
    let (source, path) = (folder.join("data.c"), folder.join("data"));
    std::fs::write(&source, SOURCE).expect("written");
    let status = Command::new(compiler)
        .args(options)
        .arg("-o")
        .args([&path, &source])
        .status();
    assert!(status.expect(compiler).success(), "{compiler} {options:?}");
    Built {
        how: format!("{compiler} {options:?}"),
        bytes: std::fs::read(&path).expect("readable"),
        symbols: SymbolFile::open(&path, &SymbolSearch::nowhere()).expect("ELF"),
        path,
    }
}

fn every_build(levels: &[&str], check: impl Fn(&Built)) {
    for compiler in ["gcc", "clang"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            testing::skip!("{compiler}: not installed");
            continue;
        }
        for level in levels {
            for kind in KINDS {
                let folder = tempfile::tempdir().expect("a folder");
                check(&build(folder.path(), compiler, &[&["-g", level], kind].concat()));
            }
        }
    }
}

impl Built {
    fn layout(&self, with_debug_info: bool) -> DataLayout {
        let mut layout = DataLayout::of("data", &self.bytes).expect("ELF");
        if with_debug_info {
            let described = layout.add_debug_info(&self.bytes).expect("DWARF");
            assert!(described >= 6, "{}: {described}", self.how);
        }
        layout
    }

    fn accesses(&self) -> DataAccesses {
        DataAccesses::of("data", &self.bytes, self.symbols.function_ranges()).expect("ELF")
    }

    /// What each function does: its name, what it touches, how, and whether with a lock.
    fn touched(&self, layout: &DataLayout) -> BTreeSet<(String, String, AccessKind, bool)> {
        let accesses = self.accesses();
        let name = |function: usize| {
            let start = accesses.functions[function].function.start;
            self.symbols
                .function(start)
                .map_or(String::new(), |function| function.name)
        };
        let of_place = |place: &TouchedPlace| {
            let all = place.accesses.iter();
            let told = all.map(|(function, access)| (name(*function), place.name.clone(), access.kind, access.locked));
            told.collect::<Vec<_>>()
        };
        touched_places(layout, &accesses).iter().flat_map(of_place).collect()
    }
}

#[test]
fn functions_touch_what_their_source_says() {
    every_build(&["-O0", "-O1", "-O2", "-O3"], |built| {
        let found = built.touched(&built.layout(true));
        let does = |function: &str, place: &str, kind: AccessKind, locked: bool| {
            let wanted = (function.to_owned(), place.to_owned(), kind, locked);
            assert!(found.contains(&wanted), "{}: no {wanted:?} in {found:#?}", built.how);
        };
        use AccessKind::{Passed, Read, Update, Write};
        does("reads_setting", "setting", Read, false);
        does("reads_setting_twice", "setting", Read, false);
        does("writes_flag", "flag", Write, false);
        does("waits", "flag", Read, false);
        does("starts", "setting", Write, false);
        does("reads_inner", "stats.inner.high", Read, false);
        does("reads_inner", "stats.each[1].low", Read, false);
        does("reads_some", "table", Read, false);
        does("reads_fourth", "table[4]", Read, false);
        does("hands_on", "stats.reads", Passed, false);
        if cfg!(target_arch = "x86_64") {
            does("adds_locked", "counter", Update, true);
            does("swaps", "counter", Update, true);
        }
        let writes = |function: &str, place: &str| {
            let is_it = |(by, what, kind, locked): &(String, String, AccessKind, bool)| {
                by == function && what == place && matches!(kind, Write | Update) && !locked
            };
            assert!(
                found.iter().any(is_it),
                "{}: {function} does not write {place}: {found:#?}",
                built.how
            );
        };
        writes("adds", "hidden");
        writes("counts_a_write", "stats.writes");
        // By index, by a pointer that moves on, or many at once where the compiler has unrolled the loop.
        let clears = found
            .iter()
            .any(|(by, what, kind, _)| by == "clears" && what.starts_with("table") && *kind == Write);
        assert!(clears, "{}: {found:#?}", built.how);
        // Nobody does what the source does not say.
        for (function, place, kind, _) in &found {
            let is_allowed = match place.as_str() {
                "setting" => function.starts_with("reads_setting") || function == "starts" || function == "main",
                "flag" => ["writes_flag", "waits", "main"].contains(&function.as_str()),
                "counter" => ["adds_locked", "swaps", "main"].contains(&function.as_str()),
                "hidden" => ["adds", "main"].contains(&function.as_str()),
                _ => true,
            };
            assert!(is_allowed, "{}: {function} {kind:?} {place}", built.how);
            assert!(
                !place.contains("mine"),
                "{}: thread-local variables are nobody else's",
                built.how
            );
        }
    });
}

#[test]
fn loops_are_told_from_straight_code() {
    every_build(&["-O2"], |built| {
        let (layout, accesses) = (built.layout(true), built.accesses());
        let places = touched_places(&layout, &accesses);
        let in_loop = |place: &str, function: &str| {
            let place = places.iter().find(|one| one.name == place).expect(place);
            let of_function = place.accesses.iter().filter(|(number, _)| {
                let start = accesses.functions[*number].function.start;
                built
                    .symbols
                    .function(start)
                    .is_some_and(|found| found.name == function)
            });
            of_function.map(|(_, access)| access.in_loop).collect::<Vec<bool>>()
        };
        assert_eq!(in_loop("flag", "waits"), [true], "{}", built.how);
        assert_eq!(in_loop("flag", "writes_flag"), [false], "{}", built.how);
    });
}

#[test]
fn without_debug_information_members_are_known_by_their_offset() {
    every_build(&["-O2"], |built| {
        let status = Command::new("strip").arg("-g").arg(&built.path).status();
        assert!(status.expect("strip runs").success());
        let bytes = std::fs::read(&built.path).expect("readable");
        let built = Built {
            how: format!("{} stripped of debug information", built.how),
            path: built.path.clone(),
            bytes,
            symbols: SymbolFile::open(&built.path, &SymbolSearch::nowhere()).expect("ELF"),
        };
        let mut layout = DataLayout::of("data", &built.bytes).expect("ELF");
        assert_eq!(layout.add_debug_info(&built.bytes).expect("none is no error"), 0);
        let found = built.touched(&layout);
        for (function, place) in [
            ("reads_setting", "setting"),
            ("adds", "hidden"),
            ("counts_a_write", "stats+0x8"),
            ("reads_inner", "stats+0x14"),
            ("reads_inner", "stats+0x20"),
            ("reads_some", "table"),
            ("reads_fourth", "table+0x20"),
        ] {
            let is_it = |(by, what, ..): &(String, String, AccessKind, bool)| by == function && what == place;
            assert!(found.iter().any(is_it), "{}: {function} {place}: {found:#?}", built.how);
        }
    });
}

#[test]
fn what_only_main_calls_runs_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = build(folder.path(), "cc", &["-O1", "-fno-ipa-icf", "-fPIE", "-pie"]);
    let accesses = built.accesses();
    let name = |place: usize| {
        let start = accesses.functions.get(place)?.function.start;
        Some(built.symbols.function(start)?.name)
    };
    let found: BTreeSet<String> = start_and_stop(&accesses, name).into_iter().filter_map(name).collect();
    // All of this program is its start.
    assert!(
        found.contains("main") && found.contains("starts") && found.contains("gets_pointer"),
        "{found:?}"
    );
}

#[test]
fn functions_of_the_start_are_the_same_where_only_names_that_may_tell_are_known() {
    for name in ["mysql-5.6.14", "mariadb"] {
        let Some(server) = binary(name) else { continue };
        let symbols = SymbolFile::open(&server.path, &SymbolSearch::default()).expect("ELF");
        let accesses = DataAccesses::of(name, &server.bytes, symbols.function_ranges()).expect("ELF");
        let start = |place: usize| accesses.functions[place].function.start;
        let all = start_and_stop(&accesses, |place| {
            symbols.function(start(place)).map(|function| function.name)
        });
        let some = start_and_stop(&accesses, |place| {
            let tells = symbols.linkage_name(start(place)).is_some_and(|name| may_tell(&name));
            tells
                .then(|| symbols.function(start(place)))
                .flatten()
                .map(|function| function.name)
        });
        assert_eq!(some, all, "{name}");
        assert!(all.len() > 100, "{name}: {}", all.len());
    }
}

#[test]
fn arrays_and_members_lie_in_the_lines_that_their_addresses_say() {
    every_build(&["-O2"], |built| {
        let layout = built.layout(true);
        let stats = layout
            .variables()
            .iter()
            .find(|variable| variable.name == "stats")
            .expect("stats");
        let inside = layout.pieces_in(stats.address..stats.end());
        let told: Vec<(String, u64, u64)> = inside
            .into_iter()
            .map(|(_, piece)| (piece.path, piece.offset, piece.size))
            .collect();
        let expected = [
            (".reads", 0, 8),
            (".writes", 8, 8),
            (".inner.low", 16, 4),
            (".inner.high", 20, 4),
            (".each[0].low", 24, 4),
            (".each[0].high", 28, 4),
            (".each[1].low", 32, 4),
            (".each[1].high", 36, 4),
            (".each[2].low", 40, 4),
            (".each[2].high", 44, 4),
            (".name", 48, 12),
        ];
        let expected: Vec<(String, u64, u64)> = expected
            .iter()
            .map(|(path, offset, size)| ((*path).to_owned(), *offset, *size))
            .collect();
        assert_eq!(told, expected, "{}", built.how);
        let kinds: BTreeMap<&str, DataKind> = layout
            .variables()
            .iter()
            .map(|variable| (variable.name.as_str(), variable.kind))
            .collect();
        assert_eq!(kinds["counter"], DataKind::Initialised, "{}", built.how);
        assert_eq!(kinds["table"], DataKind::Zeroed, "{}", built.how);
        assert_eq!(
            (kinds["mine"], kinds["mine_too"]),
            (DataKind::ThreadLocal, DataKind::ThreadLocal),
            "{}",
            built.how
        );
        if built.how.contains("-fPI") {
            assert_eq!(kinds["names"], DataKind::ConstantAfterLoading, "{}", built.how);
        }
    });
}

/// Whoever optimises a program as a whole writes the types of its variables elsewhere than the variables.
#[test]
fn types_are_found_in_programs_that_were_optimised_as_a_whole_and_in_every_version_of_dwarf() {
    for options in [
        &["-flto", "-O2", "-g"][..],
        &["-O1", "-gdwarf-2", "-gstrict-dwarf"],
        &["-O1", "-gdwarf-4"],
        &["-O1", "-gdwarf-5"],
        &["-O1", "-g", "-gz=zlib"],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let built = build(folder.path(), "gcc", options);
        let layout = built.layout(true);
        let address = |name: &str| {
            layout
                .variables()
                .iter()
                .find(|one| one.name == name)
                .expect(name)
                .address
        };
        let piece = |name: &str, offset: u64| layout.piece_at(address(name) + offset).map(|(_, piece)| piece.path);
        assert_eq!(piece("stats", 36).as_deref(), Some(".each[1].high"), "{}", built.how);
        assert_eq!(piece("table", 32).as_deref(), Some("[4]"), "{}", built.how);
    }
}

#[test]
fn damaged_files_are_read_without_panic() {
    let folder = tempfile::tempdir().expect("a folder");
    let built = build(folder.path(), "gcc", &["-O2", "-g", "-fPIE", "-pie"]);
    let mut random = 0x1234_5678_9abc_def1_u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    let mut read = 0;
    for turn in 0..600 {
        let mut bytes = built.bytes.clone();
        for _ in 0..1 + turn % 40 {
            let place = next(bytes.len());
            bytes[place] = next(256) as u8;
        }
        if turn % 5 == 0 {
            bytes.truncate(next(bytes.len()));
        }
        let Ok(mut layout) = DataLayout::of("damaged", &bytes) else {
            continue;
        };
        let _ = layout.add_debug_info(&bytes);
        let Ok(accesses) = DataAccesses::of("damaged", &bytes, built.symbols.function_ranges()) else {
            continue;
        };
        read += 1;
        for place in touched_places(&layout, &accesses) {
            let line = place.address & !63;
            let _ = layout.pieces_in(line..line.saturating_add(64));
        }
    }
    assert!(read > 100, "{read}");
}
