//! Variables and their types from DWARF (version 2 to 5).

use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, EndianSlice, LittleEndian, Operation, Unit, UnitOffset,
};
use object::read::elf::ElfFile64;
use object::{Endianness, Object as _};
use thiserror::Error;

use crate::long_names::{VARIABLE, cut};
use crate::mapped_file::Bytes;
use crate::parallel::in_parallel;
use crate::section::{Content, Room};

use super::shape::{Member, Shape, ShapeId, Shapes};

type Slice<'data> = EndianSlice<'data, LittleEndian>;
type AnyUnit<'data> = Unit<Slice<'data>>;
type Entry<'data> = DebuggingInformationEntry<Slice<'data>>;

/// How many typedefs and qualifiers stand between a variable and its type at most.
const MOST_NAMES: usize = 32;
/// The sections that are read.
const WANTED: [gimli::SectionId; 7] = [
    gimli::SectionId::DebugInfo,
    gimli::SectionId::DebugAbbrev,
    gimli::SectionId::DebugStr,
    gimli::SectionId::DebugLineStr,
    gimli::SectionId::DebugStrOffsets,
    gimli::SectionId::DebugAddr,
    // A unit that names its lines is not read without them.
    gimli::SectionId::DebugLine,
];
/// How deep types are read.
const DEEPEST: usize = 12;

/// Why debug information cannot be read, or not all of it.
#[derive(Debug, Error)]
pub enum DebugInfoError {
    /// The file is no ELF file.
    #[error("the debug file is not a 64-bit ELF file: {0}")]
    NotElf(object::Error),
    /// A part of it is damaged.
    #[error("the debug information is damaged, so members of some variables are unknown: {0}")]
    Damaged(gimli::Error),
}

/// A variable at a fixed address.
pub(super) struct Described {
    pub name: String,
    pub address: u64,
    pub shape: ShapeId,
}

#[derive(Default)]
pub(super) struct Outcome {
    pub variables: Vec<Described>,
    pub error: Option<DebugInfoError>,
}

/// Reads all variables that have an address, and their types. Of the bytes nothing is kept in memory for long: a server's are tens of
/// megabytes, each looked at once.
pub(super) fn read(bytes: &impl Bytes, shapes: &mut Shapes) -> Outcome {
    let mut outcome = Outcome::default();
    let elf = match ElfFile64::<Endianness>::parse(&**bytes) {
        Ok(elf) => elf,
        Err(error) => {
            outcome.error = Some(DebugInfoError::NotElf(error));
            return outcome;
        }
    };
    let room = Room::of_file(bytes.len());
    let load = |section: gimli::SectionId| -> Result<Content<'_>, gimli::Error> {
        // Lists of locations and calls are large once unpacked, and tell nothing of variables at fixed addresses.
        if !WANTED.contains(&section) {
            return Ok(Content::default());
        }
        let found = elf.section_by_name(section.name());
        Ok(found.and_then(|section| room.content(&section)).unwrap_or_default())
    };
    let Ok(sections) = gimli::DwarfSections::load(load) else {
        return outcome;
    };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    let mut reader = Reader {
        dwarf: &dwarf,
        shapes,
        headers: Vec::new(),
        units: HashMap::new(),
        known: HashMap::new(),
    };
    let mut headers = dwarf.units();
    loop {
        match headers.next() {
            Ok(Some(header)) => {
                reader.headers.push(header);
                // The kernel maps the neighbours of each page that is looked at.
                if reader.headers.len().is_multiple_of(UNITS_AT_ONCE) {
                    bytes.let_go(bytes);
                }
            }
            Ok(None) => break,
            Err(error) => {
                outcome.error = Some(DebugInfoError::Damaged(error));
                break;
            }
        }
    }
    for some in reader.headers.clone().chunks(UNITS_AT_ONCE) {
        let found = in_parallel(some.to_vec(), |header| UnitVariables::of(&dwarf, header));
        for unit in found {
            // A unit that cannot be read does not keep the others from it.
            match unit.and_then(|unit| reader.unit(unit, &mut outcome.variables)) {
                Ok(()) => {}
                Err(error) => outcome.error = Some(DebugInfoError::Damaged(error)),
            }
        }
        bytes.let_go(bytes);
    }
    outcome
}

/// Units that are gone through at once, on all CPUs: what is read of each takes memory until its variables are. Then it is let go of.
const UNITS_AT_ONCE: usize = 32;

