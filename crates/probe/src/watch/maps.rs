//! The executable files that a process has mapped (`/proc/PID/maps`, man 5 proc_pid_maps).

use scaleprof_binary::perf_map::is_anonymous;
use std::path::PathBuf;

/// One mapping that holds code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeMapping {
    /// First address.
    pub start: u64,
    /// One past its last address.
    pub end: u64,
    /// Place of the first byte in the file.
    pub offset: u64,
    /// What is mapped.
    pub what: Mapped,
}

/// What a mapping shows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Mapped {
    /// A file; device and inode tell a file that was replaced from its successor of the same name.
    File { path: PathBuf, device: String, inode: u64 },
    /// The kernel's own code for user space.
    Vdso,
    /// Code that no file holds.
    Anonymous,
}

/// The executable mappings in the text of `/proc/PID/maps`, by rising address. Lines of another form are passed over.
pub(crate) fn parse_maps(text: &str) -> Vec<CodeMapping> {
    text.lines().filter_map(parse_line).collect()
}

/// The files that a process has mapped to run; empty where it is not to be asked.
#[must_use]
pub fn mapped_files(pid: u32) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut files: Vec<PathBuf> = parse_maps(&text)
        .into_iter()
        .filter_map(|mapping| match mapping.what {
            Mapped::File { path, .. } => Some(path),
            Mapped::Vdso | Mapped::Anonymous => None,
        })
        .collect();
    files.sort();
    files.dedup();
    files
}

fn parse_line(line: &str) -> Option<CodeMapping> {
    // The name stands behind padding and may hold blanks itself.
    let mut rest = line;
    let mut field = || {
        let (field, tail) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        rest = tail;
        field
    };
    let (start, end) = field().split_once('-')?;
    let permissions = field();
    let offset = field();
    let device = field();
    let inode = field().parse().ok()?;
    let name = rest.trim_start();
    if permissions.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let what = match name {
        "[vdso]" => Mapped::Vdso,
        // An address of the kernel's half: a relic whose code cannot be read.
        "[vsyscall]" => return None,
        path if path.starts_with('/') && !is_anonymous(path) => Mapped::File {
            path: PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path)),
            device: device.to_owned(),
            inode,
        },
        _ => Mapped::Anonymous,
    };
    Some(CodeMapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0100000 r--p 00000000 fe:00 123 /usr/sbin/mariadbd
55d0c0100000-55d0c0aa0000 r-xp 00100000 fe:00 123                        /usr/sbin/mariadbd
7f0000000000-7f0000001000 r-xp 00001000 fe:00 77  /opt/my sql/lib/plugin (1).so (deleted)
7f0000002000-7f0000003000 rwxp 00000000 00:00 0 \n\
7f0000004000-7f0000005000 r-xp 00000000 00:01 99                         /memfd:code (deleted)
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    #[test]
    fn only_code_is_taken_with_names_that_hold_blanks() {
        let found = parse_maps(MAPS);
        assert_eq!(found.len(), 5);
        assert_eq!(
            found[0],
            CodeMapping {
                start: 0x55d0_c010_0000,
                end: 0x55d0_c0aa_0000,
                offset: 0x10_0000,
                what: Mapped::File {
                    path: "/usr/sbin/mariadbd".into(),
                    device: "fe:00".into(),
                    inode: 123
                },
            }
        );
        assert!(
            matches!(&found[1].what, Mapped::File { path, .. } if path.as_os_str() == "/opt/my sql/lib/plugin (1).so")
        );
        assert_eq!([&found[2].what, &found[3].what], [&Mapped::Anonymous; 2]);
        assert_eq!(found[4].what, Mapped::Vdso);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "\\PC{0,200}") {
            let _ = parse_maps(&text);
        }
    }
}
