//! How long a large run takes to be read, analysed and shown: `cargo run --release -p
//! scaleprof-report --example large -- BUNDLE [REPEATS] [PAGES] [FILE]`; the page is made in the
//! first PAGES of the repeats only (3 where nothing is said), and written to FILE where one is
//! named.
//!
//! `large --make FROM TO [RUNGS] [SAMPLES] [STACKS]` writes such a bundle first: 10 rungs of 1 000
//! 000 samples each, of 100 000 different stacks altogether, where nothing else is said. Its rungs
//! are measurements of the real bundle FROM in turn. Every sample stands in it several times, each
//! time a little later and in another variant of its stack: half of the variants were interrupted
//! at another instruction, the other half came by a caller of another name. Few variants are
//! frequent and most are rare, as with real stacks. All other tables are those of the real
//! measurements.

use scaleprof_analysis::{flame::flame, summarise};
use scaleprof_bundle::{Bundle, BundleWriter, FrameRow, MeasurementRows, SampleRow, StackRow, UtcMicros};
use scaleprof_report::html;
use scaleprof_vocabulary::ThreadState;
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |place: usize, usual: usize| arguments.get(place).map_or(Ok(usual), |text| text.parse());
    match arguments.as_slice() {
        ["--make", from, to, ..] => {
            let size = Size {
                rungs: number(3, 10)?,
                samples: number(4, 1_000_000)?,
                stacks: number(5, 100_000)?,
            };
            make(Path::new(from), Path::new(to), &size)
        }
        [bundle, ..] => measure(
            Path::new(bundle),
            number(1, 7)?,
            number(2, 3)?,
            arguments.get(3).map(Path::new),
        ),
        [] => Err("large BUNDLE [REPEATS] [PAGES] [FILE], or large --make FROM TO [RUNGS] [SAMPLES] [STACKS]".into()),
    }
}

/// Does it all several times and prints the medians.
fn measure(path: &Path, repeats: usize, pages: usize, file: Option<&Path>) -> Result<(), Box<dyn Error>> {
    let mut times: [(&str, Vec<Duration>); 5] = [
        ("read", Vec::new()),
        ("analysed", Vec::new()),
        ("read, analysed and written as JSON", Vec::new()),
        ("flame graph alone", Vec::new()),
        ("HTML page", Vec::new()),
    ];
    for repeat in 0..repeats.max(1) {
        let began = Instant::now();
        let bundle = Bundle::open(path)?;
        let read = began.elapsed();
        let summary = summarise(&bundle);
        let analysed = began.elapsed();
        let json = serde_json::to_string_pretty(&summary)?;
        let written = began.elapsed();
        let mut taken = vec![read, analysed - read, written];
        if repeat == 0 {
            println!(
                "{} rungs, {} samples, {} stacks and what they are within, {} findings, {} bytes of JSON, at most {} MB of memory",
                summary.rungs.len(),
                bundle.samples.len(),
                bundle.stacks.len(),
                summary.findings.len(),
                json.len(),
                peak_memory_mb().map_or("unknown".to_owned(), |mb| mb.to_string())
            );
        }
        if repeat < pages {
            let again = Instant::now();
            black_box(flame(&bundle));
            taken.push(again.elapsed());
            let again = Instant::now();
            let page = html::render(&bundle, &summary);
            taken.push(again.elapsed());
            if repeat == 0 {
                println!("the page has {} bytes", page.len());
                file.map(|file| std::fs::write(file, &page)).transpose()?;
            }
        }
        for ((_, of_part), time) in times.iter_mut().zip(taken) {
            of_part.push(time);
        }
    }
    for (name, mut of_part) in times {
        of_part.sort();
        if let (Some(least), Some(most)) = (of_part.first(), of_part.last()) {
            let median = of_part[of_part.len() / 2];
            println!(
                "{name}: {median:.2?} ({least:.2?} to {most:.2?}, {} times)",
                of_part.len()
            );
        }
    }
    Ok(())
}

/// The most memory that this process ever had, from /proc.
fn peak_memory_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1000)
}

struct Size {
    rungs: usize,
    samples: usize,
    stacks: usize,
}

