//! Which file lay where in which process at what time: mappings come and go while a recording runs.
//!
//! The records are gone through once, by time. A sample only keeps the number of the layout that its process had then; a layout
//! is copied when a sample needs it and something was mapped since the last copy.

use super::files::{FileId, Files};
use super::record::{Forked, Mapped, Named};
use crate::import::RecordedThread;
use foldhash::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The kernel's own limit (vm.max_map_count) is 65 530 by default.
const MOST_PLACES: usize = 1 << 16;
/// Places that are copied for layouts and for children, in any case and for each byte of the recording: what needs more was made to
/// fill the memory.
const COPIED_PLACES: usize = 1 << 20;
const COPIED_PLACES_PER_BYTE: f64 = 1.0 / 64.0;

/// A part of a file in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Address in the process less address in the file.
    pub(super) bias: u64,
    pub(super) file: FileId,
    /// Whether it is code in anonymous memory.
    pub(super) of_own_making: bool,
}

/// What a process had mapped for a while: places by address, without overlaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) places: Vec<Place>,
}

impl Layout {
    pub(super) fn place(&self, address: u64) -> Option<&Place> {
        let after = self.places.partition_point(|place| place.start <= address);
        let place = self.places.get(after.checked_sub(1)?)?;
        (address < place.end).then_some(place)
    }
}

/// The number of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LayoutId(pub(super) u32);

/// All processes of a recording, at the time up to which it was read.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    processes: HashMap<u32, Process>,
    layouts: Vec<Layout>,
    /// Places that may still be copied.
    room: usize,
    names: HashMap<u32, RecordedThread>,
    /// Layouts that could not be kept up to date.
    pub(super) stale: bool,
}

#[derive(Debug, Clone, Default)]
struct Process {
    /// By first address; shared with children that have mapped nothing since.
    places: Arc<BTreeMap<u64, Place>>,
    /// The copy, as long as it holds.
    layout: Option<LayoutId>,
    /// The one that held last.
    last: Option<LayoutId>,
}

impl Timeline {
    /// Of a recording of so many bytes, at its start.
    pub(super) fn new(bytes: usize) -> Timeline {
        Timeline {
            room: COPIED_PLACES + (bytes as f64 * COPIED_PLACES_PER_BYTE) as usize,
            ..Timeline::default()
        }
    }

    /// A file is mapped, over what was there.
    pub(super) fn map(&mut self, mapped: &Mapped, files: &mut Files) {
        let Some(end) = mapped
            .start
            .checked_add(mapped.length)
            .filter(|end| *end > mapped.start)
        else {
            return;
        };
        let process = self.processes.entry(mapped.process).or_default();
        let copied = match Arc::strong_count(&process.places) {
            1 => 0,
            _ => process.places.len(),
        };
        if process.places.len() >= MOST_PLACES || copied > self.room {
            self.stale = true;
            return;
        }
        self.room -= copied;
        process.unmap(mapped.start, end);
        let Some((file, bias)) = files.place(mapped) else {
            return;
        };
        let place = Place {
            start: mapped.start,
            end,
            bias,
            file,
            of_own_making: mapped.is_anonymous(),
        };
        Arc::make_mut(&mut process.places).insert(mapped.start, place);
    }

    /// A thread or a process begins; a process with what its parent has mapped.
    pub(super) fn fork(&mut self, forked: &Forked) {
        if forked.process != forked.parent
            && !forked.ran_before
            && let Some(parent) = self.processes.get(&forked.parent)
        {
            let child = parent.clone();
            self.processes.insert(forked.process, child);
        }
        let name = self.names.get(&forked.parent).map(|parent| parent.name.clone());
        self.names.entry(forked.thread).or_insert_with(|| RecordedThread {
            process: forked.process,
            name: name.unwrap_or_default(),
        });
    }