/// A unit and its variables that have an address. Going through all that is in a unit takes nearly all of the time.
struct UnitVariables<'data> {
    unit: AnyUnit<'data>,
    variables: Vec<UnitOffset>,
    /// Why not all of it was gone through.
    error: Option<gimli::Error>,
}

impl<'data> UnitVariables<'data> {
    fn of(
        dwarf: &gimli::Dwarf<Slice<'data>>,
        header: gimli::UnitHeader<Slice<'data>>,
    ) -> gimli::Result<UnitVariables<'data>> {
        let unit = dwarf.unit(header)?;
        let mut variables = Vec::new();
        let error = find_variables(dwarf, &unit, &mut variables).err();
        Ok(UnitVariables { unit, variables, error })
    }
}

/// Goes through all that is in a unit, but for what classes are made of: that is most of C++'s, and a variable of a class has its address
/// elsewhere, where it is defined. A class within a function is gone through, for its methods may be defined in it.
fn find_variables<'data>(
    dwarf: &gimli::Dwarf<Slice<'data>>,
    unit: &AnyUnit<'data>,
    into: &mut Vec<UnitOffset>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    // How deep in the unit `entries` begins, and how deep the outermost function stands that they are in.
    let mut begins_at = 0;
    let mut function = None;
    while !entries.is_empty() {
        let place = entries.next_offset();
        let depth = begins_at + entries.next_depth();
        function = function.filter(|function| *function < depth);
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        let tag = abbreviation.tag();
        if tag == gimli::DW_TAG_subprogram && function.is_none() {
            function = Some(depth);
        }
        if tag != gimli::DW_TAG_variable {
            let is_passed_over = abbreviation.has_children() && function.is_none() && is_of_members(tag);
            let behind = sibling(&mut entries, abbreviation.attributes(), is_passed_over)?;
            if let Some(behind) = behind.and_then(|behind| unit.entries_raw(Some(behind)).ok()) {
                entries = behind;
                begins_at = depth;
            }
            continue;
        }
        let mut location = None;
        for specification in abbreviation.attributes() {
            let attribute = entries.read_attribute(*specification)?;
            if attribute.name() == gimli::DW_AT_location {
                location = attribute.exprloc_value();
            }
        }
        if location.is_some_and(|location| fixed_address(dwarf, unit, location).is_some()) {
            into.push(place);
        }
    }
    Ok(())
}

fn is_of_members(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
    )
}

/// Reads over the attributes of an entry. Gives the entry behind it and all that is in it, if it is asked for and told; compilers
/// may tell it.
fn sibling<'data>(
    entries: &mut gimli::EntriesRaw<'_, Slice<'data>>,
    attributes: &[gimli::AttributeSpecification],
    is_asked_for: bool,
) -> gimli::Result<Option<UnitOffset>> {
    let is_told = attributes.iter().any(|one| one.name() == gimli::DW_AT_sibling);
    if !(is_asked_for && is_told) {
        entries.skip_attributes(attributes)?;
        return Ok(None);
    }
    let mut behind = None;
    for specification in attributes {
        let attribute = entries.read_attribute(*specification)?;
        if let (gimli::DW_AT_sibling, AttributeValue::UnitRef(place)) = (attribute.name(), attribute.value()) {
            behind = Some(place);
        }
    }
    Ok(behind.filter(|place| *place > entries.next_offset()))
}

