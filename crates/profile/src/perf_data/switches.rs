//! Waits from `sched:sched_switch`: a thread leaves its CPU in one record and gets one again in another, and the time between is
//! its wait. Where wake-ups were recorded too, it waits for what it waited for until it is woken, and for a CPU from then on.
//!
//! That holds for recordings of the whole machine. Of a process alone only the leaving is recorded, since the record of coming back
//! belongs to whoever had the CPU before. Which of the two it is, no field says: of a whole machine the idle task leaves CPUs too, and where
//! they are never idle, whoever leaves one is the thread that got it before.

use super::cursor::Cursor;
use super::tracepoint_format::{TracepointFormats, number};
use scaleprof_vocabulary::ThreadState;
use std::collections::HashMap;
use std::ops::Range;

/// How the tracepoint is called.
pub(super) const NAME: &str = "sched:sched_switch";
/// And those that tell that a thread is woken: where it is decided, and where it is done.
pub(super) const WAKE_UPS: [&str; 2] = ["sched:sched_waking", "sched:sched_wakeup"];
/// Where the fields of the tracepoints stand in what they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SwitchFormat {
    state: Range<usize>,
    next: Range<usize>,
    /// Who is woken: in both tracepoints at the same place since they exist.
    woken: Range<usize>,
}

impl Default for SwitchFormat {
    /// As 64-bit kernels have had it since the tracepoint exists (include/trace/events/sched.h).
    fn default() -> Self {
        SwitchFormat {
            state: 32..40,
            next: 56..60,
            woken: 24..28,
        }
    }
}

impl SwitchFormat {
    /// By the formats that a recording keeps.
    pub(super) fn of(formats: &TracepointFormats) -> SwitchFormat {
        let known = SwitchFormat::default();
        SwitchFormat {
            state: formats.field("sched_switch", "prev_state").unwrap_or(known.state),
            next: formats.field("sched_switch", "next_pid").unwrap_or(known.next),
            woken: ["sched_waking", "sched_wakeup"]
                .into_iter()
                .find_map(|event| formats.field(event, "pid"))
                .unwrap_or(known.woken),
        }
    }

    /// How the thread that leaves does so, and the thread that comes; none where the record is cut.
    fn read(&self, raw: &[u8]) -> Option<(Leaves, u32)> {
        /// The bits of the state that say why a thread sleeps; the next one says that it was preempted (TASK_REPORT).
        const ASLEEP: u64 = 0xff;
        /// EXIT_DEAD and EXIT_ZOMBIE.
        const DEAD: u64 = 0x30;
        /// TASK_STOPPED and TASK_TRACED.
        const STOPPED: u64 = 0xc;
        let leaves = match number(raw, &self.state)? {
            state if state & DEAD != 0 => Leaves::ForGood,
            state if state & STOPPED != 0 => Leaves::Stopped,
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
    /// Somebody keeps it from running: SIGSTOP, a debugger.
    Stopped,
    /// It has ended.
    ForGood,
}

/// Waits that began, each as the place of its sample, and that end.
#[derive(Debug, Default)]
pub(super) struct Switches {
    pub(super) format: SwitchFormat,
    /// Threads that left and have not come back.
    away: HashMap<u32, Away>,
    /// Whether the idle task left a CPU: then the whole machine was recorded.
    idle_left: bool,
    /// Who got each CPU last.
    running: HashMap<u32, u32>,
    /// How often a CPU was left by the thread that had got it, and by another one.
    seen_through: usize,
    gaps: usize,
    /// Waits of which only became known later that they were over.
    pub(super) ends_unseen: usize,
}

/// A thread that left its CPU.
#[derive(Debug, Clone, Copy)]
struct Away {
    sample: usize,
    since_ns: u64,
    leaves: Leaves,
    woken_ns: Option<u64>,
}

/// The sample of a wait whose length is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) sample: usize,
    pub(super) length_ns: u64,
    /// From when on and how long it waited for a CPU behind that, where a wake-up tells.
    pub(super) queued: Option<(u64, u64)>,
}

impl Away {
    fn until(self, end_ns: u64) -> Ended {
        let woken_ns = self.woken_ns.filter(|woken_ns| *woken_ns <= end_ns);
        Ended {
            sample: self.sample,
            length_ns: woken_ns.unwrap_or(end_ns).saturating_sub(self.since_ns),
            queued: woken_ns.map(|woken_ns| (woken_ns, end_ns - woken_ns)),
        }
    }
}

impl Switches {
    /// A thread leaves its CPU; `sample` is the place of its own sample, none for the idle task. Gives its state where that does not
    /// depend on the stack: where it could go on, or somebody stopped it.
    pub(super) fn leave(
        &mut self,
        thread: u32,
        sample: Option<usize>,
        time_ns: u64,
        raw: &[u8],
    ) -> Option<ThreadState> {
        let (leaves, _) = self.format.read(raw)?;
        match sample {
            // Who has ended waits for nothing.
            Some(_) if leaves == Leaves::ForGood => {}
            Some(sample) => {
                let away = Away {
                    sample,
                    since_ns: time_ns,
                    leaves,
                    woken_ns: None,
                };
                self.away.insert(thread, away);
            }
            None => self.idle_left = true,
        }
        match leaves {
            Leaves::Runnable => Some(ThreadState::RunQueue),
            Leaves::Stopped => Some(ThreadState::Other),
            Leaves::Asleep | Leaves::ForGood => None,
        }
    }

