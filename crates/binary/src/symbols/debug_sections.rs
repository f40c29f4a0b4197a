//! The DWARF of a file, in a mapping of which what was read is let go of.
//!
//! addr2line's own loader keeps its mapping to itself, and every page of it that was looked at counts as memory of ours: of a server with
//! debug information these are tens of megabytes, most of them only looked at once, for what the file's parts are.

use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use addr2line::{Context, FrameIter, LookupResult};
use gimli::{AbbreviationsCacheStrategy, Dwarf, EndianSlice, Reader as _, RunTimeEndian, SectionId};
use object::Object as _;
use self_cell::self_cell;

use super::nesting::Stack;
use super::unit_index::{MOST_UNITS, UnitIndex};
use crate::long_names::{LINKAGE, SHOWN, cut};
use crate::mapped_file::{Bytes as _, MappedFile, mapped};
use crate::section::{Content, Room};
use crate::unfolded::UnfoldedBytes;

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;
type OfSlices<'a> = Context<Slice<'a>>;

self_cell!(
    struct Read {
        owner: Files,
        #[not_covariant]
        dependent: Units,
    }
);

/// The DWARF of a file.
pub(super) struct DebugSections(Read);

/// What was read of the debug information, unit by unit.
struct Units<'a> {
    files: &'a Files,
    dwarf: Dwarf<Slice<'a>>,
    /// None where only all of it tells what an address is about.
    index: Option<UnitIndex>,
    /// Each once it is needed. What a context read is kept in it, so it is not to be shared.
    units: Vec<OnceLock<Unit<'a>>>,
    whole: OnceLock<Option<(Mutex<OfSlices<'a>>, Stack)>>,
}

enum Unit<'a> {
    Alone(Mutex<OfSlices<'a>>, Stack),
    /// It refers to others.
    NotAlone,
    Broken,
}

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
    Expanded(UnfoldedBytes),
}

/// A frame as DWARF tells it; the outermost may have no name.
pub(super) struct Frame {
    pub(super) linkage_name: Option<String>,
    pub(super) file: Option<String>,
    pub(super) line: Option<u32>,
}

/// Why an address was not looked up.
pub(super) struct IsElsewhere;

/// Why a unit has no answer.
enum NoAnswer {
    IsElsewhere,
    /// It is damaged.
    Broken,
}

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
        let read = Read::new(files, |files| Units::of(files));
        let sections = DebugSections(read);
        sections.let_go();
        Some(sections)
    }

    /// The frames at an address, innermost first; none where it says nothing.
    ///
    /// # Errors
    /// The DWARF of that address is split off into another file.
    pub(super) fn frames(&self, svma: u64) -> Result<Vec<Frame>, IsElsewhere> {
        self.0.with_dependent(|_, units| units.frames(svma))
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

impl<'a> Units<'a> {
    fn of(files: &'a Files) -> Units<'a> {
        let dwarf = files.dwarf(|_, section| section);
        let index = match files.supplementary {
            None => UnitIndex::of(&dwarf),
            Some(_) => None,
        };
        let count = index.as_ref().map_or(0, UnitIndex::len);
        Units {
            files,
            dwarf,
            index,
            units: (0..count).map(|_| OnceLock::new()).collect(),
            whole: OnceLock::new(),
        }
    }

    fn frames(&self, svma: u64) -> Result<Vec<Frame>, IsElsewhere> {
        let Some(index) = &self.index else {
            return self.of_whole(svma);
        };
        let mut is_listed = false;
        let mut asked = 0;
        for place in index.units_at(svma) {
            asked += 1;
            is_listed |= index.lists_addresses(place);
            match self.units[place].get_or_init(|| self.unit(index, place)) {
                Unit::Alone(context, stack) => match look_up(context, *stack, svma) {
                    Ok(frames) if frames.is_empty() => {}
                    Ok(frames) => return Ok(frames),
                    Err(NoAnswer::IsElsewhere) => return Err(IsElsewhere),
                    Err(NoAnswer::Broken) => return Ok(Vec::new()),
                },
                Unit::NotAlone => return self.of_whole(svma),
                Unit::Broken => {}
            }
        }
        // To read all units for each address would never end.
        if asked == MOST_UNITS {
            return Ok(Vec::new());
        }
        // A unit in several sections does not tell all of its addresses itself in DWARF 2.
        match is_listed {
            true => self.of_whole(svma),
            false => Ok(Vec::new()),
        }
    }

    /// A unit as if it were the only one.
    fn unit(&self, index: &UnitIndex, place: usize) -> Unit<'a> {
        let Some(bytes) = index.alone(place, &self.dwarf) else {
            return Unit::NotAlone;
        };
        let dwarf = self.files.dwarf(|id, section: Slice<'a>| match id {
            SectionId::DebugInfo => {
                let own = section.slice().get(bytes.clone()).unwrap_or_default();
                EndianSlice::new(own, section.endian())
            }
            // Its offsets would be those of all units.
            SectionId::DebugAranges => EndianSlice::new(&[], section.endian()),
            _ => section,
        });
        match Context::from_dwarf(dwarf) {
            Ok(context) => Unit::Alone(
                Mutex::new(context),
                Stack::for_unit(bytes.len(), index.abbreviations(place, &self.dwarf)),
            ),
            Err(_) => Unit::Broken,
        }
    }

    fn of_whole(&self, svma: u64) -> Result<Vec<Frame>, IsElsewhere> {
        let read = || {
            let mut dwarf = self.files.dwarf(|_, section| section);
            if let Some(supplementary) = &self.files.supplementary {
                let load = |id| Ok::<_, gimli::Error>(supplementary.section(id));
                dwarf.load_sup(load).ok()?;
            }
            dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
            let stack = Stack::for_any_unit(&dwarf);
            Some((Mutex::new(Context::from_dwarf(dwarf).ok()?), stack))
        };
        let Some((context, stack)) = self.whole.get_or_init(read) else {
            return Ok(Vec::new());
        };
        match look_up(context, *stack, svma) {
            Ok(frames) => Ok(frames),
            Err(NoAnswer::IsElsewhere) => Err(IsElsewhere),
            Err(NoAnswer::Broken) => Ok(Vec::new()),
        }
    }
}

