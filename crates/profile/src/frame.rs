//! One place in the machine code.

use crate::dictionary::Hashed;
use crate::{Content, ContentHash, Dictionary};
use foldhash::HashSet;
use scaleprof_vocabulary::SymbolSource;
use std::sync::Arc;

/// The module of the kernel.
pub const KERNEL: &str = "[kernel]";
/// The module of frames that stand for what is not known.
pub const SCALEPROF: &str = "[scaleprof]";

/// One place in the machine code, with its name. Its texts are those of many: a function has thousands of places, and its name may be
/// long.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// File name of the executable or library, without its folder; [`KERNEL`] for the kernel.
    pub module: Arc<str>,
    /// Its build-id in hexadecimal.
    pub build_id: Option<Arc<str>>,
    /// Address in the file, so that it is the same in every process; for the kernel the offset from the start of the
    /// function is enough.
    pub address: i64,
    /// The function; none where nothing names it.
    pub function: Option<Arc<str>>,
    /// Whether the compiler built it into the next frame outside of it.
    pub inlined: bool,
    /// Source file, as the debug information names it relative to the build folder.
    pub file: Option<Arc<str>>,
    /// Line in it.
    pub line: Option<i32>,
    /// Where the name comes from.
    pub symbol_source: SymbolSource,
}

impl Frame {
    /// A frame of which a recording keeps the name and no address.
    #[must_use]
    pub fn named(module: impl Into<Arc<str>>, function: Option<impl Into<Arc<str>>>) -> Frame {
        Frame {
            module: module.into(),
            build_id: None,
            address: 0,
            function: function.map(Into::into),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::NameAlone,
        }
    }

    /// The same with texts that others have too, where they have them.
    fn with_texts_of(self, texts: &mut HashSet<Arc<str>>) -> Frame {
        let mut shared = |text: Arc<str>| match texts.get(&text) {
            Some(known) => Arc::clone(known),
            None => {
                texts.insert(Arc::clone(&text));
                text
            }
        };
        Frame {
            module: shared(self.module),
            build_id: self.build_id.map(&mut shared),
            function: self.function.map(&mut shared),
            file: self.file.map(&mut shared),
            symbol_source: self.symbol_source,
            address: self.address,
            inlined: self.inlined,
            line: self.line,
        }
    }

    /// A frame that stands for something that is not known, such as `[incomplete: no_rule]`.
    pub(crate) fn placeholder(words: String) -> Frame {
        Frame {
            module: SCALEPROF.into(),
            build_id: None,
            address: 0,
            function: Some(words.into()),
            inlined: false,
            file: None,
            line: None,
            symbol_source: SymbolSource::Nothing,
        }
    }
}

impl Content for Frame {
    fn hash(&self, hash: &mut ContentHash) {
        let Frame {
            module,
            build_id,
            address,
            function,
            inlined,
            file,
            line,
            symbol_source,
        } = self;
        hash.string(module);
        hash.optional(build_id.as_deref(), ContentHash::string);
        hash.integer(*address);
        hash.optional(function.as_deref(), ContentHash::string);
        hash.boolean(*inlined);
        hash.optional(file.as_deref(), ContentHash::string);
        hash.optional(*line, |hash, line| hash.integer(i64::from(line)));
        hash.string(symbol_source.name());
    }
}

/// The number of a frame: the hash of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub i64);

/// Frames, each once, and their texts, each once.
#[derive(Debug, Clone, Default)]
pub struct Frames(Dictionary<Frame>, HashSet<Arc<str>>);

impl Frames {
    /// The number of the frame, which is kept if it is new.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        self.intern_hashed(Hashed::of(frame))
    }

    /// The same of one whose hash was made before.
    pub(crate) fn intern_hashed(&mut self, frame: Hashed<Frame>) -> FrameId {
        let Frames(frames, texts) = self;
        FrameId(frames.intern_hashed_as(frame, |frame| frame.with_texts_of(texts)))
    }

    /// Makes room for so many further frames, so that less is moved. Without the room it grows as needed.
    pub(crate) fn reserve(&mut self, frames: usize) {
        self.0.reserve(frames);
    }

    /// The frame of that number.
    pub fn get(&self, id: FrameId) -> Option<&Frame> {
        self.0.get(id.0)
    }

    /// All frames, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (FrameId, &Frame)> {
        self.0.iter().map(|(number, frame)| (FrameId(number), frame))
    }
}

impl IntoIterator for Frames {
    type Item = (FrameId, Frame);
    type IntoIter = FramesAsTheyCame;
    fn into_iter(self) -> FramesAsTheyCame {
        FramesAsTheyCame(self.0.into_entries().into_iter())
    }
}

/// All frames with their numbers, in the order in which they came.
#[derive(Debug)]
pub struct FramesAsTheyCame(std::vec::IntoIter<(i64, Frame)>);

impl Iterator for FramesAsTheyCame {
    type Item = (FrameId, Frame);
    fn next(&mut self) -> Option<(FrameId, Frame)> {
        self.0.next().map(|(number, frame)| (FrameId(number), frame))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_makes_another_frame() {
        let frame = Frame {
            build_id: Some("ab".into()),
            ..Frame::placeholder("f".into())
        };
        let others = [
            Frame {
                module: "libc".into(),
                ..frame.clone()
            },
            Frame {
                build_id: None,
                ..frame.clone()
            },
            Frame {
                address: 1,
                ..frame.clone()
            },
            Frame {
                function: None,
                ..frame.clone()
            },
            Frame {
                inlined: true,
                ..frame.clone()
            },
            Frame {
                file: Some("a.cc".into()),
                ..frame.clone()
            },
            Frame {
                line: Some(0),
                ..frame.clone()
            },
            Frame {
                symbol_source: SymbolSource::Dwarf,
                ..frame.clone()
            },
        ];
        let mut frames = Frames::default();
        let id = frames.intern(frame.clone());
        for other in others {
            assert_ne!(frames.intern(other), id);
        }
        assert_eq!(frames.intern(frame), id);
        assert_eq!(frames.iter().len(), 9);
    }

    #[test]
    fn frames_of_one_function_share_its_name() {
        let mut frames = Frames::default();
        let places = [1, 2].map(|address| {
            frames.intern(Frame {
                address,
                ..Frame::named("mysqld", Some("f".repeat(1000)))
            })
        });
        let names = places.map(|place| frames.get(place).unwrap().function.clone().unwrap());
        assert!(Arc::ptr_eq(&names[0], &names[1]));
    }

    #[test]
    fn a_frame_has_the_same_number_for_ever() {
        let number = Frames::default().intern(Frame::placeholder("[incomplete: no_rule]".into()));
        // Computed apart from this code, by the description in docs/bundle.md.
        assert_eq!(number, FrameId(-4_525_417_223_572_262_291));
    }
}
