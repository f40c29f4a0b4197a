//! Which parts of a file are loaded, and by how much a process has moved them.

use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, elf};

/// One `PT_LOAD` program header: a piece of the file that the loader maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Virtual address of its first byte, as the file states it.
    pub svma: u64,
    /// Where its first byte lies in the file.
    pub file_offset: u64,
    /// Bytes that come from the file.
    pub file_size: u64,
    /// Bytes in memory; what the file lacks is zero (`.bss`).
    pub memory_size: u64,
    /// Whether code in it may run.
    pub executable: bool,
}

impl Segment {
    /// The address behind the last byte in memory.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.svma.saturating_add(self.memory_size)
    }

    /// Whether the address lies in it.
    #[must_use]
    pub fn contains(&self, svma: u64) -> bool {
        self.svma <= svma && svma < self.end()
    }
}

/// Most segments that are looked at; linkers make some ten.
const MOST_SEGMENTS: usize = 256;

/// The `PT_LOAD` segments of a 64-bit ELF file, in the file's order; empty if the bytes are no such file.
#[must_use]
pub fn segments(bytes: &[u8]) -> Vec<Segment> {
    let Ok(header) = elf::FileHeader64::<Endianness>::parse(bytes) else {
        return Vec::new();
    };
    let Ok(endian) = header.endian() else {
        return Vec::new();
    };
    let Ok(headers) = header.program_headers(endian, bytes) else {
        return Vec::new();
    };
    headers
        .iter()
        .filter(|header| header.p_type(endian) == elf::PT_LOAD)
        .map(|header| Segment {
            svma: header.p_vaddr(endian),
            file_offset: header.p_offset(endian),
            file_size: header.p_filesz(endian),
            memory_size: header.p_memsz(endian),
            executable: header.p_flags(endian).contains(elf::PF_X),
        })
        .take(MOST_SEGMENTS)
        .collect()
}

/// The bytes of the file that a segment loads; short where the file is.
#[must_use]
pub fn segment_bytes<'bytes>(bytes: &'bytes [u8], segment: &Segment) -> &'bytes [u8] {
    let length = bytes.len() as u64;
    let start = segment.file_offset.min(length);
    let end = start.saturating_add(segment.file_size).min(length);
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

