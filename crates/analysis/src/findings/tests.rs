//! What a made-up run is found to suffer from.

mod dearer;
mod explained;
mod idle;
pub(crate) mod made_up;
mod row_locks;
mod shared_line;
mod spinning;