/// The address that is all of an expression.
fn fixed_address<'data>(
    dwarf: &gimli::Dwarf<Slice<'data>>,
    unit: &AnyUnit<'data>,
    location: gimli::Expression<Slice<'data>>,
) -> Option<u64> {
    let mut operations = location.operations(unit.encoding());
    let address = match operations.next().ok()?? {
        Operation::Address { address } => address,
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok()?,
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(address)
}

struct Reader<'a, 'data> {
    dwarf: &'a gimli::Dwarf<Slice<'data>>,
    shapes: &'a mut Shapes,
    /// Of all units, by their place in the section.
    headers: Vec<gimli::UnitHeader<Slice<'data>>>,
    /// Those that others refer to, by their place in the list.
    units: HashMap<usize, Rc<AnyUnit<'data>>>,
    /// Types that were read already, by their place in the section.
    known: HashMap<usize, ShapeId>,
}

impl<'data> Reader<'_, 'data> {
    fn unit(&mut self, unit: UnitVariables<'data>, into: &mut Vec<Described>) -> gimli::Result<()> {
        let UnitVariables { unit, variables, error } = unit;
        let unit = &Rc::new(unit);
        for place in variables {
            let entry = unit.entry(place)?;
            let location = entry
                .attr(gimli::DW_AT_location)
                .and_then(gimli::Attribute::exprloc_value);
            let address = location.and_then(|location| fixed_address(self.dwarf, unit, location));
            let Some(address) = address else { continue };
            let value = |name| entry.attr_value(name);
            let own = Facts::of(value);
            // What a class or an inlined function declared is only said once, and by programs that were optimised as a whole in
            // another unit.
            let declared = value(gimli::DW_AT_specification).or_else(|| value(gimli::DW_AT_abstract_origin));
            let declared = declared.and_then(|declared| self.entry(unit, declared));
            let name = own.name.and_then(|name| self.text(unit, name));
            let shape = self.shape(unit, own.kind, DEEPEST);
            let (name, shape) = match declared {
                Some((unit, entry)) => {
                    let other = Facts::of(|name| entry.attr_value(name));
                    let other_name = other.name.and_then(|name| self.text(&unit, name));
                    let other_shape = shape.or_else(|| self.shape(&unit, other.kind, DEEPEST));
                    (name.or(other_name), other_shape)
                }
                None => (name, shape),
            };
            if let (Some(name), Some(shape)) = (name, shape) {
                into.push(Described { name, address, shape });
            }
        }
        error.map_or(Ok(()), Err)
    }

    /// The entry that an attribute names, with its unit.
    fn entry(
        &mut self,
        unit: &Rc<AnyUnit<'data>>,
        value: AttributeValue<Slice<'data>>,
    ) -> Option<(Rc<AnyUnit<'data>>, Entry<'data>)> {
        let (unit, offset) = match value {
            AttributeValue::UnitRef(offset) => (Rc::clone(unit), offset),
            AttributeValue::DebugInfoRef(offset) => self.unit_of(offset)?,
            _ => return None,
        };
        let entry = unit.entry(offset).ok()?;
        Some((unit, entry))
    }

    fn text(&self, unit: &Unit<Slice<'data>>, value: AttributeValue<Slice<'data>>) -> Option<String> {
        let text = self.dwarf.attr_string(unit, value).ok()?;
        Some(cut(&text.to_string_lossy(), VARIABLE).to_owned())
    }

    /// The unit that holds a place of the section, and where in it.
    fn unit_of(&mut self, offset: DebugInfoOffset) -> Option<(Rc<AnyUnit<'data>>, UnitOffset)> {
        let starts_before = |header: &gimli::UnitHeader<Slice<'data>>| header.debug_info_offset() <= Some(offset);
        let number = self.headers.partition_point(starts_before).checked_sub(1)?;
        let header = self.headers.get(number)?;
        let place = offset.to_unit_offset(header)?;
        if let Some(known) = self.units.get(&number) {
            return Some((Rc::clone(known), place));
        }
        let unit = Rc::new(self.dwarf.unit(*header).ok()?);
        self.units.insert(number, Rc::clone(&unit));
        Some((unit, place))
    }

    /// The type that an attribute names.
    fn shape(
        &mut self,
        unit: &Rc<AnyUnit<'data>>,
        value: Option<AttributeValue<Slice<'data>>>,
        depth: usize,
    ) -> Option<ShapeId> {
        let depth = depth.checked_sub(1)?;
        let (mut unit, mut entry) = self.entry(unit, value?)?;
        for _ in 0..MOST_NAMES {
            let is_other_name = matches!(
                entry.tag(),
                gimli::DW_TAG_typedef
                    | gimli::DW_TAG_const_type
                    | gimli::DW_TAG_volatile_type
                    | gimli::DW_TAG_atomic_type
            );
            if !is_other_name {
                break;
            }
            (unit, entry) = self.entry(&unit, entry.attr_value(gimli::DW_AT_type)?)?;
        }
        let place = entry.offset().to_debug_info_offset(&unit.header)?.0;
        if let Some(known) = self.known.get(&place) {
            return Some(*known);
        }
        let size = number(&entry, gimli::DW_AT_byte_size).unwrap_or(0);
        // A type may hold a pointer to itself, so it is known before its members are.
        let id = self.shapes.add(Shape::Plain { size });
        self.known.insert(place, id);
        let shape = match entry.tag() {
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type | gimli::DW_TAG_union_type => Shape::Record {
                size,
                members: self.members(&unit, &entry, depth),
            },
            gimli::DW_TAG_array_type => self.array(&unit, &entry, depth)?,
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => {
                Shape::Plain {
                    size: if size > 0 {
                        size
                    } else {
                        u64::from(unit.encoding().address_size)
                    },
                }
            }
            _ => Shape::Plain { size },
        };
        self.shapes.put(id, shape);
        Some(id)
    }

    fn members(&mut self, unit: &Rc<AnyUnit<'data>>, record: &Entry<'data>, depth: usize) -> Vec<Member> {
        let mut members = Vec::new();
        for child in children(unit, record) {
            let is_member = child.tag() == gimli::DW_TAG_member || child.tag() == gimli::DW_TAG_inheritance;
            // Static members lie elsewhere.
            if !is_member || child.has_attr(gimli::DW_AT_external) || child.has_attr(gimli::DW_AT_declaration) {
                continue;
            }
            let offset = member_offset(unit, &child);
            let name = child
                .attr_value(gimli::DW_AT_name)
                .and_then(|name| self.text(unit, name));
            let shape = self.shape(unit, child.attr_value(gimli::DW_AT_type), depth);
            if let (Some(offset), Some(shape)) = (offset, shape) {
                members.push(Member {
                    name: name.unwrap_or_default(),
                    offset,
                    shape,
                });
            }
        }
        members
    }

    fn array(&mut self, unit: &Rc<AnyUnit<'data>>, array: &Entry<'data>, depth: usize) -> Option<Shape> {
        let mut element = self.shape(unit, array.attr_value(gimli::DW_AT_type), depth)?;
        let ranges = children(unit, array);
        let ranges = ranges.iter().filter(|child| child.tag() == gimli::DW_TAG_subrange_type);
        let mut counts: Vec<u64> = ranges
            .map(|range| {
                let bound = number(range, gimli::DW_AT_upper_bound).and_then(|last| last.checked_add(1));
                number(range, gimli::DW_AT_count).or(bound).unwrap_or(0)
            })
            .collect();
        let outer = if counts.is_empty() { 0 } else { counts.remove(0) };
        // The last index runs fastest.
        for count in counts.into_iter().rev() {
            element = self.shapes.add(Shape::Array { element, count });
        }
        Some(Shape::Array { element, count: outer })
    }
}

