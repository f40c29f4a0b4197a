//! Recordings of small programs, made by the perf of this machine, and perf's own account of them.

use scaleprof_profile::import::{ReadOptions, Recording, RecordingFile, read_recording};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A program that was compiled for a test, in a folder of its own.
pub struct Program {
    folder: tempfile::TempDir,
    path: PathBuf,
}

/// Says why a test cannot run here.
fn skipped<T>(why: &str) -> Option<T> {
    testing::skip!("{why}");
    None
}

/// Compiles one of the programs; none where there is no compiler.
pub fn compiled(source: &str, flags: &[&str]) -> Option<Program> {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/integration/recordings/programs")
        .join(source);
    let path = folder.path().join(source.file_stem().expect("a name"));
    let compiler = match source.extension() == Some(OsStr::new("cc")) {
        true => "c++",
        false => "cc",
    };
    let built = Command::new(compiler)
        .args(flags)
        .arg("-o")
        .arg(&path)
        .arg(&source)
        .output();
    match built {
        Ok(built) => assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr)),
        Err(error) => return skipped(&format!("{compiler}: {error}")),
    }
    Some(Program { folder, path })
}

impl Program {
    /// The path of a copy that has another name.
    pub fn copied(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::copy(&self.path, &path).expect("a copy");
        path.to_string_lossy().into_owned()
    }
}

/// A recording of such a program.
pub struct Recorded {
    path: PathBuf,
}

impl Recorded {
    /// Records a run of the program; none where perf is missing or must not.
    pub fn of(program: &Program, arguments: &[&str], options: &[&str]) -> Option<Recorded> {
        let path = program.folder.path().join(format!("recording{}.data", options.len()));
        let mut perf = Command::new("perf");
        perf.arg("record").args(options);
        let into_pipe = options.contains(&"-");
        if into_pipe {
            perf.stdout(std::fs::File::create(&path).expect("a file"));
        } else {
            perf.arg("-o").arg(&path);
        }
        perf.arg("--").arg(&program.path).args(arguments);
        // A pipe shows nothing of what perf says on its standard output.
        let child = perf.stderr(Stdio::piped()).spawn();
        let done = match child.and_then(|child| child.wait_with_output()) {
            Ok(done) => done,
            Err(error) => return skipped(&format!("perf: {error}")),
        };
        if !done.status.success() {
            return skipped(&format!("perf record: {}", String::from_utf8_lossy(&done.stderr)));
        }
        Some(Recorded { path })
    }

    /// Records tracepoints of the whole machine during a run of the program, and what that printed. Where tracepoints are told of is
    /// mounted for perf alone.
    pub fn of_whole_machine(program: &Program, events: &[&str]) -> Option<(Recorded, String)> {
        let path = program.folder.path().join("whole_machine.data");
        let mut perf = Command::new("unshare");
        perf.args(["--mount", "sh", "-c"])
            .arg("[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing && exec perf record \"$@\"")
            .args(["perf", "-q", "-a", "-g"]);
        for event in events {
            perf.args(["-e", event]);
        }
        perf.arg("-o").arg(&path).arg("--").arg(&program.path);
        match perf.output() {
            Err(error) => skipped(&format!("unshare: {error}")),
            Ok(done) if !done.status.success() => {
                skipped(&format!("perf record -a: {}", String::from_utf8_lossy(&done.stderr)))
            }
            Ok(done) => Some((Recorded { path }, String::from_utf8_lossy(&done.stdout).into_owned())),
        }
    }

    pub fn file(&self) -> RecordingFile {
        RecordingFile::open(&self.path).expect("readable")
    }
}

/// Per cent of all weight.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Weight {
    /// With what the function calls; none where perf shows no such column, as for a pipe.
    pub children: Option<f64>,
    /// By itself.
    pub own: f64,
}

/// One recording as we read it, and perf's account.
pub struct Compared {
    pub recording: Recording,
    pub ours: BTreeMap<String, Weight>,
    perf: BTreeMap<String, Weight>,
}

impl Compared {
    pub fn of(recorded: &Recorded, options: &ReadOptions) -> Compared {
        let recording = read_recording(recorded.file(), options).expect("read");
        let event = recording.event.clone().unwrap_or_default();
        Compared {
            ours: weights(&recording),
            perf: report(&recorded.path, &event, options.process.as_deref()),
            recording,
        }
    }

    /// The same for what functions weigh by themselves alone.
    #[must_use]
    pub fn without_children(mut self) -> Compared {
        self.perf.values_mut().for_each(|weight| weight.children = None);
        self
    }

    /// Every function weighs the same, to so many hundredths of a per cent as two roundings make.
    pub fn assert_agree(&self, tolerance: f64) {
        assert!(!self.perf.is_empty(), "perf found nothing");
        let names: BTreeSet<&String> = self
            .ours
            .keys()
            .chain(self.perf.keys())
            .filter(|name| is_comparable(name))
            .collect();
        let mut heaviest: f64 = 0.0;
        for name in names {
            let (ours, perf) = (self.of_name(&self.ours, name), self.of_name(&self.perf, name));
            heaviest = heaviest.max(perf.own);
            let of_children = ours
                .children
                .zip(perf.children)
                .map_or(0.0, |(ours, perf)| (ours - perf).abs());
            let off = of_children.max((ours.own - perf.own).abs());
            let mut weights: BTreeMap<u64, usize> = BTreeMap::new();
            for sample in &self.recording.profile.samples {
                *weights.entry(sample.weight_ns as u64).or_default() += 1;
            }
            assert!(
                off < tolerance,
                "{name}: ours {ours:?}, perf's {perf:?}; our samples by weight {weights:?}, threads {:?}; all of perf's {:?}",
                self.recording.threads,
                self.perf
            );
        }
        assert!(heaviest > 10.0, "nothing was compared");
    }

