//! The call frame information of a file: `.eh_frame`, or `.debug_frame` where there is none.
//!
//! A frame description entry (FDE) covers the code of one function, or of a part of one that the compiler moved away
//! (`.cold`). Unwinding and naming both stand on them: their ranges are the only bounds that survive `strip`.

mod plain_bounds;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use gimli::{BaseAddresses, EndianSlice, LittleEndian, UnwindContext, UnwindSection};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, elf};

use crate::loads::{self, Segment};
use crate::section::Room;
use crate::unwind_error::{Architecture, UnwindError};

pub(crate) type Bytes<'data> = EndianSlice<'data, LittleEndian>;
pub(crate) type Fde<'data> = gimli::FrameDescriptionEntry<Bytes<'data>>;
pub(crate) type Rows<'data, 'context> = gimli::UnwindTable<'data, 'context, Bytes<'data>>;

/// A section of call frame information, ready to be read.
pub(crate) struct CallFrames<'data> {
    data: Cow<'data, [u8]>,
    kind: Kind,
    bases: BaseAddresses,
    pub(crate) architecture: Architecture,
    /// The loaded segments, no longer than the file is.
    pub(crate) segments: Vec<Segment>,
}

#[derive(Clone, Copy)]
enum Kind {
    Eh,
    Debug,
}

/// Whether a file is the vDSO of aarch64, from which the kernel's linker script drops the call frame information (seen in Linux 6.1 and
/// 6.12). Its clocks call nobody (unwind/leaf_functions.rs); what keeps a frame has a frame pointer in it, which the walk follows by itself.
pub(crate) fn is_vdso(architecture: Architecture, file: &object::File<'_>) -> bool {
    const SIGNAL_TRAMPOLINE: &str = "__kernel_rt_sigreturn";
    let has_trampoline = || {
        file.dynamic_symbols()
            .any(|symbol| symbol.name() == Ok(SIGNAL_TRAMPOLINE))
    };
    architecture == Architecture::Aarch64 && has_trampoline()
}

/// Room for more entries is only made once they are there.
const MOST_EXPECTED: usize = 1 << 20;

/// The entries of a section.
pub(crate) struct Entries<'data> {
    /// Those that cover code of the file, by start and then by their order in the section.
    pub(crate) fdes: Vec<Fde<'data>>,
    /// How many could not be read.
    pub(crate) damaged: u32,
}

impl<'data> CallFrames<'data> {
    /// Finds the section of an ELF file.
    pub(crate) fn from_elf(bytes: &'data [u8]) -> Result<Self, UnwindError> {
        let file = object::File::parse(bytes).map_err(UnwindError::NotElf)?;
        let architecture = match (file.architecture(), file.is_little_endian(), file.is_64()) {
            (object::Architecture::X86_64, true, true) => Architecture::X86_64,
            (object::Architecture::Aarch64, true, true) => Architecture::Aarch64,
            (other, ..) => return Err(UnwindError::Architecture(format!("{other:?}"))),
        };
        let mut segments = loads::segments(bytes);
        for segment in &mut segments {
            segment.file_size = loads::segment_bytes(bytes, segment).len() as u64;
        }
        let address = |name| file.section_by_name(name).map(|section| section.address());
        let mut bases = BaseAddresses::default();
        if let Some(text) = address(".text") {
            bases = bases.set_text(text);
        }
        if let Some(got) = address(".got") {
            bases = bases.set_got(got);
        }
        let room = Room::of_file(bytes.len());
        let section = |name| {
            let section = file.section_by_name(name)?;
            let data = room.content(&section)?.into_cow();
            (!data.is_empty()).then(|| (section.address(), data))
        };
        let found = if let Some(found) = section(".eh_frame").or_else(|| by_program_header(bytes, &segments)) {
            Some((Kind::Eh, found))
        } else {
            section(".debug_frame").map(|found| (Kind::Debug, found))
        };
        // The vDSO of aarch64 has none: its rules are seen in its code (unwind/leaf_functions.rs).
        let nothing = || is_vdso(architecture, &file).then_some((Kind::Eh, (0, Cow::Borrowed(&[][..]))));
        let (kind, (start, data)) = found.or_else(nothing).ok_or(UnwindError::NoCallFrames)?;
        Ok(CallFrames {
            data,
            kind,
            bases: bases.set_eh_frame(start),
            architecture,
            segments,
        })
    }

