//! Which of the values of a profile counts.

use crate::import::ImportError;
use scaleprof_vocabulary::ThreadState;

/// A value that every sample has.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueType {
    /// Its place among the values.
    pub place: usize,
    /// Such as `cpu`.
    pub name: String,
    /// Nanoseconds that one of it is; none where it is no time.
    pub nanoseconds: Option<f64>,
    /// Whether it is a number of samples.
    pub counts_samples: bool,
}

impl ValueType {
    pub(super) fn new(place: usize, name: &str, unit: &str) -> ValueType {
        ValueType {
            place,
            name: name.to_owned(),
            counts_samples: unit == "count" && ["samples", "sample"].contains(&name),
            nanoseconds: match unit {
                "nanoseconds" | "nanosecond" | "ns" => Some(1.0),
                "microseconds" | "microsecond" | "us" => Some(1e3),
                "milliseconds" | "millisecond" | "ms" => Some(1e6),
                "seconds" | "second" | "s" => Some(1e9),
                _ => None,
            },
        }
    }

    /// What to say of values of memory or of goroutines, which are no time and no number of samples taken in time.
    pub(super) fn other_than_time(&self) -> Option<String> {
        let what = match self.name.as_str() {
            "alloc_objects" | "alloc_space" | "inuse_objects" | "inuse_space" | "objects" | "space" => "of the heap",
            "goroutine" | "goroutines" => "of goroutines, running or not",
            "threadcreate" => "of the creation of threads",
            _ => return None,
        };
        Some(format!(
            "a profile {what} (values: {}), which measures no time. Use a profile of CPU time, mutexes or blocking, \
             or import its shares with --event {}",
            self.name, self.name
        ))
    }

    /// What threads do in this time, as far as its name tells: CPU time unless it is called otherwise.
    pub(super) fn state(&self) -> ThreadState {
        let name = self.name.to_lowercase();
        // Whole words: `cpu-clock` is no lock.
        let words: Vec<&str> = name.split(|c: char| !c.is_alphanumeric()).collect();
        let holds = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
        match () {
            // Go's profiles of mutexes and of blocking: the value `delay` beside `contentions`.
            () if holds(&["delay", "contention", "contentions", "lock", "locks", "mutex"]) => ThreadState::Lock,
            // Of time by the clock on the wall nobody knows which part was spent on a CPU.
            () if holds(&["wall", "offcpu", "off", "wait", "waits"]) => ThreadState::Other,
            () => ThreadState::Cpu,
        }
    }
}

/// Values that are a time but that of so many transactions or seconds, as this program's own exports have them.
fn is_shared(name: &str) -> bool {
    name.starts_with("time_per_")
}

/// The value that counts: the one that is asked for; else the default one if it is a time; else a time; else the default one or the
/// last, as pprof has it.
pub(super) fn chosen<'a>(
    types: &'a [ValueType],
    default: Option<String>,
    asked: Option<&str>,
) -> Result<&'a ValueType, ImportError> {
    if let Some(asked) = asked {
        let names = || {
            types
                .iter()
                .map(|known| known.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let found = types.iter().find(|known| known.name == asked);
        return found.ok_or_else(|| ImportError::NoSuchEvent {
            asked: asked.to_owned(),
            present: names(),
        });
    }
    let default = types.iter().find(|known| Some(&known.name) == default.as_ref());
    let is_plain_time = |known: &&ValueType| known.nanoseconds.is_some() && !is_shared(&known.name);
    default
        .filter(is_plain_time)
        .or_else(|| types.iter().find(is_plain_time))
        .or(default)
        .or(types.last())
        .ok_or_else(|| ImportError::Broken {
            what: "it does not say what its values are".to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_a_wait_by_its_name_is_no_cpu_time() {
        for (name, state) in [
            ("cpu", ThreadState::Cpu),
            ("time", ThreadState::Cpu),
            ("samples", ThreadState::Cpu),
            ("cpu-clock", ThreadState::Cpu),
            ("task_clock", ThreadState::Cpu),
            ("wall_clock", ThreadState::Other),
            ("off-cpu", ThreadState::Other),
            ("delay", ThreadState::Lock),
            ("contentions", ThreadState::Lock),
            ("wall", ThreadState::Other),
            ("offcpu-time", ThreadState::Other),
        ] {
            assert_eq!(ValueType::new(0, name, "nanoseconds").state(), state, "{name}");
        }
    }

    #[test]
    fn a_plain_time_is_taken_unless_another_value_is_asked_for() {
        let types = |list: &[(&str, &str)]| -> Vec<ValueType> {
            let types = list.iter().enumerate();
            types
                .map(|(place, (name, unit))| ValueType::new(place, name, unit))
                .collect()
        };
        let ours = types(&[
            ("samples", "count"),
            ("time", "nanoseconds"),
            ("time_per_1000_transactions", "nanoseconds"),
        ]);
        let shown = || Some("time_per_1000_transactions".to_owned());
        assert_eq!(chosen(&ours, shown(), None).unwrap().place, 1);
        assert_eq!(chosen(&ours, shown(), Some("samples")).unwrap().place, 0);
        assert!(
            chosen(&ours, shown(), Some("x"))
                .unwrap_err()
                .to_string()
                .contains("samples, time")
        );
        let heap = types(&[("alloc_objects", "count"), ("inuse_space", "bytes")]);
        assert_eq!(chosen(&heap, None, None).unwrap().place, 1);
        assert_eq!(chosen(&heap, Some("alloc_objects".to_owned()), None).unwrap().place, 0);
        let contention = types(&[("contentions", "count"), ("delay", "nanoseconds")]);
        assert_eq!(chosen(&contention, None, None).unwrap().place, 1);
        assert!(chosen(&[], None, None).is_err());
    }
}