    /// Another thread gets the CPU that one leaves. Gives the wait that ends.
    pub(super) fn come_back(&mut self, (cpu, leaving): (u32, u32), time_ns: u64, raw: &[u8]) -> Option<Ended> {
        let (_, next) = self.format.read(raw)?;
        match self.running.insert(cpu, next) {
            Some(known) if known == leaving => self.seen_through += 1,
            Some(_) => self.gaps += 1,
            None => {}
        }
        Some(self.away.remove(&next)?.until(time_ns))
    }

    /// A thread runs, whatever else is known of it. Where the kernel did not tell that it got a CPU (for idle ones it often does not), its wait
    /// is over by now.
    pub(super) fn runs(&mut self, thread: u32, time_ns: u64) -> Option<Ended> {
        // Of most recordings nobody is away, and this is asked for every sample.
        if self.away.is_empty() {
            return None;
        }
        let away = self.away.remove(&thread)?;
        self.ends_unseen += 1;
        Some(away.until(time_ns))
    }

    /// A thread is woken. The first time counts: both tracepoints tell of one waking.
    pub(super) fn wake(&mut self, time_ns: u64, raw: &[u8]) {
        let woken = raw.get(self.format.woken.clone());
        let woken = woken.and_then(|field| Cursor::new(field).u32());
        if let Some(away) = woken.and_then(|woken| self.away.get_mut(&woken))
            && away.leaves != Leaves::Runnable
        {
            away.woken_ns.get_or_insert(time_ns.max(away.since_ns));
        }
    }

    /// Whether lengths can be known.
    pub(super) fn of_whole_machine(&self) -> bool {
        /// Fewer say nothing; of a process alone there is a gap wherever another program or nobody gets the CPU.
        const FEWEST: usize = 20;
        /// Records that were lost make gaps too.
        const SEEN_FOR_A_GAP: usize = 20;
        self.idle_left || (self.seen_through >= FEWEST && self.gaps * SEEN_FOR_A_GAP <= self.seen_through)
    }

    /// The waits that had not ended at the end of the recording: so long at least. By their samples.
    pub(super) fn unended(&self, end_ns: u64) -> Vec<Ended> {
        let mut unended: Vec<Ended> = self.away.values().map(|away| away.until(end_ns)).collect();
        unended.sort_by_key(|ended| ended.sample);
        unended
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

    fn wakes(format: &SwitchFormat, woken: u32) -> Vec<u8> {
        let mut raw = vec![0; 64];
        raw[format.woken.clone()].copy_from_slice(&woken.to_le_bytes());
        raw
    }

    fn ended(sample: usize, length_ns: u64, queued: Option<(u64, u64)>) -> Ended {
        Ended {
            sample,
            length_ns,
            queued,
        }
    }

    #[test]
    fn a_wait_lasts_from_leaving_to_coming_back() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        assert_eq!(switches.leave(7, Some(0), 100, &says(&format, 1, 8)), None);
        // Preempted: it could go on.
        let preempted = says(&format, 0x100, 7);
        assert_eq!(switches.come_back((0, 7), 150, &preempted), Some(ended(0, 50, None)));
        assert_eq!(switches.leave(8, Some(1), 150, &preempted), Some(ThreadState::RunQueue));
        assert!(!switches.of_whole_machine());
        let idle = says(&format, 0, 9);
        assert_eq!(switches.come_back((0, 0), 400, &idle), None);
        switches.leave(0, None, 400, &idle);
        assert!(switches.of_whole_machine());
        assert_eq!(switches.unended(1000), [ended(1, 850, None)]);
        assert_eq!(switches.leave(9, Some(2), 500, &[1, 2, 3]), None, "it is cut");
        assert_eq!(switches.come_back((0, 9), 500, &[1, 2, 3]), None, "it is cut");
    }