    /// Every function of the program, of libraries and of the kernel that weighs so many per cent weighs what perf says. The C library has
    /// several names for one address, of which perf may take another than we do: then a function of ours that perf does not name weighs
    /// the same.
    /// Of a few samples in thousands perf does not find all callers, which weigh less there.
    pub fn assert_all_agree(&self, least: f64, tolerance: f64, tolerance_of_callers: f64) {
        let close = |ours: &Weight, perf: &Weight| {
            let of_children = ours.children.zip(perf.children).map(|(ours, perf)| (ours - perf).abs());
            of_children.unwrap_or(0.0) < tolerance_of_callers && (ours.own - perf.own).abs() < tolerance
        };
        let has_name = |name: &String| !name.starts_with("0x");
        let is_heavy = |weight: &Weight| weight.own.max(weight.children.unwrap_or(0.0)) >= least;
        for (name, perf) in self
            .perf
            .iter()
            .filter(|(name, weight)| has_name(name) && is_heavy(weight))
        {
            let same = match self.ours.get(name) {
                Some(ours) => close(ours, perf),
                None => {
                    let mut others = self.ours.iter().filter(|(name, _)| !self.perf.contains_key(*name));
                    others.any(|(_, ours)| close(ours, perf))
                }
            };
            let heavy = self.ours.iter().filter(|(_, weight)| is_heavy(weight));
            assert!(
                same,
                "{name}: perf's {perf:?}; ours {:?}",
                heavy.collect::<Vec<(&String, &Weight)>>()
            );
        }
    }

    /// These functions are among what was compared.
    pub fn assert_seen(&self, functions: &[&str]) {
        for function in functions {
            assert!(
                self.perf.contains_key(*function),
                "perf does not name {function}: {:?}",
                self.perf
            );
        }
    }

    fn of_name(&self, all: &BTreeMap<String, Weight>, name: &str) -> Weight {
        all.get(name).copied().unwrap_or_default()
    }
}

/// The C library has several names for one address, of which perf takes another than we do; and what has no name is called
/// differently. What the tests compile has one name.
fn is_comparable(name: &str) -> bool {
    const OF_TESTS: [&str; 9] = [
        "inner",
        "other",
        "first_caller",
        "second_caller",
        "recursive",
        "only_in_other_program",
        "main",
        "storage::twice",
        "storage::Page::read",
    ];
    OF_TESTS.contains(&name)
}

/// A name without what the compiler put behind it when it changed a function's parameters; perf leaves it out.
fn plain(function: &str) -> String {
    let name = function.split(".isra").next().unwrap_or(function);
    name.split(".constprop").next().unwrap_or(name).to_owned()
}

fn weights(recording: &Recording) -> BTreeMap<String, Weight> {
    let profile = &recording.profile;
    let total: f64 = profile.samples.iter().map(|sample| sample.weight_ns).sum();
    let mut weights: BTreeMap<String, Weight> = BTreeMap::new();
    for sample in &profile.samples {
        let part = sample.weight_ns / total * 100.0;
        let frames = profile.stacks.frames(sample.stack);
        let names = frames.iter().map(|frame| {
            let frame = profile.frames.get(*frame).expect("a frame");
            plain(frame.function.as_deref().unwrap_or_default())
        });
        let names: Vec<String> = names.collect();
        if let Some(innermost) = names.last() {
            weights.entry(innermost.clone()).or_default().own += part;
        }
        for name in names.into_iter().collect::<BTreeSet<String>>() {
            *weights.entry(name).or_default().children.get_or_insert(0.0) += part;
        }
    }
    weights
}

/// What `perf report` says of one event, and of the threads of one name: children and self of every symbol.
fn report(path: &Path, event: &str, threads: Option<&str>) -> BTreeMap<String, Weight> {
    let mut perf = Command::new("perf");
    perf.args(["report", "--stdio", "--no-inline", "--sort", "sym", "-g", "none"]);
    perf.args(["--percent-limit", "0", "--percentage", "relative"]);
    perf.args(threads.iter().flat_map(|name| ["--comms", *name]));
    let Output { stdout, stderr, .. } = perf.arg("-i").arg(path).output().expect("perf report");
    let text = String::from_utf8_lossy(&stdout);
    let mut weights = BTreeMap::new();
    let mut is_wanted = true;
    for line in text.lines() {
        // "# Samples: 405  of event 'cpu-clock:u'" begins the table of an event.
        if let Some((_, of)) = line.split_once("of event '") {
            is_wanted = of.split('\'').next() == Some(event);
        }
        if let Some((name, weight)) = line_of_table(line).filter(|_| is_wanted) {
            weights.insert(name, weight);
        }
    }
    assert!(!weights.is_empty(), "{text}\n{}", String::from_utf8_lossy(&stderr));
    weights
}

/// "    97.72%     0.25%  [.] storage::twice(storage::Page const&)"; the first number is missing where perf knows no call chains.
fn line_of_table(line: &str) -> Option<(String, Weight)> {
    let (numbers, name) = line.split_once("] ")?;
    let mut numbers: Vec<f64> = numbers
        .split('%')
        .filter_map(|number| number.trim().parse().ok())
        .collect();
    let own = numbers.pop()?;
    let name = plain(name.trim().split('(').next()?);
    Some((
        name,
        Weight {
            children: numbers.pop(),
            own,
        },
    ))
}
