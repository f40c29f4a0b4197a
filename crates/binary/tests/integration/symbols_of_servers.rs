//! Names in real servers, against what binutils say of the same files.

use crate::files;
use scaleprof_vocabulary::SymbolSource;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use files::{Binary, binary, servers, vdso};
use scaleprof_binary::symbols::{SymbolFile, SymbolSearch};

fn open(binary: &Binary) -> SymbolFile {
    let start = Instant::now();
    let file = SymbolFile::open(&binary.path, &SymbolSearch::default()).expect("symbols");
    println!("{}: read in {:.0?}; {:?}", binary.name, start.elapsed(), file.notes());
    file
}

/// The output of one of binutils' programs; `None`, said aloud, where it is not installed.
fn binutils(program: &'static str, arguments: &[&str], path: &Path) -> Option<String> {
    match Command::new(program).args(arguments).arg(path).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            testing::skip!("{program}: {error}. apt-get install binutils");
            None
        }
    }
}

/// The list of Debian's 10.11, which belongs to another package than the server; scripts/fetch-symbols takes it out of that.
fn mariadb_list() -> Option<PathBuf> {
    let named = std::env::var_os("SCALEPROF_MARIADB_LIST").map(PathBuf::from);
    let places = [
        "/usr/share/doc/mariadb-server/mariadbd.sym.gz",
        "/var/cache/scaleprof/symbols/mariadb-server/mariadbd.sym.gz",
    ];
    let found = named
        .into_iter()
        .chain(places.map(PathBuf::from))
        .find(|path| path.is_file());
    if found.is_none() {
        testing::skip!("mariadb: its list of symbols is not there. scripts/fetch-symbols");
    }
    found
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text, 16).expect("a number")
}

#[test]
fn every_function_of_a_server_has_a_name_where_its_symbols_are_anywhere() {
    for binary in servers() {
        let mut search = SymbolSearch::default();
        if binary.name == "mariadb" {
            let Some(list) = mariadb_list() else { continue };
            search.lists.push(list);
        }
        let start = Instant::now();
        let file = SymbolFile::open(&binary.path, &search).expect("symbols");
        let opened = start.elapsed();
        let coverage = file.coverage();
        println!(
            "{}: opened in {opened:.0?}, {coverage:?}, {:?}",
            binary.name,
            file.notes()
        );
        let named = coverage.symtab + coverage.symbol_list + coverage.dynsym;
        assert!(named > 0.998, "{}: {coverage:?}", binary.name);
        assert!((named + coverage.function_bounds - 1.0).abs() < 1e-9);
    }
}

#[test]
fn a_stripped_server_alone_names_what_it_exports_and_the_rest_by_place() {
    for name in ["mariadb", "mariadb-11.8", "mysql-9.7"] {
        let Some(binary) = binary(name) else { continue };
        let file = SymbolFile::open(&binary.path, &SymbolSearch::nowhere()).expect("symbols");
        let coverage = file.coverage();
        println!("{name}: {coverage:?}");
        assert!((0.4..0.8).contains(&coverage.dynsym), "{coverage:?}");
        assert!((0.2..0.6).contains(&coverage.function_bounds), "{coverage:?}");
        let start = scaleprof_binary::loads::segments(&binary.bytes);
        let code = start.iter().find(|segment| segment.executable).expect("code");
        let places = (code.svma..code.end())
            .step_by(4099)
            .filter_map(|svma| file.function(svma));
        let place = places
            .into_iter()
            .find(|function| function.source == SymbolSource::FrameBounds);
        let place = place.expect("a function without a name");
        assert!(
            place.name.ends_with(&format!("!fun_{:x}", place.start)),
            "{}",
            place.name
        );
    }
}