/// What to subtract from an address in a process to get the file's own (modulo 2^64), from a line of
/// `/proc/PID/maps`: where the mapping starts and which offset of the file it shows. `None` if no segment shows it.
///
/// Mappings start at page boundaries, segments need not: the loader rounds a segment's start down to its page, so that
/// a mapping may show the last bytes of the segment before as well, which are mapped elsewhere (a page of the file that
/// two segments share is mapped twice). So a segment that starts in the mapping's first page is the one meant; only if
/// there is none, the one that holds the offset in its middle (a mapping that `mprotect` split). Should two segments
/// start in one page, the executable one is taken: it is code that a profile asks for.
#[must_use]
pub fn bias(mapping_start: u64, mapping_file_offset: u64, segments: &[Segment]) -> Option<u64> {
    let starts_within = |page: u64| {
        let mut found: Vec<&Segment> = segments
            .iter()
            .filter(|segment| {
                segment.file_size > 0
                    && segment.file_offset >= mapping_file_offset
                    && segment.file_offset - mapping_file_offset < page
            })
            .collect();
        found.sort_by_key(|segment| !segment.executable);
        found.first().copied()
    };
    let holds = || {
        segments.iter().find(|segment| {
            mapping_file_offset >= segment.file_offset && mapping_file_offset - segment.file_offset < segment.file_size
        })
    };
    // The smallest page that the supported processors use, and the largest.
    let segment = starts_within(0x1000)
        .or_else(holds)
        .or_else(|| starts_within(0x1_0000))?;
    let svma = segment
        .svma
        .wrapping_add(mapping_file_offset.wrapping_sub(segment.file_offset));
    Some(mapping_start.wrapping_sub(svma))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Segments as linkers lay them out: one behind the other in the file, each pushed some pages further in memory.
    fn layout() -> impl Strategy<Value = Vec<Segment>> {
        let one = (0x1000_u64..0x40_0000, 0_u64..4, any::<bool>(), 0_u64..0x1_0000);
        (prop::collection::vec(one, 1..6), prop_oneof![Just(0), Just(0x40_0000)]).prop_map(|(pieces, base)| {
            let mut file_offset = 0;
            let mut push = base;
            let mut segments = Vec::new();
            for (file_size, pages, executable, zeros) in pieces {
                push += (pages + 1) << 12;
                segments.push(Segment {
                    svma: file_offset + push,
                    file_offset,
                    file_size,
                    memory_size: file_size + zeros,
                    executable,
                });
                push += (zeros + 0xfff) & !0xfff;
                file_offset += file_size;
            }
            segments
        })
    }

    proptest! {
        /// The loader maps every segment from its page on; each of those mappings must give the load address back.
        #[test]
        fn every_mapping_that_the_loader_makes_gives_the_load_address_back(segments in layout(), pages in 0_u64..1 << 30) {
            let load = pages << 12;
            for segment in &segments {
                let lead = segment.file_offset & 0xfff;
                let start = load + segment.svma - lead;
                prop_assert_eq!(bias(start, segment.file_offset - lead, &segments), Some(load));
            }
        }

        #[test]
        fn a_mapping_split_in_its_middle_gives_the_same(segments in layout(), pages in 0_u64..1 << 30, part in 0.0..1.0_f64) {
            let load = pages << 12;
            for (index, segment) in segments.iter().enumerate() {
                let inner = ((segment.file_size as f64 * part) as u64 + segment.file_offset) & !0xfff;
                // The last page may be the next segment's first, which is mapped on its own.
                let shared = segments.get(index + 1).is_some_and(|next| inner >= next.file_offset & !0xfff);
                if inner < segment.file_offset || shared {
                    continue;
                }
                let start = load + segment.svma + (inner - segment.file_offset);
                prop_assert_eq!(bias(start, inner, &segments), Some(load));
            }
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..256), start: u64, offset: u64) {
            let found = segments(&bytes);
            let _ = bias(start, offset, &found);
        }
    }

    #[test]
    fn the_running_test_is_where_its_maps_say() {
        let here = the_running_test_is_where_its_maps_say as fn() as usize as u64;
        let path = std::env::current_exe().expect("a path");
        let bytes = std::fs::read(&path).expect("readable");
        let found = segments(&bytes);
        let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
        let line = maps.lines().find(|line| {
            let (start, end) = range(line);
            start <= here && here < end
        });
        let fields: Vec<&str> = line.expect("a mapping of this code").split_whitespace().collect();
        let offset = u64::from_str_radix(fields[2], 16).expect("a number");
        let bias = bias(range(fields[0]).0, offset, &found).expect("a segment");
        let svma = here.wrapping_sub(bias);
        assert!(found.iter().any(|segment| segment.executable && segment.contains(svma)));
        // The same for every other mapping that the loader made of this file: they all moved together. Tests beside this one map the
        // file once more, elsewhere, to read it.
        let end = found.iter().map(Segment::end).max().expect("segments");
        let loaded = |line: &&str| line.ends_with(&*path.to_string_lossy()) && range(line).0.wrapping_sub(bias) < end;
        assert!(maps.lines().filter(loaded).count() > 1);
        for line in maps.lines().filter(loaded) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let offset = u64::from_str_radix(fields[2], 16).expect("a number");
            assert_eq!(super::bias(range(fields[0]).0, offset, &found), Some(bias), "{line}");
        }
    }

    fn range(line: &str) -> (u64, u64) {
        let (start, rest) = line.split_once('-').expect("a range");
        let end = rest.split_whitespace().next().expect("an end");
        let parse = |text| u64::from_str_radix(text, 16).expect("a number");
        (parse(start), parse(end))
    }
}
