//! Reads a recording and prints what its functions weigh, as `perf report --stdio` does: for comparing, and for measuring the
//! reader alone. `read_recording FILE [--no-inline] [--event NAME] [--table]`

use scaleprof_profile::import::{ReadOptions, Recording, RecordingFile, read_recording};
use scaleprof_profile::{FrameId, StackId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or("read_recording FILE [--no-inline] [--event NAME] [--table]")?;
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".debug"));
    let mut options = ReadOptions {
        inlines: true,
        build_id_caches: home.into_iter().collect(),
        ..ReadOptions::default()
    };
    let mut table = false;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--no-inline" => options.inlines = false,
            "--event" => options.event = arguments.next(),
            "--table" => table = true,
            other => return Err(format!("{other}?").into()),
        }
    }
    let begun = Instant::now();
    let recording = read_recording(RecordingFile::open(path.as_ref())?, &options)?;
    let profile = &recording.profile;
    eprintln!(
        "{:.3} s: {} samples of {:?}, {} stacks, {} frames, {} threads, program {:?}",
        begun.elapsed().as_secs_f64(),
        profile.samples.len(),
        recording.event,
        profile.stacks.iter().len(),
        profile.frames.iter().len(),
        recording.threads.len(),
        recording.program,
    );
    let mut endings: BTreeMap<&str, usize> = BTreeMap::new();
    for sample in &profile.samples {
        *endings.entry(sample.ending.name()).or_default() += 1;
    }
    eprintln!("{endings:?} {:?} lost {:?}", recording.weights, recording.samples_lost);
    for words in recording
        .warnings
        .iter()
        .chain(recording.lacks.iter().map(|(_, why)| why))
    {
        eprintln!("{words}");
    }
    if table {
        print_table(&recording);
    }
    Ok(())
}

/// Function, per cent with what it calls, per cent by itself.
fn print_table(recording: &Recording) {
    let profile = &recording.profile;
    let mut weights: HashMap<StackId, f64> = HashMap::new();
    for sample in &profile.samples {
        *weights.entry(sample.stack).or_default() += sample.weight_ns;
    }
    let total: f64 = weights.values().sum();
    let name = |frame: &FrameId| {
        profile
            .frames
            .get(*frame)
            .and_then(|frame| frame.function.as_deref())
            .unwrap_or_default()
            .to_owned()
    };
    let mut own: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for (stack, weight) in weights {
        let names: Vec<String> = profile.stacks.frames(stack).iter().map(name).collect();
        if let Some(last) = names.last() {
            own.entry(last.clone()).or_default().1 += weight;
        }
        for name in names.into_iter().collect::<BTreeSet<String>>() {
            own.entry(name).or_default().0 += weight;
        }
    }
    for (name, (children, own)) in own {
        println!("{:.2} {:.2} {name}", children / total * 100.0, own / total * 100.0);
    }
}