fn look_up(context: &Mutex<OfSlices<'_>>, stack: Stack, svma: u64) -> Result<Vec<Frame>, NoAnswer> {
    let context = context.lock().map_err(|_| NoAnswer::Broken)?;
    let found = stack.run(|| match context.find_frames(svma) {
        LookupResult::Output(found) => found.map(frames).map_err(|_| NoAnswer::Broken),
        LookupResult::Load { .. } => Err(NoAnswer::IsElsewhere),
    });
    found.unwrap_or(Err(NoAnswer::Broken))
}

impl Files {
    /// The sections of the file, each as `of` gives it.
    fn dwarf<'a>(&'a self, of: impl Fn(SectionId, Slice<'a>) -> Slice<'a>) -> Dwarf<Slice<'a>> {
        let load = |id| Ok::<_, std::convert::Infallible>(of(id, self.own.section(id)));
        let Ok(dwarf) = Dwarf::load(load);
        dwarf
    }
}

/// The end of a path, which names the file and its folder.
fn end_of(path: &str) -> &str {
    let start = path.len().saturating_sub(SHOWN);
    let start = (start..=path.len()).find(|start| path.is_char_boundary(*start));
    &path[start.unwrap_or(0)..]
}

/// Most frames of one address: compilers put some dozens of functions into each other.
const MOST_FRAMES: usize = 256;
/// Stands for those that are more.
const FURTHER: &str = "[further inlined functions]";

/// The frames, but of very many the innermost and the last; an error ends the list: what is before it holds.
pub(super) fn frames<R: gimli::Reader>(mut found: FrameIter<'_, R>) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    while let Ok(Some(frame)) = found.next() {
        if frames.len() == MOST_FRAMES {
            frames.truncate(MOST_FRAMES - 2);
            frames.push(Frame {
                linkage_name: Some(FURTHER.to_owned()),
                file: None,
                line: None,
            });
        }
        let name = frame
            .function
            .and_then(|function| Some(cut(&function.raw_name().ok()?, LINKAGE).to_owned()));
        let location = frame.location;
        frames.push(Frame {
            linkage_name: name,
            file: location
                .as_ref()
                .and_then(|location| location.file)
                .map(|file| end_of(file).to_owned()),
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
        let room = Room::of_file(file.len());
        let place = |id: SectionId| {
            let place = match room.content(&elf.section_by_name(id.name())?)? {
                Content::InFile(bytes) => {
                    let start = (bytes.as_ptr() as usize).checked_sub(begin)?;
                    Place::InFile(start..start + bytes.len())
                }
                Content::Unfolded(bytes) => Place::Expanded(bytes),
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
