//! What is planted in each program, and what must be found.

use super::round::Found;
use scaleprof_vocabulary::FindingKind;

/// How far the share of a finding may be from what the threads measured of themselves. A thread takes the time until it has a
/// CPU again for waiting, and for spinning what interrupts took; the ledger has them in run queues and elsewhere.
const CLOSE: f64 = 0.15;

/// One program.
pub struct Disease {
    /// Its source is `PROGRAM.c`.
    pub program: &'static str,
    /// What must be found; none for a healthy one.
    pub expected: Option<Expected>,
    /// How many times as long as on one thread alone a transaction takes at least, in every second of several threads, where the disease
    /// broke out, by the program's own count: two virtual CPUs that the host has on one core share a cache, and no line moves between
    /// them.
    pub dearer: Option<f64>,
    /// Whether its threads mostly wait for one another, by spinning too, or sleep: CPUs that are
    /// slower together than alone are then no reason not to judge. Found as at full speed: `convoy`
    /// at 0.79 and 0.84 of their speed, three times of three; `allocator` at 0.66 to 0.79, three of
    /// three, with 81 to 84 % of the time lost to its one arena; `user_spin` at 0.66 to 0.94, 13 of
    /// 13, with 74 to 82 % of the time lost, at most 9 points from its own clock. Of the two others
    /// it is supposed.
    pub mostly_waits: bool,
    /// Whether it mostly waits for the disk. What the kernel's threads and the host of a virtual machine do for its writes is others' CPU
    /// time by the account, and its own doing: kblockd had 4 to 5 % of two virtual CPUs, and the host took 16 to 23 % of them while it
    /// wrote. In seven measurements with 10 to 40 % of others it was found as with none, within 3 % of its own clock.
    pub writes: bool,
}

/// The one finding that must be there.
pub struct Expected {
    pub kind: FindingKind,
    /// What its title and evidence must name.
    pub names: &'static [&'static str],
    /// The function that its path must hold.
    pub function: &'static str,
    /// The least part of the loss that it must make up.
    pub least: f64,
    /// Whether the program's threads tell what they lost by their own clock.
    pub measures_itself: bool,
}

/// All of them.
pub const ALL: [Disease; 7] = [
    Disease {
        program: "convoy",
        expected: Some(Expected {
            kind: FindingKind::LockConvoy,
            names: &["planted_mutex", "change_the_table"],
            function: "change_the_table",
            least: 0.5,
            measures_itself: true,
        }),
        dearer: None,
        mostly_waits: true,
        writes: false,
    },
    Disease {
        program: "false_sharing",
        expected: Some(Expected {
            kind: FindingKind::CacheLineSharing,
            names: &["look_it_up"],
            function: "look_it_up",
            least: 0.2,
            measures_itself: false,
        }),
        dearer: Some(1.15),
        mostly_waits: false,
        writes: false,
    },
    Disease {
        program: "fsync_under_lock",
        expected: Some(Expected {
            kind: FindingKind::LogStall,
            names: &["planted_log_mutex", "write_the_log"],
            function: "write_the_log",
            least: 0.5,
            measures_itself: true,
        }),
        dearer: None,
        mostly_waits: true,
        writes: true,
    },
    Disease {
        program: "allocator",
        expected: Some(Expected {
            kind: FindingKind::AllocatorContention,
            names: &["malloc"],
            function: "build_a_result",
            least: 0.3,
            measures_itself: false,
        }),
        dearer: None,
        mostly_waits: true,
        writes: false,
    },
    Disease {
        program: "user_spin",
        expected: Some(Expected {
            kind: FindingKind::SpinWaiting,
            names: &["take_the_spin_lock"],
            function: "take_the_spin_lock",
            least: 0.2,
            measures_itself: true,
        }),
        dearer: None,
        mostly_waits: true,
        writes: false,
    },
    Disease {
        program: "healthy",
        expected: None,
        dearer: None,
        mostly_waits: false,
        writes: false,
    },
    Disease {
        program: "healthy_with_sleeps",
        expected: None,
        dearer: None,
        mostly_waits: true,
        writes: false,
    },
];

impl Disease {
    /// Whether what was found is what is planted, and nothing else.
    pub fn judge(&self, found: &Found) -> Result<(), String> {
        let kinds: Vec<FindingKind> = found.findings.iter().map(|finding| finding.kind).collect();
        let Some(expected) = &self.expected else {
            return match kinds.is_empty() {
                true => Ok(()),
                false => Err(format!("it is healthy and has {kinds:?}")),
            };
        };
        if kinds != [expected.kind] {
            return Err(format!("{} is planted and {kinds:?} found", expected.kind.name()));
        }
        let finding = &found.findings[0];
        let words = format!("{} {}", finding.title, finding.evidence.join(" "));
        if let Some(name) = expected.names.iter().find(|name| !words.contains(**name)) {
            return Err(format!("nothing names {name}"));
        }
        if !finding.path.iter().any(|function| function == expected.function) {
            return Err(format!("its path does not go through {}", expected.function));
        }
        if finding.lost_share.value < expected.least {
            return Err(format!("its share is only {:.2}", finding.lost_share.value));
        }
        if found.true_share.is_some() != expected.measures_itself {
            return Err(format!("by the program's own clock it is {:?}", found.true_share));
        }
        match found
            .true_share
            .filter(|truth| (finding.lost_share.value - truth).abs() > CLOSE)
        {
            Some(truth) => Err(format!(
                "its share is {:.3}, and {truth:.3} by the program's own clock",
                finding.lost_share.value
            )),
            None => Ok(()),
        }
    }
}