    /// The section as its kind of it is read.
    pub(crate) fn section(&self) -> Section<'_> {
        let reader = match self.kind {
            Kind::Eh => {
                let mut section = gimli::EhFrame::new(&self.data, LittleEndian);
                section.set_vendor(self.vendor());
                Reader::Eh(section)
            }
            Kind::Debug => {
                let mut section = gimli::DebugFrame::new(&self.data, LittleEndian);
                section.set_address_size(8);
                section.set_vendor(self.vendor());
                Reader::Debug(section)
            }
        };
        let bases = &self.bases;
        Section { reader, bases }
    }

    /// Opcode 0x2d means two things: `DW_CFA_GNU_window_save` and, on aarch64, `DW_CFA_AARCH64_negate_ra_state`.
    fn vendor(&self) -> gimli::Vendor {
        match self.architecture {
            Architecture::Aarch64 => gimli::Vendor::AArch64,
            Architecture::X86_64 => gimli::Vendor::Default,
        }
    }

    /// Reads all entries that start in executable segments, by start and then by their order in the section.
    ///
    /// Others stand for functions that the linker threw away: their addresses are left near 0 in `.debug_frame`.
    pub(crate) fn entries(&self) -> Entries<'_> {
        let mut fdes = Vec::new();
        let damaged = self.for_each_entry(|fde| {
            if self.code_range(&fde).is_some() {
                fdes.push(fde);
            }
        });
        fdes.sort_by_key(gimli::FrameDescriptionEntry::initial_address);
        Entries { fdes, damaged }
    }

    /// The code that each entry covers, in the order of [`entries`](Self::entries).
    pub(crate) fn code_ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = match self.plain_bounds() {
            Some(bounds) => {
                let ranges = bounds.into_iter();
                ranges
                    .filter_map(|(start, length)| self.code_of(start, length))
                    .collect()
            }
            None => self.code_ranges_by_gimli(),
        };
        ranges.sort_by_key(|range| range.start);
        ranges
    }

    fn plain_bounds(&self) -> Option<Vec<(u64, u64)>> {
        match self.kind {
            Kind::Eh => plain_bounds::plain_bounds(&self.data, &self.bases),
            Kind::Debug => None,
        }
    }

    fn code_ranges_by_gimli(&self) -> Vec<Range<u64>> {
        // Nearly all have more bytes than that, so that little is moved again; without the room it grows as needed.
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let _ = ranges.try_reserve((self.data.len() / 32).min(MOST_EXPECTED));
        self.for_each_entry(|fde| ranges.extend(self.code_range(&fde)));
        ranges
    }

    /// Gives each entry that can be read, and then how many could not.
    fn for_each_entry<'own>(&'own self, take: impl FnMut(Fde<'own>)) -> u32 {
        match self.section().reader {
            Reader::Eh(reader) => read_entries(&reader, &self.bases, take),
            Reader::Debug(reader) => read_entries(&reader, &self.bases, take),
        }
    }

    /// The code that an entry covers, cut at the end of the segment that holds its start.
    pub(crate) fn code_range(&self, fde: &Fde<'_>) -> Option<Range<u64>> {
        self.code_of(fde.initial_address(), fde.len())
    }

    fn code_of(&self, start: u64, length: u64) -> Option<Range<u64>> {
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.executable && segment.svma <= start && start < file_end(segment))?;
        let end = start.saturating_add(length).min(file_end(segment));
        (start < end).then_some(start..end)
    }
}

fn file_end(segment: &Segment) -> u64 {
    segment.svma.saturating_add(segment.file_size)
}

/// What reads a section's rows.
pub(crate) struct Section<'data> {
    reader: Reader<'data>,
    bases: &'data BaseAddresses,
}

enum Reader<'data> {
    Eh(gimli::EhFrame<Bytes<'data>>),
    Debug(gimli::DebugFrame<Bytes<'data>>),
}

impl<'data> Section<'data> {
    /// Starts evaluating the rows of an entry.
    pub(crate) fn rows<'context>(
        &'data self,
        fde: &Fde<'data>,
        context: &'context mut UnwindContext<usize>,
    ) -> gimli::Result<Rows<'data, 'context>> {
        match &self.reader {
            Reader::Eh(reader) => fde.rows(reader, self.bases, context),
            Reader::Debug(reader) => fde.rows(reader, self.bases, context),
        }
    }

    /// The operations of an expression in a rule.
    pub(crate) fn expression(&self, expression: &gimli::UnwindExpression<usize>) -> Option<&'data [u8]> {
        let expression = match &self.reader {
            Reader::Eh(reader) => expression.get(reader),
            Reader::Debug(reader) => expression.get(reader),
        };
        Some(expression.ok()?.0.slice())
    }
}