fn make(from: &Path, to: &Path, size: &Size) -> Result<(), Box<dyn Error>> {
    let small = Bundle::open(from)?;
    let writer = BundleWriter::create(to)?;
    writer.write_manifest(&small.manifest)?;
    writer.write_settings(&small.settings)?;
    writer.write_instructions(&small.instructions()?)?;
    let mut variants = Variants::of(&small, size.stacks);
    let mut dice = Dice(1);
    for (place, from) in small.measurements.iter().cycle().take(size.rungs).enumerate() {
        let measurement = i32::try_from(place)?;
        let rung = scaleprof_bundle::MeasurementRow {
            measurement,
            connections: 1 << place,
            repeat: 0,
            ..from.clone()
        };
        let of_measurement: Vec<SampleRow> = small
            .samples
            .rows()
            .filter(|row| row.measurement == from.measurement)
            .collect();
        let times = size.samples.div_ceil(of_measurement.len().max(1));
        let mut samples: Vec<SampleRow> = Vec::new();
        for row in of_measurement.iter().flat_map(|row| (0..times).map(move |_| row)) {
            let within = row.time_us.0 + (dice.share() * 1e6) as i64;
            let scatter = if row.state == ThreadState::Cpu {
                1.0
            } else {
                0.5 + dice.share()
            };
            samples.push(SampleRow {
                measurement,
                time_us: UtcMicros(within),
                stack: variants.stack(row.stack, dice.share()),
                weight_ns: row.weight_ns / times as f64 * scatter,
                waker_stack: row.waker_stack.map(|stack| variants.stack(stack, 0.0)),
                holder_stack: row.holder_stack.map(|stack| variants.stack(stack, 0.0)),
                ..row.clone()
            });
        }
        samples.truncate(size.samples);
        samples.sort_by_key(|row| (row.second, row.time_us));
        let mut rows = MeasurementRows {
            samples,
            stacks: variants.stacks.clone(),
            frames: variants.frames.clone(),
            ..MeasurementRows::default()
        };
        macro_rules! copy {
            ($($table:ident),*) => {
                $(for row in small.$table.iter().filter(|row| row.measurement == from.measurement) {
                    let mut row = row.clone();
                    row.measurement = measurement;
                    rows.$table.push(row);
                })*
            };
        }
        copy!(seconds, counters, latency, errors, states, locks);
        writer.write_measurement(&rung, &rows)?;
    }
    let seen: BTreeSet<i64> = variants.made.values().copied().collect();
    println!("{} variants of {} stacks", seen.len(), variants.originals);
    Ok(())
}

/// The stacks of a real bundle in many variants.
struct Variants {
    stacks: Vec<StackRow>,
    frames: Vec<FrameRow>,
    /// The chain of each real stack, the thread's first frame first.
    rows: HashMap<i64, StackRow>,
    real_frames: HashMap<i64, FrameRow>,
    known: BTreeSet<i64>,
    /// By real stack and number of the variant.
    made: HashMap<(i64, usize), i64>,
    originals: usize,
    each: usize,
}

impl Variants {
    fn of(small: &Bundle, stacks: usize) -> Variants {
        let sampled: BTreeSet<i64> = small.samples.rows().map(|row| row.stack).collect();
        Variants {
            stacks: small.stacks.clone(),
            frames: small.frames.clone(),
            rows: small.stacks.iter().map(|row| (row.stack, row.clone())).collect(),
            real_frames: small.frames.iter().map(|row| (row.frame, row.clone())).collect(),
            known: small
                .stacks
                .iter()
                .map(|row| row.stack)
                .chain(small.frames.iter().map(|row| row.frame))
                .collect(),
            made: HashMap::new(),
            originals: sampled.len(),
            each: stacks.div_ceil(sampled.len().max(1)),
        }
    }

    /// A variant of a real stack: 0 is the stack itself, and the higher the share the rarer.
    fn stack(&mut self, stack: i64, share: f64) -> i64 {
        let variant = (share * share * self.each as f64) as usize;
        if let (true, _) | (_, None) = (variant == 0, self.rows.get(&stack)) {
            self.made.insert((stack, 0), stack);
            return stack;
        }
        if let Some(made) = self.made.get(&(stack, variant)) {
            return *made;
        }
        let mut chain: Vec<StackRow> = Vec::new();
        let mut at = Some(stack);
        while let Some(row) = at.and_then(|stack| self.rows.get(&stack)) {
            at = row.parent;
            chain.push(row.clone());
        }
        chain.reverse();
        let leaf = chain.len() - 1;
        let changed = match variant % 2 {
            0 => leaf,
            _ => leaf * 2 / 3,
        };
        let mut parent = changed.checked_sub(1).map(|outer| chain[outer].stack);
        for row in &chain[changed..] {
            let mut frame = row.frame;
            if row.stack == chain[changed].stack {
                frame = self.frame(row.frame, variant, changed != leaf);
            }
            let number = mixed(parent.unwrap_or(7), frame);
            if self.known.insert(number) {
                self.stacks.push(StackRow {
                    stack: number,
                    parent,
                    frame,
                    depth: row.depth,
                });
            }
            parent = Some(number);
        }
        let made = parent.unwrap_or(stack);
        self.made.insert((stack, variant), made);
        made
    }

    fn frame(&mut self, frame: i64, variant: usize, is_renamed: bool) -> i64 {
        let Some(real) = self.real_frames.get(&frame) else {
            return frame;
        };
        let number = mixed(frame, variant as i64 * 2 + i64::from(is_renamed));
        if self.known.insert(number) {
            let name = |name: &Arc<str>| format!("{name}_{variant}").into();
            self.frames.push(FrameRow {
                frame: number,
                address: real.address + variant as i64 * 4,
                function: match is_renamed {
                    true => real.function.as_ref().map(name),
                    false => real.function.clone(),
                },
                ..real.clone()
            });
        }
        number
    }
}

/// A number that hardly anything else gives (the finalizer of SplitMix64, Steele et al. 2014).
fn mixed(a: i64, b: i64) -> i64 {
    let mut mixed = (a as u64).rotate_left(23) ^ (b as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)) as i64
}

/// Shares from 0 to 1, always the same ones.
struct Dice(i64);

impl Dice {
    fn share(&mut self) -> f64 {
        self.0 += 1;
        (mixed(self.0, 3) as u64 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
