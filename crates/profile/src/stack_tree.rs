//! All call paths of a profile as one tree.

use crate::{Content, ContentHash, Dictionary, FrameId};

/// The number of a stack: the hash of the stack without its innermost frame and of that frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub i64);

/// One frame of a call path, inside of all of its parents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The stack without this frame; none for a thread's outermost frame.
    pub parent: Option<StackId>,
    /// The frame.
    pub frame: FrameId,
}

impl Content for StackNode {
    fn hash(&self, hash: &mut ContentHash) {
        hash.optional(self.parent, |hash, parent| hash.integer(parent.0));
        hash.integer(self.frame.0);
    }
}

/// Call paths that share their outer frames. A thread's outermost frame is a root.
#[derive(Debug, Clone, Default)]
pub struct StackTree {
    nodes: Dictionary<StackNode>,
    /// Of every node, in their order.
    depths: Vec<u32>,
}

impl StackTree {
    /// The stack that has `frame` inside of `parent`; both are kept if they are new.
    pub fn child(&mut self, parent: Option<StackId>, frame: FrameId) -> StackId {
        let known = self.nodes.len();
        let stack = StackId(self.nodes.intern(StackNode { parent, frame }));
        if self.nodes.len() > known {
            let of_parent = parent.and_then(|parent| self.depth(parent));
            self.depths.push(of_parent.map_or(0, |depth| depth + 1));
        }
        stack
    }

    /// Makes room for so many further stacks, so that less is moved. Without the room it grows as needed.
    pub(crate) fn reserve(&mut self, stacks: usize) {
        self.nodes.reserve(stacks);
        let _ = self.depths.try_reserve(stacks);
    }

    /// The stack of these frames, outermost first; none where there is none.
    pub fn intern(&mut self, frames: impl IntoIterator<Item = FrameId>) -> Option<StackId> {
        frames
            .into_iter()
            .fold(None, |parent, frame| Some(self.child(parent, frame)))
    }

    /// The node of that number.
    pub fn get(&self, stack: StackId) -> Option<StackNode> {
        self.nodes.get(stack.0).copied()
    }

    /// Frames outside of the stack's innermost one.
    pub fn depth(&self, stack: StackId) -> Option<u32> {
        self.depths.get(self.place(stack)?).copied()
    }

    /// How many nodes [`iter`](Self::iter) gives before this one.
    pub(crate) fn place(&self, stack: StackId) -> Option<usize> {
        self.nodes.place(stack.0)
    }

    /// The frames of a stack, outermost first.
    pub fn frames(&self, stack: StackId) -> Vec<FrameId> {
        let mut frames = Vec::new();
        let mut at = self.get(stack);
        while let Some(node) = at {
            frames.push(node.frame);
            at = node.parent.and_then(|parent| self.get(parent));
        }
        frames.reverse();
        frames
    }

    /// All nodes, parents before their children.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (StackId, &StackNode)> {
        self.nodes.iter().map(|(number, node)| (StackId(number), node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn every_stack_comes_back_and_only_equal_ones_share_a_number(stacks in vec(vec(0..4i64, 1..7), 1..60)) {
            let mut tree = StackTree::default();
            let mut other = StackTree::default();
            let mut ids = HashSet::new();
            for stack in stacks.iter().rev() {
                other.intern(stack.iter().copied().map(FrameId));
            }
            for stack in &stacks {
                let frames: Vec<FrameId> = stack.iter().copied().map(FrameId).collect();
                let id = tree.intern(frames.iter().copied()).unwrap();
                prop_assert_eq!(&tree.frames(id), &frames);
                prop_assert_eq!(tree.depth(id), Some(frames.len() as u32 - 1));
                prop_assert_eq!(&other.frames(id), &frames);
                ids.insert(id);
            }
            prop_assert_eq!(ids.len(), stacks.iter().collect::<HashSet<_>>().len());
            let mut seen = HashSet::new();
            for (id, node) in tree.iter() {
                prop_assert!(node.parent.is_none_or(|parent| seen.contains(&parent)));
                seen.insert(id);
            }
        }
    }

    #[test]
    fn no_frames_are_no_stack() {
        assert_eq!(StackTree::default().intern([]), None);
    }

    #[test]
    fn outer_frames_are_shared() {
        let mut tree = StackTree::default();
        tree.intern([1, 2, 3].map(FrameId));
        tree.intern([1, 2, 4].map(FrameId));
        assert_eq!(tree.iter().len(), 4);
    }
}
