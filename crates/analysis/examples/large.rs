//! How long the analysis of a large run takes: `cargo run --release -p scaleprof-analysis --example large -- BUNDLE [RUNGS]
//! [SAMPLES]`. The rungs of a real bundle are laid end to end until there are so many, and each one's samples repeated, split
//! evenly, until it has so many (10 and 1 000 000 where nothing is said).

use scaleprof_analysis::{flame::flame, summarise};
use scaleprof_bundle::{Bundle, SampleRow};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("large BUNDLE [RUNGS] [SAMPLES]")?;
    let rungs: usize = arguments.next().map_or(Ok(10), |text| text.parse())?;
    let samples: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let began = Instant::now();
    let small = Bundle::open(std::path::Path::new(&path))?;
    println!("{} samples read in {:.2?}", small.samples.len(), began.elapsed());
    let large = enlarged(&small, rungs, samples);
    println!(
        "{} rungs, {} samples of {} stacks",
        rungs,
        large.samples.len(),
        large.stacks.len()
    );
    let began = Instant::now();
    let summary = summarise(&large);
    println!(
        "analysed in {:.2?}: {} findings",
        began.elapsed(),
        summary.findings.len()
    );
    let began = Instant::now();
    let nodes = flame(&large).map_or(0, |flame| flame.nodes.len());
    println!("flame graph in {:.2?}: {nodes} frames", began.elapsed());
    Ok(())
}

/// One visit a rung, each a copy of one of the bundle's.
fn enlarged(small: &Bundle, rungs: usize, samples: usize) -> Bundle {
    let mut large = small.clone();
    large.rungs.clear();
    large.seconds.clear();
    large.counters.clear();
    large.latency.clear();
    large.states.clear();
    large.samples.clear();
    large.locks.clear();
    for (place, from) in small.rungs.iter().cycle().take(rungs).enumerate() {
        let visit = place as i32;
        let (old, connections) = (from.visit, 1 << place);
        let mut rung = from.clone();
        (rung.visit, rung.connections, rung.repeat) = (visit, connections, 0);
        large.rungs.push(rung);
        macro_rules! copy {
            ($table:ident) => {
                large.$table.extend(
                    small
                        .$table
                        .iter()
                        .filter(|row| row.visit == old)
                        .cloned()
                        .map(|mut row| {
                            row.visit = visit;
                            row
                        }),
                )
            };
        }
        copy!(seconds);
        copy!(counters);
        copy!(latency);
        copy!(states);
        copy!(locks);
        let of_visit: Vec<&SampleRow> = small.samples.iter().filter(|row| row.visit == old).collect();
        let times = samples.div_ceil(of_visit.len().max(1));
        let repeated = of_visit
            .iter()
            .flat_map(|row| (0..times).map(move |_| *row))
            .take(samples);
        large.samples.extend(repeated.map(|row| SampleRow {
            visit,
            weight_ns: row.weight_ns / times as f64,
            ..row.clone()
        }));
    }
    large
}
