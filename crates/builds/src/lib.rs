//! Server builds in a cache folder: listed, fetched, unpacked, made fit for this machine, removed.
//!
//! A [`Source`] says where a build comes from: an archive or a folder of this machine, a URL, a Maven repository, a suite of Debian
//! or Ubuntu. [`fetch`] puts it on a [`Shelf`] under a name; a build is there whole or not at all, whenever and however a fetch ends.
//! What comes from outside is written by one type that knows no way out of its folder. [`Build`] tells what is known of a build.

mod archive;
mod build;
mod checksum;
mod child;
mod download;
mod error;
mod fetch;
mod foreign;
#[cfg(test)]
mod hostile;
mod links;
mod locate;
mod making;
mod maven;
mod packages;
mod private_apt;
mod progress;
mod provenance;
mod published;
mod shelf;
mod source;
mod tree;
mod trim;
mod zstd_frames;

pub use build::{Build, Symbols};
pub use error::Error;
pub use fetch::{Fetched, Request, fetch};
pub use maven::{CENTRAL, Coordinates};
pub use progress::Progress;
pub use provenance::Provenance;
pub use shelf::{Shelf, Shelved, server_path, server_path_in};
pub use source::{Distribution, PackageSource, Source};
