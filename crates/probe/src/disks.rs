//! What the disks did, from `/proc/diskstats` (Documentation/admin-guide/iostats.rst).
//!
//! Flushes (field 15 of the document, since Linux 5.5) are counted for whole disks only: the line of a partition always
//! says 0. So the figures are those of the whole disk that holds the server's data folder, or, where that cannot be told
//! (overlay, btrfs, tmpfs), of all disks that have hardware.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Counts of one or more disks since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskCounts {
    /// Reads that were completed.
    pub reads: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Flushes of the disk's cache that were completed; several fsyncs can share one. `None` before Linux 5.5.
    pub flushes: Option<u64>,
}

/// `/proc/diskstats` counts in sectors of 512 bytes, whatever the disk's own are.
const SECTOR_BYTES: u64 = 512;

/// One line of `/proc/diskstats`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk<'a> {
    /// Name of the device, such as `vda` or `nvme0n1p1`.
    pub name: &'a str,
    /// Its counts.
    pub counts: DiskCounts,
}

/// Reads `/proc/diskstats`; lines of another form are passed over.
pub fn parse_diskstats(text: &str) -> Vec<Disk<'_>> {
    text.lines()
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let figure = |index: usize| fields.get(index).and_then(|f| f.parse::<u64>().ok());
            let counts = DiskCounts {
                reads: figure(3)?,
                read_bytes: figure(5)?.wrapping_mul(SECTOR_BYTES),
                writes: figure(7)?,
                write_bytes: figure(9)?.wrapping_mul(SECTOR_BYTES),
                flushes: figure(18),
            };
            Some(Disk {
                name: fields[2],
                counts,
            })
        })
        .collect()
}

/// Adds up the disks that are chosen by name; `None` if there is none of them.
pub fn disk_counts(disks: &[Disk<'_>], chosen: impl Fn(&str) -> bool) -> Option<DiskCounts> {
    disks
        .iter()
        .filter(|disk| chosen(disk.name))
        .map(|disk| disk.counts)
        .reduce(|sum, more| DiskCounts {
            reads: sum.reads.wrapping_add(more.reads),
            writes: sum.writes.wrapping_add(more.writes),
            read_bytes: sum.read_bytes.wrapping_add(more.read_bytes),
            write_bytes: sum.write_bytes.wrapping_add(more.write_bytes),
            flushes: sum.flushes.zip(more.flushes).map(|(a, b)| a.wrapping_add(b)),
        })
}

/// The names of the disks to count: the one under `data_directory`, else all that have hardware.
pub(crate) fn choose_disks(data_directory: Option<&Path>) -> Vec<String> {
    if let Some(name) = data_directory.and_then(disk_under) {
        return vec![name];
    }
    let Ok(entries) = std::fs::read_dir("/sys/block") else {
        return Vec::new();
    };
    // A link to the bus device tells hardware from loop, ram, device mapper and RAID, whose work the hardware shows.
    entries
        .flatten()
        .filter(|entry| entry.path().join("device").exists())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// The whole disk that holds a folder.
fn disk_under(folder: &Path) -> Option<String> {
    let device = std::fs::metadata(folder).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let place = std::fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
    let whole = if place.join("partition").exists() {
        place.parent()?
    } else {
        &place
    };
    Some(whole.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DISKSTATS: &str = "\
   7       0 loop0 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9
 254       0 vda 92636 10890 6469298 142922 75161 27381 7382096 34725 0 51608 237434 52467 23 1429880 59566 6055 220
 254       1 vda1 100 0 200 0 300 0 400 0 0 0 0 0 0 0 0 0 0
 255       0 old 1 0 2 0 3 0 4 0 0 0 0
";

    #[test]
    fn sectors_become_bytes_and_flushes_are_found() {
        let disks = parse_diskstats(DISKSTATS);
        let counts = DiskCounts {
            reads: 92636,
            writes: 75161,
            read_bytes: 6469298 * 512,
            write_bytes: 7382096 * 512,
            flushes: Some(6055),
        };
        assert_eq!(disk_counts(&disks, |name| name == "vda"), Some(counts));
        assert_eq!(disk_counts(&disks, |name| name == "sdx"), None);
    }

    #[test]
    fn a_kernel_without_flush_counts_gives_none_and_never_zero() {
        let disks = parse_diskstats(DISKSTATS);
        assert_eq!(disk_counts(&disks, |name| name == "old").map(|c| c.flushes), Some(None));
        assert_eq!(disk_counts(&disks, |_| true).map(|c| c.flushes), Some(None));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = disk_counts(&parse_diskstats(&text), |_| true);
        }

        #[test]
        fn any_figures_are_read_without_panic(figures in proptest::collection::vec(any::<u64>(), 17)) {
            let fields: Vec<String> = figures.iter().map(u64::to_string).collect();
            let line = format!("8 0 sda {0}\n8 0 sda {0}\n", fields.join(" "));
            prop_assert!(disk_counts(&parse_diskstats(&line), |_| true).is_some());
        }
    }
}
