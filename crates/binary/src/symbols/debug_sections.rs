//! The DWARF of a file, in a mapping of which what was read is let go of.
//!
//! addr2line's own loader keeps its mapping to itself, and every page of it that was looked at counts as memory of ours: of a server with
//! debug information these are tens of megabytes, most of them only looked at once, for what the file's parts are.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use addr2line::{Context, FrameIter, LookupResult};
use gimli::{AbbreviationsCacheStrategy, EndianSlice, RunTimeEndian, SectionId};
use object::{Object as _, ObjectSection as _};
use self_cell::self_cell;

use crate::mapped_file::{Bytes as _, MappedFile, mapped};

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type OfSlices<'a> = Context<Slice<'a>>;

self_cell!(
    struct Read {
        owner: Files,
        #[not_covariant]
        dependent: OfSlices,
    }
);

/// The DWARF of a file.
pub(super) struct DebugSections(Read);

/// A file, and the one that several share parts of their DWARF in (`.gnu_debugaltlink`).
struct Files {
    own: Sections,
    supplementary: Option<Sections>,
}

struct Sections {
    file: MappedFile,
    endian: RunTimeEndian,
    places: Vec<(SectionId, Place)>,
}

enum Place {
    InFile(Range<usize>),
    Expanded(Vec<u8>),
}

/// A frame as DWARF tells it; the outermost may have no name.
pub(super) struct Frame {
    pub(super) linkage_name: Option<String>,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
}

/// Why an address was not looked up.
pub(super) struct IsElsewhere;

impl DebugSections {
    /// Reads which parts there are; none where that cannot be read.
    pub(super) fn of(path: &Path, supplementary: Option<&Path>) -> Option<DebugSections> {
        let files = Files {
            own: Sections::of(path)?,
            supplementary: match supplementary {
                Some(path) => Some(Sections::of(path)?),
                None => None,
            },
        };
        let read = Read::try_new(files, |files| {
            let mut dwarf = gimli::Dwarf::load(|id| Ok::<_, gimli::Error>(files.own.section(id)))?;
            if let Some(supplementary) = &files.supplementary {
                dwarf.load_sup(|id| Ok::<_, gimli::Error>(supplementary.section(id)))?;
            }
            dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
            Context::from_dwarf(dwarf)
        });
        let sections = DebugSections(read.ok()?);
        sections.let_go();
        Some(sections)
    }

    /// The frames at an address, innermost first; none where it says nothing.
    ///
    /// # Errors
    /// The DWARF of that address is split off into another file.
    pub(super) fn frames(&self, svma: u64) -> Result<Vec<Frame>, IsElsewhere> {
        self.0.with_dependent(|_, context| match context.find_frames(svma) {
            LookupResult::Output(found) => Ok(found.map(frames).unwrap_or_default()),
            LookupResult::Load { .. } => Err(IsElsewhere),
        })
    }

    /// Says that what was looked at will hardly be looked at again soon.
    pub(super) fn let_go(&self) {
        let Files { own, supplementary } = self.0.borrow_owner();
        own.file.let_go(&own.file);
        if let Some(other) = supplementary {
            other.file.let_go(&other.file);
        }
    }
}

/// All of them; an error ends the list: what is before it holds.
pub(super) fn frames<R: gimli::Reader>(mut found: FrameIter<'_, R>) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = found.next() {
        let name = frame
            .function
            .and_then(|function| Some(function.raw_name().ok()?.into_owned()));
        let location = frame.location;
        frames.push(Frame {
            linkage_name: name,
            file: location.as_ref().and_then(|location| location.file).map(str::to_owned),
            line: location.and_then(|location| location.line).filter(|line| *line > 0),
        });
    }
    frames
}

impl Sections {
    fn of(path: &Path) -> Option<Sections> {
        let file = mapped(path).ok()?;
        let elf = object::File::parse(&*file).ok()?;
        let endian = match elf.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let begin = file.as_ptr() as usize;
        let place = |id: SectionId| {
            let data = elf.section_by_name(id.name())?.uncompressed_data().ok()?;
            let place = match data {
                Cow::Borrowed(bytes) => {
                    let start = (bytes.as_ptr() as usize).checked_sub(begin)?;
                    Place::InFile(start..start + bytes.len())
                }
                Cow::Owned(bytes) => Place::Expanded(bytes),
            };
            Some((id, place))
        };
        let places = SECTIONS.into_iter().filter_map(place).collect();
        Some(Sections { file, endian, places })
    }

    /// Empty where there is none.
    fn section(&self, wanted: SectionId) -> Slice<'_> {
        let place = self.places.iter().find(|(id, _)| *id == wanted);
        let bytes = match place {
            Some((_, Place::InFile(range))) => self.file.get(range.clone()).unwrap_or_default(),
            Some((_, Place::Expanded(bytes))) => bytes,
            None => &[],
        };
        EndianSlice::new(bytes, self.endian)
    }
}

/// Those that frames, files and lines are told from.
const SECTIONS: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];
