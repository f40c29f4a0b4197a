//! The stacks of a bundle as those of a profile.

use crate::call_paths::LOST;
use crate::stack_links::{Outwards, StackLinks};
use scaleprof_bundle::{Bundle, FrameRow, NumberMap};
use scaleprof_profile::{Frame, FrameId, Frames, SCALEPROF, StackId, StackTree};

/// Stacks and frames that were asked for, each once.
pub(super) struct Stacks<'a> {
    links: StackLinks<'a>,
    pub frames: Frames,
    pub stacks: StackTree,
    known: NumberMap<i64, StackId>,
    known_frames: NumberMap<i64, FrameId>,
}

impl<'a> Stacks<'a> {
    pub(super) fn of(bundle: &'a Bundle) -> Stacks<'a> {
        Stacks {
            links: StackLinks::of(bundle.stacks.iter(), bundle.frames.iter()),
            frames: Frames::default(),
            stacks: StackTree::default(),
            known: NumberMap::default(),
            known_frames: NumberMap::default(),
        }
    }

    /// A stack of the bundle; what it lacks is [`LOST`], as in [`CallPaths::path`](crate::call_paths::CallPaths::path).
    pub(super) fn stack(&mut self, number: i64) -> StackId {
        if let Some(known) = self.known.get(&number) {
            return *known;
        }
        let mut inner = Vec::new();
        let mut at = self.links.place(number).map_or(Outwards::Lost, Outwards::At);
        loop {
            let place = match at {
                Outwards::At(place) => place,
                Outwards::Nothing => break,
                Outwards::Lost => {
                    inner.push(None);
                    break;
                }
            };
            // Only a damaged table has a circle; a stack is not deeper than there are stacks.
            if inner.len() > self.links.len() {
                break;
            }
            let link = self.links.get(place).copied();
            inner.push(link.and_then(|link| link.frame));
            at = link.map_or(Outwards::Nothing, |link| link.outwards);
        }
        let mut parent = None;
        let mut stack = None;
        for row in inner.into_iter().rev() {
            let frame = self.frame(row);
            let child = self.stacks.child(parent, frame);
            (parent, stack) = (Some(child), Some(child));
        }
        let stack = stack.unwrap_or_else(|| unreachable!("every way to the loop's end pushes a frame first"));
        self.known.insert(number, stack);
        stack
    }

    fn frame(&mut self, row: Option<&FrameRow>) -> FrameId {
        let Some(row) = row else {
            return self.frames.intern(Frame {
                module: SCALEPROF.to_owned(),
                build_id: None,
                address: 0,
                function: Some(LOST.to_owned()),
                inlined: false,
                file: None,
                line: None,
                name_source: "none".to_owned(),
            });
        };
        if let Some(known) = self.known_frames.get(&row.frame) {
            return *known;
        }
        let frame = self.frames.intern(Frame {
            module: row.module.clone(),
            build_id: row.build_id.clone(),
            address: row.address,
            function: row.function.clone(),
            inlined: row.inlined,
            file: row.file.clone(),
            line: row.line,
            name_source: row.name_source.clone(),
        });
        self.known_frames.insert(row.frame, frame);
        frame
    }
}
