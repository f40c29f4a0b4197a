//! The parts of a file's code that one symbol may name.

use std::ops::Range;

use crate::call_frames::CallFrames;

/// A part of the code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) range: Range<u64>,
    /// One function, or a part of one, by the call frame information; otherwise a gap between such.
    pub(super) is_function: bool,
}

/// All parts.
#[derive(Debug, Default)]
pub(super) struct CodeRegions {
    /// By address, without overlaps.
    functions: Vec<Range<u64>>,
    /// Executable sections.
    sections: Vec<Range<u64>>,
}

impl CodeRegions {
    /// Of a file with its executable sections; a file without call frame information has only gaps.
    pub(super) fn of(bytes: &[u8], sections: Vec<Range<u64>>) -> Self {
        let mut functions = Vec::new();
        if let Ok(frames) = CallFrames::from_elf(bytes) {
            let mut end = 0;
            functions = frames.code_ranges();
            // As in the table of unwind rules: what an earlier entry covers is that entry's.
            functions.retain_mut(|range| {
                range.start = range.start.max(end);
                end = end.max(range.end);
                !range.is_empty()
            });
        }
        CodeRegions { functions, sections }
    }

    pub(super) fn functions(&self) -> &[Range<u64>] {
        &self.functions
    }

    /// The part that holds an address; `None` where there is no code.
    pub(super) fn region(&self, svma: u64) -> Option<Region> {
        let behind = self.functions.partition_point(|range| range.start <= svma);
        let before = behind.checked_sub(1).and_then(|index| self.functions.get(index));
        if let Some(range) = before.filter(|range| range.contains(&svma)) {
            return Some(Region {
                range: range.clone(),
                is_function: true,
            });
        }
        let section = self.sections.iter().find(|section| section.contains(&svma))?;
        let start = before.map_or(0, |range| range.end).max(section.start);
        let end = self
            .functions
            .get(behind)
            .map_or(u64::MAX, |range| range.start)
            .min(section.end);
        Some(Region {
            range: start..end,
            is_function: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_a_function_or_in_the_gap_between_two() {
        let regions = CodeRegions {
            functions: vec![110..120, 120..130, 150..160],
            sections: vec![100..155, 200..300],
        };
        let region = |svma| regions.region(svma).map(|region| (region.range, region.is_function));
        assert_eq!(region(109), Some((100..110, false)));
        assert_eq!(region(110), Some((110..120, true)));
        assert_eq!(region(120), Some((120..130, true)));
        assert_eq!(region(130), Some((130..150, false)));
        assert_eq!(region(159), Some((150..160, true)));
        assert_eq!(region(160), None);
        assert_eq!(region(200), Some((200..300, false)));
    }
}
