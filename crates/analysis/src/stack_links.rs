//! The rows of `stacks` and `frames` with their numbers looked up, so that walking a stack looks up nothing.

use scaleprof_bundle::{FrameRow, NumberMap, StackRow, in_parallel};

/// Stacks whose numbers are looked up at a time.
const AT_A_TIME: usize = 16_384;

/// All stacks of one bundle, or of two.
#[derive(Debug, Default)]
pub(crate) struct StackLinks<'a> {
    links: Vec<StackLink>,
    places: NumberMap<i64, u32>,
    frames: Vec<&'a FrameRow>,
}

/// One stack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackLink {
    /// Where its thread goes on outwards.
    pub outwards: Outwards,
    /// The place of its innermost frame; none where the bundle lacks it.
    pub frame: Option<u32>,
}

/// What is outside of a stack's innermost frame.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outwards {
    /// Nothing: the thread begins there.
    Nothing,
    /// The stack at this place.
    At(u32),
    /// A stack that the bundle lacks.
    Lost,
}

impl<'a> StackLinks<'a> {
    pub(crate) fn of(
        stacks: impl Iterator<Item = &'a StackRow>,
        frames: impl Iterator<Item = &'a FrameRow>,
    ) -> StackLinks<'a> {
        let rows: Vec<&StackRow> = stacks.collect();
        let frames: Vec<&FrameRow> = frames.collect();
        let frame_places: NumberMap<i64, u32> = frames.iter().map(|row| row.frame).zip(0..).collect();
        let places: NumberMap<i64, u32> = rows.iter().map(|row| row.stack).zip(0..).collect();
        let link = |row: &&'a StackRow| StackLink {
            outwards: match row.parent {
                None => Outwards::Nothing,
                Some(parent) => places.get(&parent).map_or(Outwards::Lost, |place| Outwards::At(*place)),
            },
            frame: frame_places.get(&row.frame).copied(),
        };
        let chunks = in_parallel(rows.chunks(AT_A_TIME).collect(), |rows| {
            rows.iter().map(link).collect::<Vec<_>>()
        });
        let links = chunks.concat();
        StackLinks { links, places, frames }
    }

    /// The place of a stack; none where the bundle lacks it.
    pub(crate) fn place(&self, stack: i64) -> Option<u32> {
        self.places.get(&stack).copied()
    }

    /// The stack at a place.
    pub(crate) fn get(&self, place: u32) -> Option<&StackLink> {
        self.links.get(place as usize)
    }

    /// The frame at a place.
    pub(crate) fn frame(&self, place: u32) -> Option<&'a FrameRow> {
        self.frames.get(place as usize).copied()
    }

    /// How many frames there are.
    pub(crate) fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// How many stacks there are.
    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }
}
