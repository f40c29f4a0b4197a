//! speedscope's own format (speedscope.app/file-format-schema.json): a `sampled` profile for each rung, its samples in the order of
//! the call paths, as what is on the time line says nothing here.

use crate::function_paths::FunctionPaths;
use crate::{CostProfile, Frame, Unit};
use serde::Serialize;
use std::collections::HashMap;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Sampled>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Function<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sampled {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: f64,
    end_value: f64,
    samples: Vec<Vec<u32>>,
    weights: Vec<f64>,
}

/// The profiles as one file, of which speedscope shows the one at the place `shown` first. Its frames are the functions, each with
/// the module that it is in, or the source file where it is known; weights are milliseconds in that unit.
///
/// # Errors
/// Those of writing JSON, which goes into memory and has none.
pub fn write(profiles: &[&CostProfile], shown: usize, unit: Unit) -> serde_json::Result<Vec<u8>> {
    let FunctionPaths { functions, paths } = FunctionPaths::of(profiles);
    let mut places: HashMap<String, &str> = HashMap::new();
    for (_, frame) in profiles.iter().flat_map(|profile| profile.frames.iter()) {
        places.entry(frame.function_name()).or_insert_with(|| place(frame));
    }
    let frames = functions.iter().map(|name| Function {
        name,
        file: places.get(name).copied(),
    });
    let rungs = profiles.iter().enumerate().map(|(at, profile)| {
        let amount = profile.about.amount;
        let factor = amount.factor(unit) * 1e3;
        let of_rung = paths
            .iter()
            .filter(|(path, seconds)| seconds[at] > 0.0 && !path.is_empty());
        let (samples, weights): (Vec<Vec<u32>>, Vec<f64>) = of_rung
            .map(|(path, seconds)| (path.clone(), seconds[at] * factor))
            .unzip();
        Sampled {
            r#type: "sampled",
            name: format!("{}: {}", profile.about.short_title, amount.words(unit)),
            unit: "milliseconds",
            start_value: 0.0,
            end_value: weights.iter().sum(),
            samples,
            weights,
        }
    });
    serde_json::to_vec(&File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("scaleprof ", env!("CARGO_PKG_VERSION")).to_owned(),
        name: profiles.get(shown).map_or("", |profile| profile.about.title.as_str()),
        active_profile_index: shown,
        profiles: rungs.collect(),
        shared: Shared {
            frames: frames.collect(),
        },
    })
}

/// Where a function comes from.
fn place(frame: &Frame) -> &str {
    frame.file.as_deref().unwrap_or(&frame.module)
}
