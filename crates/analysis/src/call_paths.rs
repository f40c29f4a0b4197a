//! Call paths by function: what remains of stacks when addresses within one function are one.

use crate::stack_links::{Outwards, StackLinks};
use scaleprof_bundle::{Bundle, FrameRow, NumberMap, StackRow};
use scaleprof_profile::{MOST_NAMED_FRAMES, function_name};
use scaleprof_vocabulary::SymbolSource;
use std::collections::{HashMap, HashSet};

/// What stands for a frame that the bundle lacks.
pub(crate) const LOST: &str = "[not in the bundle]";

/// All call paths of a bundle as one tree of functions.
#[derive(Debug, Default)]
pub struct CallPaths<'a> {
    stacks: StackLinks<'a>,
    /// Modules in which an address is not the same place in all bundles.
    rebuilt: HashSet<&'a str>,
    functions: Vec<String>,
    function_numbers: HashMap<String, usize>,
    /// Function by the place of the frame.
    known_frames: Vec<Option<usize>>,
    nodes: Vec<Node>,
    /// How many frames lie outside of each.
    depths: Vec<u32>,
    node_numbers: NumberMap<Node, PathId>,
    /// Whether each path begins where its threads begin.
    whole: Vec<bool>,
    /// Path by the place of the stack.
    known: Vec<Option<PathId>>,
    /// The path of all stacks that the bundle lacks.
    lost: Option<PathId>,
}

/// A function inside of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    parent: Option<PathId>,
    function: usize,
}

/// A call path: its place among those of its [`CallPaths`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u32);

impl PathId {
    /// The one with this number.
    #[cfg(test)]
    pub(crate) fn at(place: usize) -> PathId {
        PathId(u32::try_from(place).unwrap_or(u32::MAX))
    }

    /// Its number among the paths, from 0.
    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }
}

impl<'a> CallPaths<'a> {
    /// Those of a bundle.
    pub fn of(bundle: &'a Bundle) -> CallPaths<'a> {
        CallPaths::of_rows(&bundle.stacks, &bundle.frames)
    }

    /// Those of two bundles as one tree, so that a path has one number in both. Code that only its address names is merged where
    /// the two have another build of its module: addresses say nothing there.
    pub(crate) fn of_both(one: &'a Bundle, other: &'a Bundle) -> CallPaths<'a> {
        let frames = || one.frames.iter().chain(&other.frames);
        let mut builds: HashMap<&str, HashSet<Option<&str>>> = HashMap::new();
        for row in frames() {
            let build = row.build_id.as_deref();
            builds.entry(&*row.module).or_default().insert(build);
        }
        let is_one = |builds: &HashSet<Option<&str>>| builds.len() == 1 && !builds.contains(&None);
        CallPaths {
            rebuilt: builds
                .into_iter()
                .filter(|(_, builds)| !is_one(builds))
                .map(|(module, _)| module)
                .collect(),
            ..CallPaths::of_links(StackLinks::of(one.stacks.iter().chain(&other.stacks), frames()))
        }
    }

