//! The tables that all threads share, filled as samples ask for what is in them.

use super::category;
use super::columns::{FrameTable, Functions, NativeSymbols, Resources, Shared, Sources, Stacks};
use crate::{Frame, FrameId, StackId, Timeline};
use scaleprof_vocabulary::ThreadState;
use std::collections::HashMap;
use std::hash::Hash;

/// The number of a resource that is a library.
const LIBRARY: u32 = 1;

/// The shared tables.
pub(super) struct Tables<'a> {
    timeline: &'a Timeline,
    strings: Numbered<String>,
    stacks: Numbered<Stack>,
    frames: Numbered<PlacedFrame>,
    functions: Numbered<Function>,
    sources: Numbered<usize>,
    libraries: Numbered<(String, Option<String>)>,
    /// Stacks with callees: they have no state.
    outer: HashMap<StackId, usize>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Stack {
    prefix: Option<usize>,
    frame: usize,
}

/// A frame with how deep it is built in, and with the state of the threads whose innermost it is.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PlacedFrame {
    id: FrameId,
    inline_depth: u8,
    state: Option<ThreadState>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Function {
    name: usize,
    library: usize,
    source: Option<usize>,
}

/// Things by their numbers, each once.
struct Numbered<T> {
    numbers: HashMap<T, usize>,
    list: Vec<T>,
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn new() -> Numbered<T> {
        Numbered {
            numbers: HashMap::new(),
            list: Vec::new(),
        }
    }

    fn number(&mut self, thing: T) -> usize {
        if let Some(known) = self.numbers.get(&thing) {
            return *known;
        }
        self.numbers.insert(thing.clone(), self.list.len());
        self.list.push(thing);
        self.list.len() - 1
    }
}

impl<'a> Tables<'a> {
    pub(super) fn new(timeline: &'a Timeline) -> Tables<'a> {
        Tables {
            timeline,
            strings: Numbered::new(),
            stacks: Numbered::new(),
            frames: Numbered::new(),
            functions: Numbered::new(),
            sources: Numbered::new(),
            libraries: Numbered::new(),
            outer: HashMap::new(),
        }
    }

    /// The number of a stack whose threads are in that state; none where the profile lacks it. The format has the state with the
    /// frame, so only the innermost one has it: what calls it is the same whatever it does there.
    pub(super) fn stack(&mut self, stack: StackId, state: ThreadState) -> Option<usize> {
        let node = self.timeline.stacks.get(stack)?;
        let prefix = node.parent.and_then(|parent| self.outer(parent));
        let frame = self.frame(node.frame, prefix, Some(state));
        Some(self.stacks.number(Stack { prefix, frame }))
    }

    fn outer(&mut self, stack: StackId) -> Option<usize> {
        let mut unknown = Vec::new();
        let mut at = Some(stack);
        let mut prefix = None;
        while let Some(stack) = at {
            if let Some(known) = self.outer.get(&stack) {
                prefix = Some(*known);
                break;
            }
            let node = self.timeline.stacks.get(stack)?;
            unknown.push((stack, node.frame));
            at = node.parent;
        }
        for (stack, frame) in unknown.into_iter().rev() {
            let frame = self.frame(frame, prefix, None);
            let number = self.stacks.number(Stack { prefix, frame });
            self.outer.insert(stack, number);
            prefix = Some(number);
        }
        prefix
    }

    fn frame(&mut self, id: FrameId, prefix: Option<usize>, state: Option<ThreadState>) -> usize {
        let outer = prefix.and_then(|prefix| self.stacks.list.get(prefix));
        let outer = outer.and_then(|stack| self.frames.list.get(stack.frame));
        let is_inlined = self.timeline.frames.get(id).is_some_and(|frame| frame.inlined);
        let inline_depth = match outer {
            Some(outer) if is_inlined => outer.inline_depth.saturating_add(1),
            _ => 0,
        };
        self.frames.number(PlacedFrame {
            id,
            inline_depth,
            state,
        })
    }

    fn function(&mut self, frame: &Frame) -> usize {
        let file = frame.file.as_ref();
        let source = file.map(|file| self.strings.number(file.to_string()));
        let function = Function {
            name: self.strings.number(frame.function_name()),
            library: self
                .libraries
                .number((frame.module.to_string(), frame.build_id.as_deref().map(str::to_owned))),
            source: source.map(|name| self.sources.number(name)),
        };
        self.functions.number(function)
    }

    /// The tables, and the modules by name and build-id.
    pub(super) fn finished(mut self) -> (Shared, Vec<(String, Option<String>)>) {
        let mut frames = FrameTable::default();
        for placed in std::mem::take(&mut self.frames.list) {
            let Some(frame) = self.timeline.frames.get(placed.id) else {
                continue;
            };
            // What the kernel has is an offset in a function.
            let address = if frame.is_of_kernel() {
                -1
            } else {
                frame.address.max(-1)
            };
            frames.address.push(address);
            frames.inline_depth.push(placed.inline_depth);
            frames.category.push(placed.state.map(category));
            frames.subcategory.push(placed.state.map(|_| 0));
            frames.func.push(self.function(frame));
            frames.native_symbol.push(None);
            frames.inner_window_id.push(None);
            frames.line.push(frame.line);
            frames.column.push(None);
            frames.length += 1;
        }
        let mut stacks = Stacks::default();
        for stack in &self.stacks.list {
            stacks.frame.push(stack.frame);
            stacks.prefix.push(stack.prefix);
            stacks.length += 1;
        }
        let mut functions = Functions::default();
        for function in &self.functions.list {
            functions.name.push(function.name);
            functions.is_js.push(false);
            functions.relevant_for_js.push(false);
            functions.resource.push(function.library);
            functions.source.push(function.source);
            functions.line_number.push(None);
            functions.column_number.push(None);
            functions.length += 1;
        }
        let mut resources = Resources::default();
        for (place, (module, _)) in self.libraries.list.iter().enumerate() {
            resources.lib.push(place);
            resources.name.push(self.strings.number(module.clone()));
            resources.host.push(None);
            resources.r#type.push(LIBRARY);
            resources.length += 1;
        }
        let sources = Sources {
            uuid: vec![None; self.sources.list.len()],
            length: self.sources.list.len(),
            filename: self.sources.list,
        };
        let shared = Shared {
            string_array: self.strings.list,
            stack_table: stacks,
            frame_table: frames,
            func_table: functions,
            resource_table: resources,
            native_symbols: NativeSymbols::default(),
            sources,
        };
        (shared, self.libraries.list)
    }
}
