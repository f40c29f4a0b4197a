//! Waits from `sched:sched_switch`: a thread leaves its CPU in one record and gets one again in another, and the time between is
//! its wait.
//!
//! That holds for recordings of the whole machine. Of a process alone only the leaving is recorded, since the record of coming back
//! belongs to whoever had the CPU before.

use super::cursor::Cursor;
use crate::ThreadState;
use std::collections::HashMap;
use std::ops::Range;

/// How the tracepoint is called.
pub(super) const NAME: &str = "sched:sched_switch";
/// Largest place of a field that is believed.
const LARGEST_OFFSET: usize = 4096;

/// Where the fields of the tracepoint stand in what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SwitchFormat {
    state: Range<usize>,
    next: Range<usize>,
}

impl Default for SwitchFormat {
    /// As 64-bit kernels have had it since the tracepoint exists (include/trace/events/sched.h).
    fn default() -> Self {
        SwitchFormat {
            state: 32..40,
            next: 56..60,
        }
    }
}

impl SwitchFormat {
    /// Reads the format that a recording keeps (`/sys/kernel/tracing/events/sched/sched_switch/format`).
    pub(super) fn of(tracing: &[u8]) -> SwitchFormat {
        let text = String::from_utf8_lossy(tracing);
        let own = text.split_once("name: sched_switch\n").map(|(_, own)| own);
        let own = own.and_then(|own| own.split("print fmt").next()).unwrap_or_default();
        let field = |name: &str| {
            let line = own.lines().find(|line| line.contains(&format!(" {name};")))?;
            let number = |key: &str| line.split(key).nth(1)?.split(';').next()?.trim().parse::<usize>().ok();
            let (offset, size) = (number("offset:")?, number("size:")?);
            (offset < LARGEST_OFFSET && size <= 8).then_some(offset..offset + size)
        };
        let known = SwitchFormat::default();
        SwitchFormat {
            state: field("prev_state").unwrap_or(known.state),
            next: field("next_pid").unwrap_or(known.next),
        }
    }

    /// How the thread that leaves does so, and the thread that comes; none where the record is cut.
    fn read(&self, raw: &[u8]) -> Option<(Leaves, u32)> {
        let number = |at: &Range<usize>| {
            let mut bytes = [0; 8];
            let field = raw.get(at.clone())?;
            bytes[..field.len()].copy_from_slice(field);
            Some(u64::from_le_bytes(bytes))
        };
        /// The bits of the state that say why a thread sleeps; the next one says that it was preempted (TASK_REPORT).
        const ASLEEP: u64 = 0xff;
        /// EXIT_DEAD and EXIT_ZOMBIE.
        const DEAD: u64 = 0x30;
        let leaves = match number(&self.state)? {
            state if state & DEAD != 0 => Leaves::ForGood,
            state if state & ASLEEP == 0 => Leaves::Runnable,
            _ => Leaves::Asleep,
        };
        Some((leaves, Cursor::new(raw.get(self.next.clone())?).u32()?))
    }
}

/// How a thread leaves its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// It could go on.
    Runnable,
    /// It waits for something.
    Asleep,
    /// It has ended.
    ForGood,
}

/// A wait that began, as the place of its sample, and that ends.
#[derive(Debug, Default)]
pub(super) struct Switches {
    pub(super) format: SwitchFormat,
    /// The samples of threads that left and have not come back, with the time.
    away: HashMap<u32, (usize, u64)>,
    /// Whether the idle task left a CPU: then the whole machine was recorded.
    whole_machine: bool,
}

/// The sample of a wait whose length is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) sample: usize,
    pub(super) length_ns: u64,
}

impl Switches {
    /// A thread leaves its CPU to another one; `sample` is the place of its own sample, none for the idle task. Gives the wait that
    /// ends, and the state of the thread that left where it could go on.
    pub(super) fn switch(
        &mut self,
        thread: u32,
        sample: Option<usize>,
        time_ns: u64,
        raw: &[u8],
    ) -> (Option<Ended>, Option<ThreadState>) {
        let Some((leaves, _)) = self.format.read(raw) else {
            return (None, None);
        };
        let ended = self.come_back(time_ns, raw);
        match sample {
            // Who has ended waits for nothing.
            Some(_) if leaves == Leaves::ForGood => {}
            Some(sample) => {
                self.away.insert(thread, (sample, time_ns));
            }
            None => self.whole_machine = true,
        }
        (ended, (leaves == Leaves::Runnable).then_some(ThreadState::RunQueue))
    }

    /// Another thread leaves its CPU, whose waits are not asked for. Gives the wait that ends.
    pub(super) fn come_back(&mut self, time_ns: u64, raw: &[u8]) -> Option<Ended> {
        let (_, next) = self.format.read(raw)?;
        let (sample, since_ns) = self.away.remove(&next)?;
        Some(Ended {
            sample,
            length_ns: time_ns.saturating_sub(since_ns),
        })
    }

    /// Whether lengths can be known.
    pub(super) fn of_whole_machine(&self) -> bool {
        self.whole_machine
    }

    /// The waits that had not ended at the end of the recording: so long at least.
    pub(super) fn unended(&self, end_ns: u64) -> impl Iterator<Item = Ended> + '_ {
        self.away.values().map(move |(sample, since_ns)| Ended {
            sample: *sample,
            length_ns: end_ns.saturating_sub(*since_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(format: &SwitchFormat, state: u64, next: u32) -> Vec<u8> {
        let mut raw = vec![0; 64];
        raw[format.state.clone()].copy_from_slice(&state.to_le_bytes());
        raw[format.next.clone()].copy_from_slice(&next.to_le_bytes());
        raw
    }

    #[test]
    fn a_wait_lasts_from_leaving_to_coming_back() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        assert_eq!(switches.switch(7, Some(0), 100, &says(&format, 1, 8)), (None, None));
        // Preempted: it could go on.
        let (ended, state) = switches.switch(8, Some(1), 150, &says(&format, 0x100, 7));
        assert_eq!(
            ended,
            Some(Ended {
                sample: 0,
                length_ns: 50
            })
        );
        assert_eq!(state, Some(ThreadState::RunQueue));
        assert!(!switches.of_whole_machine());
        let (ended, _) = switches.switch(0, None, 400, &says(&format, 0, 9));
        assert_eq!((ended, switches.of_whole_machine()), (None, true));
        let left: Vec<Ended> = switches.unended(1000).collect();
        assert_eq!(
            left,
            [Ended {
                sample: 1,
                length_ns: 850
            }]
        );
        assert_eq!(switches.switch(9, Some(2), 500, &[1, 2, 3]), (None, None), "it is cut");
    }

    #[test]
    fn a_thread_that_has_ended_waits_for_nothing() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        for (thread, state) in [(7, 0x10), (8, 0x20)] {
            let (_, state) = switches.switch(thread, Some(0), 100, &says(&format, state, 0));
            assert_eq!(state, None);
        }
        assert_eq!(switches.unended(20_000_000_000).count(), 0);
    }

    #[test]
    fn fields_stand_where_the_recording_says() {
        let text = "name: sched_switch\nID: 320\nformat:\n\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                    \tfield:long prev_state;\toffset:40;\tsize:8;\tsigned:1;\n\tfield:pid_t next_pid;\toffset:64;\tsize:4;\tsigned:1;\n\n\
                    print fmt: \"prev_comm=%s next_pid=%d\"";
        let found = SwitchFormat::of(text.as_bytes());
        assert_eq!((found.state, found.next), (40..48, 64..68));
        assert_eq!(SwitchFormat::of(b"\xff nothing"), SwitchFormat::default());
    }
}
