//! The unwind rules of one file of machine code: its `.eh_frame`, and what kind of rule holds at an address.
//!
//! framehop does the unwinding; what it does not tell is *why* it could not, and whether the end that it found is one
//! that the rules mark (it also takes a frame pointer of zero for the end). That is asked here of the same bytes.

use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, MutexGuard};

use foldhash::HashMap;
use framehop::{ExplicitModuleSectionInfo, Module};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection as _, UnwindTableRow,
};
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadRef};

use scaleprof_binary::mapped_file::{FilePart, MappedFile};

use super::expression;
use super::plain_step::PlainStep;
use super::{OtherRegisters, Processor, Registers};

/// Bytes of a section.
pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;
/// The rules that hold from one address of code to the next.
pub(super) type Row = UnwindTableRow<usize>;

/// Addresses of which the rule is kept: some thousands are met, but for files and processes that make them up.
const MOST_KNOWN: usize = 1 << 16;

/// What holds at one address of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rule {
    /// How the caller is found.
    pub(super) kind: RuleKind,
    /// The frame was made by a signal: its caller was interrupted and did not call.
    pub(super) of_signal: bool,
    /// The step that needs no more than this.
    pub(super) plain: Option<PlainStep>,
}

impl Rule {
    /// Of an address that no rule covers.
    pub(super) const NONE: Rule = Rule {
        kind: RuleKind::None,
        of_signal: false,
        plain: None,
    };
}

/// How the caller of a frame is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleKind {
    /// There is none: the return address is marked as undefined.
    Outermost,
    /// From the stack pointer or the frame pointer.
    Offset,
    /// By a DWARF expression.
    Expression,
    /// From another register, which has to be followed through all frames before.
    Register,
    /// By no rule that is known.
    Unsupported,
    /// No rule covers the address.
    None,
}

/// The unwind rules of a file.
#[derive(Debug)]
pub struct UnwindRules {
    /// Those with code.
    segments: Vec<Segment>,
    frames: Option<Section>,
    index: Option<Section>,
    text: Range<u64>,
    offset_table: Range<u64>,
    /// What is known of addresses that were met: all threads that walk meet the same ones.
    known: Mutex<HashMap<(Processor, u64), Rule>>,
}

/// A part of the file that is loaded: positions in the file and its address there.
#[derive(Debug)]
struct Segment {
    file: Range<u64>,
    address: u64,
}

#[derive(Debug, Clone)]
struct Section {
    addresses: Range<u64>,
    bytes: SectionBytes,
}

/// The bytes of a section: a server's have megabytes, and few of them are looked at.
#[derive(Debug, Clone)]
pub(super) enum SectionBytes {
    /// Of a file that is mapped.
    Mapped(FilePart),
    /// Of one that is only in memory, or may be replaced.
    Copied(Arc<[u8]>),
}

impl Default for SectionBytes {
    fn default() -> Self {
        SectionBytes::Copied(Arc::default())
    }
}

impl Deref for SectionBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            SectionBytes::Mapped(part) => part,
            SectionBytes::Copied(bytes) => bytes,
        }
    }
}

