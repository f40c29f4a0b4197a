//! What a made-up run is found to suffer from.

mod dearer;
mod idle;
pub(crate) mod made_up;
mod shared_line;
mod spinning;