/// Nothing but `nm` knows of 5.6.14: every function with a size, at its first byte and its last.
#[test]
fn functions_have_the_names_that_nm_gives_them() {
    for name in ["mysql-5.6.14", "mysql-9.7", "mariadb", "libstdc++"] {
        let Some(binary) = binary(name) else { continue };
        let dynamic: &[&str] = if name == "mysql-5.6.14" {
            &["-S", "--defined-only"]
        } else {
            &["-D", "-S", "--defined-only"]
        };
        let Some(text) = binutils("nm", dynamic, &binary.path) else {
            continue;
        };
        let file = SymbolFile::open(&binary.path, &SymbolSearch::nowhere()).expect("symbols");
        let mut names: BTreeMap<u64, (u64, HashSet<&str>)> = BTreeMap::new();
        for line in text.lines() {
            if let [address, size, "t" | "T" | "w" | "W" | "i", name] = line.split_whitespace().collect::<Vec<_>>()[..]
            {
                let name = name.split('@').next().expect("a name");
                let known = names.entry(hexadecimal(address)).or_default();
                known.0 = known.0.max(hexadecimal(size));
                known.1.insert(name);
            }
        }
        assert!(names.len() > 3000, "{name}: nm lists {}", names.len());
        // nm takes a constant for a function in files whose sections patchelf has moved.
        let segments = scaleprof_binary::loads::segments(&binary.bytes);
        let is_code = |svma: u64| {
            segments
                .iter()
                .any(|segment| segment.executable && segment.contains(svma))
        };
        names.retain(|start, _| is_code(*start));
        let starts: Vec<u64> = names.keys().copied().collect();
        let mut last_bytes = 0;
        for (index, (start, (size, known))) in names.iter().enumerate() {
            let found = file
                .function(*start)
                .unwrap_or_else(|| panic!("{name}: nothing at {start:#x} {known:?}"));
            assert!(
                known.contains(&*found.linkage_name),
                "{name}: {found:?} instead of {known:?}"
            );
            assert_eq!((found.start, found.offset), (*start, 0));
            let last = start + size - 1;
            if starts.get(index + 1).is_none_or(|next| last < *next) {
                let found = file
                    .function(last)
                    .unwrap_or_else(|| panic!("{name}: nothing at {last:#x} {known:?}"));
                assert_eq!(found.start, *start, "{name}: {found:?}");
                last_bytes += 1;
            }
        }
        assert!(last_bytes * 10 > starts.len() * 9);
    }
}

#[test]
fn variables_have_the_names_that_nm_gives_them() {
    for name in ["mysql-5.6.14", "mysql-9.7", "mariadb"] {
        let Some(binary) = binary(name) else { continue };
        let dynamic: &[&str] = if name == "mysql-5.6.14" {
            &["-S", "--defined-only"]
        } else {
            &["-D", "-S", "--defined-only"]
        };
        let Some(text) = binutils("nm", dynamic, &binary.path) else {
            continue;
        };
        let file = SymbolFile::open(&binary.path, &SymbolSearch::nowhere()).expect("symbols");
        let (mut compared, mut elsewhere, mut missing) = (0, 0, Vec::new());
        let mut names: HashMap<u64, HashSet<&str>> = HashMap::new();
        for line in text.lines() {
            if let [address, _, "b" | "B" | "d" | "D", name] = line.split_whitespace().collect::<Vec<_>>()[..] {
                names
                    .entry(hexadecimal(address))
                    .or_default()
                    .insert(name.split('@').next().expect("a name"));
            }
        }
        for (address, known) in &names {
            match file.variable(*address) {
                Some(found) => {
                    compared += 1;
                    // One that begins elsewhere is a larger one that this one lies in.
                    match found.start == *address {
                        true => assert!(known.contains(found.linkage_name), "{name}: {found:?} for {known:?}"),
                        false => elsewhere += 1,
                    }
                }
                None => missing.push(known),
            }
        }
        println!(
            "{name}: {compared} variables, {elsewhere} within others, {} missing: {:?}",
            missing.len(),
            &missing[..missing.len().min(5)]
        );
        assert!(compared > 500, "{name}: only {compared}");
        assert!(elsewhere * 20 < compared, "{name}: {elsewhere} begin elsewhere");
        // Thread-local ones have no addresses.
        assert!(missing.len() * 20 < compared, "{name}: {missing:?}");
    }
}

#[test]
fn two_variables_of_one_cache_line_are_told_apart() {
    let Some(binary) = binary("mysql-5.6.14") else { return };
    let file = open(&binary);
    let counter = (0x118_1000..0x138_0000_u64)
        .step_by(4)
        .find(|svma| {
            file.variable(*svma)
                .is_some_and(|variable| variable.name == "btr_search_enabled")
        })
        .expect("InnoDB's switch");
    let line = counter & !63;
    let names: HashSet<String> = (line..line + 64)
        .filter_map(|svma| Some(file.variable(svma)?.name))
        .collect();
    assert!(names.contains("ut_rnd_ulint_counter"), "{names:?}");
}

