//! Where two walks of one stack part, told so that the rule and the code there can be looked up.

use scaleprof_vocabulary::UnwindStatus;
use std::fmt;

use scaleprof_probe::{ProcessNames, StartRegisters};
use scaleprof_profile::{Namer as _, RawStack};

/// The last frame that both walks have, by its file and its address there, and whether it is the innermost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Parting {
    pub module: String,
    pub address: i64,
    pub function: String,
    pub innermost: bool,
}

/// Two walks that are not the same.
pub struct Difference {
    pub parting: Parting,
    endings: [UnwindStatus; 2],
    same_frames: bool,
    start: StartRegisters,
    ours: String,
    framehop: String,
}

impl Difference {
    pub fn of(start: StartRegisters, ours: &RawStack, framehop: &RawStack, names: &mut ProcessNames) -> Self {
        let common = ours.user.iter().zip(&framehop.user).take_while(|(a, b)| a == b).count();
        // The program counter that the walk began with is common in any case.
        let last = common.saturating_sub(1);
        let (module, address, function) = name(ours, last, names);
        Self {
            parting: Parting {
                module,
                address,
                function,
                innermost: last == 0,
            },
            endings: [ours.ending, framehop.ending],
            same_frames: ours.user == framehop.user && ours.interrupted == framehop.interrupted,
            start,
            ours: told(ours, names),
            framehop: told(framehop, names),
        }
    }

    /// Programs that were linked with an old C library, as MySQL 5.6.14 was, have no rule for `_start`. All frames are
    /// found; but framehop cannot tell that there is no caller, which we see by the bytes at the program's entry.
    pub fn is_the_end_at_the_programs_start(&self) -> bool {
        self.same_frames
            && self.endings == [UnwindStatus::Complete, UnwindStatus::NoRule]
            && self.parting.function == "_start"
    }
}

/// File, address in it, and function of a frame.
pub fn name(stack: &RawStack, position: usize, names: &mut ProcessNames) -> (String, i64, String) {
    let Some(address) = stack.user.get(position) else {
        return Default::default();
    };
    let exact = stack.interrupted.contains(&(position as u16));
    let frames = names.frames(address - u64::from(!exact && *address > 0), false);
    match frames.into_iter().last() {
        Some(frame) => (
            frame.module.to_string(),
            frame.address,
            frame.function.as_deref().unwrap_or_default().to_owned(),
        ),
        None => (String::new(), *address as i64, String::new()),
    }
}

fn told(stack: &RawStack, names: &mut ProcessNames) -> String {
    let mut text = format!("{}, interrupted {:?}", stack.ending.name(), stack.interrupted);
    for (position, address) in stack.user.iter().enumerate() {
        let (module, in_file, function) = name(stack, position, names);
        text += &format!("\n    {position:>3} {address:#x} {module}+{in_file:#x} {function}");
    }
    text
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parting {
            module,
            address,
            function,
            innermost,
        } = &self.parting;
        let where_ = if *innermost { "the innermost frame" } else { "a caller" };
        write!(
            f,
            "after {where_}, {module}+{address:#x} {function}, with {:x?}\n  ours: {}\n  framehop: {}",
            self.start, self.ours, self.framehop
        )
    }
}
