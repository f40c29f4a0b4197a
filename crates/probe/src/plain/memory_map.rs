//! What is mapped where in a process: `/proc/PID/maps` (man 5 proc_pid_maps).

use std::ops::Range;

/// One line of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Addresses in the process.
    pub addresses: Range<u64>,
    /// Whether it holds code.
    pub executable: bool,
    /// Position in the file at which it begins.
    pub file_offset: u64,
    /// Major and minor number of the device that the file is on, as the kernel's file system has it.
    pub device: (u32, u32),
    /// The file's number on that device; 0 for memory of no file.
    pub inode: u64,
    /// The file as the process sees it, or a name in square brackets; empty for memory without a name. The kernel writes
    /// a newline in it as `\012` and adds ` (deleted)` where the file was removed.
    pub path: String,
}

/// Reads the text of `/proc/PID/maps`; lines of another form are passed over.
pub fn parse_maps(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Mapping> {
    // Only single blanks stand between the first five fields; the path is padded from the left and may hold blanks.
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let permissions = fields.next()?;
    let file_offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let device = (
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
    );
    let inode = fields.next()?.parse().ok()?;
    (start < end).then(|| Mapping {
        addresses: start..end,
        executable: permissions.as_bytes().get(2) == Some(&b'x'),
        file_offset,
        device,
        inode,
        path: fields.next().unwrap_or_default().trim_start().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_line_reads_as_the_kernel_means_it() {
        let text = "55c7a2730000-55c7a2735000 r-xp 00002000 fe:00 247026                     /opt/my sql/bin/x (deleted)\n\
                    7ffd0000-7ffd2000 r-xp 00000000 00:00 0                          [vdso]\n\
                    7f00-8f00 rw-p 00000000 00:00 0 \n\
                    nonsense\n";
        let maps = parse_maps(text);
        assert_eq!(maps.len(), 3);
        assert_eq!(
            maps[0],
            Mapping {
                addresses: 0x55c7_a273_0000..0x55c7_a273_5000,
                executable: true,
                file_offset: 0x2000,
                device: (0xfe, 0),
                inode: 247_026,
                path: "/opt/my sql/bin/x (deleted)".to_owned(),
            }
        );
        assert_eq!(maps[1].path, "[vdso]");
        assert_eq!((maps[2].path.as_str(), maps[2].executable), ("", false));
    }

    #[test]
    fn the_own_maps_hold_the_own_code() {
        let maps = parse_maps(&std::fs::read_to_string("/proc/self/maps").expect("readable"));
        let here = the_own_maps_hold_the_own_code as *const () as u64;
        let mapping = maps
            .iter()
            .find(|mapping| mapping.addresses.contains(&here))
            .expect("mapped");
        assert!(mapping.executable);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "[0-9a-f rwxp:-]{0,60}.{0,40}") {
            let _ = parse_maps(&text);
        }
    }
}