    /// Those of a bundle's two tables.
    pub(crate) fn of_rows(stacks: &'a [StackRow], frames: &'a [FrameRow]) -> CallPaths<'a> {
        CallPaths::of_links(StackLinks::of(stacks.iter(), frames.iter()))
    }

    fn of_links(stacks: StackLinks<'a>) -> CallPaths<'a> {
        CallPaths {
            known: vec![None; stacks.len()],
            known_frames: vec![None; stacks.frame_count()],
            stacks,
            ..CallPaths::default()
        }
    }

    /// The path of a stack. What a damaged bundle lacks is `[not in the bundle]`.
    pub fn path(&mut self, stack: i64) -> PathId {
        let Some(place) = self.stacks.place(stack) else {
            return self.lost();
        };
        let mut inner = Vec::new();
        let mut at = Outwards::At(place);
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
            let link = self.stacks.get(place).copied();
            // Only a damaged table has a circle; a stack is not deeper than there are stacks.
            if known.is_some() || inner.len() > self.stacks.len() {
                parent = known;
                break;
            }
            at = link.map_or(Outwards::Nothing, |link| link.outwards);
            inner.push((place, link.and_then(|link| link.frame)));
        }
        for (place, frame) in inner.into_iter().rev() {
            let outer = parent.filter(|outer| self.depths[outer.place()] + 1 >= MOST_NAMED_FRAMES);
            let path = match outer {
                // What lies deeper is counted there.
                Some(outer) => outer,
                None => {
                    let function = self.function(frame);
                    self.node(Node { parent, function })
                }
            };
            if let Some(known) = self.known.get_mut(place as usize) {
                *known = Some(path);
            }
            parent = Some(path);
        }
        parent.unwrap_or_else(|| unreachable!("the stack itself is known by now"))
    }

    /// The path of what the bundle lacks.
    fn lost(&mut self) -> PathId {
        if let Some(lost) = self.lost {
            return lost;
        }
        let function = self.function(None);
        let path = self.node(Node { parent: None, function });
        self.lost = Some(path);
        path
    }

    /// The path of a stack that was asked for before.
    pub(crate) fn known(&self, stack: i64) -> Option<PathId> {
        match self.stacks.place(stack) {
            Some(place) => self.known.get(place as usize).copied().flatten(),
            None => self.lost,
        }
    }

    /// The numbers of the functions of a path, innermost first; see [`CallPaths::leaf`].
    pub(crate) fn outwards(&self, path: PathId) -> impl Iterator<Item = usize> + Clone {
        let paths = std::iter::successors(Some(path), |path| self.parent(*path));
        paths.map(|path| self.leaf(path))
    }

    /// The functions' names by their numbers.
    pub(crate) fn function_names(&self) -> &[String] {
        &self.functions
    }

    /// The functions of a path, outermost first; those of the kernel end in ` [k]`.
    pub fn functions(&self, path: PathId) -> Vec<String> {
        let mut functions = Vec::new();
        let mut at = Some(path);
        while let Some(path) = at {
            let node = self.nodes[path.place()];
            functions.push(self.functions[node.function].clone());
            at = node.parent;
        }
        functions.reverse();
        functions
    }

    /// Whether the path begins where its threads begin. Of a stack that was cut short the share may change with how deep a thread
    /// stands, and says nothing about it.
    pub(crate) fn is_whole(&self, path: PathId) -> bool {
        self.whole.get(path.place()).is_some_and(|whole| *whole)
    }

    /// The path without its innermost function.
    pub fn parent(&self, path: PathId) -> Option<PathId> {
        self.nodes.get(path.place())?.parent
    }

    /// Whether a path is `outer` or goes on from it.
    pub fn is_within(&self, path: PathId, outer: PathId) -> bool {
        let mut at = Some(path);
        while let Some(path) = at {
            if path == outer {
                return true;
            }
            at = self.parent(path);
        }
        false
    }

    /// The frames of a stack, innermost first, as far as the bundle has them.
    pub(crate) fn frames_outwards(&self, stack: i64) -> impl Iterator<Item = &'a FrameRow> + Clone {
        let link = |place: u32| self.stacks.get(place).copied();
        let links = std::iter::successors(self.stacks.place(stack).and_then(link), move |inner| {
            match inner.outwards {
                Outwards::At(place) => link(place),
                _ => None,
            }
        });
        // Only a damaged table has a circle; a stack is not deeper than there are stacks.
        links
            .take(self.stacks.len())
            .map_while(|link| self.stacks.frame(link.frame?))
    }

    /// A number for the innermost function of a path, the same in all paths that end in it.
    pub(crate) fn leaf(&self, path: PathId) -> usize {
        self.nodes[path.place()].function
    }

    /// All paths that were asked for and those that they are within, each after what it is within.
    pub(crate) fn ids(&self) -> impl DoubleEndedIterator<Item = PathId> + ExactSizeIterator + use<> {
        (0..self.nodes.len() as u32).map(PathId)
    }

    /// The innermost function of a path, as [`CallPaths::functions`] gives it.
    pub(crate) fn innermost(&self, path: PathId) -> &str {
        &self.functions[self.leaf(path)]
    }

    fn node(&mut self, node: Node) -> PathId {
        *self.node_numbers.entry(node).or_insert_with(|| {
            let is_whole = match node.parent {
                Some(parent) => self.whole[parent.place()],
                None => !self.functions[node.function].starts_with("[incomplete"),
            };
            self.whole.push(is_whole);
            self.depths
                .push(node.parent.map_or(0, |parent| self.depths[parent.place()] + 1));
            self.nodes.push(node);
            // More paths than that do not fit into memory.
            PathId((self.nodes.len() - 1) as u32)
        })
    }

    /// The function of the frame at a place.
    fn function(&mut self, frame: Option<u32>) -> usize {
        let at = frame.and_then(|place| Some((place, self.stacks.frame(place)?)));
        let Some((place, row)) = at else {
            return self.named(LOST.to_owned());
        };
        if let Some(known) = self.known_frames.get(place as usize).copied().flatten() {
            return known;
        }
        let name = match is_named_by_address(row) && self.rebuilt.contains(&*row.module) {
            true => format!("[unnamed in {}]", row.module),
            false => function_name(&row.module, row.function.as_deref(), row.address),
        };
        let function = self.named(name);
        if let Some(known) = self.known_frames.get_mut(place as usize) {
            *known = Some(function);
        }
        function
    }

    fn named(&mut self, name: String) -> usize {
        let functions = &mut self.functions;
        *self.function_numbers.entry(name).or_insert_with_key(|name| {
            functions.push(name.clone());
            functions.len() - 1
        })
    }
}

