//! Modules, instructions and functions of a profile.

use super::{Tables, broken, damaged, numbers_of};
use crate::function_name::{KERNEL_SUFFIX, function_name};
use crate::import::ImportError;
use crate::named_stacks::UNKNOWN_MODULE;
use crate::protobuf::Fields;
use crate::{Frame, KERNEL};
use scaleprof_binary::symbols::end_of_path;
use std::collections::HashMap;
use std::sync::Arc;

/// The places of all entries, by their numbers.
pub(super) struct Code {
    mappings: HashMap<u64, Mapping>,
    first: Option<u64>,
    locations: HashMap<u64, usize>,
    functions: HashMap<u64, usize>,
}

#[derive(Clone)]
struct Mapping {
    module: Arc<str>,
    build_id: Option<Arc<str>>,
    /// What is taken off an address to get that in the file.
    bias: u64,
}

impl Code {
    pub(super) fn of(tables: &Tables<'_>) -> Result<Code, ImportError> {
        let mut code = Code {
            mappings: HashMap::new(),
            first: None,
            locations: places(&tables.locations)?,
            functions: places(&tables.functions)?,
        };
        for message in &tables.mappings {
            let [id, start, offset, name, build_id] = numbers_of(message, [1, 2, 4, 5, 6])?;
            let build_id = tables.text(build_id)?.into_owned();
            code.first.get_or_insert(id);
            let mapping = Mapping {
                module: module(&tables.text(name)?).into(),
                build_id: Some(build_id).filter(|id| !id.is_empty()).map(Into::into),
                bias: start.wrapping_sub(offset),
            };
            code.mappings.insert(id, mapping);
        }
        Ok(code)
    }

    /// The program: the first module, as pprof has it.
    pub(super) fn program(&self) -> Option<(String, Option<String>)> {
        let mapping = self.mappings.get(&self.first?)?;
        let is_named = &*mapping.module != UNKNOWN_MODULE && &*mapping.module != KERNEL;
        is_named.then(|| {
            (
                mapping.module.to_string(),
                mapping.build_id.as_deref().map(str::to_owned),
            )
        })
    }

    /// The frames at a location, outermost first: what is built in comes behind. Not more than `most`.
    pub(super) fn frames(&self, location: u64, tables: &Tables<'_>, most: u32) -> Result<Vec<Frame>, ImportError> {
        let place = self.locations.get(&location);
        let message = place.and_then(|place| tables.locations.get(*place));
        let message = message.ok_or_else(|| broken(format!("a sample names location {location}, which is missing")))?;
        let mut mapping = None;
        let mut address = 0;
        let mut lines = Vec::new();
        for entry in Fields::of(message) {
            let (field, value) = entry.map_err(damaged)?;
            match field {
                2 => mapping = self.mappings.get(&value.number()),
                3 => address = value.number(),
                4 if lines.len() < most as usize => lines.push(numbers_of(value.bytes(), [1, 2])?),
                _ => {}
            }
        }
        let unnamed = Frame {
            build_id: mapping.and_then(|mapping| mapping.build_id.clone()),
            address: address.wrapping_sub(mapping.map_or(0, |mapping| mapping.bias)) as i64,
            ..Frame::named(
                mapping.map_or_else(|| UNKNOWN_MODULE.into(), |mapping| Arc::clone(&mapping.module)),
                None::<&str>,
            )
        };
        if lines.is_empty() {
            return Ok(vec![unnamed]);
        }
        // So this program names a place that has no name.
        let of_address = unnamed.function_name();
        let outermost = lines.len() - 1;
        let frames = lines.into_iter().enumerate().rev().map(|(place, [function, line])| {
            let (name, file) = self.function(function, &unnamed.module, tables)?;
            Ok(Frame {
                function: name.filter(|name| *name != of_address).map(Into::into),
                file: file.map(Into::into),
                line: i32::try_from(line).ok().filter(|line| *line > 0),
                inlined: place < outermost,
                ..unnamed.clone()
            })
        });
        frames.collect()
    }

    /// Name and file of a function.
    fn function(
        &self,
        number: u64,
        module: &str,
        tables: &Tables<'_>,
    ) -> Result<(Option<String>, Option<String>), ImportError> {
        let place = self.functions.get(&number);
        let Some(message) = place.and_then(|place| tables.functions.get(*place)) else {
            return Err(broken(format!("a location names function {number}, which is missing")));
        };
        let [name, system_name, file] = numbers_of(message, [2, 3, 4])?;
        let (name, system_name) = (tables.text(name)?, tables.text(system_name)?);
        let file = tables.text(file)?.into_owned();
        // The symbol is often the mangled name; where this program wrote it, it is the name with what a compiler appended to it.
        let is_ours = !system_name.is_empty() && function_name(module, Some(&system_name), 0) == *name;
        let name = match is_ours {
            true => system_name.into_owned(),
            false => name
                .strip_suffix(KERNEL_SUFFIX)
                .filter(|_| module == KERNEL)
                .unwrap_or(&name)
                .to_owned(),
        };
        Ok((
            Some(name).filter(|name| !name.is_empty()),
            // Where sources lie is whose machine it was.
            Some(file)
                .filter(|file| !file.is_empty())
                .map(|file| end_of_path(&file)),
        ))
    }
}

/// The place of every message by the number in its first field.
fn places(messages: &[&[u8]]) -> Result<HashMap<u64, usize>, ImportError> {
    let mut places = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        let [id] = numbers_of(message, [1])?;
        places.insert(id, place);
    }
    Ok(places)
}

/// File name of a path; the kernel as perf and others call it.
fn module(path: &str) -> String {
    if path.starts_with("[kernel") || path.ends_with("/vmlinux") {
        return KERNEL.to_owned();
    }
    match path.rsplit('/').next() {
        None | Some("") => UNKNOWN_MODULE.to_owned(),
        Some(name) => name.to_owned(),
    }
}