impl UnwindRules {
    /// Reads what is needed of an ELF image.
    ///
    /// # Errors
    /// It is none, or one for another kind of processor; in words.
    pub fn read<'data>(image: impl ReadRef<'data>) -> Result<Self, String> {
        Self::with(image, |section, _| Some(SectionBytes::Copied(section.into())))
    }

    /// The same of a file that is mapped; it stays so.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn of_mapped(file: &Arc<MappedFile>) -> Result<Self, String> {
        Self::with(&***file, |_, (start, length)| {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(length).ok()?)?;
            Some(SectionBytes::Mapped(FilePart::of(file, start..end)))
        })
    }

    /// `keep` keeps the bytes of a section, which stand at that place of the file and are so long.
    fn with<'data>(
        image: impl ReadRef<'data>,
        keep: impl Fn(&'data [u8], (u64, u64)) -> Option<SectionBytes>,
    ) -> Result<Self, String> {
        let elf = object::File::parse(image).map_err(|error| format!("not an ELF file: {error}"))?;
        if !elf.is_64() || !elf.is_little_endian() {
            return Err("code for another kind of processor".to_owned());
        }
        let addresses = |name: &str| {
            elf.section_by_name(name)
                .map_or(0..0, |section| section.address()..section.address() + section.size())
        };
        let section = |name: &str| {
            let section = elf.section_by_name(name)?;
            let bytes = section.data().ok()?;
            // In a file of separate debug information the section is there and empty.
            let kept = (!bytes.is_empty())
                .then(|| keep(bytes, section.file_range()?))
                .flatten()?;
            Some(Section {
                addresses: addresses(name),
                bytes: kept,
            })
        };
        let code = elf.segments().filter(|segment| segment.permissions().executable());
        let segments = code.map(|segment| {
            let (start, length) = segment.file_range();
            Segment {
                file: start..start.saturating_add(length),
                address: segment.address(),
            }
        });
        Ok(Self {
            segments: segments.collect(),
            frames: section(".eh_frame"),
            index: section(".eh_frame_hdr"),
            text: addresses(".text"),
            offset_table: addresses(".got"),
            known: Mutex::default(),
        })
    }

    /// Address in the process less address in the file, for a mapping of code that begins at `start` and shows the file
    /// from `file_offset` on.
    #[must_use]
    pub fn bias(&self, start: u64, file_offset: u64) -> Option<u64> {
        // Whole pages are mapped: a mapping may begin up to a page before its segment does (64 KiB at most, on aarch64).
        let page = rustix::param::page_size() as u64;
        let shown = |segment: &&Segment| (segment.file.start / page * page..segment.file.end).contains(&file_offset);
        let segment = self.segments.iter().rfind(shown)?;
        let to_address = segment.address.wrapping_sub(segment.file.start);
        Some(start.wrapping_sub(file_offset).wrapping_sub(to_address))
    }

    /// These rules for code that is mapped at these addresses, as framehop takes them.
    pub(super) fn module(&self, name: &str, addresses: Range<u64>, bias: u64) -> Option<Module<SectionBytes>> {
        let frames = self.frames.clone()?;
        // framehop counts addresses in 32 bits from a base.
        let base = self.segments.iter().map(|segment| segment.address).min()?;
        let sections = ExplicitModuleSectionInfo {
            base_svma: base,
            text_svma: Some(self.text.clone()),
            got_svma: Some(self.offset_table.clone()),
            eh_frame_svma: Some(frames.addresses),
            eh_frame: Some(frames.bytes),
            eh_frame_hdr_svma: self.index.as_ref().map(|index| index.addresses.clone()),
            eh_frame_hdr: self.index.as_ref().map(|index| index.bytes.clone()),
            ..Default::default()
        };
        Some(Module::new(
            name.to_owned(),
            addresses,
            base.wrapping_add(bias),
            sections,
        ))
    }

    /// What rule holds at an address of the file.
    pub(super) fn rule_at(&self, processor: Processor, address: u64) -> Rule {
        let known = |known: MutexGuard<'_, HashMap<(Processor, u64), Rule>>| known.get(&(processor, address)).copied();
        if let Some(rule) = self.known.lock().ok().and_then(known) {
            return rule;
        }
        // Two threads that look for the same one at the same time find the same.
        let rule = self.find_rule(processor, address);
        if let Ok(mut known) = self.known.lock()
            && known.len() < MOST_KNOWN
        {
            known.insert((processor, address), rule);
        }
        rule
    }

    fn find_rule(&self, processor: Processor, address: u64) -> Rule {
        let rule = self.with_row(address, |fde, row, _| {
            let return_address = row.register(fde.cie().return_address_register());
            let kind = kind(processor, row.cfa(), return_address.as_ref());
            let may_be_plain = kind == RuleKind::Offset && processor == Processor::X86_64;
            Some(Rule {
                kind,
                of_signal: fde.is_signal_trampoline(),
                plain: may_be_plain.then(|| PlainStep::of(row)).flatten(),
            })
        });
        rule.unwrap_or(Rule::NONE)
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> Range<u64> {
        self.text.clone()
    }

    /// The caller of a frame whose rule at this address of the file is an expression, or begins at another register.
    pub(super) fn caller(
        &self,
        processor: Processor,
        address: u64,
        frame: (&Registers, &OtherRegisters),
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<Registers> {
        self.with_row(address, |fde, row, section| {
            expression::caller(processor, (fde, row, section), frame, read)
        })
    }

    /// The other registers of the caller, whose stack pointer is `cfa`; none is known where no rule covers the address.
    pub(super) fn others_of_caller(
        &self,
        processor: Processor,
        address: u64,
        frame: (&Registers, &OtherRegisters),
        cfa: u64,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> OtherRegisters {
        let found = self.with_row(address, |fde, row, section| {
            Some(expression::others_of_caller(
                processor,
                (fde, row, section),
                frame,
                cfa,
                read,
            ))
        });
        found.unwrap_or_default()
    }

    /// Finds the row of the table of rules that covers an address of the file.
    fn with_row<T>(
        &self,
        address: u64,
        take: impl FnOnce(&FrameDescriptionEntry<Slice<'_>>, &Row, &EhFrame<Slice<'_>>) -> Option<T>,
    ) -> Option<T> {
        let frames = self.frames.as_ref()?;
        let mut section = EhFrame::from(Slice::new(&frames.bytes, LittleEndian));
        section.set_address_size(8);
        let mut bases = BaseAddresses::default()
            .set_eh_frame(frames.addresses.start)
            .set_text(self.text.start)
            .set_got(self.offset_table.start);
        let fde = match &self.index {
            Some(index) => {
                bases = bases.set_eh_frame_hdr(index.addresses.start);
                let header = EhFrameHdr::new(&index.bytes, LittleEndian).parse(&bases, 8).ok()?;
                let table = header.table()?;
                table
                    .fde_for_address(&section, &bases, address, EhFrame::cie_from_offset)
                    .ok()?
            }
            None => section
                .fde_for_address(&bases, address, EhFrame::cie_from_offset)
                .ok()?,
        };
        let mut context = UnwindContext::new();
        let row = fde
            .unwind_info_for_address(&section, &bases, &mut context, address)
            .ok()?;
        take(&fde, row, &section)
    }
}

fn kind(processor: Processor, cfa: &CfaRule<usize>, return_address: Option<&RegisterRule<usize>>) -> RuleKind {
    let kept = [processor.stack_pointer(), processor.frame_pointer()];
    match (return_address, cfa) {
        (Some(RegisterRule::Undefined), _) => RuleKind::Outermost,
        (_, CfaRule::Expression(_)) => RuleKind::Expression,
        (_, CfaRule::RegisterAndOffset { register, .. }) if kept.contains(register) => RuleKind::Offset,
        // What gimli begins with where nothing defined it.
        (_, CfaRule::RegisterAndOffset { register, offset: 0 }) if register.0 == 0 => RuleKind::Unsupported,
        (_, CfaRule::RegisterAndOffset { .. }) => RuleKind::Register,
    }
}