/// Whether nothing but its address tells the function from others: none has a name, or only its bounds are known.
fn is_named_by_address(frame: &FrameRow) -> bool {
    frame.function.is_none() || frame.symbol_source == SymbolSource::FrameBounds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(frame: i64, module: &str, function: Option<&str>) -> FrameRow {
        FrameRow {
            frame,
            module: module.into(),
            build_id: None,
            address: frame,
            function: function.map(Into::into),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Symtab,
        }
    }

    fn stack(stack: i64, parent: Option<i64>, frame: i64) -> StackRow {
        StackRow {
            stack,
            parent,
            frame,
            depth: 0,
        }
    }

    #[test]
    fn a_path_without_end_is_cut_where_recorders_end() {
        let stacks: Vec<StackRow> = (0..5_000).map(|n| stack(n, (n > 0).then_some(n - 1), n % 7)).collect();
        let frames: Vec<FrameRow> = (0..7).map(|n| frame(n, "mysqld", Some(&format!("f{n}")))).collect();
        let mut paths = CallPaths::of_rows(&stacks, &frames);
        let (deepest, last) = (paths.path(4_999), paths.path(i64::from(MOST_NAMED_FRAMES) - 1));
        assert_eq!(deepest, last);
        assert_eq!(paths.functions(deepest).len(), MOST_NAMED_FRAMES as usize);
        assert_ne!(paths.path(100), last);
    }

    #[test]
    fn addresses_of_one_function_are_one_path() {
        let frames = [
            frame(1, "mysqld", Some("main")),
            frame(2, "mysqld", Some("main")),
            frame(3, "[kernel]", Some("futex_wait")),
            frame(4, "libc.so.6", None),
        ];
        let stacks = [
            stack(10, None, 1),
            stack(20, None, 2),
            stack(13, Some(10), 3),
            stack(23, Some(20), 3),
            stack(24, Some(20), 4),
        ];
        let mut paths = CallPaths::of_rows(&stacks, &frames);
        let (one, other) = (paths.path(13), paths.path(23));
        assert_eq!(one, other);
        assert_eq!(paths.functions(one), ["main", "futex_wait [k]"]);
        let unnamed = paths.path(24);
        assert_eq!(paths.functions(unnamed), ["main", "libc.so.6+0x4"]);
    }

    #[test]
    fn damaged_dictionaries_end_somewhere() {
        let stacks = [stack(1, Some(2), 7), stack(2, Some(1), 7), stack(3, Some(99), 7)];
        let mut paths = CallPaths::of_rows(&stacks, &[]);
        for stack in [1, 2, 3, 4] {
            let path = paths.path(stack);
            let functions = paths.functions(path);
            assert!((1..6).contains(&functions.len()) && functions.iter().all(|f| f == "[not in the bundle]"));
        }
    }

    #[test]
    fn places_that_only_an_address_names_are_merged_where_the_build_differs() {
        let of_build = |number: i64, module: &str, build: &str| FrameRow {
            build_id: Some(build.into()),
            symbol_source: SymbolSource::FrameBounds,
            ..frame(number, module, Some(&format!("{module}!fun_{number}")))
        };
        let bundle = |frames: [FrameRow; 2]| Bundle {
            stacks: frames
                .iter()
                .map(|row| stack(row.frame + 10, None, row.frame))
                .collect(),
            frames: frames.into(),
            ..testing::planted::empty()
        };
        let a = bundle([of_build(1, "mysqld", "aa"), of_build(2, "libc.so.6", "cc")]);
        let b = bundle([of_build(3, "mysqld", "bb"), of_build(4, "libc.so.6", "cc")]);
        let mut paths = CallPaths::of_both(&a, &b);
        let [one, other, same, another] = [11, 13, 12, 14].map(|stack| paths.path(stack));
        assert_eq!(one, other);
        assert_eq!(paths.functions(one), ["[unnamed in mysqld]"]);
        assert_ne!(same, another);
        assert_eq!(paths.functions(same), ["libc.so.6!fun_2"]);
    }
}