    /// A thread gets a name; with another program its process begins anew.
    pub(super) fn name(&mut self, named: &Named) {
        if named.exec
            && let Some(process) = self.processes.get_mut(&named.process)
        {
            *process = Process::default();
        }
        self.names.insert(
            named.thread,
            RecordedThread {
                process: named.process,
                name: named.name.clone(),
            },
        );
    }

    /// The layout that a process has now.
    pub(super) fn layout(&mut self, process: u32) -> LayoutId {
        let process = self.processes.entry(process).or_default();
        if let Some(layout) = process.layout {
            return layout;
        }
        let needed = process.places.len() + 1;
        if needed > self.room {
            self.stale = true;
            // A number that no layout has: nothing is mapped there.
            return process.last.unwrap_or(LayoutId(u32::MAX));
        }
        self.room -= needed;
        let layout = LayoutId(u32::try_from(self.layouts.len()).unwrap_or(u32::MAX));
        self.layouts.push(Layout {
            places: process.places.values().copied().collect(),
        });
        process.layout = Some(layout);
        process.last = Some(layout);
        layout
    }

    /// A thread is seen. One that nothing told of before is called like the first of its process.
    pub(super) fn meet(&mut self, process: u32, thread: u32) {
        if !self.names.contains_key(&thread) {
            let name = self.names.get(&process).map(|first| first.name.clone());
            let name = name.unwrap_or_default();
            self.names.insert(thread, RecordedThread { process, name });
        }
    }

    /// Whether a process has that name now.
    pub(super) fn is_called(&self, process: u32, name: &str) -> bool {
        self.names.get(&process).map_or("", |known| &known.name) == name
    }

    /// How threads are called, in alphabetical order, each name once.
    pub(super) fn thread_names(&self) -> BTreeSet<&str> {
        let names = self.names.values().map(|thread| thread.name.as_str());
        names.filter(|name| !name.is_empty()).collect()
    }

    /// The file that a process runs, as far as the layout tells: it lies before its libraries.
    pub(super) fn program(&self, process: u32) -> Option<FileId> {
        let process = self.processes.get(&process)?;
        let mut places = process.places.values();
        places.find(|place| !place.of_own_making).map(|place| place.file)
    }

    /// A process and its thread, which perf 6.16 has the other way round in waits that it put out while it recorded. Where neither is
    /// known to belong to the other, they stay.
    pub(super) fn in_order(&self, process: u32, thread: u32) -> (u32, u32) {
        let belongs = |thread: &u32, process| self.names.get(thread).is_some_and(|known| known.process == process);
        match !belongs(&thread, process) && belongs(&process, thread) {
            true => (thread, process),
            false => (process, thread),
        }
    }

    /// Layouts by their numbers, and threads by theirs.
    pub(super) fn finish(self) -> (Vec<Layout>, BTreeMap<u32, RecordedThread>) {
        (self.layouts, self.names.into_iter().collect())
    }
}