    #[test]
    fn of_a_machine_that_is_never_idle_whoever_leaves_a_cpu_had_got_it() {
        let told = |leaving: &dyn Fn(u64) -> u32, next: &dyn Fn(u64) -> u32| {
            let mut switches = Switches::default();
            let format = switches.format.clone();
            for time_ns in 0..60 {
                // Two CPUs in turns.
                let cpu = (time_ns % 2) as u32;
                let says = says(&format, 1, next(time_ns / 2) + 100 * cpu);
                switches.come_back((cpu, leaving(time_ns / 2) + 100 * cpu), time_ns, &says);
            }
            switches.of_whole_machine()
        };
        let turn = |turn: u64| (turn % 3) as u32 + 7;
        assert!(told(&turn, &|at| turn(at + 1)));
        // One record of twenty and more was lost.
        assert!(told(&|at| turn(at + u64::from(at == 9)), &|at| turn(at + 1)));
        // Of a process alone; its CPUs went to others.
        assert!(!told(&turn, &|_| 55));
        assert!(!told(&turn, &|at| if at % 5 == 0 { 55 } else { turn(at + 1) }));
    }

    #[test]
    fn a_thread_that_is_woken_waits_for_a_cpu_from_then_on() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        switches.leave(7, Some(0), 100, &says(&format, 1, 0));
        switches.leave(8, Some(1), 110, &says(&format, 0, 0));
        for (time_ns, woken) in [(150, 7), (155, 7), (160, 8), (170, 99)] {
            switches.wake(time_ns, &wakes(&format, woken));
        }
        assert_eq!(
            switches.unended(180),
            [ended(0, 50, Some((150, 30))), ended(1, 70, None)]
        );
        let found = switches.come_back((0, 9), 200, &says(&format, 0, 7));
        assert_eq!(found, Some(ended(0, 50, Some((150, 50)))));
        // One that could go on is not woken, whatever is said.
        assert_eq!(
            switches.come_back((0, 7), 210, &says(&format, 0, 8)),
            Some(ended(1, 100, None))
        );
        switches.wake(220, &[1, 2, 3]);
    }

    #[test]
    fn a_wait_whose_end_was_not_recorded_is_over_when_the_thread_is_seen_to_run() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        switches.leave(7, Some(0), 100, &says(&format, 1, 0));
        assert_eq!(switches.runs(8, 150), None, "it was not away");
        assert_eq!(switches.runs(7, 150), Some(ended(0, 50, None)));
        assert_eq!((switches.runs(7, 160), switches.ends_unseen), (None, 1));
        assert_eq!(
            switches.come_back((0, 9), 170, &says(&format, 0, 7)),
            None,
            "it is back already"
        );
    }

    #[test]
    fn a_thread_that_was_stopped_waits_for_nothing_of_its_own() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        for (thread, state) in [(7, 4), (8, 8)] {
            let left = switches.leave(thread, Some(0), 100, &says(&format, state, 0));
            assert_eq!(left, Some(ThreadState::Other));
        }
        switches.wake(150, &wakes(&format, 7));
        assert_eq!(switches.runs(7, 160), Some(ended(0, 50, Some((150, 10)))));
    }

    #[test]
    fn a_thread_that_has_ended_waits_for_nothing() {
        let mut switches = Switches::default();
        let format = switches.format.clone();
        for (thread, state) in [(7, 0x10), (8, 0x20)] {
            assert_eq!(switches.leave(thread, Some(0), 100, &says(&format, state, 0)), None);
        }
        assert_eq!(switches.unended(20_000_000_000), []);
    }

    #[test]
    fn fields_stand_where_the_recording_says() {
        let text = "name: sched_switch\nID: 320\nformat:\n\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
                    \tfield:long prev_state;\toffset:40;\tsize:8;\tsigned:1;\n\tfield:pid_t next_pid;\toffset:64;\tsize:4;\tsigned:1;\n\n\
                    print fmt: \"prev_comm=%s next_pid=%d\"\nname: sched_wakeup\nID: 318\nformat:\n\
                    \tfield:pid_t pid;\toffset:28;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"";
        let found = SwitchFormat::of(&TracepointFormats::of(text.as_bytes()));
        assert_eq!((found.state, found.next, found.woken), (40..48, 64..68, 28..32));
        let nothing = TracepointFormats::of(b"\xff nothing");
        assert_eq!(SwitchFormat::of(&nothing), SwitchFormat::default());
    }
}
