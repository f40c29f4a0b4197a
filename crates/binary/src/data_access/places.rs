//! What is touched: variables, members and elements with the instructions that touch each.

use std::collections::BTreeMap;

use super::{Access, DataAccesses};
use crate::data_layout::{DataLayout, DataVariable, Piece};

/// A variable without known members is one thing up to this size; in a larger one each place that is touched counts for itself.
const LARGEST_PLAIN: u64 = 16;
/// An instruction touches no more members than these; a wider one fills or copies memory.
const MOST_PIECES: usize = 8;

/// A variable, or a part of one, that code touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TouchedPlace {
    /// The variable with its member or element (`srv_stats.n_rows_read[2]`); with the offset where members are not known
    /// (`log_sys+0x40`); the section and offset where no symbol names it (`.bss+0x1f40`).
    pub name: String,
    /// In the file's addresses.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The instructions that touch it, each with the place of its function among [`DataAccesses::functions`].
    pub accesses: Vec<(usize, Access)>,
}

/// Everything that code touches, by address. Parts may overlap: an array, some element of which is touched, and an element.
pub fn touched_places(layout: &DataLayout, accesses: &DataAccesses) -> Vec<TouchedPlace> {
    let mut places = BTreeMap::new();
    for (function, touched) in accesses.functions.iter().enumerate() {
        for access in &touched.accesses {
            for (name, address, size) in parts(layout, access) {
                let place = places
                    .entry((address, name))
                    .or_insert_with_key(|(address, name)| TouchedPlace {
                        name: name.clone(),
                        address: *address,
                        size,
                        accesses: Vec::new(),
                    });
                place.size = place.size.max(size);
                place.accesses.push((function, *access));
            }
        }
    }
    places.into_values().collect()
}

/// Name, address and size of what an instruction touches.
fn parts(layout: &DataLayout, access: &Access) -> Vec<(String, u64, u64)> {
    let size = u64::from(access.size).max(1);
    if !access.exact {
        return some_element(layout, access).into_iter().collect();
    }
    let range = access.place..access.place.saturating_add(size);
    let mut pieces = layout.pieces_in(range);
    if pieces.is_empty() {
        // Padding, or no symbol.
        pieces.extend(layout.piece_at(access.place));
    }
    if pieces.is_empty() {
        let section = layout
            .sections()
            .iter()
            .find(|section| section.kind.is_shared() && section.range.contains(&access.place));
        let named = section.map(|section| format!("{}+{:#x}", section.name, access.place - section.range.start));
        return named.map(|name| (name, access.place, size)).into_iter().collect();
    }
    pieces.truncate(MOST_PIECES);
    let parts = pieces.into_iter().map(|(variable, piece)| {
        if variable.shape.is_some() || variable.size <= LARGEST_PLAIN {
            return named(variable, &piece);
        }
        let offset = access.place.saturating_sub(variable.address);
        (format!("{}+{offset:#x}", variable.name), access.place, size)
    });
    parts.collect()
}

fn named(variable: &DataVariable, piece: &Piece) -> (String, u64, u64) {
    let name = format!("{}{}", variable.name, piece.path);
    (name, variable.address.saturating_add(piece.offset), piece.size)
}

/// What something unknown was added to the address of. None where it is a single number: then the address was that of a place
/// before an array (compilers fold `a[i - 1]` so), and of which one cannot be known.
///
/// Where that is no array that is known, it is one from there on, of unknown length: `X+0x88[]`.
fn some_element(layout: &DataLayout, access: &Access) -> Option<(String, u64, u64)> {
    if let Some((variable, array)) = layout.array_at(access.place) {
        return Some(named(variable, &array));
    }
    let variable = layout.variable_at(access.place)?;
    if variable.size <= LARGEST_PLAIN {
        return None;
    }
    let offset = access.place.saturating_sub(variable.address);
    if offset == 0 && variable.shape.is_none() {
        return Some((variable.name.clone(), variable.address, variable.size));
    }
    let name = format!("{}+{offset:#x}[]", variable.name);
    Some((name, access.place, u64::from(access.size).max(1)))
}