/// Linkage name, file without folders, line.
type Place = (String, Option<String>, Option<u32>);

/// The functions that the compiler put into others, file and line, for addresses all over the server.
#[test]
fn inlined_functions_files_and_lines_are_those_of_addr2line() {
    let Some(binary) = binary("mysql-5.6.14") else { return };
    let file = open(&binary);
    let segments = scaleprof_binary::loads::segments(&binary.bytes);
    let code = segments.iter().find(|segment| segment.executable).expect("code");
    let addresses: Vec<u64> = (code.svma..code.end())
        .step_by(9973)
        .filter(|svma| {
            file.function(*svma)
                .is_some_and(|function| !function.name.ends_with("@plt"))
        })
        .collect();
    let arguments: Vec<String> = addresses.iter().map(|address| format!("{address:#x}")).collect();
    let output = Command::new("addr2line")
        .args(["-a", "-f", "-i", "-e"])
        .arg(&binary.path)
        .args(arguments)
        .output();
    let Ok(output) = output else {
        testing::skip!("addr2line: it is not installed. apt-get install binutils");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines().peekable();
    let (mut agree, mut inlined, mut differ) = (0, 0, Vec::new());
    let start = Instant::now();
    for svma in &addresses {
        assert_eq!(
            lines.next().map(|line| hexadecimal(line.trim_start_matches("0x"))),
            Some(*svma)
        );
        let mut theirs = Vec::new();
        while let Some(name) = lines.next_if(|line| !line.starts_with("0x")) {
            let place = lines.next().expect("a place");
            let (path, line) = place.rsplit_once(':').expect("a line");
            let line = line
                .split(' ')
                .next()
                .and_then(|line| line.parse().ok())
                .filter(|line| *line > 0);
            let file = path.rsplit('/').next().filter(|name| *name != "??").map(str::to_owned);
            theirs.push((name.to_owned(), file, line));
        }
        let frames = file.frames(*svma);
        inlined += frames.iter().filter(|frame| frame.inlined).count();
        assert!(!frames.last().expect("never empty").inlined);
        let ours: Vec<Place> = frames
            .into_iter()
            .map(|frame| {
                let file = frame.file.and_then(|path| Some(path.rsplit('/').next()?.to_owned()));
                (frame.linkage_name, file, frame.line)
            })
            .collect();
        // binutils 2.40 gives inlined functions of old compilers the name of the function around them and leaves some
        // out, so names and the length of the list are not compared, but where the machine's instruction comes from.
        let place = |frames: &[Place]| {
            frames
                .first()
                .and_then(|(_, file, line)| Some((file.clone()?, (*line)?)))
        };
        let inner = place(&ours) == place(&theirs);
        let outer = file.function(*svma).map(|function| function.linkage_name.into_owned());
        if inner && outer == ours.last().map(|(name, _, _)| name.clone()) {
            agree += 1;
        } else {
            differ.push((ours, theirs));
        }
    }
    let took = start.elapsed();
    println!(
        "{agree} of {} agree, {inlined} inlined, {took:.0?}; {:#?}",
        addresses.len(),
        differ.iter().take(4).collect::<Vec<_>>()
    );
    assert!(
        agree * 100 >= addresses.len() * 98,
        "{agree} of {}: {differ:#?}",
        addresses.len()
    );
    assert!(inlined > 20);
}

#[test]
fn calls_into_libraries_have_the_names_that_objdump_gives_them() {
    for name in ["mariadb", "mysql-5.6.14", "mysql-9.7", "libc"] {
        let Some(binary) = binary(name) else { continue };
        let file = SymbolFile::open(&binary.path, &SymbolSearch::nowhere()).expect("symbols");
        let arguments = [
            "-d",
            "-j",
            ".plt",
            "-j",
            ".plt.sec",
            "-j",
            ".plt.got",
            "--no-show-raw-insn",
        ];
        let Some(text) = binutils("objdump", &arguments, &binary.path) else {
            return;
        };
        let mut compared = 0;
        for line in text.lines() {
            let Some((address, stub)) = line.split_once(" <").and_then(|(address, rest)| {
                let stub = rest.strip_suffix(">:")?.strip_suffix("@plt")?;
                Some((u64::from_str_radix(address, 16).ok()?, stub))
            }) else {
                continue;
            };
            // Functions that the library chooses at run time have no names there.
            if stub.starts_with("*ABS*") {
                continue;
            }
            let stub = stub.split('@').next().expect("a name");
            let found = file
                .function(address + 3)
                .unwrap_or_else(|| panic!("{name}: nothing at {address:#x}, {stub}"));
            assert_eq!(found.linkage_name, format!("{stub}@plt"), "{name} at {address:#x}");
            assert_eq!((found.start, found.offset), (address, 3));
            compared += 1;
        }
        println!("{name}: {compared} stubs");
        assert!(
            compared > if name == "libc" { 0 } else { 100 },
            "{name}: only {compared} stubs"
        );
    }
}

#[test]
fn a_list_of_another_server_is_refused_with_the_reason() {
    let (Some(server), Some(other)) = (binary("mysql-9.7"), binary("mariadb-11.8")) else {
        return;
    };
    let list = other
        .path
        .parent()
        .expect("a folder")
        .join("../share/doc/mariadb-server/mariadbd.sym.gz");
    let search = SymbolSearch {
        lists: vec![list],
        ..SymbolSearch::nowhere()
    };
    let file = SymbolFile::open(&server.path, &search).expect("symbols");
    assert!(
        file.notes()[0].contains("not used as list of symbols"),
        "{:?}",
        file.notes()
    );
    assert_eq!(file.coverage().symbol_list, 0.0);
}

#[test]
fn a_debug_file_of_libc_names_its_static_functions() {
    let Some(libc) = binary("libc") else { return };
    let file = open(&libc);
    let coverage = file.coverage();
    println!("{coverage:?} {:?}", file.build_id());
    if !file.notes().iter().any(|note| note.contains("used as debug file")) {
        testing::skip!("no debug file of libc. apt-get install libc6-dbg");
        return;
    }
    assert!(coverage.symtab > 0.95, "{coverage:?}");
}

#[test]
fn the_vdso_names_its_functions() {
    let file = SymbolFile::from_bytes("[vdso]", &vdso()).expect("symbols");
    let names: HashSet<String> = (0..0x2000).filter_map(|svma| Some(file.function(svma)?.name)).collect();
    assert!(names.iter().any(|name| name.contains("clock_gettime")), "{names:?}");
    assert_eq!(file.frames(u64::MAX)[0].name, "[vdso]+0xffffffffffffffff");
}

#[test]
fn files_that_are_no_binaries_say_so() {
    let script = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(script.path(), "#!/bin/sh\n").expect("written");
    let message = |path: &Path| match SymbolFile::open(path, &SymbolSearch::default()) {
        Ok(_) => panic!("opened {}", path.display()),
        Err(error) => error.to_string(),
    };
    assert!(message(script.path()).contains("not a 64-bit ELF file"));
    assert!(message(Path::new("/nowhere/mysqld")).contains("cannot read /nowhere/mysqld"));
}

#[test]
fn an_index_may_be_used_by_many_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<SymbolFile>();
}