impl Process {
    fn unmap(&mut self, start: u64, end: u64) {
        self.layout = None;
        let places = Arc::make_mut(&mut self.places);
        // Places do not overlap: only the last that begins before `start` can reach into it.
        let before = places.range(..start).next_back().map(|(_, place)| *place);
        if let Some(place) = before.filter(|place| place.end > start) {
            if let Some(first) = places.get_mut(&place.start) {
                first.end = start;
            }
            if place.end > end {
                places.insert(end, Place { start: end, ..place });
            }
        }
        let covered: Vec<u64> = places.range(start..end).map(|(start, _)| *start).collect();
        for at in covered {
            if let Some(place) = places.remove(&at)
                && place.end > end
            {
                places.insert(end, Place { start: end, ..place });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn mapped(process: u32, start: u64, length: u64, path: &str) -> Mapped {
        Mapped {
            process,
            start,
            length,
            file_offset: 0,
            path: path.to_owned(),
            build_id: None,
            inode: None,
        }
    }

    proptest! {
        #[test]
        fn the_last_mapping_of_an_address_holds(mappings in vec((0_u64..60, 1_u64..30), 1..40)) {
            let mut files = Files::nowhere();
            let mut timeline = Timeline::new(0);
            let mut owner: HashMap<u64, usize> = HashMap::default();
            for (number, (start, length)) in mappings.iter().enumerate() {
                timeline.map(&mapped(1, *start, *length, &format!("/nowhere/{number}")), &mut files);
                owner.extend((*start..start + length).map(|address| (address, number)));
                if number % 3 == 0 {
                    timeline.layout(1);
                }
            }
            let last = timeline.layout(1);
            let (layouts, _) = timeline.finish();
            let layout = &layouts[last.0 as usize];
            for address in 0..100 {
                let found = layout.place(address).map(|place| files.path(place.file).to_owned());
                prop_assert_eq!(found, owner.get(&address).map(|number| format!("/nowhere/{number}")));
            }
        }
    }

    #[test]
    fn children_without_end_take_no_memory_without_end() {
        let mut files = Files::nowhere();
        let mut timeline = Timeline::new(0);
        for at in 0..4096 {
            timeline.map(&mapped(1, at << 12, 0x1000, "/nowhere/a"), &mut files);
        }
        for child in 2..10_000 {
            timeline.fork(&Forked {
                process: child,
                parent: 1,
                thread: child,
                ran_before: false,
            });
            timeline.map(&mapped(child, 1 << 40, 0x1000, "/nowhere/b"), &mut files);
            timeline.layout(child);
        }
        assert!(timeline.stale);
        let (layouts, _) = timeline.finish();
        let places: usize = layouts.iter().map(|layout| layout.places.len()).sum();
        assert!(places <= COPIED_PLACES);
    }

    #[test]
    fn a_process_that_ran_before_has_nothing_of_its_parents() {
        let mut files = Files::nowhere();
        let mut timeline = Timeline::new(0);
        timeline.map(&mapped(1, 0x1000, 0x1000, "/usr/lib/systemd/systemd"), &mut files);
        timeline.fork(&Forked {
            process: 2,
            parent: 1,
            thread: 2,
            ran_before: true,
        });
        timeline.map(&mapped(2, 0x8000, 0x1000, "/usr/sbin/mysqld"), &mut files);
        let layout = timeline.layout(2);
        let program = timeline.program(2);
        let (layouts, _) = timeline.finish();
        let place = |address| layouts[layout.0 as usize].place(address);
        assert!(place(0x1000).is_none());
        assert_eq!(place(0x8000).map(|place| place.file), program);
    }

    #[test]
    fn a_child_has_what_its_parent_had_until_it_begins_another_program() {
        let mut files = Files::nowhere();
        let mut timeline = Timeline::new(0);
        timeline.map(&mapped(1, 0x1000, 0x1000, "/nowhere/a"), &mut files);
        timeline.fork(&Forked {
            process: 2,
            parent: 1,
            thread: 2,
            ran_before: false,
        });
        let before = timeline.layout(2);
        timeline.name(&Named {
            process: 2,
            thread: 2,
            name: "b".into(),
            exec: true,
        });
        timeline.map(&mapped(2, 0x8000, 0x1000, "/nowhere/b"), &mut files);
        let after = timeline.layout(2);
        assert_eq!(timeline.layout(2), after, "nothing was mapped since");
        assert!(timeline.is_called(2, "b") && !timeline.is_called(3, "b"));
        timeline.meet(2, 3);
        let (layouts, names) = timeline.finish();
        assert_eq!((names[&3].process, names[&3].name.as_str()), (2, "b"));
        let place = |layout: LayoutId, address| layouts[layout.0 as usize].place(address).is_some();
        assert!(place(before, 0x1fff) && !place(before, 0x2000));
        assert!(!place(after, 0x1000) && place(after, 0x8000));
        assert_eq!(names[&2].name, "b");
    }
}
