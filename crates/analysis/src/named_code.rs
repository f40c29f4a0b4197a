//! How much of the code that a program spends its CPU time in has names, file by file.

use scaleprof_bundle::{FrameRow, SampleRow, StackRow};
use scaleprof_vocabulary::SymbolSource;
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};

/// CPU time that was sampled, and in how much of it the function had a name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedCode {
    /// Samples on a CPU.
    pub samples: u64,
    /// CPU seconds that they stand for.
    pub seconds: f64,
    /// By file; the one with the most time first.
    pub files: Vec<NamedFile>,
}

/// The CPU time in one executable, library or the kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NamedFile {
    /// Its file name without a folder; `[kernel]` for the kernel.
    pub module: String,
    /// Its build-id in hexadecimal.
    pub build_id: Option<String>,
    /// CPU seconds in functions with a name, by where the names come from.
    pub named: BTreeMap<SymbolSource, f64>,
    /// CPU seconds in functions that nothing but an address names.
    pub unnamed: f64,
}

impl NamedCode {
    /// Of the samples on a CPU, by the function that was running. Samples whose stack the tables do not hold count as unnamed in a
    /// file of no name.
    pub fn of<Row: Borrow<SampleRow>>(
        samples: impl IntoIterator<Item = Row>,
        stacks: &[StackRow],
        frames: &[FrameRow],
    ) -> NamedCode {
        let innermost: HashMap<i64, i64> = stacks.iter().map(|row| (row.stack, row.frame)).collect();
        let frames: HashMap<i64, &FrameRow> = frames.iter().map(|row| (row.frame, row)).collect();
        let mut files: HashMap<(&str, Option<&str>), NamedFile> = HashMap::new();
        let mut found = NamedCode::default();
        for row in samples {
            let row = row.borrow();
            if !row.state.is_on_cpu() || !row.weight_ns.is_finite() {
                continue;
            }
            let seconds = row.weight_ns.max(0.0) / 1e9;
            found.samples += 1;
            found.seconds += seconds;
            let frame = innermost.get(&row.stack).and_then(|frame| frames.get(frame)).copied();
            let key = frame.map_or(("", None), |frame| (&*frame.module, frame.build_id.as_deref()));
            let file = files.entry(key).or_insert_with(|| NamedFile {
                module: key.0.to_owned(),
                build_id: key.1.map(str::to_owned),
                ..NamedFile::default()
            });
            match frame.filter(|frame| frame.function.is_some() && frame.symbol_source != SymbolSource::FrameBounds) {
                Some(frame) => *file.named.entry(frame.symbol_source).or_default() += seconds,
                None => file.unnamed += seconds,
            }
        }
        found.files = files.into_values().collect();
        let by_time = |a: &NamedFile, b: &NamedFile| b.seconds().total_cmp(&a.seconds()).then(a.module.cmp(&b.module));
        found.files.sort_by(by_time);
        found
    }

    /// The part of the CPU time in functions with a name, from 0 to 1; none where nothing was sampled.
    pub fn named_share(&self) -> Option<f64> {
        let unnamed: f64 = self.files.iter().map(|file| file.unnamed).sum();
        (self.seconds > 0.0).then(|| 1.0 - unnamed / self.seconds)
    }
}

impl NamedFile {
    /// All CPU seconds in it.
    pub fn seconds(&self) -> f64 {
        self.unnamed + self.named.values().sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made_up_sample::sample;
    use scaleprof_vocabulary::ThreadState;

    fn frame(number: i64, module: &str, function: Option<&str>, symbol_source: SymbolSource) -> FrameRow {
        FrameRow {
            frame: number,
            module: module.into(),
            build_id: None,
            address: number,
            function: function.map(Into::into),
            inlined: false,
            file: None,
            line: None,
            symbol_source,
        }
    }

    /// Stack n ends in frame n.
    fn named(samples: &[SampleRow]) -> NamedCode {
        let frames = [
            frame(1, "mysqld", Some("work"), SymbolSource::Symtab),
            frame(2, "libc.so.6", Some("libc.so.6!fun_2"), SymbolSource::FrameBounds),
            frame(3, "libc.so.6", Some("memcpy"), SymbolSource::Dynsym),
            frame(4, "mysqld", None, SymbolSource::Nothing),
        ];
        let stacks: Vec<StackRow> = (1..5)
            .map(|stack| StackRow {
                stack,
                parent: None,
                frame: stack,
                depth: 0,
            })
            .collect();
        NamedCode::of(samples, &stacks, &frames)
    }

    #[test]
    fn time_in_a_function_without_a_name_is_told_of_its_file() {
        let samples = [
            sample(0, ThreadState::Cpu, 1, 6000.0),
            sample(0, ThreadState::Spin, 1, 1000.0),
            sample(0, ThreadState::Cpu, 2, 2000.0),
            sample(0, ThreadState::Cpu, 3, 1000.0),
            sample(0, ThreadState::Lock, 2, 100000.0),
        ];
        let found = named(&samples);
        assert_eq!((found.samples, found.seconds), (4, 10.0));
        assert_eq!(found.named_share(), Some(0.8));
        let modules: Vec<&str> = found.files.iter().map(|file| file.module.as_str()).collect();
        assert_eq!(modules, ["mysqld", "libc.so.6"]);
        assert_eq!(found.files[1].unnamed, 2.0);
        assert_eq!(found.files[1].named, BTreeMap::from([(SymbolSource::Dynsym, 1.0)]));
    }

    #[test]
    fn a_program_that_used_no_cpu_time_has_no_share() {
        assert_eq!(named(&[sample(0, ThreadState::Lock, 1, 3000.0)]).named_share(), None);
    }

    #[test]
    fn a_stack_that_is_not_kept_is_unnamed() {
        let found = named(&[
            sample(0, ThreadState::Cpu, 77, 1000.0),
            sample(0, ThreadState::Cpu, 4, 1000.0),
        ]);
        assert_eq!(found.named_share(), Some(0.0));
        assert_eq!(found.files.len(), 2);
    }
}