/// Names come from files that anyone may have written.
#[test]
fn a_library_with_broken_bytes_is_read_without_harm() {
    let Some(libc) = binary("libc") else { return };
    let libm = std::fs::read(libc.path.with_file_name("libm.so.6")).expect("the library beside the C library");
    let mut runner = proptest::test_runner::TestRunner::new(proptest::test_runner::Config::with_cases(60));
    let near_the_start = 0..4096_usize;
    let near_the_end = libm.len() - 4096..libm.len();
    let anywhere = 0..libm.len();
    let place = proptest::prop_oneof![near_the_start, near_the_end, anywhere];
    let breaks = proptest::collection::vec((place, proptest::num::u8::ANY), 1..400);
    let outcome = runner.run(&breaks, |breaks| {
        let mut bytes = libm.clone();
        for (place, value) in breaks {
            bytes[place] = value;
        }
        if let Ok(file) = SymbolFile::from_bytes("libm.so.6", &bytes) {
            for svma in (0..bytes.len() as u64).step_by(4093) {
                let _ = (file.function(svma), file.variable(svma), file.frames(svma));
            }
            let _ = file.coverage();
        }
        let _ = scaleprof_binary::unwind::UnwindTable::from_elf(&bytes);
        Ok(())
    });
    outcome.expect("no panic");
}
