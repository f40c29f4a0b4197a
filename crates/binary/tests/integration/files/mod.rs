//! The real servers and libraries that the tests read.

#![allow(dead_code)] // each test program uses its part

pub mod small_elf;

use std::path::{Path, PathBuf};
use testing::{no_server, servers_cache};

/// A file to read.
pub struct Binary {
    /// What the tests call it.
    pub name: &'static str,
    /// Where it is.
    pub path: PathBuf,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// One by its name; says aloud that it is skipped where it is not there.
pub fn binary(name: &'static str) -> Option<Binary> {
    let cache = servers_cache();
    let path = match name {
        "mariadb" => PathBuf::from("/usr/sbin/mariadbd"),
        "mysql-5.6.14" => cache.join("mysql-5.6.14/bin/mysqld"),
        "mariadb-11.8" => cache.join("mariadb-11.8/usr/sbin/mariadbd"),
        "mysql-9.7" => cache.join("mysql-9.7/usr/sbin/mysqld"),
        library => library_folder().join(match library {
            "libc" => "libc.so.6",
            "libstdc++" => "libstdc++.so.6",
            "libcrypto" => "libcrypto.so.3",
            other => panic!("there is no {other}"),
        }),
    };
    match std::fs::read(&path) {
        Ok(bytes) => Some(Binary { name, path, bytes }),
        Err(error) => {
            no_server(name, &format!("{}: {error}", path.display()));
            None
        }
    }
}

fn library_folder() -> PathBuf {
    let folder = Path::new("/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    if folder.is_dir() {
        folder
    } else {
        PathBuf::from("/lib64")
    }
}

/// All servers that there are.
pub fn servers() -> Vec<Binary> {
    let names = ["mariadb", "mysql-5.6.14", "mariadb-11.8", "mysql-9.7"];
    names.into_iter().filter_map(binary).collect()
}

/// All servers and libraries that there are.
pub fn binaries() -> Vec<Binary> {
    let libraries = ["libc", "libstdc++", "libcrypto"];
    servers()
        .into_iter()
        .chain(libraries.into_iter().filter_map(binary))
        .collect()
}

/// The vDSO of this process.
pub fn vdso() -> Vec<u8> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let line = maps.lines().find(|line| line.ends_with("[vdso]")).expect("a vDSO");
    let (start, rest) = line.split_once('-').expect("a range");
    let end = rest.split_whitespace().next().expect("an end");
    let parse = |text| u64::from_str_radix(text, 16).expect("a number");
    let (start, end) = (parse(start), parse(end));
    let memory = std::fs::File::open("/proc/self/mem").expect("own memory");
    let mut bytes = vec![0; (end - start) as usize];
    std::os::unix::fs::FileExt::read_exact_at(&memory, &mut bytes, start).expect("the vDSO is mapped");
    bytes
}