fn read_entries<'data, S>(section: &S, bases: &BaseAddresses, mut take: impl FnMut(Fde<'data>)) -> u32
where
    S: UnwindSection<Bytes<'data>>,
    S::Offset: std::hash::Hash,
{
    let mut common = HashMap::new();
    let mut damaged = 0;
    let mut entries = section.entries(bases);
    loop {
        match entries.next() {
            Ok(Some(gimli::CieOrFde::Fde(partial))) => {
                let fde = partial.parse(|section, bases, offset| match common.get(&offset) {
                    Some(cie) => Clone::clone(cie),
                    None => {
                        let cie = section.cie_from_offset(bases, offset);
                        common.insert(offset, Clone::clone(&cie));
                        cie
                    }
                });
                match fde {
                    Ok(fde) => take(fde),
                    Err(_) => damaged += 1,
                }
            }
            Ok(Some(gimli::CieOrFde::Cie(_))) => {}
            Ok(None) => break,
            // Where one entry's length is broken nothing behind it can be found.
            Err(_) => {
                damaged += 1;
                break;
            }
        }
    }
    damaged
}

/// Finds `.eh_frame` as the C++ runtime does, through `PT_GNU_EH_FRAME`, in files without section headers. Its end is
/// not stated there: it goes on to the segment's end, and a terminator (an entry of length 0) ends the reading.
fn by_program_header<'data>(bytes: &'data [u8], segments: &[Segment]) -> Option<(u64, Cow<'data, [u8]>)> {
    let header = elf::FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let index = header
        .program_headers(endian, bytes)
        .ok()?
        .iter()
        .find(|header| header.p_type(endian) == elf::PT_GNU_EH_FRAME)?;
    let start = index.p_vaddr(endian);
    let data = index.data(endian, bytes).ok()?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(start);
    let parsed = gimli::EhFrameHdr::new(data, LittleEndian).parse(&bases, 8).ok()?;
    let address = parsed.eh_frame_ptr().direct().ok()?;
    let segment = segments.iter().find(|segment| segment.contains(address))?;
    let skipped = usize::try_from(address - segment.svma).ok()?;
    let data = loads::segment_bytes(bytes, segment).get(skipped..)?;
    (!data.is_empty()).then_some((address, Cow::Borrowed(data)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_functions_are_gimlis() {
        let own = std::env::current_exe().expect("a path");
        let files = ["/usr/sbin/mariadbd", "/lib64/ld-linux-x86-64.so.2", "/bin/sh"];
        let files = files.map(std::path::PathBuf::from).into_iter().chain([own]);
        let mut plain = 0;
        for file in files.filter(|file| file.exists()) {
            let bytes = std::fs::read(&file).expect("readable");
            let frames = CallFrames::from_elf(&bytes).expect("call frames");
            let mut by_gimli = frames.code_ranges_by_gimli();
            by_gimli.sort_by_key(|range| range.start);
            assert!(by_gimli.len() > 10, "{}", file.display());
            assert!(frames.code_ranges() == by_gimli, "{}", file.display());
            plain += usize::from(frames.plain_bounds().is_some());
        }
        assert!(plain > 0);
    }

    #[test]
    fn of_a_section_that_is_cut_nothing_is_given_that_is_not_in_it() {
        let bytes = std::fs::read(std::env::current_exe().expect("a path")).expect("readable");
        let frames = CallFrames::from_elf(&bytes).expect("call frames");
        let whole = frames.plain_bounds().expect("plain");
        // Every byte changes something: no panic, and no more than there was.
        for cut in (0..frames.data.len().min(4096)).chain([frames.data.len() - 5]) {
            if let Some(bounds) = plain_bounds::plain_bounds(&frames.data[..cut], &frames.bases) {
                assert!(whole.starts_with(&bounds), "cut at {cut}");
            }
        }
    }
}