/// What an entry says of a variable.
struct Facts<'data> {
    name: Option<AttributeValue<Slice<'data>>>,
    kind: Option<AttributeValue<Slice<'data>>>,
}

impl<'data> Facts<'data> {
    fn of(value: impl Fn(gimli::DwAt) -> Option<AttributeValue<Slice<'data>>>) -> Facts<'data> {
        Facts {
            name: value(gimli::DW_AT_linkage_name)
                .or_else(|| value(gimli::DW_AT_MIPS_linkage_name))
                .or_else(|| value(gimli::DW_AT_name)),
            kind: value(gimli::DW_AT_type),
        }
    }
}

fn number(entry: &Entry<'_>, name: gimli::DwAt) -> Option<u64> {
    entry.attr(name)?.udata_value()
}

/// Bytes from the start of the structure. DWARF 2 says it as an expression, bit fields say it in bits.
fn member_offset(unit: &Unit<Slice<'_>>, member: &Entry<'_>) -> Option<u64> {
    if let Some(bits) = number(member, gimli::DW_AT_data_bit_offset) {
        return Some(bits / 8);
    }
    let Some(location) = member.attr(gimli::DW_AT_data_member_location) else {
        // Members of a union have none.
        return Some(0);
    };
    if let Some(offset) = location.udata_value() {
        return Some(offset);
    }
    let mut operations = location.exprloc_value()?.operations(unit.encoding());
    match operations.next().ok()?? {
        Operation::PlusConstant { value } => Some(value),
        _ => None,
    }
}

fn children<'data>(unit: &Unit<Slice<'data>>, parent: &Entry<'data>) -> Vec<Entry<'data>> {
    let mut found = Vec::new();
    let Ok(mut tree) = unit.entries_tree(Some(parent.offset())) else {
        return found;
    };
    let Ok(root) = tree.root() else { return found };
    let mut nodes = root.children();
    while let Ok(Some(node)) = nodes.next() {
        found.push(node.entry().clone());
    }
    found
}
