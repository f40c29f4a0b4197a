//! The stacks of a bundle as those of a profile.

use crate::call_paths::LOST;
use crate::stack_links::{Outwards, StackLinks};
use scaleprof_bundle::Bundle;
use scaleprof_profile::{Frame, FrameId, Frames, SCALEPROF, StackId, StackTree};
use scaleprof_vocabulary::SymbolSource;

/// Frames of a stack that are kept; no recorder takes as many, so more of them are in damaged tables only.
const MOST_FRAMES: u32 = 1023;

/// Stacks and frames that were asked for, each once.
pub(super) struct Stacks<'a> {
    links: StackLinks<'a>,
    pub frames: Frames,
    pub stacks: StackTree,
    /// Stack by its place in `links`.
    known: Vec<Option<StackId>>,
    /// Frame by its place in `links`.
    known_frames: Vec<Option<FrameId>>,
}

impl<'a> Stacks<'a> {
    pub(super) fn of(bundle: &'a Bundle) -> Stacks<'a> {
        let links = StackLinks::of(bundle.stacks.iter(), bundle.frames.iter());
        Stacks {
            known: vec![None; links.len()],
            known_frames: vec![None; links.frame_count()],
            links,
            frames: Frames::default(),
            stacks: StackTree::default(),
        }
    }

    /// A stack of the bundle; what it lacks is [`LOST`], as in [`CallPaths::path`](crate::call_paths::CallPaths::path). What is
    /// inside of [`MOST_FRAMES`] is left out.
    pub(super) fn stack(&mut self, number: i64) -> StackId {
        let mut inner = Vec::new();
        let mut at = self.links.place(number).map_or(Outwards::Lost, Outwards::At);
        let mut parent = None;
        loop {
            let place = match at {
                Outwards::At(place) => place,
                Outwards::Nothing => break,
                Outwards::Lost => {
                    parent = Some(self.lost());
                    break;
                }
            };
            let known = self.known.get(place as usize).copied().flatten();
            // Only a damaged table has a circle; a stack is not deeper than there are stacks.
            if known.is_some() || inner.len() > self.links.len() {
                parent = known;
                break;
            }
            let link = self.links.get(place).copied();
            at = link.map_or(Outwards::Nothing, |link| link.outwards);
            inner.push((place, link.and_then(|link| link.frame)));
        }
        for (place, row) in inner.into_iter().rev() {
            let frame = self.frame(row);
            let stack = match parent {
                Some(full) if self.stacks.depth(full) >= Some(MOST_FRAMES) => full,
                _ => self.stacks.child(parent, frame),
            };
            if let Some(known) = self.known.get_mut(place as usize) {
                *known = Some(stack);
            }
            parent = Some(stack);
        }
        parent.unwrap_or_else(|| self.lost())
    }

    fn lost(&mut self) -> StackId {
        let frame = self.frame(None);
        self.stacks.child(None, frame)
    }

    /// The frame at a place.
    fn frame(&mut self, place: Option<u32>) -> FrameId {
        let at = place.and_then(|place| Some((place, self.links.frame(place)?)));
        let Some((place, row)) = at else {
            return self.frames.intern(Frame {
                module: SCALEPROF.into(),
                build_id: None,
                address: 0,
                function: Some(LOST.into()),
                inlined: false,
                file: None,
                line: None,
                symbol_source: SymbolSource::Nothing,
            });
        };
        if let Some(known) = self.known_frames.get(place as usize).copied().flatten() {
            return known;
        }
        let frame = self.frames.intern(Frame {
            module: row.module.clone(),
            build_id: row.build_id.clone(),
            address: row.address,
            function: row.function.clone(),
            inlined: row.inlined,
            file: row.file.clone(),
            line: row.line,
            symbol_source: row.symbol_source,
        });
        if let Some(known) = self.known_frames.get_mut(place as usize) {
            *known = Some(frame);
        }
        frame
    }
}
